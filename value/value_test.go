package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func mustParse(t tester, src string) Value {
	t.Helper()
	v, err := Parse([]byte(src), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return v
}

func mustNum(t tester, lex string) Num {
	t.Helper()
	n, err := ParseNum(lex)
	if err != nil {
		t.Fatalf("%s: %v", lex, err)
	}
	return n
}

// wantError checks the code and the message of an *Error.
func wantError(t tester, name string, err error, code ErrorCode, message string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v, want an *Error", name, err)
		return
	}
	if e.Code != code || e.Error() != message {
		t.Errorf("%s:\n got %s: %s\nwant %s: %s", name, e.Code, e, code, message)
	}
}

// equal compares values, numbers by Cmp, and objects in source order.
func equal(a, b Value) bool {
	if a.Kind != b.Kind || a.Bool != b.Bool || a.Text != b.Text || a.Num.Cmp(b.Num) != 0 ||
		len(a.Items) != len(b.Items) || len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Items {
		if !equal(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i := range a.Members {
		if a.Members[i].Key != b.Members[i].Key || !equal(a.Members[i].Value, b.Members[i].Value) {
			return false
		}
	}
	return true
}

// Generators.

func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(
			[]string{
				"",
				"a",
				"b",
				"c",
				"A",
				"amount",
				"order",
				"0",
				"1",
				"07",
				"a.b",
				"a long key of more than sixteen bytes",
			},
		),
		rapid.StringOf(rapid.SampledFrom([]rune("aé\"\\/\n\x00\x1f €\u2028\ue000\uffff😀𐀀"))),
	)
}

