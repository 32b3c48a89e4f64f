package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Texts that a model gets in place of a result. They are the same as those of the .NET library.
const (
	textDone     = "Success: Function completed."
	textFailed   = "Error: Function failed."
	textRejected = "Tool call invocation rejected."
)

// FunctionErrors ends a run in which functions failed in too many consecutive turns. It holds
// the errors of the last of these turns.
type FunctionErrors struct{ Errs []error }

// Error lists the errors.
func (e *FunctionErrors) Error() string {
	return "functions failed in too many turns in a row: " + errors.Join(e.Errs...).Error()
}

// Unwrap returns the errors of the functions.
func (e *FunctionErrors) Unwrap() []error { return e.Errs }

// Job is one call that is about to run.
type Job struct {
	Call     *content.FunctionCall
	Tool     Tool   // as FindTool returned it before anything ran; nil if not known
	Approval string // who approved the call; empty if it needed no approval
	checked  bool   // the arguments were checked when the call was decided
}

// Outcome is the outcome of one call.
type Outcome struct {
	Result  json.RawMessage // nil on an error, or if the function returned nothing
	Err     error
	Suspend *Suspend // the same error as Err, set if the function asked the user and can continue
	Stop    bool     // the function ended the run
	Unknown bool     // there is no function of that name
	Options *Options // the options for the next turn, with the function's changes
}

// FindTool returns the tool with exactly this name. It searches the tools of the request first,
// then extra. If several tools have the name, the last one is used, as in .NET. It returns nil
// if there is none.
func FindTool(name string, opt *Options, extra []Tool) Tool {
	if opt != nil {
		if t := lastNamed(name, opt.Tools); t != nil {
			return t
		}
	}
	return lastNamed(name, extra)
}

func lastNamed(name string, tools []Tool) Tool {
	for _, t := range slices.Backward(tools) {
		if t != nil && t.Definition().Name == name {
			return t
		}
	}
	return nil
}

// Invoke runs a call. The function may change its own copy of the options, which the outcome
// contains. A panic becomes an error.
func Invoke(ctx context.Context, j Job, opt *Options, turn int) Outcome {
	f, ok := j.Tool.(Function)
	if !ok {
		return Outcome{Unknown: true, Options: opt}
	}
	if !j.checked {
		if err := j.Call.CheckArguments(); err != nil {
			return Outcome{Err: err, Options: opt}
		}
	}
	return j.run(ctx, f, f.Invoke, opt, turn)
}

// resume continues a call that suspended. The answers are in the order of the requests.
func resume(
	ctx context.Context,
	j Job,
	opt *Options,
	state json.RawMessage,
	answers []content.InputResponse,
) Outcome {
	f, ok := Inner[Resumer](j.Tool)
	if !ok {
		return Outcome{Err: errNotResumer, Unknown: j.Tool == nil, Options: opt}
	}

	again := func(ctx context.Context, call *content.FunctionCall) (any, error) {
		return f.Resume(ctx, call, state, answers)
	}
	return j.run(ctx, f, again, opt, -1)
}

// run calls a function with a new Invocation.
func (j Job) run(ctx context.Context, f Function, do functionBody, opt *Options, turn int) Outcome {
	inv := &Invocation{
		Call:     content.CloneCall(j.Call).(*content.FunctionCall),
		Options:  opt.Clone(),
		Turn:     turn,
		Approval: j.Approval,
	}
	ctx = context.WithValue(ctx, invocationKey{}, inv)
	result, err := guarded(func() (any, error) { return do(ctx, inv.Call) })
	out := Outcome{
		Result:  result,
		Err:     err,
		Stop:    inv.Stop && err == nil,
		Options: inv.Options.Clone(),
	}
	if !errors.As(err, &out.Suspend) || out.Suspend == nil {
		return out
	}
	if _, ok := Inner[Resumer](f); !ok {
		out.Suspend, out.Err = nil, errNotResumer
	}
	return out
}

// functionBody runs a call. It is the Invoke method of a function, or its Resume method with
// the answers.
type functionBody func(ctx context.Context, call *content.FunctionCall) (any, error)

// guarded runs a function and encodes its result as JSON. A panic becomes an error, including a
// panic in the MarshalJSON of the result.
func guarded(run func() (any, error)) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("the function panicked: %v", p)
		}
	}()
	v, err := run()
	if err != nil {
		_ = err.Error() // panic here rather than later if the error is a nil pointer
		return nil, err
	}
	return resultJSON(v)
}

