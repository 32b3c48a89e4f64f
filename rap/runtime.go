package rap

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// RuntimeConfig says what a Runtime works with.
type RuntimeConfig struct {
	Common
	Servers     []Server
	CallbackURL string // base under which tools reach ServeHTTP; each call gets a URL of its own below it
	// CallWithin is how long a call may stay without a result before an error takes its place; 1h. Part of the documented contract (C14).
	CallWithin time.Duration
	// ChoiceWithin is how long a question stays open; 15m. Its end is no answer: nothing is posted and the call is cancelled.
	ChoiceWithin time.Duration
	// MaxPrompt and MaxChoices bound what is put to people: longer prompts are cut (and say so), more choices are refused. 8 KiB, 50.
	MaxPrompt, MaxChoices int
	MaxBody               int64 // of a callback; 4 MiB
}

// Server is a registered tool server.
type Server struct {
	Name   string      // as people know it; also the Asker of its questions
	Peer   peer.Config // URL is the base: discovery, close and cancel go below it; invocations where its manifest says, on an allowed origin
	Groups []string    // who answers its questions; none: the user
	// MCPServer has the agent's file treat its tools as those of this MCP server; "": as local tools of their own names.
	MCPServer string
	// TrustDestructive leaves it to the plan alone whether calls of tools that call themselves destructive are asked about (D7).
	TrustDestructive bool
}

// Runtime calls tools for one agent.
type Runtime struct{}

// NewRuntime checks the configuration.
func NewRuntime(cfg RuntimeConfig) (*Runtime, error) { return nil, errors.New("being written") }

// Run works until ctx ends on what a call alone can't do: deadlines, answers of people, attempts to try again, and what an earlier process left.
// Any number of processes may run on one store and room.
func (r *Runtime) Run(ctx context.Context) error { return errors.New("being written") }

// ServeHTTP takes callbacks: POST {CallbackURL}/{token}.
func (r *Runtime) ServeHTTP(w http.ResponseWriter, req *http.Request) {}

// Tools discovers what all servers offer a session (the root thread), once for each session. Problems says what is not available, and why: a
// server that can't be reached, a manifest that is not valid, names that collide (neither is available then).
func (r *Runtime) Tools(ctx context.Context, session string) (Tools, error) {
	return Tools{}, errors.New("being written")
}

// Tools are the operations that a session may call.
type Tools struct {
	Offers   []Offer
	Problems []Problem
}

// Offer is one available operation.
type Offer struct {
	Server string // registered name
	wire.Tool
}

// Problem says why something of a server is not available.
type Problem struct {
	Server string
	Tool   string // "" for all of the server
	Err    error
}

// Invocation is a call that the agent makes.
type Invocation struct {
	Thread    string   // group_id
	ID        string   // of the call, unique in its thread; the same one again is the same call
	CallID    *string  // echoed by tools
	Ancestors []string // of the thread: root to parent
	User      string   // whom the agent acts for; "" nobody is named
	Operation string
	Arguments json.RawMessage // an object, byte for byte
}

// CallState is where a call stands.
type CallState string

// The states of a call.
const (
	CallAsking  CallState = "asking"  // people are asked whether it may leave
	CallSending CallState = "sending" // on its way, or about to be
	CallPending CallState = "pending" // the tool has it; it may be asking the user (Question)
	CallDone    CallState = "done"
)

// Call is how a call stands.
type Call struct {
	Thread       string    `json:"thread"`
	ID           string    `json:"id"`
	Server       string    `json:"server"`
	Operation    string    `json:"operation"`
	State        CallState `json:"state"`
	Question     string    `json:"question,omitempty"`     // ref at the desk of what is asked now: an approval or the tool's question
	SignIn       string    `json:"sign_in,omitempty"`      // where the tool wants the user to sign in; untrusted, a secret of the user's
	Outcome      *Outcome  `json:"outcome,omitempty"`      // once done
	Failed       bool      `json:"failed,omitempty"`       // the outcome is an error
	Synthetic    bool      `json:"synthetic,omitempty"`    // the outcome is this side's own: denied, interrupted, timed out, not accepted
	Why          Why       `json:"why,omitempty"`          // of a synthetic outcome
	Subscription bool      `json:"subscription,omitempty"` // events may follow
	Trouble      string    `json:"trouble,omitempty"`      // in words: the answer could not be delivered
}

// Why says how a call came to an outcome of this side's own.
type Why string

// The reasons of synthetic outcomes.
const (
	WhyDenied      Why = "denied"       // by the plan or by people
	WhyInvalid     Why = "invalid"      // unknown operation, or arguments that its schema refuses
	WhyNotAccepted Why = "not_accepted" // the tool server refused it or could not be reached
	WhyTimeout     Why = "timeout"      // no result in time
	WhyUnanswered  Why = "unanswered"   // nobody answered the tool's question in time, or it could not be put to anybody
	WhyInterrupted Why = "interrupted"  // Cancel
	WhyClosed      Why = "closed"       // CloseThread
)

// The errors of a Runtime that a caller acts on.
var (
	ErrNoCall    = errors.New("no such call")
	ErrOtherCall = errors.New("the id was used for another call of this thread")
	ErrDone      = errors.New("the call has ended")
)

// Invoke makes a call: it is validated, decided, approved where the plan asks, and sent. It returns as soon as the call is kept; Wait for what
// becomes of it. The same call again is the one that is there; another one under its id is ErrOtherCall.
func (r *Runtime) Invoke(ctx context.Context, in Invocation) (Call, error) {
	return Call{}, errors.New("being written")
}

// Call tells how a call stands; ErrNoCall.
func (r *Runtime) Call(ctx context.Context, thread, id string) (Call, error) {
	return Call{}, errors.New("being written")
}

// Wait returns once the call is done, or as it stands when ctx ends (with ctx's error).
func (r *Runtime) Wait(ctx context.Context, thread, id string) (Call, error) {
	return Call{}, errors.New("being written")
}

// Cancel interrupts a call: it is done with WhyInterrupted, its question is withdrawn, and every server is told once, without waiting for them.
func (r *Runtime) Cancel(ctx context.Context, thread, id, reason string) error {
	return errors.New("being written")
}

// CloseThread ends a thread with all of its calls, subscriptions and views, and tells every server once, without waiting for them.
func (r *Runtime) CloseThread(ctx context.Context, thread string) error {
	return errors.New("being written")
}

// Alive asks the tool server whether it still works on a call (a proposal of the protocol). False means that it says no; an error that nobody can say.
func (r *Runtime) Alive(ctx context.Context, thread, id string) (bool, error) {
	return false, errors.New("being written")
}

// Events lists what came after results of subscriptions of a thread, in order, from an index on; at most 500 are kept of one call.
func (r *Runtime) Events(ctx context.Context, thread string, from int) ([]Event, error) {
	return nil, errors.New("being written")
}

// Event is news of a subscription.
type Event struct {
	Index       int    `json:"index"`
	ID          string `json:"id"` // of the call
	Text        string `json:"text"`
	Associative bool   `json:"associative,omitempty"`
	Final       bool   `json:"final,omitempty"`
}

// Views returns the latest view of each type, as the tools sent them: not for models, not to be interpreted.
func (r *Runtime) Views(ctx context.Context, thread string) (map[string]json.RawMessage, error) {
	return nil, errors.New("being written")
}
