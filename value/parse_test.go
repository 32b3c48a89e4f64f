package value

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// refused are texts with the place and the reason that Parse, Scan and
// Fill (of the raw message) give.
var refused = []struct {
	name, src string
	code      ErrorCode
	message   string
}{
	{"empty", "", Syntax, "line 1, column 1: expected a value, found the end of the text"},
	{"only space", " \n ", Syntax, "line 2, column 2: expected a value, found the end of the text"},
	{
		"unclosed object",
		`{"a":1`,
		Syntax,
		"line 1, column 7: expected , or } after a member, found the end of the text",
	},
	{"unclosed key", `{"a`, Syntax, "line 1, column 2: the string has no closing quote"},
	{"unclosed text", `["a long text that runs on`, Syntax, "line 1, column 2: the string has no closing quote"},
	{"object without keys", `{1:2}`, Syntax, "line 1, column 2: expected a key in double quotes, found '1'"},
	{
		"object ends early",
		`{`,
		Syntax,
		"line 1, column 2: expected a key in double quotes, found the end of the text",
	},
	{"no colon", `{"a" 1}`, Syntax, "line 1, column 6: expected : after the key, found '1'"},
	{
		"no value",
		`{"a":}`,
		Syntax,
		"line 1, column 6: expected a value, found '}': no comma stands before a closing bracket",
	},
	{
		"comma before brace",
		`{"a":1,}`,
		Syntax,
		"line 1, column 8: expected a key in double quotes, found '}': no comma stands before a closing bracket",
	},
	{
		"comma before bracket",
		`[1,]`,
		Syntax,
		"line 1, column 4: expected a value, found ']': no comma stands before a closing bracket",
	},
	{"no comma", "{\"a\":1\n \"b\":2}", Syntax, "line 2, column 2: expected , or } after a member, found '\"'"},
	{"wrong bracket", `[1}`, Syntax, "line 1, column 3: expected , or ] after an element, found '}'"},
	{
		"array ends early",
		`[1`,
		Syntax,
		"line 1, column 3: expected , or ] after an element, found the end of the text",
	},
	{
		"single quotes",
		`{"a":'b'}`,
		Syntax,
		"line 1, column 6: expected a value, found '\\'': strings stand in double quotes",
	},
	{"comment", "// a\n1", Syntax, "line 1, column 1: expected a value, found '/': JSON has no comments"},
	{
		"byte order mark",
		"\ufeff1",
		Syntax,
		"line 1, column 1: expected a value, found '\\ufeff': leave the byte order mark out",
	},
	{
		"NaN",
		`{"amount":NaN}`,
		Syntax,
		"line 1, column 11: expected a value, found 'N': JSON has no NaN, write a string or null",
	},
	{
		"Infinity",
		`[-Infinity]`,
		Syntax,
		"line 1, column 3: expected a digit, found 'I': JSON has no Infinity, write a string or null",
	},
	{
		"Python",
		`[True]`,
		Syntax,
		"line 1, column 2: expected a value, found 'T': JSON writes true, false and null",
	},
	{"cut literal", `[tru`, Syntax, "line 1, column 2: expected a value, found 't'"},
	{
		"long literal",
		`nulll`,
		TrailingData,
		"line 1, column 5: expected the end of the text after the value, found 'l'",
	},
	{"plus", `[+1]`, Syntax, "line 1, column 2: expected a value, found '+': numbers begin with a digit or -"},
	{"leading zero", `[-01]`, Syntax, "line 1, column 4: a number has no leading zeros"},
	{"leading zero of many", `[00000000000000000000]`, Syntax, "line 1, column 3: a number has no leading zeros"},
	{"no fraction", `[1.]`, Syntax, "line 1, column 4: expected a digit, found ']'"},
	{"no exponent", `[1e]`, Syntax, "line 1, column 4: expected a digit, found ']'"},
	{
		"two values",
		`{} {}`,
		TrailingData,
		"line 1, column 4: expected the end of the text after the value, found '{'",
	},
	{
		"zero byte behind",
		"1\x00",
		TrailingData,
		"line 1, column 2: expected the end of the text after the value, found '\\x00'",
	},
	{"no-break space", "\u00a01", Syntax, "line 1, column 1: expected a value, found '\\u00a0'"},

	{
		"duplicate",
		`{"amount":1,"amount":2}`,
		DuplicateKey,
		`line 1, column 13: duplicate key "amount" (first at column 2)`,
	},
	{
		"duplicate by escape",
		`{"é":1,"\u00e9":2}`,
		DuplicateKey,
		`line 1, column 8: duplicate key "é" (first at column 2)`,
	},
	{
		"duplicate of escape",
		`{"\u0061":1,"a":2}`,
		DuplicateKey,
		`line 1, column 13: duplicate key "a" (first at column 2)`,
	},
	{
		"duplicate on another line",
		"{\"x\":0,\n \"a\":1,\n\"a\":1}",
		DuplicateKey,
		`line 3, column 1: duplicate key "a" (first at line 2, column 2)`,
	},
	{
		"duplicate deep down",
		`[{"a":{"b":[{"":1,"":2}]}}]`,
		DuplicateKey,
		`line 1, column 19: duplicate key "" (first at column 14)`,
	},
	{
		"duplicate around a nested object",
		`{"a":{"b":1},"a":2}`,
		DuplicateKey,
		`line 1, column 14: duplicate key "a" (first at column 2)`,
	},
	{
		"duplicate forger",
		"{\"\u202e\":1,\"\u202e\":2}",
		DuplicateKey,
		`line 1, column 8: duplicate key "\u202e" (first at column 2)`,
	},
	{
		"duplicate long",
		`{"x` + strings.Repeat("é", 60) + `":1,"x` + strings.Repeat("é", 60) + `":1}`,
		DuplicateKey,
		`line 1, column 68: duplicate key "x` + strings.Repeat("é", 31) + `…" (first at column 2)`,
	},

	{"bad byte", "{\"a\":\"x\xffy\"}", InvalidUTF8, "line 1, column 8: byte 0xff is not valid UTF-8 here"},
	{"bad byte in a key", "{\"é\xffy\":1}", InvalidUTF8, "line 1, column 4: byte 0xff is not valid UTF-8 here"},
	{"cut rune", "[\"\xe2\x82\"]", InvalidUTF8, "line 1, column 3: byte 0xe2 is not valid UTF-8 here"},
	{"overlong", "[\"\xc0\xaf\"]", InvalidUTF8, "line 1, column 3: byte 0xc0 is not valid UTF-8 here"},
	{
		"surrogate in UTF-8",
		"[\"\xed\xa0\x80\"]",
		InvalidUTF8,
		"line 1, column 3: byte 0xed is not valid UTF-8 here",
	},
	{"bad byte outside", "[\xff]", Syntax, "line 1, column 2: expected a value, found byte 0xff"},

	{
		"high surrogate",
		`["\ud800"]`,
		LoneSurrogate,
		`line 1, column 3: \ud800 is half of a surrogate pair and stands alone`,
	},
	{
		"low surrogate",
		`["\uDC00x"]`,
		LoneSurrogate,
		`line 1, column 3: \uDC00 is half of a surrogate pair and stands alone`,
	},
	{
		"two high surrogates",
		`["\ud83d\ud83d"]`,
		LoneSurrogate,
		`line 1, column 3: \ud83d is half of a surrogate pair and stands alone`,
	},
	{
		"surrogate and escape",
		`["\ud83d\n"]`,
		LoneSurrogate,
		`line 1, column 3: \ud83d is half of a surrogate pair and stands alone`,
	},
	{
		"surrogate and half an escape",
		`["\ud83d\u12"]`,
		LoneSurrogate,
		`line 1, column 3: \ud83d is half of a surrogate pair and stands alone`,
	},
	{
		"surrogate in a key",
		`{"\ud800":1}`,
		LoneSurrogate,
		`line 1, column 3: \ud800 is half of a surrogate pair and stands alone`,
	},

	{"unknown escape", `["\x41"]`, Syntax, `line 1, column 3: after \ one of "\/bfnrtu is expected, found 'x'`},
	{"short escape", `["\u12"]`, Syntax, `line 1, column 3: four hexadecimal digits are expected after \u`},
	{"cut escape", `["\u12`, Syntax, `line 1, column 3: four hexadecimal digits are expected after \u`},
	{
		"backslash at the end",
		`["\`,
		Syntax,
		`line 1, column 3: after \ one of "\/bfnrtu is expected, found the end of the text`,
	},
	{
		"no hexadecimal digit",
		`["\u00g0"]`,
		Syntax,
		`line 1, column 3: four hexadecimal digits are expected after \u`,
	},
	{
		"line break in a text",
		"[\"a\nb\"]",
		Syntax,
		`line 1, column 4: control character '\n' in a string, write it as an escape`,
	},
	{
		"zero byte in a text",
		"[\"\x00 and something behind it\"]",
		Syntax,
		`line 1, column 3: control character '\x00' in a string, write it as an escape`,
	},

	{
		"overflow",
		`{"a":1e999999}`,
		NumberRange,
		"line 1, column 6: no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string",
	},
	{
		"underflow",
		`{"a":-1e-999999}`,
		NumberRange,
		"line 1, column 6: no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string",
	},
	{
		"long overflow",
		"[" + strings.Repeat("9", 310) + "]",
		NumberRange,
		"line 1, column 2: no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string",
	},
}

