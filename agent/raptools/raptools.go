// Package raptools lets an agent's loop use the tools of RAP tool
// servers: the operations of a runtime's thread become functions, and
// what is asked during their calls is asked by the loop.
//
// The runtime's plan decides about each call. Wrap the loop's decider
// in LeaveToRuntime, so that nobody is asked twice.
package raptools

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
)

// Config says in which thread of which asker the tools are called.
type Config struct {
	Threads   *runtime.Threads
	Thread    string   // that the calls belong to
	Ancestors []string // of the thread: root to parent
	For       string   // whom the agent acts for; "" nobody is named
	// User is the runtime's People, where the user of the loop answers.
	// Nil means that people elsewhere do: the loop shows that they are
	// asked, takes no answer, and each run looks whether there is one.
	User *User
	// Inbox is the page where people elsewhere answer; "" for none.
	Inbox string
}

// Tools makes functions of the operations that a thread is offered. The
// error says which of them can't be used and why; the others come
// beside it.
//
// A result that says that events follow is the function's result all
// the same: the program reads the events (runtime.Threads.Events).
func Tools(ctx context.Context, cfg Config) ([]agent.Tool, error) {
	if cfg.Threads == nil || cfg.Thread == "" {
		return nil, errors.New("make tools of RAP operations: expected the threads of an asker, and the name of one")
	}
	root := cfg.Thread
	if len(cfg.Ancestors) > 0 {
		root = cfg.Ancestors[0]
	}
	offered, err := cfg.Threads.Tools(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("make tools of RAP operations: %w", err)
	}

	var problems []error
	for _, p := range offered.Problems {
		problems = append(
			problems,
			fmt.Errorf("tool server %s: %s: %w", p.Server, cmp.Or(p.Tool, "all of it"), p.Err),
		)
	}

	out := make([]agent.Tool, 0, len(offered.Offers))
	for _, o := range offered.Offers {
		out = append(out, &tool{cfg: &cfg, offer: o})
	}

	return out, errors.Join(problems...)
}

// LeaveToRuntime is a decider that lets the tools of this package run,
// since the plan of their runtime decides about them, and leaves all
// others to another decider.
func LeaveToRuntime(others agent.Decider) agent.Decider { return &leaving{others} }

type leaving struct{ others agent.Decider }

// Decide answers one call of a tool.
func (l *leaving) Decide(ctx context.Context, t agent.Tool, call content.ToolCall) (hold.Verdict, error) {
	if _, ok := agent.Inner[*tool](t); ok {
		return hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Allow}}, nil
	}

	return l.others.Decide(ctx, t, call)
}

// tool is one operation.
type tool struct {
	cfg   *Config
	offer runtime.Offer
}

// Definition is what the tool server says about the operation.
func (t *tool) Definition() agent.Definition {
	return agent.Definition{
		Name:        t.offer.Name,
		Description: t.offer.Description,
		Schema:      t.offer.InputSchema,
	}
}

// waiting is what a call that suspended knows of itself.
type waiting struct {
	ID       string `json:"id"` // of the call at the runtime
	Question string `json:"question,omitempty"`
	SignIn   string `json:"sign_in,omitempty"`
}

// news reports whether a call has something to say since.
func (w waiting) news(c runtime.Call) bool {
	return c.State == runtime.CallDone || c.Question != "" && c.Question != w.Question ||
		c.SignInHost != "" && c.SignIn != w.SignIn
}

// Invoke calls the operation, and waits for its result or for a
// question. When ctx ends before, the call is interrupted and the tool
// server told so.
func (t *tool) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	w := waiting{ID: call.CallID + "_" + rand.Text()} // models use their ids again
	in := runtime.Invocation{
		Thread:    t.cfg.Thread,
		ID:        w.ID,
		Ancestors: t.cfg.Ancestors,
		User:      t.cfg.For,
		Operation: t.offer.Name,
		Arguments: call.Arguments,
	}
	if call.CallID != "" {
		in.CallID = &call.CallID
	}
	if _, err := t.cfg.Threads.Invoke(ctx, in); err != nil {
		return nil, errors.Join(err, t.interrupt(ctx, w))
	}

	return t.wait(ctx, w)
}

