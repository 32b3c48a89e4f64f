package approval_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const agentFile = `schema_version: "1.0.0"
metadata:
  id: desk
  name: Desk
  version: "1.0.0"
  description: Moves money for the tests.
  namespace: acme.tests
  labels: {owner: olga}
interface:
  input: {type: object, properties: {q: {type: string}}, required: [q]}
  output: {type: object, properties: {a: {type: string}}, required: [a]}
constraints:
  budget: {max_token_usage: 1000, max_duration_seconds: 10}
  limits: {max_llm_calls: 5, max_tool_calls: 5}
  governance_policies:
    - {policy_ref: acme.tests.desk}
action_space:
  local_tools:
    - {alias: quote, description: asks nobody}
    - {alias: wire, description: denied}
    - {alias: pay, description: any approver will do, approval: true}
    - {alias: trade, description: asks two of risk}
    - {alias: spend, description: lets numbers vary}
    - {alias: refund, description: asks more the more it is}
    - {alias: nudge, description: escalates}
    - {alias: purge, description: asks about recent days twice}
    - {alias: glance, description: escalates to people who may look}
    - {alias: login, description: hides a value}
    - {alias: unlock, description: hides a value that must be seen}
    - {alias: drift, description: approves by silence}
    - {alias: vault, description: gives no standing approvals}
    - {alias: visit, description: gives standing approvals for sessions}
  mcp_servers:
    - alias: broker
      server_ref: acme/broker
      approval: true
execution_policy:
  id: agf.react
  config: {model: m, instructions: "Test."}
`

const policyFile = `schema_version: "1.0.0"
policy_ref: acme.tests.desk
description: For tests.
rules:
  - {id: wire, match: {targets: [wire]}, deny: "Not by agents."}
  - {id: trade, match: {targets: [trade]}, approval: true, require: {stages: [{group: risk, people: 2}], within: 30m, grants: {max_uses: 5, max_age: 2h, bounds: [{path: n, kind: at_most}, {path: n, kind: at_least}, {path: s, kind: at_most}]}}}
  - {id: spend, match: {targets: [spend]}, approval: true, require: {grants: {bounds: [{path: amount, kind: at_most}, {path: loss, kind: at_least}, {path: s, kind: at_most}]}}}
  - {id: refund, match: {targets: [refund]}, approval: true, require: {stages: [{group: support}], within: 1h}}
  - id: refund-large
    match: {targets: [refund]}
    approval: {condition: {args_match: {amount: {gt: 100}}}}
    require: {stages: [{group: risk}], within: 20m, grants: forbid}
  - {id: nudge, match: {targets: [nudge]}, approval: true, require: {stages: [{group: support}], within: 40m, on_timeout: escalate, escalate: [{after: 10m, to: leads}]}}
  - {id: purge, match: {targets: [purge]}, approval: true, require: {stages: [{group: support}], grants: {bounds: [{path: days, kind: at_most}]}}}
  - id: purge-recent
    match: {targets: [purge]}
    approval: {condition: {args_match: {days: {lt: 7}}}}
    require: {stages: [{group: risk, people: 2}], grants: {bounds: [{path: days, kind: at_most}]}}
  - id: secret
    match: {targets: [login]}
    approval: true
    require: {stages: [{group: support}], arguments: {redact: ["**.password"]}}
  - id: unseen
    match: {targets: [unlock]}
    approval: true
    require: {stages: [{group: support}], arguments: {redact: ["**.password"], approve_hidden: false}}
  - {id: glance, match: {targets: [glance]}, approval: true, require: {stages: [{group: support}], within: 40m, escalate: [{after: 10m, to: leads, may: look}]}}
  - {id: drift, match: {targets: [drift]}, approval: true, require: {stages: [{group: support}], within: 10m, on_timeout: approve}}
  - {id: vault, match: {targets: [vault]}, approval: true, require: {stages: [{group: support}], within: 10m, grants: forbid}}
  - {id: visit, match: {targets: [visit]}, approval: true, require: {stages: [{group: support}], within: 10m, grants: session}}
`

// directory resolves people by all their names; it can change and it can fail.
type directory struct {
	mu     sync.Mutex
	groups map[string][]string // person → groups
	alias  map[string]string   // other name → person
	owners []string
	broken error
	// members makes Members list the people of a group.
	members bool
}

func (d *directory) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if real, ok := d.alias[name]; ok {
		name = real
	}
	groups, ok := d.groups[name]
	if d.broken != nil || !ok {
		return approval.Person{}, false, d.broken
	}
	return approval.Person{ID: name, Groups: slices.Clone(groups)}, true, nil
}

