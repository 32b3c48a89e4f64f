package approval

import (
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/quorum"
)

// keptPart maps one part of the policy's requirement to fields of a request.
type keptPart struct {
	name  string // as in policy.Parts
	read  func(r *Request, q *policy.Require)
	write func(r *Request, q *policy.Require)
}

// keptParts has an entry for each of policy.Parts. A test fails if one is missing, because the
// service would ignore that part.
func keptParts() []keptPart {
	return []keptPart{
		{
			name: "stages",
			read: func(r *Request, q *policy.Require) {
				if !quorum.IsAnyone(r.Stages) || len(r.AnyOf) > 0 {
					q.Stages = r.Stages
				}
			},
			write: func(r *Request, q *policy.Require) { r.Stages = quorum.Stages(q.Stages, q.AnyOf, false) },
		},
		{
			name:  "within",
			read:  func(r *Request, q *policy.Require) { q.Within = r.Within },
			write: func(r *Request, q *policy.Require) { r.Within = q.Within },
		},
		{
			name:  "on_timeout",
			read:  func(r *Request, q *policy.Require) { q.OnTimeout = r.OnTimeout },
			write: func(r *Request, q *policy.Require) { r.OnTimeout = q.Fallback() },
		},
		{
			// The times at which groups are added are in Request.Scheduled.
			name: "escalate",
			read: func(r *Request, q *policy.Require) {
				for _, group := range r.Lookers {
					q.Escalate = append(q.Escalate, policy.Escalation{To: group, May: policy.MayLook})
				}
			},
			write: func(r *Request, q *policy.Require) {
				r.Lookers = nil
				for _, e := range q.Escalate {
					if e.May == policy.MayLook {
						r.Lookers = append(r.Lookers, e.To)
					}
				}
			},
		},
		{
			name:  "grants",
			read:  func(r *Request, q *policy.Require) { q.Grants = r.Grants },
			write: func(r *Request, q *policy.Require) { r.Grants = q.Grants },
		},
		{
			name: "arguments",
			read: func(r *Request, q *policy.Require) {
				q.Arguments = policy.Arguments{Redact: r.Redact, ForbidHidden: r.ForbidHidden}
			},
			write: func(r *Request, q *policy.Require) {
				r.Redact, r.ForbidHidden = q.Arguments.Redact, q.Arguments.ForbidHidden
			},
		},
		{
			name:  "any_of",
			read:  func(r *Request, q *policy.Require) { q.AnyOf = r.AnyOf },
			write: func(r *Request, q *policy.Require) { r.AnyOf = q.AnyOf },
		},
		{
			name:  "reason",
			read:  func(r *Request, q *policy.Require) { q.Reason = r.NeedsReason },
			write: func(r *Request, q *policy.Require) { r.NeedsReason = q.Reason },
		},
	}
}
