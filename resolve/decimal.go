package resolve

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// decimal is an exact decimal number, digits × 10^power. The zero decimal is 0.
type decimal struct {
	digits *big.Int // nil is 0
	power  int
}

// decimalOf converts a number.
func decimalOf(n value.Num) decimal {
	text, exponent, _ := strings.Cut(n.Canonical(), "e")
	power, _ := strconv.Atoi(strings.TrimPrefix(exponent, "+")) // empty: 0
	whole, fraction, _ := strings.Cut(text, ".")
	digits, _ := new(big.Int).SetString(whole+fraction, 10)
	return decimal{digits, power - len(fraction)}
}

func (a decimal) sign() int {
	if a.digits == nil {
		return 0
	}
	return a.digits.Sign()
}

func (a decimal) add(b decimal) decimal {
	if a.sign() == 0 {
		return b
	}
	if b.sign() == 0 {
		return a
	}
	x, y, power := aligned(a, b)
	return decimal{new(big.Int).Add(x, y), power}
}

func (a decimal) negated() decimal {
	if a.digits == nil {
		return a
	}
	return decimal{new(big.Int).Neg(a.digits), a.power}
}

func (a decimal) cmp(b decimal) int {
	if a.sign() == 0 || b.sign() == 0 || a.sign() != b.sign() {
		return cmp.Compare(a.sign(), b.sign())
	}
	x, y, _ := aligned(a, b)
	return x.Cmp(y)
}

// order compares with a number of a file.
func (a decimal) order(n value.Num) int { return a.cmp(decimalOf(n)) }

// aligned returns the digits of two numbers for the same power.
func aligned(a, b decimal) (x, y *big.Int, power int) {
	power = min(a.power, b.power)
	return a.scaled(power), b.scaled(power), power
}

func (a decimal) scaled(power int) *big.Int {
	if a.power == power {
		return a.digits
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.power-power)), nil)
	return ten.Mul(ten, a.digits)
}

// String returns the number as JSON writes it.
func (a decimal) String() string {
	if a.sign() == 0 {
		return "0"
	}
	text := a.digits.String() + "e" + strconv.Itoa(a.power)
	if n, err := value.ParseNum(text); err == nil {
		return n.Canonical()
	}
	return text // larger than any number of a call
}
