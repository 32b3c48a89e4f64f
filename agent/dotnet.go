package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// UnansweredError says that requests in the input have no response after them. Only the Compatible profile fails so.
type UnansweredError struct{ CallIDs []string }

// Error is the sentence of the .NET library.
func (e *UnansweredError) Error() string {
	return "ToolApprovalRequestContent found with FunctionCall.CallId(s) '" + strings.Join(e.CallIDs, ", ") +
		"' that have no matching ToolApprovalResponseContent."
}

// DuplicateRequestError says that two open requests in the input have the same id. Only the Compatible profile fails so.
type DuplicateRequestError struct{ RequestID string }

// Error names the id.
func (e *DuplicateRequestError) Error() string {
	return fmt.Sprintf("the messages hold two open requests with the id %q", e.RequestID)
}

var (
	errProfile   = errors.New("calls of this thread wait in the default profile, which alone can go on with them")
	errEdited    = errors.New("the answer holds an edited call, which the compatible profile does not know")
	errNoAnswer  = errors.New("the model returned neither a response nor an error")
	errNilUpdate = errors.New("the model streamed a nil update")
	errLeft      = errors.New("the caller left the stream")
)

// dotnetLoop is the Compatible profile: it follows the FunctionInvokingChatClient of Microsoft.Extensions.AI, holes included.
//
// It keeps nothing: requests and responses are found in the messages of the caller, and whatever they say is believed. As there, and
// unlike all else here, it changes objects of the caller: calls that are handled get InformationalOnly in the caller's own messages, so
// that a history that is sent again does not run them again.
type dotnetLoop struct {
	model ChatClient
	invoker
}

func newDotNetLoop(model ChatClient, cfg LoopConfig) *dotnetLoop {
	return &dotnetLoop{model, invoker{cfg}}
}

// check refuses a thread in which the Default loop keeps calls: it would run what is approved here once more.
func (l *dotnetLoop) check(opt *Options) error {
	switch {
	case l.model == nil:
		return errNoModel
	case opt == nil || opt.Thread == nil:
		return nil
	case len(opt.Thread.batches) > 0:
		return errProfile
	}
	opt.Thread.news.looped = true
	return nil
}

// Respond runs the loop to its end.
func (l *dotnetLoop) Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	if err := l.check(opt); err != nil {
		return nil, err
	}
	r := l.begin(ctx, messages, opt)
	out := &Response{}
	r.emit = func(m *content.Message) error {
		out.note(&Update{ConversationID: r.opt.ConversationID})
		out.Messages = append(out.Messages, m)
		return nil
	}
	r.turn = func() (dotnetTurn, error) { return r.respond(out) }
	if err := r.run(); err != nil {
		return nil, err
	}
	return out, nil
}

