package condition

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
)

// row is one case of docs/design/001-semantics.md. why is the reason of the first observation,
// or empty if the condition is false.
type row struct {
	cond  string
	args  string
	truth Truth
	why   string
}

// check evaluates rows of one use.
func check(t *testing.T, use Use, sem Semantics, rows []row) {
	t.Helper()
	for _, r := range rows {
		truth, seen := eval(t, use, sem, sound(t, r.cond), r.args)
		why := ""
		if len(seen) > 0 {
			why = seen[0].Why
		}
		if truth != r.truth || why != r.why {
			t.Errorf("%s on %s: %v %q, want %v %q", r.cond, r.args, truth, why, r.truth, r.why)
		}
	}
}

// The following tests cover the rows of docs/design/001-semantics.md in order, for approvals of
// tools. Each name begins with the words of the row.

func TestOmittedConditionIsTrue(t *testing.T) {
	if truth, seen := eval(t, ToolArgs, Semantics{}, nil, `{}`); truth != True || seen[0].Why != WhyAlways {
		t.Errorf("no condition: %v %v", truth, seen)
	}
}

func TestArgsMatchEmpty(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match(""), `{}`, True, WhyAlways},
		{match(""), `{"a":1}`, True, WhyAlways},
	})
}

func TestGroupWithoutArgsMatch(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{`{}`, `{"a":1}`, True, WhyAlways},
		{`{arg_match: {a: 1}}`, `{"a":2}`, True, WhyAlways},
		{`[{args_match: {a: 1}}, {}]`, `{"a":2}`, True, WhyAlways},
	})
	if e := sound(t, `{arg_match: {a: 1}}`); !e.Groups[0].NoArgsMatch {
		t.Error("the group is not marked")
	}
	if e := sound(t, match("")); e.Groups[0].NoArgsMatch {
		t.Error("an empty args_match is marked as missing")
	}
}

func TestConditionEmptyListOrNull(t *testing.T) {
	for _, text := range []string{"[]", "null"} {
		e, findings := read(t, text)
		if len(findings) != 1 || !findings[0].Stops {
			t.Errorf("%s: findings %v, want one that stops", text, findings)
		}
		if truth, _ := eval(t, ToolArgs, Semantics{}, e, `{"a":1}`); truth != True {
			t.Errorf("%s, forced: %v", text, truth)
		}
	}
}

func TestLiteralIsExact(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("op: DELETE"), `{"op":"DELETE"}`, True, WhyMatched},
		{match("op: DELETE"), `{"op":"delete"}`, False, ""},
		{match("op: DELETE"), `{"op":"DELETE "}`, False, ""},
		{match("op: DELETE"), `{"op":" DELETE"}`, False, ""},
		{match(`op: "é"`), `{"op":"e\u0301"}`, False, ""}, // no Unicode normalization
		{match(`op: "é"`), `{"op":"\u00e9"}`, True, WhyMatched},
		{match(`op: ""`), `{"op":""}`, True, WhyMatched},
		{match("n: 100"), `{"n":100.0}`, True, WhyMatched},
		{match("n: 100"), `{"n":1e2}`, True, WhyMatched},
		{match("n: 0"), `{"n":-0.0}`, True, WhyMatched},
		{match("n: 0.1"), `{"n":0.1000000000000000055511151231257827}`, Unknown, WhyRoundedNumber},
		{match("n: 9007199254740993"), `{"n":9007199254740992}`, Unknown, WhyRoundedNumber},
		{match("b: true"), `{"b":true}`, True, WhyMatched},
		{match("b: true"), `{"b":false}`, False, ""},
	})
}