func TestRefuses(t *testing.T) {
	for _, tt := range refused {
		v, err := Parse([]byte(tt.src), Limits{})
		wantError(t, tt.name+", Parse", err, tt.code, tt.message)
		if v.Kind != Absent {
			t.Errorf("%s: Parse returned a value beside the error", tt.name)
		}
		var sc Scratch
		wantError(t, tt.name+", Scan", anything.Scan([]byte(tt.src), Limits{}, &sc), tt.code, tt.message)
		wantError(t, tt.name+", Fill", anything.Fill(json.RawMessage(tt.src), Limits{}, &sc), tt.code, tt.message)
		if oracle(tt.src) {
			t.Errorf("%s: the oracle takes it", tt.name)
		}
	}
}

func TestAccepts(t *testing.T) {
	for src, want := range map[string]string{
		` {"a" : 1 , "A" : 2} `:                `{"a":1,"A":2}`,                // keys that differ by case are two
		"{\"\u00e9\":1,\"e\u0301\":2}":         "{\"\u00e9\":1,\"e\u0301\":2}", // so are NFC and NFD
		`{"a":{"a":{"a":[]}}}`:                 `{"a":{"a":{"a":[]}}}`,
		`[{"a":1},{"a":1}]`:                    `[{"a":1},{"a":1}]`,
		`"\ud83d\ude00\u0000\b\f\n\r\t\/"`:     `"😀\u0000\b\f\n\r\t/"`,
		"\"\x7f\u2028\uffff😀\"":                "\"\x7f\u2028\uffff😀\"",
		`[true,false,null,-0,0.5e-3,"",[],{}]`: `[true,false,null,-0,0.5e-3,"",[],{}]`,
		"\t\r\n 7 \t\r\n":                      "7",
		`{"a\u0062":1,"a":2,"ab\"":3}`:         `{"ab":1,"a":2,"ab\"":3}`,
	} {
		if got := string(mustParse(t, src).AppendJSON(nil)); got != want {
			t.Errorf("%s: got %s", src, got)
		}
		if !oracle(src) {
			t.Errorf("%s: the oracle refuses it", src)
		}
	}
}