// resultJSON encodes a result. A json.RawMessage is used unchanged if it is valid. It returns
// nil for a nil result and for one that marshals to null.
func resultJSON(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		if len(v) != 0 && !json.Valid(v) {
			return nil, errors.New("the result is no JSON")
		}
		return keepable(bytes.Clone(v)), nil
	}

	raw, err := jsonmsg.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the result: %w", err)
	}
	if string(raw) == "null" {
		return nil, nil
	}
	if _, plain := v.(string); plain {
		return raw, nil
	}
	return keepable(raw), nil
}

// keepable converts JSON into a JSON string if two readers could read it differently or if it
// is nested too deeply to be stored. The function has already run, so its result must not make
// the thread unreadable.
func keepable(raw json.RawMessage) json.RawMessage {
	limits := jsonmsg.Limits()
	limits.MaxDepth = 96
	if _, err := jsonmsg.Check(raw, limits); len(raw) == 0 || err == nil {
		return raw
	}
	return jsonText(strings.ToValidUTF8(string(raw), "\uFFFD"))
}

// Content returns the result that the model gets for an outcome. If detailed is set, it
// includes the error message.
func (o Outcome) Content(call *content.FunctionCall, detailed bool) *content.FunctionResult {
	out := &content.FunctionResult{CallID: call.CallID, Result: o.Result}
	switch {
	case o.Unknown:
		out.Result = jsonText(notFoundText(call.Name))
	case o.Err != nil && detailed:
		out.Result = jsonText(textFailed + " Exception: " + o.Err.Error())
	case o.Err != nil:
		out.Result = jsonText(textFailed)
	case len(o.Result) == 0:
		out.Result = jsonText(textDone)
	}

	return out
}

func notFoundText(name string) string { return `Error: Requested function "` + name + `" not found.` }

// Rejection returns the result of a call that was rejected. A blank reason is left out.
func Rejection(reason string) json.RawMessage {
	if strings.TrimSpace(reason) == "" {
		return jsonText(textRejected)
	}
	return jsonText(textRejected + " " + reason)
}

// ProcessingText returns the debug message for an answer about a function call, with the same
// text as in the .NET library.
func ProcessingText(function string, approved bool) string {
	yes := "False"
	if approved {
		yes = "True"
	}
	return "Processing approval response for '" + function + "'. Approved: " + yes
}

// jsonText encodes a string as JSON, which can't fail.
func jsonText(s string) json.RawMessage {
	raw, _ := resultJSON(s)
	return raw
}

// AtOnce runs n calls concurrently, each in its own goroutine, so that a call that ends its
// goroutine with runtime.Goexit affects no other. It merges the functions' changes to the tools
// into the returned options.
func AtOnce(opt *Options, n int, run func(i int) Outcome) ([]Outcome, *Options) {
	outs := make([]Outcome, n)
	var all sync.WaitGroup
	for i := range n {
		outs[i] = unfinished(opt)
		all.Go(func() { outs[i] = run(i) })
	}
	all.Wait()
	next := opt
	for _, o := range outs {
		next = mergeTools(opt, next, o.Options)
	}
	return outs, next
}

var errUnfinished = errors.New("the function ended its goroutine")

// unfinished returns the outcome of a function that never returns.
func unfinished(opt *Options) Outcome { return Outcome{Err: errUnfinished, Options: opt} }

// Failures counts consecutive turns in which a function failed.
type Failures struct{ max, inRow int }

// NewFailures sets the maximum number of consecutive failing turns. Zero means 3 and a negative
// number allows none.
func NewFailures(max int) *Failures {
	switch {
	case max == 0:
		return &Failures{max: 3}
	case max < 0:
		return &Failures{}
	}

	return &Failures{max: max}
}

// Turn counts a finished turn. It returns a *FunctionErrors if too many consecutive turns have
// failed.
func (f *Failures) Turn(outs []Outcome) error {
	var errs []error
	for _, o := range outs {
		if o.Err != nil {
			errs = append(errs, o.Err)
		}
	}
	if len(errs) == 0 {
		f.inRow = 0
		return nil
	}
	if f.inRow++; f.inRow > f.max {
		return &FunctionErrors{Errs: errs}
	}
	return nil
}
