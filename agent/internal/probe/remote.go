package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
)

// callRemote sends a text to a remote agent, answers what it asks, and
// prints each question and how the task ended, a line of JSON each.
func callRemote(url, text string, out io.Writer) error {
	client, err := a2a.NewClient(a2a.ClientConfig{
		URL:      url,
		Token:    callerToken,
		Loopback: true,
	})
	if err != nil {
		return err
	}
	remote := a2a.NewRemote(client, a2a.RemoteConfig{Name: "ask_peer", Wait: 5 * time.Second})
	args, err := json.Marshal(map[string]string{"input": text})
	if err != nil {
		return err
	}
	call := &content.FunctionCall{CallID: "call_1", Name: "ask_peer", Arguments: args}
	lines := json.NewEncoder(out)
	result, err := remote.Invoke(context.Background(), call)
	for range 5 {
		var s *agent.Suspend
		if !errors.As(err, &s) {
			break
		}
		if s.Err != nil {
			return s.Err
		}
		answers, failed := answerAll(s.Requests, lines)
		if failed != nil {
			return failed
		}
		result, err = remote.Resume(context.Background(), call, s.State, answers)
	}

	if err != nil {
		return lines.Encode(map[string]string{"error": err.Error()})
	}
	return lines.Encode(result)
}

// answerAll approves what is to be approved, and says "Lisbon" to the
// rest.
func answerAll(requests []content.InputRequest, lines *json.Encoder) ([]content.InputResponse, error) {
	var out []content.InputResponse
	for _, q := range requests {
		switch q := q.(type) {
		case *content.TextApprovalRequest:
			out = append(out, q.CreateApproval(""))
			if err := lines.Encode(map[string]string{"asks": q.Text}); err != nil {
				return nil, err
			}
		case *content.StructuredInputRequest:
			answer, err := q.CreateResponse(json.RawMessage(`"Lisbon"`))
			if err != nil {
				return nil, err
			}
			out = append(out, answer)
			if err := lines.Encode(map[string]string{"asks": q.Text}); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a %T can't be answered here", q)
		}
	}

	return out, nil
}
