package value

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file builds the texts of errors. None of it runs for valid documents.

// found describes the character at text[offset:].
func found(text string, offset int) string {
	if offset >= len(text) {
		return "the end of the text"
	}
	r, size := utf8.DecodeRuneInString(text[offset:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte 0x%02x", text[offset])
	}
	return strconv.QuoteRune(r)
}

func (p *scanner) failValue(i int) int {
	return p.fail(
		Syntax,
		i,
		"expected a value, found "+found(p.text, i)+valueHint(p.text[min(i, len(p.text)):]),
	)
}

func (p *scanner) failNumber(i int, fault ErrorCode) int {
	return p.fail(fault, i, numError(p.text, i, fault).Detail+wordHint(p.text[i:]))
}

// wordHint returns a hint for keywords of other languages.
func wordHint(rest string) string {
	word := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
	switch word {
	case "NaN", "Infinity", "Inf", "inf", "nan":
		return ": JSON has no " + word + ", write a string or null"
	case "True", "False", "None", "TRUE", "FALSE", "NULL", "Null", "nil", "undefined":
		return ": JSON writes true, false and null"
	}

	return ""
}

// valueHint returns a hint for a text that can't begin a value.
func valueHint(rest string) string {
	switch {
	case strings.HasPrefix(rest, "'"):
		return ": strings stand in double quotes"
	case strings.HasPrefix(rest, "/"), strings.HasPrefix(rest, "#"):
		return ": JSON has no comments"
	case strings.HasPrefix(rest, "\ufeff"):
		return ": leave the byte order mark out"
	case strings.HasPrefix(rest, "+"), strings.HasPrefix(rest, "."):
		return ": numbers begin with a digit or -"
	case strings.HasPrefix(rest, "]"), strings.HasPrefix(rest, "}"):
		return ": no comma stands before a closing bracket"
	}

	return wordHint(rest)
}

func (p *scanner) failKey(i int) int {
	hint := ""
	if i < len(p.text) && p.text[i] == '}' {
		hint = ": no comma stands before a closing bracket"
	}
	return p.fail(Syntax, i, "expected a key in double quotes, found "+found(p.text, i)+hint)
}

func (p *scanner) failDepth(i int) int { return p.fail(TooDeep, i, overDepth(p.lim)) }

func overDepth(l Limits) string {
	return fmt.Sprintf("arrays and objects are nested deeper than %d levels", l.MaxDepth)
}

func overBytes(size int, l Limits) string {
	return fmt.Sprintf("%d bytes, at most %d are read", size, l.MaxBytes)
}

func overValues(values int, l Limits) string {
	return fmt.Sprintf("%d values, at most %d are read", values, l.MaxValues)
}
