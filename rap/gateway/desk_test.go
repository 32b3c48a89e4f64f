package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// board is a desk that a test answers at.
type board struct {
	mu      sync.Mutex
	asked   map[string]*hold.Held // by ref
	keys    map[string]string     // ref by key
	claims  map[string]int        // by ref
	claim   error
	broken  bool
	at      hold.State // of new requests
	changed func(string)
	askers  []approval.Asker
	within  []time.Duration // how long each request may stay open, as the gateway said
}

func newBoard() *board {
	return &board{
		asked:  map[string]*hold.Held{},
		keys:   map[string]string{},
		claims: map[string]int{},
		at:     hold.Pending,
	}
}

// As keeps who asks.
func (b *board) As(who approval.Asker) hold.Requests {
	b.set(func() { b.askers = append(b.askers, who) })
	return b
}

func (b *board) Open(_ context.Context, key string, v hold.Verdict) (hold.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken || v.Call == nil {
		return hold.Held{}, errors.New("the desk is away")
	}
	if b.keys[key] == "" {
		b.within = append(b.within, v.Within())
		ref := fmt.Sprint("apr_", len(b.keys)+1)
		b.keys[key], b.asked[ref] = ref, &hold.Held{Ref: ref, State: b.at}
	}
	return *b.asked[b.keys[key]], nil
}

func (b *board) Look(_ context.Context, ref string) (hold.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return hold.Held{}, errors.New("the desk is away")
	}
	if b.asked[ref] == nil {
		return hold.Held{}, hold.ErrNoRequest
	}
	return *b.asked[ref], nil
}

func (b *board) Claim(_ context.Context, ref, _ string, _ hold.Verdict) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[ref]++
	return b.claim
}

func (b *board) Cancel(_ context.Context, ref, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.asked[ref]; h != nil {
		h.State = hold.Cancelled
	}
	return nil
}

func (b *board) Ask(context.Context, string, hold.Question) (string, error) {
	return "", errors.New("a gateway asks no questions here")
}

func (b *board) Answer(context.Context, string) (hold.Answer, error) {
	return hold.Answer{}, hold.ErrNoRequest
}

