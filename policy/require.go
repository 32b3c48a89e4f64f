package policy

import (
	"cmp"
	"slices"
	"time"
)

// Require is what an approval must fulfil: who, by when, and what
// happens otherwise (docs/contracts/policy.md). The zero value requires
// nothing beyond one approver. Each field is a row of the table of
// Parts.
//
// Requirements form a lattice: Tighter is its partial order, Join its
// least upper bound, the zero value its bottom. So the order in which
// policies are joined can't matter, joining twice changes nothing, and
// one more policy never loosens (docs/design/001-semantics.md).
//
// What would be a permission in one policy can't reach another one's
// demands, which is what makes "strictest wins" safe. Grants bounds
// what the runtime owner offers anyway; `session` doesn't switch grants
// on, and an argument may vary under a grant only where every rule that
// asks names it. The people whom Escalate calls in may fill seats of
// the stages of their own rule only.
type Require struct {
	Stages    []Stage       `doc:"stages"` // all of them, by distinct people; ordered by group
	Within    time.Duration `doc:"within"` // 0: no deadline
	OnTimeout Timeout       `doc:"on_timeout"`
	Escalate  []Escalation  `doc:"escalate"` // ordered by After, then To
	Grants    Grants
	Arguments Arguments `doc:"arguments"`
}

// Stage asks for a number of distinct people of one group. People are
// distinct across stages too, and the requester never counts.
type Stage struct {
	Group  string `doc:"group"`
	People int    `doc:"people"`
	// StandIns are the groups whose members may fill seats of this
	// stage as well once escalation has called them in; ordered by
	// group. They follow from Escalate of the rule that has the stage,
	// and can't be written in a file.
	StandIns []StandIn
}

// StandIn is a group that may fill seats of a stage from a time on.
type StandIn struct {
	Group string
	After time.Duration // since the moment of asking
}

// Timeout says what happens when nobody decided within the deadline.
type Timeout string

// The endings of an approval that nobody decided. The empty Timeout is
// "no opinion": it is what the agent file's own rules have, which
// cannot speak about deadlines, and gives way to any policy's word. A
// parsed policy rule always has an opinion, since leaving `on_timeout`
// out there means deny; otherwise a second policy could turn the first
// one's deny into something weaker.
const (
	TimeoutApprove  Timeout = "approve"  // only where the runtime owner opted in; recorded as "by timeout"
	TimeoutEscalate Timeout = "escalate" // to the groups of Escalate, then deny
	TimeoutDeny     Timeout = "deny"
)

// Escalation calls another group in when nobody has decided for some
// time. Each group is called once, at its earliest time.
type Escalation struct {
	After time.Duration `doc:"after"`
	To    string        `doc:"to"`
	May   May           `doc:"may"`
}

// May says what the people of a group that is called in may do. The
// empty May is MayApprove.
type May string

// What people may do who are called in.
const (
	// MayApprove: fill open seats of the stages of the rule that
	// escalates to them, deny and respond.
	MayApprove May = "approve"
	// MayLook: deny and respond, but fill no seat.
	MayLook May = "look"
)

// Grants bounds standing approvals that may come out of this one. The
// zero value sets no bound.
type Grants struct {
	Forbid  bool          // none at all; the other fields are then zero
	Session bool          `doc:"session"`  // only for the running session
	MaxAge  time.Duration `doc:"max_age"`  // 0: no bound
	MaxUses int           `doc:"max_uses"` // 0: no bound
	// Bounds lists the arguments that may differ from the approved
	// ones, and how; ordered. Nil is "no opinion", which only the zero
	// value has; a rule that asks always has one, and it is "none"
	// unless the rule names some. Where a requirement is used, no
	// opinion permits nothing.
	Bounds []Bound `doc:"bounds"`
}

// Bound lets one argument differ from the approved one, in one
// direction. The approved number is the edge.
type Bound struct {
	Path string    `json:"path" doc:"path"` // whole key, or dotted path
	Kind BoundKind `json:"kind" doc:"kind"`
}

// BoundKind is at_most or at_least.
type BoundKind string

// The directions: of numbers only.
const (
	AtMost  BoundKind = "at_most"  // between zero and the approved number, which is not negative
	AtLeast BoundKind = "at_least" // between the approved number, which is not positive, and zero
)

