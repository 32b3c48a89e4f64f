package condition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/value"
)

// shortTexts returns all texts of a, b and space with up to three characters.
func shortTexts() []string {
	all := []string{""}
	for from := 0; len(all[from]) < 3; from++ {
		for _, c := range []string{"a", "b", " "} {
			all = append(all, all[from]+c)
		}
	}
	return all
}

// textSet is a set of texts with a function for its expected content.
type textSet struct {
	set  texts
	want func(s string) bool
	how  string
}

// textSets draws sets that are built in the same way as in the analysis.
func textSets(a *Analyzer, pool []string) *rapid.Generator[textSet] {
	lists := rapid.SliceOfN(rapid.SampledFrom(shortTexts()), 0, 3)
	leaf := rapid.Custom(func(t *rapid.T) textSet {
		op := rapid.SampledFrom([]Op{Pattern, Pattern, In, NotIn}).Draw(t, "op")
		src := Test{Op: op}
		if op == Pattern {
			src.Operand = text(rapid.SampledFrom(pool).Draw(t, "pattern"))
		} else {
			for _, s := range lists.Draw(t, "list") {
				src.List = append(src.List, text(s))
			}
		}

		if rapid.IntRange(0, 2).Draw(t, "newer") == 0 {
			newer := []Op{NotPattern, StartsWith, EndsWith, Length, PathInside, NotPathInside, Host, NotHost}
			src = testOf(t, rapid.SampledFrom(newer).Draw(t, "newer op"), pool)
		}
		compiled := newTest(&src, a.reading.sem, a.patternsOf(a.reading.sem))
		for _, p := range a.patterns {
			p.compile()
		}
		least := rapid.SampledFrom([]Truth{True, Unknown}).Draw(t, "level")
		level := a.ask().levelSet(&compiled, least)
		truth := func(s string) bool {
			return compiled.truth(&value.Slot{Kind: value.String, Text: s}, nil) >= least
		}
		return textSet{level.texts, truth, fmt.Sprint(&src)}
	})
	return rapid.Custom(func(t *rapid.T) textSet {
		all := leaf.Draw(t, "first")
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			x, y := all, leaf.Draw(t, "next")
			if rapid.Bool().Draw(t, "without") {
				all = textSet{x.set.minus(y.set), func(s string) bool {
					return x.want(s) && !y.want(s)
				}, "(" + x.how + " minus " + y.how + ")"}
			} else {
				all = textSet{x.set.and(y.set), func(s string) bool {
					return x.want(s) && y.want(s)
				}, "(" + x.how + " and " + y.how + ")"}
			}
		}

		return all
	})
}

// Intersection and difference have exactly the expected elements, and a picked text is in the
// set.
func TestSetsOfTextsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := NewAnalyzer(ToolArgs, semantics().Draw(t, "semantics"), 0)
		pool := rapid.SliceOfN(regexes(), 1, 3).Draw(t, "patterns")
		x, y := textSets(a, pool).Draw(t, "x"), textSets(a, pool).Draw(t, "y")
		both, less := x.set.and(y.set), x.set.minus(y.set)
		for _, s := range shortTexts() {
			inX, inY := x.want(s), y.want(s)
			if x.set.has(s) != inX || both.has(s) != (inX && inY) || less.has(s) != (inX && !inY) {
				t.Fatalf(
					"%q: in %s %v, in %s %v\nbut the sets say %v, both %v, less %v",
					s,
					x.how,
					inX,
					y.how,
					inY,
					x.set.has(s),
					both.has(s),
					less.has(s),
				)
			}
		}

		for _, set := range []*texts{&x.set, &both, &less} {
			s, verdict := set.pick(&effort{states: defaultStates, steps: maxSteps})
			switch {
			case verdict == Yes && !set.has(s):
				t.Fatalf("%q was picked, and is not in %s or %s", s, x.how, y.how)
			case verdict == No && slices.ContainsFunc(shortTexts(), set.has):
				t.Fatalf("nothing was picked of %s and %s", x.how, y.how)
			}
		}
	})
}

// A call that matches neither group is let through.
func TestThePatternOfTwoGroupsIsRemovedOnce(t *testing.T) {
	for _, groups := range []string{
		`{args_match: {a: {pattern: '^x'}}}, {args_match: {a: {pattern: '^x'}}}`,
		`{args_match: {a: {pattern: '^x'}}}, {args_match: {a: {pattern: '^x'}}}, {args_match: {a: {pattern: '^y'}}}`,
	} {
		e := sound(t, "["+groups+"]")
		verdict, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).CanBeFalse(e)
		if verdict != Yes {
			t.Fatalf("%s: %v", groups, verdict)
		}
		if truth, _ := eval(t, ToolArgs, Semantics{}, e, string(witness.AppendJSON(nil))); truth != False {
			t.Errorf("%s: %s is %v", groups, witness.AppendJSON(nil), truth)
		}
	}
}

// Keys that split a group don't affect each other.
func TestManyKeysInAnyOrderAreOneCondition(t *testing.T) {
	keys := []string{"a: 1", "b: 2", "c: 3", "d.e: 4", "f: 5", "g.h: 6"}
	x := sound(t, match(strings.Join(keys, ", ")))
	for range keys {
		keys = append(keys[1:], keys[0])
		y := sound(t, match(strings.Join(keys, ", ")))
		a := NewAnalyzer(ToolArgs, Semantics{}, 0)
		if verdict, witness := equivalent(a, x, y); verdict != Yes {
			t.Errorf("%v: %s", keys, answer(verdict, witness))
		}
		for i, level := range []Truth{True, Unknown} {
			q := a.ask()
			// The key itself and the path; for Unknown also neither of them. There are two such
			// keys.
			if n := len(q.boxes(y, level)); n != []int{4, 9}[i] {
				t.Errorf("%v: %d boxes", keys, n)
			}
		}
	}
}

