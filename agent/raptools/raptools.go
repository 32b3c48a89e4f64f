// Package raptools lets an agent's loop use the tools of RAP tool servers: the operations of a
// runtime's thread become functions, and the loop asks the questions that arise during their
// calls.
//
// The runtime's plan decides each call. Wrap the loop's decider in LeaveToRuntime, so that
// people are not asked twice.
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

// Config selects the asker and the thread in which the tools are called.
type Config struct {
	Threads   *runtime.Threads
	Thread    string   // thread that the calls belong to
	Ancestors []string // of the thread: root to parent
	For       string   // the person for whom the agent acts, if any
	// User is the runtime's People if the user of the loop answers questions. If it is nil,
	// people elsewhere answer: the loop only shows that they are asked, refuses answers, and
	// checks in each run whether they have answered.
	User *User
	// Inbox is the address of the page on which people elsewhere answer, if any.
	Inbox string
}

// Tools makes functions from the operations that are offered to a thread. The error lists
// operations that can't be used, with the reasons. The tools for all others are returned
// together with the error.
//
// A result that announces events is still the function's result. The program can read the
// events with runtime.Threads.Events.
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

// LeaveToRuntime returns a decider that allows the tools of this package, since the plan of
// their runtime decides about them, and uses another decider for all other tools.
func LeaveToRuntime(others agent.Decider) agent.Decider { return &leaving{others} }

type leaving struct{ others agent.Decider }

// Decide returns the verdict for one call.
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

// Definition returns the tool server's description of the operation.
func (t *tool) Definition() agent.Definition {
	return agent.Definition{
		Name:        t.offer.Name,
		Description: t.offer.Description,
		Schema:      t.offer.InputSchema,
	}
}

// waiting is the state of a suspended call.
type waiting struct {
	ID       string `json:"id"` // id of the call at the runtime
	Question string `json:"question,omitempty"`
	SignIn   string `json:"sign_in,omitempty"`
}

// news reports whether the call has ended, or has a question or sign-in that the state doesn't
// have.
func (w waiting) news(c runtime.Call) bool {
	return c.State == runtime.CallDone || c.Question != "" && c.Question != w.Question ||
		c.SignInHost != "" && c.SignIn != w.SignIn
}

// Invoke calls the operation, and waits for its result or a question. If ctx ends first, the
// call is interrupted and the tool server is notified.
func (t *tool) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	w := waiting{ID: call.CallID + "_" + rand.Text()} // models reuse their ids
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

// wait waits until a call has news.
func (t *tool) wait(ctx context.Context, w waiting) (any, error) {
	c, err := t.cfg.Threads.WaitFor(ctx, t.cfg.Thread, w.ID, w.news)
	if err != nil {
		return nil, errors.Join(err, t.interrupt(ctx, w))
	}

	return t.goOn(ctx, w, c)
}

// interruptWithin limits the time for interrupting a call whose caller has gone.
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

// goOn returns the result of a call, or suspends it if the user or people elsewhere must answer
// first.
func (t *tool) goOn(ctx context.Context, w waiting, c runtime.Call, refused ...agent.Refusal) (any, error) {
	if c.State == runtime.CallDone {
		return result(c.Outcome)
	}
	w.Question, w.SignIn = c.Question, c.SignIn
	requests, err := t.requests(ctx, c)
	if err != nil {
		return nil, t.later(w, err)
	}
	if len(requests) == 0 { // the question has an answer, and the next state follows by itself
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

// later suspends a call that can't be checked now.
func (t *tool) later(w waiting, cause error) error {
	state, err := json.Marshal(w)
	if err != nil {
		return errors.Join(cause, err)
	}

	return &agent.Suspend{State: state, Err: fmt.Errorf("%s: %w", t.offer.Name, cause)}
}

// Resume applies the user's answers and checks the call.
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

// result returns the result for the model: the text of the outcome, or its items if it has
// images or several texts.
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

// item returns an item of a result in RAP's format.
func item(c wire.Content) map[string]string {
	if c.MediaType == "" {
		return map[string]string{"type": "text", "text": c.Text}
	}

	return map[string]string{"type": "image", "data": c.Image, "mediaType": c.MediaType}
}
