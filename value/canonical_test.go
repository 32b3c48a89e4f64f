package value

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// The documents of RFC 8785, sections 3.2.2 to 3.2.4. The RFC's array has 333333333.33333329,
// which it rounds to 333333333.3333333, as a reader into doubles would. This package keeps such
// digits (TestCanonicalKeepsWhatADoubleWouldRound), so the test uses the rounded number.
func TestCanonicalOfRFC8785(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{
			"primitives",
			`{
			"numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			"literals": [null, true, false]
		}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
				`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"key order",
			`{
			"\u20ac": "Euro Sign",
			"\r": "Carriage Return",
			"\ufb33": "Hebrew Letter Dalet With Dagesh",
			"1": "One",
			"\ud83d\ude00": "Emoji: Grinning Face",
			"\u0080": "Control",
			"\u00f6": "Latin Small Letter O With Diaeresis"
		}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" +
				`":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",` +
				`"😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		{"nested", `{"b":{"y":[{"d":1,"c":2}],"x":1},"a":[]}`, `{"a":[],"b":{"x":1,"y":[{"c":2,"d":1}]}}`},
		{
			"escapes",
			`"\u0000\u0007\b\t\n\u000b\f\r\u001f \"\\\/` + "\x7f\u2028" + `"`,
			`"\u0000\u0007\b\t\n\u000b\f\r\u001f \"\\/` + "\x7f\u2028" + `"`,
		},
	} {
		if got := string(mustParse(t, tt.src).AppendCanonical([]byte(">"))); got != ">"+tt.want {
			t.Errorf("%s:\n got %s\nwant >%s", tt.name, got, tt.want)
		}
	}
}

func TestCanonicalLeavesTheValueAlone(t *testing.T) {
	v := mustParse(t, `{"b":1,"a":2}`)
	v.AppendCanonical(nil)
	if got := string(v.AppendJSON(nil)); got != `{"b":1,"a":2}` {
		t.Errorf("got %s", got)
	}
}

func TestDigest(t *testing.T) {
	const empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // of {}
	if got := mustParse(t, ` { } `).Digest().String(); got != empty {
		t.Errorf("got %s", got)
	}
	if SumCanonical([]byte("{}")).String() != empty {
		t.Error("SumCanonical differs")
	}
	same := [][]string{
		{`{"a":1,"b":[true]}`, ` { "b" : [ true ] , "\u0061" : 1.0 }`},
		{`100`, `1e2`, `1E+2`, `100.00`, `1000e-1`},
		{`0`, `-0`, `0.0`, `0e300`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
	}
	for _, group := range same {
		for _, src := range group[1:] {
			if mustParse(t, src).Digest() != mustParse(t, group[0]).Digest() {
				t.Errorf("%s and %s have different digests", src, group[0])
			}
		}
	}

	different := []string{
		`9007199254740992`, `9007199254740993`, `295147905179352825856`, `295147905179352830000`, `0.1`,
		`0.1000000000000000055511151231257827021181583404541015625`, `"1"`, `1`, `true`, `null`, `[]`, `{}`, `""`,
		`{"a":1}`, `{"A":1}`, `"é"`, `"e` + "\u0301" + `"`, `[1]`, `[[1]]`, `[1,2]`, `[2,1]`,
	}
	seen := map[Digest]string{}
	for _, src := range different {
		d := mustParse(t, src).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s share a digest", src, other)
		}
		seen[d] = src
	}
}

func TestCanonicalIsOneForEverySpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(4).Draw(t, "value")
		back := mustParse(t, spell(t, v))
		if got, want := string(back.AppendCanonical(nil)), string(v.AppendCanonical(nil)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		again := mustParse(t, string(v.AppendCanonical(nil)))
		if string(again.AppendCanonical(nil)) != string(v.AppendCanonical(nil)) {
			t.Fatalf("%s is not its own canonical form", v.AppendCanonical(nil))
		}
	})
}

func TestKeysAreOrderedAsUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		if got, want := cmpUTF16(a, b), slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))); got != want {
			t.Fatalf("%q with %q: got %d, want %d", a, b, got, want)
		}
	})
	if keys := strings.Fields("\uffff 😀 \ue000 \ud7ff 𐀀"); !slices.IsSortedFunc(
		[]string{keys[3], keys[4], keys[1], keys[2], keys[0]},
		cmpUTF16,
	) {
		t.Error("surrogates do not stand before U+E000")
	}
}
