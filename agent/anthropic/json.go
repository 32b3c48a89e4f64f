package anthropic

import (
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Requests are written without encoding/json, which would rewrite texts that must be sent back
// unchanged.

// pair is one member of an object to write. A pair without a value is left out.
type pair struct {
	key string
	raw []byte
}

func text(key, s string) pair { return pair{key, quote(s)} }

// optional returns a string that is left out if it is empty.
func optional(key, s string) pair {
	if s == "" {
		return pair{key, nil}
	}
	return text(key, s)
}

// quote writes a string. Invalid UTF-8 becomes U+FFFD.
func quote(s string) []byte { return jsonmsg.AppendString(nil, s) }

// object writes members in order.
func object(pairs ...pair) []byte {
	out, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { // can't fail, because quote has replaced invalid UTF-8
		for _, p := range pairs {
			if p.raw != nil {
				w.Name(p.key).Verbatim(p.raw)
			}
		}
	})
	return out
}

// array writes elements in order.
func array[T ~[]byte](elements []T) []byte {
	var w jsonmsg.Writer
	w.List(len(elements), func(w *jsonmsg.Writer, i int) { w.Verbatim(elements[i]) })
	return w.Text
}

// isObject reports whether a text is one JSON object. It may have duplicate members, since a
// model may write them and they must be sent back unchanged.
func isObject(raw []byte) bool { return jsonmsg.IsObject(raw) && json.Valid(raw) }

// withMember returns the object with another value for one member, which is added if it is
// missing.
func withMember(raw []byte, key string, v []byte) []byte {
	var pairs []pair
	found := false
	for _, m := range jsonmsg.Members(raw) {
		if m.Name == key {
			m.Raw, found = v, true
		}
		pairs = append(pairs, pair{m.Name, m.Raw})
	}

	if !found {
		pairs = append(pairs, pair{key, v})
	}
	return object(pairs...)
}

// isNull reports whether a text is empty or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// typeOf returns the type of a block. The block must be an object that all parsers read in the
// same way.
func typeOf(raw []byte) (string, error) {
	block := jsonmsg.Read(raw, jsonmsg.Limits())
	kind := block.Text("type")
	return kind, block.Err()
}
