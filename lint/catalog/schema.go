package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/value"
)

// Type is the set of values that a JSON Schema accepts.
type Type struct {
	Values condition.Values
	Enum   []value.Value // all values, if the schema lists them, or nil
	Fields []Field       // of objects
	Closed bool          // as far as the schema says, objects have no fields except these

	open   bool // the schema says that there may be other fields
	arrays bool // arrays are accepted
}

// Field is one field of an object.
type Field struct {
	Name     string
	Required bool
	Type     Type
}

func anything() Type { return Type{Values: condition.AnyValue(), arrays: true} }

func objects() condition.Values { return condition.OfKind(value.Object) }

// These limit the cost of one schema. A part is a schema, a field or a listed value, and is
// counted each time it is read. A schema that is nested more deeply than maxNesting accepts
// anything. So does a schema that refers to itself.
const (
	maxParts   = 20_000
	maxTotal   = 500_000 // parts of all schemas of a list
	maxFields  = 2_000   // of one object
	maxListed  = 2_000   // values of an enum; a longer enum is ignored
	maxNesting = 24
)

// arguments reads the schema of a tool's arguments, which are always an object.
func (r *reader) arguments(schema value.Value, path []string) (Type, error) {
	own := schemaReader{root: schema, left: maxParts}
	t, err := own.read(schema, path, 0)
	if r.parts += maxParts - own.left; err == nil && r.parts > maxTotal {
		err = wrong(
			path,
			"the JSON Schemas of this list have more than %d parts, which is too much to read",
			maxTotal,
		)
	}

	t.Values, t.Enum = objects(), nil
	t.arrays = false
	return t, err
}

type schemaReader struct {
	root value.Value
	left int // parts that may still be read
}

// read reads one schema. Each keyword narrows the type further.
func (r *schemaReader) read(s value.Value, path []string, depth int) (Type, error) {
	if err := r.spend(1, path); err != nil {
		return Type{}, err
	}
	switch {
	case s.Kind == value.Bool && !s.Bool:
		return Type{}, nil
	case s.Kind == value.Bool, depth > maxNesting:
		return anything(), nil
	case s.Kind != value.Object:
		return Type{}, wrong(path, "expected a JSON Schema, an object; found %s", kind(s))
	}

	t := anything()
	for _, m := range s.Members {
		more, err := r.keyword(s, m, below(path, m.Key), depth+1)
		if err != nil {
			return t, err
		}
		t = t.and(more)
	}

	if nullable, _ := s.Get("nullable"); nullable.Bool {
		t.Values = t.Values.Or(condition.OfKind(value.Null))
	}
	t.Enum = slices.DeleteFunc(t.Enum, func(v value.Value) bool {
		return condition.Exactly(v).And(t.Values).Empty() // in this order it costs little
	})
	return t, nil
}

// spend takes parts out of the budget.
func (r *schemaReader) spend(parts int, path []string) error {
	if r.left -= parts; r.left < 0 {
		return wrong(path, "this JSON Schema has more than %d parts, which is too much to read", maxParts)
	}

	return nil
}

// few checks the number of fields of one object and takes them out of the budget.
func (r *schemaReader) few(fields int, path []string) error {
	if fields > maxFields {
		return wrong(path, "%d fields are more than the %d that are read", fields, maxFields)
	}

	return r.spend(fields, path)
}

// keyword returns the type that one keyword accepts.
func (r *schemaReader) keyword(s value.Value, m value.Member, path []string, depth int) (Type, error) {
	switch m.Key {
	case "type":
		return types(m.Value, path)
	case "const":
		return listed([]value.Value{m.Value}), nil
	case "enum":
		if m.Value.Kind != value.Array {
			return Type{}, wrong(path, "expected a list of values, found %s", kind(m.Value))
		}

		if err := r.spend(len(m.Value.Items), path); err != nil {
			return Type{}, err
		}
		if len(m.Value.Items) > maxListed {
			return anything(), nil
		}
		return listed(m.Value.Items), nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return limit(s, m), nil
	case "$ref":
		return r.reference(m.Value, path, depth)
	case "allOf", "anyOf", "oneOf":
		return r.several(m, path, depth)
	case "properties":
		return r.properties(s, m.Value, path, depth)
	case "required":
		if err := r.few(len(m.Value.Items), path); err != nil {
			return Type{}, err
		}
		return required(m.Value), nil
	case "additionalProperties", "unevaluatedProperties":
		t := anything()
		t.Closed = m.Value.Kind == value.Bool && !m.Value.Bool
		t.open = !t.Closed
		return t, nil
	case "patternProperties", "if", "then", "else", "dependentSchemas", "dependencies", "$dynamicRef",
		"$recursiveRef":
		t := anything()
		t.open = true
		return t, nil
	}

	return anything(), nil
}

