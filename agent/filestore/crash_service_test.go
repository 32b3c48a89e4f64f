package filestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

var serviceFiles = map[string]string{
	"agents/clerk.agf.yaml": `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Moves money.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - {alias: pay, approval: true}
    - {alias: look}
    - {alias: ask}
`,
	"policies/risk.policy.yaml": `schema_version: "1.0.0"
policy_ref: crash.risk
description: Somebody of risk.
applies: implicit
rules:
  - id: risk
    match: {targets: [pay]}
    approval: true
    require: {stages: [{group: risk, people: 1}]}
`,
	"people.yaml": "schema_version: \"1.0.0\"\npeople:\n  - {id: mara, groups: [risk]}\n",
}

// service is the approval service on its file. Each process opens its own.
type service struct {
	asking *approval.Service
	store  store.Store
	plans  *plans.Plans
}

func newService(t *testing.T) (string, *service) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range serviceFiles {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}

	h := must.Get(openService(t.Context(), dir))(t)
	t.Cleanup(func() { h.store.Close() })
	return dir, h
}

func openService(ctx context.Context, dir string) (*service, error) {
	src, err := os.ReadFile(filepath.Join(dir, "people.yaml"))
	if err != nil {
		return nil, err
	}
	known, findings := people.Parse("people.yaml", src)
	if known == nil {
		return nil, fmt.Errorf("people: %v", findings)
	}
	p, err := plans.Load(plans.Config{Agents: []string{filepath.Join(dir, "agents")},
		Policies: []string{filepath.Join(dir, "policies")}})
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(dir, "assent.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return &service{
		approval.New(s, p, known, time.Now, rand.Reader, approval.Config{AcceptUnknown: func(string) bool {
			return true
		}}),
		s,
		p,
	}, nil
}

// ask makes the decider and the holder in a child process.
func (w *worker) ask() (agent.Decider, hold.Requests, error) {
	ctx := context.Background()
	h, err := openService(ctx, w.Service)
	if err != nil {
		return nil, nil, err
	}
	c, err := h.plans.Plan(ctx, "acme", "clerk")
	if err != nil {
		return nil, nil, err
	}
	people := hold.Service(h.asking, h.store, hold.Place{Tenant: "acme", Agent: "clerk"})
	holder := people.As(approval.Asker{Token: "rt"})
	return agent.ByPlan(c.Plan, agent.PlanOptions{Principal: "bob", Session: threadID}), holder, nil
}

// careful requires approval of every call, including those that the service would allow.
type careful struct{}

func (careful) Decide(_ context.Context, _ agent.Tool, c content.ToolCall) (hold.Verdict, error) {
	call := &resolve.Call{Kind: resolve.Tool, Tool: c.ToolName(), Args: c.Args(), Principal: "bob", Session: threadID}
	return hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask}, Call: call}, nil
}

// vote lets mara answer and returns the number of the call. It does nothing if the request has
// ended.
func (h *service) vote(t *testing.T, ref string) (n string, approved bool) {
	t.Helper()
	r := must.Get(h.asking.Request(t.Context(), "acme", ref))(t)
	n = lineOf([]byte(r.Current().Call.Args))
	if r.State != approval.Pending {
		return n, r.State == approval.Approved || r.State == approval.Consumed
	}
	in := approval.VoteInput{
		Tenant:    "acme",
		ID:        ref,
		IfVersion: r.Version,
		Binding:   r.Binding(),
		Person:    "mara",
		Verdict:   approval.Approve,
		Full:      true,
		Channel:   "test",
	}
	if n == refusedLine {
		in.Verdict = approval.Deny
		in.Reason = "not this line"
	}
	v := must.Get(h.asking.Vote(t.Context(), in))(t)
	if v.Outcome != approval.VoteApproved && v.Outcome != approval.VoteDenied {
		t.Fatalf("mara's word on call %s came to %s", n, v.Outcome)
	}
	return n, v.Outcome == approval.VoteApproved
}

// used reports whether the permit of this request was used.
func (h *service) used(t *testing.T, ref string) bool {
	t.Helper()
	r := must.Get(h.asking.Request(t.Context(), "acme", ref))(t)
	return r.State == approval.Consumed
}

// reply lets mara answer a question and returns the number of the call that asks it. It returns
// false if she has answered before.
func (h *service) reply(t *testing.T, ref string) (n string, replied bool) {
	t.Helper()
	r := must.Get(h.asking.Request(t.Context(), "acme", ref))(t)
	n = lineOf([]byte(r.Current().Call.Args))
	if r.State != approval.Pending {
		return n, false
	}
	in := approval.VoteInput{
		Tenant:  "acme",
		ID:      ref,
		Binding: r.Binding(),
		Person:  "mara",
		Verdict: approval.Choose,
		Choice:  new(int),
		Full:    true,
		Channel: "test",
	}
	if r.Question.Form() != nil {
		in.Verdict = approval.Submit
		in.Choice = nil
		in.Data = []byte(`"Ann"`)
	}
	if v := must.Get(h.asking.Vote(t.Context(), in))(t); v.Outcome != approval.VoteAnswered {
		t.Fatalf("mara's answer during call %s came to %s", n, v.Outcome)
	}

	return n, true
}

// asked counts the questions that people ever saw, and the answered ones, by the number of the
// call and the text.
func (h *service) asked(t *testing.T) (asked, answered map[string]int) {
	t.Helper()
	asked, answered = map[string]int{}, map[string]int{}
	all := must.Get(h.store.Requests(t.Context(), "acme", approval.Filter{Limit: 100}))(t).Requests
	for i := range all {
		r := must.Get(h.asking.Request(t.Context(), "acme", all[i].ID))(t)
		key := lineOf([]byte(r.Current().Call.Args)) + " " + r.Question.Prompt
		asked[key]++
		if r.State == approval.Answered {
			answered[key]++
		}
	}

	return asked, answered
}
