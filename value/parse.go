package value

import (
	"bytes"
	"slices"
)

// Parse strictly parses one JSON document and returns its tree. It accepts exactly what
// Shape.Scan accepts, because both use the same scanner. The error is an *Error.
func Parse(src []byte, lim Limits) (Value, error) {
	lim = lim.orDefault()
	v, _, err := parse(src, lim, lim.MaxDepth)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// parse also returns the number of values. depth is the number of levels that may be nested.
func parse(src []byte, lim Limits, depth int) (v Value, values int, err *Error) {
	var keys [32]keyRef // enough for ordinary arguments without a heap allocation
	p := scanner{
		src:   src,
		text:  view(src),
		nodes: anything.nodes,
		lim:   lim,
		keys:  keys[:0],
	}
	if p.document(root, depth); p.err != nil {
		return Value{}, 0, p.err
	}
	own := bytes.Clone(src)
	b := builder{
		src:         own,
		text:        view(own),
		openMembers: make([]Member, 0, min(p.values, 32)),
	}
	return b.value(), p.values, nil
}

// A builder builds the tree of a valid text. Strings without escapes share its memory.
type builder struct {
	src  []byte
	text string
	pos  int

	// The elements of the open arrays and objects, innermost last. Each is copied once, with
	// its final length. The outermost object, often the only one, uses the remaining slice, and
	// so does a long outermost array.
	openItems   []Value
	openMembers []Member
	level       int
}

func (b *builder) value() Value {
	b.space()
	switch b.src[b.pos] {
	case '"':
		return Value{Kind: String, Text: b.str()}
	case '{':
		return Value{Kind: Object, Members: b.members()}
	case '[':
		return Value{Kind: Array, Items: b.items()}
	case 't':
		b.pos += len("true")
		return Value{Kind: Bool, Bool: true}
	case 'f':
		b.pos += len("false")
		return Value{Kind: Bool}
	case 'n':
		b.pos += len("null")
		return Value{Kind: Null}
	}

	n, end, _ := scanNum(b.text, b.pos)
	b.pos = end
	return Value{Kind: Number, Num: n}
}

func (b *builder) space() {
	for isSpace(b.src[b.pos]) {
		b.pos++
	}
}

// more steps over the opening bracket or comma and white space. It returns false after the
// closing bracket.
func (b *builder) more() bool {
	b.space()
	c := b.src[b.pos]
	b.pos++
	if c == ']' || c == '}' {
		return false
	}
	b.space()
	if c = b.src[b.pos]; c == ']' || c == '}' { // an empty array or object
		b.pos++
		return false
	}
	return true
}

// manyItems is the length from which an outermost array uses the slice of open elements itself.
const manyItems = 1 << 10

func (b *builder) items() []Value {
	outer := len(b.openItems)
	b.level++
	for b.more() {
		v := b.value()
		b.openItems = append(room(b.openItems), v)
	}
	if b.level--; outer == 0 && len(b.openItems) > max(manyItems, cap(b.openItems)/2) {
		items := b.openItems
		b.openItems = nil
		return items
	}
	items := append([]Value(nil), b.openItems[outer:]...)
	b.openItems = b.openItems[:outer]
	return items
}

func (b *builder) members() []Member {
	outer := len(b.openMembers)
	b.level++
	for b.more() {
		key := b.str()
		b.space()
		b.pos++ // the colon
		v := b.value()
		b.openMembers = append(room(b.openMembers), Member{key, v})
	}

	if b.level--; b.level == 0 && len(b.openMembers) > 0 {
		return b.openMembers
	}
	members := append([]Member(nil), b.openMembers[outer:]...)
	b.openMembers = b.openMembers[:outer]
	return members
}

// room doubles a full slice. append would grow a large one by a quarter each time, and so allocate
// five times its final size instead of twice.
func room[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	return slices.Grow(s, max(len(s), 8))
}

func (b *builder) str() string {
	text, escaped := b.quoted()
	if escaped {
		return string(unescape(nil, text))
	}
	return text
}

// quoted steps over a string and returns the text between its quotes.
func (b *builder) quoted() (text string, escaped bool) {
	start := b.pos + 1
	end := textEnd(b.src, start)
	for b.src[end] == '\\' {
		escaped = true
		end = textEnd(b.src, end+2)
	}
	b.pos = end + 1
	return b.text[start:end], escaped
}
