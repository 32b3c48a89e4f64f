package jsonschema

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/assent-dev/assent/diag"
)

// leaf returns the failures for one failed keyword.
func (e *explainer) leaf(ve *v5.ValidationError) []Failure {
	where := segments(fragment(ve.AbsoluteKeywordLocation))
	f := Failure{Path: segments(ve.InstanceLocation), Keyword: last(where)}
	found := lookup(e.doc, f.Path)
	if strings.Contains(ve.KeywordLocation, "/propertyNames") && len(f.Path) > 0 {
		f.InKey, found = true, last(f.Path)
	}
	operand := lookup(e.schema, where)
	if operand == false {
		return e.notAllowed(f, where)
	}
	parent, _ := lookup(e.schema, where[:max(0, len(where)-1)]).(map[string]any)
	switch f.Keyword {
	case "required":
		return e.required(f, found, operand, parent)
	case "type":
		f.types(operand, found)
	case "const":
		f.values([]any{operand}, found)
	case "enum":
		list, _ := operand.([]any)
		f.values(list, found)
	case "pattern":
		f.Message, f.Expected = show(found)+" does not have the right form", "text that matches "+cut(
			fmt.Sprint(operand),
		)+example(parent)
	default:
		f.bound(operand, found, where, ve.Message)
	}

	return []Failure{f}
}

// notAllowed handles schemas that are just false: an unknown property, or a value where none is
// allowed.
func (e *explainer) notAllowed(f Failure, where []string) []Failure {
	owner, _ := lookup(e.schema, where[:max(0, len(where)-1)]).(map[string]any)
	switch f.Keyword {
	case "additionalProperties":
		return e.unknown(f, owner)
	case "unevaluatedProperties":
		f.Property = last(f.Path)
		f.Path = f.Path[:max(0, len(f.Path)-1)]
		f.Message = "unknown field " + quote(f.Property)
		return []Failure{f}
	}

	f.Keyword, f.Message = "false", "nothing is allowed here"
	return []Failure{f}
}

// unknown returns one failure for each unknown property of a closed object.
func (e *explainer) unknown(f Failure, owner map[string]any) []Failure {
	object, _ := lookup(e.doc, f.Path).(map[string]any)
	known, _ := owner["properties"].(map[string]any)
	f.Names = sortedKeys(known)
	patterns := compiled(owner["patternProperties"])
	var out []Failure
	for _, name := range sortedKeys(object) {
		if _, ok := known[name]; ok || matchesAny(patterns, name) {
			continue
		}
		g := f
		g.Property, g.Nearest = name, diag.Suggest(name, f.Names)
		g.Message, g.Expected = "unknown field "+quote(name), either(f.Names)
		out = append(out, g)
	}

	return out
}

// required returns one failure for all missing properties, except that a property whose name is
// misspelled in the object gets a failure of its own.
func (e *explainer) required(f Failure, found, operand any, owner map[string]any) []Failure {
	object, _ := found.(map[string]any)
	names, _ := operand.([]any)
	known, _ := owner["properties"].(map[string]any)
	strange := slices.DeleteFunc(sortedKeys(object), func(k string) bool {
		_, ok := known[k]
		return ok
	})
	var out []Failure
	for _, n := range names {
		name, _ := n.(string)
		if _, there := object[name]; there {
			continue
		}
		near := diag.Nearest(name, strange)
		if near == "" {
			f.Names = append(f.Names, name)
			continue
		}
		typo := f
		typo.Names, typo.Nearest = []string{name}, near
		typo.missing()
		out = append(out, typo)
	}

	if len(f.Names) > 0 {
		f.missing()
		out = append(out, f)
	}
	return out
}

// missing sets the texts of a required failure from the missing names.
func (f *Failure) missing() {
	if len(f.Names) == 0 {
		return
	}
	f.Property = f.Names[0]
	f.Message, f.Expected = "missing field "+quote(f.Names[0]), ""
	if len(f.Names) > 1 {
		f.Message = "missing fields " + strings.Join(quoted(f.Names), ", ")
	}
}

func (f *Failure) types(operand, found any) {
	names, ok := operand.([]any)
	if !ok {
		names = []any{operand}
	}
	f.other = true
	for _, name := range names {
		name, _ := name.(string)
		f.wants = append(f.wants, kindWords(name)...)
		f.other = f.other && name != typeOf(found) && !(name == "integer" && typeOf(found) == "number")
	}
	f.Message, f.Expected = show(found)+" is of the wrong type", either(f.wants)
}

