package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// scripted is a model that says what it was told to, and holds what it is given to what providers
// demand.
type scripted struct {
	t     testing.TB
	turns [][]content.Content
	seen  [][]*content.Message
	keeps string // conversation id, when the model keeps the history
	fail  error  // instead of the next turn
	n     int
}

func script(t testing.TB, turns ...[]content.Content) *scripted { return &scripted{t: t, turns: turns} }

func says(contents ...content.Content) []content.Content { return contents }

func text(s string) content.Content { return &content.Text{Text: s} }

func call(id, name, args string) *content.FunctionCall {
	c := &content.FunctionCall{CallID: id, Name: name}
	if args != "" {
		c.Arguments = json.RawMessage(args)
	}
	return c
}

func (s *scripted) next(messages []*content.Message) (*Response, error) {
	s.seen = append(s.seen, messages)
	if s.keeps == "" && !inOrder(messages) {
		return nil, fmt.Errorf("the provider refuses the history: %s", tell(messages))
	}
	if err := s.fail; err != nil {
		s.fail = nil
		return nil, err
	}
	if s.n >= len(s.turns) {
		return nil, fmt.Errorf("the script has no turn %d", s.n)
	}
	s.n++
	m := content.NewMessage(content.Assistant, s.turns[s.n-1]...)
	m.ID = fmt.Sprintf("m%d", s.n)
	return &Response{Messages: []*content.Message{m}, ConversationID: s.keeps}, nil
}

func (s *scripted) Respond(_ context.Context, messages []*content.Message, _ *Options) (*Response, error) {
	return s.next(messages)
}

func (s *scripted) Stream(_ context.Context, messages []*content.Message, _ *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		resp, err := s.next(messages)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, m := range resp.Messages {
			for _, c := range m.Contents {
				if !yield(&Update{Role: m.Role, MessageID: m.ID, Contents: []content.Content{c}, ConversationID: s.keeps}, nil) {
					return
				}
			}
		}
	}
}

// tell writes messages in one short line each, for comparing.
func tell(messages []*content.Message) string {
	out := ""
	for _, m := range messages {
		out += string(m.Role) + ":"
		for _, c := range m.Contents {
			out += " " + tellContent(c)
		}
		out += "\n"
	}
	return out
}

func tellContent(c content.Content) string {
	switch c := c.(type) {
	case *content.Text:
		return fmt.Sprintf("%q", c.Text)
	case *content.FunctionCall:
		return fmt.Sprintf("%s=%s(%s)", c.CallID, c.Name, c.Arguments)
	case *content.FunctionResult:
		return fmt.Sprintf("%s→%s", c.CallID, c.Result)
	case *content.ToolApprovalRequest:
		return fmt.Sprintf("%s?[%s]", c.RequestID, tellContent(c.Call))
	case *content.ToolApprovalResponse:
		return fmt.Sprintf("%s!%v", c.RequestID, c.Approved)
	case *content.MCPCall:
		return fmt.Sprintf("%s=%s.%s(%s)", c.CallID, c.ServerName, c.Name, c.Arguments)
	case *content.TextApprovalRequest:
		return fmt.Sprintf("%s?%q", c.RequestID, c.Text)
	case *content.StructuredInputRequest:
		return fmt.Sprintf("%s?%s", c.RequestID, c.Schema)
	}
	return fmt.Sprintf("%T", c)
}

// counted is a function that counts its runs by their arguments.
type counted struct{ runs map[string]int }

func (c *counted) tool(name string) Function {
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	return NewFunction(name, "does "+name, nil, func(_ context.Context, args json.RawMessage) (any, error) {
		c.runs[name+string(args)]++
		return "did " + name, nil
	})
}

// plainIDs are request ids without a random tail, so that tests can name them.
func plainIDs(callID string) string { return "ficc_" + callID }

func answers(contents ...content.Content) *content.Message {
	return content.NewMessage(content.User, contents...)
}

func mustRun(t *testing.T, a Agent, thread *Thread, messages ...*content.Message) *Response {
	t.Helper()
	resp, err := a.Run(t.Context(), thread, messages...)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func approvalOf(t *testing.T, resp *Response, i int) *content.ToolApprovalRequest {
	t.Helper()
	asked := resp.UserInputRequests()
	if i >= len(asked) {
		t.Fatalf("%d requests, want at least %d:\n%s", len(asked), i+1, tell(resp.Messages))
	}
	q, ok := asked[i].(*content.ToolApprovalRequest)
	if !ok {
		t.Fatalf("request %d is a %T", i, asked[i])
	}
	return q
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", what, got, want)
	}
}

// reload sends a thread through its stored form, as another process would find it.
func reload(t *testing.T, thread *Thread) *Thread {
	t.Helper()
	raw, err := thread.Encode()
	if err != nil {
		t.Fatal(err)
	}
	out := &Thread{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return out
}
