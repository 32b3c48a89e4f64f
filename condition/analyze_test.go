package condition

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// answer formats a verdict and its witness.
func answer(v Verdict, witness value.Value) string {
	if witness.Kind == value.Absent {
		return v.String()
	}
	return v.String() + " " + string(witness.AppendJSON(nil))
}

// These are lint's questions about one condition.
func TestQuestionsOfAnAuthor(t *testing.T) {
	for _, c := range []struct{ cond, satisfiable, vacuous, canBeFalse string }{
		{match(""), `yes {}`, `yes`, `no`},
		{`{}`, `yes {}`, `yes`, `no`},
		{`[{}, {args_match: {a: 1}}]`, `yes {}`, `yes`, `no`},
		{match("a: {}"), `yes {}`, `yes`, `no`},
		{match("amount: {gt: 10000}"), `yes {"amount":10001}`, `no {"amount":10000}`, `yes {"amount":10000}`},
		{match("amount: {gt: 1, lt: 0}"), `no`, `no {}`, `yes {"amount":0}`},
		{match("amount: {gt: 1, lt: 2}"), `yes {"amount":1.1}`, `no {"amount":1}`, `yes {"amount":1}`},
		{
			match("amount: {gt: 1, lte: 1.00000000000000000000000000001}"), // no double is that number
			`no`,
			`no {}`,
			`yes {"amount":1}`,
		},
		{match("c: {in: []}"), `no`, `no {}`, `yes {"c":true}`},
		{match("c: {not_in: []}"), `yes {"c":true}`, `no {}`, `no`},
		{match("c: {in: [EUR], ne: EUR}"), `no`, `no {}`, `yes {"c":"x"}`},
		{match("c: {in: [a, b], not_in: [b]}"), `yes {"c":"a"}`, `no {"c":"x"}`, `yes {"c":"x"}`},
		{match("c: {in: [EUR, USD], pattern: '^G'}"), `no`, `no {}`, `yes {"c":"x"}`},
		{match("c: {pattern: '^a', in: [b, ab]}"), `yes {"c":"ab"}`, `no {"c":"x"}`, `yes {"c":"x"}`},
		{match("c: {pattern: 'a\\bb'}"), `no`, `no {"c":"x"}`, `yes {"c":"x"}`},
		{match("c: {pattern: '', gt: 1}"), `no`, `no {}`, `yes {"c":1}`}, // unknown for all others
		{match("c: {pattern: '.*'}"), `yes {"c":""}`, `no {}`, `no`},
		{match("a: {lte: 5}") + "", `yes {"a":5}`, `no {"a":6}`, `yes {"a":6}`},
		{`[{args_match: {a: {lte: 5}}}, {args_match: {a: {gt: 5}}}]`, `yes {"a":5}`, `no {"a":5.0000000000000001}`, `no`},
		{`[{args_match: {a: {ne: 1}}}, {args_match: {a: 1}}]`, `yes {"a":0}`, `no {"a":0.99999999999999995}`, `no`},
		{match("c: {not_in: [x, '']}"), `yes {"c":"x0"}`, `no {"c":""}`, `yes {"c":""}`},
		{match("c: {pattern: 'a[^\\x00-\\x{10FFFF}]'}"), `no`, `no {"c":"x"}`, `yes {"c":"x"}`},
		{match("a: true, b: {ne: false}"), `yes {"a":true,"b":true}`, `no {}`, `yes {"a":false}`},
		{
			match("order: 5, order.amount: {gt: 10}"),
			`yes {"order":5,"order.amount":11}`,
			`no {"order":4}`,
			`yes {"order":4}`,
		},
	} {
		e := sound(t, c.cond)
		a := NewAnalyzer(ToolArgs, Semantics{}, 0)
		for question, pair := range map[string][2]string{
			"satisfiable":  {answer(a.Satisfiable(e)), c.satisfiable},
			"vacuous":      {answer(vacuous(a, e)), c.vacuous},
			"can be false": {answer(a.CanBeFalse(e)), c.canBeFalse},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s %s? %s, want %s", c.cond, question, pair[0], pair[1])
			}
		}
	}
}

