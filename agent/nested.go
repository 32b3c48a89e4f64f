package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/content"
)

// NestedConfig are the choices for an agent that is used as a tool.
type NestedConfig struct {
	Name        string // of the tool; "" for the agent's own
	Description string
	// Target is what the agent is in the caller's file: with Kind resolve.Delegation the plan decides, and people approve, before the
	// agent starts. Nil for a local tool.
	Target *Target
	// Poll says that the agent's requests may be answered elsewhere (it has a Holder of its own), so that each run looks.
	Poll bool
}

// AsTool makes a tool of an agent. What the agent asks its user is shown to the outer caller, under ids of the outer thread, and the
// answers go back to the depth that asked. The agent's thread is kept in the outer one, any number of levels deep.
func AsTool(a Agent, cfg NestedConfig) Function {
	if cfg.Name == "" {
		cfg.Name = a.Name()
	}
	n := &nested{a, cfg}
	if cfg.Target != nil {
		return WithTarget(n, *cfg.Target)
	}
	return n
}

type nested struct {
	agent Agent
	cfg   NestedConfig
}

var nestedSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":"What the agent shall do."}},"required":["input"],"additionalProperties":false}`)

// Definition describes a tool that takes one text.
func (n *nested) Definition() Definition {
	return Definition{Name: n.cfg.Name, Description: n.cfg.Description, Schema: nestedSchema}
}

// Invoke starts the agent on a thread of its own.
func (n *nested) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	if err := content.CheckSchema(nestedSchema, call.Arguments); err != nil {
		return nil, err
	}
	var in struct{ Input string }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	return n.run(ctx, NewThread(call.CallID), content.UserText(in.Input))
}

// Resume goes on with the answers.
func (n *nested) Resume(ctx context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse) (any, error) {
	t := &Thread{}
	if err := json.Unmarshal(state, t); err != nil {
		return nil, fmt.Errorf("the thread of %s: %w", n.cfg.Name, err)
	}
	if len(answers) == 0 {
		return n.run(ctx, t)
	}
	m := content.NewMessage(content.User)
	for _, a := range answers {
		m.Contents = append(m.Contents, a)
	}
	return n.run(ctx, t, m)
}

func (n *nested) run(ctx context.Context, t *Thread, messages ...*content.Message) (any, error) {
	resp, err := n.agent.Run(ctx, t, messages...)
	if err != nil {
		return nil, err
	}
	asked := resp.UserInputRequests()
	switch {
	case len(asked) == 0 && t.waiting():
		return nil, errors.New("the agent waits for the results of calls that its caller runs, and has no caller here that could")
	case len(asked) == 0:
		return resp.Text(), nil
	}
	state, err := t.Encode()
	if err != nil {
		return nil, err
	}
	s := &Suspend{State: state, Poll: n.cfg.Poll}
	for _, q := range asked {
		s.Requests = append(s.Requests, n.signed(q))
	}
	return nil, s
}

// signed notes which agent asks, the outermost first.
func (n *nested) signed(q content.InputRequest) content.InputRequest {
	out := withRequestID(q, q.InputRequestID())
	note := notePtr(out)
	if note == nil {
		return out
	}
	if note.Agent == "" {
		note.Agent = n.cfg.Name
	} else {
		note.Agent = n.cfg.Name + "/" + note.Agent
	}
	return out
}
