package runtime

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// outCall is the record of a call: everything of it that has to outlive this process. It moves by compare-and-set only, and whatever is done in
// the world because of it (asking, sending, posting an answer, withdrawing) is written down before it is done.
type outCall struct {
	Key        string         `json:"key"`   // of the record
	Asker      approval.Asker `json:"asker"` // who made the call
	Wire       names.Sent     `json:"wire"`
	Thread     string         `json:"thread"`
	ID         string         `json:"id"`
	CallID     *string        `json:"call_id,omitempty"`
	Ancestors  []string       `json:"ancestors,omitempty"`
	User       string         `json:"user,omitempty"`
	Operation  string         `json:"operation"`
	Arguments  []byte         `json:"arguments"`          // as the agent gave them, byte for byte
	Approved   []byte         `json:"approved,omitempty"` // as an approver changed them; nil: nobody did
	Server     string         `json:"server,omitempty"`
	Endpoint   string         `json:"endpoint,omitempty"`
	Definition string         `json:"definition,omitempty"` // digest of what the tool says about itself
	Destroys   bool           `json:"destroys,omitempty"`   // the tool calls itself destructive
	Token      string         `json:"token"`                // of the callback URL
	State      CallState      `json:"state"`
	Deadline   time.Time      `json:"deadline"`

	Consents int      `json:"consents,omitempty"` // how many times people were asked whether it may leave
	Consent  *consent `json:"consent,omitempty"`  // the last of them
	Send     errand   `json:"send"`

	Choices  int         `json:"choices,omitempty"`  // how many questions the tool asked
	Choice   *toolChoice `json:"choice,omitempty"`   // the last of them
	Replaced []string    `json:"replaced,omitempty"` // digests of those before
	Refused  int         `json:"refused,omitempty"`  // of its questions, in the ledger
	Withdraw []string    `json:"withdraw,omitempty"` // refs at the desk that nobody needs any more
	Later    time.Time   `json:"later,omitzero"`     // no attempt to withdraw before
	Tries    int         `json:"tries,omitempty"`    // attempts at the desk that failed in a row
	Live     bool        `json:"live,omitempty"`     // events may come
	Events   []keptEvent `json:"events,omitempty"`
	Closed   bool        `json:"closed,omitempty"` // its thread is
	Told     callView    `json:"told"`
	Ended    time.Time   `json:"ended,omitzero"`
	_        struct{}    // by name only
}

// callView is what the record says to the agent beside the rest.
type callView struct {
	SignIn       string       `json:"sign_in,omitempty"`
	Outcome      *rap.Outcome `json:"outcome,omitempty"`
	Failed       bool         `json:"failed,omitempty"`
	Why          Why          `json:"why,omitempty"`
	Subscription bool         `json:"subscription,omitempty"`
	Trouble      string       `json:"trouble,omitempty"`
}

// consent is what people are asked before a call leaves.
type consent struct {
	Own     bool      `json:"own,omitempty"` // our own question about a destructive tool (D7); otherwise an approval that the plan asks for
	Key     string    `json:"key"`
	Ref     string    `json:"ref,omitempty"`
	Granted bool      `json:"granted,omitempty"`
	Binding string    `json:"binding,omitempty"` // of the call and the rules that the approval was taken for
	By      string    `json:"by,omitempty"`
	Next    time.Time `json:"next"` // when to look at it again
}

// toolChoice is a question of the tool, under an identity of our own: the protocol gives it none.
type toolChoice struct {
	Number   int         `json:"number"`
	Digest   string      `json:"digest"`
	Prompt   string      `json:"prompt"`
	Labels   []string    `json:"labels"`
	Default  int         `json:"default"`
	URL      string      `json:"url"`
	State    choiceState `json:"state"`
	Key      string      `json:"key"`
	Ref      string      `json:"ref,omitempty"`
	Deadline time.Time   `json:"deadline"`
	Next     time.Time   `json:"next"` // when to look at it again
	Selected int         `json:"selected,omitempty"`
	By       string      `json:"by,omitempty"`
	Post     errand      `json:"post,omitzero"`
}

type choiceState string

const (
	choiceOpen      choiceState = "open"
	choiceAnswered  choiceState = "answered" // kept before it is posted
	choiceDelivered choiceState = "delivered"
	choiceFailed    choiceState = "failed"
)

// errand is something to send. Its attempts have to outlive this process.
type errand struct {
	Attempts int       `json:"attempts,omitempty"`
	Lease    time.Time `json:"lease,omitzero"` // an attempt is under way until then; after it whoever made it is gone
	Next     time.Time `json:"next,omitzero"`  // no attempt before
}

func (e *errand) ready(now time.Time) bool { return !now.Before(e.at()) }