func TestBooleanIsNeverANumber(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("a: 1"), `{"a":true}`, Unknown, WhyTypeMismatch},
		{match("a: true"), `{"a":1}`, Unknown, WhyTypeMismatch},
		{match("a: true"), `{"a":"true"}`, Unknown, WhyTypeMismatch},
		{match("a: false"), `{"a":0}`, Unknown, WhyTypeMismatch},
		{match("a: {gt: 0}"), `{"a":true}`, Unknown, WhyTypeMismatch},
		{match("a: {in: [1, 0]}"), `{"a":true}`, Unknown, WhyTypeMismatch},
		{match("a: {ne: 1}"), `{"a":true}`, True, WhyMatched},
		{match("a: {not_in: [0, 1]}"), `{"a":false}`, True, WhyMatched},
	})
}

func TestComparisonsAreExact(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("n: {gt: 10}"), `{"n":10}`, False, ""},
		{match("n: {gt: 10}"), `{"n":10.000000000000000000000001}`, Unknown, WhyRoundedNumber},
		{match("n: {gte: 10}"), `{"n":10.0}`, True, WhyMatched},
		{match("n: {gte: 10}"), `{"n":9.999999999999999999999}`, Unknown, WhyRoundedNumber},
		{match("n: {lt: 10}"), `{"n":10}`, False, ""},
		{match("n: {lt: 10}"), `{"n":-1e300}`, True, WhyMatched},
		{match("n: {lte: 10}"), `{"n":10}`, True, WhyMatched},
		{match("n: {lte: 10}"), `{"n":1e1}`, True, WhyMatched},
		{match("n: {gt: 9007199254740992}"), `{"n":9007199254740993}`, Unknown, WhyRoundedNumber},
		{match("n: {lte: 9007199254740992}"), `{"n":9007199254740993}`, Unknown, WhyRoundedNumber},
		{match("n: {gt: 18446744073709551615}"), `{"n":18446744073709551616}`, Unknown, WhyRoundedNumber},
		{match("n: {gt: 18446744073709551615}"), `{"n":18446744073709555000}`, True, WhyMatched},
	})
}

func TestNeAndNotIn(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("c: {ne: EUR}"), `{"c":"EUR"}`, False, ""},
		{match("c: {ne: EUR}"), `{"c":"eur"}`, True, WhyMatched},
		{match("c: {ne: EUR}"), `{"c":7}`, True, WhyMatched},
		{match("c: {ne: EUR}"), `{"c":["EUR"]}`, True, WhyMatched},
		{match("c: {ne: EUR}"), `{"c":{}}`, True, WhyMatched},
		{match("c: {ne: 1}"), `{"c":"1"}`, True, WhyMatched},
		{match("c: {ne: 1}"), `{"c":1.0}`, False, ""},
		{match("c: {ne: true}"), `{"c":true}`, False, ""},
		{match("c: {ne: true}"), `{"c":false}`, True, WhyMatched},
		{match("c: {ne: EUR}"), `{}`, Unknown, WhyMissingArgument},
		{match("c: {not_in: [EUR, 1, true]}"), `{"c":"EUR"}`, False, ""},
		{match("c: {not_in: [EUR, 1, true]}"), `{"c":1}`, False, ""},
		{match("c: {not_in: [EUR, 1, true]}"), `{"c":true}`, False, ""},
		{match("c: {not_in: [EUR, 1, true]}"), `{"c":false}`, True, WhyMatched},
		{match("c: {not_in: [EUR]}"), `{"c":[]}`, True, WhyMatched},
		{match("c: {not_in: [EUR]}"), `{}`, Unknown, WhyMissingArgument},
	})
}

func TestIn(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("c: {in: [EUR, USD]}"), `{"c":"USD"}`, True, WhyMatched},
		{match("c: {in: [EUR, USD]}"), `{"c":"usd"}`, False, ""},
		{match("c: {in: [1, 2.50]}"), `{"c":2.5}`, True, WhyMatched},
		{match("c: {in: [true, yes]}"), `{"c":false}`, False, ""},
		{match("c: {in: [true, yes]}"), `{"c":true}`, True, WhyMatched},
		{match("c: {in: [true, false]}"), `{"c":false}`, True, WhyMatched},
	})
}

