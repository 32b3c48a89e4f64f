package condition

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
)

// set is a set of values with a function for its expected content.
type set struct {
	values Values
	has    func(value.Value) bool
}

// sets draws sets of values. A missing value is Absent.
func sets() *rapid.Generator[set] {
	n := func(s string) value.Num { return number(s).Num }
	base := []set{
		{AnyValue(), func(v value.Value) bool { return v.Kind != value.Absent }},
		{Missing(), func(v value.Value) bool { return v.Kind == value.Absent }},
		{Integers(), func(v value.Value) bool { return v.Kind == value.Number && v.Num.IsInt() }},
		{
			AtLeast(n("0.5"), false),
			func(v value.Value) bool { return v.Kind == value.Number && v.Num.Cmp(n("0.5")) >= 0 },
		},
		{AtLeast(n("1"), true), func(v value.Value) bool { return v.Kind == value.Number && v.Num.Cmp(n("1")) > 0 }},
		{AtMost(n("2"), true), func(v value.Value) bool { return v.Kind == value.Number && v.Num.Cmp(n("2")) < 0 }},
		{AtMost(n("0"), false), func(v value.Value) bool { return v.Kind == value.Number && v.Num.Cmp(n("0")) <= 0 }},
	}
	for _, k := range []value.Kind{
		value.Null, value.Bool, value.Number, value.String, value.Array, value.Object, value.Absent,
	} {
		base = append(base, set{OfKind(k), func(v value.Value) bool {
			return v.Kind == k || compound(v.Kind) && compound(k)
		}})
	}

	for _, lexeme := range []string{`"a"`, `"ab"`, `1`, `2`, `0.5`, `true`, `false`, `null`, `[]`} {
		one, _ := value.Parse([]byte(lexeme), value.Limits{})
		base = append(base, set{Exactly(one), func(v value.Value) bool {
			return string(v.AppendCanonical(nil)) == lexeme && v.Kind != value.Absent ||
				compound(v.Kind) && compound(one.Kind)
		}})
	}

	return rapid.Custom(func(t *rapid.T) set {
		s := rapid.SampledFrom(base).Draw(t, "set")
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			x, y := s, rapid.SampledFrom(base).Draw(t, "other")
			if rapid.Bool().Draw(t, "both") {
				s = set{x.values.And(y.values), func(v value.Value) bool { return x.has(v) && y.has(v) }}
				continue
			}
			if x.values.Has(value.Number) && y.values.Has(value.Number) && x.values.Whole() != y.values.Whole() {
				continue // the union may be larger
			}
			s = set{x.values.Or(y.values), func(v value.Value) bool { return x.has(v) || y.has(v) }}
		}

		return s
	})
}

func compound(k value.Kind) bool { return k == value.Array || k == value.Object }

// A set contains exactly the values that define it.
func TestValuesAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sets().Draw(t, "set")
		any, kinds := false, map[value.Kind]bool{}
		for _, lexeme := range scalars {
			v, err := value.Parse([]byte(lexeme), value.Limits{})
			must.Do(t, err)
			any = any || s.has(v)
			kinds[v.Kind] = kinds[v.Kind] || s.has(v)
			held := s.values.Holds(Scalar{Kind: v.Kind, Bool: v.Bool, Text: v.Text, Num: v.Num})
			if held != s.has(v) {
				t.Fatalf("holds %s: %v", lexeme, held)
			}
		}

		if any && s.values.Empty() {
			t.Fatal("it is not empty")
		}
		for k, has := range kinds {
			if has && !s.values.Has(k) {
				t.Fatalf("it has a %s", k)
			}
		}
	})
}

