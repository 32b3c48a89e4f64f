// Package safetext makes text from other sources safe to display on every channel: lines of
// plain text, terminals, pages and Slack. Such text may contain characters that are invisible,
// control a terminal, reorder or cover the surrounding text, or look like other characters.
//
// Classify is the only function that decides what a character is. The channels differ only in
// how they write characters that must not be drawn: Escape for a line of plain text, Terminal
// for text that was escaped before, Printable for a diagnostic, JSON for a document, Slack for
// Slack messages, and Inspect for a page. None of them drops a character, and each reports how
// much a cut left out. Two different texts never look the same.
package safetext

import (
	"unicode"
	"unicode/utf8"
)

// Class says how a character may be drawn.
type Class uint8

// The classes. Those from Space on are hidden: they are never drawn.
const (
	Visible   Class = iota
	Mark            // a combining mark, drawn only after a letter
	Overlay         // a combining mark that strikes out, encloses or spans letters
	Space           // any space except the ASCII one
	Bidi            // reorders the text around it
	Tag             // of the block of invisible tag characters
	Control         // acts on a terminal, or starts a line
	Private         // private use: its appearance depends on the font
	ZeroWidth       // a joiner, or another character without width
	Invisible       // draws nothing, or is not assigned by Unicode
)

// Hidden reports whether characters of the class are escaped in any context.
func (c Class) Hidden() bool { return c >= Space }

// Hidden reports whether a character is escaped in any context.
func Hidden(r rune) bool { return Classify(r).Hidden() }

// Classify returns the class of a character. The assigned characters are those of the Go
// release's Unicode version; newer ones are Invisible.
func Classify(r rune) Class {
	switch {
	case r >= ' ' && r <= '~':
		return Visible
	case !unicode.IsPrint(r):
		return unprintable(r)
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
		unicode.Is(unicode.Variation_Selector, r),
		blank(r):
		return Invisible
	case !unicode.Is(unicode.M, r):
		return Visible
	case overlays(r):
		return Overlay
	}

	return Mark
}

func unprintable(r rune) Class {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c:
		return Bidi
	case r >= tagBase && r <= tagBase+0x7f:
		return Tag
	case unicode.Is(unicode.Cc, r):
		return Control
	case unicode.Is(unicode.Zs, r):
		return Space
	case unicode.Is(unicode.Co, r):
		return Private
	case r == 0x200b, r == 0x200c, r == 0x200d, r == 0x2060, r == 0xfeff:
		return ZeroWidth
	}

	return Invisible
}

// tagBase is the tag character for NUL; the others follow in ASCII order.
const tagBase = 0xe0000

// blank reports characters that Unicode classifies as symbols or letters but fonts draw as
// nothing.
func blank(r rune) bool {
	switch r {
	case '\u2800', // braille pattern without dots
		'\ufffc',                   // placeholder of an object
		'\U00013441', '\U00013442', // hieroglyphs "full blank" and "half blank"
		'\U00016fe4', // Khitan filler
		'\U0001d159': // musical null notehead
		return true
	}

	return false
}

// overlays reports whether a mark strikes out, encloses or spans letters.
func overlays(r rune) bool {
	return r >= 0x334 && r <= 0x338 || r >= 0x35c && r <= 0x362 || r >= 0x20d0 && r <= 0x20ff ||
		unicode.Is(unicode.Me, r)
}

// RightToLeft reports whether a character is in a block that Unicode reserves for right-to-left
// scripts: the default ranges of the classes R and AL in DerivedBidiClass.txt. That includes
// letters of later Unicode versions.
func RightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// broken reports whether a decoded rune represents a byte that is not UTF-8.
func broken(r rune, width int) bool { return r == utf8.RuneError && width == 1 }

// maxMarks limits the combining marks after one letter.
const maxMarks = 4

// marks is the number of combining marks that may still be drawn while a text is processed. It
// is zero if no letter precedes.
type marks int

// draws reports whether n repetitions of the character r may be drawn here, and updates m.
func (m *marks) draws(r rune, n int) bool {
	switch class := Classify(r); {
	case class == Mark && n <= int(*m):
		*m -= marks(n)
		return true
	case class == Visible && unicode.IsLetter(r):
		*m = maxMarks
	default:
		*m = 0
		return class == Visible
	}

	return true
}