// Arguments says what channels may show of a call's arguments. The zero
// value is `full`: everything.
type Arguments struct {
	Redact []string `doc:"redact"` // paths whose values are hidden, ordered; a first segment ** stands for any place
	// ForbidHidden forbids approving a call of which a value is hidden.
	// It means nothing without Redact.
	ForbidHidden bool
}

// Fallback is what happens on timeout in the end: an unset OnTimeout denies.
func (a Require) Fallback() Timeout {
	if a.OnTimeout == "" {
		return TimeoutDeny
	}
	return a.OnTimeout
}

// IsZero reports whether nothing is required.
func (a Require) IsZero() bool {
	for i := range parts {
		if !parts[i].isZero(a) {
			return false
		}
	}
	return true
}

// Join is the loosest requirement that is at least as tight as both:
// the least upper bound of Tighter. It shares no memory with a or b.
//
// Stages of one group join to the larger number and don't add up: each
// says "n distinct people of this group agreed", so two people of risk
// fulfil two policies that each want two of risk, and joining a policy
// with itself changes nothing. Different groups stay different stages,
// and no one person may sit in two of them. Where two rules have the
// same stage, only people whom both call in may stand in; whom one of
// them calls in to look stands in nowhere.
func (a Require) Join(b Require) Require {
	var out Require
	for i := range parts {
		out = parts[i].join(out, a, b)
	}
	return out
}

// withStandIns lets the people whom the rule calls in fill seats of
// each of its own stages.
func (a Require) withStandIns() Require {
	for i := range a.Stages {
		for _, e := range a.Escalate {
			a.Stages[i].StandIns = append(a.Stages[i].StandIns, StandIn{Group: e.To, After: e.After})
		}
	}

	return a.Join(Require{})
}

// Tighter reports whether a demands at least what b demands: whoever
// fulfils a fulfils b. It is a partial order over joined or parsed
// requirements (a value built by hand is put in order by Join with
// itself).
func Tighter(a, b Require) bool {
	for i := range parts {
		if !parts[i].tighter(a, b) {
			return false
		}
	}
	return true
}

func (s Stage) tighter(t Stage) bool {
	return s.Group == t.Group && s.People >= t.People && !slices.ContainsFunc(s.StandIns, func(i StandIn) bool {
		after, ok := t.standsIn(i.Group)
		return !ok || i.After < after
	})
}

// standsIn returns from when on people of a group may fill seats of the
// stage; false when they never may.
func (s Stage) standsIn(group string) (time.Duration, bool) {
	i := slices.IndexFunc(s.StandIns, func(i StandIn) bool { return i.Group == group })
	if i < 0 {
		return 0, false
	}

	return s.StandIns[i].After, true
}

func (e Escalation) tighter(f Escalation) bool {
	return e.To == f.To && e.After <= f.After && (e.May == MayLook || f.May != MayLook)
}

func (a Arguments) join(b Arguments) Arguments {
	return Arguments{
		Redact:       normalPaths(slices.Concat(a.Redact, b.Redact)),
		ForbidHidden: a.ForbidHidden || b.ForbidHidden,
	}
}

func (a Arguments) tighter(b Arguments) bool {
	for _, p := range b.Redact {
		if !slices.Contains(a.Redact, p) {
			return false
		}
	}

	return a.ForbidHidden || !b.ForbidHidden
}

// noOpinion reports whether the bounds are those of the zero value.
func (a Grants) noOpinion() bool {
	return a.IsZero() && a.Bounds == nil
}

// IsZero reports whether the bounds say nothing that a policy file
// would have to say: no argument may vary unless a file says so.
func (a Grants) IsZero() bool {
	return !a.Forbid && !a.Session && a.MaxAge == 0 && a.MaxUses == 0 && len(a.Bounds) == 0
}

// Varies reports whether an argument may differ from the approved one
// in this way.
func (a Grants) Varies(b Bound) bool { return slices.Contains(a.Bounds, b) }

func (a Grants) join(b Grants) Grants {
	if a.Forbid || b.Forbid {
		return Grants{Forbid: true}
	}
	return Grants{
		Session: a.Session || b.Session,
		MaxAge:  lower(a.MaxAge, b.MaxAge),
		MaxUses: lower(a.MaxUses, b.MaxUses),
		Bounds:  common(a.Bounds, b.Bounds),
	}
}

// common keeps what both let vary; nil has no opinion.
func common(a, b []Bound) []Bound {
	if a == nil {
		return normalBounds(b)
	}
	if b == nil {
		return normalBounds(a)
	}

	return normalBounds(slices.DeleteFunc(slices.Clone(a), func(x Bound) bool { return !slices.Contains(b, x) }))
}

