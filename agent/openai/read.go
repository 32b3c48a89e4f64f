package openai

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/value"
)

// maxBytes bounds an answer and a request.
const maxBytes = 64 << 20

// A reader reads one JSON text. It keeps its first error, so that mappings read like what they map; whoever is done looks at err.
type reader struct{ err error }

func (r *reader) fail(code content.Code, where, format string, args ...any) {
	if r.err == nil {
		r.err = bad(code, where, format, args...)
	}
}

// object is a JSON object whose members are read one by one. Keys are exact, other than those of encoding/json.
type object struct {
	r       *reader
	at      string
	members map[string]json.RawMessage
}

// read begins with a whole text, which must be an object that everybody reads alike.
func read(src []byte) object {
	r := &reader{}
	o := object{r: r}
	v, err := value.Parse(src, value.Limits{MaxBytes: maxBytes})
	switch {
	case err != nil:
		r.err = &content.BadError{Code: content.BadJSON, Detail: err.Error(), Err: err}
	case v.Kind != value.Object:
		r.fail(content.BadShape, "", "expected an object, found a %s", v.Kind)
	default:
		o.decode(src, &o.members, "an object")
	}
	return o
}

func (o object) decode(raw []byte, into any, want string) {
	if err := json.Unmarshal(raw, into); err != nil {
		o.r.fail(content.BadShape, o.at, "expected %s", want)
	}
}

func (o object) below(key string) object {
	if o.at != "" {
		key = o.at + "." + key
	}
	return object{r: o.r, at: key}
}

// has tells whether a member is there and not null.
func (o object) has(key string) bool {
	raw, ok := o.members[key]
	return ok && string(raw) != "null"
}

// text reads a string; "" when there is none.
func (o object) text(key string) string {
	var out string
	if o.has(key) {
		o.below(key).decode(o.members[key], &out, "a string")
	}
	return out
}

func (o object) number(key string) int64 {
	var out int64
	if o.has(key) {
		o.below(key).decode(o.members[key], &out, "an integer")
	}
	return out
}

// object reads a member; an object without members when there is none.
func (o object) object(key string) object {
	out := o.below(key)
	if o.has(key) {
		out.decode(o.members[key], &out.members, "an object")
	}
	return out
}

// list reads a list of objects and the text of each.
func (o object) list(key string) ([]object, []json.RawMessage) {
	var raws []json.RawMessage
	at := o.below(key)
	if o.has(key) {
		at.decode(o.members[key], &raws, "an array")
	}
	out := make([]object, len(raws))
	for i, raw := range raws {
		out[i] = object{r: o.r, at: fmt.Sprintf("%s[%d]", at.at, i)}
		if string(raw) == "null" {
			o.r.fail(content.BadShape, out[i].at, "expected an object, found null")
		}
		out[i].decode(raw, &out[i].members, "an object")
	}
	return out, raws
}

// need reads a string that must not be empty.
func (o object) need(key string) string {
	out := o.text(key)
	if out == "" {
		o.r.fail(content.BadShape, o.below(key).at, "expected a string, found none")
	}
	return out
}
