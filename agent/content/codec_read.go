package content

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// decoder reads one document. After an error it continues to the end of the current value, and
// its results must not be used.
type decoder struct {
	trail
	w       *wire
	src     []byte
	text    string          // a copy of the document
	nested  *jsonmsg.Cursor // for objects inside of contents
	members []named         // members of the object that was split last
	raws    []byte          // buffer for raw texts
}

// named is one member of an object.
type named struct {
	name string
	at   jsonmsg.Span
}

func newDecoder(w *wire, src []byte) *decoder {
	return &decoder{w: w, src: src, text: string(src)}
}

// cursor returns a cursor before the value at an offset.
func (d *decoder) cursor(at int) *jsonmsg.Cursor {
	c := jsonmsg.NewCursor(d.src, d.text)
	c.Start(at)
	return c
}

// split reads the object at the cursor. The returned members are valid until the next object is
// split.
func (d *decoder) split(c *jsonmsg.Cursor) []named {
	d.members = d.members[:0]
	for name := range c.Members() {
		d.members = append(d.members, named{name: name, at: c.Pass()})
	}
	return d.members
}

// splitAt does the same as split for an object that is nested in one that was split.
func (d *decoder) splitAt(at jsonmsg.Span) []named {
	if d.nested == nil {
		d.nested = jsonmsg.NewCursor(d.src, d.text)
	}
	d.nested.Start(int(at.From))
	return d.split(d.nested)
}

// trail keeps the current path of a codec and its first error.
type trail struct {
	checker jsonmsg.Checker
	path    []step
	err     *BadError
}

// step is a member, or an element of the preceding list.
type step struct {
	name  string
	index int
}

func (t *trail) enter(name string, index int) { t.path = append(t.path, step{name, index}) }
func (t *trail) leave()                       { t.path = t.path[:len(t.path)-1] }

// problem returns the first error, or nil.
func (t *trail) problem() error {
	if t.err == nil {
		return nil
	}
	return t.err
}

// fail keeps the first error. The error's place is the named member of the current object, or
// the object itself if name is empty.
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

// checkObject fails unless a text is one object. It uses one error code for invalid JSON and
// another for a different type.
func (t *trail) checkObject(name string, raw []byte, lim value.Limits, unsound, other Code) bool {
	kind, err := t.checker.Check(raw, lim)
	switch {
	case err != nil:
		t.fail(unsound, name, err.Error(), err)
	case kind != value.Object:
		t.fail(other, name, "expected an object, found "+jsonmsg.Describe(raw), nil)
	}

	return err == nil && kind == value.Object
}

// unexpected fails with a description of the value at an offset.
func (d *decoder) unexpected(code Code, name, expected string, at int) {
	d.fail(code, name, "expected "+expected+", found "+jsonmsg.Describe(d.text[at:]), nil)
}

func (d *decoder) messages(c *jsonmsg.Cursor) []*Message {
	var out []*Message
	d.elements(c, "messages", func() { out = append(out, d.message(c)) })
	return out
}

// elements calls f before every element of an array.
func (d *decoder) elements(c *jsonmsg.Cursor, name string, f func()) {
	if at := c.Next(); d.text[at] != '[' {
		d.unexpected(BadShape, name, "an array", at)
		c.Pass()
		return
	}
	for n := range c.Elements() {
		d.enter(name, n)
		f()
		d.leave()
	}
}

func (d *decoder) message(c *jsonmsg.Cursor) *Message {
	if at := c.Next(); d.text[at] != '{' {
		d.unexpected(BadShape, "", "a message: an object", at)
		c.Pass()
		return nil
	}
	o := object{d: d, kind: messageKind}
	for name := range c.Members() {
		f := d.w.field(messageKind, name)
		o.sort(f, named{name, o.value(c, f)})
	}
	d.messageType(&o)
	m := &Message{
		ID:         o.text(messageIDField),
		Role:       d.role(&o),
		AuthorName: o.text(authorField),
		CreatedAt:  o.text(createdField),
		Contents:   o.contents,
		Common:     o.common(),
	}
	if o.has(contentsField) && d.text[o.at[contentsField].From] != '[' {
		o.bad(BadShape, contentsField, "an array")
	}
	if o.has(textField) {
		m.Contents = append(m.Contents, &Text{Text: o.text(textField)})
	}
	return m
}

