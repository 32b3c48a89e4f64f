// Command agui serves an agent that asks over AG-UI, and plays a client of that protocol. The
// first run ends with an interrupt. The second run resumes it with an answer.
//
//	go run ./examples/agui                        # server and client in one process
//	go run ./examples/agui -listen 127.0.0.1:8080 # only the server, for your own client
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/assent-dev/assent/agent/agui"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stage.NewPage(os.Stderr, "", "").Line("agui", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("agui", flag.ContinueOnError)
	listen := flags.String("listen", "", "serve at this address until interrupted, and play no client")
	payload := flags.String(
		"answer",
		`{"approved":true,"amount":850}`,
		"the payload with which the client resumes",
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *listen != "" {
		return http.ListenAndServe(*listen, newEndpoint(bank()))
	}

	server := httptest.NewServer(newEndpoint(bank()))
	defer server.Close()
	c := client{url: server.URL, page: stage.NewPage(out, "user", "agent")}
	return errors.Join(c.talk(ctx, *payload), c.page.Err)
}

// client is an AG-UI client that prints the events it receives.
type client struct {
	url  string
	page *stage.Page
}

// talk asks for a transfer and answers the interrupt that ends the run.
func (c client) talk(ctx context.Context, payload string) error {
	c.page.Title("run 1")
	c.page.Line("user", "Pay the rent.")
	first := input{
		ThreadID: "t1",
		RunID:    "1",
		Messages: []message{{ID: "m1", Role: "user", Content: "Pay the rent."}},
	}
	interrupts, err := c.run(ctx, first)
	if err != nil {
		return err
	}

	c.page.Title("run 2")
	c.page.Line("answer", payload)
	answers := []map[string]any{}
	for _, i := range interrupts {
		answers = append(answers, map[string]any{
			"interruptId": i.ID,
			"status":      "resolved",
			"payload":     json.RawMessage(payload),
		})
	}

	resume, err := json.Marshal(answers)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	_, err = c.run(ctx, input{
		ThreadID: "t1",
		RunID:    "2",
		Messages: []message{},
		Resume:   resume,
	})
	return err
}

// run posts an input and reads the events of the run. It returns the questions to the user.
func (c client) run(ctx context.Context, in input) ([]agui.Interrupt, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("write the input: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.events(resp.Body)
}

func (c client) events(body io.Reader) ([]agui.Interrupt, error) {
	var asked []agui.Interrupt
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event agui.Event
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		c.show(event)
		if event.Outcome != nil {
			asked = event.Outcome.Interrupts
		}
	}

	return asked, lines.Err()
}

func (c client) show(e agui.Event) {
	detail := e.Delta + e.ToolCallName + e.Message
	if e.Content != nil {
		detail = *e.Content
	}
	if e.Outcome != nil {
		detail = e.Outcome.Type
	}
	c.page.Line("event", strings.TrimSpace(string(e.Type)+" "+detail))
	if e.Outcome == nil {
		return
	}
	for _, i := range e.Outcome.Interrupts {
		c.page.Line("asks", i.Message)
	}
}
