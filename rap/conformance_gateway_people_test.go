package rap_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/gateway"
)

// opsHarness is a real approval service for the approvers of a gateway. Both share a store.
type opsHarness struct {
	*askHarness
	t *testing.T
}

func newOpsHarness(t *testing.T) *opsHarness {
	t.Helper()
	plan := must.Get(confPlan(confToolsFile, confToolsPolicy))(t)
	h := must.Get(openAskHarness(filepath.Join(t.TempDir(), "assent.db"), "toolkeeper", plan))(t)
	t.Cleanup(func() { h.store.Close() })
	return &opsHarness{h, t}
}

func (o *opsHarness) asks(whom gateway.Whom) func(*gateway.Config) {
	return func(cfg *gateway.Config) {
		cfg.Ask, cfg.Records = whom, o.store
		cfg.People = o.desk()
	}
}

// pending waits for the one open request.
func (o *opsHarness) pending() *approval.Request {
	o.t.Helper()
	return testwait.Value(o.t, "a request", func() (*approval.Request, bool) {
		page := must.Get(o.store.Requests(
			o.t.Context(),
			"acme",
			approval.Filter{States: []approval.State{approval.Pending}},
		))(o.t)
		if len(page.Requests) == 0 {
			return nil, false
		}
		r := must.Get(o.service.Request(o.t.Context(), "acme", page.Requests[0].ID))(o.t)
		return r, true
	})
}

// says casts one person's vote and checks the outcome.
func (o *opsHarness) says(r *approval.Request, person string, verdict approval.Verdict, want approval.VoteOutcome) {
	o.t.Helper()
	if got, err := o.votes(o.t, r.ID, person, verdict, 0); err != nil || got != want {
		o.t.Fatalf("%s says %s: %s %v, want %s", person, verdict, got, err, want)
	}
}

// stands waits until a request has a state.
func (o *opsHarness) stands(r *approval.Request, want approval.State) {
	o.t.Helper()
	testwait.Until(o.t, "a request that is "+string(want), func() bool {
		now := must.Get(o.service.Request(o.t.Context(), "acme", r.ID))(o.t)
		return now.State == want
	})
}

// TestGatewayApprovers repeats rows T3, T4 and T25 with a real approval service: two people of
// a group, if the rules require them.
func TestGatewayApprovers(t *testing.T) {
	for name, part := range map[string]func(*testing.T, *opsHarness){
		"two approve": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskApprovers))
			c := r.call("deploy", `{"version":"1.2"}`).invoke()
			q := o.pending()
			shown := q.Revisions[0].Call
			if got := fmt.Sprint(shown.Tool, " ", string(shown.Args)); got != `deploy {"version":"1.2"}` {
				t.Errorf("the people are shown %s", got)
			}
			o.says(q, "mara", approval.Approve, approval.VoteCounted)
			h.through(r)
			if c.count("") != 0 || len(h.ops["deploy"].runs()) != 0 {
				t.Fatal("one of two was enough")
			}
			o.says(q, "ben", approval.Approve, approval.VoteApproved)
			if got := c.result(); got != `done {"version":"1.2"}` || c.count("") != 1 {
				t.Errorf("%q\n%s", got, r.heard())
			}
			o.stands(q, approval.Consumed)
			h.through(r)
			h.ran("deploy", 1)
		},
		"two approve, then the user": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskBoth))
			c := r.call("deploy", `{}`).invoke()
			q := o.pending()
			o.says(q, "mara", approval.Approve, approval.VoteCounted)
			o.says(q, "ben", approval.Approve, approval.VoteApproved)
			c.picks(c.choice(), 0)
			if got := c.result(); got != "done {}" {
				t.Errorf("%q\n%s", got, r.heard())
			}
			h.ran("deploy", 1)
		},
		"one denies": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskBoth))
			c := r.call("deploy", `{}`).invoke()
			o.says(o.pending(), "ben", approval.Deny, approval.VoteDenied)
			if text := c.fails(); !confDenies(text) || c.count("user_choice") != 0 {
				t.Errorf("%q\n%s", text, r.heard())
			}
			h.ran("deploy", 0)
		},
		"cancelled": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskApprovers))
			c := r.call("deploy", `{}`).invoke()
			q := o.pending()
			status, body := r.cancel(c.in.GroupID, c.in.ID)
			confAcknowledged(t, "cancel", status, body)
			o.stands(q, approval.Cancelled)
			h.ran("deploy", 0)
		},
		"nobody answers": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskApprovers))
			c := r.call("deploy", `{}`).invoke()
			q := o.pending()
			h.clock.pass(11 * time.Minute)
			c.fails()
			o.stands(q, approval.Cancelled)
			h.ran("deploy", 0)
		},
		"answered while the gateway is away": func(t *testing.T, o *opsHarness) {
			h, r := confGateway(t, o.asks(gateway.AskApprovers))
			c := r.call("deploy", `{}`).invoke()
			q := o.pending()
			h.through(r)
			h.stop()
			o.says(q, "mara", approval.Approve, approval.VoteCounted)
			o.says(q, "ben", approval.Approve, approval.VoteApproved)
			h.restart()
			if got := c.result(); got != "done {}" {
				t.Errorf("%q\n%s", got, r.heard())
			}
			h.ran("deploy", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, newOpsHarness(t))
		})
	}
}
