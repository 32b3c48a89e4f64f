package jsonmsg

import (
	"encoding/json"
	"slices"
)

// Member is a member of an object with the unchanged text of its value.
type Member struct {
	Name string
	Raw  json.RawMessage

	all Span // position of the whole member in the text of the object
}

// Members returns the members of an object in source order. It returns nil for a text that is
// not an object, or that was not checked and is malformed.
func Members(object []byte) []Member {
	if !IsObject(object) {
		return nil
	}

	var out []Member
	text := string(object)
	c := NewCursor(object, text)
	for more := c.enter('}'); more; more = c.more('}') {
		name, value := c.Pass(), c.Pass()
		if !value.Exists() {
			return nil
		}
		out = append(out, Member{
			Name: String(text[name.From:name.To]),
			Raw:  object[value.From:value.To:value.To],
			all:  Span{name.From, value.To},
		})
	}
	if c.dec.StackDepth() > 0 { // the object has no end
		return nil
	}

	return out
}

// Get returns the text of a member, or nil if the object has none of that name.
func Get(object []byte, name string) json.RawMessage {
	taken, _ := Take(object, name)
	return taken
}

// Take returns the value of a member, and the object without it, which is nil if no member is
// left. A text that is not an object has no members.
func Take(object []byte, name string) (taken, rest json.RawMessage) {
	all := Members(object)
	i := slices.IndexFunc(all, func(m Member) bool { return m.Name == name })
	switch {
	case i < 0:
		return nil, object
	case len(all) == 1:
		return all[i].Raw, nil
	}

	cut := all[i].all
	if i > 0 {
		cut.From = all[i-1].all.To
	} else {
		cut.To = all[1].all.From
	}
	return all[i].Raw, slices.Concat(object[:cut.From], object[cut.To:])
}

// Put returns an object with a member set, as the last one. The rest of the text does not
// change. A text that is not an object is replaced by one.
func Put(object []byte, name string, raw []byte) json.RawMessage {
	_, rest := Take(object, name)
	all := Members(rest)
	member := append(AppendString(nil, name), ':')
	if len(all) == 0 {
		return slices.Concat([]byte{'{'}, member, raw, []byte{'}'})
	}
	end := all[len(all)-1].all.To
	return slices.Concat(rest[:end], []byte{','}, member, raw, rest[end:])
}
