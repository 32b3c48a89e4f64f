package condition

import (
	"testing"

	"github.com/assent-dev/assent/value"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		name, x, y string
		want       Verdict
	}{
		{"equal", match("amount: {gt: 100}"), match("amount: {gt: 100}"), Yes},
		{"wider", match("amount: {gt: 100}"), match("amount: {gt: 50}"), Yes},
		{"narrower", match("amount: {gt: 50}"), match("amount: {gt: 100}"), No},
		{"one more argument", match("amount: {gt: 100}"), match("amount: {gt: 100}, currency: USD"), No},
		{"never certain, and asks all the same", match(`env: {ne: dev}`), match(`env: {ne: dev, in: [prod]}`), No},
		{
			"unknown is as good as true",
			`{args_match: {a: {}}}`,
			`[{args_match: {a: {gt: 1}}}, {args_match: {a: {lte: 1}}}]`,
			Yes,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := sound(t, c.x), sound(t, c.y)
			got, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Covers(x, y)
			if got != c.want {
				t.Fatalf("got %v", got)
			}
			if got == No {
				checkGap(t, x, y, string(witness.AppendJSON(nil)))
			}
		})
	}

	t.Run("always", func(t *testing.T) {
		got, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Covers(nil, sound(t, match("amount: {gt: 100}")))
		if got != No || witness.AppendJSON(nil) == nil {
			t.Errorf("got %v, %v", got, witness)
		}
	})
}

// checkGap evaluates a witness with the real programs: x must ask and y must not.
func checkGap(t *testing.T, x, y *Expr, witness string) {
	t.Helper()
	if truth, _ := eval(t, ToolArgs, Semantics{}, x, witness); truth == False {
		t.Errorf("%s: the first condition does not ask", witness)
	}
	if truth, _ := eval(t, ToolArgs, Semantics{}, y, witness); truth != False {
		t.Errorf("%s: the second condition asks", witness)
	}
	if _, err := value.Parse([]byte(witness), value.DefaultLimits()); err != nil {
		t.Error(err)
	}
}