func lexemes() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(
			[]string{
				"0",
				"-0",
				"0e9",
				"0.0",
				"1",
				"1.0",
				"1e0",
				"10e-1",
				"100",
				"1e2",
				"9007199254740992",
				"9007199254740993",
				"0.1",
				"18446744073709551615",
				"9999999999999999999",
				"10000000000000000000",
				"123456789012345678901234567890",
				"1.7976931348623157e308",
				"5e-324",
			},
		),
		rapid.Custom(func(t *rapid.T) string {
			lex := rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?`).Draw(t, "digits")
			if rapid.Bool().Draw(t, "exponent") {
				lex += fmt.Sprintf(
					"%s%d",
					rapid.SampledFrom([]string{"e", "E", "e+"}).Draw(t, "e"),
					rapid.IntRange(0, 280).Draw(t, "exp"),
				)
			}

			return lex
		}),
		rapid.Map(rapid.Float64(), func(f float64) string { return fmt.Sprint(f) }),
	).Filter(oracleNumber)
}

func values(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []Kind{Null, Bool, Number, String}
		if depth > 0 {
			kinds = append(kinds, Array, Object, Object)
		}
		v := Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.Kind {
		case Bool:
			v.Bool = rapid.Bool().Draw(t, "bool")
		case Number:
			v.Num = mustNum(t, lexemes().Draw(t, "number"))
		case String:
			v.Text = texts().Draw(t, "text")
		case Array:
			v.Items = rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "items")
		case Object:
			for _, key := range rapid.SliceOfNDistinct(texts(), 0, 5, rapid.ID).Draw(t, "keys") {
				v.Members = append(v.Members, Member{key, values(depth-1).Draw(t, "member")})
			}
		}

		return v
	})
}

// spell writes v in one of the ways that JSON allows, with any white space, escapes and order
// of keys.
func spell(t *rapid.T, v Value) string {
	space := func() string {
		return rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t\r "}).Draw(t, "space")
	}
	var parts []string
	switch v.Kind {
	case String:
		return space() + spellString(t, v.Text) + space()
	case Array:
		for _, item := range v.Items {
			parts = append(parts, spell(t, item))
		}
		return space() + "[" + space() + strings.Join(parts, ",") + "]" + space()
	case Object:
		for _, m := range rapid.Permutation(v.Members).Draw(t, "order") {
			parts = append(parts, space()+spellString(t, m.Key)+space()+":"+spell(t, m.Value))
		}
		return space() + "{" + space() + strings.Join(parts, ",") + "}" + space()
	}

	return space() + string(v.AppendJSON(nil)) + space()
}

func spellString(t *rapid.T, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && !rapid.Bool().Draw(t, "escape") {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "hex"), unit)
		}
	}

	b.WriteByte('"')
	return b.String()
}

// mutations generates documents that are nearly valid.
func mutations() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		doc := []byte(spell(t, values(3).Draw(t, "value")))
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(doc)).Draw(t, "at")
			end := min(len(doc), at+rapid.IntRange(0, 3).Draw(t, "cut"))
			put := rapid.SampledFrom([]string{
				"",
				"",
				"{",
				"}",
				"[",
				"]",
				",",
				":",
				`"`,
				`\`,
				`\ud800`,
				`\udc00`,
				"\xff",
				"\xc3",
				"\xed\xa0\x80",
				"0",
				"1e999",
				"-",
				".",
				"e",
				"\x01",
				"null",
				`"a":1,`,
				" ",
				"NaN",
			}).
				Draw(t, "put")
			doc = []byte(string(doc[:at]) + put + string(doc[end:]))
		}

		return string(doc)
	})
}

// oracle decides whether a document is valid, using encoding/json and its own rules. It shares
// no code with this package except the limits.
func oracle(src string) bool {
	if !json.Valid([]byte(src)) || !utf8.ValidString(src) || loneSurrogate(src) {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(src))
	dec.UseNumber()
	return oracleValue(dec, 0) && func() bool {
		_, err := dec.Token()
		return err == io.EOF
	}()
}

func oracleValue(dec *json.Decoder, depth int) bool {
	tok, err := dec.Token()
	if err != nil {
		return false
	}
	switch tok := tok.(type) {
	case json.Number:
		return oracleNumber(string(tok))
	case json.Delim:
		if depth == DefaultLimits().MaxDepth {
			return false
		}
		seen := map[string]bool{}
		for dec.More() {
			if tok == '{' {
				key, err := dec.Token()
				if err != nil || seen[key.(string)] {
					return false
				}
				seen[key.(string)] = true
			}

			if !oracleValue(dec, depth+1) {
				return false
			}
		}

		_, err = dec.Token()
	}

	return err == nil
}

// oracleNumber accepts what encoding/json accepts for a float64, except non-zero numbers that
// become zero.
func oracleNumber(lex string) bool {
	var f float64
	if json.Unmarshal([]byte(lex), &f) != nil {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(lex), "e")
	return f != 0 || strings.Trim(mantissa, "-0.") == ""
}

func loneSurrogate(src string) bool {
	for i := 0; i+1 < len(src); i++ {
		if src[i] != '\\' {
			continue
		}
		i++
		if src[i] != 'u' {
			continue
		}
		var unit, low rune
		fmt.Sscanf(src[i+1:i+5], "%x", &unit)
		i += 4
		if !utf16.IsSurrogate(unit) {
			continue
		}
		if i+7 > len(src) || src[i+1:i+3] != `\u` {
			return true
		}
		fmt.Sscanf(src[i+3:i+7], "%x", &low)
		if utf16.DecodeRune(unit, low) == utf8.RuneError {
			return true
		}
		i += 6
	}

	return false
}

// The tree.

func TestGet(t *testing.T) {
	v := mustParse(
		t,
		`{"order":{"amount":5,"lines":[{"sku":"A"},{"sku":"B"}]},"a.b":1,"a":{"b":2},"":{"":3},"x":null}`,
	)
	for _, tt := range []struct {
		path []string
		want string
	}{
		{[]string{"order", "amount"}, "5"},
		{[]string{"order", "lines", "1", "sku"}, `"B"`},
		{[]string{"a.b"}, "1"},
		{[]string{"a", "b"}, "2"},
		{[]string{"", ""}, "3"},
		{[]string{"x"}, "null"},
		{[]string{"order", "lines", "2"}, ""},
		{[]string{"order", "lines", "01"}, ""},
		{[]string{"order", "lines", "-1"}, ""},
		{[]string{"order", "lines", "+1"}, ""},
		{[]string{"order", "lines", ""}, ""},
		{[]string{"order", "lines", "1234567890"}, ""},
		{[]string{"order", "amount", "0"}, ""},
		{[]string{"Order"}, ""},
	} {
		got, ok := v.Get(tt.path...)
		if ok != (tt.want != "") || ok && string(got.AppendJSON(nil)) != tt.want {
			t.Errorf("%q: got %s, %v, want %q", tt.path, got.AppendJSON(nil), ok, tt.want)
		}
	}

	if _, ok := (Value{}).Get(); ok {
		t.Error("an absent value was found")
	}
}

func TestLookup(t *testing.T) {
	v := mustParse(t, `{"a.b":1,"a":{"b":2,"c.d":3,"list":[4]},"x":{"":5}}`)
	for path, want := range map[string]string{
		"a.b":      "1",
		"a.list.0": "4",
		"x.":       "5",
		"a":        `{"b":2,"c.d":3,"list":[4]}`,
		"a.c.d":    "",
		"a.b.c":    "",
		"":         "",
		".":        "",
		"b":        "",
		"a.list.1": "",
	} {
		got, ok := v.Lookup(path)
		if ok != (want != "") || ok && string(got.AppendJSON(nil)) != want {
			t.Errorf("%q: got %s, %v, want %q", path, got.AppendJSON(nil), ok, want)
		}
	}

	if got, ok := mustParse(t, `[[7]]`).Lookup("0.0"); !ok || got.Num.Cmp(IntNum(7)) != 0 {
		t.Error("a path into an array was not found")
	}
}

func TestKindString(t *testing.T) {
	want := "absent null boolean number string array object unknown"
	var got []string
	for k := Absent; k <= Object+1; k++ {
		got = append(got, k.String())
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
}

func TestLimitsDefaults(t *testing.T) {
	if got := (Limits{}).orDefault(); got != DefaultLimits().orDefault() || got.MaxValues != 1<<18 {
		t.Errorf("zero: %+v", got)
	}
	if got := (Limits{MaxBytes: 100, MaxValues: 7}).orDefault(); got.MaxValues != 7 {
		t.Errorf("of its own: %+v", got)
	}
	most := Limits{MaxBytes: math.MaxInt, MaxDepth: math.MaxInt, FoldKeys: true}
	ceiling := Limits{MaxBytes: 1 << 30, MaxDepth: 10_000, MaxValues: 1 << 27, FoldKeys: true}
	if got := most.orDefault(); got != ceiling {
		t.Errorf("beyond the ceiling: %+v", got)
	}
}

func TestAppendJSONKeepsOrderAndLexemes(t *testing.T) {
	src := `{"b":[1.0,1e0,-0,500.00],"a":{"x":null,"t":true,"f":false},"s":"\u00e9\n\"\\\/\u0001"}`
	want := `{"b":[1.0,1e0,-0,500.00],"a":{"x":null,"t":true,"f":false},"s":"é\n\"\\/\u0001"}`
	if got := string(mustParse(t, src).AppendJSON([]byte(">"))); got != ">"+want {
		t.Errorf("got %s", got)
	}
	if got := string(Value{}.AppendJSON(nil)); got != "null" {
		t.Errorf("absent: %s", got)
	}
}

func TestParseRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(4).Draw(t, "value")
		text := v.AppendJSON(nil)
		back, err := Parse(text, Limits{})
		if err != nil || !equal(v, back) {
			t.Fatalf("%s: %v", text, err)
		}
		if again := back.AppendJSON(nil); !bytes.Equal(text, again) {
			t.Fatalf("%s became %s", text, again)
		}
	})
}