// The witness is neither true nor false.
func TestCanBeUnknown(t *testing.T) {
	for cond, want := range map[string]Verdict{
		match("amount: {gt: 10}"): Yes,
		match("a: 5"):             Yes,
		match("a: {}"):            No,
		match("a: {not_in: []}"):  Yes,
		`{}`:                      No,
		`[{args_match: {a: {gt: 1}}}, {args_match: {a: {}}}]`: No,
	} {
		e := sound(t, cond)
		got, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).CanBeUnknown(e)
		if got != want {
			t.Errorf("%s: %s", cond, answer(got, witness))
		}
		if got != Yes {
			continue
		}
		if truth, _ := eval(t, ToolArgs, Semantics{}, e, string(witness.AppendJSON(nil))); truth != Unknown {
			t.Errorf("%s: %s is %s", cond, answer(got, witness), truth)
		}
	}
}

// The witness is true for one condition and false for the other.
func TestTrueWithout(t *testing.T) {
	for _, c := range []struct {
		x, y string
		want Verdict
	}{
		{match("a: {gt: 10}"), match("a: {gt: 20}"), Yes},
		{match("a: {gt: 10}"), match("a: {gt: 5}"), No},
		{match("a: 1"), match("b: 1"), Yes},
		{match("a: 1"), `{}`, No},
	} {
		x, y := sound(t, c.x), sound(t, c.y)
		got, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).TrueWithout(x, y)
		if got != c.want {
			t.Errorf("%s without %s: %s", c.x, c.y, answer(got, witness))
		}
		if got != Yes {
			continue
		}
		doc := string(witness.AppendJSON(nil))
		one, _ := eval(t, ToolArgs, Semantics{}, x, doc)
		other, _ := eval(t, ToolArgs, Semantics{}, y, doc)
		if one != True || other != False {
			t.Errorf("%s without %s: %s is %s and %s", c.x, c.y, doc, one, other)
		}
	}
}

// These are the questions of lint and posture about two conditions.
func TestQuestionsAboutTwo(t *testing.T) {
	for _, c := range []struct{ x, y, implies, equivalent string }{
		{match("a: {gt: 10}"), match("a: {gt: 5}"), `yes`, `no {"a":10}`},
		{match("a: {gt: 5}"), match("a: {gt: 10}"), `no {"a":10}`, `no {"a":10}`},
		{match("a: {gt: 5}"), match("a: {gte: 5}"), `yes`, `no {"a":5}`},
		{match("a: 5"), match("a: {in: [5.0]}"), `yes`, `yes`},
		{match("a: 5"), match("a: {gte: 5, lte: 5}"), `yes`, `yes`},
		{match("a: 5"), match("b: 5"), `no {"a":5,"b":4}`, `no {"a":5,"b":4}`},
		{match("a: 5, b: 1"), match("b: 1"), `yes`, `no {"b":1,"a":4}`},
		{match("to: {pattern: '@gmail\\.com$'}"), match("to: {pattern: '\\.com$'}"), `yes`, `no {"to":".com"}`},
		{
			match("to: {pattern: '^[^@]+@(gmail|yahoo)\\.com$'}"),
			match("to: {pattern: '@[a-z]+\\.com$'}"),
			`yes`,
			`no {"to":"@x.com"}`,
		},
		{match("id: {pattern: '^acct_[0-9]+$'}"), match("id: {pattern: '^acct_\\d+$'}"), `yes`, `yes`},
		// Trailing white space.
		{match("id: {pattern: '^(US|UK)$'}"), match("id: {in: [US, UK]}"), `no {"id":"UK "}`, `no {"id":"UK "}`},
		{match("id: {in: [US, UK]}"), match("id: {pattern: '^(US|UK)$'}"), `yes`, `no {"id":"UK "}`},
		{
			match("id: {pattern: '^a'}"),
			`[{args_match: {id: {pattern: '^ab'}}}, {args_match: {id: {pattern: '^a[^b]'}}}]`,
			`no {"id":"a"}`,
			`no {"id":"a"}`,
		},
		{
			match("id: {pattern: '^a.'}"),
			`[{args_match: {id: {pattern: '^ab'}}}, {args_match: {id: {pattern: '^a[^b\n]'}}}]`,
			`yes`,
			`yes`,
		},
		{match("id: {pattern: '^a'}"), match("id: {pattern: 'b$', ne: ab}"), `no {"id":"a"}`, `no {"id":"a"}`},
		{match("id: {pattern: '^a+b$'}"), match("id: {pattern: '^[a-c]+b$', ne: x}"), `yes`, `no {"id":"bb"}`},
		{
			match("id: {pattern: '^a+b$'}"),
			match("id: {pattern: '^[a-c]+b$', ne: ab}"),
			`no {"id":"ab"}`,
			`no {"id":"ab"}`,
		},
		{
			match("id: {pattern: '^a+b$', ne: ab}"),
			match("id: {pattern: '^a+b$', not_in: [aab]}"),
			`no {"id":"aab"}`,
			`no {"id":"aab"}`,
		},
		// Inside of the union, but not inside of any single group.
		{
			match("a: {gt: 0, lt: 10}"),
			`[{args_match: {a: {gt: 0, lte: 5}}}, {args_match: {a: {gt: 4, lt: 20}}}]`,
			`yes`,
			`no {"a":10}`,
		},
		{
			match("a: {gt: 0}, b: x"),
			`[{args_match: {a: {gt: 0, lte: 5}}}, {args_match: {a: {gte: 5}, b: {in: [x, y]}}}]`,
			`yes`,
			`no {"a":5,"b":"x0"}`,
		},
		{
			match("order.amount: 1"),
			match("order.amount: {gte: 1}"),
			`yes`,
			`no {"order.amount":2,"order":{"amount":0}}`,
		},
		{match("a: {ne: x}"), match("a: {not_in: [x]}"), `yes`, `yes`},
		{match("a: {ne: x}"), match("a: {in: [x, y]}"), `no {"a":"x0"}`, `no {"a":"x0"}`},
		{
			match("a: {ne: x, pattern: p}"),
			`[{args_match: {a: {pattern: q}}}, {args_match: {a: {pattern: q, ne: z}}}]`,
			`no {"a":"p"}`,
			`no {"a":"p"}`,
		},
		{match("a: true"), `[{args_match: {a: {in: [true]}}}]`, `yes`, `yes`},
	} {
		x, y := sound(t, c.x), sound(t, c.y)
		a := NewAnalyzer(ToolArgs, Semantics{}, 0)
		if got := answer(a.Implies(x, y)); got != c.implies {
			t.Errorf("%s implies %s? %s, want %s", c.x, c.y, got, c.implies)
		}
		if got := answer(equivalent(a, x, y)); got != c.equivalent {
			t.Errorf("%s equivalent to %s? %s, want %s", c.x, c.y, got, c.equivalent)
		}
	}
}

