package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Limits for a schema and a document together. They are checked in advance because the meter
// counts the cost of a schema only after its visit.
const (
	maxProduct = 20_000_000  // schemas for the same value, times values
	maxMatch   = 300_000_000 // instructions of patterns, times bytes of text; 10 ns each
	maxNumber  = 400         // bytes of one number
)

// facts are properties of a compiled schema that determine its cost.
type facts struct {
	chain   int // longest chain of schemas for one value
	inPlace int // schemas for the same value as another schema
	program int // maximum of a schema's pattern instructions; those for names count more, because names are short
}

// surveyor walks the graph of a compiled schema.
type surveyor struct {
	facts
	chains map[*v5.Schema]int // 0 while being computed
}

func survey(root *v5.Schema) (facts, error) {
	s := surveyor{chains: map[*v5.Schema]int{}}
	todo := []*v5.Schema{root}
	seen := map[*v5.Schema]bool{}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == nil || seen[at] {
			continue
		}
		seen[at] = true
		n, err := s.visit(at)
		if err != nil {
			return facts{}, err
		}
		s.chain = max(s.chain, n)
		todo = append(append(todo, inPlace(at)...), below(at)...)
	}

	if s.chain > maxScope {
		return facts{}, fmt.Errorf("%w: %d schemas apply to one value, one by another", ErrCostly, s.chain)
	}

	return s.facts, nil
}

// visit returns the length of the longest chain of schemas that starts at a schema.
func (s *surveyor) visit(at *v5.Schema) (int, error) {
	if n, ok := s.chains[at]; ok {
		if n == 0 {
			return 0, errors.New("a schema that applies itself to the same value for ever")
		}
		return n, nil
	}

	if at.RegexProperties || at.ContentSchema != nil {
		return 0, errors.New("regexProperties or contentSchema, which are not supported")
	}
	s.chains[at] = 0
	longest := 0
	for _, next := range inPlace(at) {
		s.inPlace++
		n, err := s.visit(next)
		if err != nil {
			return 0, err
		}
		longest = max(longest, n)
	}

	s.patterns(at)
	s.chains[at] = longest + 1
	return longest + 1, nil
}

func (s *surveyor) patterns(at *v5.Schema) {
	sum := 0
	if at.Pattern != nil {
		sum += program(at.Pattern.String())
	}
	for p := range at.PatternProperties {
		sum += 4 * program(p.String())
	}
	s.program = max(s.program, sum)
}

// inPlace lists the subschemas that apply to the same value.
func inPlace(s *v5.Schema) []*v5.Schema {
	out := present(s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else)
	out = append(append(append(out, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, d := range s.DependentSchemas {
		out = append(out, d)
	}
	for _, d := range s.Dependencies {
		if d, ok := d.(*v5.Schema); ok {
			out = append(out, d)
		}
	}
	return out
}

// below lists the subschemas that apply to names, members and items.
func below(s *v5.Schema) []*v5.Schema {
	out := present(s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems)
	out = append(out, s.PrefixItems...)
	for _, any := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := any.(type) {
		case *v5.Schema:
			out = append(out, present(v)...)
		case []*v5.Schema:
			out = append(out, v...)
		}
	}

	for _, p := range s.Properties {
		out = append(out, p)
	}
	for _, p := range s.PatternProperties {
		out = append(out, p)
	}
	return out
}

func present(all ...*v5.Schema) []*v5.Schema {
	var out []*v5.Schema
	for _, s := range all {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// extent is the size of a document.
type extent struct {
	values, depth, longest int
	oddNumber              bool
}

// fit returns an error if a document is too large for the schema.
func (f facts) fit(doc any) error {
	var e extent
	e.add(doc, 1)
	switch {
	case e.oddNumber:
		return fmt.Errorf("%w: a number is too long", ErrCostly)
	case f.chain*e.depth > maxScope:
		return fmt.Errorf("%w: the document is too deep for the schema", ErrCostly)
	case f.inPlace*e.values > maxProduct || f.program*e.longest > maxMatch:
		return fmt.Errorf("%w: the document is too large for the schema", ErrCostly)
	case pathBytes(doc, 0) > maxPaths:
		return fmt.Errorf("%w: the paths of the document are too long", ErrCostly)
	}

	return nil
}

func (e *extent) add(v any, depth int) {
	e.values++
	e.depth = max(e.depth, depth)
	switch v := v.(type) {
	case json.Number:
		e.oddNumber = e.oddNumber || odd(string(v))
	case string:
		e.longest = max(e.longest, len(v))
	case []any:
		for _, item := range v {
			e.add(item, depth+1)
		}
	case map[string]any:
		names := 0
		for key, item := range v {
			names += len(key)
			e.add(item, depth+1)
		}
		e.longest = max(e.longest, names)
	}
}

// odd reports whether a number takes long to convert to a fraction.
func odd(number string) bool {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return len(number) > maxNumber
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return len(number) > maxNumber || err != nil || exponent > maxNumber || exponent < -maxNumber
}
