package value

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrorCode classifies an error. The values are stable.
type ErrorCode string

// Codes of errors.
const (
	Syntax          ErrorCode = "syntax"           // not JSON
	DuplicateKey    ErrorCode = "duplicate-key"    // an object has a key twice
	FoldedKey       ErrorCode = "folded-key"       // two keys of one object differ only in case, see Limits.FoldKeys
	InvalidUTF8     ErrorCode = "invalid-utf8"     // bytes that are not UTF-8
	LoneSurrogate   ErrorCode = "lone-surrogate"   // half of a \uD83D\uDE00 pair
	TrailingData    ErrorCode = "trailing-data"    // text after the value
	TooDeep         ErrorCode = "too-deep"         // exceeds Limits.MaxDepth
	TooLarge        ErrorCode = "too-large"        // exceeds Limits.MaxBytes or Limits.MaxValues
	NumberRange     ErrorCode = "number-range"     // not near any double, so readers would differ
	UnsupportedType ErrorCode = "unsupported-type" // a Go value that has no JSON form
)

// Error describes why a document is refused, and where. It quotes keys, but never values.
type Error struct {
	Code   ErrorCode
	Offset int    // in bytes from the start of the text, -1 for Go values
	Line   int    // from 1, 0 for Go values
	Column int    // from 1, in code points, 0 for Go values
	Path   string // path in a Go value, such as order.items.3; empty at its top and for texts
	Detail string // what was found and what was expected
}

// Error returns the position and the detail.
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

// goError returns an error for a Go value, which has a path (see at) but no position.
func goError(code ErrorCode, detail string) *Error {
	return &Error{Code: code, Offset: -1, Detail: detail}
}

// at prepends a segment to the path of an error from an element or a member. TooLarge errors
// concern the whole value and have no path.
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

// position converts a byte offset to a line and a column, both from 1, with columns in code
// points.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// quote quotes a key on one line, without control or direction characters, and shortens it.
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