// Values between two integers are not integers.
func TestIntegersAreTold(t *testing.T) {
	n := func(s string) value.Num { return number(s).Num }
	between := func(low, high string, open bool) Values {
		return Integers().And(AtLeast(n(low), open)).And(AtMost(n(high), open))
	}
	for _, c := range []struct {
		low, high string
		open      bool
		empty     bool
	}{
		{"4", "5", true, true},
		{"4", "5", false, false},
		{"4", "6", true, false},
		{"4.1", "4.9", false, true},
		{"-4.9", "-4", false, false},
		{"-5", "-4", true, true},
		{"-0.5", "0.5", true, false},
		{"9007199254740992", "9007199254740993", true, true},
		{"1e300", "1e301", true, false},
	} {
		if got := between(c.low, c.high, c.open).Empty(); got != c.empty {
			t.Errorf("from %s to %s, open %v: empty %v", c.low, c.high, c.open, got)
		}
	}

	if !Integers().Whole() || AnyValue().Whole() {
		t.Error("integers are whole, and no others")
	}
	bounds := []Bound{{[]string{"a"}, Integers()}}
	e := &Expr{Groups: []Group{{Matchers: []Matcher{{
		Key:   "a",
		Tests: []Test{{Op: Gt, Operand: number("1")}, {Op: Lt, Operand: number("2")}},
	}}}}}
	if got, _ := NewAnalyzer(ToolArgs, Semantics{}, 0).Within(bounds).Satisfiable(e); got != No {
		t.Errorf("an integer between 1 and 2: %v", got)
	}
	if got, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Within(bounds).CanBeFalse(e); got != Yes ||
		string(witness.AppendJSON(nil)) != `{"a":0}` {
		t.Errorf("an integer elsewhere: %v %s", got, witness.AppendJSON(nil))
	}
}

// Within bounds, a witness satisfies them and has the promised truth. If there is none, no
// document within the bounds contradicts the verdict.
func TestBoundsAgreeWithBruteForce(t *testing.T) {
	asked, undecided := 0, 0
	for _, w := range worlds()[:3] {
		rapid.Check(t, func(t *rapid.T) {
			sem := semantics().Draw(t, "semantics")
			pool := rapid.SliceOfN(regexes(), 1, 2).Draw(t, "patterns")
			x, y := w.exprsOf(3, pool).Draw(t, "x"), w.exprsOf(3, pool).Draw(t, "y")
			var bounds []Bound
			var drawn []set
			for _, key := range w.keys {
				places, _ := Places(w.use, key)
				for _, p := range places {
					s := sets().Draw(t, "bound")
					bounds, drawn = append(bounds, Bound{p, s.values}), append(drawn, s)
				}
			}

			inside := func(doc value.Value) bool {
				for i, b := range bounds {
					v, _ := doc.Get(b.Place...)
					if !drawn[i].has(v) {
						return false
					}
				}

				return true
			}
			a := NewAnalyzer(w.use, sem, 0).Within(bounds)
			truths := w.all(t, sem, x, y)
			for _, p := range properties {
				asked++
				verdict, witness := p.ask(a, x, y)
				if verdict == Undecided {
					undecided++
					continue
				}
				if verdict == p.found {
					doc := string(witness.AppendJSON(nil))
					if got := w.truths(t, sem, doc, x, y); !inside(witness) || !p.exists(got[0], got[1]) {
						t.Fatalf("%s: x %s\ny %s\nthe witness %s makes them %v", p.name, show(x), show(y), doc, got)
					}

					continue
				}

				for i, got := range truths {
					doc, err := value.Parse([]byte(w.docs[i]), value.Limits{})
					if err == nil && inside(doc) && p.exists(got[0], got[1]) {
						t.Fatalf(
							"%s: x %s\ny %s\n%v, but %s makes them %v",
							p.name,
							show(x),
							show(y),
							verdict,
							w.docs[i],
							got,
						)
					}
				}
			}
		})
	}

	if undecided*100 > asked {
		t.Errorf("%d of %d undecided", undecided, asked)
	}
}

