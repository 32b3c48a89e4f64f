package resolve_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// threePolicies are texts of which each asks about another tool.
func threePolicies() []string {
	var texts []string
	for _, ref := range []string{"a", "b", "c"} {
		texts = append(
			texts,
			policyText(
				ref,
				[]string{
					"{id: one, match: {targets: [x" + ref + "]}, approval: true}",
					"{id: two, match: {targets: [y" + ref + "]}, approval: true}",
				},
			),
		)
	}

	return texts
}

// TestTheVersionCoversEveryPolicy checks that a change of any policy, the agent's own or a
// parent's, voids earlier approvals.
func TestTheVersionCoversEveryPolicy(t *testing.T) {
	for i := range threePolicies() {
		for _, change := range []struct{ old, new string }{
			{"id: one", "id: uno"},
			{"id: two", "id: due"},
			{"approval: true}]", "approval: true, require: {within: 5m}}]"},
		} {
			now := threePolicies()
			now[i] = strings.Replace(now[i], change.old, change.new, 1)
			if now[i] == threePolicies()[i] {
				t.Fatalf("nothing is replaced: %s", now[i])
			}
			before, after := plan(t, resolve.Options{}, deskTools, threePolicies()...), plan(
				t,
				resolve.Options{},
				deskTools,
				now...)
			if before.Version() == after.Version() {
				t.Errorf("policy %d: %s became %s, and the version stays", i, change.old, change.new)
			}
			child := func(parent *resolve.Plan) string {
				return plan(t, resolve.Options{Parent: parent}, deskTools).Version()
			}
			if child(before) == child(after) {
				t.Errorf("policy %d of the parent: %s became %s, and the version stays", i, change.old, change.new)
			}
		}

		fewer := append(threePolicies()[:i:i], threePolicies()[i+1:]...)
		if plan(t, resolve.Options{}, deskTools, fewer...).Version() ==
			plan(t, resolve.Options{}, deskTools, threePolicies()...).Version() {
			t.Errorf("policy %d is gone, and the version stays", i)
		}
	}
}

