package posture

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// HasGlobs reports whether the names of a query's call are patterns, or there is no kind of call, which
// means every call.
func (q Query) HasGlobs() bool {
	c := &q.Call
	return c.Kind == "" || strings.Contains(c.Tool+c.Server+c.Agent+c.Skill, "*")
}

// Over returns the query for each call of an agent that the names of its call mean. Names that an agent's
// file leaves open are represented by one of each set that the agent's rules treat alike. It returns false
// if there are too many such sets.
func (q Query) Over(s *Side) ([]Query, bool) {
	if !q.HasGlobs() {
		return []Query{q}, true
	}
	var out []Query
	c := &comparer{old: *s, new: *s, asked: q.Call, cmp: condition.NewComparison(0)}
	c.visit = func(call resolve.Call) {
		if !means(&q.Call, &call) {
			return
		}
		one := q
		one.Call = call
		one.Call.Annotations, one.Call.At = q.Call.Annotations, q.Call.At
		out = append(out, one)
	}
	c.targets()

	return out, len(c.changes) == 0
}

// means reports whether the names of one call, which may be patterns, match those of another.
func means(pattern, call *resolve.Call) bool {
	if pattern.Kind == "" {
		return true
	}
	glob := func(pattern, name string) bool { return pattern == name || policy.Glob(pattern, name) }
	return pattern.Kind == call.Kind && glob(pattern.Tool, call.Tool) && glob(pattern.Server, call.Server) &&
		glob(pattern.Agent, call.Agent) && glob(pattern.Skill, call.Skill)
}

// askedNames lists the patterns of the query whose calls are visited.
func (c *comparer) askedNames() []string {
	names := []string{c.asked.Tool, c.asked.Server, c.asked.Agent, c.asked.Skill}
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}
