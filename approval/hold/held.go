package hold

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// held returns a request as the runtime sees it. A consumed request is Approved, because only
// Claim, which has the key, can decide who may run it.
func (r *requests) held(found *approval.Request) Held {
	out := Held{
		Ref:    found.ID,
		State:  stateOf(found),
		Reason: reasonOf(found),
		By:     found.By,
		Where:  r.page(found.ID),
	}
	switch out.State {
	case Pending:
		out.By = ""
		out.Expires = found.Deadline
	case Approved:
		out.By = approvers(found)
		out.Arguments = edited(found)
		out.Used = found.State == approval.Consumed
		if found.State == approval.Approved && found.Permit != nil {
			out.Expires = found.Permit.Expires
		}
	}

	return out
}

func (r *requests) page(id string) string {
	if r.inbox == "" {
		return ""
	}

	return strings.TrimSuffix(r.inbox, "/") + "/requests/" + url.PathEscape(id)
}

// stateOf returns the state of a request for the agent. An unknown state lets nothing run.
func stateOf(r *approval.Request) State {
	switch r.State {
	case approval.Pending:
		return Pending
	case approval.Approved, approval.Consumed:
		return Approved
	case approval.Cancelled:
		return Cancelled
	case approval.Expired:
		return expiredAs(r.Cause)
	}

	if r.State == approval.Denied && r.Cause == approval.ByResponse {
		return Responded
	}
	return Denied
}

// expiredAs returns the state for an approval that ended before it was used, which depends on the
// cause: a person may have denied or withdrawn it.
func expiredAs(why approval.Cause) State {
	switch why {
	case approval.ByLateDeny:
		return Denied
	case approval.ByRequester, approval.BySupersede:
		return Cancelled
	}

	return Expired
}

func reasonOf(r *approval.Request) string {
	switch {
	case r.State == approval.Pending || r.State == approval.Approved || r.State == approval.Consumed:
		return ""
	case r.Cause == approval.ByResponse:
		return r.Answer
	case r.Cause == approval.ByDeadline:
		return "nobody decided in time; that is no denial"
	case r.Cause == approval.ByPermitAge:
		return "it was approved, and the approval was not used in time; that is no denial"
	case r.Cause == approval.ByPlanChange:
		return "it was approved, and the rules changed before it ran"
	case r.Cause == approval.ByHistory:
		return "it was approved, and calls that ran since then used up a limit"
	case r.Cause == approval.BySupersede:
		return "a newer request stands in its place"
	}

	return r.Reason
}

// ending describes in words how a request ended.
func ending(r Held) string {
	switch r.State {
	case Denied:
		return withReason("denied by "+r.By, r.Reason)
	case Responded:
		return withReason(r.By+" answered instead", r.Reason)
	case Cancelled:
		return withReason("the request was withdrawn", r.Reason)
	}

	return cmp.Or(r.Reason, "the request is "+string(r.State))
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// edited returns the arguments that may run if people edited them, or nil.
func edited(r *approval.Request) []byte {
	if args := r.Current().Call.Args; !bytes.Equal(args, r.Revisions[0].Call.Args) {
		return bytes.Clone(args)
	}
	return nil
}

// approvers returns the names of the people who approved the current revision, in the order of
// their votes.
func approvers(r *approval.Request) string {
	if r.By == "" { // it was approved by a timeout
		return "timeout"
	}

	return strings.Join(r.ApprovedBy(), ", ")
}

func grantors(g *approval.Grant) string {
	return strings.Join(g.By, ", ") + " (standing approval " + g.ID + ")"
}

// frozen and coolingDown are values of Opened.Denied.
const (
	frozen      = "frozen"
	coolingDown = "cooling_down"
)

// deniedReason describes why a call was denied without asking people.
func deniedReason(o *approval.Opened) string {
	switch {
	case o.Denied == coolingDown && o.Request != nil && o.Request.Answer != "":
		return "a person answered this same call a moment ago: " + o.Request.Answer
	case o.Denied == coolingDown && o.Request != nil:
		return withReason("a person denied this same call a moment ago", o.Request.Reason)
	case o.Decision.Message != "":
		return o.Decision.Message
	case len(o.Decision.Reasons) > 0:
		return o.Decision.Reasons[0].Detail
	}

	return "the rules deny the call"
}
