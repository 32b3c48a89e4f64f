package wire

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// anyShape reads nothing and checks everything.
var anyShape = new(value.ShapeBuilder).Build()

// The bounds of a message. How large a body may be is the caller's to say; this only ends it all.
const (
	maxBytes = 16 << 20
	maxDepth = 128
)

// reader keeps the first thing that is wrong and goes on, so that what is sound can still be had.
type reader struct{ err *Error }

func (r *reader) fail(field, expected string) {
	if r.err == nil {
		r.err = &Error{Field: field, Expected: expected}
	}
}

// object is an object of a message with the texts of its known members. Whoever asks for one that is missing or is something else gets
// nothing of it, and the reader an error.
type object struct {
	*reader
	path    string // "tools[2]"; "" for the message as a whole
	members map[string][]byte
}

// document checks a message as a whole. What is not sound gives an error and still what can be told apart of it: each member is checked
// again where it is read.
func document(body []byte, known ...string) object {
	r := &reader{}
	var found value.Scratch
	if err := anyShape.Scan(body, value.Limits{MaxBytes: maxBytes, MaxDepth: maxDepth}, &found); err != nil {
		r.fail("", "one JSON object that all readers understand alike"+reason(err))
	}
	if len(body) > maxBytes {
		return object{reader: r}
	}
	return r.object("", body, known...)
}

// reason says what is wrong with a text, and where, in words that hold nothing of it.
func reason(err error) string {
	var bad *value.Error
	if !errors.As(err, &bad) {
		return ""
	}
	return fmt.Sprintf(" (%s, byte %d)", bad.Code, bad.Offset)
}

// object reads the known members of an object. In a text that is not sound, names may repeat: no reading of such an object is right.
func (r *reader) object(path string, raw []byte, known ...string) object {
	o := object{r, path, make(map[string][]byte, len(known))}
	for m, err := range value.SplitObject(raw) {
		if err != nil {
			r.fail(path, "an object, found "+kindOf(raw))
			return object{reader: r, path: path}
		}
		if !slices.Contains(known, m.Key) {
			continue
		}
		if o.members[m.Key] != nil {
			r.fail(o.at(m.Key), "no second one")
			return object{reader: r, path: path}
		}
		o.members[m.Key] = m.Raw
	}
	return o
}

// at is the path of a member.
func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// raw is the text of a member, nil when it is absent or null.
func (o object) raw(name string) []byte {
	raw := o.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// list walks over the elements of a member with their paths, at most so many. No list has none.
func (o object) list(name string, most int) iter.Seq2[string, []byte] {
	path, raw := o.at(name), o.raw(name)
	return func(yield func(string, []byte) bool) {
		if len(raw) == 0 || raw[0] != '[' {
			o.fail(path, "a list, found "+kindOf(raw))
			return
		}
		n := 0
		for item := range elements(raw) {
			if n == most {
				o.fail(path, fmt.Sprintf("at most %d elements", most))
				return
			}
			if !yield(path+"["+strconv.Itoa(n)+"]", item) {
				return
			}
			n++
		}
	}
}

// elements splits the text of a list. It is right about a sound text, and stays within any other.
func elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start, depth := 1, 0
		for i := 1; i < len(raw); i++ {
			switch raw[i] {
			case '"':
				i = endOfString(raw, i)
			case '[', '{':
				depth++
			case ',', ']', '}':
				if depth == 0 {
					if item := trim(raw[start:i]); len(item) > 0 && !yield(item) {
						return
					}
					start = i + 1
				} else if raw[i] != ',' {
					depth--
				}
			}
		}
	}
}

// endOfString is where the string that begins at i ends: at its quote.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}

// kindOf names what a sound text is.
func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
