package hold

import (
	"context"
	"errors"
	"sync"

	"github.com/assent-dev/assent/approval"
)

// AskFunc answers a tool's question in this process. It may block until there is an answer. ctx
// ends when the answer is no longer needed. If it returns Pending or an unknown state, the question
// ends as cancelled.
type AskFunc func(ctx context.Context, q Question) Answer

// ApproveFunc decides whether a call may run. It returns Approved, or any other state with a
// reason. It can't edit the call.
type ApproveFunc func(ctx context.Context, v Verdict) Held

// Local asks functions in this process instead of people elsewhere: at a terminal, in a dialog, on
// a page of the program's own. It keeps the answers in memory, so after a restart everything is
// asked again.
type Local struct {
	ask     AskFunc
	approve ApproveFunc
	changed chan string

	mu   sync.Mutex
	kept map[string]*local // by ref, which equals the key
}

// local is the state of one question or approval.
type local struct {
	binding string // binding of the call to approve
	held    Held
	answer  Answer
	cancel  context.CancelFunc
}

// NewLocal returns a Local. If approve is nil, every call is denied.
func NewLocal(ask AskFunc, approve ApproveFunc) *Local {
	return &Local{
		ask:     ask,
		approve: approve,
		changed: make(chan string, 64),
		kept:    map[string]*local{},
	}
}

// As returns l for every asker: all askers in this process reach the same functions, and keys can't
// be guessed.
func (l *Local) As(approval.Asker) Requests { return l }

// put starts asking, once per key. A question outlives the call that brought it, so it does not end
// with that call's context.
func (l *Local) put(ctx context.Context, key string, c *local, work func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[key] != nil {
		return
	}
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.kept[key] = c
	go func() {
		defer c.cancel()
		work(ctx)
	}()
}

// settle stores the result of a question or an approval, unless it has already ended.
func (l *Local) settle(ref string, held Held, answer Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.kept[ref]
	if c == nil || c.held.State != Pending {
		return
	}
	held.Ref = ref
	c.held, c.answer = held, answer
	select {
	case l.changed <- ref:
	default: // the watcher is behind, and will look at everything later
	}
}

// Ask passes a question to the function and returns its reference.
func (l *Local) Ask(ctx context.Context, key string, q Question) (string, error) {
	c := &local{held: Held{Ref: key, State: Pending}, answer: Answer{State: Pending}}
	l.put(ctx, key, c, func(ctx context.Context) {
		answer := l.ask(ctx, q)
		if asked := q.Put(); !fits(&asked, answer) {
			answer = Answer{State: Cancelled, Reason: "no answer was given"}
		}
		l.settle(key, Held{State: Responded}, answer)
	})
	return key, nil
}

// Answer returns the state of a question.
func (l *Local) Answer(_ context.Context, ref string) (Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.kept[ref]; c != nil {
		return c.answer, nil
	}
	return Answer{}, ErrNoRequest
}

// Watch reports the answered requests until ctx ends.
func (l *Local) Watch(ctx context.Context, changed func(ref string)) error {
	changed("")
	for {
		select {
		case ref := <-l.changed:
			changed(ref)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Open asks the function for approval of a call.
func (l *Local) Open(ctx context.Context, key string, v Verdict) (Held, error) {
	if l.approve == nil {
		return Held{Ref: key, State: Denied, Reason: "nobody can approve calls here"}, nil
	}

	c := &local{binding: v.Binding, held: Held{Ref: key, State: Pending}}
	l.put(ctx, key, c, func(ctx context.Context) {
		held := l.approve(ctx, v)
		if held.State == "" || held.State == Pending {
			held = Held{State: Cancelled, Reason: "no answer was given"}
		}
		held.Arguments = nil
		l.settle(key, held, Answer{})
	})
	return l.Look(ctx, key)
}

// Look returns the state of an approval.
func (l *Local) Look(_ context.Context, ref string) (Held, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.kept[ref]; c != nil {
		return c.held, nil
	}
	return Held{}, ErrNoRequest
}

// Claim takes the one run of exactly the approved call.
func (l *Local) Claim(_ context.Context, ref, _ string, v Verdict) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.kept[ref]
	if c == nil || c.held.State != Approved || c.binding == "" || c.binding != v.Binding {
		return errors.Join(ErrNotClaimed, errors.New("nobody approved this call"))
	}
	return nil
}

// Cancel withdraws a question or an approval that is no longer needed.
func (l *Local) Cancel(_ context.Context, ref, reason string) error {
	l.settle(ref, Held{State: Cancelled, Reason: reason}, Answer{State: Cancelled, Reason: reason})
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.kept[ref]; c != nil {
		c.cancel()
	}
	return nil
}
