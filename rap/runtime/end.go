package runtime

import (
	"context"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
)

// Reasons of endings that only the runtime uses. Their texts are complete sentences.
const (
	whyInvalid     durable.Why = "invalid"
	whyNotAccepted durable.Why = "not_accepted" // the tool server refused the call
	whyNotReached  durable.Why = "not_reached"  // the server may have received it nevertheless
	whyUnanswered  durable.Why = "unanswered"
	whyNotPut      durable.Why = "not_put" // the tool's question was not asked
	whyClosed      durable.Why = "closed"
)

// toldOf reports whether the tool servers are notified of an end now. Cancel notifies them
// itself, once no request for the call is in progress. For a closed thread the notice of its
// closure is enough.
func toldOf(c *call, why durable.Why) bool {
	switch why {
	case durable.Interrupted, whyClosed, whyNotAccepted:
		return false
	}

	return wasSent(c)
}

// describeEnding returns the reason and the text for a call that ended without a result.
func describeEnding(c *call, how durable.Ending) (Why, string) {
	switch how.Why {
	case whyInvalid:
		return WhyInvalid, how.Reason
	case whyNotAccepted, whyNotReached:
		return WhyNotAccepted, how.Reason
	case whyUnanswered:
		return WhyUnanswered, how.Reason
	case whyNotPut:
		return WhyDenied, how.Reason
	case whyClosed:
		return WhyClosed, how.Reason
	case durable.Late:
		return WhyTimeout, "no result came in time"
	case durable.Interrupted:
		return WhyInterrupted, withReason("interrupted", how.Reason)
	case durable.Unknown:
		return WhyNotAccepted, withReason("nobody knows what became of the call", how.Reason)
	}

	if c.State == durable.Away {
		return WhyUnanswered, wordsOfChoice(how)
	}
	return WhyDenied, "not run: " + wordsOfApproval(how)
}

// wordsOfChoice explains why a question of the tool has no answer.
func wordsOfChoice(how durable.Ending) string {
	switch how.Why {
	case durable.Unreachable:
		return "there is nobody to whom its question could be put"
	case durable.Forgotten:
		return "nobody knows its question any more"
	}

	return "nobody answered its question in time"
}

// wordsOfApproval explains why a call was not allowed to be sent.
func wordsOfApproval(how durable.Ending) string {
	switch how.Why {
	case durable.Denied:
		return withReason("its approval was denied", how.Reason)
	case durable.Responded:
		return "a person answered instead: " + how.Reason
	case durable.Expired:
		return "nobody approved it in time"
	case durable.Withdrawn:
		return "the request for its approval was withdrawn"
	case durable.Forgotten:
		return "nobody knows the request for its approval any more"
	case durable.Unreachable:
		return "people would have to approve it, and nobody can be asked"
	}

	return how.Reason
}

// moved is called after each change of state. When a call ends, it records that in the ledger
// and notifies the tool servers.
func (d *dispatcher) moved(ctx context.Context, was durable.State, c *call) {
	if !c.Over() || was == durable.Ended || was == durable.Closed {
		return
	}
	d.noteEnd(ctx, c)
	d.listings.updateListing(ctx, c)
	d.signIns.endSignIn(ctx, c)
	if c.Part.tell {
		d.tellCancelled(c)
	}
}

// noteEnd records how a call ended.
func (d *dispatcher) noteEnd(ctx context.Context, c *call) {
	event := "rap_result"
	switch c.Part.Told.Why {
	case WhyInterrupted, WhyClosed:
		event = "rap_cancelled"
	}

	d.note(ctx, event, c, map[string]any{"failed": c.Part.Told.Failed, "why": string(c.Part.Told.Why)})
}

// withdrawReason returns the reason for people if a request is withdrawn.
func withdrawReason(c *call) string {
	switch {
	case !c.Over():
		return "the tool asks something else"
	case c.Part.Told.Why == WhyInterrupted:
		return "the call was interrupted"
	case c.Part.Told.Why == WhyClosed:
		return "the thread was closed"
	}

	return "the call has ended"
}

func (d *dispatcher) tellCancelled(c *call) {
	d.tell(
		"/cancel_tool_call",
		wire.CancelCall{ThreadID: c.Part.Wire.Group, ToolCallID: c.Part.Wire.ID}.Append(nil),
	)
}