func TestQuestionsAboutGroups(t *testing.T) {
	e := sound(t, `[{args_match: {a: {gt: 10}, b: 1}}, {args_match: {a: {gt: 5}}}, {args_match: {a: {gt: 1, lt: 0}}}]`)
	a := NewAnalyzer(ToolArgs, Semantics{}, 0)
	for i, want := range []Verdict{Yes, Yes, No} {
		if got, _ := a.Satisfiable(alone(&e.Groups[i])); got != want {
			t.Errorf("group %d satisfiable: %v", i, got)
		}
	}
	if got, _ := a.Implies(alone(&e.Groups[0]), alone(&e.Groups[1])); got != Yes {
		t.Errorf("group 0 in group 1: %v", got)
	}
	if got, witness := a.Implies(alone(&e.Groups[1]), alone(&e.Groups[0])); got != No {
		t.Errorf("group 1 in group 0: %s", answer(got, witness))
	}
}

func TestAnalyzeNothing(t *testing.T) {
	a := NewAnalyzer(ToolArgs, Semantics{}, 0)
	for _, e := range []*Expr{nil, {}} {
		if got := answer(vacuous(a, e)); got != "yes" {
			t.Errorf("%v vacuous: %s", e, got)
		}
	}
}

// Keys that are not valid for the use are Unknown: such a group never matches, and never lets a
// call through.
func TestAnalyzeBareKeys(t *testing.T) {
	a := NewAnalyzer(Delegation, Semantics{}, 0)
	e := sound(t, match("risk: high, parent.input.a: {gt: 1}"))
	if got := answer(a.Satisfiable(e)); got != "no" {
		t.Errorf("satisfiable: %s", got)
	}
	if got := answer(a.CanBeFalse(e)); got != `yes {"a":1}` {
		t.Errorf("can be false: %s", got)
	}
}