// TestTheVersionCoversEverythingElse checks the agent's whole document, its parents, missing
// policies, and the owner's settings.
func TestTheVersionCoversEverythingElse(t *testing.T) {
	const agent = `action_space:
  local_tools: [{alias: a}, {alias: b, approval: {condition: [{args_match: {k: 1}}, {args_match: {k: 2, l: "3"}}]}}]
`
	named := func(refs string) string {
		return "constraints: {governance_policies: [" + refs + "]}\n" + agent
	}
	grandparent := plan(t, resolve.Options{}, agent)
	parent := plan(t, resolve.Options{Parent: grandparent}, agent)
	strict := condition.Semantics{Anchor: condition.Full}
	stopped, _ := resolve.Compile(parseAgent(t, "agent.agf.yaml", agent), brokenRegistry{}, resolve.Options{})
	versions := map[string]string{}
	for name, p := range map[string]*resolve.Plan{
		"as it is":           grandparent,
		"another first tool": plan(t, resolve.Options{}, strings.Replace(agent, "alias: a", "alias: c", 1)),
		"another last tool":  plan(t, resolve.Options{}, strings.Replace(agent, "alias: b", "alias: c", 1)),
		"another last value": plan(t, resolve.Options{}, strings.Replace(agent, `l: "3"`, `l: "4"`, 1)),
		"another type":       plan(t, resolve.Options{}, strings.Replace(agent, `l: "3"`, `l: 3`, 1)),
		"a boolean":          plan(t, resolve.Options{}, strings.Replace(agent, `l: "3"`, `l: true`, 1)),
		"the boolean's text": plan(t, resolve.Options{}, strings.Replace(agent, `l: "3"`, `l: "true"`, 1)),
		"no registry":        stopped,
		"another key":        plan(t, resolve.Options{}, strings.Replace(agent, `l: "3"`, `m: "3"`, 1)),
		"another nesting": plan(
			t,
			resolve.Options{},
			strings.Replace(agent, "{k: 2, l", "{k: 2}}, {args_match: {l", 1),
		),
		"lists beside another": plan(t, resolve.Options{}, "x-note: [[], []]\n"+agent),
		"lists in another":     plan(t, resolve.Options{}, "x-note: [[[]]]\n"+agent),
		"a parent":             parent,
		"two parents":          plan(t, resolve.Options{Parent: parent}, agent),
		"a missing policy":     plan(t, resolve.Options{}, named("{policy_ref: p}")),
		"another is missing":   plan(t, resolve.Options{}, named("{policy_ref: q}")),
		"two are missing":      plan(t, resolve.Options{}, named("{policy_ref: p}, {policy_ref: q}")),
		"another second one":   plan(t, resolve.Options{}, named("{policy_ref: p}, {policy_ref: r}")),
		"it is only advice":    plan(t, resolve.Options{}, named("{policy_ref: q, required: false}")),
		"the second advice": plan(
			t,
			resolve.Options{},
			named("{policy_ref: q, required: false}, {policy_ref: p, required: false}"),
		),
		"other semantics": plan(t, resolve.Options{Semantics: resolve.Semantics{Conditions: strict}}, agent),
		"undeclared asks": plan(
			t,
			resolve.Options{Semantics: resolve.Semantics{Undeclared: resolve.UndeclaredAsk}},
			agent,
		),
		"empty is absent": plan(
			t,
			resolve.Options{Semantics: resolve.Semantics{EmptyAllowList: resolve.EmptyIsAbsent}},
			agent,
		),
		"skills replace": plan(
			t,
			resolve.Options{Semantics: resolve.Semantics{RemoteApproval: resolve.SkillReplaces}},
			agent,
		),
		"timeouts approve":     plan(t, resolve.Options{AllowTimeoutApprove: true}, agent),
		"one case-sensitive":   plan(t, resolve.Options{CaseSensitive: []string{"tool a"}}, agent),
		"two case-sensitive":   plan(t, resolve.Options{CaseSensitive: []string{"tool b", "tool a"}}, agent),
		"facts":                plan(t, resolve.Options{Derived: facts("shell")}, agent),
		"other facts":          plan(t, resolve.Options{Derived: facts("line")}, agent),
		"listed facts":         plan(t, resolve.Options{Derived: facts("shell", "ls")}, agent),
		"other case-sensitive": plan(t, resolve.Options{CaseSensitive: []string{"tool a", "mcp_tool b/a"}}, agent),
	} {
		if other, taken := versions[p.Version()]; taken {
			t.Errorf("%q has the version of %q", name, other)
		}
		versions[p.Version()] = name
	}

	commented := strings.Replace(agent, "local_tools:", "# why\n  local_tools:", 1)
	turned := resolve.Options{CaseSensitive: []string{"tool a", "tool b", "tool a"}}
	for name, same := range map[string]bool{
		"a comment":                   plan(t, resolve.Options{}, commented).Version() == grandparent.Version(),
		"the order of what is listed": versions[plan(t, turned, agent).Version()] == "two case-sensitive",
	} {
		if !same {
			t.Errorf("%s changes the version", name)
		}
	}
}

// TestAnApprovalEndsWithAnyChangeOfItsPolicies checks that the binding of a call differs for every
// set of policies.
func TestAnApprovalEndsWithAnyChangeOfItsPolicies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent := agentText(rt)
		texts := policiesText(rt)
		call := callOf(rt)
		if len(texts) == 0 {
			return
		}
		i := rapid.IntRange(0, len(texts)-1).Draw(rt, "which")
		changed := append([]string{}, texts...)
		changed[i] = strings.Replace(texts[i], "{id: r0", "{id: other", 1)
		before, err := plan(t, resolve.Options{}, agent, texts...).Bind(call)
		after, err2 := plan(t, resolve.Options{}, agent, changed...).Bind(call)
		if err != nil || err2 != nil || before == after {
			rt.Fatalf("policy %d of %d changed: %s and %s (%v, %v)", i, len(texts), before, after, err, err2)
		}
	})
}

