package resolve_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

const deskTools = `action_space:
  local_tools:
    - alias: trade
      approval:
        message_template: "Trade {{tool_args.amount}}?"
        condition: {args_match: {amount: {gt: 10000}, currency: USD}}
    - {alias: free}
  mcp_servers:
    - {alias: open, approval: {condition: {args_match: {env: prod}}}}
    - {alias: empty, allowed_tools: []}
  remote_agents:
    - alias: payments
      approval: true
      allowed_skills: [{id: list, approval: false}, plain]
`

func tool(name, args string) *resolve.Call {
	return &resolve.Call{Kind: resolve.Tool, Tool: name, Args: []byte(args)}
}

func codes(d resolve.Decision) string {
	var out []string
	for _, r := range d.Reasons {
		out = append(out, string(r.Code))
	}
	return d.Outcome.String() + " " + strings.Join(out, ",")
}

func TestAllowAllocatesNothing(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	quiet := map[string]*resolve.Call{
		"raw":          tool("trade", `{"amount":10000,"currency":"USD","note":"all of it"}`),
		"decoded":      {Kind: resolve.Tool, Tool: "trade", Values: map[string]any{"amount": 100.0, "currency": "USD"}},
		"no arguments": {Kind: resolve.Tool, Tool: "free"},
		"open server":  {Kind: resolve.MCPTool, Server: "open", Tool: "anything", Args: []byte(`{"env":"test"}`)},
		"with its hint": {
			Kind:        resolve.MCPTool,
			Server:      "open",
			Tool:        "anything",
			Args:        []byte(`{"env":"test"}`),
			Annotations: map[string]bool{"readOnlyHint": true},
		},
	}
	for name, call := range quiet {
		if d := p.Decide(call); d.Outcome != resolve.Allow {
			t.Fatalf("%s: %+v", name, d)
		}
		if n := testing.AllocsPerRun(100, func() { p.Decide(call) }); n > raceAllocations {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestBinding(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	base := resolve.Call{
		Kind:           resolve.Skill,
		Agent:          "payments",
		Skill:          "plain",
		Args:           []byte(`{"a":1,"b":[true]}`),
		ParentInput:    []byte(`{"r":1}`),
		Principal:      "ann",
		Session:        "s",
		ToolDefinition: "sha256:00",
	}
	want, err := p.Bind(&base)
	if err != nil || !strings.HasPrefix(want, "sha256:") || len(want) != 71 {
		t.Fatalf("%q, %v", want, err)
	}
	if d := p.Decide(&base); d.Binding != want {
		t.Errorf("decision %s, Bind %s", d.Binding, want)
	}
	same := base
	same.Args = []byte(` { "b" : [ true ], "a" : 1.0e0 } `)
	same.Annotations = map[string]bool{}
	if got, _ := p.Bind(&same); got != want {
		t.Errorf("another spelling of the same call has another binding")
	}
	// TestTheBindingIsComputedFromItsPage checks the effect of the other fields of each kind.
	changes := map[string]func(*resolve.Call){
		"kind":   func(c *resolve.Call) { c.Kind = resolve.Delegation },
		"tool":   func(c *resolve.Call) { c.Tool = "x" },
		"server": func(c *resolve.Call) { c.Server = "x" },
		"remote": func(c *resolve.Call) { c.Remote = resolve.RemoteYes },
		"local":  func(c *resolve.Call) { c.Remote = resolve.RemoteNo },
	}
	seen := map[string]string{want: "base"}
	for name, change := range changes {
		c := base
		change(&c)
		got, err := p.Bind(&c)
		if err != nil || seen[got] != "" {
			t.Errorf("%s: binding %s is that of %q, error %v", name, got, seen[got], err)
		}
		seen[got] = name
	}

	if _, err := p.Bind(tool("trade", `{"a":1,"a":2}`)); err == nil {
		t.Error("unreadable arguments have a binding")
	}
	if _, err := p.Bind(&resolve.Call{
		Kind:        resolve.Delegation,
		Agent:       "payments",
		ParentInput: []byte(`{"a":1,"a":2}`),
	}); err == nil {
		t.Error("an unreadable parent input has a binding")
	}
}

// TestTrustedValues checks that only the values that conditions read are checked, and all values if
// the call asks.
func TestTrustedValues(t *testing.T) {
	p := plan(t, resolve.Options{TrustValues: true}, deskTools)
	call := func(v map[string]any) *resolve.Call {
		return &resolve.Call{Kind: resolve.Tool, Tool: "trade", Values: v}
	}
	small := call(map[string]any{"amount": 5.0, "currency": "USD", "note": "x"})
	if got := codes(p.Decide(small)); got != "allow " {
		t.Error(got)
	}
	if n := testing.AllocsPerRun(100, func() { p.Decide(small) }); n > raceAllocations {
		t.Errorf("%v allocations", n)
	}
	if got := codes(p.Decide(call(map[string]any{
		"amount":   math.NaN(),
		"currency": "USD",
	}))); got != "deny unreadable_arguments" {
		t.Errorf("a value that is read: %s", got)
	}

	odd := call(map[string]any{"amount": 20000, "currency": "USD", "note": math.NaN()})
	if got := codes(p.Decide(odd)); !strings.HasPrefix(got, "deny unreadable_arguments") {
		t.Errorf("an ask: %s", got)
	}
	if _, err := p.Bind(call(map[string]any{"note": math.NaN()})); err == nil {
		t.Error("bound unread")
	}
}

func TestAgentWithoutActionSpace(t *testing.T) {
	if got := codes(plan(t, resolve.Options{}, "").Decide(tool("free", `{}`))); got != "deny not_declared" {
		t.Error(got)
	}
}

// TestSkillReplacesNothingElse checks that a skill's approval replaces only its agent's: policies
// at the delegation gate, a parent's approval and the check of the parent's input still apply.
func TestSkillReplacesNothingElse(t *testing.T) {
	opt := resolve.Options{Semantics: resolve.Semantics{RemoteApproval: resolve.SkillReplaces}}
	call := &resolve.Call{Kind: resolve.Skill, Agent: "payments", Skill: "list", ParentInput: []byte(`{}`)}
	if got := codes(plan(t, opt, deskTools).Decide(call)); got != "allow " {
		t.Errorf("alone: %s", got)
	}
	governed := plan(
		t,
		opt,
		deskTools,
		"policy_ref: p\napplies: implicit\nrules: [{id: r, match: {kinds: [delegation]}, approval: true}]\n",
	)
	if got := codes(governed.Decide(call)); got != "ask always" {
		t.Errorf("with a policy: %s", got)
	}
	under := opt
	under.Parent = plan(t, opt, "action_space: {remote_agents: [{alias: payments, approval: true}]}\n")
	if got := codes(plan(t, under, deskTools).Decide(call)); got != "ask always" {
		t.Errorf("under a parent: %s", got)
	}
	broken := *call
	broken.ParentInput = []byte(`{"a":1,"a":2}`)
	if got := codes(plan(t, opt, deskTools).Decide(&broken)); got != "deny unreadable_arguments" {
		t.Errorf("unreadable parent input: %s", got)
	}
}

// TestLongNamesAreNotKept checks that a plan keeps a limited amount of tool names of an open
// server, because callers choose them.
func TestLongNamesAreNotKept(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	kept := func(name string) bool {
		call := &resolve.Call{Kind: resolve.MCPTool, Server: "open", Tool: name, Args: []byte(`{"env":"dev"}`)}
		return testing.AllocsPerRun(10, func() { p.Decide(call) }) < 1+2*raceAllocations
	}
	if !kept("list") || kept(strings.Repeat("x", 1000)) {
		t.Error("a short name should be prepared once, a long one every time")
	}
}

func TestUnknownKindIsDenied(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	for _, kind := range []resolve.Kind{"", "hammer", resolve.Kind(strings.Repeat("x\u202e", 100))} {
		d := p.Decide(&resolve.Call{Kind: kind, Tool: "free"})
		if codes(d) != "deny unreadable_call" || len(d.Message) > 700 || strings.ContainsRune(d.Message, '\u202e') {
			t.Errorf("kind %q: %s %q", kind, codes(d), d.Message)
		}
	}
}

func TestSemanticsSwitches(t *testing.T) {
	missing := tool("trade", `{"currency":"USD"}`)
	skill := func(id string) *resolve.Call {
		return &resolve.Call{Kind: resolve.Skill, Agent: "payments", Skill: id}
	}
	for _, c := range []struct {
		name string
		sem  resolve.Semantics
		call *resolve.Call
		by   string // by default
		with string
	}{
		{
			"missing argument",
			resolve.Semantics{Conditions: condition.Semantics{OnMissing: condition.NoMatch}},
			missing,
			"ask condition_unknown",
			"allow ",
		},
		{
			"undeclared tool",
			resolve.Semantics{Undeclared: resolve.UndeclaredAsk},
			tool("x", `{}`),
			"deny not_declared",
			"ask undeclared",
		},
		{
			"undeclared agent",
			resolve.Semantics{Undeclared: resolve.UndeclaredAsk},
			&resolve.Call{Kind: resolve.Delegation, Agent: "x"},
			"deny not_declared",
			"ask undeclared",
		},
		{"empty list", resolve.Semantics{EmptyAllowList: resolve.EmptyIsAbsent}, &resolve.Call{
			Kind:   resolve.MCPTool,
			Server: "empty",
			Tool:   "x",
		}, "deny not_allowed", "allow "},
		{
			"exempt skill",
			resolve.Semantics{RemoteApproval: resolve.SkillReplaces},
			skill("list"),
			"ask always",
			"allow ",
		},
		{
			"skill without approval",
			resolve.Semantics{RemoteApproval: resolve.SkillReplaces},
			skill("plain"),
			"ask always",
			"ask always",
		},
		{
			"unknown skill",
			resolve.Semantics{RemoteApproval: resolve.SkillReplaces},
			skill("x"),
			"deny not_allowed,always",
			"deny not_allowed,always",
		},
	} {
		if got := codes(plan(t, resolve.Options{}, deskTools).Decide(c.call)); got != c.by {
			t.Errorf("%s by default: %s, want %s", c.name, got, c.by)
		}
		if got := codes(plan(t, resolve.Options{Semantics: c.sem}, deskTools).Decide(c.call)); got != c.with {
			t.Errorf("%s switched: %s, want %s", c.name, got, c.with)
		}
	}
}

// TestPoints checks that the table of silent points names every field of Semantics, so that no
// setting is undocumented.
func TestPoints(t *testing.T) {
	names := map[string]bool{}
	for _, p := range resolve.Points() {
		if p.Name == "" || p.Question == "" || p.Default == "" || p.Spec == "" || names[p.Name] {
			t.Errorf("incomplete or repeated: %+v", p)
		}
		names[p.Name] = true
	}

	for _, field := range []string{
		"Conditions.OnMissing",
		"Conditions.OnMismatch",
		"Conditions.Anchor",
		"Conditions.Trim",
		"Undeclared",
		"EmptyAllowList",
		"RemoteApproval",
	} {
		if !names[field] {
			t.Errorf("Semantics.%s is not in the table", field)
		}
	}
}

// brokenRegistry is a registry that can't be read.
type brokenRegistry struct{ policy.Registry }

var errGone = errors.New("registry gone")

func (brokenRegistry) Err() error { return errGone }

func TestBrokenRegistryDeniesEverything(t *testing.T) {
	p, err := resolve.Compile(parseAgent(t, "agent.agf.yaml", deskTools), brokenRegistry{}, resolve.Options{})
	var unresolved *resolve.UnresolvedError
	if p == nil || !errors.As(err, &unresolved) || !errors.Is(err, errGone) {
		t.Fatalf("plan %v, error %v", p, err)
	}
	for _, call := range []*resolve.Call{tool("free", `{}`), {Kind: resolve.Skill, Agent: "payments", Skill: "list"}} {
		if d := p.Decide(call); d.Outcome != resolve.Deny || d.Reasons[0].Code != resolve.PolicyUnresolved {
			t.Errorf("%+v", d)
		}
	}

	child := plan(t, resolve.Options{Parent: p}, deskTools)
	if got := codes(child.Decide(tool("free", `{}`))); got != "deny policy_unresolved" {
		t.Errorf("a child of a stopped agent: %s", got)
	}
}

func TestCompileNeedsAnAgent(t *testing.T) {
	if p, err := resolve.Compile(nil, nil, resolve.Options{}); p != nil || err == nil {
		t.Errorf("plan %v, error %v", p, err)
	}
}

func TestCompileWithoutRegistry(t *testing.T) {
	const agent = "constraints: {governance_policies: [{policy_ref: gone}, {policy_ref: lost}, {policy_ref: advice, " +
		"required: false}]}\n" + deskTools
	p, err := resolve.Compile(parseAgent(t, "agent.agf.yaml", agent), nil, resolve.Options{})
	var unresolved *resolve.UnresolvedError
	if !errors.As(err, &unresolved) || err.Error() != "required policies are not resolved: gone, lost" ||
		errors.Unwrap(err) != nil {
		t.Fatalf("error %v", err)
	}
	if got := codes(p.Decide(tool("free", `{}`))); got != "deny policy_unresolved,policy_unresolved" {
		t.Error(got)
	}
	if len(p.Findings()) != 3 {
		t.Errorf("findings %v", p.Findings())
	}
}

func TestRulesDescribeFindings(t *testing.T) {
	for _, r := range resolve.Rules() {
		if r.ID == "" || r.Title == "" || r.Why == "" || r.Spec == "" {
			t.Errorf("incomplete: %+v", r)
		}
	}
}

func TestTimeoutApproveNeedsTheOwner(t *testing.T) {
	const p = "policy_ref: p\napplies: implicit\nrules: [{id: r, approval: true, require: {on_timeout: approve}}]\n"
	call := tool("free", `{}`)
	if got := plan(t, resolve.Options{}, deskTools, p).Decide(call).Require.OnTimeout; got != policy.TimeoutDeny {
		t.Errorf("without the owner's word: %s", got)
	}
	if got := plan(
		t,
		resolve.Options{AllowTimeoutApprove: true},
		deskTools,
		p,
	).Decide(call).Require.OnTimeout; got != policy.TimeoutApprove {
		t.Errorf("with it: %s", got)
	}
}

func TestLimitsAreTheStrictest(t *testing.T) {
	const tight = "constraints: {budget: {max_token_usage: 10, max_duration_seconds: 5}, limits: {max_tool_calls: 0}}\n"
	const loose = "constraints: {budget: {max_token_usage: 50}, limits: {max_tool_calls: 9, max_llm_calls: 7, " +
		"max_delegation_depth: 2}}\n"
	show := func(p *resolve.Plan) string {
		b, l := p.Limits()
		out := ""
		for _, n := range []*int64{
			b.MaxTokenUsage,
			b.MaxDurationSeconds,
			l.MaxLLMCalls,
			l.MaxToolCalls,
			l.MaxDelegationDepth,
		} {
			if n == nil {
				out += " -"
			} else {
				out += fmt.Sprint(" ", *n)
			}
		}

		return out
	}
	parent := plan(t, resolve.Options{}, tight+deskTools)
	if got := show(parent); got != " 10 5 - 0 -" {
		t.Errorf("alone:%s", got)
	}
	if got := show(plan(t, resolve.Options{Parent: parent}, loose+deskTools)); got != " 10 5 7 0 2" {
		t.Errorf("under a parent:%s", got)
	}
}

func TestMessageAlias(t *testing.T) {
	const agent = `action_space: {local_tools: [{alias: t, approval: {message_template: "{{agent_alias}}/{{agent_id}}"}}]}
`
	if got := plan(t, resolve.Options{}, agent).Decide(tool("t", `{}`)).Message; got != "desk/desk" {
		t.Error(got)
	}
	if got := plan(t, resolve.Options{AgentAlias: "sub"}, agent).Decide(tool("t", `{}`)).Message; got != "sub/desk" {
		t.Error(got)
	}
}

// TestMessageOfPolicies checks that, if no rule of the agent has a template, the first policy by
// reference and position provides it, also across the two gates of a skill call.
func TestMessageOfPolicies(t *testing.T) {
	const agent = "action_space: {remote_agents: [{alias: a, approval: true}]}\n"
	rule := func(id, kinds, text string) string {
		return "{id: " + id + ", match: {kinds: [" + kinds + `]}, approval: {message_template: "` + text + `"}}`
	}
	call := &resolve.Call{Kind: resolve.Skill, Agent: "a", Skill: "s"}
	late := policyText("b", []string{rule("r", "skill", "from b")})
	early := policyText(
		"a",
		[]string{rule("one", "delegation", "first of a"), rule("two", "delegation", "second of a")},
	)
	if got := plan(t, resolve.Options{}, agent, late, early).Decide(call).Message; got != "first of a" {
		t.Error(got)
	}
	mixed := policyText(
		"a",
		[]string{
			"\n    " + rule("one", "skill", "skill gate"),
			"\n    " + rule("two", "delegation", "delegation gate"),
		},
	)
	if got := plan(t, resolve.Options{}, agent, mixed).Decide(call).Message; got != "skill gate" {
		t.Error(got)
	}
}

func TestVacuousConditionSaysSo(t *testing.T) {
	const agent = "action_space: {local_tools: [{alias: t, approval: {condition: {args_match: {}}}}]}\n"
	d := plan(t, resolve.Options{}, agent).Decide(tool("t", `{}`))
	if codes(d) != "ask condition_true" || d.Reasons[0].Detail != "a group without tests holds for every call" {
		t.Errorf("%s %+v", codes(d), d.Reasons)
	}
}

// TestNamesSeenAreBounded checks that a plan keeps a limited number of names of a server without
// allow-list, and that the decision about further names is the same.
func TestNamesSeenAreBounded(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	call := func(i int) *resolve.Call {
		return &resolve.Call{
			Kind:   resolve.MCPTool,
			Server: "open",
			Tool:   fmt.Sprint("t", i),
			Args:   []byte(`{"env":"prod"}`),
		}
	}
	for i := range 5000 {
		if got := codes(p.Decide(call(i))); got != "ask condition_true" {
			t.Fatalf("name %d: %s", i, got)
		}
	}
}

func TestPlanIsSafeForConcurrentUse(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	want := p.Decide(tool("trade", `{"amount":20000,"currency":"USD"}`))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				p.Decide(&resolve.Call{
					Kind:   resolve.MCPTool,
					Server: "open",
					Tool:   fmt.Sprint(i),
					Args:   []byte(`{"env":"x"}`),
				})
				if got := p.Decide(tool("trade", `{"amount":20000,"currency":"USD"}`)); fmt.Sprint(
					got,
				) != fmt.Sprint(want) {
					t.Errorf("got %+v", got)
				}
			}
		})
	}

	all.Wait()
}

func TestOutcomeText(t *testing.T) {
	for _, o := range []resolve.Outcome{resolve.Deny, resolve.Ask, resolve.Allow} {
		text, err := o.MarshalText()
		var back resolve.Outcome
		if err != nil || back.UnmarshalText(text) != nil || back != o {
			t.Errorf("%v: %s, %v", o, text, err)
		}
	}

	var o resolve.Outcome
	if err := o.UnmarshalText([]byte("allowed")); err == nil || o != resolve.Deny {
		t.Errorf("%v, %v", o, err)
	}
}
