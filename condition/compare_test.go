package condition

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/value"
)

// asks evaluates a gate on one call with a Program. args and parent are documents; parent may
// be empty.
func asks(t fataler, g Gate, args, parent string) bool {
	t.Helper()
	c := NewCompiler(g.Sem)
	p := c.Add(g.Use, g.When)
	argShape, parentShape := c.Shapes()
	var v View
	if err := argShape.Scan([]byte(args), value.Limits{}, &v.Args); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	if parent != "" {
		if err := parentShape.Scan([]byte(parent), value.Limits{}, &v.Parent); err != nil {
			t.Fatalf("%s: %v", parent, err)
		}
	}

	return p.Eval(&v) != False
}

// whole joins arguments and a parent's input into one document.
func whole(t fataler, args, parent string) value.Value {
	t.Helper()
	doc, err := value.Parse([]byte(args), value.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	if parent != "" {
		input, err := value.Parse([]byte(parent), value.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", parent, err)
		}
		doc.Members = append(doc.Members, value.Member{Key: parentInput, Value: input})
	}

	return doc
}

// gates draws gates of all uses with random semantics.
func gates() *rapid.Generator[Gate] {
	keys := map[Use][]string{
		ToolArgs:   {"a", "b", "a.b"},
		SkillArgs:  {"a", "b"},
		Delegation: {"parent.input.a", "parent.input.b", "a"},
		Governance: {"a", "parent.input.a", "parent.output.a"},
	}
	return rapid.Custom(func(t *rapid.T) Gate {
		g := Gate{
			Use: rapid.SampledFrom([]Use{ToolArgs, SkillArgs, Delegation, Governance}).Draw(t, "use"),
			Sem: semantics().Draw(t, "semantics"),
		}
		if rapid.IntRange(0, 9).Draw(t, "always") > 0 {
			w := world{use: g.Use, keys: keys[g.Use]}
			g.When = w.exprsOf(2, []string{"^a", "b$", "a+", "^[ab]*$"}).Draw(t, "condition")
		}
		return g
	})
}

// Every call, including witnesses, is in exactly the cell with the gates that ask about it, and
// empty cells have no call.
func TestCellsAgreeWithBruteForce(t *testing.T) {
	some := []string{"", `null`, `true`, `0`, `1`, `2`, `"a"`, `"ab"`, `"b "`, `"x"`, `{}`, `{"b":1}`, `{"b":"a"}`}
	undecided := 0
	rapid.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOfN(rapid.SliceOfN(gates(), 0, 2), 1, 3).Draw(t, "sets")
		calls := Calls{NoParent: rapid.Bool().Draw(t, "no parent")}
		cells, ok := NewComparison(0).Cells(calls, nil, sets...)
		if !ok {
			undecided++
			return
		}
		said := func(args, parent string) []bool {
			out := make([]bool, len(sets))
			for i, set := range sets {
				out[i] = slices.ContainsFunc(set, func(g Gate) bool { return asks(t, g, args, parent) })
			}

			return out
		}
		for _, c := range cells {
			if c.Found == Undecided {
				undecided++
				continue
			}
			args, parent, given := SplitDocument(c.Witness)
			in := ""
			switch {
			case given:
				in = string(parent.AppendJSON(nil))
			case !calls.NoParent:
				in = "{}"
			}

			if got := said(string(args.AppendJSON(nil)), in); !slices.Equal(got, c.Asks) || !c.Region.Has(c.Witness) {
				t.Fatalf("%s: the witness %s makes it %v, want %v", c.Region, c.Witness.AppendJSON(nil), got, c.Asks)
			}
		}

		told := make([]*Region, len(cells)) // the regions that are described
		for i, c := range cells {
			told[i] = &Region{q: c.Region.q, boxes: c.Region.simple()}
		}
		for range 40 {
			draw := func(what string) string { return rapid.SampledFrom(some).Draw(t, what) }
			args, parent := object("a", draw("a"), "b", draw("b")), ""
			if !calls.NoParent {
				parent = object("a", draw("parent a"), "b", draw("parent b"))
			}
			want, doc := said(args, parent), whole(t, args, parent)
			for i, c := range cells {
				if in, words := c.Region.Has(doc), told[i].Has(doc); in != words {
					t.Fatalf("%s %s: in the region %v, in its words %s: %v", args, parent, in, c.Region, words)
				}

				if in, should := c.Region.Has(doc), slices.Equal(want, c.Asks); in != should {
					t.Fatalf("%s %s: in the region %s of %v: %v, but %v ask", args, parent, c.Region, c.Asks, in, want)
				}
			}

			if !slices.ContainsFunc(cells, func(c Cell) bool { return slices.Equal(want, c.Asks) }) {
				t.Fatalf("%s %s: %v ask, which no cell has", args, parent, want)
			}
		}
	})

	if undecided > 5 { // paths or hosts with several patterns may be
		t.Errorf("%d questions were undecided", undecided)
	}
}

