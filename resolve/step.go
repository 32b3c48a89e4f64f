package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// StepKind is the kind of a question about the next step of an agent's execution policy.
type StepKind string

// The kinds of questions.
const (
	RouteStep StepKind = "route"     // which agent agf.conditional runs
	LoopStep  StepKind = "loop_exit" // whether agf.loop ends after an iteration
)

// Step is a question of a runtime about the next step (docs/contracts/decide.md). It is no call: nothing
// asks, and nothing is bound.
type Step struct {
	Kind      StepKind
	Input     Raw               // of the agent itself; nil if it is not known
	Outputs   []value.RawMember // of the steps of a loop, by the alias of their agent
	Iteration int               // of a loop: how many have ended
}

// NextStep is the answer to a Step. If Error is set, the runtime must not go on.
type NextStep struct {
	Kind StepKind `json:"kind"`
	// Agent is the alias of the agent that a conditional runs. Route is the index of the route, or nil for
	// the default agent.
	Agent string `json:"agent,omitempty"`
	Route *int   `json:"route,omitempty"`
	// Exit reports whether a loop ends, and Because why: "condition" or "max_iterations".
	Exit    *bool  `json:"exit,omitempty"`
	Because string `json:"because,omitempty"`
	Error   string `json:"error,omitempty"`
}

// String describes the answer for people.
func (n NextStep) String() string {
	switch {
	case n.Error != "":
		return string(n.Kind) + ": error: " + n.Error
	case n.Kind == RouteStep && n.Route == nil:
		return "route: " + n.Agent + " (default)"
	case n.Kind == RouteStep:
		return fmt.Sprintf("route: %s (route %d)", n.Agent, *n.Route)
	case *n.Exit:
		return "loop_exit: exit (" + n.Because + ")"
	}
	return "loop_exit: continue"
}

// ParseStep reads a question as strictly as ParseCall. It returns nil without an error if the line has
// another kind, and must be read as a call.
func ParseStep(line []byte, lim value.Limits) (*Step, error) {
	s := &Step{Kind: stepKind(line, lim)}
	if s.Kind != RouteStep && s.Kind != LoopStep {
		return nil, nil
	}
	seen := map[string]value.RawMember{}
	for m, err := range value.SplitObject(line) {
		if err != nil {
			return s, &CallError{Err: err}
		}
		if _, twice := seen[m.Key]; twice {
			return s, &CallError{m.Key, errors.New("the field stands twice")}
		}
		seen[m.Key] = m
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if err := s.set(name, seen[name].Raw, lim); err != nil {
			return s, &CallError{name, err}
		}
	}
	if s.Kind == LoopStep && s.Iteration == 0 {
		return s, &CallError{"iteration", errors.New("a question of kind loop_exit needs this field")}
	}
	return s, nil
}

// stepKind returns the text of the first field "kind". It reads the line only that far, since most lines
// are calls.
func stepKind(line []byte, lim value.Limits) StepKind {
	for m, err := range value.SplitObject(line) {
		if err == nil && m.Key == "kind" {
			v, _ := value.Parse(m.Raw, lim) // empty if it is no text
			return StepKind(v.Text)
		}
	}
	return ""
}

func (s *Step) set(name string, raw []byte, lim value.Limits) error {
	loop := s.Kind == LoopStep
	switch {
	case name == "kind":
		return nil
	case name == "parent":
		c := &Call{}
		err := c.setParent(raw, lim)
		s.Input = c.ParentInput
		return err
	case name == "outputs" && loop:
		for m, err := range value.SplitObject(raw) {
			twice := slices.ContainsFunc(s.Outputs, func(o value.RawMember) bool { return o.Key == m.Key })
			switch {
			case err != nil:
				return err
			case twice || m.Key == "parent":
				return fmt.Errorf("%q: expected each agent's alias once", m.Key)
			}
			s.Outputs = append(s.Outputs, m)
		}
		return nil
	case name == "iteration" && loop:
		v, err := value.Parse(raw, lim)
		n := v.Num.Float()
		if s.Iteration = int(n); err != nil || v.Kind != value.Number || n < 1 || n > 1e9 || float64(s.Iteration) != n {
			return errors.New("expected a whole number from 1 on: the iterations that have ended")
		}
		return nil
	}
	return fmt.Errorf("a question of kind %s has no such field", s.Kind)
}

