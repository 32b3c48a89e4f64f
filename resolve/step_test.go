package resolve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

const (
	routes = `{id: agf.conditional, config: {default_agent: writer, routes: [
  {agent: critic, when: {args_match: {parent.input.amount: {gt: 100}}}},
  {agent: clerk, when: [{args_match: {parent.input.kind: a}}, {args_match: {parent.input.amount: 7}}]}]}}`
	noDefault = `{id: agf.conditional, config: {routes: [{agent: critic, when: {args_match: {parent.input.a: 1}}}]}}`
	loops     = `{id: agf.loop, config: {max_iterations: 3, steps: [{agent: writer}, {agent: critic}],
  exit_condition: {args_match: {critic.output.score: {gte: 8}}}}}`
	counted = `{id: agf.loop, config: {max_iterations: 2, steps: [{agent: writer}]}}`
	react   = `{id: agf.react, config: {instructions: T., model: any}}`
)

// TestNextSteps: each row is an execution policy, a question without its kind, and the answer.
func TestNextSteps(t *testing.T) {
	deep := strings.Repeat("[", 127) + strings.Repeat("]", 127)
	for _, c := range []struct{ policy, fields, want string }{
		{routes, `"parent":{"input":{"amount":101,"kind":"a"}}`, `{"agent":"critic","route":0}`},
		{routes, `"parent":{"input":{"amount":100,"kind":"a"}}`, `{"agent":"clerk","route":1}`},
		{routes, `"parent":{"input":{"amount":7}}`, `{"agent":"clerk","route":1}`},
		{routes, `"parent":{"input":{"amount":5,"kind":"b"}}`, `{"agent":"writer"}`},
		{routes, `"parent":{"input":{"amount":"101","kind":"a"}}`, `the condition of route 0 ("critic") can't be told`},
		{routes, `"parent":{"input":{"amount":5}}`, `the condition of route 1 ("clerk") can't be told`},
		{routes, `"parent":{"input":{"kind":"a"}}`, "route 0"},
		{routes, `"parent":{"input":{"amount":101,"amount":1}}`, "amount"},
		{routes, `"parent":{"input":` + deep + `}`, "document"},
		{routes, ``, "route 0"},
		{routes, `"iteration":1`, "no such field"},
		{routes, `"outputs":{}`, "no such field"},
		{routes, `"args":{}`, "no such field"},
		{routes, `"parent"`, "expected"},
		{routes, `"parent":{}`, "parent"},
		{routes, `"parent":{"input":1},"parent":{"input":1}`, "stands twice"},
		{noDefault, `"parent":{"input":{"a":2}}`, "no route matches, and there is no default_agent"},
		{counted, ``, "has no routes"},
		{loops, `"iteration":1,"outputs":{"critic":{"score":8}}`, `{"exit":true,"because":"condition"}`},
		{loops, `"iteration":3,"outputs":{"critic":{"score":8}}`, `{"exit":true,"because":"condition"}`},
		{loops, `"iteration":2,"outputs":{"writer":"x","critic":{"score":7.9}}`, `{"exit":false}`},
		{loops, `"iteration":3,"outputs":{"critic":{"score":7}}`, `{"exit":true,"because":"max_iterations"}`},
		{loops, `"iteration":3`, `{"exit":true,"because":"max_iterations"}`},
		{loops, `"iteration":2`, "the exit_condition can't be told"},
		{loops, `"iteration":2,"outputs":{"critic":{"score":"8"}}`, "the exit_condition can't be told"},
		{loops, `"iteration":1,"outputs":{"critic":{"score":8},"critic":{"score":1}}`, "each agent's alias once"},
		{loops, `"iteration":1,"outputs":{"parent":{"score":8}}`, "each agent's alias once"},
		{loops, `"iteration":1,"outputs":{"critic":{"score":8,"score":1}}`, `outputs: "critic"`},
		{loops, `"iteration":1,"outputs":[]`, "outputs"},
		{loops, `"iteration":1,"parent":{"input":` + deep + `}`, "document"},
		{loops, `"outputs":{"critic":{"score":8}}`, "needs this field"},
		{loops, `"iteration":0`, "a whole number from 1 on"},
		{loops, `"iteration":1.5`, "a whole number from 1 on"},
		{loops, `"iteration":"1"`, "a whole number from 1 on"},
		{counted, `"iteration":1`, `{"exit":false}`},
		{counted, `"iteration":2`, `{"exit":true,"because":"max_iterations"}`},
		{react, `"iteration":2`, `the agent's execution policy is "agf.react", which is no loop`},
	} {
		kind := "route"
		if strings.Contains(c.fields, "iteration") && c.policy != routes || c.policy == loops {
			kind = "loop_exit"
		}
		got := next(t, steps(t, resolve.Options{}, c.policy), kind, c.fields)
		want := strings.Replace(c.want, "{", `{"kind":"`+kind+`",`, 1)
		text := strings.ReplaceAll(got, `\"`, `"`)
		if exact := strings.HasPrefix(want, "{"); exact && got != want || !exact && !strings.Contains(text, want) ||
			!exact && strings.HasPrefix(got, "{") && !strings.Contains(got, `"error"`) {
			t.Errorf("%s {%s}: %s, want %s", kind, c.fields, got, want)
		}
	}
}

