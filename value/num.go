package value

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Num is an exact decimal number of any size and length, provided that a double is near it. The
// zero value is 0. Compare with Cmp, because == also compares spellings.
type Num struct {
	lex string // source lexeme; empty if made from a Go number

	// A narrow number is ±mant × 10^exp with at most 19 digits. A wide one has more digits:
	// mant has the first 19 significant digits, exp is the power of ten of the very first, and
	// lex has all of them.
	mant uint64
	exp  int32
	neg  bool
	wide bool
}

// maxDigits is the number of decimal digits that always fit into mant.
const maxDigits = 19

// ParseNum parses a JSON number. It returns an error with the code number-range for numbers
// that no double is near: those that overflow, and those that round to zero without being zero.
// Readers disagree about them.
func ParseNum(lex string) (Num, error) {
	n, end, fault := scanWhole(lex)
	if fault != "" {
		return Num{}, numError(lex, end, fault)
	}
	return n, nil
}

// scanWhole reads a lexeme that is a number and nothing else. On an error, end is its offset.
func scanWhole(lex string) (n Num, end int, fault ErrorCode) {
	n, end, fault = scanNum(lex, 0)
	if fault == "" && end < len(lex) {
		return Num{}, end, TrailingData
	}
	return n, end, fault
}

func numError(text string, offset int, fault ErrorCode) *Error {
	detail := "expected a digit, found " + found(text, offset)
	switch {
	case fault == NumberRange:
		detail = "no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string"
	case fault == TrailingData:
		detail = "expected the end of the number, found " + found(text, offset)
	case offset < len(text) && text[offset]-'0' <= 9:
		detail = "a number has no leading zeros"
	}

	return newError([]byte(text), fault, offset, detail)
}

// IntNum returns the number i.
func IntNum(i int64) Num {
	if i < 0 {
		return Num{mant: -uint64(i), neg: true}
	}
	return Num{mant: uint64(i)}
}

func uintNum(u uint64) Num {
	if u < pow10[maxDigits] {
		return Num{mant: u}
	}
	lex := strconv.FormatUint(u, 10)
	n, _, _ := scanNum(lex, 0)
	return n
}

// FloatNum returns the shortest decimal that is read back as f. It returns false for NaN and
// the infinities.
func FloatNum(f float64) (Num, bool) { return floatNum(f, 64) }

func floatNum(f float64, bitSize int) (Num, bool) {
	if i, ok := wholeFloat(f); ok {
		return IntNum(i), true
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Num{}, false
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, bitSize) // -d.ddde±dd, at most 17 digits
	n := Num{neg: text[0] == '-'}
	i := 0
	for ; text[i] != 'e'; i++ {
		if d := text[i] - '0'; d <= 9 {
			n.mant = n.mant*10 + uint64(d)
		}
	}
	for _, c := range text[i+2:] {
		n.exp = n.exp*10 + int32(c-'0')
	}
	if text[i+1] == '-' {
		n.exp = -n.exp
	}
	n.exp -= int32(countDigits(n.mant) - 1)
	return n, true
}

// wholeFloat returns f as an integer. It returns false if f is not an integer, or so large that
// not every integer of its size is a double.
func wholeFloat(f float64) (int64, bool) {
	i := int64(f)
	return i, float64(i) == f && i < 1<<53 && i > -1<<53
}

// Cmp returns -1, 0 or +1 if a is less than, equal to or greater than b. It is exact and does
// not allocate.
func (a Num) Cmp(b Num) int { return a.CmpTo(&b) }

// CmpTo is like Cmp, without copying, for hot paths.
func (a *Num) CmpTo(b *Num) int {
	if a.exp == b.exp && !(a.neg || b.neg || a.wide || b.wide) {
		return cmp.Compare(a.mant, b.mant)
	}
	return a.cmpSigned(b)
}

func (a *Num) cmpSigned(b *Num) int {
	sa, sb := a.sign(), b.sign()
	switch {
	case sa < sb:
		return -1
	case sa > sb:
		return 1
	}

	return sa * cmpMagnitude(*a, *b)
}

func (n Num) sign() int {
	switch {
	case n.mant == 0:
		return 0
	case n.neg:
		return -1
	}

	return 1
}