// Lists with nine or more entries are searched.
func TestLongLists(t *testing.T) {
	texts := match("c: {in: [a, b, c, d, e, f, g, h, i, j]}")
	nums := match("c: {not_in: [9, 8, 7, 6.0, 5, 4, 3, 2, 1, 1e1]}")
	check(t, ToolArgs, Semantics{}, []row{
		{texts, `{"c":"j"}`, True, WhyMatched},
		{texts, `{"c":"k"}`, False, ""},
		{texts, `{"c":1}`, Unknown, WhyTypeMismatch},
		{match("c: {pattern: '^(aa|bb|cc|dd|ee|ff|gg|hh|ii|jj|kk)$'}"), `{"c":"kk\n"}`, True, WhyMatched},
		{match("c: {pattern: '^(aa|bb|cc|dd|ee|ff|gg|hh|ii|jj|kk)$'}"), `{"c":"kkk"}`, False, ""},
		{nums, `{"c":10}`, False, ""},
		{nums, `{"c":6}`, False, ""},
		{nums, `{"c":6.5}`, True, WhyMatched},
	})
}

func TestEmptyLists(t *testing.T) {
	for _, present := range []string{`"x"`, `1`, `true`, `null`, `[]`, `{}`} {
		check(t, ToolArgs, Semantics{}, []row{
			{match("a: {in: []}"), `{"a":` + present + `}`, False, ""},
			{match("a: {not_in: []}"), `{"a":` + present + `}`, True, WhyMatched},
		})
	}

	check(t, ToolArgs, Semantics{}, []row{
		{match("a: {in: []}"), `{}`, Unknown, WhyMissingArgument},
		{match("a: {not_in: []}"), `{}`, Unknown, WhyMissingArgument},
	})
}

// This is the standard's own enterprise example: omitting `operation` must not evade the gate.
func TestArgumentMissing(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("operation: {in: [DELETE, UPDATE, DROP]}"), `{"query":"DROP TABLE x"}`, Unknown, WhyMissingArgument},
		{match("operation: DELETE"), `{}`, Unknown, WhyMissingArgument},
		{match("n: {gt: 1}"), `{}`, Unknown, WhyMissingArgument},
		{match("n: {pattern: x}"), `{}`, Unknown, WhyMissingArgument},
		{match("operation: DELETE"), `{"Operation":"DELETE"}`, Unknown, WhyMissingArgument},
	})
}

func TestArgumentNull(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("a: x"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {gt: 1}"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {in: [x]}"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {pattern: 'null'}"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: 'null'"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {ne: x}"), `{"a":null}`, True, WhyMatched},
		{match("a: {not_in: [x]}"), `{"a":null}`, True, WhyMatched},
	})
}

func TestTypeMismatch(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("n: {gt: 10000}"), `{"n":"20000"}`, Unknown, WhyTypeMismatch},
		{match("n: 10000"), `{"n":"10000"}`, Unknown, WhyTypeMismatch},
		{match("n: '10000'"), `{"n":10000}`, Unknown, WhyTypeMismatch},
		{match("n: x"), `{"n":{"x":1}}`, Unknown, WhyTypeMismatch},
		{match("n: {lte: 3}"), `{"n":[1]}`, Unknown, WhyTypeMismatch},
		// in is unknown only if no listed value has the argument's type.
		{match("n: {in: [1, 2]}"), `{"n":"1"}`, Unknown, WhyTypeMismatch},
		{match("n: {in: [1, two]}"), `{"n":"1"}`, False, ""},
		{match("n: {in: [1, two]}"), `{"n":true}`, Unknown, WhyTypeMismatch},
		{match("n: {in: [1, two]}"), `{"n":["two"]}`, Unknown, WhyTypeMismatch},
	})
}

func TestArgumentIsAnArray(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("to: {pattern: '@external'}"), `{"to":["a@external.com"]}`, Unknown, WhyTypeMismatch},
		{match("to: a"), `{"to":["a"]}`, Unknown, WhyTypeMismatch},
		{match("to: a"), `{"to":[]}`, Unknown, WhyTypeMismatch},
	})
}

