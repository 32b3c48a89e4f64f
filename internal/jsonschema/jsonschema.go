// Package jsonschema validates decoded documents against a JSON Schema and returns failures as
// data: the path, the keyword, what is wrong and what is expected, in plain words. For oneOf
// and anyOf it reports only the branch that the author most likely meant, so that one mistake
// is one failure. It is the only package that imports santhosh-tekuri/jsonschema, and it never
// reads files or uses the network.
//
// Compile is for our own schemas. A small untrusted schema can cause unlimited work, so
// CompileUntrusted is for those: it limits the cost of compiling, validating and explaining.
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
	"sync"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled func() *v5.Schema
	raw      any      // the decoded schema, for quick and for explanations
	embedded bool     // a schema of ours, which quick can read
	patterns sync.Map // compiled by quick, by their texts
}

// Failure is one thing that is wrong with a document.
type Failure struct {
	// Path is the path from the root to the value with the failure: keys, and decimal indexes
	// of arrays. For a missing or an unknown property it is the path of the object; for an
	// invalid property name (InKey) it is that of the property.
	Path    []string
	Keyword string // the JSON Schema keyword that failed, such as "required"; "false" for a schema that allows nothing
	Message string // one short sentence, lower case, no full stop
	// Expected describes what would be valid. It is empty if Message says it.
	Expected string
	InKey    bool     // the key of the last segment is wrong, not its value
	Property string   // required: the first missing property; additionalProperties: the unknown one
	Names    []string // required: all missing properties; additionalProperties: the known ones
	// Nearest is the known name that was probably meant: for an unknown property, for a value
	// outside of its enum, or (required) the key of the object that was probably meant to be
	// Property.
	Nearest string

	wants []string // descriptions of the alternatives, joined if several branches of a oneOf fail in the same way
	other bool     // the value has another type than the keyword requires
}

// errNotEmbedded is the error for references to other documents.
var errNotEmbedded = errors.New("refers to another document: only references within the schema are loaded")

// Compile compiles a schema. References can refer only to the schema itself and to the
// meta-schemas of JSON Schema. Formats are not asserted, as is usual since 2019-09. The name is
// used in messages.
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
	at := "https://schema.invalid/" + url.PathEscape(name) // not a file name, which would be read from the disk
	if err := c.AddResource(at, bytes.NewReader(schema)); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return &Schema{compiled: func() *v5.Schema { return compiled }, raw: raw}, nil
}

// withDraft adds a draft to a schema that names none, because v5 would then assert formats.
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

// Validate returns what is wrong with doc, ordered by path, or nil if it is valid. The document
// consists of nil, bool, json.Number or Go numbers, string, []any and map[string]any.
// Infinities and NaN count as numbers that are not integers. If a document can't be checked,
// that is a failure, too.
func (s *Schema) Validate(doc any) (failures []Failure) {
	defer func() {
		if r := recover(); r != nil {
			failures = unchecked(fmt.Errorf("%v", r))
		}
	}()
	if s.embedded && s.quick(doc) {
		return nil
	}
	err := s.compiled().Validate(finite(doc))
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

// finite replaces infinities and NaN, which v5 can't handle, by numbers that are not integers
// and compare to every bound in the same way. It copies only what it changes.
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
