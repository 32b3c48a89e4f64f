package jsonmsg

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/value"
)

// Limits bounds a message: 64 MiB and 128 levels. A thread with
// pictures in it is larger than the arguments of a call.
func Limits() value.Limits { return value.Limits{MaxBytes: 64 << 20, MaxDepth: 128} }

// A Writer writes one value, whose text it appends to Text. Commas are
// its own matter. It keeps its first error and goes on, so that what
// writes a message reads like the message.
type Writer struct {
	Text []byte

	start   int    // of the value in Text
	member  string // that was named last
	checker Checker
	err     error
}

// Append returns a writer that appends to dst.
func Append(dst []byte) *Writer { return &Writer{Text: dst, start: len(dst)} }

// Object writes a whole object.
func Object(fill func(*Writer)) ([]byte, error) {
	var w Writer
	w.Object(fill)
	return w.Text, w.err
}

// Err is the first thing that went wrong.
func (w *Writer) Err() error { return w.err }

// Fail keeps the first error that is not nil.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) refuse(expected string) { w.Fail(&Error{Path: w.member, Expected: expected}) }

// separate puts a comma behind a member or an element.
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

// Open begins an object or an array with its bracket.
func (w *Writer) Open(bracket byte) {
	w.separate()
	w.Text = append(w.Text, bracket)
}

// Close ends an object or an array with its bracket.
func (w *Writer) Close(bracket byte) { w.Text = append(w.Text, bracket) }

// Object writes an object whose members are written by fill.
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

// Name begins a member, whose value is written next.
func (w *Writer) Name(name string) *Writer {
	w.member = name
	w.String(name)
	w.Text = append(w.Text, ':')
	return w
}

// Member writes a member that is a string.
func (w *Writer) Member(name, s string) { w.Name(name).String(s) }

// Optional writes a member that is a string, unless it is empty.
func (w *Writer) Optional(name, s string) {
	if s != "" {
		w.Member(name, s)
	}
}

// String writes a string, which must be UTF-8: mended, it could name
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

// Float writes a number that JSON has.
func (w *Writer) Float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.refuse("a number that JSON has")
		f = 0
	}
	w.separate()
	w.Text = strconv.AppendFloat(w.Text, f, 'g', -1, 64)
}

// Value writes what Marshal makes of a Go value.
func (w *Writer) Value(v any) {
	text, err := Marshal(v)
	if err != nil {
		w.Fail(err)
		text = []byte("null")
	}
	w.Verbatim(text)
}

// Raw writes the text of a value byte for byte. It is checked, so that
// no text can close an object and go on behind it.
func (w *Writer) Raw(raw []byte) {
	if _, err := w.checker.Check(raw, Limits()); err != nil {
		w.Fail(&Error{Path: w.member, Expected: "JSON", Err: err})
		raw = []byte("null")
	}

	w.Verbatim(raw)
}

// Verbatim is Raw for a text that was checked.
func (w *Writer) Verbatim(raw []byte) {
	w.separate()
	w.Text = append(w.Text, raw...)
}

// Elements writes an array of texts that were checked.
func (w *Writer) Elements(all [][]byte) {
	w.List(len(all), func(w *Writer, i int) { w.Verbatim(all[i]) })
}

// Splice writes the members of an object that was checked.
func (w *Writer) Splice(object []byte) {
	if all := Members(object); len(all) > 0 {
		w.Verbatim(object[all[0].all.From:all[len(all)-1].all.To])
	}
}

// AppendString appends a string. Each byte that is no UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // it mends what it complains about
	return dst
}

// Error says what is wrong with a message and where. It names members,
// never values.
type Error struct {
	Path     string // "choices[2].name"; "" for the message as a whole
	Expected string // in words
	Found    string // "a number", "nothing"; "" where that is not what is wrong
	Err      error  // the *value.Error of a text that is not sound, nil else
}

// Detail is the error without its path.
func (e *Error) Detail() string {
	if e.Found == "" {
		return "expected " + e.Expected
	}
	return fmt.Sprintf("expected %s, found %s", e.Expected, e.Found)
}

// Error puts the path before the sentence.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Detail()
	}
	return e.Path + ": " + e.Detail()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Problem returns the *Error in err, nil when there is none.
func Problem(err error) *Error {
	var problem *Error
	errors.As(err, &problem)
	return problem
}
