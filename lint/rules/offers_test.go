package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

const offeredSchema = `{"type":"object","additionalProperties":false,"required":["amount","status"],"properties":{
	"amount":{"type":"integer","minimum":1,"maximum":3},"status":{"enum":["a","b"]},
	"memo":{"type":"string"},"flag":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}}`

// offeredCalls returns arguments that the tool takes. It covers all differences that the
// generated conditions can see.
func offeredCalls() []string {
	var all []string
	for _, amount := range []string{"1", "2", "3"} {
		for _, status := range []string{"a", "b"} {
			for _, memo := range []string{"", `,"memo":"a"`, `,"memo":"ab"`, `,"memo":"x"`} {
				for _, flag := range []string{"", `,"flag":true`, `,"flag":false`, `,"flag":null`} {
					all = append(all, fmt.Sprintf(`{"amount":%s,"status":%q%s%s}`, amount, status, memo, flag))
				}
			}
		}
	}

	return all
}

// offeredCondition generates a condition over arguments that the tool takes and one that it
// doesn't take.
func offeredCondition(t *rapid.T) string {
	matcher := rapid.Custom(func(t *rapid.T) string {
		key := rapid.SampledFrom([]string{"amount", "status", "memo", "flag", "ghost"}).Draw(t, "key")
		test := rapid.SampledFrom([]string{
			"{gt: 2}", "{gt: 3}", "{lt: 2, gt: 1}", "{lte: 1}", "{gte: 1}", "2", "7", "a", "c", `"2"`, "true",
			"{ne: a}", "{ne: 2}", "{in: [a, c]}", "{in: [2, 9]}", "{not_in: [a, b]}", "{not_in: [1]}",
			`{pattern: "^a"}`, `{pattern: "^z"}`,
		}).Draw(t, "test")
		return key + ": " + test
	})
	key := func(m string) string { before, _, _ := strings.Cut(m, ":"); return before }
	var groups []string
	for range rapid.IntRange(1, 2).Draw(t, "groups") {
		matchers := rapid.SliceOfNDistinct(matcher, 1, 3, key).Draw(t, "matchers")
		groups = append(groups, "{args_match: {"+strings.Join(matchers, ", ")+"}}")
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

// TestWhatIsSaidOfOfferedToolsIsTrue checks the claims of three messages. A group that is
// reported as out of bounds matches no call that the tool takes. If a message says that every
// call asks, each call asks. A call that a message shows as let through is one that the tool
// takes, and it is let through.
func TestWhatIsSaidOfOfferedToolsIsTrue(t *testing.T) {
	list, err := catalog.Parse("t", []byte(`[{"name":"pay","inputSchema":`+offeredSchema+`}]`))
	must.Do(t, err)
	takes, err := jsonschema.Compile("t", []byte(offeredSchema))
	must.Do(t, err)
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf(
			"%s      allowed_tools: [{name: pay, approval: {condition: %s}}]\n",
			claimAgent[:strings.Index(claimAgent, "constraints")]+"action_space:\n  mcp_servers:\n    - alias: bank\n",
			offeredCondition(t),
		)
		agent, findings := schema.Parse("a", []byte(text))
		if agent == nil {
			t.Fatal(text, findings)
		}
		opt := resolve.Options{}
		opt.Semantics.Conditions.OnMissing = condition.Silence(rapid.IntRange(0, 1).Draw(t, "missing"))
		plan, err := resolve.Compile(agent, nil, opt)
		must.Do(t, err)
		asks := func(args string) bool {
			return plan.Decide(&resolve.Call{
				Kind:   resolve.MCPTool,
				Server: "bank",
				Tool:   "pay",
				Args:   []byte(args),
			}).Outcome == resolve.Ask
		}
		gate := (*agent.ActionSpace.MCPServers[0].AllowedTools)[0].Approval.Condition
		linter := lint.New(All(), lint.Options{Catalogs: lint.Catalogs{list}, Semantics: opt.Semantics})
		for _, f := range linter.Worker().Agent("a", []byte(text), nil).Findings {
			_, witness, shown := strings.Cut(f.Message, ", for example ")
			switch {
			case f.Rule == "gate-out-of-bounds":
				counts["dead"]++
				for _, args := range offeredCalls() {
					if trueOf(t, opt, gate, f.Range.Start.Column, args) {
						t.Fatalf("%s%s: %s is true of it", text, f.Message, args)
					}
				}
			case strings.HasSuffix(f.Message, ": every call asks") && len(f.Related) > 0:
				counts["asks"]++
				for _, args := range offeredCalls() {
					if !asks(args) {
						t.Fatalf("%s%s: %s is let through", text, f.Message, args)
					}
				}
			case shown && len(f.Related) > 0 && f.Related[0].File == "t":
				counts["through"]++
				var doc any
				if err := json.Unmarshal([]byte(witness), &doc); err != nil {
					t.Fatal(witness, err)
				}
				for name, filler := range map[string]any{"amount": 1.0, "status": "a"} {
					if args := doc.(map[string]any); args[name] == nil && !strings.Contains(text, name+":") {
						args[name] = filler // no test reads this argument
					}
				}
				if failures := takes.Validate(doc); len(failures) > 0 || asks(witness) {
					t.Fatalf("%s%s: %v", text, f.Message, failures)
				}
			}
		}
	})
	for _, claim := range []string{"dead", "asks", "through"} {
		if counts[claim] == 0 {
			t.Errorf("nothing was said to be %s: %v", claim, counts)
		}
	}
}

// trueOf reports whether the group or matcher that begins at a column matches some arguments.
func trueOf(t *rapid.T, opt resolve.Options, e *condition.Expr, column int, args string) bool {
	doc, err := value.Parse([]byte(args), value.Limits{})
	must.Do(t, err)
	for _, g := range e.Groups {
		end := g.Range.End.Column
		if column < g.Range.Start.Column || column >= end {
			continue
		}
		alone := &condition.Expr{Groups: []condition.Group{g}}
		truth, err := condition.Evaluate(condition.ToolArgs, opt.Semantics.Conditions, alone, doc)
		must.Do(t, err)
		if truth == condition.True {
			return true
		}
	}

	return false
}