// A nested argument is present only if its parent is an object.
func TestPathsHangTogether(t *testing.T) {
	const never = `{pattern: 'x\bx'}`
	for cond, want := range map[string]string{
		"parent.input.a: 5, parent.input.a.b: 5":                               `no`,
		"parent.input.a: {ne: 5}, parent.input.a.b: 5":                         `yes {"a":{"b":5}}`,
		"parent.input.a.b: 5, parent.input.a: {ne: 5}":                         `yes {"a":{"b":5}}`,
		"parent.input.a: {ne: 5}, parent.input.a.b.c: 5, parent.input.a.b: {}": `yes {"a":{"b":{"c":5}}}`,
		"parent.input.a: {not_in: []}, parent.input.a.b: " + never:             `no`,
		// The answer needs more than 20 states, unless something else decides.
		"parent.input.a: {not_in: []}, parent.input.a.b: " + hard:                                 `undecided`,
		"parent.input.a: {ne: 5}, parent.input.a.b: " + hard + ", parent.input.c: {gt: 1, lt: 1}": `no`,
		"parent.input.a.b: " + hard + ", parent.input.c: " + never:                                `no`,
	} {
		if got := answer(NewAnalyzer(Delegation, Semantics{}, 20).Satisfiable(sound(t, match(cond)))); got != want {
			t.Errorf("%s: %s, want %s", cond, got, want)
		}
	}
}

// hard is a matcher that no argument satisfies, which takes many states to prove.
const hard = `{pattern: '^[ab]*a[ab]{20}\bb$'}`

// Between two numbers there may be none that arguments can have. The analyzer must not guess
// then.
func TestExtremeNumbers(t *testing.T) {
	one := big.NewInt(1)
	// The first integer that overflows.
	limit := new(big.Int).Sub(new(big.Int).Lsh(one, 1024), new(big.Int).Lsh(one, 970))
	largest := limit.Sub(limit, one).String()
	for cond, want := range map[string]string{
		"n: {gt: 1.7976931348623157e308}":                              `no`, // rounds to the largest double
		"n: {gt: 1.79769313486231580793e308}":                          `no`,
		"n: {gt: " + largest + "}":                                     `no`, // larger numbers are refused
		"n: {lt: -" + largest + "}":                                    `no`,
		"n: {gt: -" + largest + ", lt: -1e308}":                        `yes`,
		"n: {gt: 0, lt: 3e-324}":                                       `no`,
		"n: {gt: 0, lt: 5e-324}":                                       `no`,
		"n: {gt: 2.5, lt: 2.5000000000000000000000000000000000000001}": `no`,
		"n: {gte: " + largest + "}":                                    `yes`,
		"n: {lte: -" + largest + "}":                                   `yes`,
		"n: 9007199254740993":                                          `yes`,
		"n: {gt: -3, lt: -2}":                                          `yes`,
		"n: {lt: -2.5}":                                                `yes`,
		"n: {lt: -1e300, ne: -2e300}":                                  `yes`,
		"n: {gt: 0, lt: 3e-324, gte: 1}":                               `no`,
		"n: {gt: 2" + strings.Repeat("0", 500) + ".5e-500, lt: 2" + strings.Repeat("0", 500) + ".6e-500}": `no`,
	} {
		e := sound(t, match(cond))
		verdict, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Satisfiable(e)
		if verdict.String() != want {
			t.Errorf("%s: %s, want %s", cond, answer(verdict, witness), want)
		}
		if verdict == Yes {
			if truth, _ := eval(t, ToolArgs, Semantics{}, e, string(witness.AppendJSON(nil))); truth != True {
				t.Errorf("%s: witness %s is %v", cond, witness.AppendJSON(nil), truth)
			}
		}
	}
	strict := Semantics{OnMissing: NoMatch, OnMismatch: NoMatch} // so that only numbers are unknown
	for cond, want := range map[string]Verdict{
		"n: {gt: 0, lt: 3e-324}":   Yes,
		"n: {gt: " + largest + "}": Undecided, // larger numbers are refused
		"n: {gt: 2" + strings.Repeat("0", 500) + ".5e-500, lt: 2" + strings.Repeat("0", 500) + ".6e-500}": Yes,
	} {
		if verdict, witness := NewAnalyzer(ToolArgs, strict, 0).CanBeUnknown(sound(t, match(cond))); verdict != want {
			t.Errorf("%s can be unknown: %s", cond, answer(verdict, witness))
		}
	}
}

