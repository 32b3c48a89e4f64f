package document

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Format is a format of text that a schema names.
type Format struct {
	// Read parses a text. problem describes what is wrong with it ("is no duration") and expected
	// what would be valid.
	Read func(text string) (value any, problem, expected string)
	// Strict formats report their own problem for other values too, instead of asking for a text.
	Strict bool
}

// Check checks a whole object, to which it gets a pointer.
type Check func(d *Decoder, n *yamldoc.Node, object any)

// Decoder decodes a document into a struct by a schema. It finds fields by the tag `doc`.
type Decoder struct {
	Formats map[string]Format
	// Checks check objects by the name of their schema in $defs.
	Checks map[string]Check
	// Rule is the id of all findings.
	Rule     string
	Findings []diag.Finding
}

// Wrong adds a finding that makes the document unusable.
func (d *Decoder) Wrong(n *yamldoc.Node, message, expected, nearest string) {
	d.Findings = append(d.Findings, diag.Finding{
		Rule:     d.Rule,
		Severity: diag.Error,
		Stops:    true,
		Range:    n.Range,
		Message:  message,
		Expected: expected,
		Nearest:  nearest,
	})
}

// Decode decodes a node into the target of a pointer. Missing fields get the schema's defaults.
func (d *Decoder) Decode(n *yamldoc.Node, s *Schema, into any) {
	d.value(n, s, reflect.ValueOf(into).Elem())
}

func (d *Decoder) value(n *yamldoc.Node, s *Schema, v reflect.Value) {
	s = s.Resolved()
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch s.Type {
	case "object":
		d.mapping(n, s, v)
	case "array":
		d.list(n, s, v)
	case "boolean":
		if n.Kind != yamldoc.Bool {
			d.Wrong(n, "this is "+article(n.Kind), "true or false", "")
			return
		}
		v.SetBool(n.Bool)
	case "integer":
		i, err := strconv.Atoi(n.Text)
		if n.Kind != yamldoc.Number || err != nil || i <= 0 {
			d.Wrong(n, "this is no count", "a whole number above 0", "")
			return
		}
		v.SetInt(int64(i))
	default:
		d.text(n, s, v)
	}
}

func (d *Decoder) text(n *yamldoc.Node, s *Schema, v reflect.Value) {
	plain := n.Kind == yamldoc.String && (n.Text != "" || s.Empty)
	number := n.Kind == yamldoc.Number && s.Type == "size"
	if !plain && !number && !d.Formats[s.Format].Strict {
		expected := "a text that is not empty"
		if s.Empty {
			expected = "a text; write numbers and the like in quotes"
		}
		d.Wrong(n, "this is "+article(n.Kind), expected, "")
		return
	}

	text := n.Text
	if !plain && !number {
		text = ""
	}
	switch problem, expected := d.Set(s, v, text); {
	case problem == "":
	case len(s.Enum) > 0:
		d.Wrong(n, fmt.Sprintf("%q %s", text, problem), expected, diag.Nearest(text, s.Enum))
	default:
		d.Wrong(n, "this "+problem, expected, "")
	}
}

// Set parses a text into a field, or appends it if the field is a list. It returns what is wrong
// with the text and what would be valid.
func (d *Decoder) Set(s *Schema, v reflect.Value, text string) (problem, expected string) {
	s = s.Resolved()
	if s.Items != nil {
		item := reflect.New(v.Type().Elem()).Elem()
		if problem, expected = d.Set(s.Items, item, text); problem == "" {
			v.Set(reflect.Append(v, item))
		}
		return problem, expected
	}

	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return "is not known here", alternatives(s.Enum)
	}
	var value any = text
	if read := d.Formats[s.Format].Read; read != nil {
		if value, problem, expected = read(text); problem != "" {
			return problem, expected
		}
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))

	return "", ""
}