// normalBounds sorts and drops repetitions in a copy. No bounds stay an
// opinion.
func normalBounds(in []Bound) []Bound {
	if in == nil {
		return nil
	}
	out := append([]Bound{}, in...)
	slices.SortFunc(out, func(a, b Bound) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})

	return slices.Compact(out)
}

func (a Grants) tighter(b Grants) bool {
	if a.Forbid || b.Forbid {
		return a.Forbid
	}
	return (a.Session || !b.Session) && atMost(a.MaxAge, b.MaxAge) && atMost(a.MaxUses, b.MaxUses) &&
		boundsWithin(a.Bounds, b.Bounds)
}

// boundsWithin reports whether a lets nothing vary that b does not.
func boundsWithin(a, b []Bound) bool {
	switch {
	case b == nil:
		return true
	case a == nil:
		return false
	}

	return !slices.ContainsFunc(a, func(x Bound) bool { return !slices.Contains(b, x) })
}

// bound is a limit where 0 means none.
type bound interface{ ~int | ~int64 }

func lower[T bound](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func atMost[T bound](a, b T) bool { return b == 0 || a != 0 && a <= b }

// rank orders timeouts from no opinion to the strictest. An unknown
// word ranks as deny.
func rank(t Timeout) int {
	switch t {
	case "":
		return 0
	case TimeoutApprove:
		return 1
	case TimeoutEscalate:
		return 2
	}

	return 3
}

func stricter(a, b Timeout) Timeout {
	top := max(rank(a), rank(b))
	return []Timeout{"", TimeoutApprove, TimeoutEscalate, TimeoutDeny}[top]
}

// normalStages sorts by group and merges the stages of one group: the
// largest number, and the stand-ins that all of them have, at their
// latest time. Groups that are called in to look stand in nowhere.
func normalStages(in []Stage, lookers map[string]bool) []Stage {
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(a, b Stage) int { return cmp.Compare(a.Group, b.Group) })
	var out []Stage
	for _, s := range in {
		s.StandIns = normalStandIns(s.StandIns, lookers)
		last := len(out) - 1
		if last < 0 || out[last].Group != s.Group {
			out = append(out, s)
			continue
		}
		out[last].People = max(out[last].People, s.People)
		out[last].StandIns = bothStandIn(out[last], s)
	}

	return out
}

func lookers(lists ...[]Escalation) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		for _, e := range list {
			if e.May == MayLook {
				out[e.To] = true
			}
		}
	}

	return out
}

// normalStandIns sorts by group and keeps the earliest time of each:
// one rule may call a group in twice.
func normalStandIns(in []StandIn, lookers map[string]bool) []StandIn {
	out := slices.DeleteFunc(slices.Clone(in), func(i StandIn) bool { return lookers[i.Group] })
	slices.SortFunc(out, func(a, b StandIn) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.After, b.After))
	})

	return orNil(slices.CompactFunc(out, func(a, b StandIn) bool { return a.Group == b.Group }))
}

func bothStandIn(a, b Stage) []StandIn {
	var out []StandIn
	for _, i := range a.StandIns {
		if after, ok := b.standsIn(i.Group); ok {
			out = append(out, StandIn{Group: i.Group, After: max(i.After, after)})
		}
	}

	return out
}

// normalEscalations keeps the earliest call of each group, to look if
// any of them is, and sorts by time. It owns its argument.
func normalEscalations(in []Escalation) []Escalation {
	slices.SortFunc(in, func(a, b Escalation) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.After, b.After))
	})
	var out []Escalation
	for _, e := range in {
		if e.May == "" {
			e.May = MayApprove
		}
		last := len(out) - 1
		if last < 0 || out[last].To != e.To {
			out = append(out, e)
			continue
		}
		if e.May == MayLook {
			out[last].May = MayLook
		}
	}

	slices.SortFunc(out, func(a, b Escalation) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.To, b.To))
	})

	return out
}

// normalPaths sorts and drops repetitions. It owns its argument.
func normalPaths(in []string) []string {
	slices.Sort(in)
	return orNil(slices.Compact(in))
}

// orNil gives empty lists one form, so that equal requirements are
// equal values.
func orNil[T any](in []T) []T {
	if len(in) == 0 {
		return nil
	}
	return in
}