func (b *board) Watch(ctx context.Context, changed func(string)) error {
	b.mu.Lock()
	b.changed = changed
	b.mu.Unlock()
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// decide answers all that is asked.
func (b *board) decide(h hold.Held) {
	b.mu.Lock()
	for ref, held := range b.asked {
		h.Ref = ref
		*held = h
	}
	changed := b.changed
	b.mu.Unlock()
	if changed != nil {
		changed("")
	}
}

func (b *board) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func (b *board) set(edit func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit()
}

func newDeskHarness(t *testing.T, whom Whom) (*harness, *board) {
	b := newBoard()
	return newHarness(t, func(c *Config) { c.Ask, c.People = whom, b }), b
}

func TestAsksApprovers(t *testing.T) {
	for name, tt := range map[string]struct {
		args string
		held hold.Held
		want string
		ran  int
	}{
		"approved": {`{"amount":9001}`, hold.Held{State: hold.Approved}, `did pay {"amount":9001}`, 1},
		"denied": {
			`{"amount":9001}`,
			hold.Held{State: hold.Denied, Reason: "too much"},
			"Error: the approvers denied this call: too much",
			0,
		},
		"expired": {
			`{"amount":200}`,
			hold.Held{State: hold.Expired},
			"Error: nobody approved the call in time; nothing was run",
			0,
		},
		"withdrawn": {
			`{"amount":200}`,
			hold.Held{State: hold.Cancelled},
			"Error: the approval was withdrawn; nothing was run",
			0,
		},
		"responded": {
			`{"amount":200}`,
			hold.Held{State: hold.Responded, Reason: "pay it yourself"},
			"pay it yourself",
			0,
		},
		"edited": {
			`{"amount":200}`,
			hold.Held{State: hold.Approved, Arguments: []byte(`{"amount":150}`)},
			`did pay {"amount":150}`,
			1,
		},
		"edited, broken": {
			`{"amount":200}`,
			hold.Held{State: hold.Approved, Arguments: []byte(`{"amount":"1"}`)},
			"Error: the arguments do not fit",
			0,
		},
		"edited, small": {
			`{"amount":200}`,
			hold.Held{State: hold.Approved, Arguments: []byte(`{"amount":1}`)},
			"changed since",
			0,
		},
	} {
		h, b := newDeskHarness(t, AskApprovers)
		h.mustInvoke("c1", "pay", tt.args)
		h.runtime.until("a request", func() bool { return b.open() == 1 })
		b.decide(tt.held)
		if got := h.runtime.result("c1"); !strings.Contains(got, tt.want) || h.runs("c1") != tt.ran {
			t.Errorf("%s: %q, %d runs", name, got, h.runs("c1"))
		}
		if h.runtime.choices("c1") != 0 {
			t.Errorf("%s: the user was asked", name)
		}
	}
}

// TestD7_ApproversAreToldTheGatewaysTimeWhateverAsks: the agent's file
// alone demands nothing of the approval, and its requests end when the
// gateway gives up all the same.
func TestD7_ApproversAreToldTheGatewaysTimeWhateverAsks(t *testing.T) {
	rule := func(require string) string {
		return `schema_version: "1.0.0"
policy_ref: harness
applies: implicit
rules: [{id: writes, match: {targets: [write]}, approval: true` + require + "}]\n"
	}
	for name, tt := range map[string]struct {
		policies []string
		want     time.Duration
	}{
		"the agent's file":        {nil, 9 * time.Minute},
		"a rule without a demand": {[]string{rule("")}, 9 * time.Minute},
		"a rule that gives less":  {[]string{rule(", require: {within: 2m}")}, 2 * time.Minute},
		"a rule that gives more":  {[]string{rule(", require: {within: 2h}")}, 9 * time.Minute},
		"a rule that demands people": {
			[]string{rule(", require: {stages: [{group: risk, people: 2}]}")},
			9 * time.Minute,
		},
	} {
		h, b := newDeskHarness(t, AskApprovers)
		h.stop()
		h.cfg.Within = 9 * time.Minute
		h.setPlan(testPlan(t, testAgent, tt.policies...))
		h.start()
		h.mustInvoke("c1", "write", `{}`)
		h.runtime.until("a request", func() bool { return b.open() == 1 })
		b.set(func() {
			if got := b.within[0]; got <= tt.want-time.Minute || got > tt.want {
				t.Errorf("%s: open for %s, want %s", name, got, tt.want)
			}
		})
	}
}

func TestAsksBoth(t *testing.T) {
	h, b := newDeskHarness(t, AskBoth)
	h.mustInvoke("c1", "pay", `{"amount":9001}`)
	h.runtime.until("a request", func() bool { return b.open() == 1 })
	if h.runtime.choices("c1") != 0 {
		t.Error("the user was asked before the approvers had answered")
	}
	b.decide(hold.Held{State: hold.Approved})
	h.answer(h.runtime.choice("c1"), 0)
	if got := h.runtime.result("c1"); got != `did pay {"amount":9001}` || h.runs("c1") != 1 ||
		b.claims["apr_1"] != 1 {
		t.Errorf("%q, %d runs, %d claims", got, h.runs("c1"), b.claims["apr_1"])
	}

	h.mustInvoke("c2", "pay", `{"amount":9001}`)
	h.runtime.until("another request", func() bool { return b.open() == 2 })
	b.decide(hold.Held{State: hold.Approved})
	q := h.runtime.choice("c2")
	h.answer(q, q.Default)
	h.runtime.result("c2")
	h.runtime.until("the approval withdrawn", func() bool {
		held, err := b.Look(t.Context(), "apr_2")
		return err == nil && held.State == hold.Cancelled
	})
	if h.runs("c2") != 0 {
		t.Error("it ran")
	}
}

func TestClaims(t *testing.T) {
	for name, tt := range map[string]struct {
		claim error
		want  string
	}{
		"taken": {fmt.Errorf("%w: taken", hold.ErrNotClaimed), "can't be used"},
		"away":  {errors.New("the desk is away"), "can't be reached"},
	} {
		h, b := newDeskHarness(t, AskApprovers)
		b.set(func() { b.claim, b.at = tt.claim, hold.Approved })
		h.mustInvoke("c1", "write", `{}`)
		h.runtime.until("its result", func() bool {
			h.pass(time.Second)
			return len(h.runtime.results("c1")) > 0
		})
		if got := h.runtime.result("c1"); !strings.Contains(got, tt.want) || h.runs("c1") != 0 {
			t.Errorf("%s: %q, %d runs", name, got, h.runs("c1"))
		}
	}
}

func TestWithoutItsDesk(t *testing.T) {
	h, b := newDeskHarness(t, AskApprovers)
	b.set(func() { b.broken = true })
	h.mustInvoke("c1", "write", `{}`)
	h.runtime.until("its result", func() bool {
		h.pass(time.Second)
		return len(h.runtime.results("c1")) > 0
	})
	if got := h.runtime.result("c1"); !strings.Contains(got, "can't be reached") {
		t.Errorf("result %q", got)
	}

	b.set(func() { b.broken = false })
	h.mustInvoke("c2", "write", `{}`)
	h.mustInvoke("c3", "write", `{"path":"x"}`)
	h.runtime.until("two requests", func() bool { return b.open() == 2 })
	b.set(func() { b.broken = true })
	b.changed("")
	h.crash()
	b.set(func() { b.broken = false })
	h.runtime.until("that it is watched", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.changed != nil
	})
	b.set(func() { delete(b.asked, "apr_2") })
	b.decide(hold.Held{State: hold.Approved})
	results := h.runtime.result("c2") + h.runtime.result("c3")
	if !strings.Contains(results, "did write") || !strings.Contains(results, "known no more") {
		t.Errorf("results %q", results)
	}

	h.mustInvoke("c4", "look", `{}`)
	h.runtime.result("c4")
	h.mustInvoke("c5", "write", `{"path":"y"}`)
	h.runtime.until("a request", func() bool { return b.open() == 2 })
	h.pass(time.Hour)
	if got := h.runtime.result("c5"); !strings.Contains(got, "in time") {
		t.Errorf("result %q", got)
	}
}
