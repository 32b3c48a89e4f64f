package approval

import (
	"slices"
	"time"
)

// Standing holds the fields that standing approvals of all kinds share: grants, session grants of RAP, and
// rules of the agent loop. Each kind also compares what only it has, such as arguments or a thread.
type Standing struct {
	// Basis is what must be the same as when the approval was given, such as the plan, the agent, the
	// tool and its definition.
	Basis []string
	// Rules are the rules that asked when the approval was given. It is nil for approvals that no rule
	// asks about.
	Rules []string
	// Created is the zero time if the approval may have been given on a machine with another clock.
	Created time.Time
	Expires time.Time
	Uses    int
	MaxUses int
}

// Covers reports whether the approval lets a call run. basis and rules are those of the call.
func (s Standing) Covers(basis, rules []string, now time.Time) bool {
	return s.Live(now) && slices.Equal(s.Basis, basis) &&
		!slices.ContainsFunc(rules, func(rule string) bool { return !slices.Contains(s.Rules, rule) })
}

// Live reports whether the approval can still be used.
func (s Standing) Live(now time.Time) bool {
	return !now.Before(s.Created) && now.Before(s.Expires) && s.Uses < s.MaxUses
}
