package gateway

import (
	"cmp"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
)

// Reasons of endings that only the gateway uses.
const (
	whyFailed  durable.Why = "failed"  // the question could not be asked, or the operation could not be run
	whyInvalid durable.Why = "invalid" // the user's answer was invalid
)

// Texts of endings. Each says whether anything ran.
const (
	textExpired     = "nobody approved the call in time; nothing was run"
	textUnanswered  = "nobody answered the question in time; nothing was run"
	textForgotten   = "the approval is not known any more; nothing was run"
	textUnreachable = "the approvers can't be reached; nothing was run"
	textUnasked     = "the question could not be put to the user; nothing was run"
	textInvalid     = "the answer to the question was not valid; nothing was run"
	textStopped     = "outcome unknown: the server was stopped while the operation ran; it was not run again"
	textLost        = "outcome unknown: the server was interrupted while the operation ran; it was not run again"
)

// ended writes the result for the runtime and marks it to be posted.
func (g *Gateway) ended(r *record, e durable.Ending) {
	c := &r.Part
	r.Message = &durable.Attempt{}
	switch e.Why {
	case durable.Returned: // the run has written it
	case durable.Responded:
		c.Verdict = verdictDeny
		finish(r, rap.Outcome{Text: e.Reason})
	default:
		verdict, text := verdictAndText(e)
		c.Verdict = verdict
		finish(r, errorOutcome(text))
	}
}

// verdictAndText returns the verdict and the text for a call that did not run, or whose outcome
// is unknown.
func verdictAndText(e durable.Ending) (verdict, text string) {
	switch e.Why {
	case durable.Refused:
		return verdictDeny, e.Reason
	case durable.Denied:
		return verdictDeny, "the approvers denied this call" + because(e.Reason)
	case durable.NotClaimed:
		return verdictDeny, "the approval can't be used: " + e.Reason
	case durable.Expired:
		return verdictExpired, textExpired
	case durable.Late:
		return verdictExpired, textUnanswered
	case durable.Withdrawn:
		return verdictCancelled, "the approval was withdrawn; nothing was run" + because(e.Reason)
	case durable.Interrupted:
		return verdictCancelled, e.Reason + "; nothing was run"
	case durable.Forgotten:
		return verdictFailed, textForgotten
	case durable.Unreachable:
		return verdictFailed, textUnreachable
	case durable.Unknown:
		return verdictUnknown, textLost
	case whyInvalid:
		return verdictInvalid, textInvalid
	}

	return verdictFailed, e.Reason
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// finish stores the result of a call, and drops everything that a repetition doesn't need.
func finish(r *record, out rap.Outcome) {
	c := &r.Part
	var sent bool
	c.Result, sent = resultBody(c, out)
	switch failed := c.Verdict == verdictFailed || c.Verdict == verdictUnknown; {
	case c.Follows == "":
	case failed || out.Subscription && !sent:
		r.Stop = cmp.Or(r.Stop, "the run failed") // ends the subscription
	case !out.Subscription:
		c.Follows = ""
	}

	r.Arguments = nil
	r.Edited = nil
	c.Until = time.Time{}
	if c.Question != nil {
		c.Question.Body = nil
	}
}