func TestSeveralOperatorsAreANDed(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("n: {gte: 1, lt: 5}"), `{"n":1}`, True, WhyMatched},
		{match("n: {gte: 1, lt: 5}"), `{"n":5}`, False, ""},
		{match("n: {gt: 1, lt: 0}"), `{"n":1}`, False, ""},
		{match("n: {gt: 1, ne: x}"), `{"n":"x"}`, False, ""}, // unknown and false
		{match("n: {gt: 1, ne: x}"), `{"n":"y"}`, Unknown, WhyTypeMismatch},
		{match("n: {pattern: a, not_in: [ab, cab]}"), `{"n":"cab"}`, False, ""},
		{match("n: {pattern: a, not_in: [ab, cab]}"), `{"n":"cabs"}`, True, WhyMatched},
	})
}

// A matcher without operators requires nothing, not even that the argument is present.
func TestMatcherEmpty(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("a: {}"), `{"a":1}`, True, WhyAlways},
		{match("a: {}"), `{"a":null}`, True, WhyAlways},
		{match("a: {}"), `{}`, True, WhyAlways},
		{match("a: {}, b: 1"), `{"b":2}`, False, ""},
	})
}

func TestUnknownOperatorForced(t *testing.T) {
	e, findings := read(t, match("a: {eq: 1}"))
	if len(findings) != 1 || !findings[0].Stops {
		t.Fatalf("findings %v", findings)
	}
	for args, want := range map[string]Truth{
		`{"a":1}`: Unknown,
		`{"a":2}`: Unknown,
		`{}`:      Unknown,
	} {
		if truth, seen := eval(t, ToolArgs, Semantics{OnMissing: NoMatch}, e, args); truth != want ||
			seen[0].Why != WhyUnreadableTest {
			t.Errorf("%s: %v %v", args, truth, seen)
		}
	}
}

func TestKeyOfATool(t *testing.T) {
	for _, use := range []Use{ToolArgs, SkillArgs} {
		check(t, use, Semantics{}, []row{
			{match("a: 1"), `{"a":1}`, True, WhyMatched},
			{match("a: 1"), `{"b":{"a":1}}`, Unknown, WhyMissingArgument},
			{match("'': 1"), `{"":1}`, True, WhyMatched},
			{match("'parent.input.x': 1"), `{"x":1}`, Unknown, WhyNoParentHere},
		})
	}
}

func TestDottedKeyOfATool(t *testing.T) {
	cond := match("order.amount: {gt: 10}")
	check(t, ToolArgs, Semantics{}, []row{
		{cond, `{"order.amount":11}`, True, WhyMatched},
		{cond, `{"order.amount":9}`, False, ""},
		{cond, `{"order":{"amount":11}}`, True, WhyMatched},
		{cond, `{"order":{"amount":9}}`, False, ""},
		{cond, `{"order.amount":9,"order":{"amount":11}}`, True, WhyMatched},
		{cond, `{"order.amount":11,"order":{"amount":9}}`, True, WhyMatched},
		{cond, `{"order.amount":9,"order":{"amount":"x"}}`, Unknown, WhyTypeMismatch},
		{cond, `{"order.amount":9,"order":{"amount":null}}`, Unknown, WhyNullArgument},
		{cond, `{"order.amount":9,"order":{"amount":8}}`, False, ""},
		{cond, `{"order":{}}`, Unknown, WhyMissingArgument},
		{cond, `{"order":7}`, Unknown, WhyMissingArgument},
		{match("a.b.c: 1"), `{"a.b":{"c":1}}`, Unknown, WhyMissingArgument}, // partly literal
		{match("a.b.c: 1"), `{"a":{"b.c":1}}`, Unknown, WhyMissingArgument},
		{match("a.0: 1"), `{"a":[1]}`, True, WhyMatched}, // as in templates
	})
}