// TestTheMessageOfAToolListedTwiceIsItsOwn checks both orders of the entries. A parent's template
// does not precede it.
func TestTheMessageOfAToolListedTwiceIsItsOwn(t *testing.T) {
	space := func(entries, blanket string) string {
		return "action_space: {mcp_servers: [{alias: db, approval: " + blanket + ", allowed_tools: [" + entries +
			"]}]}\n"
	}
	call := &resolve.Call{Kind: resolve.MCPTool, Server: "db", Tool: "drop"}
	for _, c := range []struct{ entries, blanket, want string }{
		{
			`drop, {name: drop, approval: {message_template: "its own"}}`,
			`{message_template: "the server's"}`,
			"its own",
		},
		{
			`{name: drop, approval: {message_template: "its own"}}, drop`,
			`{message_template: "the server's"}`,
			"its own",
		},
		{`drop, {name: drop, approval: true}`, `{message_template: "the server's"}`, "the server's"},
		{
			`drop, {name: drop, approval: {message_template: "its own", condition: {args_match: {all: {ne: 1}}}}}`,
			`{message_template: "the server's"}`,
			"its own",
		},
		{
			`drop, {name: drop, approval: {message_template: "first"}}, {name: drop, approval: {message_template: ` +
				`"second"}}`,
			`{message_template: "the server's"}`,
			"first",
		},
	} {
		if got := plan(t, resolve.Options{}, space(c.entries, c.blanket)).Decide(call).Message; got != c.want {
			t.Errorf("%s: %q, want %q", c.entries, got, c.want)
		}
	}

	silent := &resolve.Call{Kind: resolve.MCPTool, Server: "db", Tool: "drop", Args: []byte(`{"all":1}`)}
	p := plan(
		t,
		resolve.Options{},
		space(
			`drop, {name: drop, approval: {message_template: "its own", condition: {args_match: {all: 2}}}}`,
			`{message_template: "the server's"}`,
		),
	)
	if got := p.Decide(silent).Message; got != "the server's" {
		t.Errorf("an entry that does not ask gives the message: %q", got)
	}
	parent := plan(t, resolve.Options{}, space(`{name: drop, approval: {message_template: "the parent's"}}`, "true"))
	child := plan(t, resolve.Options{Parent: parent}, space(`drop`, `{message_template: "the child's server"}`))
	if got := child.Decide(call).Message; got != "the child's server" {
		t.Errorf("a parent's template goes first: %q", got)
	}
}

// TestKeysThatFoldAlikeAreUnreadable checks raw and decoded arguments and the parent's input, with
// and without rules, for every kind of call. Such calls have no binding either.
func TestKeysThatFoldAlikeAreUnreadable(t *testing.T) {
	const agent = `action_space:
  local_tools: [{alias: fetch, approval: {condition: {args_match: {url: {pattern: "^http:"}}}}}, {alias: free}]
  mcp_servers: [{alias: web}]
  remote_agents: [{alias: far}]
  local_agents: [{alias: near, source: s.agf.yaml}]
`
	p := plan(t, resolve.Options{}, agent)
	good := `{"url":"https://fine.example"}`
	for _, evil := range []string{
		`{"url":"https://fine.example","URL":"https://evil.example"}`,
		`{"URL":"https://evil.example","url":"https://fine.example"}`,
		`{"url":"https://fine.example","o":{"toKen":1,"to` + "\u212a" + `en":2}}`,
		`{"url":"https://fine.example","l":[{"ſ":1,"s":2}]}`,
	} {
		for _, call := range []resolve.Call{
			{Kind: resolve.Tool, Tool: "fetch"}, {Kind: resolve.Tool, Tool: "free"}, {
				Kind:   resolve.MCPTool,
				Server: "web",
				Tool:   "get",
			},
			{
				Kind:  resolve.Skill,
				Agent: "far",
				Skill: "get",
			}, {Kind: resolve.Delegation, Agent: "near"}, {Kind: resolve.Delegation, Agent: "far"},
		} {
			raw := call
			decoded := call
			parent := call
			raw.Args = []byte(evil)
			decoded.Values = decode(t, []byte(evil))
			parent.Args = []byte(good)
			parent.ParentInput = []byte(evil)
			for how, c := range map[string]*resolve.Call{"raw": &raw, "decoded": &decoded, "parent": &parent} {
				if got := codes(p.Decide(c)); got != "deny unreadable_arguments" {
					t.Errorf("%s %s, %s: %s", how, c.Kind, evil, got)
				}
				if binding, err := p.Bind(c); err == nil {
					t.Errorf("%s %s, %s: bound as %s", how, c.Kind, evil, binding)
				}
			}
		}
	}

	if got := codes(p.Decide(tool("fetch", good))); got != "allow " {
		t.Error(got)
	}
}

