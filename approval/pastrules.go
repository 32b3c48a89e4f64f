package approval

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// PastRules describes which past calls, and which of their arguments, the rules of a tenant read. The nil
// value reads nothing.
type PastRules struct {
	agents map[string]*resolve.Plan // by id
	// counting are plans that have all policies with tests of past calls.
	counting []*resolve.Plan
	windows  map[condition.PastState]time.Duration // the longest window of each state that is tested
	paths    []string                              // the arguments of past calls that are tested
}

// NewPastRules reads the rules of all agents of a tenant. It returns nil if no rule tests past calls.
func NewPastRules(agents map[string]*Compiled) *PastRules {
	p := &PastRules{agents: map[string]*resolve.Plan{}, windows: map[condition.PastState]time.Duration{}}
	read := map[*policy.Policy]bool{}
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		plan := agents[id].Plan
		p.agents[id] = plan
		more := false
		for _, pol := range plan.Policies() {
			if !read[pol] {
				read[pol] = true
				more = p.add(pol) || more
			}
		}
		if more {
			p.counting = append(p.counting, plan)
		}
	}
	if len(p.windows) == 0 {
		return nil
	}
	slices.Sort(p.paths)
	p.paths = slices.Compact(p.paths)

	return p
}

// add reads a policy, and reports whether it tests past calls.
func (p *PastRules) add(pol *policy.Policy) (tests bool) {
	for i := range pol.Rules {
		if pol.Rules[i].When == nil {
			continue
		}
		for _, g := range pol.Rules[i].When.Groups {
			for _, m := range g.Matchers {
				if h := m.History; h != nil {
					tests = true
					p.windows[h.State] = max(p.windows[h.State], longestWindow(h))
					p.paths = append(p.paths, pathsOf(h)...)
				}
			}
		}
	}

	return tests
}

// pastSlack is how much longer past calls are kept than a rule counts them, for clocks that differ.
const pastSlack = 24 * time.Hour

// longestWindow returns the longest time that a past call counts.
func longestWindow(h *condition.History) time.Duration {
	const day = 24 * time.Hour
	switch h.Since { // hours and days may be longer when clocks change
	case condition.Hour, condition.Day:
		return 2 * day
	case condition.Week:
		return 8 * day
	case condition.Month:
		return 32 * day
	}

	return h.Within
}

// pathsOf lists the arguments of past calls that a test reads.
func pathsOf(h *condition.History) []string {
	var out []string
	for _, by := range h.By {
		if path, ok := strings.CutPrefix(by, "args."); ok {
			out = append(out, path)
		}
	}
	if h.Where != nil {
		for i := range h.Where.Matchers {
			out = append(append(out, h.Where.Matchers[i].Key), currencies(h.Where.Matchers[i].Tests)...)
		}
	}

	return slices.DeleteFunc(append(out, h.Path, h.Currency), func(path string) bool { return path == "" })
}

// currencies lists the arguments from which tests of money read currencies.
func currencies(tests []condition.Test) (out []string) {
	for i := range tests {
		t := &tests[i]
		if t.Money != nil {
			out = append(out, t.Money.Currency)
		}
		out = append(out, currencies(t.Tests)...)
		if t.Where != nil {
			for j := range t.Where.Matchers {
				out = append(out, currencies(t.Where.Matchers[j].Tests)...)
			}
		}
	}

	return out
}

// until returns when the record of a call in a state may be deleted, and false if no rule tests the
// state.
func (p *PastRules) until(at time.Time, states ...condition.PastState) (time.Time, bool) {
	if p == nil {
		return time.Time{}, false
	}
	longest := time.Duration(0)
	for _, s := range states {
		longest = max(longest, p.windows[s])
	}

	return at.Add(longest + pastSlack), longest > 0
}

// ran returns the record that a call ran, and false if no rule may count it.
func (p *PastRules) ran(id string, call *resolve.PastCall, at time.Time) (Past, bool) {
	if p == nil || !slices.ContainsFunc(p.counting, func(plan *resolve.Plan) bool { return plan.Recorded(call) }) {
		return Past{}, false
	}

	return p.past(id, condition.PastRan, call, at, condition.PastRan, condition.PastSucceeded, condition.PastFailed)
}

// past returns the record of a call in a state. It is kept as long as a rule may count one of the other
// states, and false is returned if no rule tests any of them.
func (p *PastRules) past(
	id string, state condition.PastState, call *resolve.PastCall, at time.Time, kept ...condition.PastState,
) (Past, bool) {
	until, ok := p.until(at, append(kept, state)...)
	out := Past{ID: id, State: state, At: at, Until: until, Call: *call}
	out.Call.At, out.Call.States = time.Time{}, nil
	out.Call.Args = p.tested(call)
	if p != nil {
		out.Kept = p.paths
	}

	return out, ok
}

// call returns a call of an agent as a past call.
func (p *PastRules) call(agent string, c *resolve.Call) resolve.PastCall {
	if p != nil && p.agents[agent] != nil {
		return p.agents[agent].Past(c)
	}

	return resolve.PastCall{
		AgentID: agent, Principal: c.Principal, Session: c.Session,
		Kind: c.Kind, Tool: c.Tool, Server: c.Server, Agent: c.Agent, Skill: c.Skill, Args: c.Args,
	}
}

// mostTested limits the arguments that are kept of a past call, in bytes.
const mostTested = 64 << 10

// unreadablePast replaces arguments that are too large to keep, or of which some were not kept. It
// is not JSON, so tests of it are unknown.
const unreadablePast = "-"

// tested returns the arguments of a call that rules test. A path may be the name of an argument, or lead
// into one.
func (p *PastRules) tested(call *resolve.PastCall) resolve.Raw {
	if call.Kind == resolve.Delegation || len(p.paths) == 0 || call.Args == nil {
		return nil
	}
	args, err := value.Parse(call.Args, value.Limits{MaxBytes: 1 << 30})
	if err != nil || args.Kind != value.Object {
		return resolve.Raw(unreadablePast)
	}
	args.Members = slices.DeleteFunc(slices.Clone(args.Members), func(m value.Member) bool {
		return !slices.ContainsFunc(p.paths, func(path string) bool {
			return path == m.Key || strings.HasPrefix(path, m.Key+".")
		})
	})
	if len(args.Members) == 0 {
		return nil
	}
	if text := args.AppendJSON(nil); len(text) <= mostTested {
		return text
	}

	return resolve.Raw(unreadablePast)
}
