package value

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrorCode tells what is wrong with a document. The names are stable.
type ErrorCode string

// The codes of an Error.
const (
	Syntax          ErrorCode = "syntax"           // not JSON
	DuplicateKey    ErrorCode = "duplicate-key"    // a key stands twice in one object
	FoldedKey       ErrorCode = "folded-key"       // two keys of one object differ in case alone, see Limits.FoldKeys
	InvalidUTF8     ErrorCode = "invalid-utf8"     // bytes that are no UTF-8
	LoneSurrogate   ErrorCode = "lone-surrogate"   // half of a \uD83D\uDE00 pair
	TrailingData    ErrorCode = "trailing-data"    // text after the value
	TooDeep         ErrorCode = "too-deep"         // over Limits.MaxDepth
	TooLarge        ErrorCode = "too-large"        // over Limits.MaxBytes
	NumberRange     ErrorCode = "number-range"     // no double comes near it: readers would differ
	UnsupportedType ErrorCode = "unsupported-type" // a Go value that is no JSON
)

// Error says why a document is refused and where. It names keys, never
// values.
type Error struct {
	Code   ErrorCode
	Offset int    // in bytes from the start of the text, -1 for Go values
	Line   int    // from 1, 0 for Go values
	Column int    // from 1, in code points, 0 for Go values
	Path   string // where in a Go value, such as order.items.3, "" at its top and for texts
	Detail string // what was found and what was expected
}

// Error puts the place before the sentence.
func (e *Error) Error() string {
	where := ""
	if e.Path != "" {
		where = "at " + e.Path + ": "
	}
	if e.Line > 0 {
		where += fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	return where + e.Detail
}

func newError(src []byte, code ErrorCode, offset int, detail string) *Error {
	line, column := position(src, offset)
	return &Error{
		Code:   code,
		Offset: offset,
		Line:   line,
		Column: column,
		Detail: detail,
	}
}

// goError is the error of a Go value, which has a path (see at) but no text.
func goError(code ErrorCode, detail string) *Error {
	return &Error{Code: code, Offset: -1, Detail: detail}
}

// at adds the outer segment of the path to an error that comes up from
// an element or a member. What is too large is so as a whole.
func (e *Error) at(segment string) *Error {
	if e.Code == TooLarge {
		return e
	}
	segment = shorten(segment)
	if quoted := strconv.Quote(segment); segment == "" || quoted[1:len(quoted)-1] != segment {
		segment = quoted
	}
	if e.Path != "" {
		segment += "." + e.Path
	}
	e.Path = segment
	return e
}

// position turns a byte offset into a line and a column, both from 1,
// columns in code points.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// quote shows a key on one line, without control or direction
// characters, and not at length.
func quote(key string) string { return strconv.Quote(shorten(key)) }

const maxShown = 64

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
