package jsonschema

import (
	"errors"
	"fmt"
	"sync"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/assent-dev/assent/value"
)

// ErrCostly is wrapped by errors about a schema, or a schema with a document, whose use would
// cost too much.
var ErrCostly = errors.New("costs too much")

// Limits of an untrusted schema. They permit much larger schemas than tools have. Together they
// limit the worst case to about a second.
const (
	maxBytes   = 256 << 10 // size of the schema's text
	maxDepth   = 64        // levels of nesting
	maxValues  = 20_000    // JSON values in it
	maxSchemas = 3_000     // objects and booleans, each of which might be a schema
	maxTargets = 4_000     // the same, in everything that references refer to
	maxRefs    = 500       // different references
	maxAnchors = 16        // dynamic anchors; each dynamic reference tries all of them
	maxPaths   = 32 << 20  // total length of all paths of a document
	maxScope   = 600       // schemas between the root and a value; each error lists all of them
	budget     = 3_000_000 // units of about 100 ns for one validation
)

// Untrusted is a compiled JSON Schema with an untrusted author. It is safe for concurrent use;
// validations run one at a time.
type Untrusted struct {
	schema *Schema
	facts  facts
	mu     sync.Mutex // guards meter
	meter  *meter
}

// CompileUntrusted is like Compile, for untrusted schemas. In addition it refuses references to
// other documents, even to the meta-schemas, identifiers below the root, and (with an error
// that wraps ErrCostly) schemas that are very large, deeply nested, or have large patterns.
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
	facts, err := survey(compiled.compiled())
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return &Untrusted{schema: compiled, facts: facts, meter: m}, nil
}

// costly wraps errors of package value about size with ErrCostly.
func costly(err error) error {
	var bad *value.Error
	if errors.As(err, &bad) && (bad.Code == value.TooLarge || bad.Code == value.TooDeep) {
		return fmt.Errorf("%w: %w", ErrCostly, err)
	}
	return err
}

// Validate returns what is wrong with doc, like Schema.Validate. It returns an error that wraps
// ErrCostly if validating would cost too much; the document may be valid then. If only
// explaining would cost too much, it returns one failure without details.
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
	err = u.schema.compiled().Validate(doc)
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
