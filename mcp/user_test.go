package mcp_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// both configures the gateway to ask approvers, and then mara in her client.
func both(cfg *mcp.Config) {
	long(cfg)
	inPlace(cfg)
	cfg.Ask = mcp.AskBoth
}

// waitsFor returns the request that waits for a person.
func (r *row) waitsFor(person string) string {
	r.t.Helper()
	return testwait.Value(r.t, "a request waits for "+person, func() (string, bool) {
		page, err := r.Service.Waiting(r.t.Context(), assenttest.Tenant, person, approval.Filter{})
		if err != nil || len(page.Requests) == 0 {
			return "", false
		}
		return page.Requests[0].ID, true
	})
}

// TestBothAreAsked: approvers first, and the user of the client behind
// them. Either of them stops the call.
func TestBothAreAsked(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string]string{
		"approve": `"text":"done"`,
		"deny":    "Not run. mara denied this call",
	} {
		r := newRow(t, script("legacy"), both)
		c := r.able(wire.V20251125, withForm)
		c.send(request("1", wire.MethodCall, `"name":"write_file"`))
		r.Votes(r.waitsFor("ben"), "ben", approval.Approve, approval.VoteApproved, nil)
		id, _ := c.asks(c.hear(), "write_file")
		r.ran(0)
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"decision":"` + decision + `"}}}`)
		c.expect(c.hear(), want)
		r.ran(strings.Count(want, "done"))

		modern := r.pipe(t, server.Config{})
		modern.send(ableCall("1", `{"n":2}`, withForm, ""))
		r.Votes(r.waitsFor("ben"), "ben", approval.Approve, approval.VoteApproved, nil)
		name, state := modern.form(modern.hear(), "write_file")
		answer := modern.say(ableCall("2", `{"n":2}`, withForm, brings(name, state,
			`{"action":"accept","content":{"decision":"`+decision+`"}}`)))
		modern.expect(answer, want)
		r.ran(2 * strings.Count(want, "done"))
	}
}

// TestTheUserMayAnswerElsewhere: a form is one entrance of several, and
// is taken back when the answer came by another.
func TestTheUserMayAnswerElsewhere(t *testing.T) {
	t.Parallel()
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
	})
	c := r.able(wire.V20251125, withForm)
	c.send(request("1", wire.MethodCall, `"name":"write_file"`))
	id, _ := c.asks(c.hear(), "write_file")
	r.choose(r.waitsFor("mara"))
	c.expect(c.hear(), `"method":"notifications/cancelled","params":{"requestId":`+id)
	c.expect(c.hear(), `"text":"done"`)
	r.ran(1)
}

// TestAFrozenAgentRunsNothingThatItsUserApproved: what was answered
// before the freeze isn't used, either.
func TestAFrozenAgentRunsNothingThatItsUserApproved(t *testing.T) {
	t.Parallel()
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		inPlace(cfg)
		short(cfg)
	})
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	id := r.waitsFor("mara")
	must.Do(t, r.Service.Freeze(t.Context(), assenttest.Tenant, "clerk", "ben", "odd"))
	_, _ = r.Vote(id, "mara", approval.Choose, func(in *approval.VoteInput) { in.Choice = new(int) })
	c.expect(c.call("write_file", write), "Not run yet.")
	r.settle(t)
	r.ran(0)
}

// TestAUserNobodyKnowsApprovesNothing: a principal that the directory
// doesn't have can't answer, and the call stays open.
func TestAUserNobodyKnowsApprovesNothing(t *testing.T) {
	t.Parallel()
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
		cfg.Callers[0].Principal = "nobody"
	})
	c := r.able(wire.V20251125, withForm)
	c.send(request("1", wire.MethodCall, `"name":"write_file"`))
	id, _ := c.asks(c.hear(), "write_file")
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"decision":"approve"}}}`)
	c.expect(c.hear(), "Not run yet.")
	r.ran(0)
}

// TestAskingUsersNeedsAPrincipal: without a principal it is undefined who is asked, so the
// configuration is refused.
func TestAskingUsersNeedsAPrincipal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for want, change := range map[string]func(*mcp.Config){
		"expected a principal":  func(cfg *mcp.Config) { cfg.Ask = mcp.AskUser },
		"expected user or both": func(cfg *mcp.Config) { cfg.Ask = "anybody" },
		"callers[0]: expected a princ": func(cfg *mcp.Config) {
			cfg.Callers = []mcp.Caller{{Name: "a", InPlace: true}}
		},
	} {
		cfg := w.cfg
		change(&cfg)
		if _, err := mcp.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
}