func (d *directory) Members(_ context.Context, _, group string) ([]approval.Person, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []approval.Person
	for _, name := range slices.Sorted(maps.Keys(d.groups)) {
		if p := (approval.Person{ID: name, Groups: slices.Clone(d.groups[name])}); p.Holds(group) {
			out = append(out, p)
		}
	}
	return out, d.broken
}

func (d *directory) Owners(context.Context, string, string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owners, d.broken
}

func (d *directory) Reading(_ context.Context, _ string, p approval.Person) (people.Reading, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := people.Reading{Names: []string{p.ID}}
	for name, id := range d.alias {
		if id == p.ID {
			out.Names = append(out.Names, name)
		}
	}
	return out, d.broken
}

func (d *directory) set(change func(*directory)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// plans holds one agent's plan, which can change.
type plans struct {
	mu       sync.Mutex
	now      *approval.Compiled
	counting *approval.PastRules // instead of those of now
}

func (p *plans) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || agent != p.now.Agent.ID {
		return nil, fmt.Errorf("%w %q", approval.ErrUnknownAgent, agent)
	}
	return p.now, nil
}

func (p *plans) Past(string) *approval.PastRules {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || p.counting != nil {
		return p.counting
	}
	return approval.NewPastRules(map[string]*approval.Compiled{p.now.Agent.ID: p.now})
}

