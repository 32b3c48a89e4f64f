package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Request is the durable record of a request for approval or of a question. The store keeps it as
// one document; only the state machine changes it.
type Request struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant"`
	Version int64  `json:"version"` // grows with every change; the ETag of the API
	State   State  `json:"state"`
	Cause   Cause  `json:"cause,omitempty"`
	By      string `json:"by,omitempty"`       // the person or runtime that caused the state
	Reason  string `json:"reason,omitempty"`   // the reason that By gave
	Answer  string `json:"response,omitempty"` // a person's answer to the agent instead of an approval

	Created  time.Time  `json:"created"`
	Deadline time.Time  `json:"deadline"`
	Decided  *time.Time `json:"decided,omitempty"`
	Closed   *time.Time `json:"closed,omitempty"`
	Due      *time.Time `json:"due,omitempty"` // when the next effect of time is due; nil if there is none

	Requester Requester `json:"requester"`
	Agent     Agent     `json:"agent"`

	// Question is a question that a tool or an agent asks before it continues. It is nil if the request is for
	// the approval of a call.
	Question *Question `json:"question,omitempty"`
	Chosen   *int      `json:"chosen,omitempty"` // the index of the chosen choice, once State is Answered
	// Data is the submitted answer in canonical JSON, once State is Answered. It is empty if the
	// question was dismissed.
	Data json.RawMessage `json:"data,omitempty"`
	// Context is information that the agent adds to its call or question. It is shown below the facts, and
	// approvals do not depend on it.
	Context []info.Item `json:"context,omitempty"`

	// Revisions holds the call as it was asked, followed by every edit. Only the last revision may
	// run. Revisions is never empty.
	Revisions []Revision `json:"revisions"`

	// Stages are fixed when the request is opened. An edit can only add
	// to them (threat 23).
	Stages    []policy.Stage `json:"stages"`
	OnTimeout policy.Timeout `json:"on_timeout"`
	Within    time.Duration  `json:"within"`           // from opening to the first deadline, in nanoseconds
	Scheduled []Scheduled    `json:"ladder,omitempty"` // future reminders and escalations, ordered by time
	Called    []string       `json:"called,omitempty"` // groups that escalations have added
	Grants    policy.Grants  `json:"grants,omitzero"`  // the standing approvals that this request may lead to
	Redact    []string       `json:"redact,omitempty"` // paths of the values that channels hide
	// ForbidHidden forbids approving while a value of the call is hidden from the approver.
	ForbidHidden bool     `json:"forbid_hidden,omitempty"`
	Lookers      []string `json:"lookers,omitempty"` // groups that escalations add as readers, not as approvers
	Votes        []Vote   `json:"votes,omitempty"`
	Permit       *Permit  `json:"permit,omitempty"`
	GrantID      string   `json:"grant,omitempty"` // the standing approval that this request led to
	Replaces     string   `json:"replaces,omitempty"`
	Replaced     string   `json:"replaced_by,omitempty"`
	// AnyOf lists alternatives next to Stages. One alternative of each list must be filled.
	AnyOf []policy.AnyOf `json:"any_of,omitempty"`
	// NeedsReason is the text that an approval needs.
	NeedsReason policy.Reason `json:"needs_reason,omitzero"`
}

// Requester identifies the people and runtimes that want the call to run. None of them may vote.
type Requester struct {
	Runtime   string `json:"runtime"`             // name of the token that made the request
	Person    string `json:"person,omitempty"`    // owner of that token
	Principal string `json:"principal,omitempty"` // person or service that the agent acts for
	Session   string `json:"session,omitempty"`
	// Also lists further tokens that asked for the same call while the request was pending, at most
	// 50.
	Also   []string `json:"also,omitempty"`
	AlsoOf []string `json:"also_people,omitempty"` // owners of the tokens in Also, in the same order; empty if none
	// Unknown is set if the directory did not contain the principal when the request was opened.
	// The request then needs one more approver, because the principal could be one of the
	// approvers.
	Unknown bool `json:"unknown_principal,omitempty"`
	// Owners are the owners of the agent according to its file (metadata.labels.owner) and the
	// directory.
	Owners []string `json:"owners,omitempty"`
}

