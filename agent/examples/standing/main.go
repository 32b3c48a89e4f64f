// Command standing pays a rent. Each payment needs approval. The tenant answers "always" to the
// first one. From then on, a standing rule approves payments with exactly these arguments,
// until it is revoked.
//
//	go run ./examples/standing
//	go run ./examples/standing -uses 1   # the rule approves once
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
	"github.com/assent-dev/assent/agent/layer"
)

func main() {
	uses := flag.Int("uses", 100, "payments that one rule approves")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *uses); err != nil {
		stage.NewPage(os.Stderr, "", "").Line("standing", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, uses int) error {
	h := &household{page: stage.NewPage(out, "tenant", "agent"), thread: agent.NewThread("rent")}
	h.agent = h.payer(uses)
	steps := []func() error{
		func() error {
			return h.month(ctx, "september", "Pay 900 to Ann", always)
		},
		func() error { return h.month(ctx, "october", "Pay 900 to Ann", no) },
		func() error { return h.month(ctx, "november", "Pay 950 to Ann", no) },
		h.revoke,
		func() error { return h.month(ctx, "december", "Pay 900 to Ann", no) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return h.page.Err
}

// household has a tenant, who answers, and the agent that pays.
type household struct {
	page   *stage.Page
	thread *agent.Thread
	agent  agent.Agent
}

// payer returns a chat agent with one tool. The layer with the rules is outside of the loop, which
// asks.
func (h *household) payer(uses int) agent.Agent {
	pay := agent.NewFunction("pay", "Pays somebody.", nil, func(context.Context, json.RawMessage) (any, error) {
		return "paid", nil
	})
	loop := agent.NewFunctionInvoking(script{}, agent.LoopConfig{Audit: h.note})
	return agent.NewChatAgent(layer.NewStanding(loop, layer.StandingConfig{MaxUses: uses}), agent.ChatAgentConfig{
		Name:  "payer",
		Tools: []agent.Tool{agent.RequireApproval(pay)},
	})
}

// note shows who has answered each request.
func (h *household) note(_ context.Context, e agent.Event) error {
	if e.Type == "answered" {
		h.page.Line("answered", fmt.Sprintf("by %s: %t", e.By, *e.Approved))
	}
	return nil
}

// answer is the answer of the tenant to a request.
type answer func(q *content.ToolApprovalRequest) *content.ToolApprovalResponse

func always(q *content.ToolApprovalRequest) *content.ToolApprovalResponse {
	return q.CreateAlwaysApprove(content.AlwaysArguments, "")
}

func no(q *content.ToolApprovalRequest) *content.ToolApprovalResponse {
	return q.CreateRejection("not this month")
}

// month asks for a payment. The run ends with a request unless a rule approves it.
func (h *household) month(ctx context.Context, title, wish string, tenant answer) error {
	h.page.Title("%s", title)
	message := content.UserText(wish)
	h.page.Line("tenant", wish)
	for message != nil {
		resp, err := h.agent.Run(ctx, h.thread, message)
		if err != nil {
			return err
		}
		for _, m := range resp.Messages {
			h.page.Message(m, func(content.Content) {})
		}
		if message, err = h.answers(resp.UserInputRequests(), tenant); err != nil {
			return err
		}
	}

	return nil
}

// answers returns nil if there are no questions.
func (h *household) answers(requests []content.InputRequest, tenant answer) (*content.Message, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	reply := content.NewMessage(content.User)
	for _, request := range requests {
		q, ok := request.(*content.ToolApprovalRequest)
		if !ok {
			return nil, fmt.Errorf("a %T can't be answered here", request)
		}
		h.page.Line("asks", stage.CallText(q.Call)+"?")
		reply.Contents = append(reply.Contents, tenant(q))
	}

	return reply, nil
}

// revoke shows the rules of the thread and revokes them.
func (h *household) revoke() error {
	h.page.Title("the rules")
	rules, err := layer.Rules(h.thread)
	if err != nil {
		return err
	}
	for _, r := range rules {
		h.page.Line(r.ID, fmt.Sprintf("%s %s, %d more times; revoked", r.Tool, r.Arguments, r.Left))
		err = errors.Join(err, layer.Revoke(h.thread, r.ID))
	}
	return err
}
