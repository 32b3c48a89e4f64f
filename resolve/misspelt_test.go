package resolve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const misspeltHead = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Works.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
`

type fatal interface{ Fatalf(string, ...any) }

func misspeltPlan(t fatal, text string, opt resolve.Options, policies ...string) *resolve.Plan {
	agent, findings := schema.Parse("desk.agf.yaml", []byte(text))
	if agent == nil {
		t.Fatalf("it does not load: %v\n%s", findings, text)
	}
	var all []*policy.Policy
	for _, p := range policies {
		pol, findings := policy.Parse("a.policy.yaml", []byte(p))
		if pol == nil {
			t.Fatalf("%v", findings)
		}
		all = append(all, pol)
	}
	set, _ := policy.NewSet(all...)
	plan, err := resolve.Compile(agent, set, opt)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return plan
}

// shortCall reads a call in a short form: kind, container and name.
func shortCall(text string) *resolve.Call {
	f := strings.Fields(text)
	switch f[0] {
	case "tool":
		return &resolve.Call{Kind: resolve.Tool, Tool: f[1]}
	case "mcp":
		return &resolve.Call{Kind: resolve.MCPTool, Server: f[1], Tool: f[2]}
	case "skill":
		return &resolve.Call{Kind: resolve.Skill, Agent: f[1], Skill: f[2], ParentInput: []byte("{}")}
	default:
		return &resolve.Call{Kind: resolve.Delegation, Agent: f[1], ParentInput: []byte("{}")}
	}
}

// shortOutcomes decides calls, and shows how each came out and by which code.
func shortOutcomes(p *resolve.Plan, calls ...string) string {
	var out []string
	for _, c := range calls {
		d := p.Decide(shortCall(c))
		text := c + ": " + d.Outcome.String()
		for _, r := range d.Reasons {
			text += " " + string(r.Code)
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// TestMisspeltGatesAsk checks that a gate that can't be read asks about every call of the entry
// that contains it, and of no other entry.
func TestMisspeltGatesAsk(t *testing.T) {
	const misspelt = " ask approval_misspelt"
	for _, test := range []struct{ name, space, want string }{
		{"a local tool", `
  local_tools: [{alias: a, aproval: true}, {alias: b}]`,
			"tool a:" + misspelt + "\ntool b: allow"},
		{"a value of false", `
  local_tools: [{alias: a, aproval: false}]`, "tool a:" + misspelt},
		{"beside an approval", `
  local_tools: [{alias: a, approval: false, aproval: true}, {alias: b, approval: true, Approval: true}]`,
			"tool a:" + misspelt + "\ntool b:" + misspelt + " always"},
		{"a server without a list", `
  mcp_servers: [{alias: db, requires_approval: true}, {alias: web}]`,
			"mcp db anything:" + misspelt + "\nmcp web anything: allow"},
		{"a server with a list", `
  mcp_servers: [{alias: db, hitl: true, allowed_tools: [a, {name: b, approval: false}]}]`,
			"mcp db a:" + misspelt + "\nmcp db b:" + misspelt + "\nmcp db c: deny not_allowed approval_misspelt"},
		{"a tool of a server", `
  mcp_servers: [{alias: db, allowed_tools: [a, {name: b, aproval: true}, {name: b}]}]`,
			"mcp db a: allow\nmcp db b:" + misspelt},
		{"below another field of a server", `
  mcp_servers: [{alias: db, tools: [{name: drop, approval: true}]}]`,
			"mcp db drop:" + misspelt + "\nmcp db read:" + misspelt},
		{"a local agent", `
  local_agents:
    - {alias: w, source: w, source_type: registry, confirm: true}
    - {alias: v, source: v, source_type: registry}`,
			"delegation w:" + misspelt + "\ndelegation v: allow"},
		{"a remote agent", `
  remote_agents: [{alias: p, aproval: true, allowed_skills: [{id: pay, approval: false}, get]}]`,
			"delegation p:" + misspelt + "\nskill p pay:" + misspelt + "\nskill p get:" + misspelt},
		{"a skill", `
  remote_agents: [{alias: p, allowed_skills: [{id: pay, aproval: true}, get]}]`,
			"delegation p: allow\nskill p pay:" + misspelt + "\nskill p get: allow"},
		{"the whole action space", `
  approval: true
  local_tools: [{alias: a}]
  mcp_servers: [{alias: db}]`,
			"tool a:" + misspelt + "\nmcp db x:" + misspelt + "\ntool b: deny not_declared approval_misspelt"},
		{"an unknown list", `
  tools: [{alias: a, approval: true}, {name: drop, approval: true}]
  local_tools: [{alias: a}, {alias: b}]
  mcp_servers: [{alias: db}]`,
			"tool a:" + misspelt + "\ntool b: allow\nmcp db drop:" + misspelt + "\nmcp db x: allow"},
		{"an unknown list of what is not declared", `
  remote_agent: [{alias: p, approval: true, allowed_skills: [{id: s, approval: true}]}]
  local_tools: [{alias: a}]`,
			"tool a: allow\ndelegation p: deny not_declared approval_misspelt\nskill p s: deny not_declared " +
				"approval_misspelt approval_misspelt"},
		{"other unknown fields", `
  x-note: a
  local_tools: [{alias: a, x-approval: true, timeout: 5}]`, "tool a: allow"},
		{"a list that is not read", `
  mcp_servers: [{alias: db, allowedTools: [a]}, {alias: web, denied_tools: [b], allowed_tools: [a, b]}]`,
			"mcp db a: ask allow_list_misspelt\nmcp db b: ask allow_list_misspelt\nmcp web b: ask " +
				"allow_list_misspelt\n" +
				"mcp web c: deny allow_list_misspelt not_allowed"},
	} {
		var calls []string
		for line := range strings.SplitSeq(test.want, "\n") {
			call, _, _ := strings.Cut(line, ":")
			calls = append(calls, call)
		}
		want := strings.ReplaceAll(test.want, "deny allow_list_misspelt not_allowed", "deny not_allowed "+
			"allow_list_misspelt")
		plan := misspeltPlan(t, misspeltHead+"action_space:"+test.space+"\n", resolve.Options{})
		if got := shortOutcomes(plan, calls...); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, want)
		}
	}
}

// TestMisspeltGateOutsideOfTheActionSpace checks that every call asks.
func TestMisspeltGateOutsideOfTheActionSpace(t *testing.T) {
	const space = "action_space: {local_tools: [{alias: a}]}\n"
	for _, field := range []string{
		"aproval: true\n", "constraints: {approval: true}\n", "memory: {hitl: true}\n",
		"defaults: {approval: true}\n",
	} {
		plan := misspeltPlan(t, misspeltHead+space+field, resolve.Options{})
		if got := shortOutcomes(plan, "tool a"); got != "tool a: ask approval_misspelt" {
			t.Errorf("%s: %s", field, got)
		}
	}
}

// TestMisspeltGateSaysWhereItIs checks that the reason has the position of the field, and that the
// approver's message mentions it.
func TestMisspeltGateSaysWhereItIs(t *testing.T) {
	plan := misspeltPlan(t, misspeltHead+`action_space:
  local_tools:
    - alias: a
      approval: {message_template: "Do it?"}
      "appr\u043eval\u202e": true
