package condition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
)

// The golden file reads like the reasons of a decision. It must not contain any value of an
// argument.
func TestExplainGolden(t *testing.T) {
	cond := `
- args_match:
    amount: {gt: 10000, lte: 1e6}
    currency: {in: [EUR, USD, GBP, CHF, JPY, SEK, NOK, DKK, PLN, CZK]}
- args_match:
    memo: {pattern: '(?i)secret'}
    order.amount: {gte: 5}
- args_match: {urgent: true, note: {}, 'a"b': {ne: x}}
- args_match: {never: {in: []}}
- args_match: {}
`
	var b strings.Builder
	for _, doc := range []string{
		`{"amount":20000,"currency":"USD","memo":"SECRET-4711","order":{"amount":7},"urgent":true,"a\"b":[],"never":1}`,
		`{"amount":"SECRET-4711","currency":null,"memo":"x","order.amount":[],"order":{"amount":1},"urgent":false,` +
			`"never":1}`,
		`{"memo":"secret\n","order.amount":1,"order":{"amount":{"x":"SECRET-4711"}},"never":"s"}`,
	} {
		truth, seen := eval(t, ToolArgs, Semantics{}, sound(t, cond), doc)
		fmt.Fprintf(&b, "%s\n%s\n", doc, truth)
		for _, o := range seen {
			line := fmt.Sprintf(
				"  group %d, line %d, %s %s: %s, %s; saw %s",
				o.Group,
				o.Range.Start.Line,
				o.Key,
				o.Test,
				o.Truth,
				o.Why,
				o.Seen,
			)
			if strings.Contains(line, "4711") {
				t.Errorf("an argument's value shows: %s", line)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}

	golden.Equal(t, "explain.txt", b.String())
}

func TestSeenNamesTheKind(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:          "missing",
		`{"a":null}`:  "null",
		`{"a":true}`:  "boolean",
		`{"a":1}`:     "number",
		`{"a":""}`:    "string of 0 characters",
		`{"a":"é"}`:   "string of 1 character",
		`{"a":[1,2]}`: "array",
		`{"a":{}}`:    "object",
	} {
		_, seen := eval(t, ToolArgs, Semantics{}, sound(t, `[{args_match: {a: {}}}]`), doc)
		if seen[0].Seen != want {
			t.Errorf("%s: %q, want %q", doc, seen[0].Seen, want)
		}
	}
}

// hot is a condition with every kind of test, and arguments that reach all of them.
const hot = `
- args_match:
    amount: {gt: 10000, ne: 20000, not_in: [1, 2, 3]}
    currency: {in: [EUR, USD, GBP, CHF, JPY, SEK, NOK, DKK, PLN, CZK]}
    country: {not_in: [US, CA]}
    to: {pattern: '@external\.com$'}
    memo: {pattern: 'dr[o0]p\s+table$'}
    order.amount: {gte: 5.5}
    flag: true
    level: {in: [1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5]}
`

const hotArgs = `{"amount":30000,"currency":"CZK","country":"DE","to":"a@external.com\n","memo":"dr0p table  ` +
	`","order":{"amount":6},` +
	`"order.amount":5,"flag":true,"level":1.5}`

func TestEvalAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		cond string
		most float64
	}{
		{strings.NewReplacer("memo: {pattern", "to.x: {ne", "to: {pattern", "to: {ne").Replace(hot), 0},
		// Only one pattern, because regexp pools the machines of patterns, and the race
		// detector makes the pool drop them at random.
		{strings.Replace(hot, "to: {pattern", "to: {ne", 1), 2},
	} {
		compiler := NewCompiler(Semantics{})
		p := compiler.Add(ToolArgs, sound(t, c.cond))
		view := scan(t, compiler, ToolArgs, strings.Replace(hotArgs, "{", `{"to.x":1,`, 1))
		if truth := p.Eval(view); truth != True {
			t.Fatalf("%v: the test does not reach every matcher", truth)
		}
		if n := testing.AllocsPerRun(1000, func() { p.Eval(view) }); n > c.most {
			t.Errorf("%v allocations", n)
		}
	}
}

// Tests of numbers and literals come before lists, and lists before patterns.
func TestCheapTestsFirst(t *testing.T) {
	c := NewCompiler(Semantics{})
	p := c.Add(
		ToolArgs,
		sound(
			t,
			match(
				`a: {pattern: 'x+'}, b: {pattern: '^x'}, c: {in: [1, 2, 3]}, d: {pattern: 'y+', gt: 1, in: [1, 2]}, `+
					`e: 1`,
			),
		),
	)
	order := ""
	for _, m := range p.groups[0] {
		order += p.src.Groups[0].Matchers[m.src].Key
		for i := 1; i < len(m.tests); i++ {
			if m.tests[i-1].cost() > m.tests[i].cost() {
				t.Errorf("test %d is cheaper than the one before", i)
			}
		}
	}

	if order != "ecabd" {
		t.Errorf("order %s", order)
	}
}

func TestCompilerSharesPatternsAndSlots(t *testing.T) {
	c := NewCompiler(Semantics{})
	x, y := c.Add(ToolArgs, sound(t, match("a: {pattern: 'x+'}"))), c.Add(
		Governance,
		sound(t, match("b: 1, a: {pattern: 'x+'}")),
	)
	if args, _ := c.Shapes(); args.Len() != 2 || x.groups[0][0].tests[0].texts != y.groups[0][1].tests[0].texts {
		t.Errorf("%d slots", args.Len())
	}
}

func BenchmarkEval(b *testing.B) {
	c := NewCompiler(Semantics{})
	e, _ := read(b, hot)
	p := c.Add(ToolArgs, e)
	view := scan(b, c, ToolArgs, hotArgs)
	b.ReportAllocs()
	for b.Loop() {
		p.Eval(view)
	}
}

// Every part has its truth, in the order of the file, whatever the order of evaluation.
func TestTruths(t *testing.T) {
	e := sound(t, `
- args_match: {memo: {pattern: secret}, amount: {gt: 10}}
- args_match: {currency: USD}
`)
	for doc, want := range map[string]string{
		`{"memo":"x","amount":20,"currency":"USD"}`: "true [{false [false true]} {true [true]}]",
		`{"memo":"secret","amount":20}`:             "true [{true [true true]} {unknown [unknown]}]",
		`{"memo":1,"amount":2,"currency":"EUR"}`:    "false [{false [unknown false]} {false [false]}]",
	} {
		c := NewCompiler(Semantics{})
		p := c.Add(ToolArgs, e)
		if p.Expr() != e {
			t.Fatal("the program is of another condition")
		}
		args, _ := c.Shapes()
		var v View
		must.Do(t, args.Scan([]byte(doc), value.Limits{}, &v.Args))
		if got := fmt.Sprintln(p.Truths(&v)); got != want+"\n" {
			t.Errorf("%s: %s, expected %s", doc, got, want)
		}
	}
}
