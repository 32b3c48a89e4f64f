package rap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// confSession returns a harness in which ann allowed write_file for the session, in the root
// thread.
func confSession(t *testing.T, grants gateway.SessionGrants) (*confHarness, *confRuntime, *confRuntime) {
	t.Helper()
	r, beta := newConfRuntime(t, "alpha"), newConfRuntime(t, "beta")
	grants.Offer = true
	h := confGatewayOf(t, []*confRuntime{r, beta}, func(cfg *gateway.Config) { cfg.Grants = grants })
	c := r.in("root", "ann").invoke()
	q := c.choice()
	c.picks(q, q.index(t, "session"))
	if got := c.result(); got != "done "+confMotd {
		t.Fatalf("the first call ended with %q", got)
	}
	return h, r, beta
}

// in prepares a call in a thread, for a user.
func (r *confRuntime) in(thread, user string, ancestors ...string) *confCall {
	return r.call("write_file", confMotd).with(func(in *confInvocation) {
		in.GroupID = thread
		in.UserID = user
		in.Ancestors = ancestors
	})
}

// free makes a call that has to run without a question.
func (c *confCall) free() {
	c.t.Helper()
	if got := c.invoke().result(); got != "done "+string(c.in.Arguments) || c.count("user_choice") != 0 {
		c.t.Errorf("%s in %s was not free: %q", c.in.Operation, c.in.GroupID, got)
	}
}

// bound makes a call that has to be asked about.
func (c *confCall) bound() {
	c.t.Helper()
	q := c.invoke().choice()
	c.picks(q, *q.Default)
	c.fails()
}

