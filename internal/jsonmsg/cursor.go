package jsonmsg

import (
	"bytes"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is the position of a value in a text. The zero Span means that there is no value.
type Span struct{ From, To int32 }

// Exists reports whether there is a value.
func (s Span) Exists() bool { return s.To != 0 }

// A Cursor moves once over a checked text.
type Cursor struct {
	src    []byte
	text   string // the same text
	base   int    // start of the decoder
	source bytes.Buffer
	dec    jsontext.Decoder
}

// NewCursor returns a cursor before the first value of a checked text. src and text must be
// equal; the strings it yields share text, and src is only read.
func NewCursor(src []byte, text string) *Cursor {
	c := &Cursor{src: src, text: text}
	c.Start(0)
	return c
}

// Start moves the cursor before the value at an offset of its text.
func (c *Cursor) Start(at int) {
	c.base = at
	c.source = *bytes.NewBuffer(c.src[at:])
	// Check has already refused what these options let through.
	c.dec.Reset(&c.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Next returns the offset of the next value.
func (c *Cursor) Next() int {
	i := skipSpace(c.text, c.End())
	if i < len(c.text) && (c.text[i] == ',' || c.text[i] == ':') {
		i = skipSpace(c.text, i+1)
	}
	return i
}

// End returns the offset after what was read last.
func (c *Cursor) End() int { return c.base + int(c.dec.InputOffset()) }

// Pass reads a whole value and returns its position.
func (c *Cursor) Pass() Span {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return Span{}
	}
	end := c.End()
	return Span{int32(end - len(raw)), int32(end)}
}

// Members iterates over the names of the object before the cursor. In the loop body the cursor
// is before the value. If the body does not read the value, it is skipped.
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

// Elements iterates over the indexes of the array before the cursor. In the loop body the
// cursor is before the element. If the body does not read the element, it is skipped.
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

// enter steps into an object or an array. more moves to the next member or element, or past the
// closing bracket if there is none.
func (c *Cursor) enter(closing jsontext.Kind) bool {
	_, err := c.dec.ReadToken()
	return err == nil && c.more(closing)
}

func (c *Cursor) more(closing jsontext.Kind) bool {
	switch c.dec.PeekKind() {
	case 0:
		return false
	case closing:
		_, _ = c.dec.ReadToken() // PeekKind has seen it
		return false
	}

	return true
}

// pass skips the value before the cursor if nothing was read since an offset.
func (c *Cursor) pass(at int) bool { return c.End() != at || c.Pass().Exists() }

// String decodes a string of a checked text. Without escapes it shares the text.
func String(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1]
	}
	out, _ := jsontext.AppendUnquote(nil, raw) // can't fail for a checked text
	return string(out)
}

// ReadString decodes a string of an unchecked text. It returns false if raw is not a string
// that all readers understand in the same way.
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
