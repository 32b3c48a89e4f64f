package safetext

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Terminal makes a text safe for a terminal. The text may contain text that was escaped before:
// only characters that must not be drawn are escaped, and line breaks stay. Unlike Escape it is
// idempotent.
func Terminal(text string) string {
	return rewrite(text, func(r rune, raw string) string {
		if r == '\n' {
			return raw
		}
		return string(run{raw, r, 1}.appendEscape(nil))
	})
}

// TerminalLine is like Terminal, but escapes line breaks.
func TerminalLine(text string) string { return strings.ReplaceAll(Terminal(text), "\n", `\u{a}`) }

// JSON replaces hidden characters in a JSON text by JSON escapes. Such characters occur only in
// strings, so the content of the document does not change.
func JSON(text string) string {
	return rewrite(text, func(r rune, raw string) string {
		if r == '\n' {
			return raw
		}
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// Printable makes a text of a file safe to show in a diagnostic. Line feeds and tabs become \n
// and \t, a byte that is not UTF-8 becomes \x80, and every kind of space is unchanged.
func Printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s
	}

	return rewrite(s, printable)
}

func printable(r rune, raw string) string {
	switch {
	case broken(r, len(raw)):
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case Classify(r) == Space:
		return raw
	}

	return fmt.Sprintf(`\u{%x}`, r)
}

// Characters iterates over a text as Printable shows it: each character, or invalid byte, with
// its replacement.
func Characters(text string) iter.Seq2[string, string] { return rewritten(text, printable) }

// rewritten replaces every character that must not be drawn in its position.
func rewritten(text string, with func(r rune, raw string) string) iter.Seq2[string, string] {
	return func(yield func(raw, shown string) bool) {
		var following marks
		for len(text) > 0 {
			r, size := utf8.DecodeRuneInString(text)
			raw := text[:size]
			shown := raw
			if broken(r, size) || !following.draws(r, 1) {
				shown = with(r, raw)
				following = 0
			}
			if !yield(raw, shown) {
				return
			}
			text = text[size:]
		}
	}
}

func rewrite(text string, with func(r rune, raw string) string) string {
	var out strings.Builder
	for _, shown := range rewritten(text, with) {
		out.WriteString(shown)
	}

	return out.String()
}

// Width returns the number of terminal cells of a character that is drawn unchanged.
func Width(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}

	return 1
}
