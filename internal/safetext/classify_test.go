package safetext

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/bidi"
)

// borders are the first and last characters of ranges, in pairs.
type borders []rune

func (b borders) has(r rune) bool {
	for i := 0; i < len(b); i += 2 {
		if b[i] <= r && r <= b[i+1] {
			return true
		}
	}
	return false
}

// Each predicate is checked for every character.
func TestTheRangesOfCharactersEndWhereUnicodeSays(t *testing.T) {
	for name, tt := range map[string]struct {
		is   func(rune) bool
		want borders
	}{
		"right to left": {
			RightToLeft,
			borders{0x590, 0x8ff, 0xfb1d, 0xfdff, 0xfe70, 0xfeff, 0x10800, 0x10fff, 0x1e800, 0x1efff},
		},
		"overlays": {overlays, borders{
			0x334, 0x338, 0x35c, 0x362, 0x20d0, 0x20ff, // across letters, double, for symbols
			0x488, 0x489, 0x1abe, 0x1abe, 0xa670, 0xa672, // enclosing, in other blocks
		}},
		"blank": {blank, borders{0x2800, 0x2800, 0xfffc, 0xfffc, 0x13441, 0x13442, 0x16fe4, 0x16fe4, 0x1d159, 0x1d159}},
	} {
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if tt.is(r) != tt.want.has(r) {
				t.Errorf("%s: %U is %v", name, r, tt.is(r))
			}
		}
	}
}

// Right-to-left letters of every script are isolated.
func TestEveryRightToLeftLetterIsIsolated(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		properties, size := bidi.LookupRune(r)
		class := properties.Class()
		if size == 0 || class != bidi.R && class != bidi.AL || Hidden(r) {
			continue
		}
		if shown, _ := (Value{Text: string(r)}).Show(9); shown != Isolate+string(r)+PopIsolate {
			t.Errorf("%U is shown as %+q", r, shown)
		}
	}
}

// Long runs are escaped in every position, next to ASCII and other letters.
func TestRunsAreEscapedFromTheirBoundOn(t *testing.T) {
	spaces := func(n int) string { return strings.Repeat(" ", n) }
	for _, beside := range []string{"", "a", "東"} {
		for _, text := range []string{spaces(8) + beside, beside + spaces(8), beside + spaces(8) + beside} {
			if got := Escape(text); got != text {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
		for _, text := range []string{spaces(9) + beside, beside + spaces(9), beside + spaces(9) + beside} {
			if got, want := Escape(text), strings.ReplaceAll(text, spaces(9), `\u{20*9}`); got != want {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
}

// All channels escape the same characters, both after a letter and after a digit. Ideographs
// and planes without characters are not tested.
func TestEveryChannelSpellsOutTheSameCharacters(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if r >= 0x3400 && r < 0xa000 || r >= 0xac00 && r < 0xd7a4 || r >= 0x17000 && r < 0x1d000 ||
			r >= 0x20000 && r < 0xe0000 || r > 0xe0200 {
			continue
		}
		if r == '\n' || r == '\t' || r == '\\' || r == '"' || r >= 0xd800 && r <= 0xdfff {
			continue // have a special spelling in some channels, or are not characters
		}
		for _, before := range []string{"a", "1"} {
			text := before + string(r)
			raw := func(shown string) bool { return strings.ContainsRune(shown, r) }
			want := raw(Escape(text))
			channels := map[string]bool{
				"terminal":          raw(Terminal(text)),
				"JSON":              raw(JSON(text)),
				"Slack":             raw(Slack(text)) || r == '<' || r == '>',
				"message in Slack":  raw(SlackMessage(text)) || r == '<' || r == '>',
				"page":              raw(drawn(Inspect(text, Form{}))),
				"message on a page": raw(drawn(Inspect(text, Form{Block: true}))),
			}
			if Classify(r) != Space {
				channels["diagnostic"] = raw(Printable(text))
			}
			for name, got := range channels {
				if strings.ContainsRune(Isolate+PopIsolate, r) && strings.Contains(name, "Slack") {
					continue // our own isolates
				}
				if got != want {
					t.Errorf("%s: %U behind %q is drawn: %v, in a line it is: %v", name, r, before, got, want)
				}
			}
		}
	}
}

// drawn returns a page's rendering of a text, without the notes.
func drawn(s Shown) string {
	var b strings.Builder
	for _, p := range s.Pieces {
		if p.Class != PieceNote {
			b.WriteString(p.Text)
		}
	}

	return b.String()
}
