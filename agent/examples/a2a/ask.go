package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
)

// askPartner is a tool that sends a message to a remote agent. If the remote agent asks
// something, the call is suspended with the task as its state. It is resumed with the user's
// answers.
type askPartner struct{ url string }

// Definition names the tool for the model.
func (p *askPartner) Definition() agent.Definition {
	return agent.Definition{Name: "ask_partner", Description: "Asks the partner for something."}
}

// Invoke begins a task.
func (p *askPartner) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	var args struct{ Text string }
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	return p.send(ctx, &a2a.Message{
		MessageID: call.CallID,
		Role:      a2a.RoleUser,
		Parts:     []a2a.Part{{Text: &args.Text}},
	})
}

// Resume continues a task that waits for input.
func (p *askPartner) Resume(
	ctx context.Context, call *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	task, err := a2a.DecodeTask(state)
	if err != nil {
		return nil, err
	}
	reply, err := task.Reply(call.CallID+"-answer", answers)
	if err != nil {
		return nil, err
	}
	return p.send(ctx, reply)
}

// send posts a message and returns the text of the task. If the task asks something, it
// suspends the call.
func (p *askPartner) send(ctx context.Context, m *a2a.Message) (any, error) {
	task, state, err := p.post(ctx, m)
	if err != nil {
		return nil, err
	}
	questions, err := task.Questions()
	switch {
	case err != nil:
		return nil, err
	case len(questions) > 0:
		return nil, &agent.Suspend{State: state, Requests: questions}
	case task.Status.Message == nil:
		return nil, fmt.Errorf("the task %s says nothing", task.ID)
	}

	return task.Status.Message.Text(), nil
}

// post sends a message in A2A's HTTP binding. It returns the task and also its JSON text, which
// is kept as the state.
func (p *askPartner) post(ctx context.Context, m *a2a.Message) (*a2a.Task, json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{"message": m})
	if err != nil {
		return nil, nil, fmt.Errorf("write the message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/message:send", bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()

	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("read the task: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("the partner answers %s: %s", resp.Status, text)
	}
	task, err := a2a.DecodeTask(text)
	return task, text, err
}
