package jsonschema

import (
	"errors"
	"fmt"
	"sync"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/assent-dev/assent/value"
)

// ErrCostly is wrapped by errors about a schema, or a schema and a
// document, that would cost too much to use.
var ErrCostly = errors.New("costs too much")

// The bounds of an untrusted schema. They leave room for far larger
// ones than tools have; together they keep the worst case near a
// second.
const (
	maxBytes   = 256 << 10 // of the text of the schema
	maxDepth   = 64        // of its nesting
	maxValues  = 20_000    // JSON values in it
	maxSchemas = 3_000     // objects and booleans in it: what might be a schema
	maxTargets = 4_000     // the same, over everything that references lead to
	maxRefs    = 500       // different references
	maxAnchors = 16        // dynamic anchors, of which all are tried at each dynamic reference
	maxPaths   = 32 << 20  // bytes of all paths of a document together
	maxScope   = 600       // schemas between the root and a place, of which each error names all
	budget     = 3_000_000 // units of about 100 ns that one validation may cost
)

// Untrusted is a compiled JSON Schema whose author is not trusted, safe
// for concurrent use (one after the other).
type Untrusted struct {
	schema *Schema
	facts  facts
	mu     sync.Mutex // guards what meter counts
	meter  *meter
}

// CompileUntrusted is Compile for schemas that come from outside. On
// top it refuses references to other documents, even to the
// meta-schemas, identifiers below the root, and (with an error that
// wraps ErrCostly) schemas that are very large, deeply nested, or hold
// patterns that make large programs.
func CompileUntrusted(name string, schema []byte) (*Untrusted, error) {
	if _, err := value.Parse(schema, value.Limits{MaxBytes: maxBytes, MaxDepth: maxDepth}); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, costly(err))
	}
	raw, err := decode(schema)
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	if err := inspect(raw); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	m := &meter{}
	c := v5.NewCompiler()
	c.Formats["regex"] = modestRegex
	c.RegisterExtension("meter", nil, m)
	compiled, err := compileWith(c, name, schema)
	if err != nil {
		return nil, err
	}
	facts, err := survey(compiled.compiled)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return &Untrusted{schema: compiled, facts: facts, meter: m}, nil
}

// costly marks the errors of value that are about size.
func costly(err error) error {
	var bad *value.Error
	if errors.As(err, &bad) && (bad.Code == value.TooLarge || bad.Code == value.TooDeep) {
		return fmt.Errorf("%w: %w", ErrCostly, err)
	}
	return err
}

// Validate returns what is wrong with doc as Schema.Validate does. The
// error wraps ErrCostly when to find out would cost too much, which
// says nothing about the document. When only the explanation would,
// there is one failure without details.
func (u *Untrusted) Validate(doc any) (failures []Failure, err error) {
	if err := u.facts.fit(doc); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			failures, err = nil, fmt.Errorf("validate: %v", r)
			if r == any(overBudget{}) {
				err = fmt.Errorf("%w: more than %d steps", ErrCostly, budget)
			}
		}
	}()
	u.meter.left = budget
	err = u.schema.compiled.Validate(doc)
	if err == nil {
		return nil, nil
	}
	var invalid *v5.ValidationError
	if !errors.As(err, &invalid) {
		return nil, fmt.Errorf("validate: %w", err)
	}
	if !u.explainable(doc, invalid) {
		return []Failure{{
			Keyword:  "schema",
			Message:  "too much is wrong",
			Expected: "fewer mistakes than can be told one by one",
		}}, nil
	}

	return u.schema.explain(doc, invalid), nil
}
