package agent

import (
	"fmt"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// maxSchemas limits how many compiled schemas a loop caches, because the tools of a loop may
// change at any time.
const maxSchemas = 512

// schemas caches compiled tool schemas, keyed by the schema's text.
type schemas struct {
	mu   sync.Mutex
	kept map[string]compiledSchema
}

type compiledSchema struct {
	schema *content.Schema
	err    error
}

// of returns the compiled schema of a tool, or nil if the tool has none. A schema that doesn't
// compile is an error, since it is not known which arguments it would reject.
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

// check returns an error if the tool's schema rejects the arguments of the call.
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

// readable returns an error if the arguments are not an object. If the call is also decided by
// a Decider or needs approval, it rejects arguments that the decision and the function could
// read differently, such as keys that differ only in case. A plan does this check itself,
// because its owner may have listed the tool as one that distinguishes such keys.
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
