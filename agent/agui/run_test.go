package agui

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// script is a model with scripted messages.
type script struct{ turns []*content.Message }

func (s *script) Respond(context.Context, []*content.Message, *agent.Options) (*agent.Response, error) {
	m := s.turns[0]
	s.turns = s.turns[1:]
	return &agent.Response{Messages: []*content.Message{m}}, nil
}

func (s *script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := s.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		m := resp.Messages[0]
		yield(&agent.Update{Role: m.Role, MessageID: m.ID, Contents: m.Contents}, nil)
	}
}

// transferAgent has a tool that needs approval, and records its arguments.
func transferAgent(ran *[]string) agent.Agent {
	run := func(_ context.Context, args json.RawMessage) (any, error) {
		*ran = append(*ran, string(args))
		return "sent", nil
	}
	call := &content.FunctionCall{CallID: "call_1", Name: "transfer",
		Arguments: json.RawMessage(`{"to":"bob","amount":5}`)}
	model := &script{
		[]*content.Message{
			content.NewMessage(content.Assistant, text("One moment."), call),
			content.AssistantText("Done."),
		},
	}
	return agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}), agent.ChatAgentConfig{
		Name:  "bank",
		Tools: []agent.Tool{agent.RequireApproval(agent.NewFunction("transfer", "", nil, run))},
	})
}

// all reads the events of a run that must not fail, and returns their names and the last one.
func all(t *testing.T, events iter.Seq2[Event, error]) (names string, last Event) {
	t.Helper()
	var types []string
	for e, err := range events {
		must.Do(t, err)
		types, last = append(types, string(e.Type)), e
	}

	return strings.Join(types, " "), last
}

const askingRun = "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START " +
	"TOOL_CALL_ARGS TOOL_CALL_END RUN_FINISHED"

// TestInterruptAndResume is a complete conversation over the wire: a request, refused resumes,
// an edit, and the end.
func TestInterruptAndResume(t *testing.T) {
	var ran []string
	bank, thread := transferAgent(&ran), agent.NewThread("t1")
	names, last := all(t,
		Run{ThreadID: "t1", RunID: "1"}.Events(bank.Stream(t.Context(), thread, content.UserText("Pay bob."))))
	if names != askingRun || last.Outcome.Type != "interrupt" {
		t.Fatalf("events %s, outcome %+v", names, last.Outcome)
	}
	var open []content.InputRequest
	for _, p := range thread.Pending() {
		open = append(open, p.Request)
	}
	id := last.Outcome.Interrupts[0].ID
	resume := func(payload string) json.RawMessage {
		return json.RawMessage(`[{"interruptId":"` + id + `","status":"resolved","payload":` + payload + `}]`)
	}
	for _, bad := range []string{
		`{"approved":"true"}`,
		`{"approved":true,"to":5}`,
		`{"approved":true,"function_name":"x"}`,
	} {
		if _, err := Answers(open, resume(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}

	answers := must.Get(Answers(open, resume(`{"approved":true,"amount":4}`)))(t)
	run := Run{ThreadID: "t1", RunID: "2", Shown: []string{last.Outcome.Interrupts[0].ToolCallID}}
	names, last = all(t, run.Events(bank.Stream(t.Context(), thread, content.NewMessage(content.User, answers...))))
	const resumed = "RUN_STARTED TOOL_CALL_RESULT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"
	if names != resumed || last.Outcome.Type != "success" {
		t.Errorf("events %s, outcome %+v", names, last.Outcome)
	}
	if len(ran) != 1 || !content.SameArguments([]byte(ran[0]), []byte(`{"to":"bob","amount":4}`)) {
		t.Errorf("ran with %v", ran)
	}
	if _, err := Answers(nil, resume(`{"approved":true}`)); err == nil {
		t.Error("the answer was taken a second time")
	}
}

// TestDotNetConversation is the same conversation in the format of the .NET sample.
func TestDotNetConversation(t *testing.T) {
	var ran []string
	bank, thread := transferAgent(&ran), agent.NewThread("t1")
	run := Run{ThreadID: "t1", RunID: "1", DotNet: true}
	names, last := all(t, run.Events(bank.Stream(t.Context(), thread, content.UserText("Pay bob."))))
	if names != askingRun || last.Outcome.Type != "success" {
		t.Fatalf("events %s, outcome %+v", names, last.Outcome)
	}
	q := thread.Pending()[0].Request
	id := q.InputRequestID()
	result := &content.FunctionResult{CallID: id,
		Result: json.RawMessage(`{"approval_id":"` + id + `","approved":false}`)}
	answer := must.Get(ApprovalResult([]content.InputRequest{q}, result))(t)
	all(t, run.Events(bank.Stream(t.Context(), thread, content.NewMessage(content.User, answer))))
	if len(ran) != 0 || len(thread.Pending()) != 0 {
		t.Errorf("ran with %v, open %v", ran, thread.Pending())
	}
}
