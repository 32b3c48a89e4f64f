// Package subject holds the engines that the benchmark compares, each
// translated from the neutral model: hand-written Go as the floor,
// cedar-go, cel-go, expr, OPA, and assent. All are compiled before the
// first call.
package subject

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/bench/internal/model"
)

// Input is what a subject starts from.
type Input string

// The inputs. Native is the engine's own value type, its construction
// not counted.
const (
	Decoded Input = "decoded" // map[string]any as encoding/json makes it
	Native  Input = "native"
	Raw     Input = "raw" // JSON bytes
)

// Scope is which rules the host hands to the engine.
type Scope string

// The scopes.
const (
	Floor  Scope = "floor"  // hand-written, indexed by label and tool
	Own    Scope = "own"    // every rule; the engine narrows by itself
	Sliced Scope = "sliced" // only the rules whose selector admits the agent and the tool
)

// Subject is one engine under one input and scope. It is not for
// concurrent use.
type Subject struct {
	Engine string
	Input  Input
	Scope  Scope

	// Decide decides the i-th call of the workload and returns the
	// number of rules that match.
	Decide func(i int) int
	// Reasons are the ids of the rules that matched in the latest
	// Decide, in any order.
	Reasons func() []string
}

// Name identifies the subject in tables.
func (s *Subject) Name() string { return fmt.Sprintf("%s %s %s", s.Engine, s.Scope, s.Input) }

// Peers builds the engines of others for the workload.
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

// Agree reports the first call on which the subject's reasons are not
// exactly the reference's.
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

// rulesByTool returns, for each tool that a call uses, the rules to
// hand to an engine.
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

// decode is what every host does that starts from raw bytes and an
// engine without a decoder of its own.
func decode(raw []byte) map[string]any {
	var args map[string]any
	must(json.Unmarshal(raw, &args))
	return args
}

// must ends the benchmark: the generated calls and rules are right, so
// a failing engine has no time to report.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
