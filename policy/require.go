package policy

import (
	"cmp"
	"slices"
	"time"
)

// Require is what an approval must fulfil: who, by when, and what happens otherwise (docs/contracts/policy.md). The zero
// value requires nothing beyond one approver.
//
// Requirements form a lattice: Tighter is its partial order, Join its least upper bound, the zero value its
// bottom. So the order in which policies are joined can't matter, joining twice changes nothing, and one more
// policy never loosens (docs/design/001-semantics.md).
//
// Two words are bounds and not permissions, which is what makes "strictest wins" safe. Grants bounds what the
// runtime owner offers anyway; `session` doesn't switch grants on. Escalate calls more people in; it doesn't let
// them take a seat of a group they don't hold.
type Require struct {
	Stages    []Stage       // all of them, by distinct people; ordered by group
	Within    time.Duration // 0: no deadline
	OnTimeout Timeout
	Escalate  []Escalation // ordered by After, then To
	Grants    Grants
	Arguments Arguments
}

// Stage asks for a number of distinct people of one group. People are distinct across stages too, and the
// requester never counts.
type Stage struct {
	Group  string `json:"group"`
	People int    `json:"people"`
}

// Timeout says what happens when nobody decided within the deadline.
type Timeout string

// The endings of an approval that nobody decided. The empty Timeout is "no opinion": it is what the agent
// file's own rules have, which cannot speak about deadlines, and gives way to any policy's word. A parsed policy
// rule always has an opinion, since leaving `on_timeout` out there means deny; otherwise a second policy
// could turn the first one's deny into something weaker.
const (
	TimeoutApprove  Timeout = "approve"  // only where the runtime owner opted in; recorded as "by timeout"
	TimeoutEscalate Timeout = "escalate" // to the groups of Escalate, then deny
	TimeoutDeny     Timeout = "deny"
)

// Escalation calls another group in when nobody has decided for some time. Each group is called once, at its
// earliest time.
type Escalation struct {
	After time.Duration
	To    string
}

// Grants bounds standing approvals that may come out of this one. The zero value sets no bound.
type Grants struct {
	Forbid  bool          // none at all; the other fields are then zero
	Session bool          // only for the running session
	MaxAge  time.Duration // 0: no bound
	MaxUses int           // 0: no bound
}

// Arguments says what channels may show of a call's arguments. The zero value is `full`: everything.
type Arguments struct {
	Redact []string // paths whose values are hidden, ordered
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
	return len(a.Stages) == 0 && a.Within == 0 && a.OnTimeout == "" && len(a.Escalate) == 0 &&
		a.Grants == Grants{} && len(a.Arguments.Redact) == 0
}

// Join is the loosest requirement that is at least as tight as both: the least upper bound of Tighter. It
// shares no memory with a or b.
//
// Stages of one group join to the larger number and don't add up: each says "n distinct people of this group
// agreed", so two people of risk fulfil two policies that each want two of risk, and joining a policy with itself
// changes nothing. Different groups stay different stages, and no one person may sit in two of them.
func (a Require) Join(b Require) Require {
	return Require{
		Stages:    normalStages(slices.Concat(a.Stages, b.Stages)),
		Within:    lower(a.Within, b.Within),
		OnTimeout: stricter(a.OnTimeout, b.OnTimeout),
		Escalate:  normalEscalations(slices.Concat(a.Escalate, b.Escalate)),
		Grants:    a.Grants.join(b.Grants),
		Arguments: Arguments{Redact: normalPaths(slices.Concat(a.Arguments.Redact, b.Arguments.Redact))},
	}
}

// Tighter reports whether a demands at least what b demands: whoever fulfils a fulfils b. It is a partial
// order over joined or parsed requirements (a value built by hand is put in order by Join with itself).
func Tighter(a, b Require) bool {
	for _, s := range b.Stages {
		if !slices.ContainsFunc(a.Stages, func(t Stage) bool { return t.Group == s.Group && t.People >= s.People }) {
			return false
		}
	}
	for _, e := range b.Escalate {
		if !slices.ContainsFunc(a.Escalate, func(f Escalation) bool { return f.To == e.To && f.After <= e.After }) {
			return false
		}
	}
	for _, p := range b.Arguments.Redact {
		if !slices.Contains(a.Arguments.Redact, p) {
			return false
		}
	}
	return atMost(a.Within, b.Within) && rank(a.OnTimeout) >= rank(b.OnTimeout) && a.Grants.tighter(b.Grants)
}

func (a Grants) join(b Grants) Grants {
	if a.Forbid || b.Forbid {
		return Grants{Forbid: true}
	}
	return Grants{
		Session: a.Session || b.Session,
		MaxAge:  lower(a.MaxAge, b.MaxAge),
		MaxUses: lower(a.MaxUses, b.MaxUses),
	}
}

func (a Grants) tighter(b Grants) bool {
	if a.Forbid || b.Forbid {
		return a.Forbid
	}
	return (a.Session || !b.Session) && atMost(a.MaxAge, b.MaxAge) && atMost(a.MaxUses, b.MaxUses)
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

// rank orders timeouts from no opinion to the strictest. An unknown word ranks as deny.
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

// normalStages sorts by group and keeps the largest number of each. It owns its argument.
func normalStages(in []Stage) []Stage {
	slices.SortFunc(in, func(a, b Stage) int { return cmp.Or(cmp.Compare(a.Group, b.Group), b.People-a.People) })
	return orNil(slices.CompactFunc(in, func(a, b Stage) bool { return a.Group == b.Group }))
}

// normalEscalations keeps the earliest call of each group and sorts by time. It owns its argument.
func normalEscalations(in []Escalation) []Escalation {
	slices.SortFunc(in, func(a, b Escalation) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.After, b.After)) })
	in = slices.CompactFunc(in, func(a, b Escalation) bool { return a.To == b.To })
	slices.SortFunc(in, func(a, b Escalation) int { return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.To, b.To)) })
	return orNil(in)
}

// normalPaths sorts and drops repetitions. It owns its argument.
func normalPaths(in []string) []string {
	slices.Sort(in)
	return orNil(slices.Compact(in))
}

// orNil gives empty lists one form, so that equal requirements are equal values.
func orNil[T any](in []T) []T {
	if len(in) == 0 {
		return nil
	}
	return in
}