func gateOf(t fataler, matchers string) Gate {
	return Gate{Use: Governance, When: sound(t, match(matchers))}
}

// The descriptions of regions are those that people read about a changed gate.
func TestRegionsInWords(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"amount: {gt: 8000}", "amount: {gt: 10000}", "8000 < amount ≤ 10000"},
		{"amount: {gte: 8000}", "amount: {gte: 10000}", "8000 ≤ amount < 10000"},
		{"amount: {gt: 5}", "amount: {ne: 7}", "amount = 7"},
		{"amount: {gt: 8000}", "currency: USD, amount: {gt: 8000}",
			`(amount > 8000 or amount is no number) and currency is any text except "USD"`},
		{"amount: {in: [1, 2]}", "amount: {in: [2, 3]}", "amount = 1"},
		{"amount: {}", "amount: {gt: 8000}", "amount ≤ 8000"},
		{"amount: {}", "amount: {ne: 5}", "amount = 5"},
		{"amount: {}", "amount: {in: [1, x]}", `amount is any number except 1 or amount is any text except "x"`},
		{"amount: {not_in: [1, 5]}", "amount: {lt: 3}", "3 ≤ amount < 5 or amount > 5"},
		{"to: {pattern: '@a'}", "to: {pattern: '@ab'}", `to matches "@a" and to is a text that does not match "@ab"`},
		{"to: {in: [a, b, c]}", "to: c", `to is one of "a", "b"`},
		{"ok: true", "ok: {ne: true}", "ok is true"},
		{"ok: {}", "ok: false", "ok is true"},
		{"a: {in: []}", "b: {}", ""},
		{"'x.y': 1", "'x.y': 2", `"x.y" = 1 and (x.y is any number except 2 or x.y is missing); or ` +
			`("x.y" is any number except 2 or "x.y" is missing) and x.y = 1`},
	} {
		cells, ok := NewComparison(0).Cells(Calls{}, nil, []Gate{gateOf(t, c.old)}, []Gate{gateOf(t, c.new)})
		got := ""
		for _, cell := range cells {
			if cell.Asks[0] && !cell.Asks[1] {
				got = cell.Region.String()
			}
		}
		if !ok || got != c.want {
			t.Errorf("%s → %s\ngot  %s\nwant %s", c.old, c.new, got, c.want)
		}
	}
}

// The pieces of a region don't overlap, but their descriptions are as general as the region
// permits.
func TestWordsLeaveOutNeedlessSides(t *testing.T) {
	always := []Gate{{Use: Governance}}
	cells, ok := NewComparison(0).Cells(Calls{}, nil, always, []Gate{gateOf(t, "a: {gt: 1}, b: {gt: 1}")})
	if !ok || len(cells) != 2 {
		t.Fatalf("%v, %v", cells, ok)
	}
	if got := cells[1].Region.String(); got != "a ≤ 1; or b ≤ 1" {
		t.Error(got)
	}
}

// gap calls Gap with conditions on the arguments only.
func gap(t fataler, states int, asking, silent string) (*Cell, bool) {
	t.Helper()
	return NewComparison(states).Gap(Calls{NoParent: true}, []Gate{gateOf(t, asking)}, []Gate{gateOf(t, silent)})
}