func TestKeyOfADelegation(t *testing.T) {
	check(t, Delegation, Semantics{}, []row{ // evaluated on the parent's input
		{match("parent.input.risk: high"), `{"risk":"high"}`, True, WhyMatched},
		{match("parent.input.risk: high"), `{"risk":"low"}`, False, ""},
		{match("parent.input.order.amount: {gt: 1}"), `{"order":{"amount":2}}`, True, WhyMatched},
		// Never literal.
		{match("parent.input.order.amount: {gt: 1}"), `{"order.amount":2}`, Unknown, WhyMissingArgument},
		{match("risk: high"), `{"risk":"low"}`, Unknown, WhyBareKey},
		{match("risk: {}"), `{}`, Unknown, WhyBareKey},
		{match("parent.output.risk: high"), `{"risk":"high"}`, Unknown, WhyNotAPath},
		{match("child.input.risk: high"), `{"risk":"high"}`, Unknown, WhyNotAPath},
		{match("risk: high, parent.input.a: 1"), `{"a":2}`, False, ""},
	})
}

// A caller can't forge the parent's input by arguments.
func TestKeysThatBeginWithParentNameNoArgument(t *testing.T) {
	for _, key := range []string{
		"parent.input.risk",
		"parent.input.a.b",
		"parent.output.risk",
		"parent.risk",
		"parent.",
		"parent..",
		"parent.input",
		"parent.input.",
	} {
		cond := match("'" + key + "': low")
		for _, forged := range []string{
			`{}`,
			`{"` + key + `":"low"}`,
			`{"parent":{"input":{"risk":"low","a":{"b":"low"}},"risk":"low","":"low"}}`,
		} {
			for _, use := range []Use{ToolArgs, SkillArgs} {
				check(t, use, Semantics{}, []row{{cond, forged, Unknown, WhyNoParentHere}})
			}
			why := WhyNotAPath
			if strings.HasPrefix(key, "parent.input.") && key != "parent.input." {
				why = WhyMissingArgument
			}
			check(t, Governance, Semantics{}, []row{{cond, forged, Unknown, why}})
		}
	}

	for _, use := range []Use{ToolArgs, SkillArgs, Governance} { // plain names, and names that only look similar
		check(t, use, Semantics{}, []row{
			{match("parent: 1"), `{"parent":1}`, True, WhyMatched},
			{match("parents.a: 1"), `{"parents":{"a":1}}`, True, WhyMatched},
			{match("a.parent.b: 1"), `{"a":{"parent":{"b":1}}}`, True, WhyMatched},
		})
	}
}

// Plain keys read the arguments, and parent.input reads the parent's input.
func TestGovernanceSeesTheWholeCall(t *testing.T) {
	cond := match("amount: {gt: 10}, parent.input.risk: high")
	check(t, Governance, Semantics{}, []row{
		{cond, `{"amount":11,"parent.input":{"risk":"high"}}`, True, WhyMatched},
		{cond, `{"amount":11,"parent.input":{"risk":"low"}}`, False, ""},
		{cond, `{"amount":9,"parent.input":{"risk":"high"}}`, False, ""},
		{cond, `{"amount":9,"parent.input":{}}`, False, ""},
		{match("parent.input.risk: high"), `{"risk":"high","parent.input":{}}`, Unknown, WhyMissingArgument},
		{match("risk: high"), `{"parent.input":{"risk":"high"}}`, Unknown, WhyMissingArgument},
		// Never literal.
		{match("parent.input.order.amount: 1"), `{"parent.input":{"order.amount":1}}`, Unknown, WhyMissingArgument},
	})
	c := NewCompiler(Semantics{})
	p := c.Add(Governance, sound(t, cond))
	args, _ := c.Shapes()
	v := &View{} // without a parent's input
	must.Do(t, args.Scan([]byte(`{"amount":11}`), value.Limits{}, &v.Args))
	if truth, seen := p.Explain(v); truth != Unknown || p.Eval(v) != Unknown || seen[1].Why != WhyNoParentInput ||
		seen[1].Seen != "missing" {
		t.Errorf("%v %+v", truth, seen)
	}
}

