package condition

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// Tests with operands that no file has are unknown, whatever the argument is.
func TestTestsOfPolicies11BuiltInCode(t *testing.T) {
	hundred := number("1e307")
	for _, test := range []Test{
		{Op: Exists, Operand: number("1")}, {Op: NotPattern, Operand: text("(")}, {Op: StartsWith},
		{Op: StartsWith, List: []Scalar{number("1")}}, {Op: EndsWith, List: []Scalar{text("")}}, {Op: Length},
		{Op: Length, Tests: []Test{{Op: Ne, Operand: number("1")}}}, {Op: Host}, {Op: Host, List: []Scalar{text("A")}},
		{Op: PathInside}, {Op: NotPathInside, List: []Scalar{text("..")}}, {Op: Any},
		{Op: All, Tests: []Test{{Op: Gt, Operand: number("1")}}, Where: &Group{}}, {Op: MoneyOp},
		{Op: MoneyOp, Money: &Money{Currency: "c"}},
		{Op: MoneyOp, Money: &Money{Currency: "c", Bounds: []MoneyBound{
			{Op: Ne, Codes: []string{"EUR"}, Nums: []value.Num{hundred.Num}}}}},
		{Op: MoneyOp, Money: &Money{Currency: "c", Minor: true, Bounds: []MoneyBound{
			{Op: Gt, Codes: []string{"EUR"}, Nums: []value.Num{hundred.Num}}}}},
	} {
		e := &Expr{Groups: []Group{{Matchers: []Matcher{{Key: "a", Tests: []Test{test}}}}}}
		for _, doc := range []string{`{"a":1,"c":"EUR"}`, `{"a":"x"}`, `{"a":[1]}`, `{}`} {
			truth, seen := eval(t, ToolArgs, Semantics{}, e, doc)
			if truth != Unknown || seen[0].Why != WhyUnreadableTest {
				t.Errorf("%s on %s: %v %v", &test, doc, truth, seen)
			}
		}
	}
}

// Values that can't be read, and documents of other shapes, are unknown.
func TestBrokenValuesAreUnknown(t *testing.T) {
	broken := &value.Slot{Kind: value.Array, Text: "["}
	twice := value.Value{Kind: value.Object, Members: []value.Member{{Key: "a"}, {Key: "a"}}}
	for _, source := range []string{"length: {lt: 1}", "none: x", "all: {where: {a: 1}}"} {
		test := compiledTest(t, source)
		if got := test.truth(broken, &View{}); got != Unknown {
			t.Errorf("%s: %v", source, got)
		}
		if list, ok := test.compounds.(*elementsTest); ok && list.element(twice, &View{}) != Unknown {
			t.Errorf("%s: a broken element", source)
		}
	}
	amount := &value.Slot{Kind: value.Number, Num: value.IntNum(9)}
	for _, v := range []*View{nil, {}, {Args: value.Scratch{Top: value.Object}}} {
		test := compiledTest(t, "money: {currency: c, gt: {EUR: 5}, otherwise: false}")
		if got := test.truth(amount, v); got != Unknown {
			t.Errorf("money: %v", got)
		}
	}
	check(t, Governance, Semantics{}, []row{
		{match("a: {money: {currency: parent.input.c, gt: {EUR: 5}}}"),
			`{"a":6,"parent.input":{"c":"EUR"}}`, True, WhyMatched},
		{match("a: {money: {currency: parent.output.c, gt: {EUR: 5}, otherwise: true}}"),
			`{"a":6}`, Unknown, WhyCurrency},
	})
	e := sound(t, match("a: {money: {currency: parent.output.c, gt: {EUR: 5}}}"))
	if can, _ := NewAnalyzer(Governance, Semantics{}, 0).Satisfiable(e); can != No {
		t.Errorf("a currency that can't be read: %v", can)
	}
}

func compiledTest(t *testing.T, source string) test {
	t.Helper()
	e := sound(t, match("a: {"+source+"}"))
	a := NewAnalyzer(ToolArgs, Semantics{}, 0)
	return newTest(&e.Groups[0].Matchers[0].Tests[0], Semantics{}, a.patternsOf(Semantics{}))
}

