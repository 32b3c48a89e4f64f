// Package compat behaves like the .NET library Microsoft.Extensions.AI, including its security
// holes, for programs that need the same behavior. It has the loop that calls functions
// (FunctionInvokingChatClient) and the layers around it. New programs should use the packages
// agent and layer, which fail closed.
//
// The loop keeps no state: it takes requests and responses from the caller's messages and
// trusts them. Unlike all other packages it changes objects of the caller: it sets
// InformationalOnly on handled calls in the caller's messages, so that a history that is sent
// again doesn't run them again. Pass copies of messages that must not change.
package compat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Config configures a loop. The zero value is the default.
type Config struct {
	// Decider decides each call in addition to the markers of the tools. If nil, only the
	// markers count.
	Decider agent.Decider
	// Tools are known to the loop but not sent to the model.
	Tools []agent.Tool
	// MaxTurns limits the turns of the model in one run. The default is 40. On the turn after
	// the last one functions are not offered.
	MaxTurns int
	// MaxErrors limits how many consecutive turns may have a failing function. Zero means 3 and
	// a negative number allows none.
	MaxErrors int
	// DetailedErrors includes the error messages of functions in the results for the model.
	DetailedErrors bool
	// Concurrent runs the calls of one turn concurrently.
	Concurrent bool
	// Rand is the source of randomness for message ids. The default is crypto/rand.
	Rand io.Reader
	// RequestID makes a request id from a call id. The default is ficc_ followed by the call
	// id.
	RequestID func(callID string) string
	// Log receives debug records of requests and rejections. It may be nil.
	Log *slog.Logger
}

// UnansweredError is returned if requests in the input have no response after them.
type UnansweredError struct{ CallIDs []string }

// Error returns the same text as the .NET library.
func (e *UnansweredError) Error() string {
	return "ToolApprovalRequestContent found with FunctionCall.CallId(s) '" + strings.Join(e.CallIDs, ", ") +
		"' that have no matching ToolApprovalResponseContent."
}

// DuplicateRequestError is returned if two open requests in the input have the same id.
type DuplicateRequestError struct{ RequestID string }

// Error names the id.
func (e *DuplicateRequestError) Error() string {
	return fmt.Sprintf("the messages hold two open requests with the id %q", e.RequestID)
}

var (
	errEdited = errors.New("the answer holds an edited call, which the compatible profile does not know")
	errLeft   = errors.New("the caller left the stream")
)

// NewFunctionInvoking returns the loop around a model. The loop runs the functions that the
// model calls, requests approval for calls that need it, and continues when answers arrive.
func NewFunctionInvoking(model agent.ChatClient, cfg Config) agent.ChatClient {
	if cfg.MaxTurns <= 0 {
		cfg.MaxTurns = 40
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	return &loop{model: model, cfg: cfg}
}

type loop struct {
	model agent.ChatClient
	cfg   Config
}

func (l *loop) check(opt *agent.Options) error {
	if l.model == nil {
		return agent.ErrNoModel
	}
	return opt.ClaimCalls()
}

// Respond runs the loop to its end.
func (l *loop) Respond(
	ctx context.Context,
	messages []*content.Message,
	opt *agent.Options,
) (*agent.Response, error) {
	if err := l.check(opt); err != nil {
		return nil, err
	}
	r := l.begin(ctx, messages, opt)
	out := &agent.Response{}
	r.emit = func(m *content.Message) error {
		out.Add(&agent.Response{ConversationID: r.opt.ConversationID})
		out.Messages = append(out.Messages, m)
		return nil
	}
	r.ask = func() (turn, error) { return r.respond(out) }
	if err := r.run(); err != nil {
		return nil, err
	}
	return out, nil
}

// Stream runs the loop and yields the response in pieces. From the first live call of a turn
// on, pieces are held until it is known whether the calls need approval, which is at the first
// call that does or at the end of the turn. If the model fails before that, held pieces are
// dropped.
func (l *loop) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		if err := l.check(opt); err != nil {
			yield(nil, err)
			return
		}
		r := l.begin(ctx, messages, opt)
		s := &stream{r: r, yield: yield}
		r.emit, r.ask = s.emit, s.turn
		err := s.nameMessages()
		if err == nil {
			err = r.run()
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

// run is one run, streamed or not.
type run struct {
	*loop
	ctx      context.Context
	input    []*content.Message // without approvals, with their results
	send     []*content.Message // messages for the model's next turn
	made     []*content.Message // messages of the model and of functions in this run
	held     bool               // the service kept the history in the previous turn
	opt      *agent.Options
	failures *agent.Failures

	toolID string // id of the result message that is made here; only in streams
	callID string // id of call messages that are made here; only in streams
	emit   func(*content.Message) error
	ask    func() (turn, error) // calls the model
	needs  map[*content.FunctionCall]bool
}

// turn is the model's answer before its calls become requests.
type turn struct {
	messages     []*content.Message
	conversation string
	asked        bool // calls became requests
}

func (l *loop) begin(ctx context.Context, messages []*content.Message, opt *agent.Options) *run {
	return &run{
		loop:     l,
		ctx:      ctx,
		input:    messages,
		opt:      opt.Clone(),
		failures: agent.NewFailures(l.cfg.MaxErrors),
		needs:    map[*content.FunctionCall]bool{},
	}
}

func (r *run) run() error {
	done, err := r.takeIn()
	if done || err != nil {
		return err
	}
	r.send = r.input
	for n := 0; ; n++ {
		last := n >= r.cfg.MaxTurns
		if last {
			r.opt = withoutFunctions(r.opt)
		}
		clear(r.needs)
		t, err := r.ask()
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

// withoutFunctions is used for the turn after the last one: only tools that the service runs
// itself are offered.
func withoutFunctions(opt *agent.Options) *agent.Options {
	out := opt.Clone()
	out.Tools = slices.DeleteFunc(out.Tools, func(t agent.Tool) bool {
		_, hosted := t.(*agent.HostedMCP)
		return !hosted
	})
	return out
}

// ours reports whether all calls can be answered here. If one of the tools is only declared,
// the whole turn is left to the caller.
func (r *run) ours(calls []*content.FunctionCall) bool {
	for _, c := range calls {
		t := agent.FindTool(c.Name, r.opt, r.cfg.Tools)
		if _, ok := t.(agent.Function); t != nil && !ok {
			return false
		}
	}

	return true
}

// invokeAll runs the calls of a turn and prepares the next one. It returns true if a function
// ended the run.
func (r *run) invokeAll(n int, t turn, calls []*content.FunctionCall) (bool, error) {
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
	r.made = append(r.made, results)
	r.send = append(r.send, results)
	if r.opt.ConversationID != t.conversation {
		r.opt = r.opt.Clone()
		r.opt.ConversationID = t.conversation
	}
	return done, r.emit(results)
}

// freshID makes a message id.
func (l *loop) freshID() (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(l.cfg.Rand, id[:]); err != nil {
		return "", fmt.Errorf("make the id of a message: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}
