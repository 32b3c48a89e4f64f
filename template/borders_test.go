package template

import (
	"regexp"
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

// TestE3_TheRangesOfCharactersEndWhereUnicodeSays: each predicate, for every character there is.
func TestE3_TheRangesOfCharactersEndWhereUnicodeSays(t *testing.T) {
	for name, tt := range map[string]struct {
		is   func(rune) bool
		want borders
	}{
		"right to left": {rightToLeft, borders{0x590, 0x8ff, 0xfb1d, 0xfdff, 0xfe70, 0xfeff, 0x10800, 0x10fff, 0x1e800, 0x1efff}},
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

// TestE3_EveryRightToLeftLetterIsIsolated, whatever its script.
func TestE3_EveryRightToLeftLetterIsIsolated(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		properties, size := bidi.LookupRune(r)
		class := properties.Class()
		if size == 0 || class != bidi.R && class != bidi.AL || hidden(r) {
			continue
		}
		if shown, _ := show(raw{text: string(r)}, 9); shown != isolate+string(r)+popIsolate {
			t.Errorf("%U is shown as %+q", r, shown)
		}
	}
}

// TestE3_RunsAreEscapedFromTheirBoundOn, wherever they stand, beside ASCII and beside other letters.
func TestE3_RunsAreEscapedFromTheirBoundOn(t *testing.T) {
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

// TestE3_IdentifiersAreOfASCII: letters, digits behind the first character, and underscores.
func TestE3_IdentifiersAreOfASCII(t *testing.T) {
	identifier := regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)
	for c := range 256 {
		for _, name := range []string{string([]byte{byte(c)}), string([]byte{'a', byte(c)}), string([]byte{byte(c), 'a'})} {
			if isIdentifier(name) != identifier.MatchString(name) {
				t.Errorf("%q is an identifier: %v", name, isIdentifier(name))
			}
		}
	}
}

// TestE3_EveryRuleIsDescribed that a template can break.
func TestE3_EveryRuleIsDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, r := range Rules() {
		described[r.ID] = true
	}
	seen := map[string]bool{}
	for _, text := range []string{"", strings.Repeat("x", MaxLength+1), "{{#a}}", "{{{a}}}", "{{a", "{{}}", "{{a b}}", "\u202e"} {
		_, problems := Parse(text)
		for _, p := range problems {
			if seen[p.Code] = true; !described[p.Code] {
				t.Errorf("%.20q: %s is no rule", text, p.Code)
			}
		}
	}
	if len(seen) != len(described) {
		t.Errorf("seen %v, described %v", seen, described)
	}
}