// types reads the value of the keyword "type".
func types(v value.Value, path []string) (Type, error) {
	names := []value.Value{v}
	if v.Kind == value.Array {
		names = v.Items
	}
	var t Type
	for _, name := range names {
		switch name.Text {
		case "null":
			t.Values = t.Values.Or(condition.OfKind(value.Null))
		case "boolean":
			t.Values = t.Values.Or(condition.OfKind(value.Bool))
		case "integer":
			t.Values = t.Values.Or(condition.Integers())
		case "number":
			t.Values = t.Values.Or(condition.OfKind(value.Number))
		case "string":
			t.Values = t.Values.Or(condition.OfKind(value.String))
		case "object":
			t.Values = t.Values.Or(objects())
		case "array":
			t.Values, t.arrays = t.Values.Or(objects()), true
		default:
			return t, wrong(
				path,
				"expected types of JSON Schema, such as string; found %s",
				name.AppendJSON(nil),
			)
		}
	}

	return t, nil
}

// listed returns the type that accepts exactly these values.
func listed(values []value.Value) Type {
	t := Type{Enum: append([]value.Value{}, values...), arrays: true}
	t.Values = union(values)
	return t
}

// union returns a set of values. It splits the list in halves, so that long lists cost little.
func union(values []value.Value) condition.Values {
	switch n := len(values); n {
	case 0:
		return condition.Values{}
	case 1:
		return condition.Exactly(values[0])
	default:
		return union(values[:n/2]).Or(union(values[n/2:]))
	}
}

// limit reads a numeric bound. Such a bound doesn't restrict values that aren't numbers.
func limit(s value.Value, m value.Member) Type {
	t := anything()
	if m.Value.Kind != value.Number {
		return t // older drafts have a boolean here, next to minimum
	}
	exclusive, _ := s.Get("exclusive" + strings.ToUpper(m.Key[:1]) + m.Key[1:])
	open := strings.HasPrefix(m.Key, "exclusive") || exclusive.Bool
	bound := condition.AtMost(m.Value.Num, open)
	if strings.HasSuffix(strings.ToLower(m.Key), "minimum") {
		bound = condition.AtLeast(m.Value.Num, open)
	}
	t.Values = bound
	for _, k := range []value.Kind{value.Null, value.Bool, value.String, value.Object} {
		t.Values = t.Values.Or(condition.OfKind(k))
	}
	return t
}

// reference reads the schema that a $ref points to in the same document. Other documents aren't
// fetched, so a reference to one accepts anything.
func (r *schemaReader) reference(ref value.Value, path []string, depth int) (Type, error) {
	pointer, local := strings.CutPrefix(ref.Text, "#")
	unknown := anything()
	unknown.open = true
	if !local || pointer != "" && pointer[0] != '/' {
		return unknown, nil
	}
	var segments []string
	if pointer != "" {
		segments = strings.Split(pointer[1:], "/")
	}
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	target, found := r.root.Get(segments...)
	if !found {
		return Type{}, wrong(path, "nothing stands at %s", ref.AppendJSON(nil))
	}
	if depth > maxNesting {
		return unknown, nil
	}
	return r.read(target, path, depth)
}

// several reads a list of schemas for allOf, anyOf or oneOf.
func (r *schemaReader) several(m value.Member, path []string, depth int) (Type, error) {
	if m.Value.Kind != value.Array || len(m.Value.Items) == 0 {
		return Type{}, wrong(path, "expected a list of JSON Schemas, found %s", kind(m.Value))
	}

	var t Type
	for i, s := range m.Value.Items {
		one, err := r.read(s, below(path, strconv.Itoa(i)), depth)
		switch {
		case err != nil:
			return t, err
		case i == 0:
			t = one
		case m.Key == "allOf":
			t = t.and(one)
		default:
			t = t.or(one)
		}
	}

	return t, nil
}

// properties reads the fields of an object.
func (r *schemaReader) properties(s, v value.Value, path []string, depth int) (Type, error) {
	if v.Kind != value.Object {
		return Type{}, wrong(path, "expected the fields of an object, found %s", kind(v))
	}

	if err := r.few(len(v.Members), path); err != nil {
		return Type{}, err
	}
	t := anything()
	t.Closed = true
	needed, _ := s.Get("required")
	for _, m := range v.Members {
		field, err := r.read(m.Value, below(path, m.Key), depth)
		if err != nil {
			return t, err
		}
		t.Fields = append(t.Fields, Field{
			Name: m.Key,
			Type: field,
			Required: slices.ContainsFunc(
				needed.Items,
				func(n value.Value) bool { return n.Kind == value.String && n.Text == m.Key },
			),
		})
	}

	return t, nil
}

// required reads the names of required fields. It accepts any value in them.
func required(v value.Value) Type {
	t := anything()
	for _, name := range v.Items {
		if name.Kind == value.String {
			t.Fields = append(t.Fields, Field{
				Name:     name.Text,
				Required: true,
				Type:     anything(),
			})
		}
	}

	return t
}

