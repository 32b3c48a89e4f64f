package value

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNumRefuses(t *testing.T) {
	const size = "no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string"
	for lex, want := range map[string]struct {
		code    ErrorCode
		message string
	}{
		"":                          {Syntax, "line 1, column 1: expected a digit, found the end of the text"},
		"-":                         {Syntax, "line 1, column 2: expected a digit, found the end of the text"},
		"+1":                        {Syntax, "line 1, column 1: expected a digit, found '+'"},
		".5":                        {Syntax, "line 1, column 1: expected a digit, found '.'"},
		"1.":                        {Syntax, "line 1, column 3: expected a digit, found the end of the text"},
		"1.e5":                      {Syntax, "line 1, column 3: expected a digit, found 'e'"},
		"1e":                        {Syntax, "line 1, column 3: expected a digit, found the end of the text"},
		"1e+":                       {Syntax, "line 1, column 4: expected a digit, found the end of the text"},
		"01":                        {Syntax, "line 1, column 2: a number has no leading zeros"},
		"-00":                       {Syntax, "line 1, column 3: a number has no leading zeros"},
		"1 ":                        {TrailingData, "line 1, column 2: expected the end of the number, found ' '"},
		"0x10":                      {TrailingData, "line 1, column 2: expected the end of the number, found 'x'"},
		"1_000":                     {TrailingData, "line 1, column 2: expected the end of the number, found '_'"},
		"NaN":                       {Syntax, "line 1, column 1: expected a digit, found 'N'"},
		"-Infinity":                 {Syntax, "line 1, column 2: expected a digit, found 'I'"},
		"\xff":                      {Syntax, "line 1, column 1: expected a digit, found byte 0xff"},
		"1e999999":                  {NumberRange, "line 1, column 1: " + size},
		"-1e309":                    {NumberRange, "line 1, column 1: " + size},
		"1e-999999":                 {NumberRange, "line 1, column 1: " + size},
		"2e-324":                    {NumberRange, "line 1, column 1: " + size},
		"1e99999999999999999999999": {NumberRange, "line 1, column 1: " + size},
		// Half a step above the largest double rounds to infinity.
		"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792": {
			NumberRange,
			"line 1, column 1: " + size,
		},
	} {
		_, err := ParseNum(lex)
		wantError(t, lex, err, want.code, want.message)
	}
}

func TestParseNumTakesWhatADoubleComesNear(t *testing.T) {
	for _, lex := range []string{
		"0e999999", "-0.000e-999999", "1.7976931348623157e308", "1.7976931348623158e+308", "3e-324", "4.9e-324",
		"0." + strings.Repeat("0", 20000) +
			"1e20001", "1" + strings.Repeat("0", 20000) + "e-20000", strings.Repeat("9", 308),
		"0." + strings.Repeat("1", 5000),
		// One below the half step.
		"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497791",
	} {
		n, err := ParseNum(lex)
		if err != nil || n.String() != lex {
			t.Errorf("%.40s: %v", lex, err)
		}
	}
}

func TestNumCmp(t *testing.T) {
	nines := strings.Repeat("9", 40)
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"1", "1.0", 0},
		{"1", "1e0", 0},
		{"100", "1e2", 0},
		{"0.1", "1e-1", 0},
		{"0", "-0", 0},
		{"0", "0e5", 0},
		{"9007199254740992", "9007199254740993", -1},
		{"9223372036854775807", "9223372036854775808", -1},
		{"18446744073709551615", "18446744073709551616", -1},
		{"9999999999999999999", "10000000000000000000", -1},
		{"10000000000000000000", "1e19", 0},
		{"0.1", "0.1000000000000000055511151231257827", -1},
		{"-2", "-1", -1},
		{"-1", "1", -1},
		{"-1", "0", -1},
		{"1e300", "2", 1},
		{"1e-300", "2e-300", -1},
		{"2", "10", -1},
		{nines, nines, 0},
		{nines, nines + ".0", 0},
		{nines, nines + ".1", -1},
		{"-" + nines, "-" + nines + ".1", 1},
		{nines[:39] + "8", nines, -1},
		{nines + "e-40", "0." + nines, 0},
		{nines[:19], nines[:20] + "e-1", -1},
		{nines[:20] + "e-1", nines[:19], 1},
		{"1" + strings.Repeat("0", 300), "1e300", 0},
	} {
		a, b := mustNum(t, tt.a), mustNum(t, tt.b)
		if got := a.Cmp(b); got != tt.want {
			t.Errorf("%s with %s: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := b.Cmp(a); got != -tt.want {
			t.Errorf("%s with %s: got %d, want %d", tt.b, tt.a, got, -tt.want)
		}
	}
}

