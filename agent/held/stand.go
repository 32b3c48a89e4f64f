package held

import (
	"net/url"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

// stand tells how a request stands. A consumed one was approved: that its run is taken is for Claim to say, which knows the key.
func (h *holder) stand(r *approval.Request) hold.Held {
	out := hold.Held{Ref: r.ID, State: stateOf(r), Reason: reasonOf(r), By: r.By, Where: h.page(r.ID)}
	switch out.State {
	case hold.Pending:
		out.By, out.Expires = "", r.Deadline
	case hold.Approved:
		out.By, out.Arguments = approvers(r), edited(r)
		if r.State == approval.Approved && r.Permit != nil {
			out.Expires = r.Permit.Expires
		}
	}
	return out
}

func (h *holder) page(id string) string {
	if h.inbox == "" {
		return ""
	}
	return strings.TrimSuffix(h.inbox, "/") + "/requests/" + url.PathEscape(id)
}

// stateOf says what a request came to for the agent. What is unknown lets nothing run.
func stateOf(r *approval.Request) hold.State {
	switch r.State {
	case approval.Pending:
		return hold.Pending
	case approval.Approved, approval.Consumed:
		return hold.Approved
	case approval.Cancelled:
		return hold.Cancelled
	case approval.Expired:
		return expiredAs(r.Cause)
	}
	if r.State == approval.Denied && r.Cause == approval.ByResponse {
		return hold.Responded
	}
	return hold.Denied
}

// expiredAs tells approvals that ended by somebody's word from those that time ended.
func expiredAs(why approval.Cause) hold.State {
	switch why {
	case approval.ByLateDeny:
		return hold.Denied
	case approval.ByRequester, approval.BySupersede:
		return hold.Cancelled
	}
	return hold.Expired
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
	case r.Cause == approval.BySupersede:
		return "a newer request stands in its place"
	}
	return r.Reason
}

// ending tells in words how a request ended.
func ending(r hold.Held) string {
	switch r.State {
	case hold.Denied:
		return withReason("denied by "+r.By, r.Reason)
	case hold.Responded:
		return withReason(r.By+" answered instead", r.Reason)
	case hold.Cancelled:
		return withReason("the request was withdrawn", r.Reason)
	}
	return orElse(r.Reason, "the request is "+string(r.State))
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// edited returns the arguments that may run when they are not those that were asked about.
func edited(r *approval.Request) []byte {
	if args := r.Current().Call.Args; args != r.Revisions[0].Call.Args {
		return []byte(args)
	}
	return nil
}

// approvers names who approved what may run, in the order they did.
func approvers(r *approval.Request) string {
	if r.By == "" { // nobody brought it about: time did, as the rules want it
		return "timeout"
	}
	var out []string
	for _, v := range r.Votes {
		if v.Verdict == approval.Approve && !v.Late && v.Revision == r.Current().Number && !slices.Contains(out, v.Person) {
			out = append(out, v.Person)
		}
	}
	return strings.Join(out, ", ")
}

func grantors(g *approval.Grant) string {
	return strings.Join(g.By, ", ") + " (standing approval " + g.ID + ")"
}

// frozen and coolingDown are what Opened.Denied says.
const (
	frozen      = "frozen"
	coolingDown = "cooling_down"
)

// deniedReason says why a call was denied without asking.
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
