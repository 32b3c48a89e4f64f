package content

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// encoder writes one document. It checks each raw text when it writes it, so that an error
// names the place.
type encoder struct {
	trail
	*jsonmsg.Writer
	w *wire
}

// checkAll checks that the whole document can be read again, because the parts together may be
// too deep or too large.
func (e *encoder) checkAll(from, around int) {
	if _, err := e.checker.Check(e.Text[from:], within(around)); err != nil {
		e.fail(BadJSON, "", err.Error(), err)
	}
}

func (e *encoder) messages(ms []*Message) {
	e.list("messages", len(ms), func(i int) { e.message(ms[i]) })
}

func (e *encoder) list(name string, n int, element func(int)) {
	e.List(n, func(_ *jsonmsg.Writer, i int) {
		e.enter(name, i)
		element(i)
		e.leave()
	})
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

// open begins an object with its discriminator, which .NET requires to come first.
func (e *encoder) open(k kind) {
	e.Open('{')
	if name := kindNames[k][e.w.shape]; name != "" {
		e.str(typeField, name)
	}
}

// key begins a member. It returns false if the format doesn't have the member.
func (e *encoder) key(f field) bool {
	name := e.w.name(f)
	if name != "" {
		e.Name(name)
	}
	return name != ""
}

func (e *encoder) str(f field, s string) {
	if e.key(f) {
		e.String(validUTF8(s))
	}
}

// validUTF8 replaces invalid UTF-8 with U+FFFD, as the libraries for all formats do.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// optional writes a string unless it is empty.
func (e *encoder) optional(f field, s string) {
	if s != "" {
		e.str(f, s)
	}
}

func (e *encoder) flag(f field, b bool) {
	if e.key(f) {
		e.Bool(b)
	}
}

// raw writes a JSON text, or nothing if it is nil.
func (e *encoder) raw(f field, raw json.RawMessage) {
	if raw != nil && e.key(f) {
		e.checked(e.w.name(f), raw)
	}
}

func (e *encoder) checked(name string, raw json.RawMessage) {
	if _, err := e.checker.Check(raw, limits); err != nil {
		e.fail(BadJSON, name, err.Error(), err)
	}
	e.Verbatim(raw)
}

// arguments writes arguments as an object in .NET's format if they are one. In all other cases
// it writes a string, so that a thread can be stored with any arguments that the model wrote.
func (e *encoder) arguments(args json.RawMessage) {
	switch {
	case len(args) == 0 && e.w.shape != goFramework:
	case len(args) == 0:
		e.str(argumentsField, "")
	case e.w.shape == dotNet && e.isObject(args):
		e.key(argumentsField)
		e.Verbatim(args)
	default:
		e.str(argumentsField, string(args))
	}
}

func (e *encoder) isObject(args []byte) bool {
	kind, err := e.checker.Check(args, argumentLimits)
	return err == nil && kind == value.Object
}

// close writes the properties and the unknown members, and ends the object.
func (e *encoder) close(k kind, c *Common) { e.closeWith(k, c, e.properties(c)) }

// closeWith does the same as close with other properties.
func (e *encoder) closeWith(k kind, c *Common, props json.RawMessage) {
	if props == nil && e.w.shape == python {
		props = json.RawMessage("{}")
	}
	if props != nil && e.key(propertiesField) {
		e.Verbatim(props)
	}
	e.members(k, c.Extra)
	e.Close('}')
}

// properties returns the properties of an object, or nil after a failure if they are not an
// object.
func (e *encoder) properties(c *Common) json.RawMessage {
	if c.Properties == nil || !e.checkObject(e.w.name(propertiesField), c.Properties, limits, BadJSON, BadShape) {
		return nil
	}
	return c.Properties
}

// members writes unknown members. It fails for a member that this format knows, because the
// member would get another meaning.
func (e *encoder) members(k kind, all []Member) {
	for _, m := range all {
		if e.w.field(k, m.Key) != noField {
			e.fail(BadShape, m.Key, "an unknown member has the name of a known one", nil)
		}
		e.Name(validUTF8(m.Key))
		e.checked(m.Key, m.Raw)
	}
}
