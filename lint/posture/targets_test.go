package posture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// anyCall draws calls to names that files declare, that rules match, or that are unknown.
func (d dice) anyCall() resolve.Call {
	name, container := pick(d, "a", "ab", "b", "xb", "ax", "zz"), pick(d, "s", "r", "a", "q")
	call := pick(d,
		resolve.Call{Kind: resolve.Tool, Tool: name},
		resolve.Call{Kind: resolve.MCPTool, Server: container, Tool: name},
		resolve.Call{Kind: resolve.Skill, Agent: container, Skill: name},
		resolve.Call{
			Kind:   resolve.Delegation,
			Agent:  pick(d, "a", "r", "q", "ab"),
			Remote: resolve.Remote(d.IntN(3)),
		},
	)
	call.Args = resolve.Raw(pick(d, domain()...))
	if call.Kind != resolve.Tool && call.Kind != resolve.MCPTool && d.one(2) {
		call.ParentInput = resolve.Raw(pick(d, "{}", `{"k":1}`, `{"k":"x","l":2}`))
	}
	if d.one(2) {
		call.Annotations = pick(d, map[string]bool{"destructiveHint": false}, map[string]bool{"x": false})
	}
	return call
}

// TestNoCallIsMissed checks that there is a change for every call that the two sides decide
// differently.
func TestNoCallIsMissed(t *testing.T) {
	differing, seeds := 0, testtier.Count(60)
	for seed := range uint64(seeds) {
		d := dice{rand.New(rand.NewPCG(seed, 29))}
		old := &Side{Plan: planOf(t, d.options(t), d.space(), d.policies()...)}
		new := &Side{Plan: planOf(t, d.options(t), d.space(), d.policies()...)}
		changes := Compare(old, new)
		for range 120 {
			call := d.anyCall()
			was, is := old.Plan.Decide(&call).Outcome, new.Plan.Decide(&call).Outcome
			if was == is {
				continue
			}
			differing++
			doc := parsed(t, string(call.Args))
			if call.ParentInput != nil {
				doc.Members = append(
					doc.Members,
					value.Member{Key: "parent.input", Value: parsed(t, string(call.ParentInput))},
				)
			}

			names := func(a, b string) bool { return a == b || a == everyOther }
			if !slices.ContainsFunc(changes, func(c Change) bool {
				return c.Aspect == outcomeAspect && c.Kind == string(call.Kind) && names(c.Tool, call.Tool) &&
					names(c.Server, call.Server) && names(c.Agent, call.Agent) && names(c.Skill, call.Skill) &&
					c.From == was.String() && c.To == is.String() && c.region.Has(doc)
			}) {
				text, _ := call.JSON()
				t.Fatalf("seed %d: %s: %s → %s is not among\n%s", seed, text, was, is, told(changes))
			}
		}
	}

	if differing < 3*seeds {
		t.Errorf("only %d calls are decided otherwise", differing)
	}
}

// TestNamesAreToldApart checks that every name is in the cell of the globs that match it.
func TestNamesAreToldApart(t *testing.T) {
	pattern := rapid.StringMatching(`[ab*]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		globs := rapid.SliceOfN(pattern, 0, 4).Draw(t, "globs")
		all, ok := cells(globs)
		if !ok {
			t.Fatal("too many")
		}
		matched := func(name string) string {
			var out []string
			for _, g := range globs {
				if policy.Glob(g, name) {
					out = append(out, g)
				}
			}
			slices.Sort(out)
			return fmt.Sprint(slices.Compact(out))
		}
		seen := map[string]bool{}
		for _, c := range all {
			if key := matched(c.name); seen[key] {
				t.Fatalf("two cells for %s", key)
			} else {
				seen[key] = true
			}
		}

		for range 20 {
			name := rapid.StringMatching(`[abc]{1,6}`).Draw(t, "name")
			if !seen[matched(name)] {
				t.Fatalf("%s matches %s, which no cell does: %v", name, matched(name), all)
			}
		}
	})
}

// TestTooManyNamesAreUndecided checks names that take too many states.
func TestTooManyNamesAreUndecided(t *testing.T) {
	var globs []string
	for i := range 24 {
		globs = append(globs, fmt.Sprintf(`"*%c*%c*"`, 'a'+i%12, 'm'+i%13))
	}
	server := "{mcp_servers: [{alias: s}]}"
	rule := policyText("p", "{id: r, match: {targets: ["+strings.Join(globs, ", ")+"]}, approval: true}")
	report := NewReport(Compare(
		&Side{Plan: planOf(t, resolve.Options{}, server)},
		&Side{Plan: planOf(t, resolve.Options{}, server, rule)},
	))
	if report.Verdict != VerdictUndecided || !strings.Contains(told(report.Changes), "too many to tell apart") {
		t.Errorf("%s\n%s", report.Verdict, told(report.Changes))
	}
}

// TestTooMuchIsUndecided checks too many annotations, and requirements that depend on too many
// conditions.
func TestTooMuchIsUndecided(t *testing.T) {
	space := tools("{alias: t}")
	old := &Side{Plan: planOf(t, resolve.Options{}, space)}
	hints := policyText("p", "{id: r, match: {annotations: {a: true, b: true, c: true, d: true, e: true, f: true, g: true}}, approval: true}")
	report := NewReport(Compare(old, &Side{Plan: planOf(t, resolve.Options{}, space, hints)}))
	if report.Verdict != VerdictUndecided || !strings.Contains(told(report.Changes), "more than 6 annotations") {
		t.Errorf("%s\n%s", report.Verdict, told(report.Changes))
	}
	var was, is, moved []string
	for i := range mostApart + 1 {
		rule := "{id: r%d, approval: {condition: [{args_match: {k%d: 1}}]}, require: {stages: [{group: g%d, people: %d}]}}"
		was, is = append(was, fmt.Sprintf(rule, i, i, i, 1)), append(is, fmt.Sprintf(rule, i, i, i, 1+i%2))
	}
	moved = append(moved, was[:mostApart]...)
	moved = append(moved, strings.Replace(was[mostApart], fmt.Sprintf("{k%d", mostApart), "{other", 1))
	for _, rules := range [][]string{is, moved} {
		report = NewReport(Compare(
			&Side{Plan: planOf(t, resolve.Options{}, space, policyText("p", was...))},
			&Side{Plan: planOf(t, resolve.Options{}, space, policyText("p", rules...))},
		))
		if report.Verdict.Safe() || !strings.Contains(told(report.Changes), "require undecided") {
			t.Errorf("%s\n%s", report.Verdict, told(report.Changes))
		}
	}
}
