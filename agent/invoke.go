package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Texts that a model gets in place of a result. They are those of the .NET library.
const (
	textDone     = "Success: Function completed."
	textFailed   = "Error: Function failed."
	textRejected = "Tool call invocation rejected."
)

// FunctionErrors ends a run in which functions failed in too many turns in a row. It holds the errors of the last of these turns.
type FunctionErrors struct{ Errs []error }

// Error lists the errors.
func (e *FunctionErrors) Error() string {
	return "functions failed in too many turns in a row: " + errors.Join(e.Errs...).Error()
}

// Unwrap returns the errors of the functions.
func (e *FunctionErrors) Unwrap() []error { return e.Errs }

// invoker runs the calls of both profiles.
type invoker struct{ cfg LoopConfig }

// outcome is how one call went.
type outcome struct {
	result  json.RawMessage // nil when there is nothing to say, and on an error
	err     error
	suspend *Suspend // the err too: set when the function asked the user and can go on
	stop    bool     // the function ended the run
	found   bool     // false: there is no function of that name
	opt     *Options // as the function left them: the options of the next turn
}

// job is one call that is about to run. The tool is looked up before anything runs: a tool that is added by a sibling is for the next turn.
type job struct {
	call     *content.FunctionCall
	tool     Tool                  // nil: not known
	approval string                // who approved
	asked    *content.FunctionCall // the copy in the request; nil for none
	checked  bool                  // its arguments were looked at when it was decided
	// refuse is asked right before the call runs; what it returns, unless "", is the result instead.
	refuse func(ctx context.Context) string
}

// findTool returns the tool of exactly this name: of the request first (the last of a name wins there, as .NET has it), then of extra;
// nil when there is none.
func findTool(name string, opt *Options, extra []Tool) Tool {
	if opt != nil {
		if t := lastNamed(name, opt.Tools); t != nil {
			return t
		}
	}
	return lastNamed(name, extra)
}

func lastNamed(name string, tools []Tool) Tool {
	for i := len(tools) - 1; i >= 0; i-- {
		if tools[i] != nil && tools[i].Definition().Name == name {
			return tools[i]
		}
	}
	return nil
}

// run finds the function of a call and runs it. The function may change its own copy of the options, which comes back in the outcome.
func (v *invoker) run(ctx context.Context, call *content.FunctionCall, opt *Options, turn int, approval string) outcome {
	return v.invoke(ctx, job{call: call, tool: findTool(call.Name, opt, v.cfg.Tools), approval: approval}, opt, turn)
}

func (v *invoker) invoke(ctx context.Context, j job, opt *Options, turn int) outcome {
	f, ok := j.tool.(Function)
	if !ok {
		return outcome{opt: opt}
	}
	if !j.checked {
		if err := j.call.CheckArguments(); err != nil {
			return outcome{err: err, found: true, opt: opt}
		}
	}
	inv := &Invocation{Call: content.CloneCall(j.call).(*content.FunctionCall), Options: opt.Clone(), Turn: turn, Approval: j.approval}
	result, err := guarded(context.WithValue(ctx, invocationKey{}, inv), inv.Call, f.Invoke)
	return finish(f, result, err, inv)
}

// resume goes on with a call that suspended. The answers are in the order of the requests.
func (v *invoker) resume(ctx context.Context, j job, opt *Options, state json.RawMessage, answers []content.InputResponse) outcome {
	f, ok := resumerOf(j.tool)
	if !ok {
		return outcome{err: ErrNotResumer, found: j.tool != nil, opt: opt}
	}
	inv := &Invocation{Call: content.CloneCall(j.call).(*content.FunctionCall), Options: opt.Clone(), Turn: -1, Approval: j.approval}
	result, err := guarded(context.WithValue(ctx, invocationKey{}, inv), inv.Call, func(ctx context.Context, c *content.FunctionCall) (any, error) {
		return f.Resume(ctx, c, state, answers)
	})
	return finish(f, result, err, inv)
}

func finish(f Function, result json.RawMessage, err error, inv *Invocation) outcome {
	out := outcome{result: result, err: err, stop: inv.Stop && err == nil, found: true, opt: inv.Options.Clone()}
	if !errors.As(err, &out.suspend) || out.suspend == nil {
		return out
	}
	if _, ok := resumerOf(f); !ok {
		out.suspend, out.err = nil, ErrNotResumer
	}
	return out
}

// resumerOf finds what can go on with a call, through wrappers.
func resumerOf(t Tool) (Resumer, bool) {
	for t != nil {
		if r, ok := t.(Resumer); ok {
			return r, true
		}
		w, ok := t.(Wrapper)
		if !ok {
			break
		}
		t = w.Unwrap()
	}
	return nil, false
}

// guarded runs a function and makes JSON of its result. A panic, also one of the result's MarshalJSON, is an error.
func guarded(ctx context.Context, call *content.FunctionCall, run func(context.Context, *content.FunctionCall) (any, error)) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("the function panicked: %v", p)
		}
	}()
	v, err := run(ctx, call)
	if err != nil {
		_ = err.Error() // a nil pointer in an error panics here and nowhere else
		return nil, err
	}
	return resultJSON(v)
}

