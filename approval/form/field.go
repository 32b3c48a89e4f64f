package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// The size limits of the texts in a field's schema.
const (
	mostTitle = 500
	mostHelp  = 5_000
)

// The limits of the patterns in one form. The cost of matching an answer is limited by work: bytes
// of text times the size of the pattern.
const (
	mostPattern  = 1_000      // bytes of one pattern
	mostPatterns = 8 << 10    // bytes of all patterns
	mostSize     = 2_000      // steps of one pattern, see pattern.Size
	mostSizes    = 10_000     // steps of all patterns
	mostWork     = 10_000_000 // for one answer, and for all defaults of a schema
)

var patternBounds = pattern.Bounds{Bytes: mostPattern, Size: mostSize}

// formats are the formats of MCP's form mode.
var formats = map[string]bool{"email": true, "uri": true, "date": true, "date-time": true}

// field reads one property, or the schema of a free text.
func (r *reader) field(path string, doc value.Value, required bool) Field {
	f := Field{Required: required}
	if doc.Kind != value.Object {
		r.refuse(path, "an object, the schema of one field")

		return f
	}
	doc = plain(doc)
	kind, _ := doc.Get("type")
	switch kind.Text {
	case "string":
		r.text(path, doc, &f)
	case "number", "integer":
		f.Type = Type(kind.Text)
		r.number(path, doc, &f)
	case "boolean":
		f.Type = Boolean
		r.members(path, doc, &f, nil, "default")
	case "array":
		r.several(path, doc, &f)
	default:
		r.refuse(
			at(path, "type"),
			`"string", "number", "integer", "boolean", or "array" of options: a form is flat`,
		)
	}

	r.secret(path, doc, &f)
	if f.Default.Kind != value.Absent && r.err == nil {
		r.checkDefault(at(path, "default"), &f)
	}

	return f
}

// plain rewrites a field into the form that MCP's form mode uses, because server libraries write
// the same thing in other ways: a value that may be null (an optional field), const (a single
// option), options without a type, and examples (which have no effect).
func plain(doc value.Value) value.Value {
	out := value.Value{Kind: value.Object}
	for _, m := range doc.Members {
		switch m.Key {
		case "examples":
		case "anyOf":
			if other, ok := orNull(m.Value); ok {
				out.Members = append(out.Members, other.Members...)
				continue
			}
			out.Members = append(out.Members, m)
		case "type":
			if i := slices.IndexFunc(m.Value.Items, isWord("null")); i >= 0 && len(m.Value.Items) == 2 {
				m.Value = m.Value.Items[1-i]
			}
			out.Members = append(out.Members, m)
		case "const":
			out.Members = append(out.Members, value.Member{
				Key:   "enum",
				Value: value.Value{Kind: value.Array, Items: []value.Value{m.Value}},
			})
		case "default":
			if m.Value.Kind != value.Null {
				out.Members = append(out.Members, m)
			}
		default:
			out.Members = append(out.Members, m)
		}
	}

	if _, typed := out.Get("type"); !typed && (has(out, "enum") || has(out, "oneOf")) {
		text := value.Member{Key: "type", Value: value.Value{Kind: value.String, Text: "string"}}
		out.Members = append([]value.Member{text}, out.Members...)
	}
	return out
}

// orNull returns the other schema if one of two schemas accepts only null.
func orNull(anyOf value.Value) (other value.Value, ok bool) {
	if len(anyOf.Items) != 2 {
		return other, false
	}
	i := slices.IndexFunc(anyOf.Items, func(v value.Value) bool {
		kind, _ := v.Get("type")
		return isWord("null")(kind) && len(v.Members) == 1
	})
	if i < 0 || anyOf.Items[1-i].Kind != value.Object {
		return other, false
	}
	return plain(anyOf.Items[1-i]), true
}

func isWord(word string) func(value.Value) bool {
	return func(v value.Value) bool { return v.Kind == value.String && v.Text == word }
}

func has(doc value.Value, key string) bool {
	_, found := doc.Get(key)
	return found
}

// checkDefault requires that the default is a valid answer and that people can see all of it,
// because it is submitted unless they change it.
func (r *reader) checkDefault(path string, f *Field) {
	if !visible(strings.NewReplacer("\r\n", "", "\n", "", "\t", "").Replace(f.Default.Text)) {
		r.refuse(path, "a text of visible characters")
	}
	if r.kept {
		return
	}
	if want := f.wants(f.Default, &r.work); want != "" {
		r.refuse(path, "%s, as every answer", want)
	}
}