// alternatives joins words: "keep or deny". More than three words become "one of a, b, c, d".
func alternatives(words []string) string {
	last := len(words) - 1
	if last > 2 {
		return "one of " + strings.Join(words, ", ")
	}

	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// mapping decodes an object, or a table of texts. An empty document is an empty object.
func (d *Decoder) mapping(n *yamldoc.Node, s *Schema, v reflect.Value) {
	if n.Kind != yamldoc.Mapping && (n.Kind != yamldoc.Null || v.Kind() == reflect.Map) {
		d.Wrong(n, "this is "+article(n.Kind), "an object", "")
		return
	}
	if v.Kind() == reflect.Map {
		d.table(n, s, v)
		return
	}

	d.Default(s, v)
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, f := range n.Fields {
		property, known := s.Properties[f.Key.Text]
		if where := s.Elsewhere[f.Key.Text]; where != "" {
			d.Wrong(f.Key, f.Key.Text+" is no field of this "+s.Title, where, "")
			continue
		}
		if !known {
			message := fmt.Sprintf("no field is called %q here", f.Key.Text)
			d.Wrong(f.Key, message, "one of "+strings.Join(names, ", "), diag.Nearest(f.Key.Text, names))
			continue
		}
		d.value(f.Value, property, Field(v, f.Key.Text))
	}

	d.whole(n, s, v)
}

// whole checks an object after its fields.
func (d *Decoder) whole(n *yamldoc.Node, s *Schema, v reflect.Value) {
	missing := slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return n.Get(name) != nil })
	if len(missing) > 0 {
		d.Wrong(n, "this "+s.Title+" lacks "+cmp.Or(s.Lacks, strings.Join(missing, " and ")), s.Lacking, "")
	}
	if check := d.Checks[s.name]; check != nil {
		check(d, n, v.Addr().Interface())
	}
}

func (d *Decoder) table(n *yamldoc.Node, s *Schema, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, f := range n.Fields {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(f.Value, s.AdditionalProperties, item)
		v.SetMapIndex(reflect.ValueOf(f.Key.Text), item)
	}
}

// list decodes every item of a list. A single item may be written without a list.
func (d *Decoder) list(n *yamldoc.Node, s *Schema, v reflect.Value) {
	items := n.Items
	if n.Kind != yamldoc.Sequence {
		items = []*yamldoc.Node{n}
	}
	v.Set(reflect.Zero(v.Type()))
	for _, item := range items {
		next := reflect.New(v.Type().Elem()).Elem()
		before := len(d.Findings)
		d.value(item, s.Items, next)
		if next.Kind() != reflect.Struct && len(d.Findings) > before {
			continue // a text that is none
		}
		d.twice(item, s, v, next)
		v.Set(reflect.Append(v, next))
	}
}

// twice reports an item with the name of an earlier one.
func (d *Decoder) twice(n *yamldoc.Node, s *Schema, all, next reflect.Value) {
	if s.Unique == "" {
		return
	}
	name := Field(next, s.Unique).String()
	what := s.Items.Resolved().Title
	if s.Unique != "name" {
		what += " of " + s.Unique
	}
	for i := range all.Len() {
		if name != "" && Field(all.Index(i), s.Unique).String() == name {
			d.Wrong(n, fmt.Sprintf("another %s is called %q", what, name), "a name of its own", "")
			return
		}
	}
}

// Default sets the schema's defaults in a struct.
func (d *Decoder) Default(s *Schema, v reflect.Value) {
	for key, property := range s.Resolved().Properties {
		field := Field(v, key)
		property = property.Resolved()
		switch {
		case !field.IsValid():
		case property.Default != "" && field.Kind() == reflect.String: // a path is not seen from the document
			field.SetString(property.Default)
		case property.Type == "integer" && property.Default != "":
			count, _ := strconv.Atoi(property.Default)
			field.SetInt(int64(count))
		case property.Default != "":
			d.Set(property, field, property.Default)
		case field.Kind() == reflect.Struct:
			d.Default(property, field)
		}
	}
}

// Open is a struct whose fields are provided by other code.
type Open interface {
	// Place returns the value that a field is decoded into, or the zero Value if there is none.
	Place(name string) reflect.Value
}

// Field returns the field of a struct with a tag, including fields of structs that are embedded
// without one.
func Field(v reflect.Value, name string) reflect.Value {
	if open, ok := v.Addr().Interface().(Open); ok {
		return open.Place(name)
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, tagged := field.Tag.Lookup("doc")
		switch {
		case tag == name:
			return v.Field(i)
		case !tagged && field.Anonymous:
			if found := Field(v.Field(i), name); found.IsValid() {
				return found
			}
		}
	}

	return reflect.Value{}
}

// Duration returns the format of durations such as 10s.
func Duration() Format {
	return Format{
		Strict: true,
		Read: func(text string) (any, string, string) {
			d, err := time.ParseDuration(text)
			if err != nil || d < 0 {
				return nil, "is no duration", "one such as 10s or 2m"
			}

			return d, "", ""
		},
	}
}

func article(k yamldoc.Kind) string {
	switch k {
	case yamldoc.Null:
		return "null"
	case yamldoc.Sequence, yamldoc.Mapping:
		return "an " + k.String()
	}

	return "a " + k.String()
}

// Target returns the value that a pointer points to.
func Target(pointer any) reflect.Value { return reflect.ValueOf(pointer).Elem() }
