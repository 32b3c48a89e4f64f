package condition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/value"
)

// With small conditions and all arguments, the analyzer's verdicts are compared with brute
// force, and its witnesses with the real Program.

// world is one use with the keys that conditions draw from, and every document that brute force
// tries.
type world struct {
	use  Use
	keys []string
	docs []string
}

// scalars are the values that brute force tries at every place. They are at, between and around
// the generator's operands.
var scalars = []string{
	`null`, `true`, `false`, `-1`, `0`, `0.5`, `1`, `1.99999999999999999999`, `2`, `3`,
	`""`, `"a"`, `"b"`, `"ab"`, `"ba"`, `"aa"`, `"a "`, `" "`, `"A"`, `"b\n"`, `"x"`, `"aab"`, `[]`,
	`"/a"`, `"/b/../a/b"`, `"https://b/"`, `"ws://a.b"`, `[1]`, `["a",null]`, `[{"a":2,"b":"a"}]`, `{"b":1}`,
}

func worlds() []world {
	var flat, dotted, paths, loop, both []string
	with := append([]string{""}, scalars...) // an empty string omits the place
	for _, a := range with {
		for _, b := range with {
			flat = append(flat, object("a", a, "b", b))
		}
		for _, nested := range append([]string{`{}`}, scalars...) {
			dotted = append(dotted, object("a.b", a, "a", nested), object("a.b", a, "a", `{"b":`+nested+`}`))
			paths = append(paths, object("a", nested, "b", a), object("a", `{"b":`+nested+`}`, "b", a))
			both = append(
				both,
				object("a", a, parentInput, object("a", nested)),
				object("a", a, parentInput, object("a", `{"b":`+nested+`}`)),
			)
		}

		dotted = append(dotted, object("a.b", a))
	}

	for _, d := range paths {
		loop = append(loop, `{"parent":{"input":`+d+`}}`)
	}
	loop = append(loop, `{}`, `{"parent":1}`, `{"parent":{}}`, `{"parent":{"input":null}}`)
	return []world{
		{ToolArgs, []string{"a", "b"}, flat},
		{SkillArgs, []string{"a", "a.b"}, dotted},
		{ToolArgs, []string{"a.b", "a"}, dotted},
		{Delegation, []string{"parent.input.a", "parent.input.a.b", "parent.input.b", "a"}, paths},
		{Governance, []string{"a", "parent.input.a", "parent.input.a.b", "parent.output.a"}, both},
		{LoopExit, []string{"parent.input.a", "parent.input.a.b", "parent.input.b", "nothing"}, loop},
	}
}

func object(pairs ...string) string {
	var members []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			members = append(members, fmt.Sprintf("%q:%s", pairs[i], pairs[i+1]))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// truths evaluates expressions on a document.
func (w *world) truths(t fataler, sem Semantics, doc string, list ...*Expr) []Truth {
	c := NewCompiler(sem)
	var programs []*Program
	for _, e := range list {
		programs = append(programs, c.Add(w.use, e))
	}
	view := scan(t, c, w.use, doc)
	out := make([]Truth, len(list))
	for i, p := range programs {
		out[i] = p.Eval(view)
	}
	return out
}

// all evaluates expressions on every document.
func (w *world) all(t fataler, sem Semantics, list ...*Expr) [][]Truth {
	c := NewCompiler(sem)
	var programs []*Program
	for _, e := range list {
		programs = append(programs, c.Add(w.use, e))
	}
	out := make([][]Truth, len(w.docs))
	for i, doc := range w.docs {
		view := scan(t, c, w.use, doc)
		for _, p := range programs {
			out[i] = append(out[i], p.Eval(view))
		}
	}

	return out
}

func number(s string) Scalar {
	n, err := value.ParseNum(s)
	if err != nil {
		panic(err)
	}
	return Scalar{Kind: value.Number, Num: n}
}

func text(s string) Scalar { return Scalar{Kind: value.String, Text: s} }

func boolean(b bool) Scalar { return Scalar{Kind: value.Bool, Bool: b} }

func operands() *rapid.Generator[Scalar] {
	return rapid.SampledFrom([]Scalar{
		number("0"), number("1"), number("2"), number("1.0"), text(""), text("a"), text("ab"), text("a "), text("b"),
		boolean(true), boolean(false),
	})
}

// regexes draws patterns that the brute-force strings can distinguish.
func regexes() *rapid.Generator[string] {
	atom := rapid.SampledFrom(
		[]string{
			"a",
			"b",
			"ab",
			"a|b",
			" ",
			".",
			"[ab]",
			"[^a]",
			`\w`,
			`\s`,
			"^",
			"$",
			`\b`,
			`\B`,
			"(?i:a)",
			"(?m:$)",
			"",
		},
	)
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			b.WriteString(
				"(?:" + atom.Draw(t, "atom") + ")" + rapid.SampledFrom([]string{"", "", "", "*", "+", "?"}).
					Draw(t, "repeat"),
			)
		}

		return rapid.SampledFrom([]string{"", "^", "^"}).Draw(t, "begin") +
			b.String() + rapid.SampledFrom([]string{"", "$", "$"}).Draw(t, "end")
	})
}

