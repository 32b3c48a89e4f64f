package approval

import "maps"

// Event is something that happened and is recorded in the ledger. Its Sealed parts can be redacted
// later without breaking the ledger.
type Event struct {
	Type    string
	Subject string // id of the request or grant
	Actor   string
	Facts   map[string]any
	Sealed  map[string]string
}

// The types of events. They are also the names of webhooks and of the
// event stream.
const (
	EventAllowed        = "call_allowed"
	EventDenied         = "call_denied"
	EventOpened         = "request_opened"
	EventShared         = "request_shared" // an identical call was answered with an existing request
	EventVote           = "vote_counted"
	EventVoteRefused    = "vote_refused"
	EventVoteLate       = "vote_late"
	EventEdited         = "request_edited"
	EventEditRefused    = "edit_refused"
	EventApproved       = "request_approved"
	EventRequestDenied  = "request_denied"
	EventAnswered       = "request_answered" // a question was answered
	EventExpired        = "request_expired"
	EventCancelled      = "request_cancelled"
	EventReminded       = "request_reminded"
	EventEscalated      = "request_escalated"
	EventConsumed       = "permit_consumed"
	EventPermitExpired  = "permit_expired"
	EventConsumeRefused = "consume_refused"
	EventGrantCreated   = "grant_created"
	EventGrantUsed      = "grant_used"
	EventGrantRevoked   = "grant_revoked"
	EventFrozen         = "frozen"
	EventThawed         = "thawed"
)

// takesAway reports whether an event uses up or removes a right to run, or changes what is asked.
// If such an event were lost, a call could run that must not. Other events need no such care: time
// takes effect again, and freezes and revoked tokens are recorded next to the key.
func (e Event) takesAway() bool {
	switch e.Type {
	case EventConsumed, EventRequestDenied, EventAnswered, EventCancelled, EventEdited, EventGrantUsed,
		EventGrantRevoked:
		return true
	case EventExpired: // by a late deny or a changed plan; expiry by time has no actor
		return e.Actor != ""
	}
	return false
}

// event returns an event about a request, with the facts that all such events have.
func (r *Request) event(kind, actor string, facts map[string]any) Event {
	all := map[string]any{
		"agent":    r.Agent.ID,
		"target":   r.Current().Call.Target(),
		"state":    string(r.State),
		"binding":  r.Binding(),
		"revision": r.Current().Number,
	}
	if r.Cause != "" {
		all["cause"] = string(r.Cause)
	}
	maps.Copy(all, facts)
	return Event{Type: kind, Subject: r.ID, Actor: actor, Facts: all}
}

// sealing adds a sealed part unless the text is empty.
func (e Event) sealing(name, text string) Event {
	if text == "" {
		return e
	}
	if e.Sealed == nil {
		e.Sealed = map[string]string{}
	}
	e.Sealed[name] = text
	return e
}
