package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct{ name, text, want, words string }{
		{"plain", "Reads a file.\n\tOnce.", "Reads a file.\n\tOnce.", ""},
		{"colour", "a\x1b[31mred\x1b[0m", "ared", "2 control characters"},
		{"C1 sequence", "a\u009b31mred", "ared", "1 control character"},
		{"title", "a\x1b]0;evil\x07b\x1b]8;;x\x1b\\c", "abc", "2 control characters"},
		{"without an end", "a\x1b]0;evil", "a0;evil", "1 control character"},
		{"sequence without an end", "a\x1b[31\nb", "a31\nb", "1 control character"},
		{"lone escape", "a\x1bcb", "acb", "1 control character"},
		{"bidi", "a\u202eb\u2066c", "abc", "2 bidi controls"},
		{"zero width", "a\u200bb\ufeffc", "abc", "2 zero-width characters"},
		{"tags", "a\U000e0041\U000e0042b", "ab", "2 tag characters"},
		{"private use", "a\ue000b", "ab", "1 private-use character"},
		{"soft hyphen", "a\u00adb", "ab", "1 invisible character"},
		{"selectors in a run", "☺\ufe0f\ufe0f\ufe0fx", "☺\ufe0fx", "2 invisible characters"},
		{"a selector behind a letter", "a\ufe0fb", "ab", "1 invisible character"},
		{"other selectors", "☺\U000e0100", "☺", "1 invisible character"},
		{"line breaks", "a\r\nb\rc\u2028d", "a\nb\nc\nd", ""},
		{"next line", "a\u0085b\u2029c", "a\nb\nc", ""},
		{"text selector", "☺\ufe0ex", "☺\ufe0ex", ""},
		{"delete", "~\x7fa", "~a", "1 control character"},
		{"spaces", "a\u00a0b\u3000c", "a b c", ""},
		{"composed", "e\u0301", "é", ""},
		{"composed across what is taken out", "e\u200b\u0301", "é", "1 zero-width character"},
		{"marks", "e" + strings.Repeat("\u0301", 40), "é\u0301\u0301\u0301", "36 combining marks"},
		{"marks that are two", "e" + strings.Repeat("\u0344", 4), "ë\u0301\u0308\u0301\u0308", "3 combining marks"},
		{"NUL", "a\x00b", "ab", "1 control character"},
		{"a sequence that hides in another", "\x1b\x1b[31m[32mx", "[32mx", "2 control characters"},
	} {
		got := Strip(c.text)
		if got.Text != c.want || got.Words() != c.words || got.Any() != (c.words != "") {
			t.Errorf("%s: %+q (%s), expected %+q (%s)", c.name, got.Text, got.Words(), c.want, c.words)
		}
	}
}

// hostile generates texts that contain control sequences and hidden characters.
func hostile() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			"\x1b[", "\x1b]", "\x1b", "\x07", "\u009b", "31m", "\u202e", "\u200b", "\U000e0041", "\ufe0f", "\u0301",
			"☺", "e", "\r\n", "\r", "\ue000", "\u1100", "\u1161", "\u0340", "\u2126",
			"\u0344\u0344\u0344\u0344", strings.Repeat("\u0323\u0301", 20), "\u034f",
		}),
	)
	return rapid.Map(rapid.SliceOf(part), func(parts []string) string {
		return strings.ToValidUTF8(strings.Join(parts, ""), "")
	})
}

// Nothing hidden is left, and Strip is idempotent.
func TestStripProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkStrip(t, hostile().Draw(t, "text")) })
}

func checkStrip(t interface{ Fatalf(string, ...any) }, text string) {
	got := Strip(text)
	again := Strip(got.Text)
	if again.Text != got.Text || again.Any() {
		t.Fatalf("%+q became %+q, and then %+q", text, got.Text, again.Text)
	}
	if !norm.NFC.IsNormalString(got.Text) {
		t.Fatalf("%+q is not in NFC", got.Text)
	}
	last := rune(0)
	for _, r := range got.Text {
		selector := r == 0xfe0e || r == 0xfe0f
		if Hidden(r) && r != '\n' && r != '\t' && (!selector || last == r || last == 0) {
			t.Fatalf("%+q still holds %U", got.Text, r)
		}
		last = r
	}
}

func FuzzStrip(f *testing.F) {
	f.Add("a\x1b[31m\u202e\u200b\U000e0041")
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			checkStrip(t, text)
		}
	})
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"delete_file", "Delete_File", true},
		{"delete_file", "dеlete_file", true}, // the second letter is Cyrillic
		{"ｄｅｌｅｔｅ", "delete", true},
		{"K", "\u212a", true},
		{"delete_file", "delete-file", false},
		{"größe", "GRÖSSE", false},
		{"größe", "gro\u0308ße", true},
	} {
		if same := Fold(c.a) == Fold(c.b); same != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, same)
		}
	}
}
