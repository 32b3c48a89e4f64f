package jsonmsg

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Reader records the first error of a message, so that code can read all members without
// checking errors in between.
type Reader struct {
	err     error
	checked bool // the whole text is valid
}

// Fail records the first error.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Err returns the first error: an *Error, unless Fail was called with another.
func (r *Reader) Err() error { return r.err }

// Fields is an object whose members are read by name. Names are case-sensitive. Reading a
// member that is missing or has the wrong type returns a zero value and records an error.
type Fields struct {
	*Reader
	Path    string // such as "tools[2]"; empty for the message as a whole
	Source  []byte // the text of the object
	members []Member
}

// Read reads a message, which must be one object that all readers understand in the same way.
// Otherwise it has no members and an error.
func Read(text []byte, lim value.Limits) Fields {
	out := Salvage(text, lim)
	if out.err != nil {
		return Fields{Reader: out.Reader}
	}
	return out
}

// Salvage is like Read, but returns as many members of a broken message as possible, in
// addition to the error: those with known names. Each is checked when it is read.
func Salvage(text []byte, lim value.Limits, known ...string) Fields {
	r := &Reader{}
	_, err := Check(text, lim)
	r.checked = err == nil
	if err != nil {
		r.Fail(&Error{Expected: "one JSON object that all readers understand alike", Err: err})
	}
	var unsound *value.Error
	if errors.As(err, &unsound) && unsound.Code == value.TooLarge {
		return Fields{Reader: r}
	}
	return r.Fields("", text, known...)
}

// Fields reads the text of an object at a path, or only its members with known names. If the
// message is not valid, a name may occur twice; such an object has no members.
func (r *Reader) Fields(path string, raw []byte, known ...string) Fields {
	out := Fields{Reader: r, Path: path, Source: raw}
	if !IsObject(raw) {
		r.Fail(&Error{Path: path, Expected: "an object", Found: Describe(raw)})
		return out
	}

	if r.checked {
		out.members = Members(raw)
		return out
	}

	seen := map[string]bool{}
	for m, err := range value.SplitObject(raw) {
		switch {
		case err == nil && len(known) > 0 && !slices.Contains(known, m.Key):
			continue
		case err != nil || seen[m.Key]:
			r.Fail(&Error{Path: path, Expected: "an object", Err: err})
			return Fields{Reader: r, Path: path}
		}

		seen[m.Key] = true
		out.members = append(out.members, Member{Name: m.Key, Raw: m.Raw})
	}

	return out
}

// Given returns the text of a member, which may be null, and false if it is absent.
func (f Fields) Given(name string) ([]byte, bool) {
	for i := range f.members {
		if f.members[i].Name == name {
			return f.members[i].Raw, true
		}
	}
	return nil, false
}

// At returns the path of a member.
func (f Fields) At(name string) string { return strings.TrimPrefix(f.Path+"."+name, ".") }

// Expect records an error at a member.
func (f Fields) Expect(name, expected string) {
	f.Fail(&Error{Path: f.At(name), Expected: expected})
}

// refuse records an error at a member, with a description of its value.
func (f Fields) refuse(name, expected string) {
	f.Fail(&Error{Path: f.At(name), Expected: expected, Found: Describe(f.Raw(name))})
}

// Members returns all members in source order.
func (f Fields) Members() []Member { return f.members }

// Raw returns the text of a member, or nil if it is absent or null.
func (f Fields) Raw(name string) []byte {
	raw, _ := f.Given(name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Has reports whether a member is present and not null.
func (f Fields) Has(name string) bool { return f.Raw(name) != nil }

// String decodes the string at a path. It returns false if raw is not a string.
func (r *Reader) String(path string, raw []byte) (string, bool) {
	s, ok := ReadString(raw)
	switch {
	case ok:
	case Describe(raw) == "a string":
		r.Fail(&Error{Path: path, Expected: "a string that all readers understand alike"})
	default:
		r.Fail(&Error{Path: path, Expected: "a string", Found: Describe(raw)})
	}

	return s, ok
}

// Need returns a required string, which may be empty.
func (f Fields) Need(name string) string {
	s, _ := f.String(f.At(name), f.Raw(name))
	return s
}

// NonEmpty returns a required string that must not be empty.
func (f Fields) NonEmpty(name string) string {
	s := f.Text(name)
	if s == "" {
		f.Fail(&Error{Path: f.At(name), Expected: "a string", Found: "none"})
	}

	return s
}

// Text returns a string, or an empty one if it is absent.
func (f Fields) Text(name string) string {
	if s := f.Optional(name); s != nil {
		return *s
	}
	return ""
}

// Optional returns a string, or nil if it is absent or not valid.
func (f Fields) Optional(name string) *string {
	if !f.Has(name) {
		return nil
	}
	s, ok := f.String(f.At(name), f.Raw(name))
	if !ok {
		return nil
	}
	return &s
}

// Bool returns a boolean, or nil if it is absent.
func (f Fields) Bool(name string) *bool {
	raw := f.Raw(name)
	if raw == nil {
		return nil
	}
	is := string(raw) == "true"
	if !is && string(raw) != "false" {
		f.refuse(name, "true or false")
	}
	return &is
}

// Int returns a whole number within bounds, or 0 if it is absent. It must consist of digits
// alone, because some readers refuse 1.0 and 1e0 or misread them.
func (f Fields) Int(name string, least, most int64) int64 {
	raw := f.Raw(name)
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < least || n > most || string(raw) != strconv.FormatInt(n, 10) {
		f.refuse(name, fmt.Sprintf("a whole number from %d to %d, in digits", least, most))
		return 0
	}
	return n
}

// Object returns an object, which has no members if it is absent.
func (f Fields) Object(name string) Fields {
	if !f.Has(name) {
		return Fields{Reader: f.Reader, Path: f.At(name)}
	}
	return f.Required(name)
}

// Required returns a required object.
func (f Fields) Required(name string) Fields { return f.Reader.Fields(f.At(name), f.Raw(name)) }

// Elements iterates over the elements of an array with their paths, up to a limit. It yields
// nothing if the member is not an array.
func (f Fields) Elements(name string, most int) iter.Seq2[string, []byte] {
	path, raw := f.At(name), f.Raw(name)
	return func(yield func(string, []byte) bool) {
		if Describe(raw) != "an array" {
			f.refuse(name, "an array")
			return
		}
		if _, err := Check(raw, Limits()); !f.checked && err != nil {
			f.Fail(&Error{Path: path, Expected: "an array", Err: err})
			return
		}

		c := NewCursor(raw, string(raw))
		for i := range c.Elements() {
			at := c.Pass()
			if i == most {
				f.Fail(&Error{Path: path, Expected: fmt.Sprintf("at most %d elements", most)})
				return
			}
			if !yield(path+"["+strconv.Itoa(i)+"]", raw[at.From:at.To:at.To]) {
				return
			}
		}
	}
}

// Objects returns the elements of an array of objects, or nil if it is absent.
func (f Fields) Objects(name string) []Fields {
	if !f.Has(name) {
		return nil
	}
	var out []Fields
	for path, raw := range f.Elements(name, len(f.Raw(name))) {
		out = append(out, f.Reader.Fields(path, raw))
	}
	return out
}
