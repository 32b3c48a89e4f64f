package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/value"
)

// A writer writes one JSON object. Texts of JSON go in as they are, byte for byte, so this is not encoding/json, which would squeeze
// them. It keeps its first error until done.
type writer struct {
	buf []byte
	err error
}

func (w *writer) key(key string) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(appendQuoted(w.buf, key), ':')
}

func (w *writer) text(key, v string) {
	w.key(key)
	w.buf = appendQuoted(w.buf, v)
}

// raw writes a member whose value is JSON. It is checked, so that no text can close the object and go on behind it.
func (w *writer) raw(key string, v []byte) {
	if !json.Valid(v) && w.err == nil {
		w.err = bad(content.BadJSON, key, "expected JSON")
	}
	w.key(key)
	w.buf = append(w.buf, v...)
}

func (w *writer) bool(key string, v bool) { w.raw(key, strconv.AppendBool(nil, v)) }

func (w *writer) int(key string, v int) { w.raw(key, strconv.AppendInt(nil, int64(v), 10)) }

func (w *writer) float(key string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.err = bad(content.BadShape, key, "expected a number that JSON has")
		return
	}
	w.raw(key, strconv.AppendFloat(nil, v, 'g', -1, 64))
}

func (w *writer) texts(key string, v []string) {
	parts := make([][]byte, len(v))
	for i, s := range v {
		parts[i] = appendQuoted(nil, s)
	}
	w.raw(key, array(parts))
}

// object writes a member that is an object of texts and the like.
func (w *writer) object(key string, fill func(*writer)) {
	in := &writer{}
	fill(in)
	if w.err == nil {
		w.err = in.err
	}
	w.raw(key, in.bytes())
}

// add writes the members of an object that the caller has as JSON.
func (w *writer) add(where string, src []byte) {
	if len(src) == 0 || w.err != nil {
		return
	}
	v, err := value.Parse(src, value.Limits{MaxBytes: maxBytes})
	if err != nil || v.Kind != value.Object {
		w.err = &content.BadError{Code: content.BadShape, Where: where, Detail: "expected an object", Err: err}
		return
	}
	inner := bytes.TrimSpace(src)
	inner = bytes.TrimSpace(inner[1 : len(inner)-1])
	if len(inner) > 0 {
		w.buf = append(append(w.buf, ','), inner...)
	}
}

func (w *writer) bytes() []byte {
	if len(w.buf) == 0 {
		return []byte("{}")
	}
	return append(w.buf[:len(w.buf):len(w.buf)], '}')
}

// done returns a whole request. Everybody must be able to read it alike: this finds texts that are no UTF-8 and members that stand twice.
func (w *writer) done() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	out := w.bytes()
	if _, err := value.Parse(out, value.Limits{MaxBytes: maxBytes}); err != nil {
		return nil, &content.BadError{Code: content.BadJSON, Detail: err.Error(), Err: err}
	}
	return out, nil
}

// one writes a whole object.
func one(fill func(*writer)) ([]byte, error) {
	w := &writer{}
	fill(w)
	return w.bytes(), w.err
}

func array(parts [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// appendQuoted writes a JSON string. Bytes that are no UTF-8 go through and are found by done.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
