package server

import (
	"context"
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// Topics are resources and tasks to which a client may subscribe.
type Topics struct {
	Resources []string // by their URIs
	Tasks     []string // by their ids
}

// Tell sends a notification about a topic. fill writes its params. In a modern subscription the
// params also name the subscription.
type Tell func(method string, fill func(*jsonmsg.Writer)) error

// mostTopics limits how many resources, and how many tasks, one client may subscribe to at once.
const mostTopics = 100

// listWords maps the words by which modern clients subscribe to lists to the notifications.
func listWords() map[string]string {
	return map[string]string{
		"toolsListChanged":     ToolsChanged,
		"promptsListChanged":   PromptsChanged,
		"resourcesListChanged": ResourcesChanged,
	}
}

// subscription returns params or a result that belong to a modern subscription.
func subscription(id wire.ID, fill func(*jsonmsg.Writer)) json.RawMessage {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		if fill != nil {
			fill(w)
		}
		w.Name("_meta").Object(func(w *jsonmsg.Writer) {
			w.Name(wire.KeySubscription).Verbatim([]byte(id.Text()))
		})
	})
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// listen answers subscriptions/listen of a modern client. It returns when the client ends the
// subscription.
func (s *session) listen(ctx context.Context, r *Request, with *Exchange) (json.RawMessage, *wire.Error) {
	lists, topics, bad := readWanted(r.Params)
	if bad != nil {
		return nil, bad
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	agreed := make(chan struct{}) // notifications must follow the acknowledgement
	tell := func(method string, fill func(*jsonmsg.Writer)) error {
		select {
		case <-agreed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return with.Notify(method, subscription(with.id, fill))
	}
	d := s.srv.cfg.Handler.Describe(ctx, r.Caller)
	l := &listener{
		out:  with.out,
		id:   with.id,
		only: map[string]bool{},
	}
	for word := range lists {
		if announces(d.ModernCapabilities, word) {
			l.only[listWords()[word]] = true
		}
	}

	if topics, bad = s.srv.cfg.Handler.Listen(ctx, r, topics, tell); bad != nil {
		return nil, bad
	}
	if err := l.acknowledge(with, topics); err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the client has gone")
	}
	defer s.srv.listeners.add(l)()
	close(agreed)
	if len(l.only)+len(topics.Resources)+len(topics.Tasks) > 0 {
		s.untilLeaving(ctx)
	}
	return subscription(l.id, func(w *jsonmsg.Writer) { w.Member("resultType", wire.Complete) }), nil
}

// untilLeaving waits until ctx ends or the client has gone.
func (s *session) untilLeaving(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.leaving:
	}
}

// readWanted reads what a modern client subscribes to.
func readWanted(params []byte) (lists map[string]bool, t Topics, bad *wire.Error) {
	lists = map[string]bool{}
	if !jsonmsg.IsObject(jsonmsg.Get(params, "notifications")) {
		return nil, t, wire.Fail(wire.CodeInvalidParams, "params.notifications: expected an object")
	}

	f := jsonmsg.Read(jsonmsg.Get(params, "notifications"), wire.Limits())
	for word := range listWords() {
		if string(f.Raw(word)) == "true" {
			lists[word] = true
		}
	}
	t = Topics{Resources: texts(f, "resourceSubscriptions"), Tasks: texts(f, "taskIds")}
	if f.Err() != nil {
		bad = wire.Fail(wire.CodeInvalidParams, "params.notifications: %v", f.Err())
	}
	return lists, t, bad
}

// texts returns the strings of a list, which may be absent.
func texts(f jsonmsg.Fields, name string) (all []string) {
	if !f.Has(name) {
		return nil
	}
	for path, raw := range f.Elements(name, mostTopics) {
		text, _ := f.String(path, raw)
		all = append(all, text)
	}
	return all
}

// acknowledge informs a modern client of the topics that it is subscribed to.
func (l *listener) acknowledge(with *Exchange, t Topics) error {
	return with.Notify("notifications/subscriptions/acknowledged", subscription(l.id, func(w *jsonmsg.Writer) {
		w.Name("notifications").Object(func(w *jsonmsg.Writer) {
			for word, method := range listWords() {
				if l.only[method] {
					w.Name(word).Bool(true)
				}
			}
			if len(t.Resources) > 0 {
				w.Name("resourceSubscriptions").Strings(t.Resources)
			}
			if len(t.Tasks) > 0 {
				w.Name("taskIds").Strings(t.Tasks)
			}
		})
	}))
}

// announces reports whether the gateway announces changes of a list.
func announces(capabilities []byte, word string) bool {
	list := word[:len(word)-len("ListChanged")]
	return string(jsonmsg.Get(jsonmsg.Get(capabilities, list), "listChanged")) == "true"
}

// subscribe answers resources/subscribe of a legacy client. The subscription lasts until the client
// unsubscribes or disconnects.
func (s *session) subscribe(ctx context.Context, r *Request) (json.RawMessage, *wire.Error) {
	uri, bad := uriOf(r)
	if bad != nil {
		return nil, bad
	}
	listening, stop, bad := s.follow(ctx, uri)
	if bad != nil || listening == nil {
		return json.RawMessage("{}"), bad
	}
	tell := func(method string, fill func(*jsonmsg.Writer)) error {
		params, err := jsonmsg.Object(fill)
		if err != nil {
			return err
		}
		return s.aside.Write(&wire.Message{Method: method, Params: params})
	}
	agreed, bad := s.srv.cfg.Handler.Listen(listening, r, Topics{Resources: []string{uri}}, tell)
	if bad == nil && len(agreed.Resources) == 0 {
		bad = wire.Fail(wire.CodeInvalidParams, "this resource has no news for this client")
	}
	if bad != nil {
		stop()
		return nil, bad
	}
	return json.RawMessage("{}"), nil
}

func uriOf(r *Request) (string, *wire.Error) {
	uri, _ := jsonmsg.ReadString(jsonmsg.Get(r.Params, "uri"))
	if uri == "" {
		return "", wire.Fail(wire.CodeInvalidParams, "params.uri: expected the URI of a resource")
	}
	return uri, nil
}

// follow creates the context of a legacy client's subscription to a resource. It returns nil if the
// client is subscribed already.
func (s *session) follow(ctx context.Context, uri string) (context.Context, func(), *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over || s.aside == nil:
		return nil, nil, wire.Fail(wire.CodeInvalidRequest, "expected notifications/initialized before")
	case s.followed[uri] != nil:
		return nil, nil, nil
	case len(s.followed) >= mostTopics:
		return nil, nil, wire.Fail(wire.CodeInvalidRequest, "expected at most %d subscriptions", mostTopics)
	}

	listening, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.followed[uri] = stop
	return listening, func() { s.unfollow(uri) }, nil
}

func (s *session) unfollow(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.followed[uri]; stop != nil {
		delete(s.followed, uri)
		stop()
	}
}

// unsubscribe answers resources/unsubscribe of a legacy client.
func (s *session) unsubscribe(r *Request) (json.RawMessage, *wire.Error) {
	uri, bad := uriOf(r)
	if bad != nil {
		return nil, bad
	}
	s.unfollow(uri)
	return json.RawMessage("{}"), nil
}

// setLevel answers logging/setLevel of a legacy client.
func (s *session) setLevel(r *Request) (json.RawMessage, *wire.Error) {
	level, _ := jsonmsg.ReadString(jsonmsg.Get(r.Params, "level"))
	if wire.LogRank(level) < 0 {
		return nil, wire.Fail(wire.CodeInvalidParams, "params.level: expected a level of the protocol, such as info")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
	return json.RawMessage("{}"), nil
}