// tests draws tests whose patterns come from a pool, because the same pattern in several places
// is a case of its own.
func tests(pool []string) *rapid.Generator[Test] {
	return rapid.Custom(func(t *rapid.T) Test {
		names := append(Operators(Policy11), Operators(AgentFormat)...)
		names = append(names, Eq, Eq, Pattern, Unreadable)
		return testOf(t, rapid.SampledFrom(names).Draw(t, "op"), pool)
	})
}

// oneAmount reports whether a file can have the tests in one matcher. The analyzer does not decide about
// two amounts.
func oneAmount(list []Test) bool {
	n := 0
	for i := range list {
		if list[i].Op == MoneyOp {
			n++
		}
	}
	return n < 2
}

// testOf draws operands of the form that the operator requires.
func testOf(t *rapid.T, op Op, pool []string) Test {
	o, _ := find(op)
	switch form := o.operand().(type) {
	case regularExpression:
		return Test{Op: op, Operand: text(rapid.SampledFrom(pool).Draw(t, "pattern"))}
	case many:
		return Test{Op: op, List: rapid.SliceOfN(operands(), 0, 4).Draw(t, "list")}
	case one:
		fits := func(s Scalar) bool { return form.kind == value.Absent || form.kind == s.Kind }
		return Test{Op: op, Operand: operands().Filter(fits).Draw(t, "operand")}
	}

	switch o.operand().(type) {
	case flag:
		return Test{Op: op, Operand: boolean(rapid.Bool().Draw(t, "exists"))}
	case someTexts:
		from := map[Op][]string{
			StartsWith: {"a", "b", "ab", " "}, EndsWith: {"a", "b", "ab", "a "},
			PathInside: {"/", "/a", "/b", "/a/b", ".", "a", "x"}, Host: {"a", "b", "a.b", "*.b", "*.a.b"},
		}
		from[NotPathInside], from[NotHost] = from[PathInside], from[Host]
		list := rapid.SliceOfN(rapid.SampledFrom(from[op]), 1, 3).Draw(t, "texts")
		test := Test{Op: op}
		for _, s := range list {
			test.List = append(test.List, text(s))
		}
		return test
	case countTests:
		return Test{Op: op, Tests: rapid.SliceOfN(counted(), 1, 2).Draw(t, "lengths")}
	case moneyTables:
		m := &Money{
			Currency: rapid.SampledFrom([]string{"b", "a.b"}).Draw(t, "currency"),
			Minor:    rapid.Bool().Draw(t, "minor"),
			Bounds: []MoneyBound{{
				Op:    rapid.SampledFrom(orders).Draw(t, "order"),
				Codes: []string{"A", "AB", "JPY"},
				Nums:  []value.Num{number("1").Num, number("0").Num, number("100").Num},
			}},
			Otherwise: Truth(rapid.IntRange(0, 2).Draw(t, "otherwise")),
		}
		return Test{Op: op, Money: m}
	case elementTests:
		if rapid.IntRange(0, 2).Draw(t, "where") > 0 {
			inner := rapid.SampledFrom([]Op{Eq, Gt, Lt, Ne, Pattern, Exists, NotPattern, Length, In})
			return Test{Op: op, Tests: []Test{testOf(t, inner.Draw(t, "inner"), pool)}}
		}
		g := &Group{}
		for _, key := range []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "keys")] {
			inner := rapid.SampledFrom([]Op{Eq, Gt, Ne, Exists, StartsWith, MoneyOp, Any}).Draw(t, "inner")
			g.Matchers = append(g.Matchers, Matcher{Key: key, Tests: []Test{testOf(t, inner, pool)}})
		}
		return Test{Op: op, Where: g}
	}

	t.Fatalf("no operands are drawn for %s", op)
	return Test{}
}

// counted draws comparisons of a length.
func counted() *rapid.Generator[Test] {
	return rapid.Custom(func(t *rapid.T) Test {
		n := rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(t, "n")
		return Test{Op: rapid.SampledFrom(orders).Draw(t, "order"), Operand: number(n)}
	})
}

func (w *world) exprs(maxGroups int) *rapid.Generator[*Expr] {
	return rapid.Custom(func(t *rapid.T) *Expr {
		return w.exprsOf(maxGroups, rapid.SliceOfN(regexes(), 1, 3).Draw(t, "patterns")).Draw(t, "condition")
	})
}

