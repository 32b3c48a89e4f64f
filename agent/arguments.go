package agent

import (
	"fmt"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// maxSchemas bounds how many compiled schemas a loop keeps; tools may
// change all the time.
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

// of returns the schema of a tool; nil for none. One that can't be used
// is an error: nobody could tell what it would refuse.
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

// readable refuses arguments that are no object, and, when somebody
// decides about the call, those that the decision and the function
// could read differently. A plan sees to that itself: its owner may
// have named the tool as one that tells keys apart.
func (r *run) readable(call *content.FunctionCall, decided bool) error {
	_, planned := r.cfg.Decider.(*byPlan)
	if err := call.CheckArguments(); err != nil || !decided || planned || len(call.Arguments) == 0 {
		return err
	}
	if _, err := jsonmsg.Check(call.Arguments, value.Limits{FoldKeys: true}); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}
