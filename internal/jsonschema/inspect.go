package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/pattern"
)

// Limits of the patterns of an untrusted schema.
const (
	maxPattern  = 2_000  // bytes of one
	maxProgram  = 10_000 // instructions of one
	maxPrograms = 40_000 // instructions of all
)

// inspector checks an untrusted schema before it is compiled. It treats every object as a
// schema, because even the value of a const may be the target of a reference.
type inspector struct {
	root     any
	id       string // of the root
	idKey    string // the keyword for identifiers below the root
	values   int
	schemas  int
	anchors  int
	programs int
	refs     map[string]bool
}

// inspect returns an error if a schema would be too costly to compile.
func inspect(raw any) error {
	in := inspector{
		root:  raw,
		idKey: "$id",
		refs:  map[string]bool{},
	}
	if object, ok := raw.(map[string]any); ok {
		if draft, _ := object["$schema"].(string); strings.Contains(draft, "draft-04") {
			in.idKey = "id"
		}
		in.id, _ = object[in.idKey].(string)
	}

	if err := in.walk(raw, true); err != nil {
		return err
	}
	if paths := pathBytes(raw, 0); paths > maxPaths {
		return fmt.Errorf("%w: its paths are too long", ErrCostly)
	}
	return in.targets()
}

func (in *inspector) walk(v any, top bool) error {
	if in.values++; in.values > maxValues {
		return fmt.Errorf("%w: more than %d values", ErrCostly, maxValues)
	}
	switch v := v.(type) {
	case bool:
		return in.countSchema()
	case []any:
		for _, item := range v {
			if err := in.walk(item, false); err != nil {
				return err
			}
		}
	case map[string]any:
		return in.object(v, top)
	}

	return nil
}

func (in *inspector) countSchema() error {
	if in.schemas++; in.schemas > maxSchemas {
		return fmt.Errorf("%w: more than %d schemas", ErrCostly, maxSchemas)
	}
	return nil
}

func (in *inspector) object(m map[string]any, top bool) error {
	if id, _ := m[in.idKey].(string); !top && id != "" && id[0] != '#' {
		return errors.New("an identifier below the root: only one document is read")
	}
	if err := errors.Join(in.countSchema(), in.keywords(m), in.patterns(m)); err != nil {
		return err
	}
	for _, item := range m {
		if err := in.walk(item, false); err != nil {
			return err
		}
	}
	return nil
}

// keywords records the references of one object.
func (in *inspector) keywords(m map[string]any) error {
	if _, ok := m["$dynamicAnchor"].(string); ok {
		if in.anchors++; in.anchors > maxAnchors {
			return fmt.Errorf("%w: more than %d dynamic anchors", ErrCostly, maxAnchors)
		}
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, ok := m[keyword].(string)
		if !ok {
			continue
		}
		base, _, _ := strings.Cut(ref, "#")
		if own, _, _ := strings.Cut(in.id, "#"); base != "" && base != own {
			return errNotEmbedded
		}
		if in.refs[ref] = true; len(in.refs) > maxRefs {
			return fmt.Errorf("%w: more than %d references", ErrCostly, maxRefs)
		}
	}

	return nil
}

func (in *inspector) patterns(m map[string]any) error {
	if p, ok := m["pattern"].(string); ok {
		if err := in.pattern(p); err != nil {
			return err
		}
	}
	byPattern, _ := m["patternProperties"].(map[string]any)
	for p := range byPattern {
		if err := in.pattern(p); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspector) pattern(p string) error {
	n := program(p)
	if in.programs += n; n > maxProgram || in.programs > maxPrograms {
		return fmt.Errorf("%w: its patterns are too large", ErrCostly)
	}
	return nil
}

// bounds limits a single pattern.
var bounds = pattern.Bounds{Bytes: maxPattern, Size: maxProgram}

// program estimates the instructions of a pattern without compiling it. An invalid pattern
// counts as 1; Compile will report it.
func program(p string) int {
	tree, err := bounds.Parse(p)
	var size *pattern.SizeError
	switch {
	case errors.As(err, &size):
		return maxProgram + 1
	case err != nil:
		return 1
	}

	return pattern.Size(tree)
}

// modestRegex checks the format "regex", which older drafts assert by compiling a text of the
// document. It limits the size of the pattern.
func modestRegex(v any) bool {
	s, ok := v.(string)
	if !ok {
		return true
	}
	_, err := bounds.Compile(s)
	return err == nil
}

// targets limits the size of what references refer to. A pointer with another spelling, or to a
// place where no schema is expected, causes everything below it to be compiled again.
func (in *inspector) targets() error {
	sum := 0
	for ref := range in.refs {
		_, pointer, _ := strings.Cut(ref, "#")
		if pointer == "" || pointer == "/" || pointer[0] != '/' {
			continue
		}
		if sum += countSchemas(in.lookup(pointer)); sum > maxTargets {
			return fmt.Errorf("%w: its references lead to more than %d schemas", ErrCostly, maxTargets)
		}
	}

	return nil
}

func (in *inspector) lookup(pointer string) any {
	v := in.root
	for _, s := range strings.Split(pointer[1:], "/") {
		s, err := url.PathUnescape(strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~"))
		if err != nil {
			return nil
		}
		v = member(v, s)
	}

	return v
}

func countSchemas(v any) int {
	n := 0
	switch v := v.(type) {
	case bool:
		n = 1
	case []any:
		for _, item := range v {
			n += countSchemas(item)
		}
	case map[string]any:
		n = 1
		for _, item := range v {
			n += countSchemas(item)
		}
	}

	return n
}

// pathBytes returns the total length of the paths to all values, because validators build these
// paths.
func pathBytes(v any, at int) int {
	sum := at
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			sum += pathBytes(item, at+1+len(strconv.Itoa(i)))
		}
	case map[string]any:
		for key, item := range v {
			sum += pathBytes(item, at+1+3*len(key))
		}
	}

	return sum
}
