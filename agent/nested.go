package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
)

// NestedConfig configures an agent that is used as a tool.
type NestedConfig struct {
	Name        string // name of the tool; by default the agent's name
	Description string
	// Target describes the agent in the agent file of the caller. With Kind resolve.Delegation
	// the plan decides, and people approve, before the agent starts. It is nil for a local
	// tool.
	Target *Target
	// Poll must be set if the agent's requests may be answered elsewhere, because it has its
	// own Holder. Each run then checks for answers.
	Poll bool
}

// AsTool makes a tool from an agent. Requests of the agent are shown to the outer caller under
// ids of the outer thread, and the answers go back to the agent that asked. The agent's thread
// is stored in the outer one. Agents can be nested to any depth.
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

var nestedSchema = json.RawMessage(`{"type":"object",` +
	`"properties":{"input":{"type":"string","description":"What the agent shall do."}},` +
	`"required":["input"],"additionalProperties":false}`)

// Definition describes a tool with one text argument.
func (n *nested) Definition() Definition {
	return Definition{
		Name:        n.cfg.Name,
		Description: n.cfg.Description,
		Schema:      nestedSchema,
	}
}

// Invoke starts the agent on a new thread.
func (n *nested) Invoke(ctx context.Context, call *content.FunctionCall) (any, error) {
	if err := content.CheckSchema(nestedSchema, call.Arguments); err != nil {
		return nil, err
	}
	var in struct{ Input string }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	t, err := n.newThread(ctx, call.CallID)
	if err != nil {
		return nil, err
	}
	return n.run(ctx, t, content.UserText(in.Input))
}

// newThread makes a thread id from the outer thread's id and the call id. A random tail makes
// it unique, because many providers reuse call ids.
func (n *nested) newThread(ctx context.Context, callID string) (*Thread, error) {
	tail, err := randomTail(rand.Reader)
	if err != nil {
		return nil, err
	}
	outer := ""
	if inv := InvocationOf(ctx); inv != nil && inv.Options.Thread != nil {
		outer = inv.Options.Thread.ID + "/"
	}
	return NewThread(outer + callID + tail), nil
}

// Resume continues the agent's thread with the answers.
func (n *nested) Resume(
	ctx context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	t := &Thread{}
	if err := json.Unmarshal(state, t); err != nil {
		return nil, fmt.Errorf("the thread of %s: %w", n.cfg.Name, err)
	}
	var messages []*content.Message
	if len(answers) > 0 {
		m := content.NewMessage(content.User)
		for _, a := range answers {
			m.Contents = append(m.Contents, a)
		}
		messages = append(messages, m)
	}

	result, err := n.run(ctx, t, messages...)
	var s *Suspend
	if err == nil || errors.As(err, &s) {
		return result, err
	}
	// An approved call may have run already, so this must not count as a failed call: the agent
	// continues in the next run.
	kept, encodeErr := t.Encode()
	if encodeErr != nil {
		return nil, errors.Join(err, encodeErr)
	}
	return nil, &Suspend{State: kept, Err: fmt.Errorf("%s: %w", n.cfg.Name, err)}
}

func (n *nested) run(ctx context.Context, t *Thread, messages ...*content.Message) (any, error) {
	resp, err := n.agent.Run(ctx, t, messages...)
	if err != nil {
		return nil, err
	}
	asked := resp.UserInputRequests()
	switch {
	case len(asked) == 0 && t.waiting():
		return nil, errors.New("the agent waits for the results of calls that its caller runs, " +
			"and has no caller here that could")
	case len(asked) == 0:
		return resp.Text(), nil
	}

	state, err := t.Encode()
	if err != nil {
		return nil, err
	}
	s := &Suspend{State: state, Poll: n.cfg.Poll, Refused: resp.Refused}
	for _, q := range asked {
		s.Requests = append(s.Requests, n.signed(q))
	}
	return nil, s
}

// signed adds the agent's name to the request. The outermost agent comes first.
func (n *nested) signed(q content.InputRequest) content.InputRequest {
	out := reid.Request(q, q.InputRequestID())
	note := content.NoteOf(out)
	if note.Agent != "" {
		note.Agent = "/" + note.Agent
	}
	note.Agent = n.cfg.Name + note.Agent
	return out
}
