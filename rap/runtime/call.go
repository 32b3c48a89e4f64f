package runtime

import (
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// call is the engine's record of a call, with our part.
type call = durable.Call[part]

// part holds the RAP fields of a call that have to outlive this process.
type part struct {
	Wire       names.Sent  `json:"wire"`
	Thread     string      `json:"thread"`
	ID         string      `json:"id"`
	CallID     *string     `json:"call_id,omitempty"`
	Ancestors  []string    `json:"ancestors,omitempty"`
	User       string      `json:"user,omitempty"`
	Operation  string      `json:"operation"`
	Context    []info.Item `json:"context,omitempty"` // what the agent says about the call
	Server     string      `json:"server,omitempty"`
	Endpoint   string      `json:"endpoint,omitempty"`
	Definition string      `json:"definition,omitempty"` // digest of the tool's definition
	Destroys   bool        `json:"destroys,omitempty"`   // the tool is marked as destructive
	Declared   []string    `json:"declared,omitempty"`   // arguments of the tool's input schema
	Agreed     bool        `json:"agreed,omitempty"`     // a person allowed the destructive call
	Token      string      `json:"token"`                // of the callback URL

	Choices  int         `json:"choices,omitempty"`  // number of questions the tool asked
	Choice   *toolChoice `json:"choice,omitempty"`   // the last of them
	Replaced []string    `json:"replaced,omitempty"` // digests of the previous ones
	Refused  int         `json:"refused,omitempty"`  // number of refused questions recorded in the ledger

	SignIn signIn `json:"sign_in_asked,omitzero"` // the link is in Told

	Live   bool        `json:"live,omitempty"` // events may come
	Events []keptEvent `json:"events,omitempty"`
	Gone   int         `json:"gone,omitempty"`   // number of earlier events that were dropped
	Views  []shownView `json:"views,omitempty"`  // types of views sent for this call
	Viewed int         `json:"viewed,omitempty"` // number of views sent
	Closed bool        `json:"closed,omitempty"` // its thread is closed
	Listed string      `json:"listed,omitempty"` // key of its listing for the user (CallsOf)
	Told   callView    `json:"told"`

	tell bool // notify the tool servers of the end that was just written
}

// callView is the part of the record that the agent sees in addition to the engine's fields.
type callView struct {
	SignIn       string       `json:"sign_in,omitempty"`
	SignInHost   string       `json:"sign_in_host,omitempty"`
	Outcome      *rap.Outcome `json:"outcome,omitempty"`
	Failed       bool         `json:"failed,omitempty"`
	Why          Why          `json:"why,omitempty"`
	Subscription bool         `json:"subscription,omitempty"`
	Trouble      string       `json:"trouble,omitempty"`
}

// toolChoice is a question of the tool, with a number of our own because the protocol gives it
// none. The engine's part (Ask) has the request to people, and the call's message is the post
// of the answer.
type toolChoice struct {
	Number   int         `json:"number"`
	Digest   string      `json:"digest"`
	Prompt   string      `json:"prompt"`
	Labels   []string    `json:"labels"`
	Default  int         `json:"default"`
	URL      string      `json:"url"`
	State    choiceState `json:"state"`
	Selected int         `json:"selected,omitempty"`
	By       string      `json:"by,omitempty"`
}

type choiceState string

const (
	choiceOpen      choiceState = "open"
	choiceAnswered  choiceState = "answered" // stored before it is posted
	choiceDelivered choiceState = "delivered"
	choiceFailed    choiceState = "failed"
)

// Ended calls are kept for keepEnded, so that repetitions are recognized. Subscriptions, views
// and threads are kept for keepLive after their last change, and so is a call that no process
// ended after its deadline.
const (
	keepEnded = 24 * time.Hour
	keepLive  = 30 * 24 * time.Hour
)

// keep returns when a closed call may be deleted.
func (d *dispatcher) keep(c *call) time.Time {
	if c.Part.Live {
		return d.now().Add(keepLive)
	}

	return c.EndedAt.Add(keepEnded)
}

// wasSent reports whether the call may have reached the tool.
func wasSent(c *call) bool { return c.Run.Tries > 0 }

// noteReceived records that the tool has the call, because it sent a message about it. Whether
// or not the invocation was acknowledged, it is not sent again, and a pending request for
// approval to send it again is withdrawn.
func noteReceived(c *call) {
	switch {
	case c.State == durable.Asking && wasSent(c):
		c.WithdrawAsk()
	case c.State != durable.Ready && c.State != durable.Running:
		return
	}

	c.State = durable.Away
	c.Run.Lease = time.Time{}
}

// isSame reports whether an invocation repeats a stored call.
func isSame(c *call, in *Invocation) bool {
	p := &c.Part

	return p.Thread == in.Thread &&
		p.ID == in.ID &&
		p.Operation == in.Operation &&
		p.User == in.User &&
		string(c.Arguments) == string(in.Arguments) &&
		slices.Equal(p.Ancestors, in.Ancestors) &&
		sameText(p.CallID, in.CallID)
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// failed reports whether an outcome is an error. By convention errors begin with "Error:".
func failed(o *rap.Outcome) bool {
	text := o.Text
	if len(o.Content) > 0 {
		text = o.Content[0].Text
	}

	return strings.HasPrefix(text, "Error:")
}

// outcomeOf returns the outcome in a result. Content takes precedence over text.
func outcomeOf(m *wire.Result) rap.Outcome {
	o := rap.Outcome{Content: m.Content, DisplayAs: m.DisplayAs}
	if m.Content == nil && m.Text != nil {
		o.Text = *m.Text
	}

	return o
}

// publicCall returns a call as the agent sees it.
func publicCall(c *call) Call {
	p := &c.Part
	out := Call{
		Thread:       p.Thread,
		ID:           p.ID,
		Server:       p.Server,
		Operation:    p.Operation,
		State:        stateOf(c),
		SignIn:       p.Told.SignIn,
		SignInHost:   p.Told.SignInHost,
		Outcome:      p.Told.Outcome,
		Failed:       p.Told.Failed,
		Synthetic:    p.Told.Why != "",
		Why:          p.Told.Why,
		Subscription: p.Told.Subscription,
		Trouble:      p.Told.Trouble,
	}
	if c.Ask != nil {
		out.Question = c.Ask.Ref
	}

	return out
}

func stateOf(c *call) CallState {
	switch c.State {
	case durable.Asking:
		return CallAsking
	case durable.Away:
		return CallPending
	case durable.Ended, durable.Closed:
		return CallDone
	}

	return CallSending
}