// members reads the members that all fields have, and passes the rest to own. It refuses members
// that own does not accept.
func (r *reader) members(
	path string, doc value.Value, f *Field, own func(key string, v value.Value) bool, more string,
) {
	for _, m := range doc.Members {
		here := at(path, m.Key)
		switch m.Key {
		case "type", "$schema":
		case "title":
			f.Title = r.words(here, m.Value)
		case "description":
			f.Help = r.words(here, m.Value)
		case "default":
			f.Default = m.Value
		default:
			if own == nil || !own(m.Key, m.Value) {
				r.unknown(here, "type, title, description, "+more)
			}
		}
	}
}

// text reads the schema of a text: a free text, or one of a list of options.
func (r *reader) text(path string, doc value.Value, f *Field) {
	f.Type = Text
	r.members(path, doc, f, func(key string, v value.Value) bool {
		here := at(path, key)
		switch key {
		case "minLength":
			f.Least = r.count(here, v, MaxText)
		case "maxLength":
			f.Most = r.count(here, v, 1<<30)
		case "format":
			f.Format = v.Text
			if !formats[v.Text] {
				r.refuse(here, "email, uri, date or date-time")
			}
		case "pattern":
			f.pattern = r.pattern(here, v)
		case "enum", "oneOf", "enumNames":
			f.Type = Select
		default:
			return false
		}

		return true
	}, "default, minLength, maxLength, format, pattern, enum, oneOf")

	if f.Type == Select {
		f.Options = r.options(path, doc, "oneOf")
		if f.Least > 0 || f.Most > 0 || f.Format != "" || f.pattern != nil {
			r.refuse(path, "no bounds beside a list of options")
		}
	}

	if f.Most > 0 && f.Least > f.Most {
		r.refuse(at(path, "minLength"), "at most maxLength, %d", f.Most)
	}
}

// number reads the limits of a number.
func (r *reader) number(path string, doc value.Value, f *Field) {
	r.members(path, doc, f, func(key string, v value.Value) bool {
		switch key {
		case "minimum":
			f.Minimum = r.bound(at(path, key), v)
		case "maximum":
			f.Maximum = r.bound(at(path, key), v)
		default:
			return false
		}

		return true
	}, "default, minimum, maximum")
	if f.Minimum != nil && f.Maximum != nil && f.Minimum.Cmp(*f.Maximum) > 0 {
		r.refuse(at(path, "minimum"), "at most maximum, %s", f.Maximum)
	}
}

// several reads a list of options of which any number may be picked.
func (r *reader) several(path string, doc value.Value, f *Field) {
	f.Type = Several
	var items value.Value
	r.members(path, doc, f, func(key string, v value.Value) bool {
		switch key {
		case "items":
			items = v
		case "minItems":
			f.Least = r.count(at(path, key), v, MaxOptions)
		case "maxItems":
			f.Most = r.count(at(path, key), v, MaxOptions)
		case "uniqueItems":
			if v.Kind != value.Bool {
				r.refuse(at(path, key), "true or false; an option is never picked twice")
			}
		default:
			return false
		}

		return true
	}, "default, items, minItems, maxItems")

	kind, _ := items.Get("type")
	_, titled := items.Get("anyOf")
	if items.Kind != value.Object || kind.Text != "string" && !titled {
		r.refuse(at(path, "items"), "the options: a string with enum, or anyOf with const and title")
		return
	}

	for _, m := range items.Members {
		if m.Key != "type" && m.Key != "enum" && m.Key != "anyOf" {
			r.unknown(at(path, "items."+m.Key), "type, enum, anyOf")
		}
	}
	f.Options = r.options(at(path, "items"), items, "anyOf")
	if f.Least > len(f.Options) || f.Most > 0 && f.Least > f.Most {
		r.refuse(at(path, "minItems"), "no more than the options and maxItems allow")
	}
}

