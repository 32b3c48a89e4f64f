package value

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// refusal is a text with the error that Parse, Scan and Fill (of a raw message) return.
type refusal struct {
	name, src string
	code      ErrorCode
	message   string
}

// refused reads a table of refusals: a name and a quoted text, and below it the code and the
// message.
func refused(t testing.TB) []refusal {
	t.Helper()
	table, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []refusal
	for line := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n") {
		head, rest, _ := strings.Cut(line, ": ")
		if code, ok := strings.CutPrefix(head, "\t"); ok {
			last := &all[len(all)-1]
			last.code, last.message = ErrorCode(code), rest
			continue
		}
		src, err := strconv.Unquote(rest)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, refusal{name: head, src: src})
	}

	return all
}

func TestRefuses(t *testing.T) {
	for _, tt := range refused(t) {
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
		` {"a" : 1 , "A" : 2} `:                `{"a":1,"A":2}`,                // keys that differ in case are distinct
		"{\"\u00e9\":1,\"e\u0301\":2}":         "{\"\u00e9\":1,\"e\u0301\":2}", // and so are NFC and NFD
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
		code      ErrorCode // empty if accepted
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
			"line 1, column 2097153: 50000002 bytes, at most 2097152 are read",
		},
		{"2 MB", `"` + strings.Repeat("x", 2_000_000) + `"`, Limits{}, "", ""},
		{"values at the limit", "[" + strings.Repeat("1,", 4094) + "1]", Limits{MaxBytes: 10_000}, "", ""},
		{
			"values over it",
			"[" + strings.Repeat("1,", 4095) + "1]",
			Limits{MaxBytes: 10_000},
			TooLarge,
			"line 1, column 1: 4097 values, at most 4096 are read",
		},
		{
			"1 million values",
			"[" + strings.Repeat("1,", 1_000_000) + "1]",
			Limits{},
			TooLarge,
			"line 1, column 1: 1000002 values, at most 262144 are read",
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
	for _, tt := range refused(f) {
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
