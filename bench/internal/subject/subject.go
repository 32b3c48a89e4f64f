// Package subject contains the engines that the benchmark compares, each translated from the
// neutral model: hand-written Go as the floor, cedar-go, cel-go, expr, OPA, and assent. All are
// compiled before the first call.
package subject

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/bench/internal/model"
)

// Input is the form of the arguments that a subject gets.
type Input string

// The inputs. Native is the value type of the engine itself, without the time to construct it.
const (
	Decoded Input = "decoded" // map[string]any as encoding/json makes it
	Native  Input = "native"
	Raw     Input = "raw" // JSON bytes
)

// Scope determines the rules that the host passes to the engine.
type Scope string

// The scopes.
const (
	Floor  Scope = "floor"  // hand-written, indexed by label and tool
	Own    Scope = "own"    // every rule; the engine narrows by itself
	Sliced Scope = "sliced" // only the rules whose selector admits the agent and the tool
)

// Subject is one engine with one input and scope. It is not safe for concurrent use.
type Subject struct {
	Engine string
	Input  Input
	Scope  Scope

	// Decide decides the i-th call of the workload and returns the number of rules that match.
	Decide func(i int) int
	// Reasons returns the ids of the rules that matched in the latest Decide, in any order.
	Reasons func() []string
}

// Name identifies the subject in tables.
func (s *Subject) Name() string { return fmt.Sprintf("%s %s %s", s.Engine, s.Scope, s.Input) }

// Peers builds the other engines for the workload.
func Peers(w *model.Workload) ([]*Subject, error) {
	var all []*Subject
	for _, build := range []func(*model.Workload, Scope) ([]*Subject, error){Cedar, CEL, Expr, OPA} {
		for _, scope := range []Scope{Own, Sliced} {
			subjects, err := build(w, scope)
			if err != nil {
				return nil, fmt.Errorf("workload %s: %w", w.Name, err)
			}
			all = append(all, subjects...)
		}
	}

	return all, nil
}

// Floors builds the hand-written Go for the workload.
func Floors(w *model.Workload) []*Subject {
	all := []*Subject{Slots(w), Map(w)}
	if hand := Hand(w); hand != nil {
		all = append(all, hand)
	}
	return all
}

// Agree returns an error for the first call on which the reasons of the subject are not exactly
// the reasons of the reference.
func Agree(w *model.Workload, s *Subject) error {
	for i := range w.Calls {
		want := w.Reference(&w.Calls[i])
		n, got := s.Decide(i), slices.Sorted(slices.Values(s.Reasons()))
		if n != len(want) || !slices.Equal(got, want) {
			return fmt.Errorf(
				"workload %s: %s disagrees on call %d: %d reasons %v, want %v for %s",
				w.Name,
				s.Name(),
				i,
				n,
				got,
				want,
				w.Calls[i].Raw,
			)
		}
	}

	return nil
}

// rulesByTool returns, for each tool that a call uses, the rules to pass to an engine.
func rulesByTool(w *model.Workload, scope Scope) map[string][]model.Rule {
	out := map[string][]model.Rule{}
	for i := range w.Calls {
		tool := w.Calls[i].Tool
		if out[tool] != nil {
			continue
		}
		if out[tool] = w.Rules; scope == Sliced {
			out[tool] = w.Relevant(tool)
		}
	}

	return out
}

// decode decodes the arguments, as a host must do if it starts from raw bytes and its engine
// has no decoder.
func decode(raw []byte) map[string]any {
	var args map[string]any
	must(json.Unmarshal(raw, &args))
	return args
}

// must ends the benchmark. The generated calls and rules are valid, so the time of a failing
// engine means nothing.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
