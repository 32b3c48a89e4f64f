package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const deskFile = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades, namespace: acme.finance}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
  local_tools:
    - alias: trade
      approval:
        message_template: "Trade {{tool_args.amount}}?"
        condition: {args_match: {amount: {gt: 100}}}
    - {alias: look}
    - {alias: burn}
  mcp_servers:
    - {alias: files, approval: {condition: {args_match: {all: true}}}}
`

const deskPolicy = `schema_version: "1.0.0"
policy_ref: desk
applies: implicit
rules:
  - id: large
    match: {kinds: [tool], targets: [trade]}
    approval: {condition: {args_match: {amount: {gt: 9000}}}}
    require: {stages: [{group: risk, people: 2}], within: 30m, on_timeout: deny}
  - id: never
    match: {targets: [burn]}
    deny: "Nothing is burnt."
`

func planOf(t testing.TB, file string, policies ...string) *resolve.Plan {
	t.Helper()
	a, findings := schema.Parse("desk.agf.yaml", []byte(file))
	if a == nil {
		t.Fatal(findings)
	}
	var all []*policy.Policy
	for _, p := range policies {
		parsed, findings := policy.Parse("p.policy.yaml", []byte(p))
		if parsed == nil {
			t.Fatal(findings)
		}
		all = append(all, parsed)
	}

	set, findings := policy.NewSet(all...)
	if set == nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(a, set, resolve.Options{})
	if plan == nil {
		t.Fatal(err)
	}
	return plan
}

func TestByPlanDecides(t *testing.T) {
	d := ByPlan(planOf(t, deskFile, deskPolicy), PlanOptions{Principal: "ann", Session: "s"})
	var c counted
	tools := map[string]Tool{"trade": c.tool("trade"), "look": c.tool("look")}
	remote := WithTarget(c.tool("wipe_files"), Target{Kind: resolve.MCPTool, Server: "files", Tool: "wipe"})
	for name, tt := range map[string]struct {
		tool Tool
		call content.ToolCall
		want resolve.Outcome
	}{
		"small":                  {tools["trade"], call("1", "trade", `{"amount":5}`), resolve.Allow},
		"large":                  {tools["trade"], call("1", "trade", `{"amount":500}`), resolve.Ask},
		"too large":              {tools["trade"], call("1", "trade", `{"amount":9001}`), resolve.Ask},
		"no amount":              {tools["trade"], call("1", "trade", ""), resolve.Ask},
		"a text for an amount":   {tools["trade"], call("1", "trade", `{"amount":"5"}`), resolve.Ask},
		"denied":                 {c.tool("burn"), call("1", "burn", ""), resolve.Deny},
		"harmless":               {tools["look"], call("1", "look", ""), resolve.Allow},
		"another case":           {nil, call("1", "Trade", `{"amount":5}`), resolve.Deny},
		"not in the file":        {nil, call("1", "other", ""), resolve.Deny},
		"keys twice":             {tools["trade"], call("1", "trade", `{"amount":5,"amount":500}`), resolve.Deny},
		"no JSON":                {tools["trade"], call("1", "trade", `{`), resolve.Deny},
		"a function of a server": {remote, call("1", "wipe_files", `{"all":true}`), resolve.Ask},
		"wrapped":                {RequireApproval(remote), call("1", "wipe_files", `{"all":false}`), resolve.Allow},
		"a hosted call":          {nil, mcpRequest("r").Call, resolve.Ask},
		"another server":         {nil, &content.MCPCall{ServerName: "other", Name: "wipe"}, resolve.Deny},
	} {
		v, err := d.Decide(t.Context(), tt.tool, tt.call)
		if err != nil || v.Outcome != tt.want || v.Call == nil {
			t.Errorf("%s: %v (%v), %v", name, v.Outcome, v.Reasons, err)
		}
		if (v.Outcome == resolve.Ask) != (v.Binding != "") {
			t.Errorf("%s: binding %q", name, v.Binding)
		}
	}
}

func TestByPlanBinds(t *testing.T) {
	plan := planOf(t, deskFile)
	c := call("1", "trade", `{"amount":500}`)
	var n counted
	bind := func(tool Tool, opt PlanOptions, c content.ToolCall) string {
		v := must.Get(ByPlan(plan, opt).Decide(t.Context(), tool, c))(t)
		return v.Binding
	}
	trade := n.tool("trade")
	base := bind(trade, PlanOptions{}, c)
	if bind(trade, PlanOptions{}, call("2", "trade", ` { "amount": 5e2 } `)) != base {
		t.Error("another spelling, another binding")
	}
	for name, other := range map[string]string{
		"arguments":   bind(trade, PlanOptions{}, call("1", "trade", `{"amount":501}`)),
		"description": bind(NewFunction("trade", "x", nil, nil), PlanOptions{}, c),
		"schema":      bind(NewFunction("trade", "does trade", json.RawMessage(`{}`), nil), PlanOptions{}, c),
		"bad schema":  bind(NewFunction("trade", "does trade", json.RawMessage(`{`), nil), PlanOptions{}, c),
		"principal":   bind(trade, PlanOptions{Principal: "x"}, c),
		"session":     bind(trade, PlanOptions{Session: "x"}, c),
		"input":       bind(trade, PlanOptions{ParentInput: json.RawMessage(`{}`)}, c),
	} {
		if other == base || other == "" {
			t.Errorf("%s does not change the binding", name)
		}
	}
}

// TestPlanInALoop runs an agent with its agent file.
func TestPlanInALoop(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		d := ByPlan(planOf(t, deskFile, deskPolicy), PlanOptions{})
		k := talk(
			t,
			said(
				call("1", "trade", `{"amount":5}`),
				call("2", "trade", `{"amount":500}`),
				call("3", "trade", `{"amount":9500}`),
				call("4", "other", ""),
			),
			said(text("ok")),
		)
		a := chat(k, LoopConfig{Decider: d}, nil, c.tool("trade"), c.tool("other"))
		th, q := t.asks(a, "x")
		if q.Note.Message != "Trade 500?" || len(c.runs) != 1 {
			t.Fatal(q.Note, c.runs)
		}
		th = reload(t, th)
		resp := t.run(a, th, answers(sure(q.CreateEdit(json.RawMessage(`{"amount":9999}`), ""))))
		expect(t, "refused", refusals(resp), "ficc_2 bad_answer")
		t.run(a, th, answers(sure(q.CreateEdit(json.RawMessage(`{"amount":400}`), ""))))
		if c.runs[`trade{"amount":400}`] != 1 || len(c.runs) != 2 {
			t.Error(c.runs)
		}
		got := k.last()
		for _, want := range []string{
			`1→"did trade"`,
			`2→"did trade"`,
			`3→"Tool call not run: it needs the approval of 2 of risk`,
			`4→"Tool call denied:`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing:\n%s", want, got)
			}
		}
	})
}