// The owner's choices hold as for approvals, and an agent whose calls are all denied takes no step.
func TestNextStepsUnderTheOwnersChoices(t *testing.T) {
	lenient := resolve.Options{
		Semantics: resolve.Semantics{Conditions: condition.Semantics{OnMissing: condition.NoMatch}},
	}
	got := next(t, steps(t, lenient, routes), "route", `"parent":{"input":{}}`)
	if got != `{"kind":"route","agent":"writer"}` {
		t.Error(got)
	}
	stopped := plan(t, resolve.Options{}, stepAgent(routes)+
		"constraints: {governance_policies: [{policy_ref: missing, required: true}]}\n")
	if got := next(t, stopped, "route", `"parent":{"input":{"amount":101}}`); !strings.Contains(got, `"error":`) {
		t.Error(got)
	}
}

// Lines of other kinds are calls, or no questions at all, and ParseCall reports what is wrong with them.
func TestOtherLinesAreNoSteps(t *testing.T) {
	p := steps(t, resolve.Options{}, routes)
	for _, line := range []string{
		`{"kind":"tool","tool":"a"}`, `{"kind":1}`, `{}`, `[]`, `{"kind":"Route"}`,
		`{"kind":"tool","kind":"route"}`, ``,
	} {
		if n := p.NextOf([]byte(line)); n != nil {
			t.Errorf("%s: %v", line, n)
		}
	}
}

func TestNextStepsInWords(t *testing.T) {
	zero, yes, no := 0, true, false
	for want, n := range map[string]resolve.NextStep{
		"route: a (route 0)":                 {Kind: resolve.RouteStep, Agent: "a", Route: &zero},
		"route: a (default)":                 {Kind: resolve.RouteStep, Agent: "a"},
		"loop_exit: exit (condition)":        {Kind: resolve.LoopStep, Exit: &yes, Because: "condition"},
		"loop_exit: continue":                {Kind: resolve.LoopStep, Exit: &no},
		"loop_exit: error: it can't be told": {Kind: resolve.LoopStep, Error: "it can't be told"},
	} {
		if n.String() != want {
			t.Errorf("%q, want %q", n.String(), want)
		}
	}
}

func stepAgent(policy string) string {
	return "schema_version: \"1.0.0\"\nmetadata: {id: desk, name: D, version: \"1.0.0\", description: D}\n" +
		"interface: {input: {type: object}, output: {type: object}}\nexecution_policy: " + policy + "\n" +
		"action_space: {local_agents: [{alias: writer, source: w.agf.yaml}, {alias: critic, source: c.agf.yaml}, " +
		"{alias: clerk, source: d.agf.yaml}]}\n"
}

func steps(t *testing.T, opt resolve.Options, policy string) *resolve.Plan {
	t.Helper()
	return plan(t, opt, stepAgent(policy))
}

// next returns the JSON of an answer.
func next(t *testing.T, p *resolve.Plan, kind, fields string) string {
	t.Helper()
	line := strings.TrimSuffix(`{"kind":"`+kind+`",`+fields, ",") + "}"
	text, err := json.Marshal(p.NextOf([]byte(line)))
	must.Do(t, err)
	return string(text)
}