// messageType fails if the object has a type other than message. Older Python releases used
// chat_message.
func (d *decoder) messageType(o *object) {
	switch o.text(typeField) {
	case "", "message", "chat_message":
	default:
		d.fail(BadKind, o.name(typeField), "expected a message, found something else", nil)
	}
}

// role reads a role. Older Python releases wrote an object with a value.
func (d *decoder) role(o *object) Role {
	at := o.at[roleField]
	if d.w.shape == python && at.Exists() && d.text[at.From] == '{' {
		return d.oldRole(at)
	}
	role := o.need(roleField)
	if d.err == nil && blank(role) {
		d.fail(BadShape, o.name(roleField), "expected a role, found a blank one", nil)
	}
	return d.w.knownRole(role)
}

func (d *decoder) oldRole(at jsonmsg.Span) Role {
	text, _ := jsonmsg.ReadString(jsonmsg.Get(d.raw(at), "value"))
	role := Role(text)
	if blank(string(role)) {
		d.fail(BadShape, d.w.name(roleField), "expected a role with a value, found none", nil)
	}
	return role
}

// knownRole returns the constant for a known role, ignoring case if the format does.
func (w *wire) knownRole(role string) Role {
	for _, known := range [...]Role{User, Assistant, ToolRole, System} {
		if role == string(known) || w.shape == dotNet && strings.EqualFold(role, string(known)) {
			return known
		}
	}
	return Role(role)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// contents reads a list of contents.
func (d *decoder) contents(c *jsonmsg.Cursor, name string) []Content {
	var out []Content
	d.elements(c, name, func() { out = append(out, d.content(c)) })
	return out
}

// content reads one content of any kind.
func (d *decoder) content(c *jsonmsg.Cursor) Content {
	at := c.Next()
	if d.text[at] != '{' {
		return d.bareContent(c)
	}
	members := d.split(c)
	name := d.discriminator(members)
	ref := d.w.kinds[name]
	if ref.kind == unknownKind || ref.kind == hostedKind {
		d.checkOneType(members)
		return &Unknown{Kind: name, Raw: d.raw(jsonmsg.Span{From: int32(at), To: int32(c.End())})}
	}

	o := object{d: d, kind: ref.kind, ref: ref}
	o.sortAll(members)
	return o.content()
}

// bareContent reads a text that Python writes without an object around it.
func (d *decoder) bareContent(c *jsonmsg.Cursor) Content {
	at := c.Pass()
	if d.w.shape != python || d.text[at.From] != '"' {
		d.unexpected(BadShape, "", "a content: an object", int(at.From))
		return nil
	}
	return &Text{Text: jsonmsg.String(d.text[at.From:at.To])}
}

// discriminator returns the discriminator among the members of an object, or an empty string.
func (d *decoder) discriminator(members []named) string {
	for _, m := range members {
		switch {
		case !d.w.isType(m.name) || d.text[m.at.From] == 'n':
			continue
		case d.text[m.at.From] != '"':
			d.unexpected(BadShape, m.name, "a string", int(m.at.From))
			return ""
		}

		return jsonmsg.String(d.text[m.at.From:m.at.To])
	}

	return ""
}

// checkOneType fails if an unknown object has two discriminators, because two readers could
// take different ones.
func (d *decoder) checkOneType(members []named) {
	seen := false
	for _, m := range members {
		if d.w.isType(m.name) && seen {
			d.fail(BadShape, m.name, "the member stands twice in different letters", nil)
		}
		seen = seen || d.w.isType(m.name)
	}
}

// raw copies the text of a value into a shared buffer, since few texts are kept raw and most of
// them are short.
func (d *decoder) raw(at jsonmsg.Span) json.RawMessage {
	s := d.text[at.From:at.To]
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
		b.WriteString("[" + strconv.Itoa(s.index) + "]")
	}
}