`, resolve.Options{})
	d := plan.Decide(shortCall("tool a"))
	text, _ := json.Marshal(d.Reasons[0])
	const want = `{"source":"action_space","rule":"local_tools.a","code":"approval_misspelt","detail":` +
		`"the agent's file has an approval that is not read, the unknown field \"appr\\u043eval\\u202e\": ` +
		`every call of local_tools.a asks until it is fixed","file":"desk.agf.yaml","line":9,"column":7}`
	if string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	const message = "Do it?\nNote: the agent's file has an approval that is not read, the unknown field " +
		"\"appr\\u043eval\\u202e\": every call of local_tools.a asks until it is fixed."
	if d.Message != message {
		t.Errorf("%q", d.Message)
	}
}

// TestMisspeltGateNeverLoosens checks that a denying policy still denies, an asking one keeps its
// requirements, and no setting of the owner removes the question.
func TestMisspeltGateNeverLoosens(t *testing.T) {
	const policies = `schema_version: "1.0.0"
policy_ref: acme.rules
applies: implicit
rules:
  - {id: no-drop, match: {targets: [drop]}, deny: "No."}
  - {id: two, match: {targets: [pay]}, approval: true, require: {stages: [{group: ops, people: 2}]}}
`
	const space = `action_space:
  local_tools: [{alias: drop, aproval: false}, {alias: pay, aproval: false}]
  remote_agents: [{alias: p, aproval: true, allowed_skills: [{id: s, approval: false}]}]
`
	plan := misspeltPlan(t, misspeltHead+space, resolve.Options{Semantics: resolve.Semantics{
		RemoteApproval: resolve.SkillReplaces, Undeclared: resolve.UndeclaredAsk,
	}}, policies)
	const want = "tool drop: deny denied approval_misspelt\ntool pay: ask approval_misspelt always\n" +
		"skill p s: ask approval_misspelt"
	if got := shortOutcomes(plan, "tool drop", "tool pay", "skill p s"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if d := plan.Decide(shortCall("tool pay")); d.Require == nil || d.Require.Stages[0].People != 2 {
		t.Errorf("%+v", d.Require)
	}
}

// TestMisspeltGateOfAParentHolds checks that an unreadable gate of a parent applies to its
// sub-agent.
func TestMisspeltGateOfAParentHolds(t *testing.T) {
	child := misspeltHead + "action_space: {local_tools: [{alias: a}], mcp_servers: [{alias: db, server_ref: r}]}\n"
	for _, space := range []string{
		"local_tools: [{alias: a, aproval: true}], mcp_servers: [{alias: other, server_ref: r, hitl: true}]",
		"approval: true",
		"tools: [{alias: a, approval: true}, {alias: db, approval: true}]",
	} {
		parent := misspeltPlan(t, misspeltHead+"action_space: {"+space+"}\n", resolve.Options{})
		plan := misspeltPlan(t, child, resolve.Options{Parent: parent})
		const want = "tool a: ask approval_misspelt\nmcp db x: ask approval_misspelt"
		if got := shortOutcomes(plan, "tool a", "mcp db x"); got != want {
			t.Errorf("%s:\n%s", space, got)
		}
	}
}

// TestUnknownFieldsNeverLoosen checks that adding any field to an entry, or around it, never
// loosens a decision.
func TestUnknownFieldsNeverLoosen(t *testing.T) {
	calls := []string{
		"tool a", "tool b", "mcp db x", "mcp db y", "mcp db z", "mcp web x", "delegation w", "delegation p",
		"skill p s",
		"skill p t", "tool nobody",
	}
	text := func(at int, field string) string {
		add := func(place int, own string) string {
			if place == at && field != "" {
				return "{" + own + ", " + field + "}"
			}
			return "{" + own + "}"
		}
		top := ""
		if at == 10 && field != "" {
			top = field + "\n"
		}
		return misspeltHead + top + "action_space: " + add(0, "local_tools: ["+
			add(1, "alias: a")+", "+add(2, "alias: b, approval: {condition: {args_match: {n: 5}}}")+"], "+
			"mcp_servers: ["+
			add(3, "alias: db, allowed_tools: [x, "+add(4, "name: y, approval: false")+"], approval: true")+", "+
			add(5, "alias: web")+"], local_agents: ["+add(6, "alias: w, source: w, source_type: registry")+
			"], remote_agents: ["+add(7, "alias: p, allowed_skills: [s, "+add(8,
			"id: t, approval: true")+"]")+"]") + "\n"
	}
	plain := misspeltPlan(t, text(-1, ""), resolve.Options{})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.SampledFrom([]string{
				"aproval", "Approval", "approvals", "x-approval", "hitl", "allowedTools", "tools", "deny_tools",
				"condition",
				"message_template", "args_match", "timeout", "source_url", "metadata", "tool_list", "approved",
				"allow",
			}),
			rapid.StringMatching(`[a-z_]{1,12}`),
			rapid.Map(rapid.String(), func(s string) string { return "k" + s }),
		).Draw(t, "name")
		value := rapid.SampledFrom([]string{
			"true", "false", "~", "[]", "{}", "[x]", "5", "never", "{approval: false}", "[{name: x, approval: true}]",
			"{condition: {args_match: {n: 5}}}",
		}).Draw(t, "value")
		key, _ := json.Marshal(name)
		at := rapid.IntRange(0, 10).Draw(t, "place")
		changed := text(at, string(key)+": "+value)
		agent, _ := schema.Parse("desk.agf.yaml", []byte(changed))
		if agent == nil {
			return // a known field with a wrong value, or no YAML: nothing is decided by it
		}
		for _, known := range []string{
			"approval", "name", "alias", "description", "allowed_tools", "allowed_skills", "server_ref",
			"local_tools",
			"constraints", "memory", "id", "source", "mcp_servers",
		} {
			if name == known {
				return // no unknown field
			}
		}
		plan := misspeltPlan(t, changed, resolve.Options{})
		for _, c := range calls {
			if got, was := plan.Decide(shortCall(c)).Outcome, plain.Decide(shortCall(c)).Outcome; got > was {
				t.Fatalf("%s: %s, and without %q: %s\n%s", c, got, name, was, changed)
			}
		}
	})
}

