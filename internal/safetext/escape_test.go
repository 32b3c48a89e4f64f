package safetext

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/safetext/safetexttest"
)

// forbidden is an independent implementation of the promise in Escape's comment: it reports
// everything except letters, marks, numbers, punctuation, symbols and the ASCII space, and
// invisible characters among these. Each test decides on line feed, tab and our own isolates.
func forbidden(r rune) bool {
	if r == '\n' || r == '\t' || string(r) == Isolate || string(r) == PopIsolate {
		return false
	}
	if r == ' ' {
		return false
	}
	invisible := strings.ContainsRune("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\ufffc", r) ||
		r >= 0x180b && r <= 0x180f || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0000 && r <= 0xe0fff
	return invisible || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"ASCII", "a b ~ {x}", "a b ~ {x}"},
		{"letters of the world", "Zürich 東京 नमस्ते ไทย", "Zürich 東京 नमस्ते ไทย"},
		{"emoji", "🚀", "🚀"},
		{"line feed", "a\nb", `a\u{a}b`},
		{"tab", "a\tb", `a\u{9}b`},
		{"null", "\x00", `\u{0}`},
		{"escape", "\x1b[31m", `\u{1b}[31m`},
		{"delete", "\x7f", `\u{7f}`},
		{"C1", "\u009b", `\u{9b}`},
		{"bidi override", "\u202e", `\u{202e}`},
		{"two are written twice", "\u202e\u202e", `\u{202e}\u{202e}`},
		{"three are counted", "\u202e\u202e\u202e", `\u{202e*3}`},
		{"different ones are not", "\u202e\u202d\u202e", `\u{202e}\u{202d}\u{202e}`},
		{"tag", "\U000e0041", `\u{e0041}`},
		{"tag, language", "\U000e0001", `\u{e0001}`},
		{"variation selector", "❤\ufe0f", `❤\u{fe0f}`},
		{"variation selector supplement", "a\U000e0100", `a\u{e0100}`},
		{"joiner in an emoji", "👩\u200d💻", `👩\u{200d}💻`},
		{"soft hyphen", "\u00ad", `\u{ad}`},
		{"grapheme joiner", "a\u034f", `a\u{34f}`},
		{"Hangul fillers", "\u115f\u1160\u3164\uffa0", `\u{115f}\u{1160}\u{3164}\u{ffa0}`},
		{"blank braille", "\u2800", `\u{2800}`},
		{"no-break space", "\u00a0", `\u{a0}`},
		{"em space", "\u2003", `\u{2003}`},
		{"ideographic space", "\u3000", `\u{3000}`},
		{"line separator", "\u2028", `\u{2028}`},
		{"byte order mark", "\ufeff", `\u{feff}`},
		{"private use", "\ue000", `\u{e000}`},
		{"noncharacter", "\uffff", `\u{ffff}`},
		{"unassigned", "\u0378", `\u{378}`},
		{"last code point", "\U0010ffff", `\u{10ffff}`},
		{"replacement character is visible", "\ufffd", "\ufffd"},
		{"not UTF-8", "a\xffb", `a\x{ff}b`},
		{"not UTF-8, counted", "\xff\xff\xff", `\x{ff*3}`},
		{"surrogate half in UTF-8", "\xed\xa0\x80", `\x{ed}\x{a0}\x{80}`},
		{"eight spaces", "a        b", "a        b"},
		{"nine spaces", "a         b", `a\u{20*9}b`},
		{"backslash", `C:\Users\d+\`, `C:\Users\d+\`},
		{"forged escape", `\u{202e}`, `\u{5c}u{202e}`},
		{"forged byte", `\x{ff}`, `\u{5c}x{ff}`},
		{"forged behind backslashes", `\\u{a}`, `\\u{5c}u{a}`},
		{"forged cut", `\…(9`, `\u{5c}…(9`},
		{"other uses of u and x", `\u0041 \x41 u{ x{`, `\u0041 \x41 u{ x{`},
		{"backslash before an escape", "\\\u202e", `\\u{202e}`},
		{"mark on a letter", "e\u0301", "e\u0301"},
		{"four marks", "e\u0301\u0302\u0303\u0304", "e\u0301\u0302\u0303\u0304"},
		{"a fifth mark", "e\u0301\u0302\u0303\u0304\u0305x\u0301", "e\u0301\u0302\u0303\u0304" + `\u{305}` + "x\u0301"},
		{"five of one mark", "e\u0301\u0301\u0301\u0301\u0301", `e\u{301*5}`},
		{"mark at the start", "\u0301e", `\u{301}e`},
		{"mark on a digit", "1\u0338", `1\u{338}`},
		{"mark on an escape", "\u202e\u0301", `\u{202e}\u{301}`},
		{"mark behind a mark that was escaped", "e\u0336\u0301", `e\u{336}\u{301}`},
		{"enclosing mark", "e\u20dd", `e\u{20dd}`},
		{"mark across two letters", "e\u035ce", `e\u{35c}e`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Escape(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// For every Unicode character by itself, nothing forbidden is shown, and the text can be
// recovered.
func TestEscapeEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		in := "a" + string(r) + "b"
		out := Escape(in)
		if strings.ContainsFunc(out, forbidden) || strings.ContainsAny(out, "\n\t"+Isolate+PopIsolate) {
			t.Fatalf("%U is shown as %q", r, out)
		}
		if back := unescape(out); back != in {
			t.Fatalf("%U: %q reads back as %q", r, out, back)
		}
	}
}

var code = regexp.MustCompile(`\\([ux])\{([0-9a-f]+)(?:\*([0-9]+))?\}`)

// unescape inverts Escape, which shows that Escape is injective.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return code.ReplaceAllStringFunc(s, func(m string) string {
		g := code.FindStringSubmatch(m)
		n, _ := strconv.ParseUint(g[2], 16, 32)
		count := 1
		if g[3] != "" {
			count, _ = strconv.Atoi(g[3])
		}
		if g[1] == "x" {
			return strings.Repeat(string([]byte{byte(n)}), count)
		}
		return strings.Repeat(string(rune(n)), count)
	})
}

func TestEscapeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := deceiver().Draw(t, "in")
		out := Escape(in)
		if strings.ContainsFunc(out, forbidden) || strings.ContainsAny(out, "\n\t"+Isolate+PopIsolate) ||
			!utf8.ValidString(out) {
			t.Fatalf("%q holds a forbidden character", out)
		}
		if back := unescape(out); back != in {
			t.Fatalf("%q reads back as %q", out, back)
		}
	})
}

func TestShowCuts(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		limit          int
	}{
		{"fits exactly", "0123456789", "0123456789", 10},
		{"head, number and tail", "0123456789abcdefghijk", `01234567\…(9 characters not shown)…hijk`, 12},
		{"characters, not bytes", strings.Repeat("東", 20), `東東東東東東東東\…(8 characters not shown)…東東東東`, 12},
		{"long run of one character", strings.Repeat("x", 5000), `xxxx\…(4994 characters not shown)…xx`, 6},
		{"escapes are never split", "0123\u202e\u202e\u202e\u202dabcdefgh", `0123\…(8 characters not shown)…efgh`, 12},
		{"a counted run costs little", "a" + strings.Repeat("\u200b", 5000) + "b", `a\u{200b*5000}b`, 20},
		{
			"escapes at the tail",
			"abcdefghijklmnopqrstuvwxyz\u202e0",
			`abcdefghijklmnop\…(10 characters not shown)…\u{202e}0`,
			25,
		},
		{"isolated whole", "אאאאאאאאאאאאא", Isolate + `אאאאאאאא\…(1 characters not shown)…אאאא` + PopIsolate, 12},
		{
			"backslashes are counted with their escape",
			"a" + strings.Repeat(`\`, 12) + "z",
			`a\…(12 characters not shown)…z`,
			12,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, cut := Value{Text: tt.in}.Show(tt.limit)
			if got != tt.want || cut != strings.Contains(tt.want, "not shown") {
				t.Errorf("cut %v\ngot  %s\nwant %s", cut, got, tt.want)
			}
		})
	}
}

// In JSON each string is isolated separately, so that strings can't change places on screen,
// also if a string is cut.
func TestShowIsolatesStringsOfJSON(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		limit    int
	}{
		{`{"a":"b"}`, `{"a":"b"}`, 99},
		{`["א",1,"ב"]`, `["<א>",1,"<ב>"]`, 99},
		{`{"א\"":"\\"}`, `{"<א\">":"<\\>"}`, 99},
		{"[\"א\u202e\",2]", `["<א\u{202e}>",2]`, 99},
		{`["אאאאאאאאאאאא"]`, `["<אאאאאא>\…(4 characters not shown)…<אא>"]`, 12},
		{`["אאאאאאאאאא",1,2,3,4,5]`, `["<אאאאאא>\…(12 characters not shown)…4,5]`, 12},
		{`["אxxxxxxxxxxxx\"yz"]`, `["<אxxxxxxx>\…(6 characters not shown)…<"yz>"]`, 15},
	} {
		got, _ := Value{Text: tt.in, JSON: true}.Show(tt.limit)
		if got = strings.NewReplacer(Isolate, "<", PopIsolate, ">").Replace(got); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func TestShowProperties(t *testing.T) {
	marker := regexp.MustCompile(`\\…\(([0-9]+) characters not shown\)…`)
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Repeat(deceiver().Draw(t, "in"), rapid.IntRange(1, 4).Draw(t, "times"))
		limit := rapid.IntRange(40, 400).Draw(t, "limit")
		out, cut := Value{Text: in}.Show(limit)
		bare := strings.TrimSuffix(strings.TrimPrefix(out, Isolate), PopIsolate)
		if strings.ContainsFunc(bare, forbidden) || strings.ContainsAny(bare, "\n\t"+Isolate+PopIsolate) {
			t.Fatalf("%q holds a forbidden character", out)
		}
		if isolates := len(out) - len(bare); isolates != 0 && isolates != len(Isolate+PopIsolate) {
			t.Fatalf("%q: isolates are not a pair", out)
		}
		if n := utf8.RuneCountInString(marker.ReplaceAllString(bare, "")); n > limit {
			t.Fatalf("%d characters of %d allowed in %q", n, limit, out)
		}
		found := marker.FindAllStringSubmatchIndex(bare, -1)
		if !cut {
			if unescape(bare) != in || found != nil {
				t.Fatalf("%q reads back as %q", out, unescape(bare))
			}
			return
		}

		if len(found) != 1 {
			t.Fatalf("%d cuts announced in %q", len(found), out)
		}
		m := found[0]
		head, tail := unescape(bare[:m[0]]), unescape(bare[m[1]:])
		hiddenRunes, _ := strconv.Atoi(bare[m[2]:m[3]])
		if !strings.HasPrefix(in, head) || !strings.HasSuffix(in, tail) || hiddenRunes < 1 ||
			hiddenRunes != utf8.RuneCountInString(in[len(head):len(in)-len(tail)]) {
			t.Fatalf("%q does not tell the truth about %q", out, in)
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{
		"",
		"a\nb",
		"\u202e\u05d0",
		`\u{202e}`,
		"e\u0301\u0301",
		"\xff",
		strings.Repeat(" ", 3000),
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if back := unescape(Escape(text)); back != text {
			t.Fatalf("%q reads back as %q", text, back)
		}
	})
}

// deceiver generates texts made of hostile pieces.
func deceiver() *rapid.Generator[string] {
	pieces := rapid.SampledFrom(safetexttest.Pieces())
	any := rapid.StringOfN(rapid.Rune(), 0, 4, -1)
	texts := rapid.SliceOfN(rapid.OneOf(pieces, pieces, any), 0, 24)
	return rapid.Map(texts, func(s []string) string { return strings.Join(s, "") })
}