// The number of states limits the cost of one question.
func TestStatesBoundWhatOneQuestionMayCost(t *testing.T) {
	e := sound(t, match(`a: {pattern: '^[ab]*a[ab]{3}\bb$'}`))
	for states, want := range map[int]Verdict{-1: No, 0: No, 1: Undecided, 10: Undecided, 1000: No} {
		if verdict, _ := NewAnalyzer(ToolArgs, Semantics{}, states).Satisfiable(e); verdict != want {
			t.Errorf("%d states: %v, want %v", states, verdict, want)
		}
	}
}

// Every alternative of a pattern counts, with its own anchors.
func TestEveryAlternativeOfAPatternCounts(t *testing.T) {
	const pattern = `^ab|cd$|ef|^gh$`
	for _, word := range []string{"ab", "cd", "ef", "gh"} {
		for _, s := range []string{word, "x" + word, word + "x", "x" + word + "x"} {
			got := newCompiled(t, pattern, Semantics{}).holds(s)
			if want := reference(t, pattern, Semantics{}, s); got != want {
				t.Errorf("%q: %v, want %v", s, got, want)
			}
		}
	}
}

// Names consist of ASCII letters, underscores, and digits after the first character.
func TestNamesInPathsAreOfASCII(t *testing.T) {
	for c := range 128 {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		for name, want := range map[string]bool{string(rune(c)): letter, "a" + string(rune(c)): letter || digit} {
			if c == '.' {
				continue
			}
			for _, key := range []string{"parent.input." + name, name + ".output.x"} {
				if places, _ := Places(Route, key); (places != nil) != want {
					t.Errorf("%q: %q", key, places)
				}
			}
		}
	}
}

// The severity of a rule equals that of its findings.
func TestTheSeverityOfARuleIsThatOfItsFindings(t *testing.T) {
	for _, r := range Rules() {
		text, _ := strings.CutPrefix(r.Bad, "condition:\n")
		_, findings := read(t, text)
		for _, f := range findings {
			if f.Severity != r.Severity {
				t.Errorf("%s: %v, and its bad example is %v", r.ID, r.Severity, f.Severity)
			}
		}
	}
}

// A value that is not an object has no nested values, whichever of several paths into it is
// required.
func TestWhatIsNoObjectHasNothingBelow(t *testing.T) {
	lenient := Semantics{OnMissing: NoMatch} // so that a.b may be missing
	groups := []string{
		"parent.input.a: {ne: 5}",
		"parent.input.a.b: 1",
		"parent.input.a.c: {ne: 1}",
		"parent.input.a.d: 1",
	}
	for range groups {
		groups = append(groups[1:], groups[0])
		var list []string
		for _, g := range groups {
			list = append(list, match(g))
		}
		e := sound(t, "["+strings.Join(list, ", ")+"]")
		// a is 5, and a.c is 1.
		if verdict, witness := NewAnalyzer(Delegation, lenient, 0).CanBeFalse(e); verdict != No {
			t.Errorf("%v: %s", groups, answer(verdict, witness))
		}
		if verdict, witness := NewAnalyzer(Delegation, lenient, 0).Satisfiable(e); verdict != Yes {
			t.Errorf("%v: %s", groups, answer(verdict, witness))
		}
	}
}

// The parent of a path is the longest other path that is its prefix, in any order.
func TestThePathsOfAQuestionFormATree(t *testing.T) {
	paths := [][]string{
		{"a"},
		{"a", "b"},
		{"a", "b", "c"},
		{"a", "b", "c", "d"},
		{"ab"},
		{"x", "y"},
		{"x", "y", "z"},
		{"x"},
	}
	parents := map[string]string{"a.b": "a", "a.b.c": "a.b", "a.b.c.d": "a.b.c", "x.y": "x", "x.y.z": "x.y"}
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.Permutation(paths).Draw(t, "places")
		name := func(i int) string { return strings.Join(places[i], ".") }
		tree := treeOf(places)
		for _, i := range tree.roots {
			if parents[name(i)] != "" {
				t.Fatalf("%v: %s is a root", places, name(i))
			}
		}
		below := 0
		for i, children := range tree.children {
			for _, child := range children {
				if below++; parents[name(child)] != name(i) {
					t.Fatalf("%v: %s is below %s", places, name(child), name(i))
				}
			}
		}

		if below != len(parents) || len(tree.roots) != len(paths)-len(parents) {
			t.Fatalf("%v: %d are below others, %d are roots", places, below, len(tree.roots))
		}
	})
}

// After a question has used up its steps, everything that needs an automaton is undecided.
func TestEffortIsSharedByAQuestion(t *testing.T) {
	hard := func() *texts {
		c := NewCompiler(Semantics{})
		p, err := c.pattern(`^(?:[ab]{3}c)+$`)
		if err != nil {
			t.Fatal(err)
		}
		q, err := c.pattern(`^[abc]{8}$`)
		if err != nil {
			t.Fatal(err)
		}
		return &texts{but: true, list: []string{"aaacaaac"}, pats: []literal{{p, false}, {q, false}}}
	}
	e := effort{states: defaultStates, steps: maxSteps}
	if _, verdict := hard().pick(&e); verdict != Yes || e.steps == maxSteps {
		t.Fatalf("%v, with %d of %d steps left", verdict, e.steps, maxSteps)
	}
	for _, steps := range []int{0, 1} {
		e := effort{states: defaultStates, steps: steps}
		if _, verdict := hard().pick(&e); verdict != Undecided {
			t.Errorf("%v with %d steps", verdict, steps)
		}
	}
}
