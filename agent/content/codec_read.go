package content

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/value"
)

// anyShape reads nothing and checks everything.
var anyShape = new(value.ShapeBuilder).Build()

// decoder reads one document. After an error it goes on to the end of what it is at and returns nothing of use.
type decoder struct {
	trail
	w       *wire
	text    string // a copy of the document
	raws    []byte // where the next raw text goes
	scratch value.Scratch
}

// trail remembers where a codec is and what it met first.
type trail struct {
	path []step
	err  *BadError
}

// step is a member, or an element of the list before it.
type step struct {
	name  string
	index int
}

func (t *trail) enter(name string, index int) { t.path = append(t.path, step{name, index}) }
func (t *trail) leave()                       { t.path = t.path[:len(t.path)-1] }

// problem returns what went wrong, if anything, as an error.
func (t *trail) problem() error {
	if t.err == nil {
		return nil
	}
	return t.err
}

// fail keeps the first error, at a member of where the codec is ("" for the place itself).
func (t *trail) fail(code Code, name, detail string, cause error) {
	if t.err != nil {
		return
	}
	var b strings.Builder
	for _, s := range append(t.path, step{name, -1}) {
		s.append(&b)
	}
	t.err = &BadError{Code: code, Where: b.String(), Detail: detail, Err: cause}
}

// unexpected fails at the value that stands at an offset.
func (d *decoder) unexpected(code Code, name, expected string, at int) {
	d.fail(code, name, "expected "+expected+", found "+kindOf(d.text[at:]), nil)
}

func (d *decoder) messages(i int) []*Message {
	var out []*Message
	d.elements("messages", i, func(i int) int {
		m, end := d.message(i)
		out = append(out, m)
		return end
	})
	return out
}

// elements calls f for every element of an array.
func (d *decoder) elements(name string, i int, f func(int) int) int {
	if d.text[i] != '[' {
		d.unexpected(BadShape, name, "an array", i)
		return skip(d.text, i)
	}
	i, more := first(d.text, i)
	for n := 0; more; n++ {
		d.enter(name, n)
		i = f(i)
		d.leave()
		i, more = next(d.text, i)
	}
	return i
}

func (d *decoder) message(i int) (*Message, int) {
	if d.text[i] != '{' {
		d.unexpected(BadShape, "", "a message: an object", i)
		return nil, skip(d.text, i)
	}
	o := object{d: d, kind: messageKind}
	end := o.walk(i)
	d.messageType(&o)
	m := &Message{
		ID: o.text(messageIDField), Role: d.role(&o), AuthorName: o.text(authorField),
		CreatedAt: o.text(createdField), Contents: o.contents, Common: o.common(),
	}
	if o.has(contentsField) && d.text[o.at[contentsField].from] != '[' {
		o.bad(BadShape, contentsField, "an array")
	}
	if o.has(textField) {
		m.Contents = append(m.Contents, &Text{Text: o.text(textField)})
	}
	return m, end
}

// messageType refuses what only looks like a message. Python's older releases said chat_message.
func (d *decoder) messageType(o *object) {
	switch o.text(typeField) {
	case "", "message", "chat_message":
	default:
		d.fail(BadKind, o.name(typeField), "expected a message, found something else", nil)
	}
}

// role reads a role; older Python releases wrote an object with a value.
func (d *decoder) role(o *object) Role {
	at := o.at[roleField]
	if d.w.shape == python && at.to != 0 && d.text[at.from] == '{' {
		return d.oldRole(at)
	}
	role := o.need(roleField)
	if d.err == nil && blank(role) {
		d.fail(BadShape, o.name(roleField), "expected a role, found a blank one", nil)
	}
	return d.w.knownRole(role)
}

func (d *decoder) oldRole(at span) Role {
	var role Role
	each(d.raw(at), func(key string, raw json.RawMessage) bool {
		if key == "value" && raw[0] == '"' {
			role = Role(unquote(string(raw)))
		}
		return true
	})
	if blank(string(role)) {
		d.fail(BadShape, d.w.name(roleField), "expected a role with a value, found none", nil)
	}
	return role
}

// knownRole shares the texts of known roles, and reads them in any case where a shape does.
func (w *wire) knownRole(role string) Role {
	for _, known := range [...]Role{User, Assistant, ToolRole, System} {
		if role == string(known) || w.shape == dotNet && strings.EqualFold(role, string(known)) {
			return known
		}
	}
	return Role(role)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// content reads one content where any may stand.
func (d *decoder) content(i int) (Content, int) {
	if d.text[i] != '{' {
		return d.bareContent(i)
	}
	name := d.discriminator(i)
	ref := d.w.kinds[name]
	if ref.kind == unknownKind || ref.kind == hostedKind {
		end := d.checkOneType(i)
		return &Unknown{Kind: name, Raw: d.raw(span{int32(i), int32(end)})}, end
	}
	o := object{d: d, kind: ref.kind, ref: ref}
	end := o.walk(i)
	return o.content(), end
}

// bareContent is a text that Python writes without an object around it.
func (d *decoder) bareContent(i int) (Content, int) {
	end := skip(d.text, i)
	if d.w.shape != python || d.text[i] != '"' {
		d.unexpected(BadShape, "", "a content: an object", i)
		return nil, end
	}
	return &Text{Text: unquote(d.text[i:end])}, end
}

// discriminator finds what kind of object begins at i, "" when it does not say. Writers put it first, so this mostly looks at one
// member.
func (d *decoder) discriminator(i int) string {
	i, more := first(d.text, i)
	for more {
		name, at := key(d.text, i)
		if d.w.isType(name) && d.text[at] != 'n' {
			return d.typeAt(name, at)
		}
		i, more = next(d.text, skip(d.text, at))
	}
	return ""
}

func (d *decoder) typeAt(name string, at int) string {
	if d.text[at] != '"' {
		d.unexpected(BadShape, name, "a string", at)
		return ""
	}
	return unquote(d.text[at:skipString(d.text, at)])
}

// checkOneType walks over an unknown object, whose kind may be given once only: two readers could else take it for two things.
func (d *decoder) checkOneType(i int) int {
	seen := false
	i, more := first(d.text, i)
	for more {
		name, at := key(d.text, i)
		if d.w.isType(name) {
			if seen {
				d.fail(BadShape, name, "the member stands twice in different letters", nil)
			}
			seen = true
		}
		i, more = next(d.text, skip(d.text, at))
	}
	return i
}

// raw copies the text of a value, next to others: few texts of a document are kept raw, and most of them are short.
func (d *decoder) raw(at span) json.RawMessage {
	s := d.text[at.from:at.to]
	if cap(d.raws)-len(d.raws) < len(s) {
		d.raws = make([]byte, 0, max(len(s), min(len(d.text), 32<<10)))
	}
	from := len(d.raws)
	d.raws = append(d.raws, s...)
	return d.raws[from:len(d.raws):len(d.raws)]
}

// append writes one step of a path.
func (s step) append(b *strings.Builder) {
	if s.name == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteByte('.')
	}
	b.WriteString(s.name)
	if s.index >= 0 {
		b.WriteString("[" + itoa(s.index) + "]")
	}
}
