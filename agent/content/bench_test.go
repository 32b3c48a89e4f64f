package content_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// megabyte is an array of messages as a long thread has them:
// questions, calls with results, approvals and answers.
func megabyte(tb testing.TB) []byte {
	tb.Helper()
	var ms []*content.Message
	for size, i := 0, 0; size < 1<<20; i++ {
		turn := conversation(i)
		out := must.Get(content.DotNet().AppendMessages(nil, turn))(tb)
		ms, size = append(ms, turn...), size+len(out)
	}

	return must.Get(content.DotNet().AppendMessages(nil, ms))(tb)
}

func conversation(i int) []*content.Message {
	id := fmt.Sprintf("call_%06d", i)
	call := &content.FunctionCall{
		CallID: id,
		Name:   "transfer",
		Arguments: raw(
			fmt.Sprintf(`{"amount":%d.50,"to":"account %d","memo":"Rent for \"August\"","tags":["a","b"]}`, i, i),
		),
	}
	request := &content.ToolApprovalRequest{RequestID: "ficc_" + id, Call: call,
		Note: content.Note{Message: "Transfer money to an account?"}}
	response := request.CreateApproval("it is in the budget")
	response.Common = content.Common{}
	return []*content.Message{
		{
			ID:   fmt.Sprint("u", i),
			Role: content.User,
			Contents: []content.Content{
				&content.Text{
					Text: "Please pay the rent for August, and then tell me what is left on the account.\nThanks!",
				},
			},
		},
		{
			ID:         fmt.Sprint("a", i),
			Role:       content.Assistant,
			AuthorName: "bank",
			CreatedAt:  "2026-08-05T12:00:00Z",
			Contents: []content.Content{
				&content.Text{
					Text: "I'll transfer the rent. This needs your approval, since it is over the limit that you " +
						"have set.",
				},
				request,
			},
		},
		{Role: content.User, Contents: []content.Content{response}},
		{Role: content.Assistant, Contents: []content.Content{call}},
		{
			Role: content.ToolRole,
			Contents: []content.Content{
				&content.FunctionResult{CallID: id,
					Result: raw(fmt.Sprintf(`{"balance":%d.25,"currency":"EUR","status":"done"}`, i))},
			},
		},
		{
			Role: content.Assistant,
			Contents: []content.Content{
				&content.Text{
					Text: "The rent is paid. What is left is enough for groceries, says my calculation; see the " +
						"table below for the month.",
				},
			},
		},
	}
}

// plainMessage and plainContent are what a program would decode into by
// itself: one struct for all kinds of contents, raw where the value may
// be anything.
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
	ToolCall             *plainCall      `json:"toolCall"`
	RequiresConfirmation bool            `json:"requiresConfirmation"`
	Approved             bool            `json:"approved"`
	Reason               string          `json:"reason"`
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
}

type plainCall struct {
	Type              string          `json:"$type"`
	CallID            string          `json:"callId"`
	Name              string          `json:"name"`
	Arguments         json.RawMessage `json:"arguments"`
	InformationalOnly bool            `json:"informationalOnly"`
}

func BenchmarkDecode(b *testing.B) {
	src := megabyte(b)
	b.Run("content", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			must.Get(content.DotNet().DecodeMessages(src))(b)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			var out []plainMessage
			must.Do(b, json.Unmarshal(src, &out))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	src := megabyte(b)
	ms := must.Get(content.DotNet().DecodeMessages(src))(b)
	dst := make([]byte, 0, len(src))
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(content.DotNet().AppendMessages(dst, ms))(b)
	}
}

// Both sides of the comparison read the same.
func TestBenchReadsTheSame(t *testing.T) {
	src := megabyte(t)
	ms := must.Get(content.DotNet().DecodeMessages(src))(t)
	var plain []plainMessage
	must.Do(t, json.Unmarshal(src, &plain))
	for i, m := range ms {
		for j, c := range m.Contents {
			p := plain[i].Contents[j]
			if text, ok := c.(*content.Text); ok && text.Text != p.Text ||
				len(plain[i].Contents) != len(m.Contents) {
				t.Fatalf("message %d: %#v, %#v", i, c, p)
			}
			if r, ok := c.(*content.ToolApprovalRequest); ok &&
				(r.RequestID != p.RequestID || string(r.Call.Args()) != string(p.ToolCall.Arguments)) {
				t.Fatalf("message %d: %#v, %#v", i, c, p)
			}
		}
	}

	if len(plain) != len(ms) || len(ms) < 2000 {
		t.Errorf("%d and %d messages", len(plain), len(ms))
	}
}