// TestPlanChangesMeanwhile answers after the agent file has changed.
func TestPlanChangesMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want string
	}{
		"the same":      {deskFile, "ran"},
		"higher limit":  {strings.Replace(deskFile, "gt: 100}", "gt: 1000}", 1), "ran"},
		"a lower limit": {strings.Replace(deskFile, "gt: 100}", "gt: 10}", 1), "asked"},
		"gone":          {strings.Replace(deskFile, "alias: trade", "alias: traded", 1), "denied"},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			k := talk(t, said(call("1", "trade", `{"amount":500}`)), said(text("ok")))
			th := NewThread("t")
			q := approvalOf(
				t,
				t.run(
					chat(k, LoopConfig{Decider: ByPlan(planOf(t, deskFile), PlanOptions{})}, nil, c.tool("trade")),
					th,
					content.UserText("x"),
				),
				0,
			)
			a := chat(k, LoopConfig{Decider: ByPlan(planOf(t, tt.file), PlanOptions{})}, nil, c.tool("trade"))
			resp := t.yes(a, reload(t, th), q)
			got := "denied"
			if len(resp.UserInputRequests()) > 0 {
				got = "asked"
			}
			if len(c.runs) > 0 {
				got = "ran"
			}
			expect(t, "what became of it", got, tt.want)
		})
	}
}

func TestTargets(t *testing.T) {
	f := NewFunction("f", "", nil, nil)
	if targetOf(f) != nil || targetOf(nil) != nil || targetOf(RequireApproval(f)) != nil ||
		targetOf(declaredTool("x")) != nil {
		t.Error("a target out of nowhere")
	}
	if got := targetOf(RequireApproval(WithTarget(f, Target{Agent: "x"}))); got == nil || got.Agent != "x" {
		t.Error(got)
	}
	if DefinitionDigest(nil) != "" || DefinitionDigest(f) == "" {
		t.Error("digests")
	}
	if !NeedsApproval(WithTarget(RequireApproval(f), Target{})) {
		t.Error("the marker is lost in a target")
	}
}