func TestErrorFields(t *testing.T) {
	_, err := Parse([]byte("{\"é\":1,\n\"é\":2}"), Limits{})
	want := Error{
		Code:   DuplicateKey,
		Offset: 9,
		Line:   2,
		Column: 1,
		Detail: `duplicate key "é" (first at line 1, column 2)`,
	}
	if got := err.(*Error); *got != want {
		t.Errorf("got %+v", *got)
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	objects := func(n int) string {
		return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat(`}`, n)
	}
	for _, tt := range []struct {
		name, src string
		lim       Limits
		code      ErrorCode // "" for accepted
		message   string
	}{
		{"depth at the limit", nested(128), Limits{}, "", ""},
		{
			"depth over it",
			nested(129),
			Limits{},
			TooDeep,
			"line 1, column 129: arrays and objects are nested deeper than 128 levels",
		},
		{"objects at the limit", objects(3), Limits{MaxDepth: 3}, "", ""},
		{
			"objects over it",
			objects(4),
			Limits{MaxDepth: 3},
			TooDeep,
			"line 1, column 16: arrays and objects are nested deeper than 3 levels",
		},
		{
			"100,000 arrays",
			nested(100_000),
			Limits{},
			TooDeep,
			"line 1, column 129: arrays and objects are nested deeper than 128 levels",
		},
		{
			"100,000 arrays, never closed",
			strings.Repeat("[", 100_000),
			Limits{MaxDepth: 1 << 30},
			TooDeep,
			"line 1, column 10001: arrays and objects are nested deeper than 10000 levels",
		},
		{"as deep as it goes", objects(10_000), Limits{MaxDepth: 1 << 30}, "", ""},
		{"size at the limit", `"123456"`, Limits{MaxBytes: 8}, "", ""},
		{"size over it", `"1234567"`, Limits{MaxBytes: 8}, TooLarge, "line 1, column 9: 9 bytes, at most 8 are read"},
		{
			"50 MB",
			`"` + strings.Repeat("x", 50_000_000) + `"`,
			Limits{},
			TooLarge,
			"line 1, column 8388609: 50000002 bytes, at most 8388608 are read",
		},
		{"7 MB", `"` + strings.Repeat("x", 7_000_000) + `"`, Limits{}, "", ""},
		{"values at the limit", "[" + strings.Repeat("1,", 4094) + "1]", Limits{MaxBytes: 10_000}, "", ""},
		{
			"values over it",
			"[" + strings.Repeat("1,", 4095) + "1]",
			Limits{MaxBytes: 10_000},
			TooLarge,
			"line 1, column 1: 4097 values, at most 4096 are read",
		},
		{
			"4 million values",
			"[" + strings.Repeat("1,", 4_000_000) + "1]",
			Limits{},
			TooLarge,
			"line 1, column 1: 4000002 values, at most 1048576 are read",
		},
	} {
		_, parseErr := Parse([]byte(tt.src), tt.lim)
		scanErr := anything.Scan([]byte(tt.src), tt.lim, &Scratch{})
		if tt.code == "" {
			if parseErr != nil || scanErr != nil {
				t.Errorf("%s: %v, %v", tt.name, parseErr, scanErr)
			}
			continue
		}

		wantError(t, tt.name, parseErr, tt.code, tt.message)
		wantError(t, tt.name, scanErr, tt.code, tt.message)
	}
}

func TestManyKeys(t *testing.T) {
	member := func(i int) string {
		return fmt.Sprintf(`"customer_field_%06d_name":%d`, i*7919%100_000, i)
	}
	build := func(n int, extra ...string) string {
		var parts []string
		for i := range n {
			parts = append(parts, member(i))
		}
		return "{" + strings.Join(append(parts, extra...), ",") + "}"
	}
	for _, n := range []int{1, 2, 30, 31, 32, 33, 34, 100, 5000} {
		if err := anything.Scan([]byte(build(n)), Limits{}, &Scratch{}); err != nil {
			t.Errorf("%d keys: %v", n, err)
		}
		for _, again := range []int{0, n / 2, n - 1} {
			src := build(n, `"x":{"y":1}`, member(again), member(again))
			var e *Error
			if err := anything.Scan([]byte(src), Limits{}, &Scratch{}); err == nil {
				t.Errorf("%d keys: a repeated one was taken", n)
			} else if e = err.(*Error); e.Code != DuplicateKey ||
				e.Offset != strings.Index(src, `,"x"`)+len(`,"x":{"y":1},`) {
				t.Errorf("%d keys, number %d again: %v at %d", n, again, e, e.Offset)
			}
		}
	}
}

// Neither many keys, nor keys that all hash alike, nor many objects of
// the largest size that is compared pairwise take more than in
// proportion. The bound is wide: quadratic work on these would take
// minutes.
func TestManyKeysTakeLinearTime(t *testing.T) {
	write := func(n int, key func(i int) string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s":1`, key(i))
		}
		return []byte("{" + b.String()[1:] + "}")
	}
	for name, src := range map[string][]byte{
		"different": write(100_000, func(i int) string { return fmt.Sprint(i) }),
		"alike":     write(100_000, func(i int) string { return fmt.Sprintf("abcdefgh%06dabcdefgh", i) }),
		"escaped":   write(100_000, func(i int) string { return fmt.Sprintf(`\u0061bcdefgh%06dabcdefgh`, i) }),
	} {
		start := time.Now()
		if err := anything.Scan(src, Limits{}, &Scratch{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: 100,000 keys took %v", name, took)
		}
	}
}

func TestParseAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAgainstOracle(t, mutations().Draw(t, "doc"))
	})
}