// A gap has the calls about which one side asks and the other does not.
func TestGaps(t *testing.T) {
	if cell, ok := gap(t, 0, "a: {gt: 2}", "a: {gt: 1}"); cell != nil || !ok {
		t.Errorf("there is none, but %v, %v", cell, ok)
	}
	cell, ok := gap(t, 0, "a: {gt: 1}", "a: {gt: 2}")
	if !ok || cell.Found != Yes || cell.Region.String() != "1 < a ≤ 2" {
		t.Fatalf("%+v, %v", cell, ok)
	}
	more, _ := NewComparison(0).Cells(Calls{}, []Gate{gateOf(t, "a: {gt: 5}")}, []Gate{gateOf(t, "a: 7")})
	if len(more) != 2 || more[0].Region.Or(more[1].Region).String() != "a > 5 or a is no number" {
		t.Errorf("%+v", more)
	}
	if cell, ok = gap(t, 1, "a: {pattern: '^(a|b)*c$'}", "a: {pattern: '^[ab]*c$'}"); !ok || cell.Found != Undecided {
		t.Errorf("one state is enough: %+v, %v", cell, ok)
	}
	wide := "a.0: 1, a.1: 1, a.2: 1, a.3: 1, a.4: 1, a.5: 1, a.6: 1, a.7: 1, a.8: 1, a.9: 1, a.10: 1"
	if cell, ok = gap(t, 0, wide, "b: 1"); ok || cell != nil {
		t.Errorf("eleven dotted keys are compared: %+v", cell)
	}
	if cells, ok := NewComparison(0).Cells(Calls{}, nil, []Gate{gateOf(t, wide)}); ok {
		t.Errorf("eleven dotted keys are parted: %+v", cells)
	}
}

// Arguments with keys that differ only in case are not calls, unless the target accepts them.
func TestKeysThatDifferInCaseAreNoCalls(t *testing.T) {
	gates := []Gate{gateOf(t, "amount: {gt: 1}, Amount: {gt: 1}")}
	silent := []Gate{gateOf(t, "b: {}, amount: {in: []}"), gateOf(t, "Amount: {in: []}")}
	for calls, want := range map[Calls]bool{{NoParent: true}: false, {NoParent: true, CaseSensitive: true}: true} {
		cell, ok := NewComparison(0).Gap(calls, gates, silent)
		if !ok || (cell != nil) != want {
			t.Errorf("%+v: %+v", calls, cell)
		}
	}

	if twins([]string{"a", "b"}, []string{"a"}) {
		t.Error("a place and one below are taken for two spellings")
	}
}

// Questions that are too large are reported as such.
func TestLargeComparisonsEnd(t *testing.T) {
	q := NewComparison(0).question()
	q.work = 0
	if out := q.carve(nil, nil, nil); out != nil || !q.vague {
		t.Errorf("%v, vague %v", out, q.vague)
	}
	q = NewComparison(0).question()
	p := parting{q: q}
	if p.part(make([]box, maxBoxes+1), nil); !q.vague || p.cells != nil {
		t.Errorf("%d pieces are looked at", maxBoxes+1)
	}
	if list := absorb(make([]box, maxAbsorbed+1)); len(list) != maxAbsorbed+1 {
		t.Errorf("%d are left", len(list))
	}
	q = NewComparison(0).question()
	r := Region{q: q, boxes: make([]box, maxShown*maxShown+1)}
	for i := range r.boxes {
		r.boxes[i] = box{{q.place([]string{"a"}), only(atomNull)}}
	}
	if got := r.String(); got != strings.Repeat("a is null; or ", maxShown)+"31 more" {
		t.Error(got)
	}
}

