// Command soup asks for the price of the special on a menu. Both tools of the menu need
// approval. The model calls them in one turn, and each call gets its own answer.
//
//	go run ./examples/soup                          # a scripted model, a scripted guest
//	go run ./examples/soup -ask                     # you answer
//	go run ./examples/soup -ask -model openai:NAME  # or anthropic:NAME, with a key in the environment
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/model"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Getenv)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("soup", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer, env func(string) string) error {
	flags := flag.NewFlagSet("soup", flag.ContinueOnError)
	ask := flags.Bool("ask", false, "ask at the terminal instead of answering by the script")
	name := flags.String("model", "", "openai:NAME or anthropic:NAME; left out, a script plays the model")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: expected flags only", flags.Arg(0))
	}
	chosen, err := model.New(*name, env, script{})
	if err != nil {
		return err
	}
	p := page{stage.NewPage(out, "guest", "waiter")}
	answer := scripted
	if *ask {
		answer = atTerminal(in, p)
	}
	return errors.Join(talk(ctx, waiter(chosen), answer, p), p.Err)
}

// waiter returns the agent: a model, the loop around it, and the menu as its tools.
func waiter(model agent.ChatClient) agent.Agent {
	return agent.NewChatAgent(
		agent.NewFunctionInvoking(model, agent.LoopConfig{}),
		agent.ChatAgentConfig{
			Name: "waiter",
			Instructions: "You answer guests' questions about the menu, briefly. Look up the special and its price " +
				"in one turn.",
			Tools: menu(),
		},
	)
}

// talk asks the question and runs the agent until it has no more questions. A run doesn't wait
// for answers. It ends with requests, so only the thread exists between two runs.
func talk(ctx context.Context, a agent.Agent, answer answerer, p page) error {
	thread := agent.NewThread("table-4")
	message := content.UserText("What is the special soup today, and what does it cost?")
	asked := 0
	for n := 1; ; n++ {
		p.Title("run %d", n)
		p.message(message)
		resp, err := a.Run(ctx, thread, message)
		if err != nil {
			return err
		}
		for _, m := range resp.Messages {
			p.message(m)
		}
		requests := resp.UserInputRequests()
		if len(requests) == 0 {
			p.Title("the end: %d runs, %d requests, %d still open", n, asked, len(thread.Pending()))
			return nil
		}
		asked += len(requests)
		if message, err = answers(requests, answer); err != nil {
			return err
		}
	}
}

// answers makes one message from the answers to all requests. Some answers may be sent in a
// later message. The calls wait until then.
func answers(requests []content.InputRequest, answer answerer) (*content.Message, error) {
	message := content.NewMessage(content.User)
	for _, request := range requests {
		q, ok := request.(*content.ToolApprovalRequest)
		if !ok {
			return nil, fmt.Errorf("a %T can't be answered here", request)
		}
		yes, reason, err := answer(q)
		if err != nil {
			return nil, err
		}
		given := q.CreateRejection(reason)
		if yes {
			given = q.CreateApproval(reason)
		}
		message.Contents = append(message.Contents, given)
	}

	return message, nil
}
