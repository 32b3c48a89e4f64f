package resolve

import (
	"math/big"
	"testing"

	"github.com/assent-dev/assent/value"
)

// Sums are exact: they agree with rational numbers, also beyond the numbers that a call can have.
func TestDecimalsAreExact(t *testing.T) {
	numbers := []decimal{{}}
	for _, text := range []string{
		"0", "0.1", "0.2", "-0.1", "1", "-1", "100", "1e2", "18400.25", "1e300", "-1e300", "1.7e308", "5e-324",
		"123456789012345678901234567890.5",
	} {
		n, err := value.ParseNum(text)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, decimalOf(n))
	}
	exactly := func(d decimal) *big.Rat {
		r, ok := new(big.Rat).SetString(d.String())
		if !ok {
			t.Fatalf("%s is no number", d)
		}
		return r
	}
	for _, a := range numbers {
		for _, b := range numbers {
			x, y := exactly(a), exactly(b)
			if sum := exactly(a.add(b)); sum.Cmp(new(big.Rat).Add(x, y)) != 0 {
				t.Errorf("%s + %s is %s", a, b, a.add(b))
			}
			if a.cmp(b) != x.Cmp(y) {
				t.Errorf("%s and %s are compared as %d", a, b, a.cmp(b))
			}
			if exactly(a.negated()).Cmp(new(big.Rat).Neg(x)) != 0 {
				t.Errorf("-(%s) is %s", a, a.negated())
			}
		}
	}
	large := numbers[12]
	for text, d := range map[string]decimal{
		"0": large.add(large.negated()), "34e307": large.add(large), "0.3": numbers[2].add(numbers[3]),
	} {
		if d.String() != text {
			t.Errorf("%s, want %s", d, text)
		}
	}
}
