package rap_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/rap"
)

// confDesk is a desk whose people are the row itself.
type confDesk struct {
	mu      sync.Mutex
	held    []*confHeld
	arrived chan struct{}
	watch   []func(string)
}

type confHeld struct {
	agent.Held
	key, taken string
	verdict    agent.Verdict
}

func newConfDesk() *confDesk { return &confDesk{arrived: make(chan struct{})} }

func (d *confDesk) find(match func(*confHeld) bool) *confHeld {
	for _, h := range d.held {
		if match(h) {
			return h
		}
	}
	return nil
}

func (d *confDesk) ref(ref string) *confHeld {
	return d.find(func(h *confHeld) bool { return h.Ref == ref })
}

func (d *confDesk) Open(_ context.Context, key string, v agent.Verdict) (agent.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.find(func(h *confHeld) bool { return h.key == key })
	if h == nil {
		h = &confHeld{Held: agent.Held{Ref: fmt.Sprintf("req_%d", len(d.held)+1), State: agent.HeldPending}, key: key, verdict: v}
		d.held = append(d.held, h)
		close(d.arrived)
		d.arrived = make(chan struct{})
	}
	return h.Held, nil
}

func (d *confDesk) Look(_ context.Context, ref string) (agent.Held, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.ref(ref); h != nil {
		return h.Held, nil
	}
	return agent.Held{}, agent.ErrNoRequest
}

func (d *confDesk) Claim(_ context.Context, ref, key string, v agent.Verdict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.ref(ref)
	if h == nil || h.State != agent.HeldApproved || h.taken != "" && h.taken != key || string(h.verdict.Call.Args) != string(v.Call.Args) {
		return agent.ErrNotClaimed
	}
	h.taken = key
	return nil
}

func (d *confDesk) Cancel(_ context.Context, ref, reason string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.ref(ref); h != nil && h.State == agent.HeldPending {
		h.State, h.Reason = agent.HeldCancelled, reason
	}
	return nil
}

// Ask is not for gateways: the questions of what they wrap go to the runtime's user.
func (d *confDesk) Ask(context.Context, string, rap.Question) (string, error) {
	return "", errors.New("nobody is here")
}

func (d *confDesk) Answer(context.Context, string) (rap.Answer, error) {
	return rap.Answer{}, agent.ErrNoRequest
}

func (d *confDesk) Watch(ctx context.Context, changed func(string)) error {
	d.mu.Lock()
	d.watch = append(d.watch, changed)
	d.mu.Unlock()
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// request waits for the nth request.
func (d *confDesk) request(t *testing.T, nth int) agent.Verdict {
	t.Helper()
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	for {
		d.mu.Lock()
		held, arrived := d.held, d.arrived
		d.mu.Unlock()
		if len(held) >= nth {
			return held[nth-1].verdict
		}
		select {
		case <-arrived:
		case <-late.C:
			t.Fatalf("%d requests at the desk, want %d", len(held), nth)
		}
	}
}

// decide has a person decide on the nth request.
func (d *confDesk) decide(t *testing.T, nth int, state agent.HeldState, reason string) {
	t.Helper()
	d.request(t, nth)
	d.mu.Lock()
	h := d.held[nth-1]
	if h.State == agent.HeldPending {
		h.State, h.By, h.Reason = state, "mara", reason
	}
	ref, watch := h.Ref, append([]func(string){}, d.watch...)
	d.mu.Unlock()
	for _, changed := range watch {
		changed(ref)
	}
}

func (d *confDesk) state(nth int) agent.HeldState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[nth-1].State
}
