package approval

import (
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/policy"
)

// model is the request according to the documentation. It uses sets instead of the state machine's
// lists, and a search instead of its matching.
type model struct {
	state     State
	cause     Cause
	revision  int
	approvals map[string]bool // approvals of the current revision
	answers   map[string]bool // person, verdict and revision of every stored answer
	stages    map[string]int
	standIns  map[string]map[string]time.Time // stage → group → time from which its members may fill seats
	lookers   map[string]bool                 // groups that were called in as readers
	fallback  policy.Timeout
	within    time.Duration
	created   time.Time
	deadline  time.Time
	called    map[string]bool
	scheduled map[string]time.Time // group → time at which it is called in
	expires   time.Time
	key, by   string
	consumed  int
	grants    policy.Grants
	redact    map[string]bool
}

// assigns tries all ways to seat different people.
func assigns(stages map[string]int, people []string, holds func(person, group string) bool) bool {
	for _, group := range slices.Sorted(maps.Keys(stages)) {
		if stages[group] == 0 {
			continue
		}
		left := maps.Clone(stages)
		left[group]--
		for i, p := range people {
			if holds(p, group) && assigns(left, slices.Concat(people[:i], people[i+1:]), holds) {
				return true
			}
		}
		return false
	}

	return true
}

// join adds the requirement of a rule.
func (m *model) join(q policy.Require, now time.Time) {
	if len(q.Stages) > 0 {
		delete(m.stages, "")
	}
	for _, s := range q.Stages {
		m.standIn(s, now)
		m.stages[s.Group] = max(m.stages[s.Group], s.People)
	}
	for _, e := range q.Escalate {
		m.lookers[e.To] = m.lookers[e.To] || e.May == policy.MayLook
	}
	if len(m.stages) == 0 {
		m.stages[""] = 1 // any approver
	}
	if q.Within != 0 && (m.within == 0 || q.Within < m.within) {
		m.within = q.Within
	}
	for _, e := range q.Escalate {
		at := now.Add(e.After)
		if have, ok := m.scheduled[e.To]; !m.called[e.To] && (!ok || at.Before(have)) {
			m.scheduled[e.To] = at
		}
	}

	for _, p := range q.Arguments.Redact {
		m.redact[p] = true
	}
	m.grants = policy.Require{Grants: m.grants}.Join(policy.Require{Grants: q.Grants}).Grants
}

// standIn keeps the StandIns that every rule with the stage has.
func (m *model) standIn(s policy.Stage, now time.Time) {
	fresh := map[string]time.Time{}
	for _, i := range s.StandIns {
		before, both := m.standIns[s.Group][i.Group]
		if m.stages[s.Group] > 0 && !both {
			continue
		}
		fresh[i.Group] = now.Add(i.After)
		if both && before.After(fresh[i.Group]) {
			fresh[i.Group] = before
		}
	}

	m.standIns[s.Group] = fresh
}

// pass applies the effects of time to the model.
func (m *model) pass(now time.Time, cfg Config) {
	if m.state == Approved && !now.Before(m.expires) {
		m.state, m.cause = Expired, ByPermitAge
	}
	if m.state != Pending {
		return
	}
	for g, at := range m.scheduled {
		// A group is called in at its time, but not later than the end of the request.
		if !now.Before(at) && (at.Before(m.deadline) || !now.Before(m.deadline)) {
			m.called[g] = true
			delete(m.scheduled, g)
		}
	}

	if now.Before(m.deadline) {
		return
	}
	switch {
	case m.fallback == policy.TimeoutApprove:
		m.state = Approved
		m.cause = ByTimeout
		m.expires = now.Add(cfg.PermitAge)
		return
	case m.fallback == policy.TimeoutEscalate && len(m.called) > 0:
		m.fallback, m.deadline = policy.TimeoutDeny, m.deadline.Add(m.within)
		if now.Before(m.deadline) {
			return
		}
	}

	m.state, m.cause = Expired, ByDeadline
}

func (m *model) late(v Verdict) VoteOutcome {
	switch {
	case m.state == Approved && v != Approve:
		m.state, m.cause = Expired, ByLateDeny
		return VoteRevoked
	case m.state == Denied && v == Approve, m.state == Consumed && v != Approve:
		return VoteConflicting
	}

	return VoteLate
}
