package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/agui"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// endpoint serves one agent over AG-UI. It keeps the threads in memory. A real endpoint would
// keep them in a store (agent/filestore) and authenticate its users.
type endpoint struct {
	agent   agent.Agent
	mu      sync.Mutex // one run at a time
	threads map[string]*agent.Thread
}

func newEndpoint(bank agent.Agent) *endpoint {
	return &endpoint{agent: bank, threads: map[string]*agent.Thread{}}
}

// input is the part of a RunAgentInput that this endpoint reads.
type input struct {
	ThreadID string          `json:"threadId"`
	RunID    string          `json:"runId"`
	Messages []message       `json:"messages"`
	Resume   json.RawMessage `json:"resume,omitempty"`
}

type message struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ServeHTTP runs the agent once and streams its events.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in input
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
		http.Error(w, "expected a RunAgentInput", http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()

	w.Header().Set("Content-Type", "text/event-stream")
	thread := e.thread(in.ThreadID)
	run, pending := runOf(in, thread)
	next, err := in.next(pending)
	if err != nil {
		_ = send(w, agui.ErrorEvent(err)) // if the client is gone, it can't read an error either
		return
	}
	for event := range run.Events(e.agent.Stream(r.Context(), thread, next)) {
		if send(w, event) != nil {
			return
		}
	}
}

func (e *endpoint) thread(id string) *agent.Thread {
	if e.threads[id] == nil {
		e.threads[id] = agent.NewThread(id)
	}
	return e.threads[id]
}

// runOf returns the run, with the calls that the client has already seen because of open
// requests.
func runOf(in input, thread *agent.Thread) (agui.Run, []content.InputRequest) {
	run := agui.Run{ThreadID: in.ThreadID, RunID: in.RunID}
	var pending []content.InputRequest
	for _, p := range thread.Pending() {
		pending = append(pending, p.Request)
		if q, ok := p.Request.(*content.ToolApprovalRequest); ok {
			run.Shown = append(run.Shown, q.Call.ID())
		}
	}

	return run, pending
}

// next returns the message that continues a thread: the answers to the open requests, or else
// the text of the user. The history from the client is ignored, because the thread here is what
// the agent has seen.
func (in input) next(pending []content.InputRequest) (*content.Message, error) {
	if len(pending) > 0 || len(in.Resume) > 0 {
		answers, err := agui.Answers(pending, in.Resume)
		if err != nil {
			return nil, err
		}
		return content.NewMessage(content.User, answers...), nil
	}

	text := ""
	if n := len(in.Messages); n > 0 {
		text = in.Messages[n-1].Content
	}
	return content.UserText(text), nil
}

func send(w http.ResponseWriter, event agui.Event) error {
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// bank returns an agent whose transfers need approval.
func bank() agent.Agent {
	transfer := agent.NewFunction(
		"transfer",
		"Transfers money.",
		nil,
		func(_ context.Context, args json.RawMessage) (any, error) {
			return args, nil
		},
	)
	model := stage.Script(
		content.NewMessage(content.Assistant, &content.Text{Text: "One moment."}, &content.FunctionCall{
			CallID:    "call_1",
			Name:      "transfer",
			Arguments: json.RawMessage(`{"to":"the landlord","amount":900}`),
		}),
		content.AssistantText("Is there anything else?"),
	)
	return agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}), agent.ChatAgentConfig{
		Name:  "bank",
		Tools: []agent.Tool{agent.RequireApproval(transfer)},
	})
}
