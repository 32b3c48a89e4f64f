package wire

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// writer appends a message. Invalid UTF-8 is replaced by U+FFFD.
type writer struct{ *jsonmsg.Writer }

func open(dst []byte) writer {
	w := writer{jsonmsg.Append(dst)}
	w.Open('{')
	return w
}

func (w writer) close() []byte {
	w.Close('}')
	return w.Text
}

func (w writer) str(name, s string) { w.Member(name, validUTF8(s)) }

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// optional writes a string unless it is nil.
func (w writer) optional(name string, s *string) {
	if s != nil {
		w.str(name, *s)
	}
}

// nonEmpty writes a string unless it is empty.
func (w writer) nonEmpty(name, s string) { w.Optional(name, validUTF8(s)) }

func (w writer) index(name string, n int) { w.Name(name).Int(int64(n)) }

// flag writes a boolean unless it is nil.
func (w writer) flag(name string, is *bool) {
	if is != nil {
		w.Name(name).Bool(*is)
	}
}

// set writes a boolean if it is true.
func (w writer) set(name string, is bool) {
	if is {
		w.Name(name).Bool(true)
	}
}

// raw writes a JSON text of the wanted kind byte for byte. Any other text could be read as
// further members, so false is written instead, which no reader accepts as an object or a list.
func (w writer) raw(name string, raw json.RawMessage, want value.Kind) {
	text := jsonmsg.Trim(raw)
	inside := value.Limits{MaxBytes: limits.MaxBytes, MaxDepth: limits.MaxDepth - 1}
	if kind, err := jsonmsg.Check(text, inside); err != nil || kind != want {
		text = []byte("false")
	}
	w.Name(name).Verbatim(text)
}

// strings writes a list of strings.
func (w writer) strings(name string, all []string) {
	w.Name(name).List(len(all), func(w *jsonmsg.Writer, i int) { w.String(validUTF8(all[i])) })
}

// objects writes a list of n objects.
func (w writer) objects(name string, n int, write func(w writer, i int)) {
	w.Name(name).List(n, func(inner *jsonmsg.Writer, i int) {
		inner.Object(func(inner *jsonmsg.Writer) { write(writer{inner}, i) })
	})
}