func (e *errand) at() time.Time {
	if e.Lease.IsZero() {
		return e.Next
	}
	return e.Lease
}

// begin takes the next attempt.
func (e *errand) begin(now time.Time, lasts time.Duration) {
	e.Attempts++
	e.Lease, e.Next = now.Add(lasts), time.Time{}
}

// args are what goes to the tool.
func (c *outCall) args() []byte {
	if c.Approved != nil {
		return c.Approved
	}
	return c.Arguments
}

// owned reports whether it is known who made the call. It is not of what a version kept that did not keep it.
func (c *outCall) owned() bool { return c.Asker.Token != "" }

// is tells whether a call is the one that is kept here.
func (c *outCall) is(in *Invocation) bool {
	return c.Thread == in.Thread && c.ID == in.ID && c.Operation == in.Operation && c.User == in.User &&
		bytes.Equal(c.Arguments, in.Arguments) && slices.Equal(c.Ancestors, in.Ancestors) && sameText(c.CallID, in.CallID)
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// at tells a record where it is kept.
func (c *outCall) At(key string) { c.Key = key }

func (c *outCall) asking() bool { return c.Choice != nil && c.Choice.State == choiceOpen }

func (c *outCall) answering() bool { return c.Choice != nil && c.Choice.State == choiceAnswered }

// left tells whether the call may have reached the tool.
func (c *outCall) left() bool { return c.Send.Attempts > 0 }

// due is when somebody has to look at the call; zero: never.
func (c *outCall) due() time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(c.Withdraw) > 0 {
		sooner(c.Later)
	}
	if c.State == CallDone {
		return at
	}
	sooner(c.Deadline)
	switch {
	case c.State == CallAsking:
		sooner(c.Consent.Next)
	case c.State == CallSending:
		sooner(c.Send.at())
	}
	switch {
	case c.asking():
		sooner(c.Choice.Deadline)
		sooner(c.Choice.Next)
	case c.answering():
		sooner(c.Choice.Post.at())
	}
	return at
}

// keepEnded is how long a call that has ended is remembered, so that repetitions are known for what they are (C11, C20), and keepLive how long
// a subscription, a view or a thread after its last news.
const (
	keepEnded = 24 * time.Hour
	keepLive  = 30 * 24 * time.Hour
)

func (c *outCall) expires(now time.Time) time.Time {
	switch {
	case c.State != CallDone:
		return time.Time{}
	case c.Live:
		return now.Add(keepLive)
	}
	return c.Ended.Add(keepEnded)
}

// finish ends the call, once. What people are asked about it is to be withdrawn, and no answer is posted any more.
func (c *outCall) finish(now time.Time, o rap.Outcome, why Why) {
	c.withdraw(now)
	c.State, c.Ended = CallDone, now
	c.Told.Outcome, c.Told.Why = &o, why
	c.Told.SignIn = ""
	c.Told.Failed = why != "" || failed(&o)
	if c.answering() {
		c.Choice.State = choiceFailed
	}
}

// withdraw notes that what is asked now is to be taken back.
func (c *outCall) withdraw(now time.Time) {
	var ref string
	switch {
	case c.State == CallAsking:
		ref = c.Consent.Ref
	case c.asking():
		ref = c.Choice.Ref
		c.Choice.State = choiceFailed
	}
	if ref != "" {
		c.Withdraw, c.Later, c.Tries = append(c.Withdraw, ref), now, 0
	}
}

// failed reports whether an outcome is an error. It goes by the convention that errors begin with "Error:".
func failed(o *rap.Outcome) bool {
	text := o.Text
	if len(o.Content) > 0 {
		text = o.Content[0].Text
	}
	return strings.HasPrefix(text, "Error:")
}

// outcomeOf is what a result carries: content supersedes text (R31).
func outcomeOf(m *wire.Result) rap.Outcome {
	o := rap.Outcome{Content: m.Content, DisplayAs: m.DisplayAs}
	if m.Content == nil && m.Text != nil {
		o.Text = *m.Text
	}
	return o
}

// call is how the record stands, for the agent.
func (c *outCall) call() Call {
	out := Call{
		Thread: c.Thread, ID: c.ID, Server: c.Server, Operation: c.Operation, State: c.State, SignIn: c.Told.SignIn, Outcome: c.Told.Outcome,
		Failed: c.Told.Failed, Synthetic: c.Told.Why != "", Why: c.Told.Why, Subscription: c.Told.Subscription, Trouble: c.Told.Trouble,
	}
	switch {
	case c.State == CallAsking:
		out.Question = c.Consent.Ref
	case c.asking():
		out.Question = c.Choice.Ref
	}
	return out
}
