package jsonmsg

import (
	"bytes"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is where a value stands in a text. The zero Span is no value.
type Span struct{ From, To int32 }

// Exists reports whether there is a value.
func (s Span) Exists() bool { return s.To != 0 }

// A Cursor walks once over a text that was checked.
type Cursor struct {
	src    []byte
	text   string // the same
	base   int    // where the decoder began
	source bytes.Buffer
	dec    jsontext.Decoder
}

// NewCursor returns a cursor before the first value of a checked text.
// What it yields shares text, and src is only looked at.
func NewCursor(src []byte, text string) *Cursor {
	c := &Cursor{src: src, text: text}
	c.Start(0)
	return c
}

// Start puts the cursor before the value that stands at an offset of
// its text.
func (c *Cursor) Start(at int) {
	c.base = at
	c.source = *bytes.NewBuffer(c.src[at:])
	// Check has refused what these would let through.
	c.dec.Reset(&c.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Next is where the next value begins.
func (c *Cursor) Next() int {
	i := skipSpace(c.text, c.End())
	if i < len(c.text) && (c.text[i] == ',' || c.text[i] == ':') {
		i = skipSpace(c.text, i+1)
	}
	return i
}

// End is behind what was read last.
func (c *Cursor) End() int { return c.base + int(c.dec.InputOffset()) }

// Pass reads a whole value and tells where it stands.
func (c *Cursor) Pass() Span {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return Span{}
	}
	end := c.End()
	return Span{int32(end - len(raw)), int32(end)}
}

// Members reads the object before the cursor. At each name the cursor
// stands before the value, which is passed over unless it is read.
func (c *Cursor) Members() iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := c.enter('}'); more; more = c.more('}') {
			name := c.Pass()
			if !name.Exists() || !yield(String(c.text[name.From:name.To])) || !c.pass(int(name.To)) {
				return
			}
		}
	}
}

// Elements reads the array before the cursor. At each index the cursor stands
// before the element, which is passed over unless it is read.
func (c *Cursor) Elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		i := 0
		for more := c.enter(']'); more; more = c.more(']') {
			at := c.End()
			if !yield(i) || !c.pass(at) {
				return
			}
			i++
		}
	}
}

// enter steps into an object or an array, more to its next member or
// element, and out of it where there is none.
func (c *Cursor) enter(closing jsontext.Kind) bool {
	_, err := c.dec.ReadToken()
	return err == nil && c.more(closing)
}

func (c *Cursor) more(closing jsontext.Kind) bool {
	switch c.dec.PeekKind() {
	case 0:
		return false
	case closing:
		_, _ = c.dec.ReadToken() // it was seen
		return false
	}

	return true
}

// pass steps over the value before the cursor if nothing was read since
// an offset.
func (c *Cursor) pass(at int) bool { return c.End() != at || c.Pass().Exists() }

// String is what a string of a checked text says. Without escapes it
// shares the text.
func String(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1]
	}
	out, _ := jsontext.AppendUnquote(nil, raw) // it was checked
	return string(out)
}

// ReadString is String for a text that may be anything; it is false for
// what is no string that all readers understand alike.
func ReadString[T ~[]byte | ~string](raw T) (string, bool) {
	raw = raw[skipSpace(raw, 0):]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	out, err := jsontext.AppendUnquote(nil, strings.TrimRight(string(raw), " \t\r\n"))
	if err != nil {
		return "", false
	}
	return string(out), true
}
