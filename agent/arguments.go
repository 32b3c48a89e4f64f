package agent

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/value"
)

// maxSchemas bounds how many compiled schemas a loop keeps; tools may change all the time.
const maxSchemas = 512

// schemas keeps the compiled schemas of tools, by their text.
type schemas struct {
	mu   sync.Mutex
	kept map[string]compiledSchema
}

type compiledSchema struct {
	schema *content.Schema
	err    error
}

// of returns the schema of a tool; nil for none. One that can't be used is an error: nobody could tell what it would refuse.
func (s *schemas) of(t Tool) (*content.Schema, error) {
	if t == nil {
		return nil, nil
	}
	text := t.Definition().Schema
	if len(text) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.kept[string(text)]
	if ok {
		return known.schema, known.err
	}
	if len(s.kept) >= maxSchemas || s.kept == nil {
		s.kept = map[string]compiledSchema{}
	}
	schema, err := content.NewSchema(text)
	if err != nil {
		err = fmt.Errorf("the schema of %s can't be used: %w", t.Definition().Name, err)
	}
	s.kept[string(text)] = compiledSchema{schema, err}
	return schema, err
}

// check refuses arguments that the tool's schema refuses.
func (s *schemas) check(call *content.FunctionCall, t Tool) error {
	schema, err := s.of(t)
	if err != nil || schema == nil {
		return err
	}
	v := value.Value{Kind: value.Object}
	if len(call.Arguments) > 0 {
		if v, err = value.Parse(call.Arguments, value.Limits{}); err != nil {
			return fmt.Errorf("arguments: %w", err)
		}
	}
	if err := schema.CheckValue(v); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// readable refuses arguments that are no object, and, when somebody decides about the call, those that the plan and the function could read
// differently.
func readable(call *content.FunctionCall, decided bool) error {
	if err := call.CheckArguments(); err != nil || !decided || !mayFold(call.Arguments) {
		return err
	}
	v, err := value.Parse(call.Arguments, value.Limits{})
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	if a, b := folded(v); a != "" {
		return fmt.Errorf("arguments: the keys %q and %q differ only in upper and lower case: expected one of them", a, b)
	}
	return nil
}

// mayFold tells whether a text, which is JSON, could hold keys that differ only in case: different keys of small ASCII letters differ in more.
func mayFold(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		begin := i + 1
		for i = begin; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		if isKey(text, i) && bytes.ContainsFunc(text[begin:i], func(c rune) bool { return 'A' <= c && c <= 'Z' || c >= 0x80 || c == '\\' }) {
			return true
		}
	}
	return false
}

// isKey tells whether the string that ends here is a key.
func isKey(text []byte, end int) bool {
	for _, c := range text[min(end+1, len(text)):] {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == ':'
		}
	}
	return false
}

// folded finds two keys of one object that differ only in upper and lower case: many functions, those in Go among them, read both as one.
func folded(v value.Value) (a, b string) {
	for i, m := range v.Members {
		for _, other := range v.Members[:min(i, 16)] {
			if strings.EqualFold(other.Key, m.Key) {
				return other.Key, m.Key
			}
		}
		if a, b = folded(m.Value); a != "" {
			return a, b
		}
	}
	if len(v.Members) > 16 {
		if a, b = foldedMany(v.Members); a != "" {
			return a, b
		}
	}
	for _, item := range v.Items {
		if a, b = folded(item); a != "" {
			return a, b
		}
	}
	return "", ""
}

// foldedMany is folded for objects of which comparing each with each would take long.
func foldedMany(members []value.Member) (a, b string) {
	seen := make(map[string]string, len(members))
	for _, m := range members {
		key := strings.ToLower(strings.ToUpper(m.Key))
		if other, ok := seen[key]; ok {
			return other, m.Key
		}
		seen[key] = m.Key
	}
	return "", ""
}