// Large questions are undecided, never wrong and never endless.
func TestLargeQuestionsAreUndecided(t *testing.T) {
	var dotted []string
	for i := range 20 {
		dotted = append(dotted, fmt.Sprintf("a%d.b: {gt: %d}", i, i))
	}
	corners := &Expr{Groups: make([]Group, 1<<12)} // together they let no call through
	for key := range 12 {
		name := fmt.Sprintf("a%d", key)
		for i := range corners.Groups {
			test := Test{Op: []Op{Lt, Gte}[i>>key&1], Operand: number("0")}
			corners.Groups[i].Matchers = append(corners.Groups[i].Matchers, Matcher{Key: name, Tests: []Test{test}})
		}
	}

	wide := &Expr{} // a group for each key, none of which can match
	for key := range 50_000 {
		tests := []Test{{Op: Gt, Operand: number("1")}, {Op: Lt, Operand: number("1")}}
		wide.Groups = append(wide.Groups, Group{Matchers: []Matcher{{Key: fmt.Sprint(key), Tests: tests}}})
	}
	deep := match(strings.Repeat("a.", maxPathDepth) + "a: 1")
	for _, c := range []struct {
		name string
		ask  func(a *Analyzer) (Verdict, value.Value)
	}{
		{"many dotted keys", func(a *Analyzer) (Verdict, value.Value) {
			return a.Satisfiable(sound(t, match(strings.Join(dotted, ", "))))
		}},
		{"many keys", func(a *Analyzer) (Verdict, value.Value) { return a.CanBeFalse(wide) }},
		{"always under a deep path", func(a *Analyzer) (Verdict, value.Value) { return vacuous(a, sound(t, deep)) }},
		{"a deep path", func(a *Analyzer) (Verdict, value.Value) { return a.Satisfiable(sound(t, deep)) }},
		{"many boxes", func(a *Analyzer) (Verdict, value.Value) { return a.CanBeFalse(corners) }},
		{
			"large automata",
			func(a *Analyzer) (Verdict, value.Value) {
				return a.Implies(
					sound(t, match(`a: {pattern: '^[ab]*a[ab]{20}$'}`)),
					sound(t, match(`a: {pattern: '^([ab]|aa)*a([ab]){20}$'}`)),
				)
			},
		},
	} {
		if verdict, witness := c.ask(NewAnalyzer(ToolArgs, Semantics{}, 300)); verdict != Undecided ||
			witness.Kind != value.Absent {
			t.Errorf("%s: %s", c.name, answer(verdict, witness))
		}
	}
}

// The cache of patterns is limited.
func TestAnalyzerForgets(t *testing.T) {
	a := NewAnalyzer(ToolArgs, Semantics{}, 0)
	for i := range 2 * keepPatterns {
		e := sound(t, match(fmt.Sprintf("a: {pattern: 'x%d', in: [y]}", i)))
		if got, _ := a.Satisfiable(e); got != No || len(a.patterns) > keepPatterns+1 {
			t.Fatalf("%v, %d patterns", got, len(a.patterns))
		}
	}
}

func TestAnalyzerIsDeterministic(t *testing.T) {
	x, y := sound(t, match("a: {pattern: '[ab]c+'}, b: 1")), sound(t, `[{args_match: {a: {pattern: 'ac'}}}, {args_match: {b: {gt: 2}}}]`)
	warm := NewAnalyzer(ToolArgs, Semantics{}, 0)
	for range 20 {
		cold := NewAnalyzer(ToolArgs, Semantics{}, 0)
		if a, b := answer(warm.Implies(x, y)), answer(cold.Implies(x, y)); a != b {
			t.Fatalf("%s, then %s", a, b)
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for name, text := range map[string]string{
		"ordinary": `[{args_match: {amount: {gt: 10000}, currency: USD}}, {args_match: {country: {in: [IR, KP]}}}]`,
		"patterns": `[{args_match: {to: {pattern: '@gmail\.com$'}}}, {args_match: {memo: {pattern: ` +
			`'(?i)drop\s+table'}, to: {pattern: '^[^@]+@'}}}]`,
	} {
		e, _ := read(b, text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			a := NewAnalyzer(ToolArgs, Semantics{}, 0)
			for b.Loop() {
				a.Satisfiable(e)
				vacuous(a, e)
				a.CanBeFalse(e)
				a.Implies(alone(&e.Groups[0]), alone(&e.Groups[1]))
				a.Implies(alone(&e.Groups[1]), alone(&e.Groups[0]))
			}
		})
		b.Run(name+" cold", func(b *testing.B) {
			for b.Loop() {
				a := NewAnalyzer(ToolArgs, Semantics{}, 0)
				a.Satisfiable(e)
				vacuous(a, e)
				a.CanBeFalse(e)
				a.Implies(alone(&e.Groups[0]), alone(&e.Groups[1]))
				a.Implies(alone(&e.Groups[1]), alone(&e.Groups[0]))
			}
		})
	}
}
