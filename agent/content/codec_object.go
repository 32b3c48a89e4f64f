package content

import (
	"encoding/json"
	"strconv"
)

// span is where a value stands; its end is 0 when there is none.
type span struct{ from, to int32 }

// object is one object of a known kind, its members sorted into their places.
type object struct {
	d        *decoder
	kind     kind
	ref      kindRef
	at       [fields]span
	contents []Content
	extra    []Member
}

func itoa(n int) string { return strconv.Itoa(n) }

func (o *object) name(f field) string { return o.d.w.name(f) }

// walk sorts the members of the object that begins at i. Contents and outputs are read on the way, so that a document is walked over
// once.
func (o *object) walk(i int) int {
	d := o.d
	i, more := first(d.text, i)
	for more {
		name, at := key(d.text, i)
		f := d.w.field(o.kind, name)
		end := o.value(f, at)
		o.sort(f, name, span{int32(at), int32(end)})
		i, more = next(d.text, end)
	}
	return i
}

// value steps over a value. Lists of contents are read meanwhile.
func (o *object) value(f field, at int) int {
	if (f == contentsField && o.d.text[at] == '[' || f == outputsField && o.d.isList(at)) && o.at[f].to == 0 {
		return o.d.elements(o.name(f), at, func(i int) int {
			c, end := o.d.content(i)
			o.contents = append(o.contents, c)
			return end
		})
	}
	return skip(o.d.text, at)
}

// isList tells whether a value is a list of contents. Python's outputs may be lists of anything.
func (d *decoder) isList(i int) bool {
	if d.text[i] != '[' || d.w.shape != python {
		return d.text[i] == '['
	}
	i, more := first(d.text, i)
	for more {
		if d.text[i] != '{' {
			return false
		}
		i, more = next(d.text, skip(d.text, i))
	}
	return true
}

// sort puts a member into its place.
func (o *object) sort(f field, name string, at span) {
	switch {
	case f == oddField:
		o.d.fail(BadShape, name, "some readers take this name for a known one, others don't", nil)
	case f == noField:
		o.extra = append(o.extra, Member{name, o.d.raw(at)})
	case o.at[f].to != 0:
		o.d.fail(BadShape, name, "the member stands twice under different names", nil)
	default:
		o.at[f] = at
	}
}

// has tells whether there is a value that is not null.
func (o *object) has(f field) bool {
	at := o.at[f]
	return at.to != 0 && o.d.text[at.from] != 'n'
}

func (o *object) bad(code Code, f field, expected string) {
	found := "nothing"
	if at := o.at[f]; at.to != 0 {
		found = kindOf(o.d.text[at.from:])
	}
	o.d.fail(code, o.name(f), "expected "+expected+", found "+found, nil)
}

// text reads a string that may be absent.
func (o *object) text(f field) string {
	if !o.has(f) {
		return ""
	}
	return o.need(f)
}

// need reads a string that must be there.
func (o *object) need(f field) string {
	at := o.at[f]
	if at.to == 0 || o.d.text[at.from] != '"' {
		o.bad(BadShape, f, "a string")
		return ""
	}
	return unquote(o.d.text[at.from:at.to])
}

// id reads the id of a request.
func (o *object) id() string {
	if at := o.at[requestIDField]; at.to == 0 || o.d.text[at.from] != '"' {
		o.bad(BadID, requestIDField, "the id of a request")
		return ""
	}
	id := o.need(requestIDField)
	if blank(id) {
		o.d.fail(BadID, o.name(requestIDField), "expected the id of a request, found a blank one", nil)
	}
	return id
}

// flag reads a boolean that may be absent.
func (o *object) flag(f field, absent bool) bool {
	if !o.has(f) {
		return absent
	}
	switch o.d.text[o.at[f].from] {
	case 't':
		return true
	case 'f':
		return false
	}
	o.bad(BadShape, f, "true or false")
	return absent
}

// needFlag reads a boolean that must be there: nobody is taken to have approved, or not, by saying nothing.
func (o *object) needFlag(f field) bool {
	if !o.has(f) {
		o.bad(BadShape, f, "true or false")
	}
	return o.flag(f, false)
}

// raw returns the text of a value, nil for none and for null.
func (o *object) raw(f field) json.RawMessage {
	if !o.has(f) {
		return nil
	}
	return o.d.raw(o.at[f])
}

// arguments are the text of an object, or what a JSON string says.
func (o *object) arguments() json.RawMessage {
	if at := o.at[argumentsField]; !o.has(argumentsField) || o.d.text[at.from] != '"' {
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

// common returns what all objects have.
func (o *object) common() Common {
	props := o.raw(propertiesField)
	if props != nil && props[0] != '{' {
		o.bad(BadShape, propertiesField, "an object")
	}
	if o.d.w.shape == python && emptyObject(props) {
		props = nil // Python always writes the member
	}
	return Common{Properties: props, Extra: o.extra}
}
