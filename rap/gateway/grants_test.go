package gateway

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap/wire"
)

// grant has the user allow an operation for the session.
func (h *harness) grant(id, op, args string, edits ...invoking) {
	h.t.Helper()
	h.mustInvoke(id, op, args, edits...)
	q := h.runtime.choice(id)
	if code := h.answer(q, 1); code != 200 || !strings.Contains(q.Choices[1], "session") {
		h.t.Fatalf("answer %d to %q", code, q.Choices)
	}
	h.runtime.result(id)
}

// asks reports whether a call is asked about; it ends it.
func (h *harness) asks(id, op, args string, edits ...invoking) bool {
	h.t.Helper()
	h.mustInvoke(id, op, args, edits...)
	h.runtime.until("news of "+id, func() bool {
		return h.runtime.choices(id)+len(h.runtime.results(id)) > 0
	})
	if h.runtime.choices(id) == 0 {
		return false
	}
	q := h.runtime.choice(id)
	h.answer(q, q.Default)
	h.runtime.result(id)
	return true
}

func as(user string) invoking { return func(i *wire.Invocation) { i.UserID = user } }

func TestGrantsOneSession(t *testing.T) {
	for _, children := range []bool{false, true} {
		h := newHarness(t, func(c *Config) {
			c.Grants.Children = children
			c.Callers = append(c.Callers, Caller{
				Name:      "second",
				TokenHash: sum("second"),
				Callbacks: c.Callers[0].Callbacks,
			})
		})
		h.grant("c1", "write", `{}`, in("middle", "root"))
		for _, tt := range []struct {
			id, op, args string
			edits        []invoking
			want         bool
		}{
			{"same", "write", `{"path":"elsewhere"}`, []invoking{in("middle", "root")}, false},
			{"child", "write", `{}`, []invoking{in("leaf", "root", "middle")}, !children},
			{"parent", "write", `{}`, []invoking{in("root")}, true},
			{"sibling", "write", `{}`, []invoking{in("aunt", "root")}, true},
			{"another session", "write", `{}`, []invoking{in("middle", "other root")}, true},
			{"a root of its own", "write", `{}`, []invoking{in("middle")}, true},
			{"another user", "write", `{}`, []invoking{in("middle", "root"), as("eve")}, true},
			{"nobody", "write", `{}`, []invoking{in("middle", "root"), as("")}, true},
			{"another operation", "pay", `{"amount":200}`, []invoking{in("middle", "root")}, true},
		} {
			if got := h.asks(tt.id, tt.op, tt.args, tt.edits...); got != tt.want {
				t.Errorf("children %t, %s: asked %t", children, tt.id, got)
			}
		}

		caller := h.cfg.Callers[1]
		if caller.Name != "second" {
			t.Fatal("which caller?")
		}
		foreign := wire.Invocation{
			Operation:   "write",
			Arguments:   []byte(`{}`),
			ID:          "foreign",
			CallbackURL: h.runtime.url(),
			GroupID:     "middle",
			Ancestors:   []string{"root"},
			UserID:      "ann",
		}
		if code := h.postAs("second", "/invoke", string(foreign.Append(nil))); code != 200 {
			t.Fatalf("invoke: %d", code)
		}
		h.runtime.choice("foreign")
	}
}

// A call that other rules ask about than those the user saw is asked
// about; so is every call once rules or tool changed.
func TestGrantsRestOnRules(t *testing.T) {
	h := newHarness(t, nil)
	h.grant("c1", "pay", `{"amount":200}`)
	if h.asks("c2", "pay", `{"amount":999}`) {
		t.Error("the same rule was asked about again")
	}
	if !h.asks("c3", "pay", `{"amount":5000}`) {
		t.Error("a rule that the user never saw was taken for granted")
	}
	h.mustInvoke("c4", "pay", `{"amount":9999}`)
	if got := h.runtime.result("c4"); !strings.Contains(got, "other people") {
		t.Errorf("a call for two people of risk: %q", got)
	}
	h.setPlan(
		testPlan(
			t,
			strings.Replace(testAgent, `version: "1.0.0", desc`, `version: "1.0.1", desc`, 1),
			testPolicy,
		),
	)
	if !h.asks("c5", "pay", `{"amount":200}`) {
		t.Error("the rules changed, and the grant stayed")
	}
}

