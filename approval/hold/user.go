package hold

import "github.com/assent-dev/assent/policy"

// UserMay returns why the user of an agent can't fulfil the requirement alone, or an empty string
// if they can.
func UserMay(r *policy.Require) string {
	switch {
	case r == nil:
		return ""
	case len(r.Stages)+len(r.AnyOf)+len(r.Escalate) > 0:
		return "the rules want an approval of other people than the user, who can't be asked here"
	case !r.Reason.IsZero():
		return "the rules want a reason for the approval, which the user can't be asked for here"
	case len(r.Arguments.Redact) > 0:
		return "the rules hide arguments, so the user can't be asked about them"
	}

	return ""
}