func (p *plans) set(t testing.TB, policies string, grants ...resolve.Standing) {
	t.Helper()
	agent, findings := schema.Parse("desk.agf.yaml", []byte(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	registry, findings := policy.LoadFS(fstest.MapFS{"desk.policy.yaml": {Data: []byte(policies)}}, "policies")
	plan, err := resolve.Compile(agent, registry, resolve.Options{AllowTimeoutApprove: true, Grants: grants})
	if err != nil {
		t.Fatal(err, findings)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = &approval.Compiled{
		Agent:  approval.Agent{ID: "desk", Version: "1.0.0"},
		Owners: []string{"olga"},
		Plan:   plan,
	}
}

// harness is a service on a real store, with a clock that the test controls.
type harness struct {
	t      *testing.T
	path   string
	store  store.Store
	s      *approval.Service
	people *directory
	plans  *plans
	cfg    approval.Config
	mu     sync.Mutex
	clock  time.Time
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{
		t:     t,
		path:  filepath.Join(t.TempDir(), "assent.db"),
		plans: &plans{},
		clock: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
	h.people = &directory{
		groups: map[string][]string{
			"ann":  {"risk"},
			"bob":  {"risk", "support"},
			"cy":   {"support"},
			"dee":  {"leads"},
			"eve":  nil,
			"olga": {"risk", "support"},
			"pat":  {"risk", "support"},
		},
		alias: map[string]string{
			"ann@acme":  "ann",
			"pat@acme":  "pat",
			"U123":      "pat",
			"olga@acme": "olga",
		},
	}
	h.plans.set(t, policyFile)
	h.start()
	t.Cleanup(func() { h.store.Close() })
	return h
}

// start opens the store and makes a new service on it, like a restart.
func (h *harness) start() {
	h.t.Helper()
	if h.store != nil {
		h.store.Close()
	}
	var err error
	if h.store, err = sqlite.Open(
		context.Background(),
		h.path,
		sqlite.Options{Now: h.now, Poll: 20 * time.Millisecond},
	); err != nil {
		h.t.Fatal(err)
	}

	h.s = approval.New(h.store, h.plans, h.people, h.now, rand.Reader, h.cfg)
}

func (h *harness) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = h.clock.Add(d)
}

// runner returns the token that asks in these tests.
func runner() approval.Asker { return approval.Asker{Token: "runner"} }

func tool(name, args string) *resolve.Call {
	return &resolve.Call{Kind: resolve.Tool, Tool: name, Args: []byte(args), Principal: "pat@acme", Session: "s1"}
}

func (h *harness) open(call *resolve.Call, change ...func(*approval.OpenInput)) *approval.Opened {
	h.t.Helper()
	out, err := h.tryOpen(call, change...)
	must(h.t, err)
	return out
}

func (h *harness) tryOpen(call *resolve.Call, change ...func(*approval.OpenInput)) (*approval.Opened, error) {
	in := approval.OpenInput{Tenant: "t", Asker: runner(), Agent: "desk", Call: call}
	for _, c := range change {
		c(&in)
	}
	return h.s.Open(context.Background(), in)
}

// asked opens a call that must become a request.
func (h *harness) asked(call *resolve.Call, change ...func(*approval.OpenInput)) *approval.Request {
	h.t.Helper()
	out := h.open(call, change...)
	if out.Outcome != resolve.Ask || out.Shared {
		h.t.Fatalf("got %s (%s, shared %v), want a new request", out.Outcome, out.Denied, out.Shared)
	}
	return out.Request
}

func (h *harness) tryVote(
	r *approval.Request, person string, v approval.Verdict, change ...func(*approval.VoteInput),
) (*approval.Voted, error) {
	in := approval.VoteInput{
		Tenant:  "t",
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  person,
		Verdict: v,
		Channel: "test",
		Full:    true,
	}
	switch v {
	case approval.Respond:
		in.Response = "do it by hand"
	case approval.Deny:
		in.Reason = "not like this"
	}

	for _, c := range change {
		c(&in)
	}
	return h.s.Vote(context.Background(), in)
}

func (h *harness) vote(
	r *approval.Request,
	person string,
	v approval.Verdict,
	want approval.VoteOutcome,
	change ...func(*approval.VoteInput),
) *approval.Voted {
	h.t.Helper()
	out, err := h.tryVote(r, person, v, change...)
	if err != nil || out.Outcome != want {
		h.t.Fatalf("%s by %s: got %+v, %v, want %s", v, person, out, err, want)
	}
	return out
}

// approved opens a call and approves it as cy.
func (h *harness) approved(call *resolve.Call, offer *approval.GrantOffer) (*approval.Request, *approval.Grant) {
	h.t.Helper()
	out := h.vote(h.asked(call), "cy", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = offer
	})
	return out.Request, out.Grant
}

func (h *harness) consume(r *approval.Request, call *resolve.Call, key string) (*approval.Request, error) {
	return h.s.Consume(context.Background(), approval.ConsumeInput{
		Tenant: "t",
		ID:     r.ID,
		Asker:  runner(),
		Call:   call,
		Key:    key,
	})
}

func (h *harness) request(id string) *approval.Request {
	h.t.Helper()
	r, err := h.s.Request(context.Background(), "t", id)
	must(h.t, err)
	return r
}

func (h *harness) tick(want int) {
	h.t.Helper()
	if n, err := h.s.Tick(context.Background()); err != nil || n != want {
		h.t.Fatalf("tick: %d, %v, want %d", n, err, want)
	}
}

func (h *harness) is(id string, state approval.State, cause approval.Cause) *approval.Request {
	h.t.Helper()
	r := h.request(id)
	if r.State != state || r.Cause != cause {
		h.t.Fatalf("the request is %s (%s), want %s (%s)", r.State, r.Cause, state, cause)
	}
	return r
}

func (h *harness) fails(err, want error) {
	h.t.Helper()
	if !errors.Is(err, want) {
		h.t.Fatalf("got %v, want %v", err, want)
	}
}

func (h *harness) wrongField(err error, field string) {
	h.t.Helper()
	var in *approval.InputError
	if !errors.As(err, &in) || in.Field != field {
		h.t.Fatalf("got %v, want a wrong %s", err, field)
	}
}

// history seals the ledger, audits it, and returns the types of its entries. A test that ends with
// it proves that its events are consistent.
func (h *harness) history() []string {
	h.t.Helper()
	sign := func(ledger.Checkpoint) ([]byte, error) { return []byte("signed"), nil }
	for n := 1; n > 0; {
		var err error
		if n, err = h.store.Seal(context.Background(), 1000, sign); err != nil {
			h.t.Fatal(err)
		}
	}

	entries, err := h.store.Entries(context.Background(), "t", 0, 10_000)
	must(h.t, err)
	var audit approval.Auditor
	var types []string
	for _, e := range entries {
		leaf, err := ledger.ParseLeaf(e.Leaf)
		must(h.t, err)
		for _, p := range audit.Add(e.Index, leaf) {
			h.t.Errorf("%s\n%s", p, e.Leaf)
		}
		types = append(types, leaf.Type)
	}

	return types
}

func (h *harness) happened(want ...string) {
	h.t.Helper()
	if got := h.history(); !slices.Equal(got, want) {
		h.t.Errorf("the ledger tells\n%v, want\n%v", got, want)
	}
}

func TestHouse(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{"n":1}`))
	h.vote(r, "eve", approval.Approve, approval.VoteApproved)
	h.happened("request_opened", "vote_counted", "request_approved")
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// works expects no error from a call that also returns a value.
func works(_ any, err error) func(rapid.TB) {
	return func(t rapid.TB) {
		t.Helper()
		must(t, err)
	}
}
