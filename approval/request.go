package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Request is the durable record of one asking. The store keeps it as
// one document; only the machine changes it.
type Request struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant"`
	Version int64  `json:"version"` // grows with every change; the ETag of the API
	State   State  `json:"state"`
	Cause   Cause  `json:"cause,omitempty"`
	By      string `json:"by,omitempty"`       // person or runtime that brought the state about
	Reason  string `json:"reason,omitempty"`   // their words
	Answer  string `json:"response,omitempty"` // what a person answers instead of letting it run

	Created  time.Time  `json:"created"`
	Deadline time.Time  `json:"deadline"`
	Decided  *time.Time `json:"decided,omitempty"`
	Closed   *time.Time `json:"closed,omitempty"`
	Due      *time.Time `json:"due,omitempty"` // when time itself next acts on it; nil when never again

	Requester Requester `json:"requester"`
	Agent     Agent     `json:"agent"`

	// Question is what a tool or an agent asks before it goes on; nil
	// for the approval of a call.
	Question *Question `json:"question,omitempty"`
	Chosen   *int      `json:"chosen,omitempty"` // what was picked of a question's choices, once State is Answered
	// Data is what was submitted, in canonical JSON, once State is
	// Answered; empty where the question was dismissed.
	Data json.RawMessage `json:"data,omitempty"`
	// Context is what the agent says about its call or question. It is
	// shown below the facts, and binds nothing.
	Context []info.Item `json:"context,omitempty"`

	// Revisions holds what was asked, and every edit of it since; the
	// last one is what may run. It is never empty.
	Revisions []Revision `json:"revisions"`

	// Stages are fixed when the request is opened. An edit can only add
	// to them (threat 23).
	Stages    []policy.Stage `json:"stages"`
	OnTimeout policy.Timeout `json:"on_timeout"`
	Within    time.Duration  `json:"within"`           // from opening to the first deadline, in nanoseconds
	Scheduled []Scheduled    `json:"ladder,omitempty"` // reminders and escalations still to come, by time
	Called    []string       `json:"called,omitempty"` // groups that escalation has called in
	Grants    policy.Grants  `json:"grants,omitzero"`  // what standing approvals may come out of this
	Redact    []string       `json:"redact,omitempty"` // paths whose values channels hide
	// ForbidHidden forbids approving while a value of the call is hidden.
	ForbidHidden bool     `json:"forbid_hidden,omitempty"`
	Lookers      []string `json:"lookers,omitempty"` // groups that escalation calls in to look, not to approve
	Votes        []Vote   `json:"votes,omitempty"`
	Permit       *Permit  `json:"permit,omitempty"`
	GrantID      string   `json:"grant,omitempty"` // the standing approval that came out of it
	Replaces     string   `json:"replaces,omitempty"`
	Replaced     string   `json:"replaced_by,omitempty"`
}

// Requester is who wants the call to run. None of them may vote.
type Requester struct {
	Runtime   string `json:"runtime"`             // name of the token that asked
	Person    string `json:"person,omitempty"`    // whose token that is
	Principal string `json:"principal,omitempty"` // whom the agent acts for
	Session   string `json:"session,omitempty"`
	// further tokens that asked for the very same call meanwhile; at
	// most 50
	Also   []string `json:"also,omitempty"`
	AlsoOf []string `json:"also_people,omitempty"` // whose tokens those are, in the same order; "" where nobody's
	// Unknown says that the directory knew nobody by the principal's
	// name when the request was opened. It takes one more approver
	// then: the principal could be one of them.
	Unknown bool `json:"unknown_principal,omitempty"`
	// the agent's owners, by its file (metadata.labels.owner) and the
	// directory
	Owners []string `json:"owners,omitempty"`
}

