package jsonschema

import (
	"encoding/json"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Embedded returns a function that returns a schema embedded in the program, read on first use. It
// panics if the schema is not JSON; Validate panics if it does not compile. Tests find both.
func Embedded(name, text string) func() *Schema {
	return sync.OnceValue(func() *Schema {
		raw, err := decode([]byte(text))
		if err != nil {
			panic("the embedded " + name + " can't be read: " + err.Error())
		}
		return &Schema{raw: raw, embedded: true, compiled: sync.OnceValue(func() *v5.Schema {
			if s := assembled(raw); s != nil {
				return s
			}
			s, err := Compile(name, []byte(text))
			if err != nil {
				panic("the embedded " + name + " does not compile: " + err.Error())
			}
			return s.compiled()
		})}
	})
}

// Raw returns the decoded text of the schema, which must not be changed.
func (s *Schema) Raw() any { return s.raw }

// assembled builds what Compile would return for a schema of ours, without v5's compiler, which
// first validates the schema against the meta-schemas. That takes longer than everything else
// that a short command does. It returns nil for a schema with a keyword that it does not know,
// which has to be compiled. Tests check that both results are equal.
func assembled(raw any) *v5.Schema {
	root, _ := raw.(map[string]any)
	id, _ := root["$id"].(string)
	if root["$schema"] != v5.Draft2020.URL() || id == "" || strings.Contains(id, "#") {
		return nil
	}
	a := assembler{
		root: root,
		id:   id,
		made: map[string]*v5.Schema{},
	}
	whole := a.at("", root)
	if a.unknown {
		return nil
	}

	return whole
}

// assembler builds v5's representation of the parts of one schema.
type assembler struct {
	root    map[string]any
	id      string
	made    map[string]*v5.Schema // by pointer
	unknown bool
}

// at returns the schema at a JSON pointer, with the defaults that v5 sets.
func (a *assembler) at(pointer string, raw any) *v5.Schema {
	if s := a.made[pointer]; s != nil {
		return s
	}
	s := &v5.Schema{
		Location:      a.id + "#" + pointer,
		Draft:         v5.Draft2020,
		MinProperties: -1,
		MaxProperties: -1,
		MinItems:      -1,
		MaxItems:      -1,
		MinContains:   1,
		MaxContains:   -1,
		MinLength:     -1,
		MaxLength:     -1,
	}
	a.made[pointer] = s
	switch raw := raw.(type) {
	case bool:
		s.Always = &raw
	case map[string]any:
		if values, has := raw["enum"]; has {
			a.enumerate(s, values)
		}
		s.ContainsEval = true
		p := part{assembler: a, pointer: pointer, out: s}
		for keyword, value := range raw {
			p.set(keyword, value)
		}
		if s.If == nil { // without if, then and else have no effect
			s.Then, s.Else = nil, nil
		}
	default:
		a.unknown = true
	}

	return s
}

// enumerate lets v5 compile an enum, because v5's error text for it is unexported, and v5 drops
// failures without a text.
func (a *assembler) enumerate(s *v5.Schema, values any) {
	text, err := json.Marshal(map[string]any{"$schema": v5.Draft2020.URL(), "enum": values})
	if err != nil {
		a.unknown = true
		return
	}
	whole, err := v5.CompileString("enum.json", string(text))
	if err != nil {
		a.unknown = true
		return
	}
	at := s.Location
	*s = *whole
	s.Location = at
}

// part is a subschema that is being built.
type part struct {
	*assembler

	pointer string
	out     *v5.Schema
}

// set sets one keyword. An unknown keyword makes the whole schema unknown.
func (p *part) set(keyword string, raw any) {
	s := p.out
	switch keyword {
	case "$schema", "$id":
		if p.pointer != "" {
			p.unknown = true
		}
	case "$defs", "title", "description", "default", "examples":
		// These keywords test nothing.
	case "enum":
		// enumerate has handled it.
	case "$ref":
		s.Ref = p.refers(p.text(raw))
	case "type":
		s.Types = p.types(raw)
	case "const":
		s.Constant = []any{raw}
	case "format":
		s.Format = p.text(raw)
	case "pattern":
		s.Pattern = p.regex(p.text(raw))
	case "minimum":
		s.Minimum = p.number(raw)
	case "maximum":
		s.Maximum = p.number(raw)
	case "minLength":
		s.MinLength = p.int(raw)
	case "maxLength":
		s.MaxLength = p.int(raw)
	default:
		p.setInner(keyword, raw)
	}
}

// setInner sets keywords that test the parts of a value.
func (p *part) setInner(keyword string, raw any) {
	s := p.out
	switch keyword {
	case "minItems":
		s.MinItems = p.int(raw)
	case "maxItems":
		s.MaxItems = p.int(raw)
	case "minProperties":
		s.MinProperties = p.int(raw)
	case "maxProperties":
		s.MaxProperties = p.int(raw)
	case "uniqueItems":
		s.UniqueItems = raw == true
	case "required":
		s.Required = p.texts(raw)
	case "properties":
		s.Properties = p.properties(raw)
	case "patternProperties":
		s.PatternProperties = p.patterns(raw)
	case "additionalProperties":
		s.AdditionalProperties = p.additional(raw)
	case "propertyNames":
		s.PropertyNames = p.below(raw, keyword)
	case "items":
		s.Items2020 = p.below(raw, keyword)
	case "contains":
		s.Contains = p.below(raw, keyword)
	default:
		p.setAlternative(keyword, raw)
	}
}

// setAlternative sets keywords that combine schemas.
func (p *part) setAlternative(keyword string, raw any) {
	s := p.out
	switch keyword {
	case "allOf":
		s.AllOf = p.each(raw, keyword)
	case "anyOf":
		s.AnyOf = p.each(raw, keyword)
	case "oneOf":
		s.OneOf = p.each(raw, keyword)
	case "not":
		s.Not = p.below(raw, keyword)
	case "if":
		s.If = p.below(raw, keyword)
	case "then":
		s.Then = p.below(raw, keyword)
	case "else":
		s.Else = p.below(raw, keyword)
	default:
		p.unknown = true
	}
}

// below builds the schema at names below this one.
func (p *part) below(raw any, names ...string) *v5.Schema {
	pointer := p.pointer
	for _, name := range names {
		pointer += "/" + escaped(name)
	}

	return p.at(pointer, raw)
}

// escaped escapes a name as a segment of a JSON pointer in a URL fragment.
func escaped(name string) string {
	name = strings.ReplaceAll(name, "~", "~0")

	return url.PathEscape(strings.ReplaceAll(name, "/", "~1"))
}

// refers resolves "#" and "#/$defs/NAME". Other references are unknown.
func (p *part) refers(to string) *v5.Schema {
	if to == "#" {
		return p.at("", p.root)
	}
	name, ok := strings.CutPrefix(to, "#/$defs/")
	defs, _ := p.root["$defs"].(map[string]any)
	raw, found := defs[name]
	if !ok || !found || escaped(name) != name {
		p.unknown = true
		return nil
	}

	return p.at("/$defs/"+name, raw)
}

func (p *part) each(raw any, keyword string) (all []*v5.Schema) {
	for i, one := range p.list(raw) {
		all = append(all, p.below(one, keyword, strconv.Itoa(i)))
	}

	return all
}

func (p *part) properties(raw any) map[string]*v5.Schema {
	all := map[string]*v5.Schema{}
	for name, one := range p.object(raw) {
		all[name] = p.below(one, "properties", name)
	}

	return all
}

func (p *part) patterns(raw any) map[*regexp.Regexp]*v5.Schema {
	all := map[*regexp.Regexp]*v5.Schema{}
	for pattern, one := range p.object(raw) {
		all[p.regex(pattern)] = p.below(one, "patternProperties", pattern)
	}

	return all
}

// additional returns a bool or a schema, which v5 distinguishes by type.
func (p *part) additional(raw any) any {
	if any, ok := raw.(bool); ok {
		return any
	}

	return p.below(raw, "additionalProperties")
}

func (p *part) types(raw any) []string {
	if one, ok := raw.(string); ok {
		return []string{one}
	}

	return p.texts(raw)
}

func (p *part) texts(raw any) []string {
	all := []string{}
	for _, one := range p.list(raw) {
		all = append(all, p.text(one))
	}

	return slices.Clip(all)
}

func (p *part) text(raw any) string {
	text, ok := raw.(string)
	p.unknown = p.unknown || !ok

	return text
}

func (p *part) list(raw any) []any {
	all, ok := raw.([]any)
	p.unknown = p.unknown || !ok

	return all
}

func (p *part) object(raw any) map[string]any {
	all, ok := raw.(map[string]any)
	p.unknown = p.unknown || !ok

	return all
}

func (p *part) int(raw any) int {
	text, _ := raw.(json.Number)
	n, err := strconv.Atoi(text.String())
	p.unknown = p.unknown || err != nil

	return n
}

func (p *part) number(raw any) *big.Rat {
	text, _ := raw.(json.Number)
	n, ok := new(big.Rat).SetString(text.String())
	p.unknown = p.unknown || !ok

	return n
}

func (p *part) regex(text string) *regexp.Regexp {
	re, err := bounds.Compile(text)
	p.unknown = p.unknown || err != nil

	return re
}