// Every kind of set that a side can be has a description.
func TestDomainsInWords(t *testing.T) {
	p, _ := newPattern("^a$", Semantics{})
	full, _ := newPattern("a", Semantics{Anchor: Full})
	raw, _ := newPattern("a$", Semantics{Trim: RawOnly})
	none, every := allNumbers(false), allNumbers(true)
	some := (&bound{order{side: 1}, number("5").Num, 5}).set(Unknown)
	matches := func(l ...literal) texts { return texts{but: true, pats: l} }
	but := texts{but: true, list: []string{"x"}, pats: []literal{{pat: full}}}
	outside := matches(literal{pat: raw, not: true})
	outside.outside = []*texts{{list: []string{"y", "z"}}}
	of := func(a atoms, n numbers, t texts) domain { return domain{atoms: a, numbers: n, texts: t} }
	for _, c := range []struct {
		d    domain
		want string
	}{
		{of(allAtoms&^atomAbsent, every, allTexts(true)), "a is given"},
		{of(allAtoms, none, allTexts(true)), "a is no number"},
		{of(allAtoms, some, allTexts(true)), "a > 5 or a is no number"},
		{of(allAtoms, every, allTexts(false)), "a is no text"},
		{of(allAtoms, every, texts{list: []string{"x"}}), `a is "x" or a is no text`},
		{of(atomNull|atomCompound, none, allTexts(false)), "a is null or an object or a list"},
		{of(atomAbsent|atomTrue|atomFalse, every, allTexts(true)),
			"a is a number or a is a text or a is missing or true or false"},
		{
			of(0, numbers{
				first: true,
				cuts:  []cut{{number("1").Num, false}, {number("2").Num, false}},
			}, allTexts(false)),
			"a < 1 or a ≥ 2",
		},
		{of(0, none, matches(literal{pat: p})), `a matches "^a$"`},
		{of(0, none, but), `a is any text except "x" and a matches "a" as a whole`},
		{of(0, none, outside), `a is a text that does not match "a$" untrimmed and not (a is one of "y", "z")`},
		{of(0, none, texts{list: []string{"1", "2", "3", "4", "5", "6", "7", "8"}}),
			`a is one of "1", "2", "3", "4", "5", "6", 2 more`},
	} {
		if got := c.d.words("a"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}

	names := nameOf([]string{parentInput, "a b", ""}) + " " + nameOf([]string{"a.b"})
	if names != `parent.input."a b"."" "a.b"` {
		t.Error(names)
	}
	all := Region{q: NewComparison(0).question(), boxes: []box{nil}}
	if got := all.String(); got != "every call" {
		t.Error(got)
	}
}

// Boxes that differ in one side are united.
func TestBoxesAreUnited(t *testing.T) {
	text := func(words ...string) domain { return domain{texts: texts{list: words}} }
	null, some := only(atomNull), domain{texts: allTexts(true)}
	for name, c := range map[string]struct {
		a, b  box
		want  bool
		at    int
		holds value.Value
	}{
		"one side": {
			box{{0, null}, {1, null}},
			box{{0, null}, {1, only(atomTrue)}},
			true,
			1,
			value.Value{Kind: value.Bool, Bool: true},
		},
		"two sides": {
			box{{0, null}, {1, null}},
			box{{0, some}, {1, some}},
			false,
			0,
			value.Value{},
		},
		"other places": {box{{0, null}}, box{{1, null}}, false, 0, value.Value{}},
		"more sides": {
			box{{0, null}},
			box{{0, null}, {1, null}},
			false,
			0,
			value.Value{},
		},
		"strings and none": {
			box{{0, null}},
			box{{0, text("x")}},
			true,
			0,
			value.Value{Kind: value.String, Text: "x"},
		},
		"strings and all": {
			box{{0, text("x")}},
			box{{0, some}},
			true,
			0,
			value.Value{Kind: value.String, Text: "y"},
		},
		"strings and others": {
			box{{0, text("x")}},
			box{{0, text("y")}},
			false,
			0,
			value.Value{},
		},
		"the same, so that one": {
			box{{0, null}},
			box{{0, null}},
			true,
			0,
			value.Value{Kind: value.Null},
		},
	} {
		got, ok := c.a.unite(c.b)
		if ok != c.want || ok && !got[c.at].has(c.holds) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// Unknown is excluded for a gate with Certain.
func TestCertainGatesAskWhereTheyAreTrue(t *testing.T) {
	certain := gateOf(t, "a: {gt: 5}")
	certain.Certain = true
	cells, ok := NewComparison(0).Cells(Calls{}, []Gate{certain}, []Gate{gateOf(t, "a: {gt: 7}")})
	if !ok || len(cells) != 2 || cells[0].Region.String() != "a > 7" || cells[1].Region.String() != "5 < a ≤ 7" {
		t.Errorf("%+v", cells)
	}
	for pattern, sound := range map[string]bool{"^a$": true, "(": false} {
		if err := CheckPattern(pattern); (err == nil) != sound {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