// TestMisspeltGateCostsOtherCallsNothing checks that calls of other entries meet as many rules as
// before, and allocate nothing.
func TestMisspeltGateCostsOtherCallsNothing(t *testing.T) {
	plan := misspeltPlan(t, misspeltHead+"action_space: {local_tools: [{alias: a, aproval: true}, {alias: b}]}\n",
		resolve.Options{})
	c := shortCall("tool b")
	if n := len(plan.Target(c).Gates); n != 0 {
		t.Errorf("%d rules", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if plan.Decide(c).Outcome != resolve.Allow {
			panic("not allowed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMisspeltListBesideAnEmptyOne checks that an unreadable list still restricts the server if the
// owner reads an empty list as absent.
func TestMisspeltListBesideAnEmptyOne(t *testing.T) {
	text := misspeltHead + "action_space: {mcp_servers: [{alias: db, allowed_tools: [], allowedTools: [a]}]}\n"
	for empty, want := range map[resolve.Semantics]string{
		{}:                                      "mcp db a: deny not_allowed",
		{EmptyAllowList: resolve.EmptyIsAbsent}: "mcp db a: ask allow_list_misspelt",
	} {
		plan := misspeltPlan(t, text, resolve.Options{Semantics: empty})
		if got := shortOutcomes(plan, "mcp db a"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
