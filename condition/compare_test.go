package condition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/value"
)

// asks evaluates gates on one call as a Program does: args and parent
// are documents, parent "" for none.
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

// whole puts arguments and a parent's input into one document.
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

// gates draws gates of all uses, each with its own reading.
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

// TestCellsAgreeWithBruteForce: every call is in exactly the cell of
// what asks about it, its witness too, and empty cells have no call.
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

		for range 40 {
			draw := func(what string) string { return rapid.SampledFrom(some).Draw(t, what) }
			args, parent := object("a", draw("a"), "b", draw("b")), ""
			if !calls.NoParent {
				parent = object("a", draw("parent a"), "b", draw("parent b"))
			}
			want, doc := said(args, parent), whole(t, args, parent)
			for _, c := range cells {
				if in, should := c.Region.Has(doc), slices.Equal(want, c.Asks); in != should {
					t.Fatalf("%s %s: in the region %s of %v: %v, but %v ask", args, parent, c.Region, c.Asks, in, want)
				}
			}
			if !slices.ContainsFunc(cells, func(c Cell) bool { return slices.Equal(want, c.Asks) }) {
				t.Fatalf("%s %s: %v ask, which no cell has", args, parent, want)
			}
		}
	})

	if undecided > 0 {
		t.Errorf("%d questions were undecided", undecided)
	}
}

func gateOf(t fataler, matchers string) Gate {
	return Gate{Use: Governance, When: sound(t, match(matchers))}
}

// TestRegionsInWords: what a change of a gate is about, as people read
// it.
func TestRegionsInWords(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"amount: {gt: 8000}", "amount: {gt: 10000}", "8000 < amount ≤ 10000"},
		{"amount: {gte: 8000}", "amount: {gte: 10000}", "8000 ≤ amount < 10000"},
		{"amount: {gt: 5}", "amount: {ne: 7}", "amount = 7"},
		{"amount: {gt: 8000}", "currency: USD, amount: {gt: 8000}",
			`(amount > 8000 or amount is no number) and currency is a text but "USD"`},
		{"amount: {in: [1, 2]}", "amount: {in: [2, 3]}", "amount = 1"},
		{"amount: {}", "amount: {gt: 8000}", "amount ≤ 8000"},
		{"amount: {}", "amount: {ne: 5}", "amount = 5"},
		{"amount: {}", "amount: {in: [1, x]}",
			`amount is a number but 1 or amount is a text but "x"`},
		{"amount: {not_in: [1, 5]}", "amount: {lt: 3}", "3 ≤ amount < 5 or amount > 5"},
		{"to: {pattern: '@a'}", "to: {pattern: '@ab'}", `to matches "@a" and to is a text that does not match "@ab"`},
		{"to: {in: [a, b, c]}", "to: c", `to is one of "a", "b"`},
		{"ok: true", "ok: {ne: true}", "ok is true"},
		{"ok: {}", "ok: false", "ok is true"},
		{"a: {in: []}", "b: {}", ""},
		{"'x.y': 1", "'x.y': 2", `"x.y" = 1 and (x.y is a number but 2 or x.y is missing); or ` +
			`("x.y" is a number but 2 or "x.y" is missing) and x.y = 1`},
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