// Agent describes the agent that makes the call.
type Agent struct {
	ID          string `json:"id"`
	Version     string `json:"version,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Revision is one version of the call: the original, or an edit by an approver. An edit is a new
// call with a new digest and a full decision.
type Revision struct {
	Number   int              `json:"number"` // 0 for the original call
	Call     resolve.Call     `json:"call"`   // as returned by Call.Recorded
	Binding  string           `json:"binding"`
	Plan     string           `json:"plan"` // version of the plan that decided the call
	Decision resolve.Decision `json:"decision"`
	// MessageFrom is the source of the message's template, as in resolve.Decision. It is empty if
	// it was not recorded.
	MessageFrom resolve.Source `json:"message_from,omitempty"`
	// HintsBelieved is set if the hints about the tool come from a server that the runtime's owner
	// trusts.
	HintsBelieved bool `json:"hints_believed,omitempty"`
	// Ignored lists the arguments that a standing approval of this call does not compare, as the
	// runtime's owner declares them (resolve.Standing).
	Ignored []string  `json:"ignored,omitempty"`
	Author  string    `json:"author,omitempty"` // the person who made this edit; empty for the original call
	Note    string    `json:"note,omitempty"`
	At      time.Time `json:"at"`
}

// Scheduled is a reminder or an escalation that happens at a time unless the request is decided
// before.
type Scheduled struct {
	At   time.Time     `json:"at"`
	Kind ScheduledKind `json:"kind"`
	To   string        `json:"to,omitempty"` // the group of an escalation
}

// ScheduledKind is the kind of a Scheduled entry.
type ScheduledKind string

// The kinds of Scheduled entries.
const (
	Remind   ScheduledKind = "remind"
	Escalate ScheduledKind = "escalate"
)

// Vote is one person's answer to one revision.
type Vote struct {
	Person   string   `json:"person"` // canonical id
	Verdict  Verdict  `json:"verdict"`
	Revision int      `json:"revision"`
	Binding  string   `json:"binding"` // digest of the call that was shown to the person
	Reason   string   `json:"reason,omitempty"`
	Channel  string   `json:"channel"` // inbox, cli, slack, api…
	Groups   []string `json:"groups"`  // the person's groups at the time of the vote; counting asks the directory again
	Full     bool     `json:"shown_fully"`
	Hidden   []string `json:"hidden,omitempty"` // paths of the values that a policy hid from the person
	// Token is the name of the person's token that sent the answer. It is empty if the person was
	// signed in.
	Token  string          `json:"token,omitempty"`
	Chosen *int            `json:"chosen,omitempty"` // for Choose, and for Dismiss of a question with choices
	Data   json.RawMessage `json:"data,omitempty"`   // for Submit
	Late   bool            `json:"late,omitempty"`   // given after the request had ended; kept for the audit
	// Also is the number of further callers (Requester.Also) of the request when the vote was
	// given.
	Also  int         `json:"also,omitempty"`
	Grant *GrantOffer `json:"grant,omitempty"`
	At    time.Time   `json:"at"`
}

// Permit is the right to run the approved call once.
type Permit struct {
	Expires  time.Time  `json:"expires"`
	Key      string     `json:"key,omitempty"` // key of the consumption; only the same key gets the same answer again
	By       string     `json:"by,omitempty"`  // the runtime that consumed it
	Consumed *time.Time `json:"consumed,omitempty"`
	// Audience is the tool that verifies the permit, and Until is when the permit expires there.
	// Both are set when the request is consumed, and absent if the tool verifies no permits.
	Audience string     `json:"audience,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Signed is the signed permit for a tool that verifies it. It is set in the answer to the
	// consumer and never stored.
	Signed string `json:"signed,omitempty"`
}

// Current returns the last revision, the only one that may run.
func (r *Request) Current() *Revision { return &r.Revisions[len(r.Revisions)-1] }

// Pruned reports whether retention deleted the texts of the request. It looks at the arguments,
// because a recorded call always has some.
func (r *Request) Pruned() bool { return len(r.Current().Call.Args) == 0 }

// Clone returns a copy that the state machine may change without affecting the original. It shares
// what the state machine never changes in place: calls, decisions, votes and times.
func (r *Request) Clone() *Request {
	c := *r
	c.Revisions = slices.Clone(r.Revisions)
	c.Stages = slices.Clone(r.Stages)
	c.AnyOf = slices.Clone(r.AnyOf)
	c.Scheduled = slices.Clone(r.Scheduled)
	c.Called = slices.Clone(r.Called)
	c.Redact = slices.Clone(r.Redact)
	c.Lookers = slices.Clone(r.Lookers)
	c.Votes = slices.Clone(r.Votes)
	c.Requester.Also, c.Requester.AlsoOf = slices.Clone(r.Requester.Also), slices.Clone(r.Requester.AlsoOf)
	if r.Permit != nil {
		permit := *r.Permit
		c.Permit = &permit
	}
	return &c
}

// Binding returns the digest of the call that may run.
func (r *Request) Binding() string { return r.Current().Binding }

// revision returns the revision for a call that the plan decided.
func (c *Compiled) revision(call resolve.Call, binding string, d resolve.Decision) Revision {
	server := call.Container()

	return Revision{
		Call:          call,
		Binding:       binding,
		Plan:          c.Plan.Version(),
		Decision:      d,
		MessageFrom:   d.MessageFrom,
		HintsBelieved: server == "" || c.Plan.Trusts(server),
		Ignored:       c.Plan.Ignored(&call),
	}
}

// Summary is the part of a request that lists show.
type Summary struct {
	ID        string `json:"id"`
	Version   int64  `json:"version"`
	State     State  `json:"state"`
	Cause     Cause  `json:"cause,omitempty"`
	Agent     string `json:"agent"`  // id
	Target    string `json:"target"` // Call.Target
	Principal string `json:"principal,omitempty"`
	// Message is the policy author's message, at most 200 characters. It is empty if a policy hides
	// arguments, because the message could repeat them.
	Message string `json:"message"`
	// Rules is the digest of the rules that asked. Requests with the same digest have the same tool
	// and rules, so they may be decided together.
	Rules     string    `json:"rules"`
	Groups    []string  `json:"groups"`    // of stages and past escalations; [""] if any approver may answer
	Approvals int       `json:"approvals"` // approving votes of the current revision
	Needed    int       `json:"needed"`    // number of seats in all stages
	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline"`
	// Question is set if the request is a question. Message is then a text of ours; the question's
	// own text is only in the request.
	Question  bool      `json:"question,omitempty"`
	Answering Answering `json:"-"`               // the people whose answers the request waits for
	Bytes     int64     `json:"bytes,omitempty"` // approximate size of the whole request, set in lists
}
