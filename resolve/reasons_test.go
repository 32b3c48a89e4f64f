package resolve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func TestMatchers(t *testing.T) {
	d := plan(t, resolve.Options{}, deskTools).Decide(tool("trade", `{"amount":"secret","currency":"USD"}`))
	got, err := json.Marshal(d.Reasons[0].Matchers)
	must.Do(t, err)
	const want = `[{"group":0,"key":"amount","test":"gt ` +
		`10000","truth":"unknown","why":"type_mismatch","seen":"string of 6 characters","line":10,"column":34},` +
		`{"group":0,"key":"currency","test":"equals \"USD\"","truth":"true","why":"matched","seen":"string of 3 ` +
		`characters","line":10,"column":55}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if all, err := json.Marshal(d); err != nil ||
		strings.Contains(strings.Replace(string(all), d.Message, "", 1), "secret") {
		t.Errorf("a reason shows an argument: %s, %v", all, err)
	}
}

// TestWhoseMessage checks that the agent's own template precedes any policy's, at every gate, and
// that an empty one is ignored.
func TestWhoseMessage(t *testing.T) {
	const agent = `action_space:
  local_tools: [{alias: trade, approval: {message_template: ""}}, {alias: mine, approval: {message_template: "mine"}}]
  remote_agents: [{alias: far, approval: {message_template: "hand over"}}, {alias: quiet, approval: true}]
`
	const early = "policy_ref: a\napplies: implicit\nrules: [{id: r, approval: {message_template: early}}]\n"
	const late = "policy_ref: b\napplies: implicit\nrules: [{id: d, match: {kinds: [delegation]}, approval: " +
		"{message_template: above}}, {id: s, match: {kinds: [skill]}, approval: {message_template: below}}]\n"
	for _, c := range []struct {
		call     *resolve.Call
		policies []string
		want     string
	}{
		{tool("trade", `{}`), nil, `Agent "desk" asks to call tool "trade" with arguments {}`},
		{tool("trade", `{}`), []string{early}, "early"},
		{tool("mine", `{}`), []string{early}, "mine"},
		{&resolve.Call{Kind: resolve.Skill, Agent: "far", Skill: "x"}, []string{early}, "hand over"},
		{&resolve.Call{Kind: resolve.Skill, Agent: "quiet", Skill: "x"}, []string{late, early}, "early"},
		{&resolve.Call{Kind: resolve.Skill, Agent: "quiet", Skill: "x"}, []string{late}, "above"},
		{&resolve.Call{
			Kind:  resolve.Skill,
			Agent: "quiet",
			Skill: "x",
		}, []string{strings.Replace(late, "{id: s", "\n  {id: s", 1)}, "above"},
	} {
		if got := plan(t, resolve.Options{}, agent, c.policies...).Decide(c.call).Message; got != c.want {
			t.Errorf("%+v with %d policies: %q, want %q", c.call, len(c.policies), got, c.want)
		}
	}
}

// TestDenyBesideApproval checks that a rule that both denies and asks denies.
func TestDenyBesideApproval(t *testing.T) {
	p := plan(
		t,
		resolve.Options{},
		deskTools,
		policyText("p", []string{"{id: r, deny: no, approval: {condition: {args_match: {a: 1}}}}"}),
	)
	if got := codes(p.Decide(tool("free", `{"a":1}`))); got != "deny denied,condition_true" {
		t.Error(got)
	}
	if got := codes(p.Decide(tool("free", `{"a":2}`))); got != "deny denied" {
		t.Error(got)
	}
}

// TestManyReasonsKeepTheirOrder checks the order of many reasons: denials first, then by policy and
// position.
func TestManyReasonsKeepTheirOrder(t *testing.T) {
	var rules, denials, asks []string
	for i := range 40 {
		id := fmt.Sprintf("r%02d", i)
		if i%3 == 0 {
			rules, denials = append(rules, "{id: "+id+", deny: no}"), append(denials, id)
		} else {
			rules, asks = append(rules, "{id: "+id+", approval: true}"), append(asks, id)
		}
	}

	d := plan(t, resolve.Options{}, deskTools, policyText("p", rules)).Decide(tool("free", `{}`))
	var got []string
	for _, r := range d.Reasons {
		got = append(got, r.Rule)
	}
	if want := append(denials, asks...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestGrandparents checks that the rules of an agent apply to all agents below it, with the
// policies it was compiled with, even if the registry now has another version of them. Servers
// without a server_ref are the same only if their alias is.
func TestGrandparents(t *testing.T) {
	space := func(server, approval string) string {
		return "action_space: {local_tools: [{alias: trade" + approval +
			"}, {alias: other}], mcp_servers: [{alias: " + server + approval + "}]}\n"
	}
	old := policyText("p", []string{"{id: before, match: {targets: [other]}, approval: true}"})
	now := policyText("p", []string{"{id: since, match: {targets: [other]}, approval: {message_template: m}}"})
	top := plan(t, resolve.Options{}, space("top", ", approval: true"), old)
	middle := plan(t, resolve.Options{Parent: top}, space("middle", ""), now)
	p := plan(t, resolve.Options{Parent: middle}, space("low", ""), now)
	if got := codes(p.Decide(tool("trade", `{}`))); got != "ask always" {
		t.Errorf("the grandparent's approval: %s", got)
	}
	if got := fmt.Sprint(spoke(p.Decide(tool("other", `{}`)))); got != "[policy p before always policy p since always]" {
		t.Errorf("both versions of a policy: %s", got)
	}
	if got := codes(p.Decide(&resolve.Call{Kind: resolve.MCPTool, Server: "low", Tool: "x"})); got != "allow " {
		t.Errorf("another server: %s", got)
	}
}

// TestParentsBindTheOwnersChoices checks that a child compiled with looser settings than its parent
// decides with the parent's.
func TestParentsBindTheOwnersChoices(t *testing.T) {
	const pol = "policy_ref: p\napplies: implicit\nrules: [{id: r, match: {targets: [trade]}, approval: true, " +
		"require: {on_timeout: approve}}]\n"
	loose := resolve.Options{
		Semantics:           resolve.Semantics{Undeclared: resolve.UndeclaredAsk},
		AllowTimeoutApprove: true,
	}
	loose.Parent = plan(t, resolve.Options{}, deskTools)
	p := plan(t, loose, deskTools, pol)
	if got := codes(p.Decide(tool("nobody", `{}`))); got != "deny not_declared" {
		t.Error(got)
	}
	d := p.Decide(tool("trade", `{"amount":1,"currency":"USD"}`))
	if d.Require == nil || d.Require.OnTimeout != policy.TimeoutDeny {
		t.Errorf("%+v", d.Require)
	}
}
