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

// Terminal makes a text safe for a terminal that may hold text escaped
// before: only what is not drawn is spelled out, and line breaks stay.
// Unlike Escape it can be applied again.
func Terminal(text string) string {
	return rewrite(text, func(r rune, raw string) string {
		if r == '\n' {
			return raw
		}
		return string(run{raw, r, 1}.appendEscape(nil))
	})
}

// TerminalLine is Terminal with line breaks spelled out.
func TerminalLine(text string) string { return strings.ReplaceAll(Terminal(text), "\n", `\u{a}`) }

// JSON writes what is not drawn in a JSON text as JSON's own escapes. Such
// characters stand in strings only, so the document stays the same.
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

// Printable makes a text of a file safe to show in a diagnostic. Line
// feeds and tabs are \n and \t there, a byte that is not UTF-8 is \x80,
// and any space is a space.
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

// Characters goes through a text as Printable shows it: each character,
// or byte that is none, with what stands for it.
func Characters(text string) iter.Seq2[string, string] { return rewritten(text, printable) }

// rewritten replaces every character that may not be drawn where it stands.
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

// Width is the number of terminal cells that a character takes which is
// drawn as it is.
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