// Dodged is Yes exactly if omitting the argument lets a call through. That is rare in random
// expressions, so the test repeats until one was drawn.
func TestDodgedAgreesWithBruteForce(t *testing.T) {
	w := worlds()[0]
	told := map[Verdict]int{}
	for rounds := 0; rounds < 50 && (told[Yes] == 0 || told[No] == 0); rounds++ {
		rapid.Check(t, func(t *rapid.T) { told[checkDodged(t, w)]++ })
	}
	if told[Yes] == 0 || told[No] == 0 {
		t.Errorf("one verdict was never told: %v", told)
	}
}

// checkDodged draws an expression, and returns the verdict for it.
func checkDodged(t *rapid.T, w world) Verdict {
	sem := semantics().Draw(t, "semantics")
	sem.OnMissing = Silence(rapid.IntRange(0, 1).Draw(t, "missing"))
	x := w.exprsOf(3, []string{"^a", "b$"}).Draw(t, "x")
	s := sets().Draw(t, "bound")
	a := NewAnalyzer(w.use, sem, 0).Within([]Bound{{[]string{"b"}, s.values}})
	verdict, witness := a.Dodged(x, "a")
	asks := func(a, b string) bool { return w.truths(t, sem, object("a", a, "b", b), x)[0] != False }
	some := func(b string) bool {
		// 1.00000000000000005 is 1 for a client that rounds numbers.
		tried := append([]string{`1.00000000000000005`, `7`, `-7`, `1.5`, `"zz"`, `{}`}, scalars...)
		return slices.ContainsFunc(tried, func(a string) bool { return asks(a, b) })
	}
	if verdict == Yes {
		v, given := witness.Get("b")
		b := ""
		if given {
			b = string(v.AppendJSON(nil))
		}
		// The values that some tries hold few lists, objects, addresses and paths, and few pass two tests.
		rare := slices.ContainsFunc(strings.Fields("and length any all none money host path_inside"), func(s string) bool {
			return strings.Contains(show(x), s+" ")
		})
		stops := w.truths(t, sem, string(witness.AppendJSON(nil)), x)[0] != False
		if _, has := witness.Get("a"); has || !s.has(v) || stops || !rare && !some(b) {
			t.Fatalf("x %s: the witness %s shows nothing", show(x), witness.AppendJSON(nil))
		}

		return verdict
	}

	for _, b := range append([]string{""}, scalars...) {
		v, _ := value.Parse([]byte(b), value.Limits{})
		if s.has(v) && !asks("", b) && some(b) && verdict == No {
			t.Fatalf("x %s: leaving a out dodges it where b is %s", show(x), b)
		}
	}

	if sem.OnMissing == Ask && verdict == Yes {
		t.Fatal("by the fail-safe reading nothing is dodged")
	}

	return verdict
}

// Both places of a key with a dot are omitted, and a place that is required can't be omitted.
func TestDodgedNestedKeys(t *testing.T) {
	e := &Expr{Groups: []Group{{Matchers: []Matcher{{
		Key:   "order.amount",
		Tests: []Test{{Op: Gt, Operand: number("10")}},
	}}}}}
	lax := NewAnalyzer(ToolArgs, Semantics{OnMissing: NoMatch}, 0)
	literal := Bound{[]string{"order.amount"}, Missing()}
	order := Bound{[]string{"order"}, OfKind(value.Object)}
	for _, c := range []struct {
		name   string
		amount Values
		want   Verdict
	}{
		{"optional", Integers().Or(Missing()), Yes},
		{"required", Integers(), No},
		{"never there", Missing(), No},
		{"too small", AtMost(number("10").Num, false).Or(Missing()), No},
	} {
		bounds := []Bound{literal, order, {[]string{"order", "amount"}, c.amount}}
		got, witness := lax.Within(bounds).Dodged(e, "order.amount")
		if got != c.want {
			t.Errorf("%s: %v %s", c.name, got, witness.AppendJSON(nil))
		}
	}

	if got, _ := lax.Dodged(e, "order.amount"); got != Yes {
		t.Errorf("without bounds: %v", got)
	}
}