// Operands as texts.
func TestOperandsOfPolicies11AreShown(t *testing.T) {
	codes := "AED: 1, AFN: 2, ALL: 3, AMD: 4, AOA: 5, ARS: 6, AUD: 7, AWG: 8, AZN: 9"
	for source, want := range map[string]string{
		"exists: true":                         "exists true",
		"starts_with: [a]":                     `starts_with "a"`,
		"host: [a.com, b.com]":                 `host ["a.com", "b.com"]`,
		"length: {gt: 1, lt: 9}":               "length (gt 1 and lt 9)",
		"any: x":                               `any (equals "x")`,
		"all: {gt: 1, ne: 5}":                  "all (gt 1 and ne 5)",
		"none: {where: {x.y: {}, b: {gt: 1}}}": `none (where "x.y" anything and b gt 1)`,
		"money: {currency: c, gt: {EUR: 5}, minor_units: true, otherwise: false}": "" +
			"money (gt EUR 5 by c, in minor units, otherwise false)",
		"money: {currency: c, gt: {" + codes + "}}": "" +
			"money (gt AED 1, AFN 2, ALL 3, AMD 4, AOA 5, ARS 6, AUD 7, AWG 8, 1 more by c)",
	} {
		e := sound(t, match("a: {"+source+"}"))
		one := &e.Groups[0].Matchers[0].Tests[0]
		if got := one.String(); got != want {
			t.Errorf("%s: %s", source, got)
		}
		if strings.Contains(one.OperandText(), "more") {
			t.Errorf("%s is cut: %s", source, one.OperandText())
		}
	}
	if (&Test{Op: MoneyOp}).OperandText()+(&Test{Op: "other"}).OperandText() != "" {
		t.Error("no operand has a text")
	}
	if keys := Newer(nodes(t, "[{x: 1}, 5]")); keys != nil {
		t.Errorf("%v", keys)
	}
}

// Lists that need several elements, and objects with few members.
func TestExamplesOfListsAndObjects(t *testing.T) {
	q := NewAnalyzer(ToolArgs, Semantics{}, 1).ask()
	elements := q.elementsOf()
	set := func(source string) []box {
		one := compiledTest(t, "any: {"+source+"}").compounds.(*elementsTest)
		return one.elements(elements, True)
	}
	hard := set("ends_with: b, not_pattern: 'ab$', pattern: '^a'")
	eight := make([][]box, 8)
	for i := range eight {
		eight[i] = set("gt: 1")
	}
	upTo := func(n int) counts { return counts{true, []int{n + 1}} }
	for name, c := range map[string]struct {
		list listBox
		want Verdict
	}{
		"one for three":   {listBox{lengths: upTo(1), some: [][]box{set("gt: 1"), set("lt: 9"), set("ne: 5")}}, Yes},
		"two for three":   {listBox{lengths: upTo(2), some: [][]box{set("gt: 1"), set("lt: 0"), set("ne: 5")}}, Yes},
		"none for two":    {listBox{lengths: upTo(1), some: [][]box{set("gt: 1"), set("lt: 0")}}, No},
		"too many":        {listBox{lengths: upTo(1), some: eight}, Undecided},
		"too hard":        {listBox{lengths: upTo(2), some: [][]box{hard}}, Undecided},
		"too hard as one": {listBox{lengths: upTo(1), some: [][]box{hard, set("starts_with: a")}}, Undecided},
	} {
		c.list.q = elements
		both := c.list.and(&listBox{lengths: allCounts(true)})
		v, found := both.pick()
		if found != c.want || found == Yes && !both.has(v.Items) {
			t.Errorf("%s: %v %s", name, found, v.AppendJSON(nil))
		}
	}

	a, b, c, d := q.place([]string{"a"}), q.place([]string{"a", "b"}), q.place([]string{"a",
		"c"}), q.place([]string{"a", "c", "d"})
	text := domain{texts: allTexts(true)}
	maybe := domain{atoms: atomAbsent, texts: texts{but: true, list: []string{"y"}}}
	for name, x := range map[string]struct {
		members counts
		b, c, d domain
		want    Verdict
	}{
		"one is left out":   {upTo(1), text, maybe, maybe, Yes},
		"both are left out": {upTo(0), maybe, maybe, maybe, Yes},
		"both are needed":   {upTo(1), text, text, maybe.without(0), No},
		"one is needed":     {upTo(0), maybe, everything().without(atomAbsent), maybe, No},
		"more are added":    {counts{false, []int{5}}, text, maybe, maybe, Yes},
		"too many":          {counts{false, []int{maxPicked + 5}}, text, maybe, maybe, Undecided},
	} {
		object := domain{}.onlyCompounds(&compounds{objects: x.members})
		found, v := q.witness(box{{a, object}, {b, x.b}, {c, x.c}, {d, x.d}})
		in, _ := v.Get("a")
		if found != x.want || found == Yes && !x.members.has(len(in.Members)) {
			t.Errorf("%s: %v %s", name, found, v.AppendJSON(nil))
		}
	}
	large := &compounds{objects: counts{false, []int{maxPicked + 5}}}
	if v, found := large.pick(&effort{}); found != Undecided {
		t.Errorf("a large object: %v %v", found, v)
	}
}