// resultJSON writes a result. A json.RawMessage is taken as it is, a nil result and one that marshals to null are nothing.
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

// keepable makes a text of JSON that two readers could read differently or that is nested too deep to be kept: the function has run, so
// its result must not be what breaks a thread.
func keepable(raw json.RawMessage) json.RawMessage {
	limits := jsonmsg.Limits()
	limits.MaxDepth = 96
	if _, err := jsonmsg.Check(raw, limits); len(raw) == 0 || err == nil {
		return raw
	}
	return jsonText(strings.ToValidUTF8(string(raw), "\uFFFD"))
}

// resultContent is what the model is told of an outcome.
func resultContent(call *content.FunctionCall, o outcome, cfg LoopConfig) *content.FunctionResult {
	out := &content.FunctionResult{CallID: call.CallID, Result: o.result}
	switch {
	case !o.found:
		out.Result = jsonText(notFoundText(call.Name))
	case o.err != nil && cfg.DetailedErrors:
		out.Result = jsonText(textFailed + " Exception: " + o.err.Error())
	case o.err != nil:
		out.Result = jsonText(textFailed)
	case len(o.result) == 0:
		out.Result = jsonText(textDone)
	}
	return out
}

func notFoundText(name string) string { return `Error: Requested function "` + name + `" not found.` }

// rejectionText is the result of a call that somebody refused; a reason that is blank adds nothing.
func rejectionText(reason string) string {
	if blank(reason) {
		return textRejected
	}
	return textRejected + " " + reason
}

// jsonText writes a string, which always marshals.
func jsonText(s string) json.RawMessage {
	raw, _ := resultJSON(s)
	return raw
}

// runAll runs the calls of one turn: one after the other, or at once when cfg.Concurrent. The outcomes are those of the first calls: after
// a call that stops a serial turn the rest is left. The options are those of the next turn. The error is the context's, or
// *FunctionErrors.
func (v *invoker) runAll(ctx context.Context, jobs []job, opt *Options, turn int, f *failures) ([]outcome, *Options, error) {
	each := v.inTurn
	if v.cfg.Concurrent && len(jobs) > 1 {
		each = v.atOnce
	}
	outs, next, err := each(ctx, jobs, opt, turn, f)
	if err == nil {
		err = f.turn(outs)
	}
	return outs, next, err
}

func (v *invoker) inTurn(ctx context.Context, jobs []job, opt *Options, turn int, f *failures) ([]outcome, *Options, error) {
	var outs []outcome
	for _, j := range jobs {
		j.mark()
		o := v.handle(ctx, j, opt, turn)
		if err := f.fatal(ctx, o); err != nil {
			return outs, opt, err
		}
		outs, opt = append(outs, o), o.opt
		if o.stop {
			break
		}
	}
	return outs, opt, nil
}

func (v *invoker) atOnce(ctx context.Context, jobs []job, opt *Options, turn int, _ *failures) ([]outcome, *Options, error) {
	outs := make([]outcome, len(jobs))
	var all sync.WaitGroup
	for _, j := range jobs {
		j.mark() // before any runs: two jobs may hold the same call
	}
	for i, j := range jobs {
		outs[i] = unfinished(opt)
		all.Go(func() { outs[i] = v.handle(ctx, j, opt, turn) })
	}
	all.Wait()
	next := opt
	for _, o := range outs {
		if o.err != nil && ctx.Err() != nil {
			return outs, opt, ctx.Err()
		}
		next = mergeTools(opt, next, o.opt)
	}
	return outs, next, nil
}

// mark flags the call as handled, on the copy in its request too.
func (j job) mark() {
	j.call.InformationalOnly = true
	if j.asked != nil {
		j.asked.InformationalOnly = true
	}
}

// handle runs the call unless it is refused.
func (v *invoker) handle(ctx context.Context, j job, opt *Options, turn int) outcome {
	if j.refuse != nil {
		if text := j.refuse(ctx); text != "" {
			return outcome{result: jsonText(text), found: true, opt: opt}
		}
	}
	return v.invoke(ctx, j, opt, turn)
}

// failures counts the turns in a row of which a function failed.
type failures struct{ max, inRow int }

// newFailures reads MaxErrors: 0 is the default, -1 allows none.
func newFailures(cfg LoopConfig) *failures {
	switch {
	case cfg.MaxErrors == 0:
		return &failures{max: 3}
	case cfg.MaxErrors < 0:
		return &failures{}
	}
	return &failures{max: cfg.MaxErrors}
}

// fatal is the error that ends a serial turn in the middle: the context's, or that of a function when no failing turn is left.
func (f *failures) fatal(ctx context.Context, o outcome) error {
	switch {
	case o.err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case f.inRow >= f.max:
		return &FunctionErrors{Errs: []error{o.err}}
	}
	return nil
}

// turn counts a turn that is over.
func (f *failures) turn(outs []outcome) error {
	var errs []error
	for _, o := range outs {
		if o.err != nil {
			errs = append(errs, o.err)
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
