package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
)

// Tool is something that a model may call. A Tool that is not a Function is only declared: the
// caller must run its calls.
type Tool interface {
	Definition() Definition
}

// Definition is the description of a tool that the model gets.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Schema is the JSON Schema of the arguments, or nil. The Default loop checks arguments
	// against it before it requests approval. A function that runs without approval must check
	// its own arguments.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Function is a tool that runs in this process.
type Function interface {
	Tool
	// Invoke runs the call. The result is encoded as JSON. A nil result without an error means
	// that the call succeeded and has no output. On an error the model only gets a general
	// text, while LoopConfig.Log and Audit get the details. A *Suspend error asks the user
	// before the call continues.
	Invoke(ctx context.Context, call *content.FunctionCall) (any, error)
}

// Wrapper is a tool around another. Markers are found through any number of wrappers.
type Wrapper interface {
	Tool
	Unwrap() Tool
}

// NewFunction makes a function from its parts. The schema is the JSON Schema of the arguments
// and may be nil.
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

// NeedsApproval reports whether a tool, or any tool that it wraps, is marked.
func NeedsApproval(t Tool) bool {
	_, ok := Inner[*marked](t)
	return ok
}

// Inner finds a tool of type T in a tool or in the tools that it wraps.
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

// HostedMCP is an MCP server that the service calls by itself. The service makes the approval
// requests and gets the answers.
type HostedMCP struct {
	Name    string // label of the server
	URL     string
	Headers map[string]string
	Allowed []string // allowed tools; all if nil
	// Approval determines when the service asks: "always" (default), "never", or "listed" for
	// the tools in Ask.
	Approval string
	Ask      []string
}

// Definition returns the label.
func (h *HostedMCP) Definition() Definition { return Definition{Name: h.Name} }

// Suspend is the error of a function that needs answers of the user before it can continue. The
// requests are shown to the user of the outermost agent. When all are answered, the function's
// Resume is called. A function that suspends must be a Resumer.
type Suspend struct {
	// State is passed to Resume. It is kept in the thread.
	State json.RawMessage
	// Requests are shown to the user. Their ids need to be unique only within this call.
	Requests []content.InputRequest
	// Poll lets each run resume the call without waiting for answers, since they may have been
	// given elsewhere.
	Poll bool
	// Refused are answers that were not applied, under the ids of the requests that were
	// answered.
	Refused []Refusal
	// Err is set if the function can't continue now although part of its work is done. The run
	// ends with this error, and the next one resumes the function with State and no answers.
	// After a few attempts the call ends as failed.
	Err error
}

// Error describes the requests, or returns the text of Err.
func (s *Suspend) Error() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	return fmt.Sprintf("the user is asked %d thing(s) before this can go on", len(s.Requests))
}

// Resumer is a function that can continue after a Suspend.
type Resumer interface {
	Function
	// Resume continues the call. The answers are in the order of the requests, each validated
	// against its request. Resume may suspend again.
	Resume(
		ctx context.Context,
		call *content.FunctionCall,
		state json.RawMessage,
		answers []content.InputResponse,
	) (any, error)
}

// Recoverer is a function that tracks the progress of its calls itself. If the end of the
// process interrupts one of its calls, the call is not lost: it is begun or resumed again with
// the state in the thread, and the function continues from its own saved progress.
type Recoverer interface {
	Function
	// Recovers reports whether the function tracks progress. A function may have been
	// configured without the storage that it needs for that.
	Recovers() bool
}

// errNotResumer is returned if a tool suspended but can't be resumed.
var errNotResumer = errors.New("the function asked for user input but is no Resumer")

// Invocation is the part of the running loop that a function can see and change.
type Invocation struct {
	Call *content.FunctionCall
	// Options are the options of the run. A function may change the tools of the next model
	// turn here.
	Options *Options
	Turn    int // turn of the model within this run, from 0; -1 for approved calls
	// Stop ends the run after this call: the model does not see the result in this run.
	Stop bool
	// Approval names who or what approved the call. It is empty if the call needed no approval.
	Approval string
}

type invocationKey struct{}

// InvocationOf returns the invocation of a running function, or nil outside of one.
func InvocationOf(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(invocationKey{}).(*Invocation)
	return inv
}
