package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

const methodListen = "subscriptions/listen"

// Updated delivers the URIs of followed resources that have changed.
func (s *Server) Updated() <-chan string { return s.updated }

// Follow subscribes to a resource until ctx ends, by resources/subscribe or, for a modern server,
// by subscriptions/listen. If the server ends, it subscribes again when the server is back. began
// is called, perhaps several times, once the server was asked or can't be reached now. A refusal of
// the server is a *wire.Error.
func (s *Server) Follow(ctx context.Context, uri string, began func()) error {
	s.follow(uri, 1)
	defer s.follow(uri, -1)
	for fails := 1; ctx.Err() == nil; fails++ {
		c, err := s.current(ctx)
		if err == nil {
			err = s.hearOf(ctx, c, uri, began)
		}
		if refused, is := errors.AsType[*wire.Error](err); is {
			return refused
		}
		began()
		_ = wait.Pause(ctx, backoff.Jitter(200*time.Millisecond, 30*time.Second, fails))
	}

	return context.Cause(ctx)
}

// follow changes the number of followers of a resource.
func (s *Server) follow(uri string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[uri] += n; s.followed[uri] == 0 {
		delete(s.followed, uri)
	}
}

func (s *Server) follows(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[uri] > 0
}

// hearOf follows a resource on one connection.
func (s *Server) hearOf(ctx context.Context, c link, uri string, began func()) error {
	if wire.IsModern(c.about().Version) {
		began()
		out, err := c.do(ctx, Request{Method: methodListen, Params: only(uri)})
		return orRefusal(out, err)
	}

	lapsed := c.lapsed()
	r := Request{Method: "resources/subscribe", Params: resource(uri)}
	out, err := c.do(ctx, r)
	if err = orRefusal(out, err); err != nil {
		return err
	}
	began()
	select {
	case <-lapsed:
	case <-c.ended():
	case <-ctx.Done():
		r.Method = "resources/unsubscribe"
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.grace())
		defer stop()
		_, err = c.do(ctx, r)
	}

	return err
}

// orRefusal returns the error of a request, or the error that the server answered.
func orRefusal(out Answer, err error) error {
	if err == nil && out.Error != nil {
		return out.Error
	}
	return err
}

func resource(uri string) json.RawMessage {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Member("uri", uri) })
	if err != nil {
		return nil
	}
	return text
}

// only returns the params of subscriptions/listen for one resource.
func only(uri string) json.RawMessage {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("notifications").Object(func(w *jsonmsg.Writer) {
			w.Name("resourceSubscriptions").Strings([]string{uri})
		})
	})
	if err != nil {
		return nil
	}
	return text
}

// listen receives changes of lists from a modern server on a pipe until the connection ends.
func (c *conn) listen() {
	for fails := 1; c.cause() == nil; fails++ {
		out, err := c.do(context.Background(), Request{Method: methodListen, Params: wanted()})
		if err != nil || out.Error != nil {
			return // it has ended, or has no news
		}
		_ = wait.For(context.Background(), c.gone, backoff.Jitter(200*time.Millisecond, 30*time.Second, fails))
		c.news.all() // what came meanwhile was missed
	}
}

// level sets the log level of a legacy server to the lowest one that any client wants. Messages are
// filtered for each client elsewhere.
func (s *Server) level(ctx context.Context, c link, r *Request) {
	about := c.about()
	level := r.Meta.LogLevel
	if level == "" || wire.IsModern(about.Version) {
		return
	}
	r.Meta.LogLevel = ""
	if jsonmsg.Get(about.Capabilities, "logging") == nil || !s.lower(c, level) {
		return
	}
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Member("level", level) })
	if err == nil {
		var out Answer
		out, err = c.do(ctx, Request{Method: wire.MethodLevel, Params: text})
		err = orRefusal(out, err)
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "a server takes no level of its log", "server", s.cfg.Alias, "error", err)
	}
}

// lower reports whether a level is lower than the current one of a connection, and stores it.
func (s *Server) lower(c link, level string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c && s.logs != "" && wire.LogRank(level) >= wire.LogRank(s.logs) {
		return false
	}
	s.logs = level
	return true
}