func checkAgainstOracle(t tester, src string) {
	_, err := Parse([]byte(src), Limits{})
	if want := oracle(src); (err == nil) != want {
		t.Fatalf("%q: the oracle says %v, Parse %v", src, want, err)
	}
	if err != nil &&
		(err.(*Error).Line < 1 || err.(*Error).Column < 1 || err.(*Error).Offset < 0 ||
			err.(*Error).Offset > len(src)) {
		t.Fatalf("%q: the error has no place: %+v", src, err)
	}
	scanErr := anything.Scan([]byte(src), Limits{}, &Scratch{})
	if fmt.Sprint(scanErr) != fmt.Sprint(err) {
		t.Fatalf("%q: Parse says %v, Scan %v", src, err, scanErr)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range refused {
		f.Add([]byte(tt.src))
	}
	for _, w := range workloads() {
		f.Add([]byte(w.doc))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkAgainstOracle(t, string(src))
		v, err := Parse(src, Limits{})
		if err != nil {
			return
		}
		back, err := Parse(v.AppendJSON(nil), Limits{})
		if err != nil || !equal(v, back) || v.Digest() != back.Digest() {
			t.Fatalf("%q does not come back: %v", src, err)
		}
		if again, err := Parse(v.AppendCanonical(nil), Limits{}); err != nil || again.Digest() != v.Digest() {
			t.Fatalf("%q: canonical form %s: %v", src, v.AppendCanonical(nil), err)
		}
	})
}

