package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	toolsetPath = "/.well-known/rap-toolset" // the only supported path
	toolsFor    = time.Hour                  // how long a session's toolsets are kept
	retryAfter  = 10 * time.Second           // the same if a server could not be reached
	maxSessions = 256                        // sessions whose toolsets are kept
	discoverFor = 30 * time.Second
	oldAfter    = 500 * time.Millisecond // wait for a new discovery before the previous one is used
)

// Tools are the operations that a session may call.
type Tools struct {
	Offers   []Offer
	Problems []Problem
}

// Offer is one available operation.
type Offer struct {
	Server string // registered name
	wire.Tool
	endpoint string
}

// Problem is the reason why a server or one of its tools is not available.
type Problem struct {
	Server string
	Tool   string // empty if it concerns the whole server
	Err    error
}

// toolsets caches the operations discovered for each session.
type toolsets struct {
	mu sync.Mutex
	of map[string]*session
}

type session struct {
	found chan struct{} // closed once the discovery is complete
	at    time.Time     // of its last use
	until time.Time
	old   time.Time // until then it may be used while a new discovery runs
	next  *session  // the new discovery; nil if there is none
	tools Tools
	by    map[string]*Offer
}

// Tools discovers what all servers offer a session (the root thread), once per session and
// again after an hour. Problems lists what is not available and why: a server that can't be
// reached, an invalid manifest, or a name that several servers use (then none of them is
// available).
func (t *Threads) Tools(ctx context.Context, session string) (Tools, error) {
	s, _, err := t.r.decider.found(ctx, t.r.names.Thread(t.who, session))
	if err != nil {
		return Tools{}, err
	}
	return Tools{Offers: slices.Clone(s.tools.Offers), Problems: slices.Clone(s.tools.Problems)}, nil
}

// errUnknown is returned if no discovered toolset has an operation.
var errUnknown = errors.New("no such operation")

// offered returns an operation that a session may call.
func (d *decider) offered(ctx context.Context, session, operation string) (*Offer, error) {
	s, next, err := d.found(ctx, session)
	if err != nil {
		return nil, err
	}
	if s.by[operation] == nil && next != nil { // a server may be reachable again
		if s, err = next.wait(ctx, nil, nil); err != nil {
			return nil, err
		}
	}
	if o := s.by[operation]; o != nil {
		return o, nil
	}
	for _, p := range s.tools.Problems {
		if p.Tool == operation {
			return nil, fmt.Errorf("%w: %w", errUnknown, p.Err)
		}
	}
	return nil, errUnknown
}

// session returns the key of a call's session, which is its root thread. Toolsets are
// discovered per session.
func (d *decider) session(c *call) string {
	return d.names.Thread(c.Asker, names.Root(c.Part.Thread, c.Part.Ancestors))
}

// found returns the toolsets of a session. So that a server that hangs does not delay the calls
// of all others, the previous toolsets are used until a new discovery completes; next is then
// the new discovery.
func (d *decider) found(ctx context.Context, name string) (s, next *session, err error) {
	s, old := d.toolsets.claim(name, d.now(), func(s *session) { go d.discover(s) })
	if old == nil {
		s, err = s.wait(ctx, nil, nil)
		return s, nil, err
	}
	t := time.NewTimer(oldAfter)
	defer t.Stop()
	now, err := s.wait(ctx, t.C, old)
	return now, s, err
}

// wait waits until the discovery is complete. If late fires before, it returns old.
func (s *session) wait(ctx context.Context, late <-chan time.Time, old *session) (*session, error) {
	select {
	case <-s.found:
		return s, nil
	case <-late:
		return old, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// claim returns the toolsets of a session, and starts a discovery if that is necessary. old are
// the previous toolsets, which may be used meanwhile.
func (t *toolsets) claim(name string, now time.Time, find func(*session)) (s, old *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.of[name]
	if s != nil && s.next != nil && s.next.done() {
		s = s.next
		t.of[name] = s
	}
	switch {
	case s == nil || s.over(now) && !now.Before(s.old):
		t.forgetOldest()
		s = &session{found: make(chan struct{})}
		t.of[name] = s
		find(s)
	case s.over(now):
		if old = s; s.next == nil {
			s.next = &session{found: make(chan struct{})}
			find(s.next)
		}
		s.at, s = now, s.next
	}

	s.at = now
	return s, old
}

func (s *session) done() bool {
	select {
	case <-s.found:
		return true
	default:
		return false
	}
}

// over reports whether a completed discovery is too old.
func (s *session) over(now time.Time) bool { return s.done() && !now.Before(s.until) }

func (t *toolsets) forgetOldest() {
	if len(t.of) < maxSessions {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(t.of)), func(a, b string) int {
		return t.of[a].at.Compare(t.of[b].at)
	})
	delete(t.of, oldest)
}

// discover asks all servers concurrently. It is not bound to the context of the caller that
// caused it, but has a time limit of its own.
func (d *decider) discover(s *session) {
	defer close(s.found)
	ctx, done := context.WithTimeout(context.Background(), discoverFor)
	defer done()
	sets := make([]*wire.Toolset, len(d.cfg.Servers))
	errs := make([]error, len(d.cfg.Servers))
	var all sync.WaitGroup
	for i, cfg := range d.cfg.Servers {
		all.Go(func() { sets[i], errs[i] = d.servers[cfg.Name].toolset(ctx) })
	}
	all.Wait()
	for i, cfg := range d.cfg.Servers {
		s.add(cfg.Name, sets[i], errs[i])
	}
	s.settle()
	s.until, s.old = d.now().Add(toolsFor), d.now().Add(toolsFor)
	if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, errUnreached) }) {
		s.until = d.now().Add(retryAfter)
	}
	for _, p := range s.tools.Problems {
		d.log.Warn("not available", "server", p.Server, "tool", p.Tool, "error", plainError(p.Err))
	}
}

// errUnreached is returned if a server sent no manifest. It may be reachable later.
var errUnreached = errors.New("the manifest could not be read")

// toolset reads a server's manifest. If any part is invalid, none of it is used.
func (s *toolServer) toolset(ctx context.Context) (*wire.Toolset, error) {
	body, err := s.peer.Get(ctx, s.base+toolsetPath)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreached, err)
	}
	set, err := wire.ParseToolset(body)
	if err != nil {
		return nil, fmt.Errorf("the manifest is not valid: %w", err)
	}
	if err := s.peer.Check(set.Endpoint); err != nil {
		return nil, fmt.Errorf("the manifest is not valid: endpoint: %w", err)
	}
	return set, nil
}

func (s *session) add(server string, set *wire.Toolset, err error) {
	if err != nil {
		s.tools.Problems = append(s.tools.Problems, Problem{Server: server, Err: err})
		return
	}
	for _, t := range set.Tools {
		s.tools.Offers = append(s.tools.Offers, Offer{server, t, set.Endpoint})
	}
}

// settle removes tools whose name more than one server uses.
func (s *session) settle() {
	count := map[string]int{}
	for _, o := range s.tools.Offers {
		count[o.Name]++
	}
	s.tools.Offers = slices.DeleteFunc(s.tools.Offers, func(o Offer) bool {
		if count[o.Name] > 1 {
			s.tools.Problems = append(
				s.tools.Problems,
				Problem{o.Server, o.Name, errors.New("another tool server has a tool of this name")},
			)
		}

		return count[o.Name] > 1
	})
	s.by = make(map[string]*Offer, len(s.tools.Offers))
	for i := range s.tools.Offers {
		s.by[s.tools.Offers[i].Name] = &s.tools.Offers[i]
	}
}
