package desk

import (
	"context"
	"errors"
	"sync"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// Ask answers a tool's question in this process, and takes its time for it. ctx ends when nobody needs the answer any more. AnswerOpen or an
// unknown state is no answer: the question ends as cancelled.
type Ask func(ctx context.Context, q hold.Question) hold.Answer

// Approve answers whether a call may run: HeldApproved, or anything else with a reason. An edit is not offered.
type Approve func(ctx context.Context, v hold.Verdict) hold.Held

// Local is a desk in this process, at which functions answer: a terminal, a dialog, a program's own page. It keeps what was answered in memory, so
// after a restart everything is asked again.
type Local struct {
	ask     Ask
	approve Approve
	changed chan string

	mu    sync.Mutex
	cards map[string]*card // by ref, which is the key
}

// card is one question or approval with how it stands.
type card struct {
	binding string // of the call to approve
	held    hold.Held
	answer  hold.Answer
	cancel  context.CancelFunc
}

// NewLocal returns a desk. Without approve nobody can approve a call here.
func NewLocal(ask Ask, approve Approve) *Local {
	return &Local{ask: ask, approve: approve, changed: make(chan string, 64), cards: map[string]*card{}}
}

// As returns the desk itself: the people at it answer whoever asks in this process, and keys can't be guessed.
func (l *Local) As(approval.Asker) hold.Requests { return l }

// put begins asking, once for each key. What is asked outlives the request that brought it, so it outlives its context.
func (l *Local) put(ctx context.Context, key string, c *card, work func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cards[key] != nil {
		return
	}
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.cards[key] = c
	go func() {
		defer c.cancel()
		work(ctx)
	}()
}

// settle keeps what became of a card, unless it has ended.
func (l *Local) settle(ref string, held hold.Held, answer hold.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cards[ref]
	if c == nil || c.held.State != hold.Pending {
		return
	}
	held.Ref = ref
	c.held, c.answer = held, answer
	select {
	case l.changed <- ref:
	default: // whoever watches is behind, and looks by itself
	}
}

// Ask puts a question to the function.
func (l *Local) Ask(ctx context.Context, key string, q hold.Question) (string, error) {
	c := &card{held: hold.Held{Ref: key, State: hold.Pending}, answer: hold.Answer{State: hold.AnswerOpen}}
	l.put(ctx, key, c, func(ctx context.Context) {
		answer := l.ask(ctx, q)
		picked := answer.State == hold.AnswerChosen || answer.State == hold.AnswerDismissed
		if answer.State == hold.AnswerOpen || answer.State == "" || picked && (answer.Selected < 0 || answer.Selected >= len(q.Choices)) {
			answer = hold.Answer{State: hold.AnswerCancelled, Reason: "no answer was given"}
		}
		l.settle(key, hold.Held{State: hold.Responded}, answer)
	})
	return key, nil
}

// Answer tells how a question stands.
func (l *Local) Answer(_ context.Context, ref string) (hold.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.cards[ref]; c != nil {
		return c.answer, nil
	}
	return hold.Answer{}, hold.ErrNoRequest
}

// Watch tells what was answered, until ctx ends.
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

// Open asks whether a call may run.
func (l *Local) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	if l.approve == nil {
		return hold.Held{Ref: key, State: hold.Denied, Reason: "nobody can approve calls here"}, nil
	}
	c := &card{binding: v.Binding, held: hold.Held{Ref: key, State: hold.Pending}}
	l.put(ctx, key, c, func(ctx context.Context) {
		held := l.approve(ctx, v)
		if held.State == "" || held.State == hold.Pending {
			held = hold.Held{State: hold.Cancelled, Reason: "no answer was given"}
		}
		held.Arguments = nil
		l.settle(key, held, hold.Answer{})
	})
	return l.Look(ctx, key)
}

// Look tells how an approval stands.
func (l *Local) Look(_ context.Context, ref string) (hold.Held, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.cards[ref]; c != nil {
		return c.held, nil
	}
	return hold.Held{}, hold.ErrNoRequest
}

// Claim takes the one run of exactly the approved call.
func (l *Local) Claim(_ context.Context, ref, _ string, v hold.Verdict) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cards[ref]
	if c == nil || c.held.State != hold.Approved || c.binding == "" || c.binding != v.Binding {
		return errors.Join(agent.ErrNotClaimed, errors.New("nobody approved this call"))
	}
	return nil
}

// Cancel withdraws what nobody needs any more.
func (l *Local) Cancel(_ context.Context, ref, reason string) error {
	l.settle(ref, hold.Held{State: hold.Cancelled, Reason: reason}, hold.Answer{State: hold.AnswerCancelled, Reason: reason})
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.cards[ref]; c != nil {
		c.cancel()
	}
	return nil
}
