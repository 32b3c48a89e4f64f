package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// writer appends one object after the other.
type writer struct{ dst []byte }

func open(dst []byte) *writer { return &writer{append(dst, '{')} }

func (w *writer) close() []byte { return append(w.dst, '}') }

// next puts a comma between two members or elements.
func (w *writer) next() {
	if last := w.dst[len(w.dst)-1]; last != '{' && last != '[' {
		w.dst = append(w.dst, ',')
	}
}

func (w *writer) name(name string) {
	w.next()
	w.dst = append(strconv.AppendQuote(w.dst, name), ':')
}

func (w *writer) str(name, s string) {
	w.name(name)
	w.dst = appendString(w.dst, s)
}

// optional writes a string unless it is nil.
func (w *writer) optional(name string, s *string) {
	if s != nil {
		w.str(name, *s)
	}
}

// nonEmpty writes a string unless it is empty.
func (w *writer) nonEmpty(name, s string) {
	if s != "" {
		w.str(name, s)
	}
}

func (w *writer) index(name string, n int) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, int64(n), 10)
}

// flag writes a boolean unless it is nil.
func (w *writer) flag(name string, is *bool) {
	if is != nil {
		w.name(name)
		w.dst = strconv.AppendBool(w.dst, *is)
	}
}

// set writes a boolean when it is true.
func (w *writer) set(name string, is bool) {
	if is {
		w.flag(name, &is)
	}
}

// raw writes a text of the kind that begins with open, byte for byte. Anything else could pass for other members: it is written as false, which
// no reader takes for an object or a list.
func (w *writer) raw(name string, raw json.RawMessage, open byte) {
	w.name(name)
	text := trim(raw)
	if len(text) == 0 || text[0] != open || anyShape.Scan(text, value.Limits{MaxBytes: maxBytes, MaxDepth: maxDepth - 1}, &value.Scratch{}) != nil {
		text = []byte("false")
	}
	w.dst = append(w.dst, text...)
}

// strings writes a list of strings.
func (w *writer) strings(name string, all []string) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for _, s := range all {
		w.next()
		w.dst = appendString(w.dst, s)
	}
	w.dst = append(w.dst, ']')
}

// objects writes a list of n objects.
func (w *writer) objects(name string, n int, write func(w *writer, i int)) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for i := range n {
		w.next()
		w.dst = append(w.dst, '{')
		write(w, i)
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
}

func appendString(dst []byte, s string) []byte {
	return value.Value{Kind: value.String, Text: strings.ToValidUTF8(s, "\ufffd")}.AppendJSON(dst)
}
