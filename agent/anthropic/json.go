package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/value"
)

// Requests are written by hand, since encoding/json would rewrite the texts that must go back as they came.

// quote writes a string.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always has a text
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// pair is one member of an object to write.
type pair struct {
	key string
	raw []byte
}

// object writes members in order; those without a value are left out.
func object(pairs ...pair) []byte {
	out := []byte{'{'}
	for _, p := range pairs {
		if p.raw == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, quote(p.key)...)
		out = append(out, ':')
		out = append(out, p.raw...)
	}
	return append(out, '}')
}

// array writes elements in order.
func array[T ~[]byte](elements []T) []byte {
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

func text(key, s string) pair { return pair{key, quote(s)} }

// optional is text that is left out when it is empty.
func optional(key, s string) pair {
	if s == "" {
		return pair{key, nil}
	}
	return text(key, s)
}

// isObject tells whether a text is one JSON object.
func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}

// isNull tells whether there is nothing: no text, or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// membersOf reads an object as the texts of its members, in order.
func membersOf(raw []byte) ([]content.Member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("expected an object")
	}
	var out []content.Member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := content.Member{Key: fmt.Sprint(key)}
		if err := dec.Decode(&m.Raw); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	_, err := dec.Token()
	return out, err
}

// withMember is the object with another value for one member, which is added when it is missing.
func withMember(raw []byte, key string, v []byte) ([]byte, error) {
	members, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	found := false
	for _, m := range members {
		if m.Key == key {
			m.Raw, found = v, true
		}
		pairs = append(pairs, pair{m.Key, m.Raw})
	}
	if !found {
		pairs = append(pairs, pair{key, v})
	}
	return object(pairs...), nil
}

// typeOf reads the type of a block that must be an object that everybody reads alike.
func typeOf(raw []byte) (string, error) {
	v, err := value.Parse(raw, value.Limits{})
	if err != nil {
		return "", err
	}
	if v.Kind != value.Object {
		return "", fmt.Errorf("expected an object, found a %s", v.Kind)
	}
	kind, _ := v.Get("type")
	return kind.Text, nil
}
