package posture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
)

// Order is the result of comparing the protection of the new side with that of the old side.
type Order uint8

// The orders.
const (
	Same Order = iota
	Tighter
	Looser
	Incomparable
)

// String returns "same", "tighter", "looser" or "incomparable".
func (o Order) String() string {
	return [...]string{"same", "tighter", "looser", "incomparable"}[min(o, Incomparable)]
}

// Protection is the value that an aspect compares. Each aspect uses only the fields that it needs.
type Protection struct {
	Require policy.Require // as resolve.Demand has it; the zero value if nothing is required
	All     bool           // every name, whatever Names says
	Names   []string       // sorted, without repetitions
	Word    string         // the name behind an alias, or of the step; may be empty
	Step    int            // 0 is the tightest
	Limit   *int64         // nil: none
}

// Aspect is one row of the table of orders.
type Aspect struct {
	Name string // as Change.Aspect has it
	// Tighter describes which side is tighter.
	Tighter string
	compare func(old, new Protection) Order
	show    func(p Protection) string
}

// Compare returns the order of the new side relative to the old one.
func (a Aspect) Compare(old, new Protection) Order { return a.compare(old, new) }

// Aspects returns all aspects: first those of the requirements of an approval, then those of the
// agent as a whole and of people. Each order is reflexive, transitive, and antisymmetric except for
// values that it treats as the same.
func Aspects() []Aspect { return slices.Concat(demandAspects(), frameAspects(), peopleAspects()) }

// demandAspects returns the aspects of an approval that both sides ask for, one for each part of a
// requirement. Parts are compared by the lattice of policies. They are shown as JSON if no other
// function is given.
func demandAspects() []Aspect {
	var out []Aspect
	for _, part := range policy.Parts() {
		out = append(out, demandAspect(part))
	}
	return out
}

func demandAspect(part policy.Part) Aspect {
	a := Aspect{
		Name:    part.Name,
		Tighter: part.Order,
		compare: func(old, new Protection) Order {
			was, is := opinionated(effective(old.Require)), opinionated(effective(new.Require))
			return mutual(part.Tighter(is, was), part.Tighter(was, is))
		},
		show: func(p Protection) string { return shown(part.Value(effective(p.Require))) },
	}
	switch part.Name {
	case aspectAnyOf:
		a.show = func(p Protection) string {
			var out []string
			for _, alternatives := range effective(p.Require).AnyOf {
				out = append(out, alternatives.String())
			}
			return cmp.Or(strings.Join(out, "; and "), "none")
		}
	case "reason":
		a.show = func(p Protection) string { return cmp.Or(p.Require.Reason.String(), "none") }
	case aspectStages:
		a.show = func(p Protection) string {
			switch {
			case len(p.Require.Stages)+len(p.Require.AnyOf) == 0:
				return "any one approver"
			case len(p.Require.Stages) == 0:
				return "none beside the alternatives"
			}
			return shown(stages(effective(p.Require)))
		}
	case "within":
		a.show = func(p Protection) string { return within(p.Require.Within).String() }
	case "on_timeout":
		a.Tighter = "deny before escalate before nothing said before approve" // nothing said denies
		a.compare = func(old, new Protection) Order {
			return level(timeoutStep(effective(old.Require)), timeoutStep(effective(new.Require)))
		}
		a.show = func(p Protection) string {
			return cmp.Or(string(effective(p.Require).OnTimeout), "nothing said")
		}
	}
	return a
}

// peopleOrder returns the order of the people who must agree: of stages and alternatives together,
// because each can replace the other. It returns false if neither side has alternatives, so that
// the order of each part is exact.
func peopleOrder(old, new policy.Require) (Order, bool) {
	was, is := effective(old), effective(new)
	return mutual(policy.TighterPeople(is, was), policy.TighterPeople(was, is)), len(was.AnyOf)+len(is.AnyOf) > 0
}

// opinionated replaces missing bounds by an empty list, which has the same meaning: no argument may
// vary.
func opinionated(r policy.Require) policy.Require {
	if r.Grants.Bounds == nil && !r.Grants.Forbid {
		r.Grants.Bounds = []policy.Bound{}
	}
	return r
}

// The aspects of an agent as a whole.
const (
	aspectAllowList   = "allow_list"
	aspectTarget      = "target"
	aspectDelegation  = "delegation"
	aspectPolicyRef   = "policy_ref"
	aspectSuppression = "suppression"
	aspectTightenOnly = "tighten_only"
	aspectLimit       = "limit"
	aspectSemantics   = "semantics"
	aspectTrusted     = "trusted_servers"
	aspectCase        = "case_sensitive_arguments"
	aspectDerived     = "derived"
	aspectIgnored     = "ignored_arguments"
	aspectRegistry    = "registry"
	aspectFiles       = "files"
	aspectID          = "id"
	aspectOwners      = "owners"
	aspectPeople      = "people"
)