// NextOf answers the question on a line, or says what is wrong with it. It returns nil if the line has
// another kind, and must be read as a call.
func (p *Plan) NextOf(line []byte) *NextStep {
	s, err := ParseStep(line, value.Limits{})
	if s == nil {
		return nil
	}
	out := NextStep{Kind: s.Kind}
	if err != nil {
		out.Error = err.Error()
	} else {
		out = p.Next(s)
	}
	return &out
}

// Next answers a question with the evaluator and the owner's choices that approvals are decided with. A
// condition that is unknown is an error, since a guess could run the wrong agent.
func (p *Plan) Next(s *Step) NextStep {
	out := NextStep{Kind: s.Kind}
	doc, err := p.stepDocument(s)
	switch {
	case len(p.stop) > 0:
		err = errors.New(p.stop[0].Detail)
	case err != nil:
	case s.Kind == RouteStep:
		err = p.route(&out, doc)
	default:
		err = p.loop(&out, doc, s.Iteration)
	}
	if err != nil {
		return NextStep{Kind: s.Kind, Error: err.Error()}
	}
	return out
}

// stepDocument returns the document that the conditions read: {"parent":{"input":…},"alias":{"output":…}}.
func (p *Plan) stepDocument(s *Step) (value.Value, error) {
	doc := value.Value{Kind: value.Object}
	add := func(name, direction string, raw []byte) error {
		v, err := value.Parse(raw, p.parentLimits())
		doc.Members = append(doc.Members, value.Member{Key: name, Value: value.Value{
			Kind: value.Object, Members: []value.Member{{Key: direction, Value: v}},
		}})
		return err
	}
	var err error
	if s.Input != nil {
		err = add("parent", "input", s.Input)
	}
	for _, o := range s.Outputs {
		if bad := add(o.Key, "output", o.Raw); bad != nil {
			err = errors.Join(err, fmt.Errorf("outputs: %s: %w", quote(o.Key), bad))
		}
	}
	return doc, err
}

func (p *Plan) route(out *NextStep, doc value.Value) error {
	policy := &p.agent.Policy
	if policy.ID != schema.PolicyConditional {
		return fmt.Errorf("the agent's execution policy is %s, which has no routes", quote(policy.ID))
	}
	for i := range policy.Routes {
		r := &policy.Routes[i]
		switch truth, err := condition.Evaluate(condition.Route, p.opt.Semantics.Conditions, r.When, doc); {
		case err != nil:
			return err
		case truth == condition.Unknown:
			return fmt.Errorf("the condition of route %d (%s) can't be told", i, quote(r.Agent.Alias))
		case truth == condition.True:
			out.Agent, out.Route = r.Agent.Alias, &i
			return nil
		}
	}
	if policy.DefaultAgent == nil {
		return errors.New("no route matches, and there is no default_agent")
	}
	out.Agent = policy.DefaultAgent.Alias
	return nil
}

func (p *Plan) loop(out *NextStep, doc value.Value, iteration int) error {
	policy := &p.agent.Policy
	if policy.ID != schema.PolicyLoop {
		return fmt.Errorf("the agent's execution policy is %s, which is no loop", quote(policy.ID))
	}
	last, truth := int64(iteration) >= policy.MaxIterations, condition.False
	if policy.ExitCondition != nil {
		var err error
		truth, err = condition.Evaluate(condition.LoopExit, p.opt.Semantics.Conditions, policy.ExitCondition, doc)
		if err != nil {
			return err
		}
	}
	exit := last || truth == condition.True
	switch out.Exit = &exit; {
	case truth == condition.True:
		out.Because = "condition"
	case last:
		out.Because = "max_iterations"
	case truth == condition.Unknown:
		return errors.New("the exit_condition can't be told")
	}
	return nil
}
