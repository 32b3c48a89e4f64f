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

// Reader keeps the first thing that is wrong with a message and goes
// on, so that what reads a message reads like the message.
type Reader struct {
	err     error
	checked bool // the whole text is sound
}

// Fail keeps the first error.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Err is the first thing that is wrong: an *Error, unless a caller of
// Fail had another.
func (r *Reader) Err() error { return r.err }

// Fields is an object whose members are read by name. Names are exact.
// Who asks for a member that is missing or is something else gets
// nothing of it, and the reader an error.
type Fields struct {
	*Reader
	Path    string // "tools[2]"; "" for the message as a whole
	Source  []byte // its text
	members []Member
}

// Read reads a message that must be one object that all readers
// understand alike. Of any other there is nothing but an error.
func Read(text []byte, lim value.Limits) Fields {
	out := Salvage(text, lim)
	if out.err != nil {
		return Fields{Reader: out.Reader}
	}
	return out
}

// Salvage is Read that tells apart what it can of a message that is not
// sound, beside the error: the members of known names, each of which is
// checked where it is read.
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

// Fields reads the text of an object that stands at a path, or only its
// members of known names. In a text that is not sound a name may stand
// twice: no reading of such an object is right.
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

// Given is the text of a member as it stands there, null too; false
// when it is absent.
func (f Fields) Given(name string) ([]byte, bool) {
	for i := range f.members {
		if f.members[i].Name == name {
			return f.members[i].Raw, true
		}
	}
	return nil, false
}

// At is the path of a member.
func (f Fields) At(name string) string { return strings.TrimPrefix(f.Path+"."+name, ".") }

// Expect fails at a member.
func (f Fields) Expect(name, expected string) {
	f.Fail(&Error{Path: f.At(name), Expected: expected})
}

// refuse fails at a member for what stands there.
func (f Fields) refuse(name, expected string) {
	f.Fail(&Error{Path: f.At(name), Expected: expected, Found: Describe(f.Raw(name))})
}

// Members are all members in source order.
func (f Fields) Members() []Member { return f.members }

// Raw is the text of a member, nil when it is absent or null.
func (f Fields) Raw(name string) []byte {
	raw, _ := f.Given(name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Has reports whether a member is there and not null.
func (f Fields) Has(name string) bool { return f.Raw(name) != nil }

// String reads the text of a string that stands at a path. It is false
// for what is no string.
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

// Need is a string that must be there, though it may be empty.
func (f Fields) Need(name string) string {
	s, _ := f.String(f.At(name), f.Raw(name))
	return s
}

// NonEmpty is a string that must be there and not be empty.
func (f Fields) NonEmpty(name string) string {
	s := f.Text(name)
	if s == "" {
		f.Fail(&Error{Path: f.At(name), Expected: "a string", Found: "none"})
	}

	return s
}

// Text is a string, empty when it is absent.
func (f Fields) Text(name string) string {
	if s := f.Optional(name); s != nil {
		return *s
	}
	return ""
}

// Optional is a string, nil when it is absent or is none.
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

// Bool is a boolean, nil when it is absent.
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

// Int is a whole number within bounds in digits alone: some readers
// refuse 1.0 and 1e0, or take them for something else. It is 0 when it
// is absent.
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

// Object is an object; one without members when it is absent.
func (f Fields) Object(name string) Fields {
	if !f.Has(name) {
		return Fields{Reader: f.Reader, Path: f.At(name)}
	}
	return f.Required(name)
}

// Required is an object that must be there.
func (f Fields) Required(name string) Fields { return f.Reader.Fields(f.At(name), f.Raw(name)) }

// Elements walks over the elements of an array with their paths, at
// most so many. What is no array has none.
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

// Objects are the elements of an array of objects; none when it is absent.
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