func TestKeyOfALoopOrRoute(t *testing.T) {
	doc := `{"parent":{"input":{"x":1}},"checker":{"output":{"score":0.9,"tags":["a"]}}}`
	for _, use := range []Use{LoopExit, Route} {
		check(t, use, Semantics{}, []row{
			{match("checker.output.score: {gte: 0.8}"), doc, True, WhyMatched},
			{match("parent.input.x: 2"), doc, False, ""},
			{match("parent.output.x: 1"), doc, Unknown, WhyMissingArgument},
			{match("score: {gte: 0.8}"), doc, Unknown, WhyBareKey},
		})
	}
}

func TestPathGrammar(t *testing.T) {
	for _, key := range []string{
		"parent.input", "parent.input.", "parent.input.a b", "parent.inputs.a", ".input.a", "parent.input.[]",
		"parent.input.items.[].x", "parent.input.1a", "parent..a", "pärent.input.a", "parent.input.a-b",
	} {
		if places, fault := Places(LoopExit, key); places != nil || fault != WhyNotAPath {
			t.Errorf("%q: %v %q", key, places, fault)
		}
	}

	for _, key := range []string{"parent.input.a", "_x.output.a1.b_2"} {
		if places, fault := Places(Route, key); len(places) != 1 || fault != "" {
			t.Errorf("%q: %v %q", key, places, fault)
		}
	}
}

func TestRegexDialectAndAnchoring(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("q: {pattern: 'drop'}"), `{"q":"please drop it"}`, True, WhyMatched},
		{match("q: {pattern: 'dr[aeiou]{1,3}p\\s+t'}"), `{"q":"droop   table"}`, True, WhyMatched},
		{match("q: {pattern: '^drop$'}"), `{"q":"a drop"}`, False, ""},
		{match("q: {pattern: '.*@external\\.com$'}"), `{"q":"x@external.com"}`, True, WhyMatched},
		{match("q: {pattern: '^(a+)+$'}"), `{"q":"` + strings.Repeat("a", 5000) + `!"}`, False, ""}, // linear time
		{match("q: {pattern: '\\pL'}"), `{"q":"é"}`, True, WhyMatched},
	})
}

func TestRegexFlags(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("q: {pattern: DROP}"), `{"q":"drop"}`, False, ""},
		{match("q: {pattern: '(?i)DROP'}"), `{"q":"drop"}`, True, WhyMatched},
		{match("q: {pattern: 'a.b'}"), `{"q":"a\nb"}`, False, ""},
		{match("q: {pattern: '^b'}"), `{"q":"a\nb"}`, False, ""},
		{match("q: {pattern: 'a$'}"), `{"q":"a\nb"}`, False, ""},
		// A trailing newline, or any white space, must not defeat $.
		{match("q: {pattern: '@external\\.com$'}"), `{"q":"x@external.com\n"}`, True, WhyMatched},
		{
			match("q: {pattern: '[a-z]+@external\\.com$'}"),
			`{"q":"x@external.com \t\u00a0\u2028\n"}`,
			True,
			WhyMatched,
		},
		{match("q: {pattern: '[a-z]+@external\\.com$'}"), `{"q":"x@external.com."}`, False, ""},
		{match("q: {pattern: 'com\\n$'}"), `{"q":"x.com\n"}`, True, WhyMatched}, // the raw text counts, too
		{match("q: {pattern: '^$'}"), `{"q":"  "}`, True, WhyMatched},
	})
}

