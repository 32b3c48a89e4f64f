package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// partner serves the remote agent. Each task is a thread. A real partner would authenticate its
// callers.
type partner struct {
	agent agent.Agent
	mu    sync.Mutex
	tasks map[string]*agent.Thread
}

// newPartner serves an agent that rents vans and asks before it does.
func newPartner() *partner {
	rent := agent.NewFunction(
		"rent_van",
		"Rents a van.",
		nil,
		func(_ context.Context, args json.RawMessage) (any, error) {
			return "rented with " + string(args), nil
		},
	)
	model := stage.Script(
		content.NewMessage(content.Assistant, &content.FunctionCall{
			CallID:    "call_1",
			Name:      "rent_van",
			Arguments: json.RawMessage(`{"day":"Friday","price":120}`),
		}),
		content.AssistantText("Anything else?"),
	)
	rental := agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}), agent.ChatAgentConfig{
		Name:  "rental",
		Tools: []agent.Tool{agent.RequireApproval(rent)},
	})
	return &partner{agent: rental, tasks: map[string]*agent.Thread{}}
}

// ServeHTTP takes a message and answers with its task.
func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	task, err := p.take(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// if the caller is gone, it can't read an error either
	_ = json.NewEncoder(w).Encode(map[string]any{"task": task})
}

func (p *partner) take(r *http.Request) (*a2a.Task, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	var envelope struct{ Message json.RawMessage }
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	m, err := a2a.DecodeMessage(envelope.Message)
	if err != nil {
		return nil, err
	}
	if m.TaskID == "" {
		id := "task-" + strconv.Itoa(len(p.tasks)+1)
		p.tasks[id] = agent.NewThread(id)
		return p.run(r.Context(), id, content.UserText(m.Text()))
	}
	return p.answered(r.Context(), m)
}

// answered continues a task that waits for input. Each answer is matched with its request here.
// If the caller shows a call with its answer, it must be the call that the request was about.
func (p *partner) answered(ctx context.Context, m *a2a.Message) (*a2a.Task, error) {
	thread := p.tasks[m.TaskID]
	if thread == nil {
		return nil, fmt.Errorf("there is no task %q", m.TaskID)
	}
	asked := a2a.Asked{TaskID: m.TaskID}
	for _, pending := range thread.Pending() {
		asked.Requests = append(asked.Requests, pending.Request)
	}
	answers, err := asked.Answers(m)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, m.TaskID, content.NewMessage(content.User, answers...))
}

// run runs the agent once. After that, its task waits for input or is completed.
func (p *partner) run(ctx context.Context, id string, m *content.Message) (*a2a.Task, error) {
	resp, err := p.agent.Run(ctx, p.tasks[id], m)
	if err != nil {
		return nil, err
	}
	if requests := resp.UserInputRequests(); len(requests) > 0 {
		status, err := a2a.Asked{TaskID: id, Requests: requests}.Status(id + "-asks")
		if err != nil {
			return nil, err
		}
		return &a2a.Task{ID: id, Status: *status}, nil
	}

	text := resp.Text()
	for _, result := range stage.ResultsIn(resp.Messages) {
		text = "rent_van gave " + string(result) + ". " + text
	}
	said := &a2a.Message{
		MessageID: id + "-says",
		TaskID:    id,
		Role:      a2a.RoleAgent,
		Parts:     []a2a.Part{{Text: &text}},
	}
	return &a2a.Task{ID: id, Status: a2a.Status{State: a2a.Completed, Message: said}}, nil
}
