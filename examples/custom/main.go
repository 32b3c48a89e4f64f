// Command custom runs an agent that is no chat model: a program of steps that asks its user in the middle. It is run from its beginning
// each time; what has been done is not done again, and what has been answered is not asked again.
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
	"io"
	"os"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/template"
)

func main() {
	decline := flag.Bool("decline", false, "say no")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, !*decline); err != nil {
		say(os.Stderr, "custom", err.Error())
		os.Exit(1)
	}
}

const signature = `{"type":"object","properties":{"name":{"type":"string","minLength":2},"channel":{"enum":["stable","beta"]}},"required":["name","channel"]}`

// release publishes what has changed, once somebody agrees and signs. The steps say when they really run.
func release(out io.Writer) agent.Agent {
	return agent.NewFlow("release", agent.FlowConfig{}, func(ctx context.Context, f *agent.Flow) error {
		var changes int
		if err := f.Step(ctx, "collect", func(context.Context) (any, error) {
			say(out, "step", "collect the changes")
			return 12, nil
		}, &changes); err != nil {
			return err
		}
		f.Say(fmt.Sprintf("%d changes since v1.3.0.", changes))
		if err := f.Approve(ctx, "publish", "Publish them as v1.4.0?"); errors.Is(err, agent.ErrDeclined) {
			f.Say("Nothing is published.")
			return nil
		} else if err != nil { // agent.ErrWaiting among others
			return err
		}
		var by struct{ Name, Channel string }
		if err := f.Data(ctx, "sign", "Who signs it, for which channel?", json.RawMessage(signature), &by); err != nil {
			return err
		}
		if err := f.Step(ctx, "upload", func(context.Context) (any, error) {
			say(out, "step", "upload v1.4.0 to "+by.Channel)
			return nil, nil
		}, nil); err != nil {
			return err
		}
		f.Say(fmt.Sprintf("v1.4.0 is in %s, signed by %s.", by.Channel, by.Name))
		return nil
	})
}

// run runs the agent until it asks nothing more. Between two runs there is only the thread's JSON, which may wait in any store.
func run(ctx context.Context, out io.Writer, yes bool) error {
	stored, err := json.Marshal(agent.NewThread("release-1.4.0"))
	if err != nil {
		return fmt.Errorf("store the thread: %w", err)
	}
	message := content.UserText("Release what we have.")
	say(out, "user", message.Text())
	for message != nil {
		thread := &agent.Thread{}
		if err := json.Unmarshal(stored, thread); err != nil {
			return fmt.Errorf("load the thread: %w", err)
		}
		resp, err := release(out).Run(ctx, thread, message)
		if err != nil {
			return err
		}
		for _, m := range resp.Messages {
			if text := m.Text(); text != "" {
				say(out, "agent", text)
			}
		}
		if message, err = answers(out, resp.UserInputRequests(), yes); err != nil {
			return err
		}
		if stored, err = json.Marshal(thread); err != nil {
			return fmt.Errorf("store the thread: %w", err)
		}
	}
	return nil
}

// answers is the user. The message is nil when nothing is asked.
func answers(out io.Writer, requests []content.InputRequest, yes bool) (*content.Message, error) {
	var given []content.Content
	for _, request := range requests {
		answer, err := answerTo(out, request, yes)
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

func answerTo(out io.Writer, request content.InputRequest, yes bool) (content.InputResponse, error) {
	switch q := request.(type) {
	case *content.TextApprovalRequest:
		say(out, "asks", q.Text)
		if yes {
			say(out, "answer", "yes")
			return q.CreateApproval(""), nil
		}
		say(out, "answer", "no, not on a Friday")
		return q.CreateRejection("not on a Friday"), nil
	case *content.StructuredInputRequest:
		const data = `{"name":"Ann Lee","channel":"beta"}`
		say(out, "asks", q.Text)
		say(out, "answer", data)
		return q.CreateResponse(json.RawMessage(data))
	}
	return nil, fmt.Errorf("a %T can't be answered here", request)
}

// say prints one line; what could act on the terminal is spelled out.
func say(out io.Writer, who, text string) {
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-9s %s", who, template.Escape(text)), " "))
}
