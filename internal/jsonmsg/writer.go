package jsonmsg

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/value"
)

// Limits returns the limits of a message: 64 MiB and 128 levels. They are larger than those of
// a call's arguments, because a thread may contain pictures.
func Limits() value.Limits { return value.Limits{MaxBytes: 64 << 20, MaxDepth: 128} }

// A Writer appends one value to Text. It inserts commas, and records its first error, so that
// code can write all members without checking errors in between.
type Writer struct {
	Text []byte

	start   int    // of the value in Text
	member  string // the last name
	checker Checker
	err     error
}

// Append returns a writer that appends to dst.
func Append(dst []byte) *Writer { return &Writer{Text: dst, start: len(dst)} }

// Object returns an object whose members fill writes.
func Object(fill func(*Writer)) ([]byte, error) {
	var w Writer
	w.Object(fill)
	return w.Text, w.err
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// Fail records the first error that is not nil.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) refuse(expected string) { w.Fail(&Error{Path: w.member, Expected: expected}) }

// separate writes a comma if a member or an element precedes.
func (w *Writer) separate() {
	if len(w.Text) == w.start {
		return
	}
	switch w.Text[len(w.Text)-1] {
	case '{', '[', ':':
	default:
		w.Text = append(w.Text, ',')
	}
}

// Open writes the opening bracket of an object or an array.
func (w *Writer) Open(bracket byte) {
	w.separate()
	w.Text = append(w.Text, bracket)
}

// Close writes the closing bracket of an object or an array.
func (w *Writer) Close(bracket byte) { w.Text = append(w.Text, bracket) }

// Object writes an object whose members fill writes.
func (w *Writer) Object(fill func(*Writer)) {
	w.Open('{')
	fill(w)
	w.Close('}')
}

// List writes an array of n elements.
func (w *Writer) List(n int, element func(w *Writer, i int)) {
	w.Open('[')
	for i := range n {
		element(w, i)
	}
	w.Close(']')
}

// Name writes the name of a member. The value must be written next.
func (w *Writer) Name(name string) *Writer {
	w.member = name
	w.String(name)
	w.Text = append(w.Text, ':')
	return w
}

// Member writes a member with a string.
func (w *Writer) Member(name, s string) { w.Name(name).String(s) }

// Optional writes a member with a string, unless it is empty.
func (w *Writer) Optional(name, s string) {
	if s != "" {
		w.Member(name, s)
	}
}

// String writes a string, which must be valid UTF-8: if it were repaired, it could mean
// something else.
func (w *Writer) String(s string) {
	w.separate()
	var err error
	if w.Text, err = jsontext.AppendQuote(w.Text, s); err != nil {
		w.Fail(&Error{Path: w.member, Expected: "UTF-8", Err: notUTF8()})
	}
}

func notUTF8() error {
	return &value.Error{Code: value.InvalidUTF8, Offset: -1, Detail: "expected UTF-8"}
}

// Strings writes an array of strings.
func (w *Writer) Strings(all []string) {
	w.List(len(all), func(w *Writer, i int) { w.String(all[i]) })
}

// Bool writes true or false.
func (w *Writer) Bool(is bool) {
	w.separate()
	w.Text = strconv.AppendBool(w.Text, is)
}

// Int writes a whole number.
func (w *Writer) Int(n int64) {
	w.separate()
	w.Text = strconv.AppendInt(w.Text, n, 10)
}

// Float writes a number. NaN and infinities are errors.
func (w *Writer) Float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.refuse("a number that JSON has")
		f = 0
	}
	w.separate()
	w.Text = strconv.AppendFloat(w.Text, f, 'g', -1, 64)
}

// Value writes the result of Marshal.
func (w *Writer) Value(v any) {
	text, err := Marshal(v)
	if err != nil {
		w.Fail(err)
		text = []byte("null")
	}
	w.Verbatim(text)
}

// Raw writes the text of a value byte for byte. The text is checked, so that it can't close an
// object and add members after it.
func (w *Writer) Raw(raw []byte) {
	if _, err := w.checker.Check(raw, Limits()); err != nil {
		w.Fail(&Error{Path: w.member, Expected: "JSON", Err: err})
		raw = []byte("null")
	}

	w.Verbatim(raw)
}

// Verbatim is like Raw, for a checked text.
func (w *Writer) Verbatim(raw []byte) {
	w.separate()
	w.Text = append(w.Text, raw...)
}

// Elements writes an array of checked texts.
func (w *Writer) Elements(all [][]byte) {
	w.List(len(all), func(w *Writer, i int) { w.Verbatim(all[i]) })
}

// Splice writes the members of a checked object.
func (w *Writer) Splice(object []byte) {
	if all := Members(object); len(all) > 0 {
		w.Verbatim(object[all[0].all.From:all[len(all)-1].all.To])
	}
}

// AppendString appends a string. Each byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // it repairs what it returns an error for
	return dst
}

// Error describes what is wrong with a message, and where. It contains names of members, but
// never values.
type Error struct {
	Path     string // such as "choices[2].name"; empty for the message as a whole
	Expected string // description of the expected value
	Found    string // "a number", "nothing"; may be empty
	Err      error  // the *value.Error of a text that is not valid; may be nil
}

// Detail returns the error without its path.
func (e *Error) Detail() string {
	if e.Found == "" {
		return "expected " + e.Expected
	}
	return fmt.Sprintf("expected %s, found %s", e.Expected, e.Found)
}

// Error returns the path and the detail.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Detail()
	}
	return e.Path + ": " + e.Detail()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Problem returns the *Error in err, or nil.
func Problem(err error) *Error {
	var problem *Error
	errors.As(err, &problem)
	return problem
}
