// Package jsonschema validates decoded documents against one JSON
// Schema and returns its failures as data: where, which keyword, what
// is wrong and what would have been right, in plain words. Of oneOf and
// anyOf only the branch the author most likely meant is reported, so
// one mistake is one failure. It is the only package that imports
// santhosh-tekuri/jsonschema, and nothing it does reads a file or the
// network.
//
// Schemas of our own go through Compile. A schema that a stranger wrote
// can be small and yet cost for ever, so those go through
// CompileUntrusted, which bounds what compiling, validating and
// explaining may cost.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled JSON Schema, safe for concurrent use.
type Schema struct {
	compiled *v5.Schema
	raw      any // the schema as decoded JSON: what failures are explained from
}

// Failure is one thing wrong with a document.
type Failure struct {
	// Path leads from the root to the value at fault: keys, and decimal
	// indexes of arrays. For a missing or an unknown property it is the
	// path of the object; for a bad property name (InKey) that of the
	// property.
	Path    []string
	Keyword string // the JSON Schema keyword that failed, such as "required"; "false" where a schema allows nothing
	Message string // one short sentence, lower case, no full stop
	// Expected is what would have been accepted, "" when Message says it.
	Expected string
	InKey    bool     // the key of the last segment is at fault, not its value
	Property string   // required: the first missing property; additionalProperties: the unknown one
	Names    []string // required: all missing properties; additionalProperties: the known ones
	// Nearest is the known name that was probably meant: of an unknown
	// property, of a value outside its enum, or (required) the key of
	// the object that was probably meant to be Property.
	Nearest string

	wants []string // alternatives in words: joined when several branches of a oneOf fail alike
	other bool     // the value is of another type than this keyword is about
}

// errNotEmbedded is what every reference to something outside the
// schema gets.
var errNotEmbedded = errors.New("refers to another document: only references within the schema are loaded")

// Compile reads a schema. References lead nowhere but into the schema
// itself and the meta-schemas of JSON Schema. Formats are not asserted,
// as is usual since 2019-09. The name is for messages.
func Compile(name string, schema []byte) (*Schema, error) {
	return compileWith(v5.NewCompiler(), name, schema)
}

func compileWith(c *v5.Compiler, name string, schema []byte) (s *Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("compile schema %s: %v", name, r)
		}
	}()
	raw, err := decode(schema)
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	if schema, err = withDraft(raw, schema); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNotEmbedded }
	at := "https://schema.invalid/" + url.PathEscape(name) // never a file name: those would be read from the disk
	if err := c.AddResource(at, bytes.NewReader(schema)); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return &Schema{compiled: compiled, raw: raw}, nil
}

// withDraft names the draft in a schema that does not: without a name
// v5 asserts formats.
func withDraft(raw any, text []byte) ([]byte, error) {
	object, ok := raw.(map[string]any)
	if !ok || object["$schema"] != nil {
		return text, nil
	}
	named := maps.Clone(object)
	named["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return json.Marshal(named)
}

func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// Validate returns what is wrong with doc, nil when it is valid, in the
// order of their paths. The document is made of nil, bool, json.Number
// or Go numbers, string, []any and map[string]any. Infinities and NaN
// count as numbers that are not integers. A document that cannot be
// checked is a failure, too.
func (s *Schema) Validate(doc any) (failures []Failure) {
	defer func() {
		if r := recover(); r != nil {
			failures = unchecked(fmt.Errorf("%v", r))
		}
	}()
	err := s.compiled.Validate(finite(doc))
	if err == nil {
		return nil
	}
	var invalid *v5.ValidationError
	if !errors.As(err, &invalid) {
		return unchecked(err)
	}
	return s.explain(doc, invalid)
}

func (s *Schema) explain(doc any, invalid *v5.ValidationError) []Failure {
	e := explainer{schema: s.raw, doc: doc}
	failures := tidy(e.explain(invalid))
	if len(failures) == 0 {
		return unchecked(invalid)
	}
	return failures
}

func unchecked(err error) []Failure {
	return []Failure{{
		Keyword:  "false",
		Message:  "the document cannot be checked: " + err.Error(),
		Expected: "a JSON document",
	}}
}

// finite replaces infinities and NaN, of which v5 cannot take the
// value, by numbers that no schema takes for integers and every bound
// treats the same way. It copies only where it must.
func finite(v any) any {
	if !anyOdd(v) {
		return v
	}
	switch v := v.(type) {
	case float64:
		return standIn(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = finite(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = finite(v[k])
		}
		return out
	}

	return v
}

func anyOdd(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v) || math.IsInf(v, 0)
	case []any:
		for _, item := range v {
			if anyOdd(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if anyOdd(item) {
				return true
			}
		}
	}

	return false
}

func standIn(f float64) json.Number {
	switch {
	case math.IsInf(f, 1):
		return "1" + zeros + ".5"
	case math.IsInf(f, -1):
		return "-1" + zeros + ".5"
	}

	return "0.5"
}

const zeros = "000000000000000000000000000000000000000000000000"
