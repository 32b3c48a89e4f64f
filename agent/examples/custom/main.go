// Command custom runs an agent that isn't a chat model: a program with steps that asks its user
// in the middle. It runs from its beginning each time, but completed steps don't run again, and
// answered questions aren't asked again.
//
//	go run ./examples/custom
//	go run ./examples/custom -decline
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

func main() {
	decline := flag.Bool("decline", false, "say no")
	flag.Parse()
	page := stage.NewPage(os.Stdout, "user", "agent")
	if err := errors.Join(run(context.Background(), page, !*decline), page.Err); err != nil {
		stage.NewPage(os.Stderr, "", "").Line("custom", err.Error())
		os.Exit(1)
	}
}

const signature = `{"type":"object","properties":{"name":{"type":"string","minLength":2},` +
	`"channel":{"enum":["stable","beta"]}},"required":["name","channel"]}`

// release publishes the latest changes after someone has agreed and signed. Each step prints a
// line when it really runs.
func release(page *stage.Page) agent.Agent {
	return agent.NewFlow("release", agent.FlowConfig{}, func(ctx context.Context, f *agent.Flow) error {
		var changes int
		if err := f.Step(ctx, "collect", func(context.Context) (any, error) {
			page.Line("step", "collect the changes")
			return 12, nil
		}, &changes); err != nil {
			return err
		}

		f.Say(fmt.Sprintf("%d changes since v1.3.0.", changes))
		if err := f.Approve(ctx, "publish", "Publish them as v1.4.0?"); errors.Is(err, agent.ErrDeclined) {
			f.Say("Nothing is published.")
			return nil
		} else if err != nil { // includes agent.ErrWaiting
			return err
		}

		var by struct{ Name, Channel string }
		if err := f.Data(ctx, "sign", "Who signs it, for which channel?", json.RawMessage(signature), &by); err != nil {
			return err
		}
		if err := f.Step(ctx, "upload", func(context.Context) (any, error) {
			page.Line("step", "upload v1.4.0 to "+by.Channel)
			return nil, nil
		}, nil); err != nil {
			return err
		}

		f.Say(fmt.Sprintf("v1.4.0 is in %s, signed by %s.", by.Channel, by.Name))
		return nil
	})
}

// run runs the agent until it has no more questions. Between two runs, only the JSON of the
// thread exists, and it could be in any store.
func run(ctx context.Context, page *stage.Page, yes bool) error {
	stored, err := json.Marshal(agent.NewThread("release-1.4.0"))
	if err != nil {
		return fmt.Errorf("store the thread: %w", err)
	}
	message := content.UserText("Release what we have.")
	page.Line("user", message.Text())
	for message != nil {
		thread := &agent.Thread{}
		if err := json.Unmarshal(stored, thread); err != nil {
			return fmt.Errorf("load the thread: %w", err)
		}
		resp, err := release(page).Run(ctx, thread, message)
		if err != nil {
			return err
		}
		for _, m := range resp.Messages {
			if text := m.Text(); text != "" {
				page.Line("agent", text)
			}
		}
		if message, err = answers(page, resp.UserInputRequests(), yes); err != nil {
			return err
		}
		if stored, err = json.Marshal(thread); err != nil {
			return fmt.Errorf("store the thread: %w", err)
		}
	}

	return nil
}

// answers plays the user. The message is nil if there are no questions.
func answers(page *stage.Page, requests []content.InputRequest, yes bool) (*content.Message, error) {
	var given []content.Content
	for _, request := range requests {
		answer, err := answerTo(page, request, yes)
		if err != nil {
			return nil, err
		}
		given = append(given, answer)
	}

	if given == nil {
		return nil, nil
	}
	return content.NewMessage(content.User, given...), nil
}

func answerTo(page *stage.Page, request content.InputRequest, yes bool) (content.InputResponse, error) {
	switch q := request.(type) {
	case *content.TextApprovalRequest:
		page.Line("asks", q.Text)
		if yes {
			page.Line("answer", "yes")
			return q.CreateApproval(""), nil
		}
		page.Line("answer", "no, not on a Friday")
		return q.CreateRejection("not on a Friday"), nil
	case *content.StructuredInputRequest:
		const data = `{"name":"Ann Lee","channel":"beta"}`
		page.Line("asks", q.Text)
		page.Line("answer", data)
		return q.CreateResponse(json.RawMessage(data))
	}

	return nil, fmt.Errorf("a %T can't be answered here", request)
}
