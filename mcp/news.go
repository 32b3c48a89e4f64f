package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// followable is a connection to a server that sends updates of resources (upstream.Server).
type followable interface {
	Follow(ctx context.Context, uri string, began func()) error
	Updated() <-chan string
}

// notifier watches the servers and the rules for changes, and notifies clients of them.
type notifier struct {
	*base
	lister    *lister
	offers    *offers
	keeper    *keeper
	tasks     *tasks
	followers followers
}

// followers holds the clients that are subscribed to resources.
type followers struct {
	mu sync.Mutex
	of map[resourceKey]*followed // by the server's alias and its URI
}

// resourceKey identifies a resource of a server.
type resourceKey struct{ alias, uri string }

// followed is a resource with subscribed clients. The gateway subscribes once at the server for all
// of them.
type followed struct {
	stop  context.CancelFunc
	began chan struct{} // closed once the server was asked
	ended chan struct{} // closed when the server refused or no client is subscribed
	why   error         // of the end
	ears  map[*ear]struct{}
}

// ear is a subscribed client.
type ear struct {
	caller *caller
	uri    string // as the client has it
	tell   server.Tell
	news   atomic.Int64 // that it has not heard yet
}

// hear sends an update to the client. A client that doesn't read must not delay the others, so
// updates that arrive while one is being sent are combined into one.
func (e *ear) hear(tell func()) {
	if e.news.Add(1) > 1 {
		return
	}
	go func() {
		for told := int64(0); !e.news.CompareAndSwap(told, 0); {
			told = e.news.Load()
			tell()
		}
	}()
}

// listen subscribes a client to topics; see Gateway.Listen.
func (n *notifier) listen(
	ctx context.Context, r *server.Request, t server.Topics, tell server.Tell,
) (agreed server.Topics, bad *wire.Error) {
	by, bad := n.askedBy(ctx, r)
	if bad != nil {
		return agreed, bad
	}
	for _, uri := range t.Resources {
		switch bad = n.listenTo(ctx, &ear{caller: by, uri: uri, tell: tell}); {
		case bad == nil:
			agreed.Resources = append(agreed.Resources, uri)
		case !r.Modern:
			return agreed, bad
		}
	}

	for _, id := range t.Tasks {
		c, bad := n.tasks.taskByID(ctx, r, id)
		if bad == nil && r.Modern && r.Capabilities.Tasks {
			agreed.Tasks = append(agreed.Tasks, id)
			go n.tellTask(ctx, r, c.Key, tell)
		}
	}

	return agreed, nil
}

// mayHear reports whether the rules may allow reading a resource. It returns false if the rules
// can't be read.
func (n *notifier) mayHear(ctx context.Context, by *caller, key resourceKey) bool {
	plan, err := n.cfg.Plan(ctx)
	if err != nil {
		return false
	}
	args := written(func(w *jsonmsg.Writer) { w.Member("uri", key.uri) })
	return plan.DecideAt(pseudo(key.alias, wire.MethodRead).call(by, args), n.now()).Outcome != resolve.Deny
}

// listenTo subscribes a client to a resource until ctx ends.
func (n *notifier) listenTo(ctx context.Context, e *ear) *wire.Error {
	s, own, bad := n.offers.findResource(ctx, e.uri)
	if bad != nil {
		return bad
	}
	from, is := s.Upstream.(followable)
	if !is || string(jsonmsg.Get(jsonmsg.Get(s.has(), "resources"), "subscribe")) != "true" {
		return wire.Fail(wire.CodeMethodNotFound, "the server has no news of resources")
	}
	key := resourceKey{s.Alias, own}
	if !n.mayHear(ctx, e.caller, key) {
		return wire.Fail(wire.CodeInvalidParams, "Not run. Policy denies reading this resource.")
	}

	joined := n.followers.join(from, key, e)
	context.AfterFunc(ctx, func() { n.followers.leave(key, joined, e) })
	select {
	case <-joined.began:
		return nil
	case <-joined.ended:
		n.followers.leave(key, joined, e)
		return refusal(joined.why)
	case <-ctx.Done():
		return wire.Fail(wire.CodeInternal, "the client has gone")
	}
}

// refusal returns the server's error, or an error that the server can't be reached.
func refusal(err error) *wire.Error {
	if bad, is := errors.AsType[*wire.Error](err); is {
		return bad
	}
	return wire.Fail(wire.CodeInternal, "the server can't be reached")
}

// join adds a subscribed client. The first one makes the gateway subscribe at the server.
func (l *followers) join(from followable, key resourceKey, e *ear) *followed {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.of[key]
	if f == nil {
		f = l.begin(from, key)
	}
	f.ears[e] = struct{}{}
	return f
}

// begin subscribes to a resource at the server. The caller holds the lock.
func (l *followers) begin(from followable, key resourceKey) *followed {
	ctx, stop := context.WithCancel(context.Background())
	f := &followed{
		stop:  stop,
		began: make(chan struct{}),
		ended: make(chan struct{}),
		ears:  map[*ear]struct{}{},
	}
	l.of[key] = f
	began := sync.OnceFunc(func() { close(f.began) })
	go func() {
		f.why = from.Follow(ctx, key.uri, began)
		close(f.ended)
		l.drop(key, f)
	}()
	return f
}

// leave removes a client. After the last one the gateway unsubscribes at the server.
func (l *followers) leave(key resourceKey, f *followed, e *ear) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(f.ears, e)
	if len(f.ears) > 0 {
		return
	}
	f.stop()
	if l.of[key] == f {
		delete(l.of, key)
	}
}

// drop removes a resource for which no more updates arrive.
func (l *followers) drop(key resourceKey, f *followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[key] == f {
		delete(l.of, key)
	}
}

// hearing returns the clients that are subscribed to a resource.
func (l *followers) hearing(key resourceKey) (all []*ear) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.of[key]; f != nil {
		for e := range f.ears {
			all = append(all, e)
		}
	}
	return all
}

// updated notifies the clients that may still read a resource of its change.
func (n *notifier) updated(ctx context.Context, key resourceKey) {
	for _, e := range n.followers.hearing(key) {
		if !n.mayHear(ctx, e.caller, key) {
			continue
		}
		e.hear(func() { n.tellUpdated(ctx, e) })
	}
}

func (n *notifier) tellUpdated(ctx context.Context, e *ear) {
	err := e.tell("notifications/resources/updated", func(w *jsonmsg.Writer) { w.Member("uri", e.uri) })
	if err != nil {
		n.cfg.Log.InfoContext(ctx, "news did not reach a client", "caller", e.caller.Name, "error", err)
	}
}

// tellTask reports the status of a task immediately and after each change until the task has ended.
func (n *notifier) tellTask(ctx context.Context, r *server.Request, key string, tell server.Tell) {
	for told := ""; ; {
		var now string
		c, err := n.keeper.engine.Watch(ctx, key, func(c *record) bool {
			now = status(c, true) + n.tasks.statusMessage(c)
			return now != told
		})
		if err != nil {
			return // it is forgotten, or the client has gone
		}
		told = now
		err = tell("notifications/tasks", func(w *jsonmsg.Writer) { n.tasks.writeDetailed(w, c, r) })
		if err != nil || c.Over() {
			return
		}
	}
}
