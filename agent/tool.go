package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
)

// Tool is something that a model may call. One that is not a Function
// is only declared: its calls are the caller's to run.
type Tool interface {
	Definition() Definition
}

// Definition is what the model is told.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Schema is the JSON Schema of the arguments; nil for none. The
	// Default loop holds arguments against it before anybody is asked
	// about them; a function that runs without being asked about checks
	// its own.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Function is a tool that runs here.
type Function interface {
	Tool
	// Invoke runs the call. The result becomes JSON; a nil result and
	// no error means that it is done and has nothing to say. An error
	// is told to the model in general words; LoopConfig.Log and Audit
	// say more. A *Suspend asks the user before it goes on.
	Invoke(ctx context.Context, call *content.FunctionCall) (any, error)
}

// Wrapper is a tool around another; markers are found through any
// number of them.
type Wrapper interface {
	Tool
	Unwrap() Tool
}

// NewFunction makes a function of its parts. The schema is the JSON
// Schema of the arguments, nil for none.
func NewFunction(
	name, description string,
	schema json.RawMessage,
	run func(ctx context.Context, arguments json.RawMessage) (any, error),
) Function {
	return &function{Definition{name, description, schema}, run}
}

type function struct {
	def Definition
	run func(ctx context.Context, arguments json.RawMessage) (any, error)
}

func (f *function) Definition() Definition { return f.def }

func (f *function) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	return f.run(ctx, call.Arguments)
}

// RequireApproval marks a function: every call of it needs approval.
func RequireApproval(f Function) Function { return &marked{f} }

type marked struct{ Function }

func (m *marked) Unwrap() Tool { return m.Function }

// NeedsApproval reports whether a tool, or any that it wraps, is marked.
func NeedsApproval(t Tool) bool {
	_, ok := Inner[*marked](t)
	return ok
}

// Inner finds a tool of some kind in a tool or in what it wraps.
func Inner[T any](t Tool) (found T, ok bool) {
	for t != nil {
		if found, ok = t.(T); ok {
			break
		}
		w, wraps := t.(Wrapper)
		if !wraps {
			break
		}
		t = w.Unwrap()
	}

	return found, ok
}

// HostedMCP is an MCP server that the service calls by itself. Its
// approvals come from the service and go back to it.
type HostedMCP struct {
	Name    string // label of the server
	URL     string
	Headers map[string]string
	Allowed []string // tools; nil for all
	// Approval is when the service asks: "always" (default), "never",
	// or "listed" for those in Ask.
	Approval string
	Ask      []string
}

// Definition returns the label.
func (h *HostedMCP) Definition() Definition { return Definition{Name: h.Name} }

// Suspend is the error of a function that needs the user before it can
// go on. The requests are shown to the user of the outermost agent;
// when all are answered the function's Resume is called. A function
// that suspends must be a Resumer.
type Suspend struct {
	// State is what Resume gets back. It is kept in the thread.
	State json.RawMessage
	// Requests are what the user is asked. Their ids need to be unique
	// within this call only.
	Requests []content.InputRequest
	// Poll lets each run resume the call without waiting for answers,
	// since they may have been given elsewhere.
	Poll bool
	// Refused are answers that could not act, under the ids of the
	// requests that were answered.
	Refused []Refusal
	// Err says that the function can't go on now although part of it is
	// done: the run ends with this error, and the next one resumes the
	// function with State and no answers. After a few tries it ends as
	// failed.
	Err error
}

// Error says that the user is asked.
func (s *Suspend) Error() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	return fmt.Sprintf("the user is asked %d thing(s) before this can go on", len(s.Requests))
}

// Resumer is a function that can go on after a Suspend.
type Resumer interface {
	Function
	// Resume goes on with the call; the answers are in the order of the
	// requests, each validated against its request. It may suspend
	// again.
	Resume(
		ctx context.Context,
		call *content.FunctionCall,
		state json.RawMessage,
		answers []content.InputResponse,
	) (any, error)
}

// Recoverer is a function that keeps by itself how far its calls have
// come. A call of it that was cut off by the end of its process is not
// lost: it is begun, or resumed, once more with all that the thread
// knows of it, and the function goes on from where it was.
type Recoverer interface {
	Function
	// Recovers reports whether it does: a function may be set up
	// without the place that it would need.
	Recovers() bool
}

// errNotResumer says that a tool suspended but can't be resumed.
var errNotResumer = errors.New("the function asked for user input but is no Resumer")

// Invocation is what a running function can see and change of the loop
// that runs it.
type Invocation struct {
	Call *content.FunctionCall
	// Options are those of the run: the tools of the next model turn
	// may be changed here.
	Options *Options
	Turn    int // of the model within this run, from 0; -1 for calls that were approved
	// Stop ends the run after this call: the model does not see its
	// result in this run.
	Stop bool
	// Approval is who approved the call, "" for a call that needed nobody.
	Approval string
}

type invocationKey struct{}

// InvocationOf returns the invocation of a running function; nil
// outside of one.
func InvocationOf(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(invocationKey{}).(*Invocation)
	return inv
}