func (w *world) exprsOf(maxGroups int, pool []string) *rapid.Generator[*Expr] {
	return rapid.Custom(func(t *rapid.T) *Expr {
		e := &Expr{}
		for range rapid.IntRange(0, maxGroups).Draw(t, "groups") {
			g := Group{}
			for _, key := range w.keys {
				if rapid.IntRange(0, 2).Draw(t, "use "+key) > 0 {
					g.Matchers = append(
						g.Matchers,
						Matcher{Key: key, Tests: rapid.SliceOfN(tests(pool), 0, 2).Filter(oneAmount).Draw(t, "tests")},
					)
				}
			}

			e.Groups = append(e.Groups, g)
		}

		return e
	})
}

func semantics() *rapid.Generator[Semantics] {
	return rapid.Custom(func(t *rapid.T) Semantics {
		if rapid.IntRange(0, 2).Draw(t, "default") > 0 {
			return Semantics{}
		}
		return Semantics{
			OnMissing:  Silence(rapid.IntRange(0, 1).Draw(t, "missing")),
			OnMismatch: Silence(rapid.IntRange(0, 1).Draw(t, "mismatch")),
			Anchor:     Anchor(rapid.IntRange(0, 1).Draw(t, "anchor")),
			Trim:       Trim(rapid.IntRange(0, 1).Draw(t, "trim")),
		}
	})
}

// show formats a condition like YAML, for failure messages.
func show(e *Expr) string {
	var groups []string
	for i := range e.Groups {
		var parts []string
		for j := range e.Groups[i].Matchers {
			m := &e.Groups[i].Matchers[j]
			parts = append(parts, m.Key+": {"+describe(m)+"}")
		}
		groups = append(groups, "{"+strings.Join(parts, ", ")+"}")
	}

	return "[" + strings.Join(groups, ", ") + "]"
}

// property is a question of the analyzer with its brute-force definition.
type property struct {
	name string
	ask  func(a *Analyzer, x, y *Expr) (Verdict, value.Value)
	// exists is the property of a witness; found is the verdict that has one.
	exists func(x, y Truth) bool
	found  Verdict
}

var properties = []property{
	{"satisfiable", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return a.Satisfiable(x) },
		func(x, y Truth) bool { return x == True }, Yes},
	{"vacuous", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return vacuous(a, x) },
		func(x, y Truth) bool { return x != True }, No},
	{"can be false", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return a.CanBeFalse(x) },
		func(x, y Truth) bool { return x == False }, Yes},
	{"implies", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return a.Implies(x, y) },
		func(x, y Truth) bool { return x > y }, No},
	{"covers", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return a.Covers(x, y) },
		func(x, y Truth) bool { return x != False && y == False }, No},
	{"equivalent", func(a *Analyzer, x, y *Expr) (Verdict, value.Value) { return equivalent(a, x, y) },
		func(x, y Truth) bool { return x != y }, No},
}

// A witness has the promised truth when the real Program evaluates it. If there is none, no
// document contradicts the verdict. Undecided must be rare.
func TestAnalyzerAgreesWithBruteForce(t *testing.T) {
	asked, undecided := 0, 0
	for _, w := range worlds() {
		rapid.Check(t, func(t *rapid.T) {
			sem := semantics().Draw(t, "semantics")
			pool := rapid.SliceOfN(regexes(), 1, 3).Draw(t, "patterns")
			x, y := w.exprsOf(3, pool).Draw(t, "x"), w.exprsOf(4, pool).Draw(t, "y")
			if rapid.IntRange(0, 3).Draw(t, "related") == 0 { // otherwise implications would be rare
				y = &Expr{Groups: slices.Concat(x.Groups, y.Groups)}
			}
			a := NewAnalyzer(w.use, sem, 0)
			truths := w.all(t, sem, x, y)
			for _, p := range properties {
				asked++
				verdict, witness := p.ask(a, x, y)
				switch {
				case verdict == Undecided:
					undecided++
				case verdict == p.found:
					doc := string(witness.AppendJSON(nil))
					if got := w.truths(t, sem, doc, x, y); witness.Kind != value.Object || !p.exists(got[0], got[1]) {
						t.Fatalf(
							"%s: %v\nx %s\ny %s\nsays %v, but its witness %s makes them %v",
							p.name,
							w.use,
							show(x),
							show(y),
							verdict,
							doc,
							got,
						)
					}
				default:
					for i, got := range truths {
						if p.exists(got[0], got[1]) {
							t.Fatalf(
								"%s: %v\nx %s\ny %s\nsays %v, but %s makes them %v",
								p.name,
								w.use,
								show(x),
								show(y),
								verdict,
								w.docs[i],
								got,
							)
						}
					}
				}
			}
		})
	}

	if undecided*1000 > asked {
		t.Errorf("%d of %d questions were undecided", undecided, asked)
	}
	t.Logf("%d of %d questions undecided", undecided, asked)
}

