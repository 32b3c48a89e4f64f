package content

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/value"
)

// encoder writes one document. Each text that comes from outside is checked where it is written, to say where a bad one stands.
type encoder struct {
	trail
	w       *wire
	dst     []byte
	scratch value.Scratch
}

// checkAll makes sure that the whole can be read again: the parts may be too deep or too large together.
func (e *encoder) checkAll(from, around int) {
	if err := anyShape.Scan(e.dst[from:], within(around), &e.scratch); err != nil {
		e.fail(BadJSON, "", err.Error(), err)
	}
}

func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return value.Value{Kind: value.String, Text: s}.AppendJSON(dst)
}

func (e *encoder) messages(ms []*Message) {
	e.list("messages", len(ms), func(i int) { e.message(ms[i]) })
}

func (e *encoder) list(name string, n int, element func(int)) {
	e.dst = append(e.dst, '[')
	for i := range n {
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		e.enter(name, i)
		element(i)
		e.leave()
	}
	e.dst = append(e.dst, ']')
}

func (e *encoder) message(m *Message) {
	if m == nil {
		e.fail(BadShape, "", "expected a message, found nothing", nil)
		return
	}
	if blank(string(m.Role)) {
		e.fail(BadShape, e.w.name(roleField), "expected a role, found a blank one", nil)
	}
	e.open(messageKind)
	e.optional(authorField, m.AuthorName)
	e.optional(createdField, m.CreatedAt)
	e.str(roleField, string(m.Role))
	e.contents(contentsField, m.Contents)
	if e.w.shape == goFramework {
		e.str(messageIDField, m.ID)
	} else {
		e.optional(messageIDField, m.ID)
	}
	e.close(messageKind, &m.Common)
}

func (e *encoder) contents(f field, all []Content) {
	e.key(f)
	e.list(e.w.name(f), len(all), func(i int) { e.content(all[i]) })
}

// open begins an object with its discriminator, which .NET wants first.
func (e *encoder) open(k kind) {
	e.dst = append(e.dst, '{')
	if name := kindNames[k][e.w.shape]; name != "" {
		e.str(typeField, name)
	}
}

// key begins a member; it is false where the shape has none of that name.
func (e *encoder) key(f field) bool {
	name := e.w.name(f)
	if name == "" {
		return false
	}
	e.comma()
	e.dst = append(e.dst, '"')
	e.dst = append(e.dst, name...)
	e.dst = append(e.dst, '"', ':')
	return true
}

func (e *encoder) comma() {
	if e.dst[len(e.dst)-1] != '{' {
		e.dst = append(e.dst, ',')
	}
}

func (e *encoder) str(f field, s string) {
	if e.key(f) {
		e.dst = appendString(e.dst, s)
	}
}

// optional writes a string unless it is empty.
func (e *encoder) optional(f field, s string) {
	if s != "" {
		e.str(f, s)
	}
}

func (e *encoder) flag(f field, b bool) {
	if e.key(f) {
		e.dst = strconv.AppendBool(e.dst, b)
	}
}

// raw writes a text that must be JSON, nothing for none.
func (e *encoder) raw(f field, raw json.RawMessage) {
	if raw != nil && e.key(f) {
		e.checked(e.w.name(f), raw)
	}
}

func (e *encoder) checked(name string, raw json.RawMessage) {
	if err := anyShape.Scan(raw, limits, &e.scratch); err != nil {
		e.fail(BadJSON, name, err.Error(), err)
	}
	e.dst = append(e.dst, raw...)
}

// arguments writes an object as such in .NET's shape, and all else as a text: so a thread can be kept whatever the model wrote.
func (e *encoder) arguments(args json.RawMessage) {
	switch {
	case len(args) == 0 && e.w.shape != goFramework:
	case len(args) == 0:
		e.str(argumentsField, "")
	case e.w.shape == dotNet && e.isObject(args):
		e.key(argumentsField)
		e.dst = append(e.dst, args...)
	default:
		e.str(argumentsField, string(args))
	}
}

func (e *encoder) isObject(args []byte) bool {
	return anyShape.Scan(args, argumentLimits, &e.scratch) == nil && e.scratch.Top == value.Object
}

// close writes the properties and the members that were unknown when they were read.
func (e *encoder) close(k kind, c *Common) { e.closeWith(k, c, e.properties(c)) }

// closeWith is close with properties to which something was added.
func (e *encoder) closeWith(k kind, c *Common, props json.RawMessage) {
	if props == nil && e.w.shape == python {
		props = json.RawMessage("{}")
	}
	if props != nil && e.key(propertiesField) {
		e.dst = append(e.dst, props...)
	}
	e.members(k, c.Extra)
	e.dst = append(e.dst, '}')
}

// properties returns the properties of an object once it is sure that they are one.
func (e *encoder) properties(c *Common) json.RawMessage {
	if c.Properties == nil {
		return nil
	}
	name := e.w.name(propertiesField)
	if err := anyShape.Scan(c.Properties, limits, &e.scratch); err != nil {
		e.fail(BadJSON, name, err.Error(), err)
		return nil
	}
	if e.scratch.Top != value.Object {
		e.fail(BadShape, name, "expected an object, found "+kindOf(c.Properties), nil)
		return nil
	}
	return c.Properties
}

// members writes unknown members. One that this shape knows would say something else than it did where it came from.
func (e *encoder) members(k kind, all []Member) {
	for _, m := range all {
		if e.w.field(k, m.Key) != noField {
			e.fail(BadShape, m.Key, "an unknown member has the name of a known one", nil)
		}
		e.comma()
		e.dst = append(appendString(e.dst, m.Key), ':')
		e.checked(m.Key, m.Raw)
	}
}