// wait waits for news of a call.
func (t *tool) wait(ctx context.Context, w waiting) (any, error) {
	c, err := t.cfg.Threads.WaitFor(ctx, t.cfg.Thread, w.ID, w.news)
	if err != nil {
		return nil, errors.Join(err, t.interrupt(ctx, w))
	}

	return t.goOn(ctx, w, c)
}

// interruptWithin is how long a call that nobody waits for any more may
// take to be interrupted.
const interruptWithin = 10 * time.Second

func (t *tool) interrupt(ctx context.Context, w waiting) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), interruptWithin)
	defer stop()
	err := t.cfg.Threads.Cancel(ctx, t.cfg.Thread, w.ID, "nobody waits for it any more")
	if errors.Is(err, runtime.ErrDone) || errors.Is(err, runtime.ErrNoCall) {
		return nil
	}

	return err
}

// goOn returns the result of a call, or suspends it where the user or
// people elsewhere have to say something first.
func (t *tool) goOn(ctx context.Context, w waiting, c runtime.Call, refused ...agent.Refusal) (any, error) {
	if c.State == runtime.CallDone {
		return result(c.Outcome)
	}
	w.Question, w.SignIn = c.Question, c.SignIn
	requests, err := t.requests(ctx, c)
	if err != nil {
		return nil, t.later(w, err)
	}
	if len(requests) == 0 { // what was asked has an answer: what is next comes by itself
		return t.wait(ctx, w)
	}
	state, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}

	return nil, &agent.Suspend{
		State:    state,
		Requests: requests,
		Poll:     true,
		Refused:  refused,
	}
}

// later says that a call can't be looked at now.
func (t *tool) later(w waiting, cause error) error {
	state, err := json.Marshal(w)
	if err != nil {
		return errors.Join(cause, err)
	}

	return &agent.Suspend{State: state, Err: fmt.Errorf("%s: %w", t.offer.Name, cause)}
}

// Resume takes the answers of the user, and looks what has become of
// the call.
func (t *tool) Resume(
	ctx context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	var w waiting
	if err := json.Unmarshal(state, &w); err != nil {
		return nil, fmt.Errorf("read the state of a call: %w", err)
	}
	var refused []agent.Refusal
	for _, a := range answers {
		no, err := t.answer(ctx, w, a)
		if err != nil {
			return nil, t.later(w, err)
		}
		if no != nil {
			refused = append(refused, *no)
		}
	}

	c, err := t.cfg.Threads.Call(ctx, t.cfg.Thread, w.ID)
	switch {
	case errors.Is(err, runtime.ErrNoCall):
		return "Error: nobody knows this call any more. Whether it took effect is not known.", nil
	case err != nil:
		return nil, t.later(w, err)
	case len(answers) > len(refused) && c.State != runtime.CallDone:
		return t.wait(ctx, w)
	}

	return t.goOn(ctx, w, c, refused...)
}

// result is what the model is told: the text of the outcome, or its
// items where it has images or several texts.
func result(o *rap.Outcome) (any, error) {
	switch {
	case o == nil:
		return nil, errors.New("the call ended without an outcome")
	case o.Content == nil:
		return o.Text, nil
	case len(o.Content) == 1 && o.Content[0].MediaType == "":
		return o.Content[0].Text, nil
	}

	items := make([]map[string]string, 0, len(o.Content))
	for _, c := range o.Content {
		items = append(items, item(c))
	}

	return items, nil
}

// item is an item of a result, as RAP writes it.
func item(c wire.Content) map[string]string {
	if c.MediaType == "" {
		return map[string]string{"type": "text", "text": c.Text}
	}

	return map[string]string{"type": "image", "data": c.Image, "mediaType": c.MediaType}
}