// frameAspects returns the aspects that protect in other ways than by the outcome of calls, each
// with its order.
func frameAspects() []Aspect {
	names := func(p Protection) string { return showNames(p) }
	word := func(p Protection) string { return cmp.Or(p.Word, "absent") }
	return []Aspect{
		{
			aspectAllowList,
			"the list has fewer names; none lets every name pass",
			fewer,
			names,
		},
		{
			aspectTarget,
			"none: two different things can't be ordered, nor a name and none",
			equal,
			word,
		},
		{
			aspectDelegation,
			"the agent is not delegated to; two different sources can't be ordered",
			behind,
			word,
		},
		{aspectPolicyRef, "required before advisory before absent", steps, word},
		{aspectSuppression, "fewer findings are silenced", fewer, names},
		{aspectTightenOnly, "sub-agents may only tighten", steps, word},
		{
			aspectLimit,
			"the limit is lower; none is the highest",
			lower,
			func(p Protection) string { return showLimit(p.Limit) },
		},
		{
			aspectSemantics, "the default reading: every other one asks or denies less",
			steps, word,
		},
		{aspectTrusted, "fewer servers' annotations are believed", fewer, names},
		{aspectCase, "fewer targets take keys that differ in case alone", fewer, names},
		{aspectDerived, "none: two different readings of an argument can't be ordered", equal, word},
		{aspectIgnored, "standing approvals compare more arguments", fewer, names},
		{
			aspectRegistry,
			"a policy registry is named; two different ones can't be ordered",
			func(old, new Protection) Order { return behind(new, old) },
			word,
		},
		{aspectFiles, "none: two different files can't be ordered", equal, word},
		{
			aspectID,
			"two ids can't be ordered; it is told, and what policies and owners say of each is compared",
			behind,
			word,
		},
	}
}

// aspectStages is the aspect of the people who must agree.
const aspectStages = "stages"

// aspectAnyOf is the aspect of alternatives.
const aspectAnyOf = "any_of"

// aspect returns the aspect with a name.
func aspect(name string) Aspect {
	all := Aspects()
	return all[slices.IndexFunc(all, func(a Aspect) bool { return a.Name == name })]
}

// effective normalizes a requirement: bounds without an opinion permit nothing, and a requirement
// equal to the defaults becomes the zero value. A rule in an agent's file then equals the same rule
// in a policy.
func effective(r policy.Require) policy.Require {
	r = r.Join(policy.Require{})
	if len(r.Grants.Bounds) == 0 {
		r.Grants.Bounds = nil
	}
	rest := r
	if rest.OnTimeout = ""; r.OnTimeout == policy.TimeoutDeny && rest.IsZero() {
		return rest
	}
	return r
}

// stages describes the groups that must agree, and those that may do so instead.
func stages(r policy.Require) []string {
	var out []string
	for _, s := range r.Stages {
		out = append(out, stage(s))
	}
	return out
}

// stage describes who must agree in one stage.
func stage(s policy.Stage) string {
	text := fmt.Sprintf("%d of %s", s.People, s.Group)
	for _, i := range s.StandIns {
		text += fmt.Sprintf(" (or %s after %s)", i.Group, policy.FormatDuration(i.After))
	}
	return text
}

// within is a deadline.
type within time.Duration

// String returns a deadline in the format of policy files.
func (w within) String() string {
	if w == 0 {
		return "no deadline"
	}
	return policy.FormatDuration(time.Duration(w))
}

func timeoutStep(r policy.Require) int {
	return slices.Index(
		[]policy.Timeout{policy.TimeoutApprove, "", policy.TimeoutEscalate, policy.TimeoutDeny},
		r.OnTimeout,
	)
}

// mutual returns the order, given whether the new side is at least as tight as the old one, and the
// reverse.
func mutual(tighter, looser bool) Order {
	switch {
	case tighter && looser:
		return Same
	case tighter:
		return Tighter
	case looser:
		return Looser
	}

	return Incomparable
}

// level orders two steps: the higher one is the tighter one.
func level[T cmp.Ordered](old, new T) Order { return mutual(new >= old, old >= new) }

// subset orders sets: the smaller one is the tighter one.
func subset(old, new []string) Order {
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return mutual(within(new, old), within(old, new))
}

// fewer orders sets of names, of which one may be all.
func fewer(old, new Protection) Order {
	switch {
	case old.All && new.All:
		return Same
	case old.All:
		return Tighter
	case new.All:
		return Looser
	}

	return subset(old.Names, new.Names)
}

// behind orders the names for which an alias is used. No name is the tightest.
func behind(old, new Protection) Order {
	return mutual(new.Word == "" || new.Word == old.Word, old.Word == "" || old.Word == new.Word)
}

// equal returns Same for equal words and Incomparable for different ones.
func equal(old, new Protection) Order { return mutual(old.Word == new.Word, old.Word == new.Word) }

// steps orders by the step.
func steps(old, new Protection) Order { return level(-old.Step, -new.Step) }

func lower(old, new Protection) Order {
	atMost := func(a, b *int64) bool { return b == nil || a != nil && *a <= *b }
	return mutual(atMost(new.Limit, old.Limit), atMost(old.Limit, new.Limit))
}

func showLimit(n *int64) string {
	if n == nil {
		return "none"
	}
	return strconv.FormatInt(*n, 10)
}

func showNames(p Protection) string {
	switch {
	case p.All:
		return "every name"
	case len(p.Names) == 0:
		return "none"
	}

	return strings.Join(p.Names, ", ")
}

// shown returns a part of a requirement as text: lists as words, other values as in a policy file.
func shown(v any) string {
	switch v := v.(type) {
	case []string:
		return cmp.Or(strings.Join(v, ", "), "none")
	case fmt.Stringer:
		return v.String()
	case string:
		return v
	}

	return shownJSON(v)
}

// shownJSON returns a value as JSON, or "none" if it is empty.
func shownJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil || string(text) == "null" || string(text) == "{}" {
		return "none"
	}
	return string(text)
}
