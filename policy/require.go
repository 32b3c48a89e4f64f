package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Require is the requirements of an approval: who must approve, by when, and what happens otherwise
// (docs/contracts/policy.md). The zero value requires nothing beyond one approver. Each field is a
// row of the table of Parts.
//
// Requirements form a lattice: Tighter is its partial order, Join its least upper bound, the zero
// value its bottom. So the order in which policies are joined doesn't matter, joining twice changes
// nothing, and one more policy never loosens (docs/design/001-semantics.md).
//
// A permission in one policy can't weaken the requirements of another, which is what makes
// "strictest wins" safe. Grants only limits the grants that the runtime owner offers: `session`
// doesn't enable grants, and an argument may vary under a grant only if every rule that asks names
// it. The people of Escalate may fill seats only in the stages of their own rule.
type Require struct {
	Stages    []Stage       `doc:"stages"` // all of them, by distinct people; ordered by group
	Within    time.Duration `doc:"within"` // 0: no deadline
	OnTimeout Timeout       `doc:"on_timeout"`
	Escalate  []Escalation  `doc:"escalate"` // ordered by After, then To
	Grants    Grants
	Arguments Arguments `doc:"arguments"`
	// AnyOf lists alternatives next to Stages; ordered. Each rule adds one list, and every list must
	// be fulfilled.
	AnyOf  []AnyOf `doc:"any_of"`
	Reason Reason  `doc:"reason"` // the text that an approval needs
}

// Stage requires a number of distinct people of one group. People are distinct across stages too,
// and the requester never counts.
type Stage struct {
	Group  string `doc:"group"`
	People int    `doc:"people"`
	// StandIns lists the groups whose members may also fill seats of this stage after an
	// escalation, ordered by group. They are derived from Escalate of the stage's rule, and can't
	// be written in a file.
	StandIns []StandIn
}

// StandIn is a group that may fill seats of a stage from a time on.
type StandIn struct {
	Group string
	After time.Duration // since the moment of asking
}

// Timeout is the outcome if nothing is decided by the deadline.
type Timeout string

// These are the outcomes of an approval that was not decided in time. The empty Timeout means "no
// opinion": the agent file's own rules have it, because they can't set deadlines, and any policy
// overrides it. A parsed policy rule always has an opinion: if it omits `on_timeout`, the value is
// deny. Otherwise a second policy could weaken the first one's deny.
const (
	TimeoutApprove  Timeout = "approve"  // only where the runtime owner opted in; recorded as "by timeout"
	TimeoutEscalate Timeout = "escalate" // to the groups of Escalate, then deny
	TimeoutDeny     Timeout = "deny"
)

// Escalation calls in another group after some time without a decision. Each group is called in
// once, at its earliest time.
type Escalation struct {
	After time.Duration `doc:"after"`
	To    string        `doc:"to"`
	May   May           `doc:"may"`
}

// May lists the permissions of people in a called-in group. The empty May is MayApprove.
type May string

// These are the permissions of people who are called in.
const (
	// MayApprove: fill open seats of the stages of the rule that
	// escalates to them, deny and respond.
	MayApprove May = "approve"
	// MayLook: deny and respond, but fill no seat.
	MayLook May = "look"
)

// Grants limits the standing approvals that this approval may create. The zero value sets no limit.
type Grants struct {
	Forbid  bool          // none at all; the other fields are then zero
	Session bool          `doc:"session"`  // only for the running session
	MaxAge  time.Duration `doc:"max_age"`  // 0: no bound
	MaxUses int           `doc:"max_uses"` // 0: no bound
	// Bounds lists the arguments that may differ from the approved ones, and how; ordered. Nil
	// means "no opinion", which only the zero value has. A rule that asks always has an opinion,
	// which is "none" unless the rule names some. When a requirement is applied, no opinion permits
	// nothing.
	Bounds []Bound `doc:"bounds"`
}

// Bound lets approvers decide that one argument may differ from the approved one, in one way.
type Bound struct {
	Path string    `json:"path" doc:"path"` // whole key, or dotted path
	Kind BoundKind `json:"kind" doc:"kind"`
}

// BoundKind is the way in which an argument may differ.
type BoundKind string

// The kinds of bounds. The approved number is the limit of a number. For a text, the approver chooses a value.
const (
	AtMost  BoundKind = "at_most"  // between zero and the approved number, which is not negative
	AtLeast BoundKind = "at_least" // between the approved number, which is not positive, and zero
	Equals  BoundKind = "equals"   // one other text; several bounds make a list
	Prefix  BoundKind = "prefix"   // a text that begins in the same way
	Below   BoundKind = "below"    // a path below one directory
	Host    BoundKind = "host"     // an address of the web with the same scheme and one host
	Words   BoundKind = "words"    // a simple command line with the same words, except those that are *
	AnyText BoundKind = "any_text" // any text
)

