package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// ChatAgentConfig configures a chat agent.
type ChatAgentConfig struct {
	Name         string
	Instructions string
	Model        string
	Tools        []Tool
	// Store keeps the threads. The agent saves a thread at the end of each run, and before it
	// runs an approved call.
	Store ThreadStore
	// Options are sent with each request to the model. The fields above override or extend
	// them.
	Options Options
}

// NewChatAgent returns an agent for a chat model with its layers, such as NewFunctionInvoking
// around an adapter.
func NewChatAgent(client ChatClient, cfg ChatAgentConfig) Agent { return &chatAgent{client, cfg} }

type chatAgent struct {
	client ChatClient
	cfg    ChatAgentConfig
}

func (a *chatAgent) Name() string { return a.cfg.Name }

// Run calls the model with the thread's history and the new messages, and adds the result to
// the thread. On an error the thread is unchanged, except for answers that were accepted and
// calls that ran.
func (a *chatAgent) Run(ctx context.Context, t *Thread, messages ...*content.Message) (*Response, error) {
	if err := checkInput(t, messages); err != nil {
		return nil, err
	}
	h := a.begin(t, messages)
	resp, err := a.client.Respond(ctx, slices.Concat(t.Messages, messages), a.options(h, len(messages)))
	if err != nil {
		return nil, err
	}
	return resp, a.keep(ctx, h, resp)
}

// Stream does the same as Run in pieces. A stream that is not read to its end is not added to
// the thread.
func (a *chatAgent) Stream(
	ctx context.Context,
	t *Thread,
	messages ...*content.Message,
) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		if err := checkInput(t, messages); err != nil {
			yield(nil, err)
			return
		}
		h := a.begin(t, messages)
		var all []*Update
		for u, err := range a.client.Stream(ctx, slices.Concat(t.Messages, messages), a.options(h, len(messages))) {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, u)
			if !yield(u, nil) {
				return
			}
		}

		if err := a.keep(ctx, h, Join(all)); err != nil {
			yield(nil, err)
		}
	}
}

// checkInput returns an error for a nil thread and for messages that can't be stored.
func checkInput(t *Thread, messages []*content.Message) error {
	if t == nil {
		return ErrThreadNeeded
	}
	for i, m := range messages {
		switch where := fmt.Sprintf("messages[%d]", i); {
		case m == nil:
			return badMessage(where, "expected a message, found none")
		case m.Role == "":
			return badMessage(where+".role", "expected a role such as user, found none")
		case slices.Contains(m.Contents, nil):
			return badMessage(where+".contents", "expected contents, found one that is nil")
		}
	}

	return nil
}

func badMessage(where, detail string) error {
	return &content.BadError{Code: content.BadShape, Where: where, Detail: detail}
}

// begin prepares the thread for a run. New user messages go into the history, without answers
// and results.
func (a *chatAgent) begin(t *Thread, messages []*content.Message) *history {
	if a.cfg.Store != nil {
		t.Keep(a.cfg.Store)
	}
	return &history{thread: t, said: readInput(t, true, messages, 0).history}
}

func (a *chatAgent) options(h *history, fresh int) *Options {
	opt := a.cfg.Options.Clone()
	opt.Tools = append(opt.Tools, a.cfg.Tools...)
	opt.Thread, opt.history = h.thread, h
	opt.ConversationID = h.thread.ConversationID
	opt.Fresh = fresh
	if fresh == 0 {
		opt.Fresh = -1
	}
	if a.cfg.Instructions != "" {
		opt.Instructions = a.cfg.Instructions
	}
	if a.cfg.Model != "" {
		opt.Model = a.cfg.Model
	}
	return opt
}

// keep adds a run to the thread and saves it.
func (a *chatAgent) keep(ctx context.Context, h *history, resp *Response) error {
	t := h.thread
	t.batches = slices.DeleteFunc(t.batches, h.hasBatch)
	if resp.ConversationID != "" {
		t.ConversationID = resp.ConversationID
	}
	if t.ConversationID != "" { // the service keeps the whole history
		t.Messages = nil
		return t.Save(ctx)
	}
	if h.placed {
		t.Messages = slices.Concat(t.Messages, h.messages())
		return t.Save(ctx)
	}
	if name := a.leftAlone(h, resp); name != "" {
		return fmt.Errorf(
			"the model called %s and nothing ran it: give NewChatAgent the model in NewFunctionInvoking",
			name,
		)
	}

	said := readInput(t, true, resp.Messages, len(resp.Messages)).history
	t.Messages = slices.Concat(t.Messages, h.said, said)
	return t.Save(ctx)
}

// leftAlone returns the name of a function that the model called although no loop ran it, or an
// empty string.
func (a *chatAgent) leftAlone(h *history, resp *Response) string {
	if h.ran {
		return ""
	}
	opt := Options{Tools: slices.Concat(a.cfg.Options.Tools, a.cfg.Tools)}
	served := servedCalls(resp.Messages)
	for call := range content.All[*content.FunctionCall](resp.Messages) {
		if !call.InformationalOnly && !served[call.CallID] && runs(FindTool(call.Name, &opt, nil)) == runNow {
			return call.Name
		}
	}

	return ""
}

// ErrUnanswered is returned if the answer function of RunToEnd returned nil, or an answer that
// was refused.
var ErrUnanswered = errors.New("a request was left without an answer")

// RunToEnd runs an agent until it has no more requests, for programs whose user sits in front
// of the same process. It passes each request to answer and the answers to the next run. It
// returns the last response, with the messages of all runs. If answer fails or returns nil, the
// requests stay open in the thread.
func RunToEnd(ctx context.Context, a Agent, t *Thread, messages []*content.Message,
	answer func(context.Context, content.InputRequest) (content.InputResponse, error)) (*Response, error) {
	var all []*content.Message
	given := -1
	for {
		resp, err := a.Run(ctx, t, messages...)
		if err != nil {
			return nil, err
		}
		if len(resp.Refused) == given {
			return nil, fmt.Errorf("%w: %s", ErrUnanswered, resp.Refused[0].Detail)
		}
		all = append(all, resp.Messages...)
		asked := resp.UserInputRequests()
		if len(asked) == 0 {
			resp.Messages = all
			return resp, nil
		}
		reply := content.NewMessage(content.User)
		for _, q := range asked {
			if answer == nil {
				return nil, ErrUnanswered
			}
			one, err := answer(ctx, q)
			if err != nil {
				return nil, err
			}
			if one == nil {
				return nil, ErrUnanswered
			}
			reply.Contents = append(reply.Contents, one)
		}

		messages = []*content.Message{reply}
		given = len(reply.Contents)
	}
}
