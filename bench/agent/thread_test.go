package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// plainThread, plainMessage and plainContent are structs that a program could write to decode a
// thread. All kinds of contents share one struct, and fields of any type are raw JSON.
type plainThread struct {
	Version  int                        `json:"version"`
	ID       string                     `json:"id"`
	Revision int64                      `json:"revision"`
	Messages []plainMessage             `json:"messages"`
	Pending  []plainBatch               `json:"pending"`
	State    map[string]json.RawMessage `json:"state"`
}

type plainBatch struct {
	Calls []struct {
		Call  plainContent `json:"call"`
		Stage string       `json:"stage"`
		Asks  []struct {
			Request plainContent `json:"request"`
			Since   time.Time    `json:"since"`
		} `json:"asks"`
	} `json:"calls"`
}

type plainMessage struct {
	Role       string         `json:"role"`
	AuthorName string         `json:"authorName"`
	CreatedAt  string         `json:"createdAt"`
	MessageID  string         `json:"messageId"`
	Contents   []plainContent `json:"contents"`
}

type plainContent struct {
	Type                 string          `json:"$type"`
	Text                 string          `json:"text"`
	CallID               string          `json:"callId"`
	Name                 string          `json:"name"`
	Arguments            json.RawMessage `json:"arguments"`
	InformationalOnly    bool            `json:"informationalOnly"`
	Result               json.RawMessage `json:"result"`
	RequestID            string          `json:"requestId"`
	ToolCall             *plainContent   `json:"toolCall"`
	RequiresConfirmation bool            `json:"requiresConfirmation"`
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
}

// once is a model that makes one call.
type once struct{ scripted }

func (once) Respond(context.Context, []*content.Message, *agent.Options) (*agent.Response, error) {
	call := &content.FunctionCall{CallID: "call_1", Name: "forecast", Arguments: arguments}
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, call)}}, nil
}

// longThread returns a thread of 1 MB with one open request.
func longThread(t testing.TB) []byte {
	t.Helper()
	thread := agent.NewThread("a")
	for i := 0; i < 1<<20/700; i++ { // an exchange takes a bit more
		id := fmt.Sprintf("call_%06d", i)
		call := &content.FunctionCall{CallID: id, Name: "forecast", Arguments: arguments}
		result := &content.FunctionResult{
			CallID: id,
			Result: json.RawMessage(`{"city":"Augsburg","days":3,"high":23.5,"text":"dry"}`),
		}
		answer := content.AssistantText(
			"It will be dry, says the forecast; there may be \"some\" clouds in the evening.\nShall I book a table " +
				"outside?",
		)
		answer.ID = fmt.Sprint("m", i)
		thread.Messages = append(
			thread.Messages,
			content.UserText("What will the weather in Augsburg be like in the next three days?"),
			content.NewMessage(content.Assistant, call),
			content.NewMessage(content.ToolRole, result),
			answer,
		)
	}

	marked := agent.RequireApproval(tools()[1].(agent.Function))
	asking := agent.NewChatAgent(
		agent.NewFunctionInvoking(&once{}, agent.LoopConfig{}),
		agent.ChatAgentConfig{Tools: []agent.Tool{marked}},
	)
	if _, err := asking.Run(t.Context(), thread, content.UserText("And then?")); err != nil ||
		len(thread.Pending()) != 1 {
		t.Fatal(err, thread.Pending())
	}
	raw, err := json.Marshal(thread)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// task is one way to read the stored text.
type task struct {
	name string
	read func() error
}

// readers returns our readers and the plain readers of the same text.
func readers(t testing.TB) (size int, all []task) {
	t.Helper()
	thread := longThread(t)
	var split struct{ Messages json.RawMessage }
	if err := json.Unmarshal(thread, &split); err != nil {
		t.Fatal(err)
	}
	return len(thread), []task{
		{"Thread", func() error { return new(agent.Thread).UnmarshalJSON(thread) }},
		{"Thread by json.Unmarshal", func() error { return json.Unmarshal(thread, new(agent.Thread)) }},
		{"plain thread", func() error { return json.Unmarshal(thread, new(plainThread)) }},
		{"DecodeMessages", func() error {
			_, err := content.DotNet().DecodeMessages(split.Messages)
			return err
		}},
		{"plain messages", func() error {
			return json.Unmarshal(split.Messages, new([]plainMessage))
		}},
	}
}

// TestPlainReadsAll checks that the plain types omit nothing.
func TestPlainReadsAll(t *testing.T) {
	raw := longThread(t)
	var ours agent.Thread
	var plain plainThread
	if err := json.Unmarshal(raw, &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	last := plain.Messages[len(plain.Messages)-2].Contents[0].Text
	if len(raw) < 1<<20 || len(ours.Messages) != len(plain.Messages) || len(plain.Pending) != 1 ||
		last != ours.Messages[len(ours.Messages)-2].Text() {
		t.Fatalf(
			"%d bytes, %d and %d messages, %d batches, %q",
			len(raw),
			len(ours.Messages),
			len(plain.Messages),
			len(plain.Pending),
			last,
		)
	}
}

// BenchmarkRead measures the reading of a stored thread of 1 MB.
func BenchmarkRead(b *testing.B) {
	size, all := readers(b)
	for _, r := range all {
		b.Run(r.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
