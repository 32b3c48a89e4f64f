package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/agui"
	"github.com/assent-dev/assent/agent/content"
)

// bank is a model that makes the same three calls whenever a user
// writes, and then tells what came of them.
type bank struct{}

// Respond answers the messages.
func (bank) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	last := messages[len(messages)-1]
	if last.Role == content.User {
		call := func(id, name, args string) content.Content {
			return &content.FunctionCall{
				CallID:    id,
				Name:      name,
				Arguments: json.RawMessage(args),
			}
		}
		return said(
			&content.Text{Text: "One moment."},
			call("call_1", "balance", `{}`),
			call("call_2", "transfer", `{"to":"bob","amount":5,"reason":"rent"}`),
			call("call_3", "close_account", `{"id":"9007199254740993"}`),
		), nil
	}

	var told []string
	for _, m := range messages {
		for _, c := range m.Contents {
			if r, ok := c.(*content.FunctionResult); ok {
				told = append(told, r.CallID+": "+string(r.Result))
			}
		}
	}

	return said(&content.Text{Text: strings.Join(told, "; ")}), nil
}

func said(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// Stream is Respond in one piece.
func (b bank) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := b.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		m := resp.Messages[0]
		yield(&agent.Update{Role: m.Role, Contents: m.Contents}, nil)
	}
}

// endpoint is an AG-UI endpoint of one agent. It keeps the threads in memory.
type endpoint struct {
	mu      sync.Mutex
	agent   agent.Agent
	threads map[string]*agent.Thread
}

func newEndpoint() *endpoint {
	echo := func(name string) agent.Function {
		return agent.NewFunction(name, "", nil, func(_ context.Context, args json.RawMessage) (any, error) {
			return "ran " + name + " " + string(args), nil
		})
	}
	return &endpoint{
		threads: map[string]*agent.Thread{},
		agent: agent.NewChatAgent(agent.NewFunctionInvoking(bank{}, agent.LoopConfig{}), agent.ChatAgentConfig{
			Name: "bank",
			Tools: []agent.Tool{
				echo("balance"),
				agent.RequireApproval(echo("transfer")),
				agent.RequireApproval(echo("close_account")),
			},
		}),
	}
}

// ServeHTTP runs the agent for one RunAgentInput.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ThreadID, RunID string
		Resume          json.RawMessage
		Messages        []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	thread := e.threads[in.ThreadID]
	if thread == nil {
		thread = agent.NewThread(in.ThreadID)
		e.threads[in.ThreadID] = thread
	}

	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event agui.Event) {
		text, err := json.Marshal(event)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	var pending []content.InputRequest
	out := agui.Run{ThreadID: in.ThreadID, RunID: in.RunID}
	for _, p := range thread.Pending() {
		pending = append(pending, p.Request)
		if q, ok := p.Request.(*content.ToolApprovalRequest); ok {
			out.Shown = append(out.Shown, q.Call.ID())
		}
	}

	next := []*content.Message{}
	if len(pending) > 0 || len(in.Resume) > 0 {
		answers, err := agui.Answers(pending, in.Resume)
		if err != nil {
			send(agui.ErrorEvent(err))
			return
		}
		next = append(next, content.NewMessage(content.User, answers...))
	} else if n := len(in.Messages); n > 0 {
		next = append(next, content.UserText(in.Messages[n-1].Content))
	}

	for event := range out.Events(e.agent.Stream(r.Context(), thread, next...)) {
		send(event)
	}
}

// serveAGUI serves on a free port of this machine, whose address is the
// first line of the output.
func serveAGUI(out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	return http.Serve(listener, newEndpoint())
}
