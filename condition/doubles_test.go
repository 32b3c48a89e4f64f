package condition

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// rounding are numbers around those at which doubles round.
var rounding = strings.Fields(`0 -0 -0.0 5e-324 3e-324 7.4e-324 7.5e-324 -3e-324 1e-310 1.00000000000000001e-310 0.1
	0.1000000000000000055511151231257827 0.10000000000000001 0.10000000000000002 9999.9999999999999999 9999.99
	10000 1e4 10000.0000000000009 10000.000000000001 9007199254740991.5 9007199254740992 9007199254740993
	9007199254740994 9007199254740995 9007199254740996 900719925474099300000e-5 -9007199254740993 -9007199254740992
	18446744073709551615 18446744073709551616 1e22 10000000000000000000001 1.7976931348623157e308
	1.7976931348623158e308 1.79769313486231580793e308 -1.79769313486231580793e308
	10000.` + strings.Repeat("0", 500) + `1 9999.` + strings.Repeat("9", 500))

// A test is Unknown exactly if the decimals and their nearest doubles give different results,
// and the analyzer's sets agree.
func TestNumbersThatDoublesRound(t *testing.T) {
	for _, op := range []Op{Eq, Ne, In, NotIn, Gt, Gte, Lt, Lte} {
		for i, limit := range rounding {
			src := Test{Op: op, Operand: number(limit)}
			if op == In || op == NotIn {
				for j := range 1 + i%12 { // short lists and long ones
					src.List = append(src.List, number(rounding[(i+j)%len(rounding)]))
				}
			}
			compiled := newTest(&src, Semantics{}, nil)
			for _, n := range rounding {
				want := roundedTruth(&src, n)
				num := number(n).Num
				got := compiled.truth(&value.Slot{Kind: value.Number, Num: num}, nil)
				if got != want {
					t.Errorf("%s on %s: %v, want %v", &src, n, got, want)
				}
				for _, level := range []Truth{Unknown, True} {
					d := (&question{}).levelSet(&compiled, level)
					in, out := d.has(value.Value{Kind: value.Number, Num: num}), domain{numbers: d.numbers.not()}
					if in != (want >= level) || in == out.has(value.Value{Kind: value.Number, Num: num}) {
						t.Errorf("%s at %v has %s: %v", &src, level, n, in)
					}
				}
			}
		}
	}
}

// roundedTruth computes the expected truth with big.Rat and strconv.
func roundedTruth(src *Test, n string) Truth {
	answer := func(cmp func(a, b string) int) bool {
		c := cmp(n, src.Operand.Num.String())
		listed := slices.ContainsFunc(src.List, func(s Scalar) bool { return cmp(n, s.Num.String()) == 0 })
		return map[Op]bool{
			Eq: c == 0, Ne: c != 0, Gt: c > 0, Gte: c >= 0, Lt: c < 0, Lte: c <= 0, In: listed, NotIn: !listed,
		}[src.Op]
	}
	exact := answer(func(a, b string) int {
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	})
	rounds := answer(func(a, b string) int {
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return big.NewFloat(x).Cmp(big.NewFloat(y))
	})
	if exact != rounds {
		return Unknown
	}
	return truthOf(exact)
}

// Rounding does not allocate, also for numbers that came from Go.
func TestRoundingIsFreeOfAllocations(t *testing.T) {
	float, _ := value.FloatNum(9007199254740993)
	for _, n := range []value.Num{number("9999.9999999999999999").Num, float, value.IntNum(-1 << 63)} {
		compiled := newTest(&Test{Op: Gte, Operand: number("9007199254740993")}, Semantics{}, nil)
		slot := value.Slot{Kind: value.Number, Num: n}
		if got := testing.AllocsPerRun(10, func() { compiled.truth(&slot, nil) }); got != 0 {
			t.Errorf("%s: %v allocations", n, got)
		}
	}
}

// Descriptions show the numbers of the file.
func TestWordsHideWhatDoublesRound(t *testing.T) {
	for _, c := range []struct{ cond, without, want string }{
		{"n: {gte: 10000}", "", "n ≥ 10000"},
		{"n: {lte: 0.1}", "", "n ≤ 0.1"},
		{"n: {gte: 0.3}", "", "n ≥ 0.3"},
		{"n: {in: [5, 7]}", "", "n = 5 or n = 7"},
		{"n: {gt: 5}", "n: {gte: 8}", "5 < n < 8"},
		{"n: {gte: 5}", "n: {gt: 5}", "n = 5"},
		{"n: {gte: 9007199254740993}", "", "n ≥ 9007199254740992"},
		{"n: {lt: 9007199254740992, gte: 9007199254740992}", "", "n rounds to 9007199254740992"},
		{"n: {gte: 1.7976931348623157e308}", "", "n > 1.7976931348623155e+308"},
		{"n: {gte: 10000, lt: 9999.9999999999999999}", "",
			"9999.9999999999990905052982270717620849609375 ≤ n < 9999.9999999999999999"},
		{"n: {gt: 9999.99999999999999, lt: 9999.999999999999995}", "", "9999.99999999999999 < n < 9999.999999999999995"},
	} {
		gate := func(cond string) []Gate {
			if cond == "" {
				return nil
			}
			return []Gate{{Sem: Semantics{OnMissing: NoMatch, OnMismatch: NoMatch}, When: sound(t, match(cond))}}
		}
		cell, ok := NewComparison(0).Gap(Calls{}, gate(c.cond), gate(c.without))
		if !ok || cell == nil {
			t.Errorf("%s: no region", c.cond)
			continue
		}
		if got := fmt.Sprint(cell.Region); got != c.want {
			t.Errorf("%s: %s, want %s", c.cond, got, c.want)
		}
		if cell.Found != Yes || !cell.Region.Has(cell.Witness) {
			t.Errorf("%s: %v %s", c.cond, cell.Found, cell.Witness.AppendJSON(nil))
		}
	}
	below := numbers{first: true, cuts: []cut{*alike(5).low, {number("5").Num, false}}}
	if got := below.words("n"); got != "n is any number except what rounds to 5" {
		t.Error(got)
	}
}
