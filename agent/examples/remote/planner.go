package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/agent/filestore"
)

// threadID is the only conversation of this program.
const threadID = "move"

// planner is the local agent. Its only tool is the remote agent.
type planner struct {
	agent agent.Agent
	store *filestore.Store
	page  *stage.Page
}

func newPlanner(dir, url, token string, wait time.Duration, page *stage.Page) (*planner, error) {
	store, err := filestore.New(filepath.Join(dir, "threads"))
	if err != nil {
		return nil, err
	}
	remote, err := a2a.NewClient(a2a.ClientConfig{URL: url, Token: token, Loopback: true})
	if err != nil {
		return nil, err
	}
	tool := a2a.NewRemote(remote, a2a.RemoteConfig{
		Name:        "ask_partner",
		Description: "Asks the partner for something.",
		Journal:     store,
		Repeats:     true,
		Wait:        wait,
	})
	model := stage.Script(
		content.NewMessage(content.Assistant, &content.FunctionCall{
			CallID:    "call_1",
			Name:      "ask_partner",
			Arguments: json.RawMessage(`{"input":"We need a van on Friday."}`),
		}),
		content.AssistantText("That is what the partner says."),
	)
	return &planner{
		store: store,
		page:  page,
		agent: agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}), agent.ChatAgentConfig{
			Name:  "planner",
			Tools: []agent.Tool{tool},
			Store: store,
		}),
	}, nil
}

// goOn runs the agent once and shows the result.
func (p *planner) goOn(ctx context.Context, thread *agent.Thread, messages ...*content.Message) error {
	resp, err := p.agent.Run(ctx, thread, messages...)
	if err != nil {
		return err
	}
	for _, m := range resp.Messages {
		p.page.Message(m, func(c content.Content) {
			if q, ok := c.(*content.TextApprovalRequest); ok {
				p.page.Line("asks", q.Text)
				p.page.Line("id", q.RequestID)
			}
		})
	}

	for _, no := range resp.Refused {
		p.page.Line("refused", no.Detail)
	}
	return nil
}

// answer answers an open question.
func (p *planner) answer(ctx context.Context, id string, yes bool, reason string) error {
	thread, err := p.store.Load(ctx, threadID)
	if err != nil {
		return err
	}
	for _, open := range thread.Pending() {
		q, ok := open.Request.(*content.TextApprovalRequest)
		if !ok || q.RequestID != id {
			continue
		}
		if yes {
			return p.goOn(ctx, thread, content.NewMessage(content.User, q.CreateApproval(reason)))
		}
		return p.goOn(ctx, thread, content.NewMessage(content.User, q.CreateRejection(reason)))
	}

	return fmt.Errorf("no question %s is open", id)
}
