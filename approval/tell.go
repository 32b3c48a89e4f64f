package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
)

// CallIn is a group that an escalation has added to a request, or will add if it is not decided
// before.
type CallIn struct {
	Group string
	At    time.Time // when it will be added; zero if it has been added
	For   []string  // groups of the stages whose seats its members may fill; empty if they may only look
}

// Look reports whether the group may only deny or answer, but not approve.
func (c CallIn) Look() bool { return len(c.For) == 0 }

// String returns a clause with the group, the time, and what its members may do.
func (c CallIn) String() string {
	who := c.Group + " is called in"
	if !c.At.IsZero() {
		who = c.Group + " will be called in at " + clockWords(c.At)
	}
	if c.Look() {
		return who + " to look: they may deny it or answer, but not approve"
	}
	var others []string
	for _, group := range c.For {
		if group != c.Group {
			others = append(others, groupWords(group))
		}
	}
	if len(others) == 0 {
		return who + " again: its people are asked already"
	}

	return who + " and may approve in place of " + strings.Join(others, ", ")
}

// CallsIn lists the groups that escalations have added, followed by those that they will add, by
// time.
func (r *Request) CallsIn() []CallIn {
	var out []CallIn
	for _, group := range r.Called {
		out = append(out, CallIn{Group: group, For: r.standsInFor(group)})
	}
	if r.State != Pending {
		return out
	}
	for _, next := range r.Scheduled {
		if next.Kind == Escalate && !slices.Contains(r.Called, next.To) {
			out = append(out, CallIn{Group: next.To, At: next.At, For: r.standsInFor(next.To)})
		}
	}

	return out
}

// standsInFor returns the groups of the stages whose seats the members of a group may fill once it
// is added, including the group's own stage.
func (r *Request) standsInFor(group string) []string {
	var out []string
	for _, stage := range r.allStages() {
		if stage.Group == group || slices.ContainsFunc(stage.StandIns, func(s policy.StandIn) bool {
			return s.Group == group
		}) {
			out = append(out, stage.Group)
		}
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// Alternatives describes each list of alternatives: "1 of cfo, or 2 of finance".
func (r *Request) Alternatives() []string {
	var out []string
	for _, alternatives := range r.AnyOf {
		out = append(out, alternatives.String())
	}

	return out
}

// ReasonWords says which text an approval needs. It returns an empty string if it needs none.
func (r *Request) ReasonWords() string {
	if r.NeedsReason.IsZero() {
		return ""
	}
	return "approving needs " + r.NeedsReason.String()
}

// AtDeadline returns a sentence about what happens if the request is not decided by the deadline.
func (r *Request) AtDeadline() string {
	const end = "it expires and does not run"
	switch {
	case r.Question != nil && r.Question.takesData():
		return "If nobody answers by then, it expires without an answer."
	case r.Question != nil:
		return "If nobody answers by then, it expires: nothing is picked, not its default either."
	case r.OnTimeout == policy.TimeoutApprove:
		return "If nobody decides by then, it RUNS: the policy approves by timeout. Deny it to stop it."
	case r.OnTimeout == policy.TimeoutEscalate && len(r.calledBy(r.Deadline)) > 0:
		return "If nobody decides by then, there is as much time again, until " + clockWords(
			r.Deadline.Add(r.Within),
		) +
			", also for " + strings.Join(
			r.calledBy(r.Deadline),
			", ",
		) + ". If nobody decides by then either, " + end + "."
	}

	return "If nobody decides by then, " + end + "."
}

// calledBy returns the groups that escalations have added by a time.
func (r *Request) calledBy(at time.Time) []string {
	var out []string
	for _, c := range r.CallsIn() {
		if c.At.IsZero() || !c.At.After(at) {
			out = append(out, c.Group)
		}
	}

	return out
}

func clockWords(t time.Time) string { return t.UTC().Format("2 Jan 15:04 UTC") }

// groupWords returns the name of a group for use in a sentence.
func groupWords(group string) string {
	if group == "" {
		return "any approver"
	}

	return group
}

// ShortageWords describes the stages that can't be filled. It returns an empty string if there are
// none.
func ShortageWords(all []Shortage) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = s.String()
	}

	return strings.Join(words, "; ")
}
