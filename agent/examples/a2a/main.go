// Command a2a lets an agent ask another agent over A2A. The other agent needs an approval
// before it acts. So its task waits for input, and its question goes to the user here.
//
//	go run ./examples/a2a
//	go run ./examples/a2a -decline
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("a2a", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("a2a", flag.ContinueOnError)
	decline := flags.Bool("decline", false, "let the user say no")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server := httptest.NewServer(newPartner())
	defer server.Close()
	page := stage.NewPage(out, "user", "planner")
	return errors.Join(talk(ctx, planner(server.URL), page, !*decline), page.Err)
}

// planner returns the local agent. Its only tool asks the partner.
func planner(url string) agent.Agent {
	model := stage.Script(
		content.NewMessage(content.Assistant, &content.FunctionCall{
			CallID:    "call_1",
			Name:      "ask_partner",
			Arguments: json.RawMessage(`{"text":"We need a van on Friday."}`),
		}),
		content.AssistantText("That is what the partner says."),
	)
	return agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}), agent.ChatAgentConfig{
		Name:  "planner",
		Tools: []agent.Tool{&askPartner{url: url}},
	})
}

// talk runs the planner until it has no more questions.
func talk(ctx context.Context, a agent.Agent, page *stage.Page, yes bool) error {
	thread := agent.NewThread("move")
	message := content.UserText("Get us a van for Friday.")
	page.Line("user", message.Text())
	for {
		resp, err := a.Run(ctx, thread, message)
		if err != nil {
			return err
		}
		for _, m := range resp.Messages {
			page.Message(m, func(content.Content) {})
		}
		requests := resp.UserInputRequests()
		if len(requests) == 0 {
			return nil
		}
		if message, err = answer(page, requests, yes); err != nil {
			return err
		}
	}
}

// answer plays the user. A question from a peer is a text to agree to. It is never the call of
// a local tool.
func answer(page *stage.Page, requests []content.InputRequest, yes bool) (*content.Message, error) {
	message := content.NewMessage(content.User)
	for _, request := range requests {
		q, ok := request.(*content.TextApprovalRequest)
		if !ok {
			return nil, fmt.Errorf("a %T can't be answered here", request)
		}
		page.Line("asks", q.Text)
		given, said := q.CreateApproval(""), "yes"
		if !yes {
			given, said = q.CreateRejection("too dear"), "no: too dear"
		}
		page.Line("answer", said)
		message.Contents = append(message.Contents, given)
	}

	return message, nil
}
