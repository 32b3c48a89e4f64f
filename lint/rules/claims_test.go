package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// claimAgent can make calls of every kind.
const claimAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
constraints: {governance_policies: [{policy_ref: acme.p}]}
action_space:
  local_tools: [{alias: pay}]
  mcp_servers: [{alias: bank}]
  remote_agents: [{alias: payments}]
  local_agents: [{alias: writer, source: writer, source_type: registry}]
`

// claimPolicy generates a policy with one rule. Its condition mixes keys of arguments, keys of
// the parent's input, and keys of neither.
func claimPolicy(t *rapid.T) string {
	match := ""
	if kinds := rapid.SampledFrom([]string{
		"",
		"delegation",
		"skill",
		"tool",
		"tool, mcp_tool",
		"tool, delegation",
		"mcp_tool, skill",
		"skill, delegation",
	}).Draw(t, "kinds"); kinds != "" {
		match = ", match: {kinds: [" + kinds + "]}"
	}

	group := rapid.Custom(func(t *rapid.T) string {
		keys := rapid.SliceOfNDistinct(
			rapid.SampledFrom(
				[]string{"amount", "parent.input.amount", "parent.output.amount", "input.amount", "parent.amount"},
			),
			1,
			2,
			rapid.ID[string],
		)
		var tests []string
		for _, key := range keys.Draw(t, "keys") {
			tests = append(
				tests,
				key+": "+rapid.SampledFrom([]string{"{gt: 10}", "{ne: 5}", "5", "{in: [5, 50]}", "{not_in: [5]}"}).
					Draw(t, "test"),
			)
		}

		return "{args_match: {" + strings.Join(tests, ", ") + "}}"
	})
	groups := rapid.SliceOfN(group, 1, 2).Draw(t, "groups")
	return "schema_version: \"1.0.0\"\npolicy_ref: acme.p\nrules: [{id: r" + match + ", approval: {condition: [" +
		strings.Join(groups, ", ") + "]}}]\n"
}

// claimCall returns a call of one kind. The call of a tool has no parent's input.
func claimCall(kind policy.Kind, args, parent []byte) *resolve.Call {
	c := &resolve.Call{Kind: kind, Args: args}
	switch kind {
	case policy.Tool:
		c.Tool = "pay"
	case policy.MCPTool:
		c.Server, c.Tool = "bank", "send"
	case policy.Skill:
		c.Agent = "payments"
		c.Skill = "refund"
		c.ParentInput = parent
	default:
		c.Agent, c.ParentInput = "writer", parent
	}

	return c
}

// claimCalls returns calls of one kind with many different documents.
func claimCalls(kind policy.Kind) []*resolve.Call {
	var calls []*resolve.Call
	documents := []string{
		`{}`,
		`{"amount":5}`,
		`{"amount":50}`,
		`{"amount":"x"}`,
		`{"amount":5,"input.amount":7}`,
		`{"amount":7,"input.amount":5}`,
	}
	for _, args := range documents {
		for _, parent := range documents {
			calls = append(calls, claimCall(kind, []byte(args), []byte(parent)))
		}
		calls = append(calls, claimCall(kind, []byte(args), nil))
	}

	return calls
}

// witnessCalls returns the calls that a finding gives as an example, one for each kind that has
// such documents.
func witnessCalls(t interface{ Fatal(...any) }, message string, ofDelegation bool) []*resolve.Call {
	_, text, _ := strings.Cut(message, ", for example ")
	args, err := value.Parse([]byte(text), value.Limits{})
	if err != nil {
		t.Fatal(message, err)
	}
	if ofDelegation {
		return []*resolve.Call{claimCall(policy.Delegation, nil, []byte(text))}
	}
	parent, given := args.Get("parent.input")
	if !given {
		parent = value.Value{Kind: value.Object}
	}
	args.Members = slices.DeleteFunc(args.Members, func(m value.Member) bool { return m.Key == "parent.input" })
	var calls []*resolve.Call
	for _, kind := range policy.Kinds() {
		calls = append(calls, claimCall(kind, args.AppendJSON(nil), parent.AppendJSON(nil)))
	}
	return calls
}

// TestWhatTheRulesSayOfUnreadKeysIsTrue checks the claims of argument-key, delegation-key and
// condition-mixed-kinds. If they say that every call of a sort asks, each call asks. If they
// say that other calls are let through, some calls are.
func TestWhatTheRulesSayOfUnreadKeysIsTrue(t *testing.T) {
	agent, findings := schema.Parse("clerk.agf.yaml", []byte(claimAgent))
	if agent == nil {
		t.Fatal(findings)
	}
	linter := lint.New(All(), lint.Options{})
	counts := map[string]int{}
	check := func(t *rapid.T) {
		text := claimPolicy(t)
		pol, findings := policy.Parse("p.policy.yaml", []byte(text))
		if pol == nil {
			t.Fatal(findings)
		}
		set, _ := policy.NewSet(pol)
		plan, err := resolve.Compile(agent, set, resolve.Options{})
		must.Do(t, err)
		met := pol.Rules[0].Match.Kinds
		if len(met) == 0 {
			met = policy.Kinds()
		}
		if slices.Contains(met, policy.Delegation) {
			met = append(slices.Clone(met), policy.Skill)
		}
		passes := func(calls []*resolve.Call) bool { // only the calls that the rule meets
			return slices.ContainsFunc(calls, func(c *resolve.Call) bool {
				return slices.Contains(met, c.Kind) && plan.Decide(c).Outcome == resolve.Allow
			})
		}
		through := func(kinds ...policy.Kind) bool {
			return slices.ContainsFunc(kinds, func(k policy.Kind) bool { return passes(claimCalls(k)) })
		}
		for _, f := range linter.Worker().Policy("p.policy.yaml", []byte(text)).Findings {
			tools, message := []policy.Kind{policy.Tool, policy.MCPTool}, f.Message
			claim, holds := "", true
			switch {
			case f.Rule == "condition-mixed-kinds" && strings.HasPrefix(message, "the call of a tool"):
				claim, holds = "tools ask", !through(tools...)
			case f.Rule == "condition-mixed-kinds":
				claim, holds = "delegations ask", !through(policy.Delegation)
			case f.Rule != "argument-key" && f.Rule != "delegation-key":
				continue
			case strings.HasSuffix(message, "every call asks"):
				claim, holds = "all ask", !through(met...)
			case strings.HasSuffix(message, "every delegation asks"):
				claim, holds = "all ask", !through(policy.Delegation)
			case strings.Contains(message, "only the other tests let a call through, for example "):
				claim, holds = "some pass", passes(witnessCalls(t, message, false))
			case strings.Contains(message, "only the other tests let a delegation through, for example "):
				claim, holds = "some pass", passes(witnessCalls(t, message, true))
			}

			if counts[f.Rule+": "+claim]++; !holds {
				t.Fatalf("%s\n%s: %s", text, f.Rule, message)
			}
		}
	}
	for range 10 { // so that every claim is generated
		rapid.Check(t, check)
	}
	for _, claim := range []string{
		"argument-key: all ask", "argument-key: some pass", "delegation-key: all ask", "delegation-key: some pass",
		"condition-mixed-kinds: tools ask", "condition-mixed-kinds: delegations ask",
	} {
		if counts[claim] == 0 {
			t.Errorf("nothing was drawn of which the rules say %s", claim)
		}
	}

	t.Log(fmt.Sprint(counts))
}