// and returns the type that both types accept.
func (t Type) and(u Type) Type {
	both := Type{
		Values: t.Values.And(u.Values),
		Enum:   t.Enum,
		Closed: t.Closed || u.Closed,
		Fields: slices.Clone(t.Fields),
		open:   t.open || u.open,
		arrays: t.arrays && u.arrays,
	}
	if both.Enum == nil {
		both.Enum = u.Enum
	}
	for _, f := range u.Fields {
		i := slices.IndexFunc(both.Fields, func(o Field) bool { return o.Name == f.Name })
		if i < 0 {
			both.Fields = append(both.Fields, f)
			continue
		}
		own := &both.Fields[i]
		own.Required, own.Type = own.Required || f.Required, own.Type.and(f.Type)
	}

	return both
}

// or returns a type for values that at least one of the two types accepts.
func (t Type) or(u Type) Type {
	either := Type{
		Values: t.Values.Or(u.Values),
		open:   t.open || u.open,
		arrays: t.arrays || u.arrays,
	}
	if t.Enum != nil && u.Enum != nil {
		either.Enum = slices.Concat(t.Enum, u.Enum)
	}
	switch {
	case !t.Values.Has(value.Object):
		either.Closed, either.Fields = u.Closed, u.Fields
		return either
	case !u.Values.Has(value.Object):
		either.Closed, either.Fields = t.Closed, t.Fields
		return either
	}

	either.Closed = t.Closed && u.Closed
	for _, f := range t.Fields {
		g := u.field(f.Name)
		switch {
		case g != nil:
			f.Type, f.Required = f.Type.or(g.Type), f.Required && g.Required
		case u.sealed():
			f.Required = false
		default:
			f.Type, f.Required = anything(), false
		}

		either.Fields = append(either.Fields, f)
	}

	for _, g := range u.Fields {
		if t.field(g.Name) != nil {
			continue
		}
		if g.Required = false; !t.sealed() {
			g.Type = anything()
		}
		either.Fields = append(either.Fields, g)
	}

	return either
}

func (t *Type) field(name string) *Field {
	i := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Fields[i]
}

// sealed reports whether objects have no fields except the known ones.
func (t *Type) sealed() bool { return t.Closed && !t.open }

// Open reports whether values may have members that the schema does not name,
// or are lists.
func (t *Type) Open() bool { return t.arrays || t.Values.Has(value.Object) && !t.sealed() }

// At returns the values that are possible at a place of the arguments. The set includes the
// missing value if the place can be missing. At also returns the schema's type for the place,
// or nil if the schema says nothing about it or allows no value.
func (t *Type) At(place []string) (condition.Values, *Type) {
	missing := condition.Values{}
	for i, name := range place {
		f := t.field(name)
		switch {
		case f == nil && t.sealed():
			return condition.Missing(), nil
		case f == nil:
			return condition.AnyValue().Or(condition.Missing()), nil
		case !f.Required, i > 0 && (t.arrays || !t.only(value.Object)):
			missing = condition.Missing()
		}

		t = &f.Type
	}

	return t.Values.Or(missing), t
}

// only reports whether all accepted values are of one kind.
func (t *Type) only(kind value.Kind) bool {
	return !slices.ContainsFunc(
		[]value.Kind{value.Null, value.Bool, value.Number, value.String, value.Object},
		func(k value.Kind) bool { return k != kind && t.Values.Has(k) },
	)
}

// Names lists the fields that conditions can name, including the fields of nested objects.
func (t *Type) Names() []string {
	var names []string
	for _, f := range t.Fields {
		names = append(names, f.Name)
		for _, inner := range f.Type.Fields {
			names = append(names, f.Name+"."+inner.Name)
		}
	}

	return names
}

// String describes the accepted values in words: "one of open, closed" or "a string or null".
func (t *Type) String() string {
	const shown = 8
	var words []string
	if t.Enum != nil {
		for _, v := range t.Enum[:min(len(t.Enum), shown)] {
			words = append(words, Word(v))
		}
		if len(t.Enum) > shown {
			words = append(words, "…")
		}
		return "one of " + strings.Join(words, ", ")
	}

	number, object := "a number", "an object"
	if t.Values.Whole() {
		number = "an integer"
	}
	if t.arrays && len(t.Fields) == 0 {
		object = "an array"
	}
	for _, k := range []struct {
		kind value.Kind
		word string
	}{
		{value.String, "a string"},
		{value.Number, number},
		{value.Bool, "true or false"},
		{value.Object, object},
		{value.Null, "null"},
	} {
		if t.Values.Has(k.kind) {
			words = append(words, k.word)
		}
	}

	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " or ")
}

// Word returns a value as messages show it.
func Word(v value.Value) string {
	if v.Kind == value.String {
		return v.Text
	}
	return string(v.AppendJSON(nil))
}
