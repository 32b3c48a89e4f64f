package content

import (
	"encoding/json"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// object is one JSON object of a known kind, with its members assigned to fields.
type object struct {
	d        *decoder
	kind     kind
	ref      kindRef
	at       [fields]jsonmsg.Span
	contents []Content
	extra    []Member
}

func (o *object) name(f field) string { return o.d.w.name(f) }

// value steps over a member of a message. It decodes the contents at the same time, so that a
// thread is read in a single pass.
func (o *object) value(c *jsonmsg.Cursor, f field) jsonmsg.Span {
	at := c.Next()
	if f != contentsField || o.d.text[at] != '[' || o.at[f].Exists() {
		return c.Pass()
	}
	o.contents = o.d.contents(c, o.name(f))
	return jsonmsg.Span{From: int32(at), To: int32(c.End())}
}

// sortAll assigns the members of an object to their fields.
func (o *object) sortAll(members []named) {
	for _, m := range members {
		o.sort(o.d.w.field(o.kind, m.name), m)
	}
}

// sort assigns a member to its field.
func (o *object) sort(f field, m named) {
	switch {
	case f == oddField:
		o.d.fail(BadShape, m.name, "some readers take this name for a known one, others don't", nil)
	case f == noField:
		o.extra = append(o.extra, Member{Key: m.name, Raw: o.d.raw(m.at)})
	case o.at[f].Exists():
		o.d.fail(BadShape, m.name, "the member stands twice under different names", nil)
	default:
		o.at[f] = m.at
	}
}

// has reports whether the member exists and is not null.
func (o *object) has(f field) bool {
	at := o.at[f]
	return at.Exists() && o.d.text[at.From] != 'n'
}

func (o *object) bad(code Code, f field, expected string) {
	found := "nothing"
	if at := o.at[f]; at.Exists() {
		found = jsonmsg.Describe(o.d.text[at.From:])
	}
	o.d.fail(code, o.name(f), "expected "+expected+", found "+found, nil)
}

// text reads an optional string.
func (o *object) text(f field) string {
	if !o.has(f) {
		return ""
	}
	return o.need(f)
}

// need reads a required string.
func (o *object) need(f field) string {
	at := o.at[f]
	if !at.Exists() || o.d.text[at.From] != '"' {
		o.bad(BadShape, f, "a string")
		return ""
	}
	return jsonmsg.String(o.d.text[at.From:at.To])
}

// id reads the id of a request.
func (o *object) id() string {
	if at := o.at[requestIDField]; !at.Exists() || o.d.text[at.From] != '"' {
		o.bad(BadID, requestIDField, "the id of a request")
		return ""
	}
	id := o.need(requestIDField)
	if blank(id) {
		o.d.fail(BadID, o.name(requestIDField), "expected the id of a request, found a blank one", nil)
	}
	return id
}

// flag reads an optional boolean.
func (o *object) flag(f field, absent bool) bool {
	if !o.has(f) {
		return absent
	}
	switch o.d.text[o.at[f].From] {
	case 't':
		return true
	case 'f':
		return false
	}

	o.bad(BadShape, f, "true or false")
	return absent
}

// needFlag reads a required boolean. A missing flag must count neither as an approval nor as a
// rejection.
func (o *object) needFlag(f field) bool {
	if !o.has(f) {
		o.bad(BadShape, f, "true or false")
	}
	return o.flag(f, false)
}

// raw returns the JSON text of a value, or nil if it is missing or null.
func (o *object) raw(f field) json.RawMessage {
	if !o.has(f) {
		return nil
	}
	return o.d.raw(o.at[f])
}

// arguments returns the text of an object, or the contents of a JSON string.
func (o *object) arguments() json.RawMessage {
	if at := o.at[argumentsField]; !o.has(argumentsField) || o.d.text[at.From] != '"' {
		return o.raw(argumentsField)
	}
	if args := o.need(argumentsField); args != "" {
		return json.RawMessage(args)
	}
	return nil
}

// count reads a number of tokens.
func (o *object) count(f field) int64 {
	if !o.has(f) {
		return 0
	}
	n, err := strconv.ParseInt(string(o.raw(f)), 10, 64)
	if err != nil {
		o.bad(BadShape, f, "an integer of 64 bits")
	}
	return n
}

// common returns the properties and unknown members of the object.
func (o *object) common() Common {
	props := o.raw(propertiesField)
	if props != nil && props[0] != '{' {
		o.bad(BadShape, propertiesField, "an object")
	}
	if o.d.w.shape == python && props != nil && len(jsonmsg.Members(props)) == 0 {
		props = nil // Python always writes the member
	}
	return Common{Properties: props, Extra: o.extra}
}