func TestRegexInvalidForced(t *testing.T) {
	e, findings := read(t, match("q: {pattern: '('}"))
	if len(findings) != 1 || findings[0].Rule != ruleRegex || !findings[0].Stops {
		t.Fatalf("findings %v", findings)
	}
	if truth, seen := eval(t, ToolArgs, Semantics{}, e, `{"q":"("}`); truth != Unknown ||
		seen[0].Why != WhyUnreadableTest {
		t.Errorf("%v %v", truth, seen)
	}
}

func TestPatternOnNonString(t *testing.T) {
	check(t, ToolArgs, Semantics{}, []row{
		{match("q: {pattern: 'None|null|1|true'}"), `{"q":null}`, Unknown, WhyNullArgument},
		{match("q: {pattern: '1'}"), `{"q":1}`, Unknown, WhyTypeMismatch},
		{match("q: {pattern: 'true'}"), `{"q":true}`, Unknown, WhyTypeMismatch},
		{match("q: {pattern: 'x'}"), `{"q":{"x":"x"}}`, Unknown, WhyTypeMismatch},
	})
}

// If the arguments, or a parent's input, are not an object, every matcher is Unknown, including
// those without tests.
func TestDocumentsThatAreNoObject(t *testing.T) {
	for _, tt := range []struct {
		use       Use
		cond, doc string
		want      Truth
		why, seen string
	}{
		{ToolArgs, match("a: 1"), `[1]`, Unknown, WhyNoArguments, "array"},
		{ToolArgs, match("a: {}"), `"x"`, Unknown, WhyNoArguments, "string"},
		{ToolArgs, match("a: {ne: 1}"), `null`, Unknown, WhyNoArguments, "null"},
		{ToolArgs, `[{args_match: {a: 1}}, {args_match: {}}]`, `[]`, True, WhyNoArguments, "array"},
		{Delegation, match("parent.input.a: 1"), `[1]`, Unknown, WhyNoArguments, "array"},
		{Governance, match("parent.input.a: 1"), `{"parent.input":[]}`, Unknown, WhyNoArguments, "array"},
	} {
		truth, seen := eval(t, tt.use, Semantics{OnMissing: NoMatch}, sound(t, tt.cond), tt.doc)
		if truth != tt.want || seen[0].Why != tt.why || seen[0].Seen != tt.seen {
			t.Errorf("%s on %s: %v %+v", tt.cond, tt.doc, truth, seen)
		}
	}
}

func TestEvaluateReadsSoundDocumentsOnly(t *testing.T) {
	bad := value.Value{
		Kind:    value.Object,
		Members: []value.Member{{Key: "a", Value: value.Value{Kind: value.String, Text: "\xff"}}},
	}
	if truth, err := Evaluate(ToolArgs, Semantics{}, sound(t, match("b: 1")), bad); err == nil || truth != Unknown {
		t.Errorf("%v, %v", truth, err)
	}
}