// cmpMagnitude compares the absolute values of two non-zero numbers: by the power of their
// first digit, then by their first 19 digits, then by the rest.
func cmpMagnitude(a, b Num) int {
	if a.exp == b.exp && !a.wide && !b.wide {
		return cmp.Compare(a.mant, b.mant)
	}
	if pa, pb := a.power(), b.power(); pa != pb {
		return cmp.Compare(pa, pb)
	}
	if la, lb := a.lead(), b.lead(); la != lb || !a.wide && !b.wide {
		return cmp.Compare(la, lb)
	}
	if a.wide && b.wide {
		return cmpDigits(significant(a.lex), significant(b.lex))
	}
	if a.wide { // its further digits are not all zero, otherwise it would be narrow
		return 1
	}
	return -1
}

// power returns the power of ten of the first significant digit: 2 for 123.
func (n Num) power() int {
	if n.wide {
		return int(n.exp)
	}
	return int(n.exp) + countDigits(n.mant) - 1
}

// lead returns the first 19 significant digits, padded with zeros.
func (n Num) lead() uint64 { return n.mant * pow10[maxDigits-countDigits(n.mant)] }

// significant removes sign, leading zeros and exponent from a lexeme. A decimal point may
// remain.
func significant(lex string) string {
	if i := strings.IndexAny(lex, "eE"); i >= 0 {
		lex = lex[:i]
	}
	return strings.TrimLeft(lex, "-0.")
}

// cmpDigits compares digit by digit, ignoring decimal points, as if the shorter number
// continued with zeros.
func cmpDigits(a, b string) int {
	for a != "" || b != "" {
		var x, y byte
		x, a = nextDigit(a)
		y, b = nextDigit(b)
		if x != y {
			return cmp.Compare(x, y)
		}
	}

	return 0
}

func nextDigit(s string) (byte, string) {
	if s != "" && s[0] == '.' {
		s = s[1:]
	}
	if s == "" {
		return '0', ""
	}
	return s[0], s[1:]
}

// IsInt reports whether the number has no fraction, as in 1.0 and 1e2.
func (n Num) IsInt() bool {
	switch {
	case n.wide:
		var buf [64]byte
		return len(n.appendDigits(buf[:0])) <= n.power()+1
	case n.exp >= 0 || n.mant == 0:
		return true
	case -n.exp >= maxDigits:
		return false
	}

	return n.mant%pow10[-n.exp] == 0
}

// Plain reports whether the number has at most 15 digits and no extreme size. Two different
// plain numbers never have the same nearest double.
func (n *Num) Plain() bool { return n.mant < pow10[15] && n.exp > -300 && n.exp < 290 && !n.wide }

// Float returns the nearest double. If two are equally near, it returns the even one, as JSON
// readers do. The result is finite, and zero only for zero.
func (n *Num) Float() float64 {
	if n.lex != "" {
		f, _ := strconv.ParseFloat(n.lex, 64) // in range: scanLong checked that
		return f
	}
	var buf [32]byte
	f, _ := strconv.ParseFloat(string(n.appendCanonical(buf[:0])), 64)
	return f
}

// String returns the source lexeme, or the shortest decimal without an exponent if there is
// none.
func (n Num) String() string { return string(n.appendText(nil)) }

func (n Num) appendText(dst []byte) []byte {
	if n.lex != "" {
		return append(dst, n.lex...)
	}
	if n.exp == 0 { // wide numbers have a lexeme
		if n.neg {
			dst = append(dst, '-')
		}
		return strconv.AppendUint(dst, n.mant, 10)
	}

	return n.format(dst, math.MinInt32, math.MaxInt32)
}

// Canonical returns the canonical text of the number: the layout of RFC 8785 with exact digits.
// It equals RFC 8785 if that keeps the value, which is the case for every number with up to 15
// digits and for every shortest double. If RFC 8785 would round to a neighbour
// (9007199254740993), the digits are kept. Therefore different numbers never have the same
// text.
func (n Num) Canonical() string { return string(n.appendCanonical(nil)) }

// appendCanonical uses ECMAScript's thresholds for exponents.
func (n Num) appendCanonical(dst []byte) []byte { return n.format(dst, -7, 21) }

// format writes the number without an exponent if the power of its first digit is between low
// and high, both exclusive, and otherwise as d.ddde±d.
func (n Num) format(dst []byte, low, high int) []byte {
	if n.mant == 0 {
		return append(dst, '0')
	}
	if n.neg {
		dst = append(dst, '-')
	}
	start, power := len(dst), n.power()
	switch {
	case power <= low || power >= high:
		dst = insertPoint(n.appendDigits(dst), start+1)
		dst = append(dst, 'e')
		if power > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(power), 10)
	case power < 0:
		return n.appendDigits(appendZeros(append(dst, '0', '.'), -power-1))
	}

	dst = n.appendDigits(dst)
	if missing := power + 1 - (len(dst) - start); missing > 0 {
		return appendZeros(dst, missing)
	}
	return insertPoint(dst, start+power+1)
}