func TestGrantsEnd(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.Grants.Uses = 3 })
	h.grant("a1", "write", `{}`, in("a"))
	for id, want := range map[string]bool{"a2": false} {
		if h.asks(id, "write", `{}`, in("a")) != want {
			t.Error(id)
		}
	}
	list, err := h.g.Grants(t.Context())
	if err != nil || len(list) != 1 || list[0].Uses != 2 || list[0].MaxUses != 3 || list[0].Caller != "runtime" ||
		list[0].Session != "a" {
		t.Fatalf("%+v, %v", list, err)
	}
	if h.asks("a3", "write", `{}`, in("a")) || !h.asks("a4", "write", `{}`, in("a")) {
		t.Error("three uses: two more after the first, and then none")
	}

	h.grant("b1", "write", `{}`, in("b"))
	list, err = h.g.Grants(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := h.g.Revoke(t.Context(), list[0].ID); err != nil {
		t.Error(err)
	}
	for _, id := range []string{list[0].ID, "grant_none", ""} {
		if err := h.g.Revoke(t.Context(), id); !errors.Is(err, hold.ErrNoRequest) {
			t.Errorf("revoke %q: %v", id, err)
		}
	}
	if !h.asks("b2", "write", `{}`, in("b")) {
		t.Error("it was revoked")
	}

	h.grant("c1", "write", `{}`, in("c"))
	h.grant("d1", "write", `{}`, in("d", "r"))
	h.grant("e1", "write", `{}`, in("e", "r"))
	for _, thread := range []string{"c", "r"} {
		h.post("/close_thread", string(wire.CloseThread{ThreadID: thread}.Append(nil)))
	}
	if !h.asks("c2", "write", `{}`, in("c")) || !h.asks("d2", "write", `{}`, in("d", "r")) ||
		!h.asks("e2", "write", `{}`, in("e", "r")) {
		t.Error("their threads were closed")
	}

	h.grant("f1", "write", `{}`, in("f"))
	h.pass(time.Hour)
	if !h.asks("f2", "write", `{}`, in("f")) {
		t.Error("its hour is over")
	}
	for _, want := range []string{"rap_grant_made", "rap_grant_used", "rap_grant_ended"} {
		if !strings.Contains(h.ledger(), want) {
			t.Errorf("no %s in the ledger", want)
		}
	}
}

func (h *harness) ledger() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.events, "\n")
}

// A grant whose thread closes between the answer and the run does not
// outlive it.
func TestGrantsOfClosingThreads(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	h.stop() // nobody works on what is answered
	r, err := h.g.engine.Change(t.Context(), callKey("runtime", "thread", "c1"), func(r *record) error {
		if h.g.hear(r, wire.Answer{ID: "c1", Selected: 1}, nil) != hearingTaken {
			return errors.New("the answer is not taken")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ruling, err := h.g.decide(t.Context(), r); err != nil || ruling.Do != durable.Proceed {
		t.Fatal(ruling, err)
	}
	if err := h.g.cancelThread(t.Context(), h.g.callers[0], "thread"); err != nil {
		t.Fatal(err)
	}
	if err := h.g.dropGrants(t.Context(), "runtime", "thread"); err != nil {
		t.Fatal(err)
	}
	// as a process that had read the call before
	if how, err := h.g.makeGrant(t.Context(), r); how != nil || err != nil {
		t.Fatal(how, err)
	}
	h.start()
	h.runtime.result("c1")
	h.runtime.until("the end of the grant", func() bool {
		list, err := h.g.Grants(t.Context())
		return err == nil && len(list) == 0
	})
	if h.runs("c1") != 0 || q == nil {
		t.Error("it ran")
	}
}

func TestBoundsWhatItOffers(t *testing.T) {
	g := &Gateway{cfg: Config{Grants: SessionGrants{
		Offer: true,
		For:   time.Hour,
		Uses:  10,
	}}}
	for name, tt := range map[string]struct {
		r    *policy.Require
		uses int
		life time.Duration
	}{
		"no rules":   {nil, 10, time.Hour},
		"no bounds":  {&policy.Require{}, 10, time.Hour},
		"forbidden":  {&policy.Require{Grants: policy.Grants{Forbid: true}}, 0, 0},
		"fewer":      {&policy.Require{Grants: policy.Grants{MaxUses: 4}}, 4, time.Hour},
		"more":       {&policy.Require{Grants: policy.Grants{MaxUses: 40}}, 10, time.Hour},
		"shorter":    {&policy.Require{Grants: policy.Grants{MaxAge: time.Minute}}, 10, time.Minute},
		"longer":     {&policy.Require{Grants: policy.Grants{MaxAge: 9 * time.Hour}}, 10, time.Hour},
		"in session": {&policy.Require{Grants: policy.Grants{Session: true}}, 10, time.Hour},
	} {
		if uses, life := g.offer(tt.r); uses != tt.uses || life != tt.life {
			t.Errorf("%s: %d, %s", name, uses, life)
		}
	}

	g.cfg.Grants.Offer = false
	if uses, life := g.offer(nil); uses != 0 || life != 0 {
		t.Errorf("not offered: %d, %s", uses, life)
	}
}