func FuzzNum(f *testing.F) {
	for _, lex := range []string{
		"0",
		"-0",
		"1.50",
		"1e5",
		"9007199254740993",
		"1e999999",
		"1e-324",
		"01",
		"1.",
		"123456789012345678901234567890e-20",
	} {
		f.Add(lex, "1")
	}

	f.Fuzz(func(t *testing.T, x, y string) {
		a, err := ParseNum(x)
		if valid := json.Valid([]byte(x)) && strings.Trim(x, " \t\r\n") == x && x != "" &&
			(x[0] == '-' || x[0]-'0' <= 9); (err == nil) != (valid && oracleNumber(x)) {
			t.Fatalf("%q: %v", x, err)
		}
		b, errB := ParseNum(y)
		if err != nil || errB != nil {
			return
		}
		if a.Cmp(b) != -b.Cmp(a) || a.Cmp(a) != 0 || (a.Cmp(b) == 0) != (a.Canonical() == b.Canonical()) {
			t.Fatalf("%s with %s: %d, canonical %s and %s", x, y, a.Cmp(b), a.Canonical(), b.Canonical())
		}
		if back, err := ParseNum(a.Canonical()); err != nil || back.Cmp(a) != 0 {
			t.Fatalf("%s: canonical %s: %v", x, a.Canonical(), err)
		}
	})
}
