package upstream

import (
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// news tells of changed lists and resources, once for many messages in
// a row.
type news struct {
	s    *Server
	gone <-chan struct{}

	mu      sync.Mutex
	resting map[topic]bool // what is told soon; true: and then once more
}

// topic is something that changes: a list or a resource.
type topic struct {
	to   chan<- string
	what string
}

func (s *Server) newNews(gone <-chan struct{}) *news {
	return &news{s: s, gone: gone, resting: map[topic]bool{}}
}

// lists are those that may change.
func lists() []string { return []string{"tools/list", "resources/list", "prompts/list"} }

// notified takes a notification.
func (n *news) notified(m *wire.Message) {
	if m.Method == "notifications/resources/updated" {
		uri, _ := jsonmsg.ReadString(jsonmsg.Get(m.Params, "uri"))
		if n.s.follows(uri) {
			n.changed(topic{n.s.updated, uri})
		}
		return
	}

	for _, list := range lists() {
		if m.Method == "notifications/"+strings.TrimSuffix(list, "list")+"list_changed" {
			n.changed(topic{n.s.changed, list})
		}
	}
}

// changed has a topic told soon, where it isn't yet.
func (n *news) changed(t topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, soon := n.resting[t]
	n.resting[t] = soon
	if !soon {
		n.rest(t)
	}
}

// rest tells a topic after a while.
func (n *news) rest(t topic) { time.AfterFunc(n.s.cfg.Settle, func() { n.tell(t) }) }

// tell tells a topic, and what came of it while nobody took that once
// more.
func (n *news) tell(t topic) {
	n.mu.Lock()
	n.resting[t] = false
	n.mu.Unlock()
	select {
	case t.to <- t.what:
	case <-n.gone:
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resting[t] {
		n.rest(t)
		return
	}
	delete(n.resting, t)
}

// all says that nobody knows which lists have changed.
func (n *news) all() {
	for _, list := range lists() {
		n.changed(topic{n.s.changed, list})
	}
}
