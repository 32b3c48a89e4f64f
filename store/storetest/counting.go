package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
)

// mostCents is the bound of the policy of spenders, in cents.
const mostCents = 100_000

const spenderFile = `schema_version: "1.0.0"
metadata: {id: spender, name: Spender, version: "1.0.0", description: Spends., namespace: acme}
interface:
  input: {type: object, properties: {q: {type: string}}, required: [q]}
  output: {type: object, properties: {a: {type: string}}, required: [a]}
constraints:
  budget: {max_token_usage: 1000, max_duration_seconds: 10}
  limits: {max_llm_calls: 5, max_tool_calls: 5}
  governance_policies: [{policy_ref: acme.cap}]
action_space:
  local_tools:
    - {alias: buy, description: asks nobody}
    - {alias: pay, description: asks anybody, approval: true}
execution_policy: {id: agf.react, config: {model: m, instructions: "Test."}}
`

const capFile = `schema_version: "1.1.0"
policy_ref: acme.cap
description: A cap.
rules:
  - id: cap
    match: {targets: [buy, pay]}
    when: {history: [{of: {targets: [buy, pay]}, within: 24h, sum: {of: amount, gt: 1000}}]}
    deny: Too much.
`

// spenders is a planner with one agent, and a directory with one approver.
type spenders struct {
	compiled *approval.Compiled
	past     *approval.PastRules
}

func newSpenders(t testing.TB) *spenders {
	t.Helper()
	agent, findings := schema.Parse("spender.agf.yaml", []byte(spenderFile))
	if agent == nil {
		t.Fatal(findings)
	}
	registry, _ := policy.LoadFS(fstest.MapFS{"cap.policy.yaml": {Data: []byte(capFile)}}, "policies")
	plan := must(resolve.Compile(agent, registry, resolve.Options{}))(t)
	c := &approval.Compiled{Agent: approval.Agent{ID: "spender", Version: "1.0.0"}, Plan: plan}
	return &spenders{c, approval.NewPastRules(map[string]*approval.Compiled{"spender": c})}
}

func (s *spenders) Plan(context.Context, string, string) (*approval.Compiled, error) {
	return s.compiled, nil
}

func (s *spenders) Past(string) *approval.PastRules { return s.past }

func (s *spenders) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	return approval.Person{ID: name}, name == "ann", nil
}

func (s *spenders) Members(context.Context, string, string) ([]approval.Person, error) {
	return []approval.Person{{ID: "ann"}}, nil
}

func (s *spenders) Owners(context.Context, string, string) ([]string, error) { return nil, nil }

func (s *spenders) Reading(context.Context, string, approval.Person) (people.Reading, error) {
	return people.Reading{}, nil
}

// service returns a service on a store, with a clock that is some time ahead.
func (s *spenders) service(db store.Store, ahead time.Duration) *approval.Service {
	now := func() time.Time { return time.Now().Add(ahead) }
	return approval.New(db, s, s, now, rand.Reader, approval.Config{})
}

// spender spends through one service, and adds up what it may run.
type spender struct {
	s     *approval.Service
	name  string
	cents int64
}

func (w *spender) asker() approval.Asker { return approval.Asker{Token: w.name} }

func spending(tool string, cents int64, n int) *resolve.Call {
	args := fmt.Sprintf(`{"amount":%d.%02d,"n":%d}`, cents/100, cents%100, n)
	return &resolve.Call{Kind: resolve.Tool, Tool: tool, Args: resolve.Raw(args)}
}

func (w *spender) open(call *resolve.Call, key string) (*approval.Opened, error) {
	return w.s.Open(context.Background(), approval.OpenInput{
		Tenant: tenant, Asker: w.asker(), Agent: "spender", Call: call, Key: key,
	})
}

// buy opens a call that no rule asks about.
func (w *spender) buy(cents int64, n int) (bool, error) {
	call := spending("buy", cents, n)
	o, err := w.open(call, w.name+number(n))
	if err != nil || o.Outcome != resolve.Allow {
		return false, err
	}
	w.cents += cents
	again, err := w.open(call, w.name+number(n)) // as a runtime does right before it runs the call
	if err == nil && again.Outcome != resolve.Allow {
		err = fmt.Errorf("a run that was allowed is refused when it is presented again: %v", again.Decision)
	}
	return true, err
}

// pay opens a call, approves it, and takes it back or uses it.
func (w *spender) pay(cents int64, n int, takeBack bool) error {
	ctx, call := context.Background(), spending("pay", cents, n)
	o, err := w.open(call, "")
	if err != nil || o.Outcome != resolve.Ask {
		return err
	}
	r := o.Request
	_, err = w.s.Vote(ctx, approval.VoteInput{
		Tenant: tenant, ID: r.ID, Binding: r.Binding(), Person: "ann", Verdict: approval.Approve,
		Channel: "test", Full: true,
	})
	if err != nil {
		return err
	}
	if takeBack {
		_, err = w.s.Cancel(ctx, tenant, r.ID, w.name, "")
		return err
	}
	_, err = w.s.Consume(ctx, approval.ConsumeInput{Tenant: tenant, ID: r.ID, Asker: w.asker(), Call: call, Key: "k"})
	if errors.Is(err, approval.ErrStale) {
		return nil
	}
	if err == nil {
		w.cents += cents
	}
	return err
}

// Counting checks that workers of two replicas never run more than a rule allows, by a cent, and that the
// rest may run once all reservations have ended. The clock of one replica is ahead.
func Counting(t *testing.T, place func(t *testing.T) Place, workers, calls int) {
	p := place(t)
	plans := newSpenders(t)
	replicas := []*approval.Service{
		plans.service(p.one(t, Trust()), 0), plans.service(p.one(t, Trust()), time.Second),
	}
	all := make([]*spender, workers)
	var group sync.WaitGroup
	errs := make([]error, workers)
	for i := range all {
		w := &spender{s: replicas[i%2], name: "worker" + number(i)}
		all[i] = w
		group.Go(func() {
			random := mathrand.New(mathrand.NewPCG(1, uint64(i)))
			for n := range calls {
				cents := 1 + random.Int64N(mostCents/10)
				if errs[i] == nil && random.IntN(2) == 0 {
					_, errs[i] = w.buy(cents, n)
				} else if errs[i] == nil {
					errs[i] = w.pay(cents, n, random.IntN(4) == 0)
				}
			}
		})
	}
	group.Wait()
	everybody(t, errs)
	sum := int64(0)
	for _, w := range all {
		sum += w.cents
	}
	if sum > mostCents {
		t.Fatalf("calls of %d cents ran, and the cap is %d", sum, mostCents)
	}

	last := &spender{s: replicas[0], name: "last"}
	may := must(last.buy(mostCents-sum+1, 0))(t)
	equal(t, may, false)
	if sum < mostCents {
		equal(t, must(last.buy(mostCents-sum, 1))(t), true)
	}
	equal(t, must(last.buy(1, 2))(t), false)
}