// AllBoundKinds lists the kinds, those of numbers first.
func AllBoundKinds() []BoundKind {
	return []BoundKind{AtMost, AtLeast, Equals, Prefix, Below, Host, Words, AnyText}
}

// IsBoundKind reports whether there is such a kind.
func IsBoundKind(k BoundKind) bool { return slices.Contains(AllBoundKinds(), k) }

// BoundKinds lists the kinds, for messages.
func BoundKinds() string {
	var words []string
	for _, k := range AllBoundKinds() {
		words = append(words, string(k))
	}
	last := len(words) - 1

	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Arguments defines what channels may show of a call's arguments. The zero value is `full`:
// everything.
type Arguments struct {
	Redact []string `doc:"redact"` // paths whose values are hidden, ordered; a first segment ** matches any path
	// ForbidHidden forbids approving a call if one of its values is hidden. It has no effect
	// without Redact.
	ForbidHidden bool
}

// Fallback returns the final outcome of a timeout: deny if OnTimeout is unset.
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

// Join returns the loosest requirement that is at least as tight as both: the least upper bound of
// Tighter. It shares no memory with a or b.
//
// Stages of one group join to the larger number and don't add up: each requires that n distinct
// people of this group agreed, so two people of risk satisfy two policies that each require two of
// risk, and joining a policy with itself changes nothing. Different groups stay different stages,
// and one person can't fill seats in two of them. If two rules have the same stage, only people
// whom both rules call in may stand in. People who are called in only to look never stand in.
func (a Require) Join(b Require) Require {
	var out Require
	for i := range parts {
		out = parts[i].join(out, a, b)
	}
	return out
}

// withStandIns adds the groups of Escalate as stand-ins to each stage of the rule.
func (a Require) withStandIns() Require {
	add := func(stages []Stage) {
		for i := range stages {
			for _, e := range a.Escalate {
				stages[i].StandIns = append(stages[i].StandIns, StandIn{Group: e.To, After: e.After})
			}
		}
	}
	add(a.Stages)
	for _, alternatives := range a.AnyOf {
		for _, stages := range alternatives {
			add(stages)
		}
	}

	return a.Join(Require{})
}

// Tighter reports whether a requires at least what b requires: every approval that satisfies a
// satisfies b. It is a partial order over joined or parsed requirements. A value built by hand is
// normalized by Join with itself.
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

// standsIn returns the time after which people of a group may fill seats of the stage. It returns
// false if they never may.
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

// IsZero reports whether a policy file doesn't need to mention the bounds: by default no argument
// may vary.
func (a Grants) IsZero() bool {
	return !a.Forbid && !a.Session && a.MaxAge == 0 && a.MaxUses == 0 && len(a.Bounds) == 0
}

// Varies reports whether an argument may differ from the approved one in this way.
func (a Grants) Varies(path string, kind BoundKind) bool {
	return slices.Contains(a.Bounds, Bound{Path: path, Kind: kind})
}

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

// common returns the bounds that both lists permit. Nil has no opinion.
func common(a, b []Bound) []Bound {
	if a == nil {
		return normalBounds(b)
	}
	if b == nil {
		return normalBounds(a)
	}

	return normalBounds(slices.DeleteFunc(slices.Clone(a), func(x Bound) bool { return !slices.Contains(b, x) }))
}

// normalBounds returns a sorted copy without repetitions. An empty list remains different from nil,
// because it is an opinion.
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

// boundsWithin reports whether b permits every variation that a permits.
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

// normalStages sorts by group and merges the stages of one group: the largest number, and the
// stand-ins that all of them have, at their latest time. Groups that are called in only to look are
// removed from the stand-ins.
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

// normalStandIns sorts by group and keeps the earliest time of each, because one rule may call in a
// group twice.
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

// normalEscalations keeps the earliest call of each group, with MayLook if any of its calls has it,
// and sorts by time. It may modify its argument.
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

// normalPaths sorts and removes repetitions. It may modify its argument.
func normalPaths(in []string) []string {
	slices.Sort(in)
	return orNil(slices.Compact(in))
}

// orNil returns nil for an empty list, so that equal requirements are equal values.
func orNil[T any](in []T) []T {
	if len(in) == 0 {
		return nil
	}
	return in
}