// Agent says which agent asks.
type Agent struct {
	ID          string `json:"id"`
	Version     string `json:"version,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Revision is one form of the call: as asked, or as an approver edited
// it. An edit is a new call: new digest, full decision again.
type Revision struct {
	Number   int              `json:"number"` // 0 as asked
	Call     resolve.Call     `json:"call"`   // Recorded
	Binding  string           `json:"binding"`
	Plan     string           `json:"plan"` // version of the plan that decided
	Decision resolve.Decision `json:"decision"`
	// MessageFrom is whose template the message was made of, as in
	// resolve.Decision; "" where it was not recorded.
	MessageFrom resolve.Source `json:"message_from,omitempty"`
	// HintsBelieved says that the hints about the tool come from a
	// server that the runtime's owner trusts.
	HintsBelieved bool      `json:"hints_believed,omitempty"`
	Author        string    `json:"author,omitempty"` // the person who edited; "" as asked
	Note          string    `json:"note,omitempty"`
	At            time.Time `json:"at"`
}

// Scheduled is a reminder or an escalation that is due at a time unless
// the request is decided first.
type Scheduled struct {
	At   time.Time     `json:"at"`
	Kind ScheduledKind `json:"kind"`
	To   string        `json:"to,omitempty"` // group, for escalate
}

// ScheduledKind says what is scheduled.
type ScheduledKind string

// What is scheduled.
const (
	Remind   ScheduledKind = "remind"
	Escalate ScheduledKind = "escalate"
)

// Vote is one person's answer to one revision.
type Vote struct {
	Person   string   `json:"person"` // canonical id
	Verdict  Verdict  `json:"verdict"`
	Revision int      `json:"revision"`
	Binding  string   `json:"binding"` // what the person saw
	Reason   string   `json:"reason,omitempty"`
	Channel  string   `json:"channel"` // inbox, cli, slack, api…
	Groups   []string `json:"groups"`  // held when the vote was given; counting asks the directory again
	Full     bool     `json:"shown_fully"`
	Hidden   []string `json:"hidden,omitempty"` // paths of values that policy hid when it was shown
	// name of the person's token that the answer came by; "" where they
	// were signed in
	Token  string          `json:"token,omitempty"`
	Chosen *int            `json:"chosen,omitempty"` // for Choose, and Dismiss of choices
	Data   json.RawMessage `json:"data,omitempty"`   // for Submit
	Late   bool            `json:"late,omitempty"`   // after the end; kept for the audit
	// Also is how many further callers (Requester.Also) the request had
	// when the vote was given.
	Also  int         `json:"also,omitempty"`
	Grant *GrantOffer `json:"grant,omitempty"`
	At    time.Time   `json:"at"`
}

// Permit is the single-use right to run the decided call.
type Permit struct {
	Expires  time.Time  `json:"expires"`
	Key      string     `json:"key,omitempty"` // of the consumption: the same key may ask again, no other
	By       string     `json:"by,omitempty"`  // the runtime that consumed it
	Consumed *time.Time `json:"consumed,omitempty"`
	// Audience is the tool that checks the permit, and Until is when it
	// is over there; absent where the tool checks none. They are fixed
	// when the request is consumed.
	Audience string     `json:"audience,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Signed is the permit for a tool that checks it, in the answer to
	// whoever consumed the request; it is not stored.
	Signed string `json:"signed,omitempty"`
}

// Current is the revision that may run.
func (r *Request) Current() *Revision { return &r.Revisions[len(r.Revisions)-1] }

// Pruned reports whether the retention took the texts: a recorded call
// always has arguments.
func (r *Request) Pruned() bool { return len(r.Current().Call.Args) == 0 }

// Clone returns a copy that the machine may change without touching the
// original. What the machine never changes in place (calls, decisions,
// votes given, times) is shared.
func (r *Request) Clone() *Request {
	c := *r
	c.Revisions = slices.Clone(r.Revisions)
	c.Stages = slices.Clone(r.Stages)
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

// Binding is the digest of what may run.
func (r *Request) Binding() string { return r.Current().Binding }

// revision is a call as a plan decided it.
func (c *Compiled) revision(call resolve.Call, binding string, d resolve.Decision) Revision {
	server := call.Container()

	return Revision{
		Call:          call,
		Binding:       binding,
		Plan:          c.Plan.Version(),
		Decision:      d,
		MessageFrom:   d.MessageFrom,
		HintsBelieved: server == "" || c.Plan.Trusts(server),
	}
}

// Summary is what lists show of a request.
type Summary struct {
	ID        string `json:"id"`
	Version   int64  `json:"version"`
	State     State  `json:"state"`
	Cause     Cause  `json:"cause,omitempty"`
	Agent     string `json:"agent"`  // id
	Target    string `json:"target"` // Call.Target
	Principal string `json:"principal,omitempty"`
	// the author's words, at most 200 characters; "" where policy hides
	// arguments, which they could repeat
	Message string `json:"message"`
	// digest of the rules that asked: equal means the same tool and
	// rules may be decided together
	Rules     string    `json:"rules"`
	Groups    []string  `json:"groups"`    // of stages, and called in; [""] when any approver will do
	Approvals int       `json:"approvals"` // approving votes of the current revision
	Needed    int       `json:"needed"`    // seats
	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline"`
	// a tool asks for a choice; Message is in our words, the tool's are
	// in the request
	Question  bool      `json:"question,omitempty"`
	Answering Answering `json:"-"`               // whose answers it waits for
	Bytes     int64     `json:"bytes,omitempty"` // about how many the whole request has, in lists
}