func TestNumCmpAgreesWithRat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := lexemes().Draw(t, "x"), lexemes().Draw(t, "y")
		if rapid.Bool().Draw(t, "near") {
			y = x
			if tail := rapid.SampledFrom([]string{".0", "0", "1", ".1"}).Draw(t, "tail"); oracleNumber(x + tail) {
				y = x + tail
			}
		}

		a, b := mustNum(t, x), mustNum(t, y)
		ra, _ := new(big.Rat).SetString(x)
		rb, _ := new(big.Rat).SetString(y)
		if got, want := a.Cmp(b), ra.Cmp(rb); got != want {
			t.Fatalf("%s with %s: got %d, want %d", x, y, got, want)
		}
		if got, want := a.Canonical() == b.Canonical(), ra.Cmp(rb) == 0; got != want {
			t.Fatalf("canonical %s and %s are equal: %v", a.Canonical(), b.Canonical(), got)
		}
		if a.IsInt() != ra.IsInt() {
			t.Fatalf("%s is an integer: %v", x, a.IsInt())
		}
		back, err := ParseNum(a.Canonical())
		if err != nil || back.Cmp(a) != 0 {
			t.Fatalf("canonical %s of %s: %v", a.Canonical(), x, err)
		}
	})
}

func TestNumAllocatesNothing(t *testing.T) {
	a, b := mustNum(t, "12345678901234567890123"), mustNum(t, "12345678901234567890124")
	c := mustNum(t, "0.5")
	if n := testing.AllocsPerRun(100, func() { _, _ = a.Cmp(b), c.Cmp(IntNum(7)) }); n != 0 {
		t.Errorf("Cmp allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = FloatNum(0.1) }); n != 0 {
		t.Errorf("FloatNum allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseNum("123456.75e2") }); n != 0 {
		t.Errorf("ParseNum allocates %v times", n)
	}
}

// Appendix B of RFC 8785: doubles by their bits, and their text.
func TestCanonicalNumbersOfRFC8785(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		n, ok := FloatNum(math.Float64frombits(bits))
		if got := n.Canonical(); !ok || got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
	}

	for _, bits := range []uint64{0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000} {
		if _, ok := FloatNum(math.Float64frombits(bits)); ok {
			t.Errorf("%016x was taken", bits)
		}
	}
}

func TestCanonicalOfDoublesIsThatOfOtherWriters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Filter(func(bits uint64) bool {
			return bits<<1 != 0 && bits>>52&0x7ff != 0x7ff // zero, NaN and the infinities
		}).Draw(t, "bits"))
		n, _ := FloatNum(f)
		want, err := json.Marshal(f)
		if err != nil || n.Canonical() != string(want) {
			t.Fatalf("got %s, want %s", n.Canonical(), want)
		}
		if lex := mustNum(t, string(want)); lex.Cmp(n) != 0 || lex.Canonical() != string(want) {
			t.Fatalf("%s from text becomes %s", want, lex.Canonical())
		}
		r, _ := new(big.Rat).SetString(n.String())
		if back, _ := r.Float64(); back != f {
			t.Fatalf("plain text %s", n)
		}
	})
}

func TestCanonicalKeepsWhatADoubleWouldRound(t *testing.T) {
	for lex, want := range map[string]string{
		"9007199254740993":                "9007199254740993",
		"9007199254740992.0":              "9007199254740992",
		"-9007199254740993e0":             "-9007199254740993",
		"0.1000000000000000000001":        "0.1000000000000000000001",
		"333333333.33333329":              "333333333.33333329",
		"123456789012345678901234567890":  "1.2345678901234567890123456789e+29",
		"12345678901234567890.5":          "12345678901234567890.5",
		"0.00000012345678901234567890123": "1.234567890123456789" + "0123e-7",
		"18446744073709551615":            "18446744073709551615",
		"100000000000000000000":           "100000000000000000000",
		"1000000000000000000000":          "1e+21",
		"-0":                              "0",
		"-0.0e5":                          "0",
		"1.50":                            "1.5",
		"0.00001":                         "0.00001",
	} {
		if got := mustNum(t, lex).Canonical(); got != want {
			t.Errorf("%s: got %s, want %s", lex, got, want)
		}
	}
}

func TestNumString(t *testing.T) {
	float := func(f float64) Num {
		n, _ := FloatNum(f)
		return n
	}
	for _, tt := range []struct {
		n    Num
		want string
	}{
		{Num{}, "0"},
		{IntNum(-5), "-5"},
		{IntNum(math.MinInt64), "-9223372036854775808"},
		{IntNum(math.MaxInt64), "9223372036854775807"},
		{uintNum(math.MaxUint64), "18446744073709551615"},
		{uintNum(7), "7"},
		{float(0.1), "0.1"},
		{float(-150.25), "-150.25"},
		{float(1e21), "1000000000000000000000"},
		{float(1e-7), "0.0000001"},
		{float(math.Copysign(0, -1)), "0"},
		{float(1 << 53), "9007199254740992"},
		{mustNum(t, "500.00"), "500.00"},
		{mustNum(t, "1E5"), "1E5"},
	} {
		if got := tt.n.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestIsInt(t *testing.T) {
	for lex, want := range map[string]bool{
		"0":                                true,
		"1.0":                              true,
		"1e2":                              true,
		"0.0":                              true,
		"-7":                               true,
		"10e-1":                            true,
		"12345678901234567890123":          true,
		"12345678901234567890123.0":        true,
		"1.5":                              false,
		"1e-300":                           false,
		"15e-1":                            false,
		"12345678901234567890123.5":        false,
		"0.5":                              false,
		"1e-19":                            false,
		"0e-30":                            true,
		strings.Repeat("7", 200):           true,
		strings.Repeat("7", 200) + "e-100": false,
	} {
		if got := mustNum(t, lex).IsInt(); got != want {
			t.Errorf("%s: got %v", lex, got)
		}
	}
}