// values sets the texts for a const or enum.
func (f *Failure) values(list []any, found any) {
	f.other = true
	var texts []string
	for _, v := range list {
		f.wants = append(f.wants, show(v))
		f.other = f.other && typeOf(v) != typeOf(found)
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}

	if s, ok := found.(string); ok {
		f.Nearest = diag.Suggest(s, texts)
	}
	f.Message, f.Expected = show(found)+" is not a value allowed here", either(f.wants)
}

// bound sets the texts for keywords that compare a size, and for all other keywords.
func (f *Failure) bound(operand, found any, where []string, fallback string) {
	n := show(operand)
	switch f.Keyword {
	case "minimum":
		f.say(show(found)+" is too small", n+" or more")
	case "exclusiveMinimum":
		f.say(show(found)+" is too small", "more than "+n)
	case "maximum":
		f.say(show(found)+" is too large", n+" or less")
	case "exclusiveMaximum":
		f.say(show(found)+" is too large", "less than "+n)
	case "multipleOf":
		f.say(show(found)+" is not a multiple of "+n, "a multiple of "+n)
	case "minLength":
		f.few("text", n, "character")
	case "maxLength":
		f.say("the text is too long", "at most "+count(n, "character"))
	case "minItems":
		f.few("list", n, "item")
	case "maxItems":
		f.say("the list is too long", "at most "+count(n, "item"))
	case "minProperties":
		f.few("mapping", n, "field")
	case "maxProperties":
		f.say("the mapping has too many fields", "at most "+count(n, "field"))
	case "uniqueItems":
		f.say("the list holds an item twice", "each item once")
	case "minContains", "contains":
		f.say("the list lacks an item it must have", "")
	case "oneOf":
		f.say("more than one of the alternatives fits", "exactly one")
	case "not":
		f.say(show(found)+" is not allowed here", "")
	default:
		f.dependent(operand, where, fallback)
	}
}

func (f *Failure) say(message, expected string) { f.Message, f.Expected = message, expected }

// few sets the texts for a lower bound on a size, which is nearly always 1.
func (f *Failure) few(what, n, unit string) {
	if n == "1" {
		f.say("the "+what+" is empty", "at least one "+unit)
		return
	}
	f.say("the "+what+" is too short", "at least "+count(n, unit))
}

func count(n, unit string) string {
	if n == "1" {
		return n + " " + unit
	}
	return n + " " + unit + "s"
}

// dependent sets the texts for dependentRequired, whose location ends with the property and an
// index. For keywords that none of our schemas use, it uses v5's text.
func (f *Failure) dependent(operand any, where []string, fallback string) {
	if len(where) < 3 || where[len(where)-3] != "dependentRequired" {
		f.say(fallback, "")
		return
	}
	f.Property, _ = operand.(string)
	f.Keyword, f.Names = "dependentRequired", []string{f.Property}
	f.say(fmt.Sprintf("missing field %s, which %s needs", quote(f.Property), quote(where[len(where)-2])), "")
}

// compiled compiles the patterns of patternProperties.
func compiled(patterns any) []*regexp.Regexp {
	var out []*regexp.Regexp
	byPattern, _ := patterns.(map[string]any)
	for p := range byPattern {
		if re, err := bounds.Compile(p); err == nil {
			out = append(out, re)
		}
	}

	return out
}

func matchesAny(patterns []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// example returns a text with the first of a schema's examples, if there is one.
func example(schema map[string]any) string {
	list, _ := schema["examples"].([]any)
	if len(list) == 0 {
		return ""
	}
	return ", such as " + show(list[0])
}

// kindWords returns a type in the words of YAML authors.
func kindWords(name string) []string {
	switch name {
	case "string":
		return []string{"text"}
	case "number":
		return []string{"a number"}
	case "integer":
		return []string{"a whole number"}
	case "boolean":
		return []string{"true", "false"}
	case "array":
		return []string{"a list"}
	case "object":
		return []string{"a mapping"}
	}

	return []string{"no value"}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}

	return "number"
}

// show returns a short text for a value: the value of a scalar, the kind of a collection.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "no value"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quote(v)
	case json.Number:
		return cut(v.String())
	case float64:
		switch {
		case math.IsInf(v, 1):
			return ".inf"
		case math.IsInf(v, -1):
			return "-.inf"
		case math.IsNaN(v):
			return ".nan"
		}

		return fmt.Sprint(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}

	return fmt.Sprint(v)
}

func quote(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func quoted(names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = quote(out[i])
	}
	return out
}

// either joins alternatives: "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
