package condition

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func newCompiled(t fataler, text string, sem Semantics) *pattern {
	t.Helper()
	p, err := newPattern(text, sem)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p.compile()
	return p
}

// shortPatterns draws patterns, many of which are literals with anchors.
func shortPatterns() *rapid.Generator[string] {
	word := rapid.SampledFrom(
		[]string{
			"a",
			"b",
			"ab",
			"ba",
			"é",
			"[ab]",
			"(a|b)",
			"a|ab",
			"(?i:a)",
			"(?i:k)",
			"a?",
			"a*",
			".*",
			"(?s:.*)",
			"(?s:.)*?",
			" ",
			`\Q.\E`,
			"",
			"^",
			"$",
			"(?:ab){2}",
		},
	)
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(word, 1, 3).Draw(t, "parts")
		return rapid.SampledFrom([]string{"", "^"}).Draw(t, "begin") +
			strings.Join(parts, "") + rapid.SampledFrom([]string{"", "$"}).Draw(t, "end")
	})
}

// reference evaluates a pattern without any optimization.
func reference(t fataler, text string, sem Semantics, s string) bool {
	t.Helper()
	re, err := regexp.Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if sem.Anchor == Full {
		re.Longest()
	}
	found := func(s string) bool {
		at := re.FindStringIndex(s)
		return at != nil && (sem.Anchor == Unanchored || at[0] == 0 && at[1] == len(s))
	}
	return found(s) || sem.Trim == RawAndTrimmed && found(strings.TrimRightFunc(s, unicode.IsSpace))
}

func TestPatternsMeanWhatRegexpSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, sem := rapid.OneOf(shortPatterns(), regexes()).Draw(t, "pattern"), semantics().Draw(t, "semantics")
		p := newCompiled(t, text, sem)
		for range 5 {
			s := rapid.StringOfN(rapid.SampledFrom([]rune("abABkKK\u212aé. \n\u00a0")), 0, 5, -1).Draw(t, "text")
			if got, want := p.holds(s), reference(t, text, sem, s); got != want {
				t.Fatalf("%q in %q: %v, want %v (%+v)", text, s, got, want, sem)
			}
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("^(a|b)$", "a\n")
	f.Add(`(?i)dr[o0]p\s+table\b`, "DROP  TABLE ")
	f.Add(`\Qa|`, "a|")
	f.Fuzz(func(t *testing.T, text, s string) {
		for _, sem := range []Semantics{{}, {Trim: RawOnly}, {Anchor: Full}} {
			p, err := newPattern(text, sem)
			if err != nil {
				continue
			}
			p.compile()
			if got := p.holds(s); strings.ToValidUTF8(s, "") == s && got != reference(t, text, sem, s) {
				t.Errorf("%q in %q with %+v: %v", text, s, sem, got)
			}
		}
	})
}

// The anchors add two levels of nesting, which is too much for a pattern at the limit. Such a
// pattern asks.
func TestDeepestPatternsAskWhenAnchored(t *testing.T) {
	deepest := ""
	for depth := 900; depth < 1100; depth++ {
		text := strings.Repeat("(", depth/2) + "a*" + strings.Repeat(")*", depth/2)
		if _, err := newPattern(text, Semantics{}); err == nil {
			deepest = text
		}
	}

	e := sound(t, match("a: {pattern: '"+deepest+"'}"))
	if truth, _ := eval(t, ToolArgs, Semantics{}, e, `{"a":"b"}`); truth != True {
		t.Errorf("unanchored: %v", truth)
	}
	if truth, _ := eval(t, ToolArgs, Semantics{Anchor: Full}, e, `{"a":"b"}`); truth != Unknown {
		t.Errorf("anchored: %v", truth)
	}
}