// insertPoint inserts a decimal point before dst[at], unless that is the end.
func insertPoint(dst []byte, at int) []byte {
	if at == len(dst) {
		return dst
	}
	dst = append(dst, 0)
	copy(dst[at+1:], dst[at:])
	dst[at] = '.'
	return dst
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// appendDigits appends the significant digits, from the first to the last that is not zero.
func (n Num) appendDigits(dst []byte) []byte {
	if n.wide {
		for s := significant(n.lex); s != ""; {
			var d byte
			d, s = nextDigit(s)
			dst = append(dst, d)
		}
	} else {
		dst = strconv.AppendUint(dst, n.mant, 10)
	}

	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// scanNum reads the longest number at s[i:]. On an error (syntax or number-range), end is its
// offset.
func scanNum(s string, i int) (n Num, end int, fault ErrorCode) {
	start := i
	if i < len(s) && s[i] == '-' {
		n.neg = true
		i++
	}
	first := i
	for i < len(s) && s[i]-'0' <= 9 {
		n.mant = n.mant*10 + uint64(s[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && s[first] == '0' {
		return Num{}, min(i, first+1), Syntax
	}
	if i < len(s) && s[i] == '.' {
		i++
		fraction := i
		for i < len(s) && s[i]-'0' <= 9 {
			n.mant = n.mant*10 + uint64(s[i]-'0')
			i++
		}
		if i == fraction {
			return Num{}, i, Syntax
		}
		n.exp = int32(fraction - i)
		digits += i - fraction
	}

	if digits > maxDigits || i < len(s) && s[i]|0x20 == 'e' {
		return scanLong(s, start, i)
	}
	n.lex = s[start:i]
	return n, i, ""
}

// scanLong finishes a number that has an exponent or may have too many digits. s[start:i] is
// its sign and digits.
func scanLong(s string, start, i int) (n Num, end int, fault ErrorCode) {
	digits := s[start:i]
	exp, i, ok := scanExponent(s, i)
	if !ok {
		return Num{}, i, Syntax
	}
	n = Num{lex: s[start:i], neg: s[start] == '-'}
	sig := significant(digits)
	power := exp + powerAt(digits, len(digits)-len(sig))
	sig = strings.TrimRight(sig, "0.")
	if sig == "" {
		return n, i, ""
	}
	if !inRange(sig, power) {
		return Num{}, start, NumberRange
	}
	count := 0
	for rest := sig; rest != "" && count < maxDigits; count++ {
		var d byte
		d, rest = nextDigit(rest)
		n.mant = n.mant*10 + uint64(d-'0')
		n.wide = rest != "" && count == maxDigits-1
	}

	n.exp = int32(power - count + 1)
	if n.wide {
		n.exp = int32(power)
	}
	return n, i, ""
}

// scanExponent reads e±d at s[i:], if present. Huge exponents are clamped; they stay out of
// range.
func scanExponent(s string, i int) (exp, end int, ok bool) {
	if i == len(s) || s[i]|0x20 != 'e' {
		return 0, i, true
	}
	i++
	neg := false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	first := i
	for i < len(s) && s[i]-'0' <= 9 {
		if exp < 1<<27 {
			exp = exp*10 + int(s[i]-'0')
		} else {
			exp = math.MaxInt32
		}
		i++
	}

	if neg {
		exp = -exp
	}
	return exp, i, i > first
}

// powerAt returns the power of ten of the digit digits[at].
func powerAt(digits string, at int) int {
	point := strings.IndexByte(digits, '.')
	if point < 0 {
		point = len(digits)
	}
	if at < point {
		return point - at - 1
	}
	return point - at
}

// inRange reports whether the double nearest to d.ddd × 10^power is neither infinite nor zero.
func inRange(sig string, power int) bool {
	if power < 308 && power > -324 {
		return true
	}
	if power > 308 || power < -324 {
		return false
	}
	text := sig[:1] + "." + strings.Replace(sig[1:], ".", "", 1) + "e" + strconv.Itoa(power)
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && f != 0
}

// countDigits returns the number of decimal digits of u, 1 for 0.
func countDigits(u uint64) int {
	guess := bits.Len64(u) * 1233 >> 12 // log10(2) = 0.30103
	if u < pow10[guess] {
		return max(guess, 1)
	}
	return guess + 1
}

var pow10 = [maxDigits + 1]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}
