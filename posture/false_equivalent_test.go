package posture

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// hardMatchers are tests of one argument that are easily taken for each
// other.
func hardMatchers() []string {
	return []string{
		"{}", "5", `"5"`, "5.0", "-0", "0", "0.1", "9007199254740993", "9007199254740992", "1.7e308", "true",
		`"true"`, `"null"`, `""`, `" "`, `"k"`, `"K"`, `"é"`, `"e\u0301"`, "{ne: 5}", `{ne: "5"}`, "{ne: true}",
		"{gt: 5}", "{gte: 5}", "{lt: 5}", "{lte: 5}", "{gt: 0}", "{gt: -0.0}", "{in: []}", "{not_in: []}",
		`{in: [5, "5"]}`,
		`{in: ["5"]}`, "{not_in: [5]}", "{not_in: [5, 5.0]}", "{pattern: ''}", "{pattern: '5'}", "{pattern: '^5$'}",
		"{pattern: '^5\\z'}", "{pattern: '(?m)^5$'}", "{pattern: '\\A5\\z'}", "{pattern: '(?i)k'}",
		"{pattern: '[kK]'}",
		"{pattern: '(?i)^k$'}", "{pattern: '^.$'}", "{pattern: '(?s)^.$'}", "{pattern: '^[^\\n]$'}",
		"{pattern: '\\d'}",
		"{pattern: '[0-9]'}", "{pattern: '\\pN'}", "{pattern: '\\bk'}", "{pattern: '\\Bk'}", "{pattern: '^\\s*$'}",
		"{pattern: '^$'}", "{pattern: 'k|'}", "{pattern: '^k|5$'}", "{pattern: '^(k|5)$'}", "{pattern: 'é'}",
		"{gt: 3, lt: 2}", `{ne: "x", pattern: 'x'}`,
	}
}

// hardValues are arguments that tell them apart; "" is a missing one.
func hardValues() []string {
	return []string{
		"", "null", "true", "false", "5", "5.0", "5e0", "-0", "0", "0.0", "0.1", "0.10000000000000000001",
		"1.7e308", "5e-324",
		"9007199254740993", "9007199254740992", "-5", "6", `"5"`, `" 5 "`, `"5\n"`, `"\n5"`, `"a\n5\nb"`, `"5.0"`,
		`"true"`, `"null"`,
		`""`, `" "`, `"\n"`, `"\u00a0"`, `"k"`, `"K"`, `"\u212a"`, `" k"`, `"ak"`, `"k5"`, `"é"`, `"e\u0301"`,
		`"\u0665"`, `"x"`, "[]",
		"[5]", "{}", `{"k":5}`,
	}
}

// TestNoEquivalenceIsFalse: each two of the tests, there and back, with
// the readings of both sides. Whatever argument the two sides decide
// otherwise must be in the region of a change, or under an undecided
// one.
func TestNoEquivalenceIsFalse(t *testing.T) {
	readings := []condition.Semantics{
		{},
		{
			OnMissing:  condition.NoMatch,
			OnMismatch: condition.NoMatch,
			Anchor:     condition.Full,
			Trim:       condition.RawOnly,
		},
	}
	sides := map[string][]*Side{}
	for _, m := range hardMatchers() {
		for _, sem := range readings {
			space := tools("{alias: t, approval: {condition: [{args_match: {k: " + m + "}}]}}")
			opt := resolve.Options{Semantics: resolve.Semantics{Conditions: sem}}
			sides[m] = append(sides[m], &Side{Plan: planOf(t, opt, space)})
		}
	}

	differing, undecided := 0, 0
	for i, a := range hardMatchers() {
		for j, b := range hardMatchers() {
			old, new := sides[a][i%2], sides[b][(i+j)%2]
			found, open := heldAgainst(t, a+" and "+b, old, new)
			differing += found
			undecided += open
		}
	}

	if differing < 1000 || undecided > 0 {
		t.Errorf("%d values were decided otherwise, %d pairs undecided", differing, undecided)
	}
}

// heldAgainst checks each value, and counts those that the sides decide
// otherwise and the undecided changes.
func heldAgainst(t *testing.T, what string, old, new *Side) (differing, undecided int) {
	t.Helper()
	changes := Compare(old, new)
	for _, c := range changes {
		if c.Effect == Undecided {
			t.Logf("%s: %s", what, told(changes))
			undecided++
		}
	}

	for _, v := range hardValues() {
		text := "{}"
		if v != "" {
			text = `{"k":` + v + "}"
		}
		call := resolve.Call{Kind: resolve.Tool, Tool: "t", Args: resolve.Raw(text)}
		was, is := old.Plan.Decide(&call).Outcome, new.Plan.Decide(&call).Outcome
		doc := parsed(t, text)
		there := slices.ContainsFunc(changes, func(c Change) bool {
			return c.region != nil && c.From == was.String() && c.To == is.String() && c.region.Has(doc)
		})
		if there != (was != is) {
			t.Fatalf("%s: %s: %s → %s, and the changes are\n%s", what, text, was, is, told(changes))
		}
		if was != is {
			differing++
		}
	}

	return differing, undecided
}