func confT27(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"with children": func(t *testing.T) {
			h, r, beta := confSession(t, gateway.SessionGrants{Children: true})
			r.in("root", "ann").free()
			r.in("child", "ann", "root").free()
			r.in("grandchild", "ann", "root", "child").free()
			r.in("other", "ann").bound()
			r.in("root", "bob").bound()
			r.in("root", "").bound()
			r.in("child", "bob", "root").bound()
			r.in("child", "ann", "other").bound()
			r.in("child", "ann", "other", "root").bound() // the session is that of other
			r.in("Root", "ann").bound()
			beta.in("root", "ann").bound()
			r.in("root", "ann").with(func(in *confInvocation) { in.Operation = "move_file" }).bound()
			r.in("root", "ann").with(func(in *confInvocation) { in.Operation = "drop_table" }).invoke().fails()
			h.ran("write_file", 4)
		},
		"without children": func(t *testing.T) {
			h, r, _ := confSession(t, gateway.SessionGrants{})
			r.in("root", "ann").free()
			r.in("child", "ann", "root").bound()
			h.ran("write_file", 2)
		},
		"down, never up": func(t *testing.T) {
			h, r := confGateway(t, confOffer, func(cfg *gateway.Config) { cfg.Grants.Children = true })
			c := r.in("middle", "ann", "root").invoke()
			c.picks(c.choice(), c.choice().index(t, "session"))
			c.result()
			r.in("middle", "ann", "root").free()
			r.in("leaf", "ann", "root", "middle").free()
			r.in("root", "ann").bound()
			r.in("aunt", "ann", "root").bound()
			r.in("middle", "ann").bound()
			h.ran("write_file", 3)
		},
		"rules that the user did not see": func(t *testing.T) {
			h, r := confGateway(t, confOffer)
			h.rules(confToolsFile, confToolsPolicy+`
  - id: middling
    match: {targets: [pay]}
    approval: {condition: {args_match: {amount: {gt: 1000}}}}
`)
			pays := func(amount int) *confCall { return r.call("pay", fmt.Sprintf(`{"amount":%d}`, amount)) }
			c := pays(200).invoke()
			c.picks(c.choice(), c.choice().index(t, "session"))
			c.result()
			pays(999).free()
			pays(5000).bound()
			h.rules(confToolsFile, confToolsPolicy)
			pays(200).bound()
			h.ran("pay", 2)
		},
		"its time and its uses": func(t *testing.T) {
			h, r, _ := confSession(t, gateway.SessionGrants{For: time.Hour, Uses: 3})
			grants, err := h.gateway.Grants(t.Context())
			if err != nil || len(grants) != 1 {
				t.Fatalf("grants %v %v", grants, err)
			}
			g := grants[0]
			if g.Caller != "alpha" || g.Session != "root" || g.User != "ann" || g.Operation != "write_file" ||
				g.MaxUses != 3 ||
				g.Expires.Before(h.clock.Now()) ||
				g.Expires.After(h.clock.Now().Add(time.Hour)) {
				t.Errorf("the grant is %+v", g)
			}

			for range g.MaxUses - g.Uses {
				r.in("root", "ann").free()
			}
			r.in("root", "ann").bound()

			h, r, _ = confSession(t, gateway.SessionGrants{For: time.Hour, Uses: 100})
			h.clock.pass(50 * time.Minute)
			r.in("root", "ann").free()
			h.clock.pass(11 * time.Minute)
			r.in("root", "ann").bound()
		},
		"across a restart": func(t *testing.T) {
			h, r, _ := confSession(t, gateway.SessionGrants{})
			h.restart()
			r.in("root", "ann").free()
			r.in("other", "ann").bound()
			h.ran("write_file", 2)
		},
		"revoked": func(t *testing.T) {
			h, r, _ := confSession(t, gateway.SessionGrants{})
			grants, err := h.gateway.Grants(t.Context())
			must.Do(t, err)
			must.Do(t, h.gateway.Revoke(t.Context(), grants[0].ID, "zoe", "the trip is over"))
			if said := h.said.String(); !strings.Contains(said, "ledger rap_grant_ended "+grants[0].ID+" zoe ") ||
				!strings.Contains(said, `"reason":"the trip is over"`) {
				t.Errorf("the ledger does not say who revoked it: %s", said)
			}
			err = h.gateway.Revoke(t.Context(), grants[0].ID, "zoe", "again")
			if !errors.Is(err, hold.ErrNoRequest) {
				t.Errorf("revoked twice: %v", err)
			}
			r.in("root", "ann").bound()
			h.ran("write_file", 1)
		},
		"once is once": func(t *testing.T) {
			h, r := confGateway(t, confOffer)
			c, q := r.asked()
			c.picks(q, q.index(t, "once"))
			c.result()
			next, q := r.asked()
			next.picks(q, *q.Default)
			next.fails()
			h.ran("write_file", 1)
		},
		"forbidden by the rules": func(t *testing.T) {
			h, r := confGateway(t, confOffer)
			c := r.call("move_file", confMotd).invoke()
			if q := c.choice(); len(q.Choices) != 2 ||
				strings.Contains(strings.ToLower(strings.Join(q.Choices, " ")), "session") {
				t.Errorf("a policy forbids grants, and the choices are %q", q.Choices)
			}
			h.ran("move_file", 0)
		},
		"approvers are not passed by": func(t *testing.T) {
			desk := raptest.NewDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskBoth, desk), confOffer)
			c := r.call("write_file", confMotd).invoke()
			desk.Decide(1, hold.Approved, "")
			q := c.choice()
			c.picks(q, 0)
			if len(q.Choices) == 3 { // a session grant replaces only the user's question
				next := r.call("write_file", confMotd).invoke()
				desk.Decide(2, hold.Approved, "")
				q = next.choice()
				next.picks(q, q.index(t, "session"))
				next.result()
			}

			c.result()
			last := r.call("write_file", confMotd).invoke()
			desk.Decide(len(q.Choices), hold.Denied, "not again")
			last.fails()
			h.ran("write_file", len(q.Choices)-1)
		},
		"all of it is on record": func(t *testing.T) {
			h, r, _ := confSession(t, gateway.SessionGrants{})
			r.in("root", "ann").free()
			r.closeThread("root")
			h.stop()
			for _, want := range []string{"rap_grant_made", "rap_grant_used", "rap_grant_ended"} {
				if !strings.Contains(ledgerOf(h), want) {
					t.Errorf("no %s in the ledger", want)
				}
			}
		},
	})
}