// options reads the values that may be picked: a plain enum, with or without the older enumNames,
// or constants with titles.
func (r *reader) options(path string, doc value.Value, titled string) []Option {
	var out []Option
	if list, ok := doc.Get(titled); ok {
		for i, item := range list.Items {
			v, _ := item.Get("const")
			title, named := item.Get("title")
			if v.Kind != value.String || named && title.Kind != value.String || len(item.Members) > 2 ||
				!named && len(item.Members) > 1 {
				r.refuse(
					fmt.Sprintf("%s.%d", at(path, titled), i),
					"an object with const and title, both texts",
				)
			}

			out = append(out, Option{v.Text, title.Text})
		}
	} else {
		enum, _ := doc.Get("enum")
		names, _ := doc.Get("enumNames")
		titles := r.texts(at(path, "enumNames"), names)
		for i, v := range r.texts(at(path, "enum"), enum) {
			o := Option{Value: v}
			if i < len(titles) {
				o.Title = titles[i]
			}
			out = append(out, o)
		}

		if len(titles) > 0 && len(titles) != len(out) {
			r.refuse(at(path, "enumNames"), "as many titles as enum has values, %d", len(out))
		}
	}

	r.checkOptions(path, out)

	return out
}

// checkOptions requires options that people can distinguish.
func (r *reader) checkOptions(path string, options []Option) {
	if len(options) == 0 || len(options) > MaxOptions {
		r.refuse(path, "1 to %d options", MaxOptions)
	}
	seen, titles := map[string]bool{}, map[string]bool{}
	for i := range options {
		o := &options[i]
		if o.Title == "" {
			o.Title = o.Value
		}
		switch {
		case !visible(o.Title) || !visible(o.Value) || len(o.Title) > mostTitle || len(o.Value) > mostTitle:
			r.refuse(
				path,
				"values and titles of visible characters, at most %d bytes: option %d has none",
				mostTitle,
				i,
			)
		case seen[o.Value]:
			r.refuse(path, "values that differ: option %d is there already", i)
		case titles[o.Title]:
			r.refuse(path, "titles that differ: option %d looks like another one", i)
		}

		seen[o.Value], titles[o.Title] = true, true
	}
}

func (r *reader) unknown(path, known string) {
	r.refuse(path, "nothing here: a form is flat and knows %s", known)
}

// words reads a title or a description.
func (r *reader) words(path string, v value.Value) string {
	most := mostTitle
	text := v.Text
	if strings.HasSuffix(path, "description") {
		most = mostHelp
		text = strings.ReplaceAll(text, "\n", " ")
	}
	if v.Kind != value.String || len(v.Text) > most || !visible(text) {
		r.refuse(path, "a text of visible characters, at most %d bytes", most)
	}

	return v.Text
}

// texts reads a list of texts. It returns nil if there is none.
func (r *reader) texts(path string, v value.Value) []string {
	if v.Kind == value.Absent {
		return nil
	}
	if v.Kind != value.Array {
		r.refuse(path, "a list of texts")
	}
	out := make([]string, 0, len(v.Items))
	for i, item := range v.Items {
		if item.Kind != value.String {
			r.refuse(fmt.Sprintf("%s.%d", path, i), "a text")
		}
		out = append(out, item.Text)
	}

	return out
}

// count reads an integer from 0 to most.
func (r *reader) count(path string, v value.Value, most int) int {
	n, err := strconv.Atoi(v.Num.Canonical())
	if v.Kind != value.Number || err != nil || n < 0 || n > most {
		r.refuse(path, "a whole number from 0 to %d", most)
	}

	return n
}

func (r *reader) bound(path string, v value.Value) *value.Num {
	if v.Kind != value.Number {
		r.refuse(path, "a number")
	}

	return &v.Num
}

// pattern reads an RE2 regular expression. If the schema was stored before, the pattern was already
// validated, and is only compiled when the first answer is matched.
func (r *reader) pattern(path string, v value.Value) *pattern.Foreign {
	if v.Kind != value.String {
		r.refuse(path, "a regular expression of RE2")
	}
	p := pattern.NewForeign(v.Text, patternBounds)
	if r.kept || r.err != nil {
		return p
	}
	if r.bytes += len(v.Text); r.bytes > mostPatterns {
		r.refuse(path, "patterns of at most %d bytes in one form", mostPatterns)

		return p
	}
	tree, err := patternBounds.Parse(v.Text)
	if err != nil {
		r.refuse(path, "a regular expression of RE2, at most %d bytes and %d steps: %v", mostPattern, mostSize, err)

		return p
	}
	if r.sizes += pattern.Size(tree); r.sizes > mostSizes {
		r.refuse(path, "patterns of at most %d steps in one form", mostSizes)
	}

	return p
}

func at(path, key string) string {
	if path == "" {
		return key
	}

	return path + "." + key
}

// visible reports whether every character of a text is visible.
func visible(text string) bool { return !strings.ContainsFunc(text, safetext.Hidden) }
