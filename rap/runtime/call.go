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

// call is the record of a call: the engine's, with our part.
type call = durable.Call[part]

// part is what a call's record holds of RAP: everything that has to
// outlive this process.
type part struct {
	Wire       names.Sent  `json:"wire"`
	Thread     string      `json:"thread"`
	ID         string      `json:"id"`
	CallID     *string     `json:"call_id,omitempty"`
	Ancestors  []string    `json:"ancestors,omitempty"`
	User       string      `json:"user,omitempty"`
	Operation  string      `json:"operation"`
	Context    []info.Item `json:"context,omitempty"` // what the agent says about it
	Server     string      `json:"server,omitempty"`
	Endpoint   string      `json:"endpoint,omitempty"`
	Definition string      `json:"definition,omitempty"` // digest of what the tool says about itself
	Destroys   bool        `json:"destroys,omitempty"`   // the tool calls itself destructive
	Agreed     bool        `json:"agreed,omitempty"`     // a person said that it may run all the same
	Token      string      `json:"token"`                // of the callback URL

	Choices  int         `json:"choices,omitempty"`  // how many questions the tool asked
	Choice   *toolChoice `json:"choice,omitempty"`   // the last of them
	Replaced []string    `json:"replaced,omitempty"` // digests of those before
	Refused  int         `json:"refused,omitempty"`  // questions of the tool that the ledger has as refused

	SignIn signIn `json:"sign_in_asked,omitzero"` // the link is in Told

	Live   bool        `json:"live,omitempty"` // events may come
	Events []keptEvent `json:"events,omitempty"`
	Gone   int         `json:"gone,omitempty"`   // events before those, which were given up
	Views  []shownView `json:"views,omitempty"`  // types whose view came with this call
	Viewed int         `json:"viewed,omitempty"` // how often one did
	Closed bool        `json:"closed,omitempty"` // its thread is
	Listed string      `json:"listed,omitempty"` // where its user finds it (CallsOf)
	Told   callView    `json:"told"`

	tell bool // the end that was just written is to be told to the tool servers
}

// callView is what the record says to the agent beside the rest.
type callView struct {
	SignIn       string       `json:"sign_in,omitempty"`
	SignInHost   string       `json:"sign_in_host,omitempty"`
	Outcome      *rap.Outcome `json:"outcome,omitempty"`
	Failed       bool         `json:"failed,omitempty"`
	Why          Why          `json:"why,omitempty"`
	Subscription bool         `json:"subscription,omitempty"`
	Trouble      string       `json:"trouble,omitempty"`
}

// toolChoice is a question of the tool, under an identity of our own:
// the protocol gives it none. Whom it was put to is in the engine's
// part of the record (Ask), and the post of its answer is the call's
// message.
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
	choiceAnswered  choiceState = "answered" // kept before it is posted
	choiceDelivered choiceState = "delivered"
	choiceFailed    choiceState = "failed"
)

// Calls that have ended are remembered for keepEnded, so that
// repetitions of them are recognised. Subscriptions, views and threads
// are kept for keepLive after they last changed, and so is a call after
// its deadline that no process ended.
const (
	keepEnded = 24 * time.Hour
	keepLive  = 30 * 24 * time.Hour
)

// keep is until when a call that has ended is remembered.
func (r *Runtime) keep(c *call) time.Time {
	if c.Part.Live {
		return r.now().Add(keepLive)
	}

	return c.EndedAt.Add(keepEnded)
}

// left reports whether the call may have reached the tool.
func left(c *call) bool { return c.Run.Tries > 0 }

// heard notes that the tool has the call, since it sent a message about
// it. Whatever became of the acknowledgement, the call is not sent
// again, and people who are asked whether it may be sent again need not
// answer.
func heard(c *call) {
	switch {
	case c.State == durable.Asking && left(c):
		c.WithdrawAsk()
	case c.State != durable.Ready && c.State != durable.Running:
		return
	}

	c.State = durable.Away
	c.Run.Lease = time.Time{}
}

// same reports whether an invocation is the call that is kept.
func same(c *call, in *Invocation) bool {
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

// failed reports whether an outcome is an error. By convention errors
// begin with "Error:".
func failed(o *rap.Outcome) bool {
	text := o.Text
	if len(o.Content) > 0 {
		text = o.Content[0].Text
	}

	return strings.HasPrefix(text, "Error:")
}

// outcomeOf is what a result carries: content supersedes text.
func outcomeOf(m *wire.Result) rap.Outcome {
	o := rap.Outcome{Content: m.Content, DisplayAs: m.DisplayAs}
	if m.Content == nil && m.Text != nil {
		o.Text = *m.Text
	}

	return o
}

// shown is the record of a call as the agent sees it.
func shown(c *call) Call {
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