// The sets of the analysis contain exactly the arguments for which tests reach the level.
func TestLevelSetsAgreeWithTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sem := semantics().Draw(t, "semantics")
		src := tests(rapid.SliceOfN(regexes(), 1, 1).Draw(t, "pattern")).Draw(t, "test")
		a := NewAnalyzer(ToolArgs, sem, 0)
		compiled := newTest(&src, sem, a.patternsOf(sem))
		for _, doc := range append([]string{"{}"}, scalars...) {
			c := NewCompiler(sem)
			c.Add(ToolArgs, &Expr{Groups: []Group{{Matchers: []Matcher{{Key: "a"}}}}})
			s := &scan(t, c, ToolArgs, object("a", doc)).Args.Slots[0]
			if doc == "{}" {
				s = &scan(t, c, ToolArgs, doc).Args.Slots[0]
			}
			for _, p := range a.patterns {
				p.compile()
			}
			for _, level := range []Truth{Unknown, True} {
				set := a.ask().levelSet(&compiled, level)
				if compiled.money != nil {
					continue // which depends on another argument
				}
				if got, want := set.has(valueOf(s)), compiled.truth(s, &View{}) >= level; got != want {
					t.Fatalf("%v on %s, level %v: %v, want %v", &src, doc, level, got, want)
				}
			}
		}
	})
}

func valueOf(s *value.Slot) value.Value {
	v, err := s.Value()
	if err != nil {
		panic(err)
	}
	return v
}

// Kleene's logic is commutative, so the order of keys must not matter.
func TestKeyOrderDoesNotMatter(t *testing.T) {
	for _, w := range worlds() {
		rapid.Check(t, func(t *rapid.T) {
			x := w.exprs(3).Draw(t, "x")
			y := &Expr{Groups: slices.Clone(x.Groups)}
			slices.Reverse(y.Groups)
			for i := range y.Groups {
				y.Groups[i].Matchers = slices.Clone(y.Groups[i].Matchers)
				slices.Reverse(y.Groups[i].Matchers)
			}
			sem := semantics().Draw(t, "semantics")
			doc := rapid.SampledFrom(w.docs).Draw(t, "doc")
			if got := w.truths(t, sem, doc, x, y); got[0] != got[1] {
				t.Fatalf("%s on %s: %v", show(x), doc, got)
			}
		})
	}
}

// A runtime owner's choice never makes a condition truer than the defaults do.
func TestSemanticsOnlyLoosen(t *testing.T) {
	for _, w := range worlds() {
		rapid.Check(t, func(t *rapid.T) {
			x, sem := w.exprs(3).Draw(t, "x"), semantics().Draw(t, "semantics")
			doc := rapid.SampledFrom(w.docs).Draw(t, "doc")
			if text := show(x); strings.Contains(text, "not_pattern") || strings.Contains(text, "none") {
				sem.Anchor, sem.Trim = Unanchored, RawAndTrimmed // which they turn around
			}
			strict, chosen := w.truths(t, Semantics{}, doc, x)[0], w.truths(t, sem, doc, x)[0]
			if chosen > strict {
				t.Fatalf("%s on %s: %v by default, %v with %+v", show(x), doc, strict, chosen, sem)
			}
		})
	}
}

// Explain agrees with Eval, and lists only matchers of groups that ask.
func TestExplainAgreesWithEval(t *testing.T) {
	for _, w := range worlds() {
		rapid.Check(t, func(t *rapid.T) {
			x, sem := w.exprs(3).Draw(t, "x"), semantics().Draw(t, "semantics")
			doc := rapid.SampledFrom(w.docs).Draw(t, "doc")
			truth, seen := eval(t, w.use, sem, x, doc)
			if (truth == False) != (len(seen) == 0) {
				t.Fatalf("%s on %s: %v with %v", show(x), doc, truth, seen)
			}
			best := False
			for group := range x.Groups {
				g := alone(&x.Groups[group])
				asks := w.truths(t, sem, doc, g)[0]
				best = max(best, asks)
				n := 0
				for _, o := range seen {
					if o.Group == group {
						n++
						if o.Truth == False || o.Why == "" || asks == True && o.Truth != True {
							t.Fatalf("%s on %s: %+v", show(x), doc, o)
						}
					}
				}

				if want := max(1, len(x.Groups[group].Matchers)); asks != False && n != want ||
					asks == False && n != 0 {
					t.Fatalf("%s on %s: group %d is %v with %d observations", show(x), doc, group, asks, n)
				}
			}

			if len(x.Groups) > 0 && best != truth {
				t.Fatalf("%s on %s: %v, best group %v", show(x), doc, truth, best)
			}
		})
	}
}