// Paths into a list that is tested as a whole: the analyzer says what it does not decide.
func TestElementsByPathAndAsAWhole(t *testing.T) {
	for source, want := range map[string]Verdict{
		"parent.input.a: {any: x}, parent.input.a.b: 1":                            No,
		"parent.input.a: {any: x}, parent.input.a.b: {exists: false}":              Yes,
		"parent.input.a: {any: {ends_with: b, not_pattern: 'ab$', pattern: '^a'}}": Undecided,
	} {
		e := sound(t, match(source))
		if got, witness := NewAnalyzer(Delegation, Semantics{}, 1).Satisfiable(e); got != want {
			t.Errorf("%s: %s", source, answer(got, witness))
		}
	}
	q := NewAnalyzer(ToolArgs, Semantics{}, 0).ask()
	list, first := q.place([]string{"a"}), q.place([]string{"a", "0"})
	lists := domain{}.onlyCompounds(&compounds{lists: allLists()})
	if got, v := q.witness(box{{list, lists}, {first, everything().without(atomAbsent)}}); got != Undecided {
		t.Errorf("a list with an element: %s", answer(got, v))
	}
}

// Many tests of one list have too many combinations, which is undecided rather than wrong.
func TestTooManyCombinationsOfLists(t *testing.T) {
	q := NewAnalyzer(ToolArgs, Semantics{}, 0).ask()
	place, elements := q.place([]string{"a"}), q.elementsOf()
	var lists []listBox
	for i := range 12 {
		set := []box{{{0, domain{numbers: pointsAt([]value.Num{value.IntNum(int64(i))})}}}}
		lists = append(lists, listBox{lengths: counts{true, []int{i + 1}}, every: set, q: elements})
	}
	of := func(lists ...listBox) box {
		return box{{place, domain{}.onlyCompounds(&compounds{objects: allCounts(true), lists: lists})}}
	}
	short, long := of(listBox{lengths: counts{true, []int{3}}}), of(listBox{lengths: counts{false, []int{3}}})
	if got, v := q.difference([]box{of(allLists()...)}, []box{short, long}); got != No {
		t.Errorf("short and long lists are not all: %s", answer(got, v))
	}
	if got, _ := q.difference([]box{of(allLists()...)}, []box{of(lists...), short, long}); got != Undecided {
		t.Errorf("%v", got)
	}
	if one := (&compounds{lists: []listBox{{lengths: counts{false, []int{2}}}}}); one.empty() {
		t.Error("lists of two elements are empty")
	} else if v, got := one.pick(&effort{}); got != Yes || len(v.Items) != 2 {
		t.Errorf("%v %s", got, v.AppendJSON(nil))
	}
}

func TestWordsOfCompounds(t *testing.T) {
	small := counts{true, []int{2}}
	for want, c := range map[string]*compounds{
		"a is an object or a is a list with at most 1 elements": {
			objects: allCounts(true), lists: []listBox{{lengths: counts{true, []int{2}}}}},
		"a is an object with at most 1 members":       {objects: small},
		"a is an object with 1 member or a is a list": {objects: counts{false, []int{1, 2}}, lists: allLists()},
		"a is an object with at least 2 members or a is a list with 0 or 3 to 4 elements": {
			objects: small.not(), lists: []listBox{{lengths: counts{true, []int{1, 3, 5}}}}},
	} {
		if got := c.words("a"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	x := domain{}.onlyCompounds(&compounds{objects: small})
	y := domain{}.onlyCompounds(&compounds{objects: small.not()})
	if all, ok := x.or(y); !ok || !all.compounds.objects.full() {
		t.Errorf("%v %v", all, ok)
	}
}
