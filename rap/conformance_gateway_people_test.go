package rap_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const opsPeople = `schema_version: "1.0.0"
people:
  - {id: ann, name: Ann Doe, groups: [staff]}
  - {id: mara, name: Mara Roe, groups: [ops]}
  - {id: ben, name: Ben Poe, groups: [ops]}
`

// opsHarness is where the approvers of a gateway really answer: a store
// in a file, which is the gateway's too, and the approval service on
// it.
type opsHarness struct {
	t       *testing.T
	store   store.Store
	service *approval.Service
	plan    *resolve.Plan
	signer  ledger.Signer
}

func newOpsHarness(t *testing.T) *opsHarness {
	t.Helper()
	o := &opsHarness{t: t}
	var err error
	o.plan, err = confPlan(confToolsFile, confToolsPolicy)
	confMust(t, err)
	o.signer, _, err = ledger.GenerateKey("assent.test", rand.Reader)
	confMust(t, err)
	known, findings := people.Parse("people.yaml", []byte(opsPeople))
	if known == nil {
		t.Fatal(findings)
	}
	o.store, err = sqlite.Open(
		t.Context(),
		filepath.Join(t.TempDir(), "assent.db"),
		sqlite.Options{Poll: 10 * time.Millisecond},
	)
	confMust(t, err)
	t.Cleanup(func() { o.store.Close() })
	o.service = approval.New(o.store, o, known, time.Now, rand.Reader, approval.Config{})
	return o
}

// Plan is the gateway's own.
func (o *opsHarness) Plan(context.Context, string, string) (*approval.Compiled, error) {
	return &approval.Compiled{Agent: approval.Agent{
		ID:      "toolkeeper",
		Version: "1.0.0",
		Name:    "Toolkeeper",
	}, Plan: o.plan}, nil
}

func (o *opsHarness) asks(whom gateway.Whom) func(*gateway.Config) {
	return func(cfg *gateway.Config) {
		cfg.Ask, cfg.Records = whom, o.store
		cfg.People = hold.Service(o.service, o.store, hold.Place{Tenant: "acme", Agent: "toolkeeper"})
	}
}

// pending waits for the one open request.
func (o *opsHarness) pending() *approval.Request {
	o.t.Helper()
	for late := time.Now().Add(15 * time.Second); ; {
		page, err := o.store.Requests(
			o.t.Context(),
			"acme",
			approval.Filter{States: []approval.State{approval.Pending}},
		)
		confMust(o.t, err)
		if len(page.Requests) > 0 {
			r, err := o.service.Request(o.t.Context(), "acme", page.Requests[0].ID)
			confMust(o.t, err)
			return r
		}
		if time.Now().After(late) {
			o.t.Fatal("nobody was asked")
		}
	}
}

// says is one person's word, which has to come to what is wanted.
func (o *opsHarness) says(r *approval.Request, person string, verdict approval.Verdict, want approval.VoteOutcome) {
	o.t.Helper()
	in := approval.VoteInput{
		Tenant:  "acme",
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  person,
		Verdict: verdict,
		Channel: "test",
		Full:    true,
	}
	if verdict == approval.Deny {
		in.Reason = "not like this"
	}
	v, err := o.service.Vote(o.t.Context(), in)
	if err != nil || v.Outcome != want {
		o.t.Fatalf("%s says %s: %+v %v, want %s", person, verdict, v, err, want)
	}
	_, err = o.store.Seal(o.t.Context(), 1000, o.signer.Sign) // the desk hears of what is sealed
	confMust(o.t, err)
}

// stands waits until a request stands so.
func (o *opsHarness) stands(r *approval.Request, want approval.State) {
	o.t.Helper()
	for late := time.Now().Add(15 * time.Second); ; {
		now, err := o.service.Request(o.t.Context(), "acme", r.ID)
		confMust(o.t, err)
		if now.State == want {
			return
		}
		if time.Now().After(late) {
			o.t.Fatalf("the request is %s, want %s", now.State, want)
		}
	}
}

// TestGatewayApprovers takes the rows about approvers to people who
// really answer: two of a group, where the rules want them.
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