// Programs ask on a View that was never scanned, or was scanned with another shape.
func TestForeignViews(t *testing.T) {
	c := NewCompiler(Semantics{})
	of := map[string]*Program{
		"arguments":      c.Add(ToolArgs, sound(t, match("a: {ne: 1}"))),
		"two places":     c.Add(ToolArgs, sound(t, match("a.b: {ne: 1}"))),
		"parent's input": c.Add(Delegation, sound(t, match("parent.input.a: {ne: 1}"))),
	}
	small := value.Scratch{Top: value.Object}
	for name, p := range of {
		for _, v := range []*View{{}, {Args: small, Parent: small}} {
			if truth, seen := p.Explain(v); p.Eval(v) != Unknown || truth != Unknown || len(seen) != 1 {
				t.Errorf("%s: %v, %v %v", name, p.Eval(v), truth, seen)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	cond := `[{args_match: {amount: {gt: 10}, currency: USD}}, {args_match: {urgent: true}}]`
	check(t, ToolArgs, Semantics{}, []row{
		{cond, `{"amount":11,"currency":"USD","urgent":false}`, True, WhyMatched},
		{cond, `{"amount":9,"currency":"USD","urgent":true}`, True, WhyMatched},
		{cond, `{"amount":9,"currency":"USD","urgent":false}`, False, ""},
		{cond, `{"amount":9,"currency":"USD"}`, Unknown, WhyMissingArgument},
		{cond, `{"currency":"EUR","urgent":false}`, False, ""}, // unknown and false
		{cond, `{"currency":"USD","urgent":false}`, Unknown, WhyMissingArgument},
		{cond, `{"currency":"USD","urgent":true}`, True, WhyMissingArgument}, // unknown or true
	})
}

func TestOnMissingNoMatch(t *testing.T) {
	check(t, ToolArgs, Semantics{OnMissing: NoMatch}, []row{
		{match("a: x"), `{}`, False, ""},
		{match("a: x"), `{"a":null}`, False, ""},
		{match("a: {in: []}"), `{}`, False, ""},
		{match("a: x"), `{"a":1}`, Unknown, WhyTypeMismatch},
		{match("a: {ne: x}"), `{}`, Unknown, WhyMissingArgument},
		{match("a: {ne: x}"), `{"a":null}`, True, WhyMatched},
		{match("a.b: {lt: 2}"), `{"a":{}}`, False, ""},
	})
	check(t, Delegation, Semantics{OnMissing: NoMatch, OnMismatch: NoMatch}, []row{
		{match("a: x"), `{}`, Unknown, WhyBareKey},
	})
}

func TestOnMismatchNoMatch(t *testing.T) {
	check(t, ToolArgs, Semantics{OnMismatch: NoMatch}, []row{
		{match("a: x"), `{"a":1}`, False, ""},
		{match("a: {pattern: x}"), `{"a":["x"]}`, False, ""},
		{match("a: {gt: 1}"), `{"a":true}`, False, ""},
		{match("a: {in: [1]}"), `{"a":"1"}`, False, ""},
		{match("a: x"), `{}`, Unknown, WhyMissingArgument},
		{match("a: x"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {ne: x}"), `{"a":1}`, True, WhyMatched},
	})
}

func TestAnchorFull(t *testing.T) {
	check(t, ToolArgs, Semantics{Anchor: Full}, []row{
		{match("q: {pattern: drop}"), `{"q":"drop"}`, True, WhyMatched},
		{match("q: {pattern: drop}"), `{"q":"drop\n"}`, True, WhyMatched},
		{match("q: {pattern: drop}"), `{"q":"drop it"}`, False, ""},
		{match("q: {pattern: 'a|ab'}"), `{"q":"ab"}`, True, WhyMatched},
		{match("q: {pattern: 'x*a|x*b'}"), `{"q":"xxb"}`, True, WhyMatched},
		{match("q: {pattern: 'x*a|x*b'}"), `{"q":"xxbx"}`, False, ""},
		{match(`q: {pattern: '\Qa)'}`), `{"q":"a)"}`, True, WhyMatched}, // a group around the text would break this
	})
}

func TestTrimRawOnly(t *testing.T) {
	check(t, ToolArgs, Semantics{Trim: RawOnly}, []row{
		{match("q: {pattern: 'com$'}"), `{"q":"x.com\n"}`, False, ""},
		{match("q: {pattern: 'c[o0]m$'}"), `{"q":"x.com\n"}`, False, ""},
		{match("q: {pattern: 'c[o0]m$'}"), `{"q":"x.com"}`, True, WhyMatched},
	})
}

func TestWords(t *testing.T) {
	var b strings.Builder
	for _, o := range Operators(Policy11) {
		b.WriteString(string(o) + "\n")
	}
	for v := False; v <= True+1; v++ {
		b.WriteString(v.String() + "\n")
	}
	for i := range uint8(2) {
		b.WriteString(strings.Join([]string{Silence(i).String(), Anchor(i).String(), Trim(i).String()}, " ") + "\n")
	}
	for v := No; v <= Undecided; v++ {
		b.WriteString(v.String() + "\n")
	}
	golden.Equal(t, "words.txt", b.String())
}
