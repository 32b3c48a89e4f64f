package upstream

import (
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// news reports changed lists and resources, combining many notifications in a row into one.
type news struct {
	s    *Server
	gone <-chan struct{}

	mu      sync.Mutex
	resting map[topic]bool // topics that are reported soon; true: and then once more
}

// topic is a list or a resource that changes.
type topic struct {
	to   chan<- string
	what string
}

func (s *Server) newNews(gone <-chan struct{}) *news {
	return &news{s: s, gone: gone, resting: map[topic]bool{}}
}

// lists returns the lists that may change.
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

// changed schedules a report of a topic, unless one is scheduled already.
func (n *news) changed(t topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, soon := n.resting[t]
	n.resting[t] = soon
	if !soon {
		n.rest(t)
	}
}

// rest reports a topic after the settling time.
func (n *news) rest(t topic) { time.AfterFunc(n.s.cfg.Settle, func() { n.tell(t) }) }

// tell reports a topic. If it changed again before the report was received, it is reported once
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

// all reports all lists, because it is unknown which ones have changed.
func (n *news) all() {
	for _, list := range lists() {
		n.changed(topic{n.s.changed, list})
	}
}