// TestTheOwnerNamesToolsThatTellKeysApart checks exceptions by target. The parent's input has no
// exceptions, and a child's exception needs its parent's.
func TestTheOwnerNamesToolsThatTellKeysApart(t *testing.T) {
	const agent = `action_space:
  local_tools: [{alias: grep}, {alias: other}]
  mcp_servers: [{alias: fs}, {alias: other}]
  remote_agents: [{alias: far}]
  local_agents: [{alias: near, source: s.agf.yaml}]
`
	both := []byte(`{"i":1,"I":2}`)
	opt := resolve.Options{
		CaseSensitive: []string{"tool grep", "mcp_tool fs/a/b", "skill far/find", "delegation near", "delegation far"},
	}
	p := plan(t, opt, agent)
	for _, c := range []struct {
		call resolve.Call
		want string
	}{
		{resolve.Call{Kind: resolve.Tool, Tool: "grep"}, "allow "},
		{resolve.Call{Kind: resolve.Tool, Tool: "other"}, "deny unreadable_arguments"},
		{resolve.Call{Kind: resolve.MCPTool, Server: "fs", Tool: "a/b"}, "allow "},
		{resolve.Call{Kind: resolve.MCPTool, Server: "fs", Tool: "a"}, "deny unreadable_arguments"},
		{resolve.Call{Kind: resolve.MCPTool, Server: "other", Tool: "a/b"}, "deny unreadable_arguments"},
		{resolve.Call{Kind: resolve.Skill, Agent: "far", Skill: "find"}, "allow "},
		{resolve.Call{Kind: resolve.Skill, Agent: "far", Skill: "get"}, "deny unreadable_arguments"},
		{resolve.Call{Kind: resolve.Delegation, Agent: "near"}, "allow "},
		{resolve.Call{Kind: resolve.Delegation, Agent: "far"}, "allow "},
	} {
		raw := c.call
		decoded := c.call
		parent := c.call
		raw.Args = both
		decoded.Values = decode(t, both)
		parent.ParentInput = both
		for how, call := range map[string]*resolve.Call{"raw": &raw, "decoded": &decoded} {
			if got := codes(p.Decide(call)); got != c.want {
				t.Errorf("%s %+v: %s, want %s", how, c.call, got, c.want)
			}
			if _, err := p.Bind(call); (err == nil) != (c.want == "allow ") {
				t.Errorf("%s %+v: bound: %v", how, c.call, err)
			}
		}

		if got := codes(p.Decide(&parent)); got != "deny unreadable_arguments" {
			t.Errorf("parent of %+v: %s", c.call, got)
		}
	}

	duplicate := tool("grep", `{"i":1,"i":2}`)
	if got := codes(p.Decide(duplicate)); got != "deny unreadable_arguments" {
		t.Errorf("a key that stands twice: %s", got)
	}
	for name, parent := range map[string]resolve.Options{"deny unreadable_arguments": {}, "allow ": opt} {
		child := opt
		child.Parent = plan(t, parent, agent)
		call := &resolve.Call{Kind: resolve.Tool, Tool: "grep", Args: both}
		if got := codes(plan(t, child, agent).Decide(call)); got != name {
			t.Errorf("under a parent with %v: %s", parent.CaseSensitive, got)
		}
	}
}

func TestNamesOfCaseSensitiveTargetsAreChecked(t *testing.T) {
	for _, name := range []string{
		"",
		"grep",
		"tool",
		"tool ",
		"tools grep",
		"mcp_tool fs",
		"mcp_tool fs/",
		"mcp_tool /a",
		"skill far",
		"Tool grep",
		"delegation ",
	} {
		p, err := resolve.Compile(
			parseAgent(t, "a.agf.yaml", deskTools),
			nil,
			resolve.Options{CaseSensitive: []string{name}},
		)
		if p != nil || err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q is no target, expected one such as", name)) {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}

	set, _ := policy.NewSet()
	if _, err := resolve.Compile(
		parseAgent(t, "a.agf.yaml", deskTools),
		set,
		resolve.Options{CaseSensitive: []string{"mcp_tool a/b"}},
	); err != nil {
		t.Errorf("a target that the agent has not: %v", err)
	}
}