// Stream runs the loop piece by piece. From the first live call of a turn on, pieces are held until it is known whether they must be
// asked about: to the call that needs approval or to the end of the turn. When the model fails before, held pieces are dropped.
func (l *dotnetLoop) Stream(ctx context.Context, messages []*content.Message, opt *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		if err := l.check(opt); err != nil {
			yield(nil, err)
			return
		}
		r := l.begin(ctx, messages, opt)
		s := &dotnetStream{r: r, yield: yield}
		r.emit, r.turn = s.emit, s.turn
		err := s.nameMessages()
		if err == nil {
			err = r.run()
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

// dotnetRun is one run, streamed or not.
type dotnetRun struct {
	*dotnetLoop
	ctx   context.Context
	input []*content.Message // without approvals, with what came of them
	send  []*content.Message // to the model, next
	made  []*content.Message // by the model and by functions in this run
	held  bool               // the service kept the history in the turn before
	opt   *Options
	fails *failures

	toolID, callID string // of messages that are made here; only in streams
	emit           func(*content.Message) error
	turn           func() (dotnetTurn, error)
	asks           map[*content.FunctionCall]bool
}

// dotnetTurn is what the model answered, before calls became requests.
type dotnetTurn struct {
	messages     []*content.Message
	conversation string
	asked        bool // calls became requests
}

func (l *dotnetLoop) begin(ctx context.Context, messages []*content.Message, opt *Options) *dotnetRun {
	return &dotnetRun{dotnetLoop: l, ctx: ctx, input: messages, opt: opt.Clone(), fails: newFailures(l.cfg), asks: map[*content.FunctionCall]bool{}}
}

func (l *dotnetLoop) maxTurns() int {
	if l.cfg.MaxTurns <= 0 {
		return 40
	}
	return l.cfg.MaxTurns
}

func (r *dotnetRun) run() error {
	done, err := r.takeIn()
	if done || err != nil {
		return err
	}
	r.send = r.input
	for n := 0; ; n++ {
		last := n >= r.maxTurns()
		if last {
			r.opt = withoutFunctions(r.opt)
		}
		clear(r.asks)
		t, err := r.turn()
		if err != nil {
			return err
		}
		calls := liveCalls(t.messages)
		if t.asked || last || len(calls) == 0 || !r.ours(calls) {
			return nil
		}
		if done, err := r.invokeAll(n, t, calls); done || err != nil {
			return err
		}
	}
}

// withoutFunctions is for the turn after the last one: only what the service runs by itself is offered.
func withoutFunctions(opt *Options) *Options {
	out := opt.Clone()
	out.Tools = slices.DeleteFunc(out.Tools, func(t Tool) bool {
		_, hosted := t.(*HostedMCP)
		return !hosted
	})
	return out
}

// ours tells whether all calls can be answered here: a call of a tool that is only declared leaves the whole turn to the caller.
func (r *dotnetRun) ours(calls []*content.FunctionCall) bool {
	for _, c := range calls {
		t := findTool(c.Name, r.opt, r.cfg.Tools)
		if _, ok := t.(Function); t != nil && !ok {
			return false
		}
	}
	return true
}

// invokeAll runs the calls of a turn and prepares the next one. It is done when a function ends the run.
func (r *dotnetRun) invokeAll(n int, t dotnetTurn, calls []*content.FunctionCall) (bool, error) {
	r.made = append(r.made, t.messages...)
	switch {
	case t.conversation != "":
		r.send, r.held = nil, true
	case r.held:
		r.send, r.held = slices.Concat(r.input, r.made), false
	default:
		r.send = slices.Concat(r.send, t.messages)
	}
	var jobs []job
	for _, c := range calls {
		jobs = append(jobs, r.job(c, nil, ""))
	}
	results, done, err := r.results(jobs, n)
	if err != nil {
		return false, err
	}
	r.made, r.send = append(r.made, results), append(r.send, results)
	if r.opt.ConversationID != t.conversation {
		r.opt = r.opt.Clone()
		r.opt.ConversationID = t.conversation
	}
	return done, r.emit(results)
}

// job prepares a call. The decider has a last word on it.
func (r *dotnetRun) job(call, asked *content.FunctionCall, approval string) job {
	j := job{call: call, asked: asked, approval: approval, tool: findTool(call.Name, r.opt, r.cfg.Tools)}
	if r.cfg.Decider != nil {
		j.refuse = func(ctx context.Context) string { return r.refusal(ctx, j) }
	}
	return j
}

// results runs calls and makes the one message of their results.
func (r *dotnetRun) results(jobs []job, n int) (*content.Message, bool, error) {
	outs, opt, err := r.runAll(r.ctx, jobs, r.opt, n, r.fails)
	if err != nil {
		return nil, false, err
	}
	r.opt = opt
	m := &content.Message{ID: r.toolID, Role: content.ToolRole}
	done := false
	for i, o := range outs {
		m.Contents = append(m.Contents, resultContent(jobs[i].call, o, r.cfg))
		done = done || o.stop
	}
	return m, done, nil
}

// freshID makes the id of a message.
func (l *dotnetLoop) freshID() (string, error) {
	from := l.cfg.Rand
	if from == nil {
		from = rand.Reader
	}
	var id [16]byte
	if _, err := io.ReadFull(from, id[:]); err != nil {
		return "", fmt.Errorf("make the id of a message: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}
