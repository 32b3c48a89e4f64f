package compat_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"pgregory.net/rapid"
)

// TestStreamedRunsAgree checks that streamed and whole runs have the same end, give the model
// the same messages and run the same functions. They may differ only in the ids of messages
// that are made during the run, and in the messages that these ids join (rules 40 and 41).
func TestStreamedRunsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCase(rt)
		whole, streamed := newLoopRun(t, c), newLoopRun(t, c)
		whole.start(false)
		streamed.start(true)
		if fmt.Sprint(whole.err) != fmt.Sprint(streamed.err) {
			rt.Fatalf("whole: %v, streamed: %v", whole.err, streamed.err)
		}
		if a, b := sentTo(whole), sentTo(streamed); !reflect.DeepEqual(a, b) {
			rt.Fatalf("the model was given\n%s\nand\n%s", a, b)
		}
		if !reflect.DeepEqual(whole.tools.runs, streamed.tools.runs) {
			rt.Fatalf("ran %v and %v", whole.tools.runs, streamed.tools.runs)
		}
		if a, b := jsonText(listedMessages(whole.input)), jsonText(listedMessages(streamed.input)); a != b {
			rt.Fatalf("the input is now\n%s\nand\n%s", a, b)
		}
		if whole.err == nil {
			a, b := joined(whole.response), joined(streamed.response)
			if a != b {
				rt.Fatalf("answered\n%s\nand\n%s", a, b)
			}
		}
	})
}

func jsonText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// sentTo returns the messages that the model was given, without generated ids.
func sentTo(r *loopRun) []string {
	var out []string
	for _, input := range r.model.inputs {
		for _, m := range input {
			m := m.(map[string]any)
			if !given(m["message_id"].(string)) {
				m["message_id"] = ""
			}
		}

		out = append(out, jsonText(input))
	}

	return out
}

// given reports whether an id comes from the case. Those have a dash, generated ids don't.
func given(id string) bool { return strings.Contains(id, "-") }

// joined returns a response as if it had been streamed, with one made-up id for tool messages
// and one for others.
func joined(r *agent.Response) string {
	var updates []*agent.Update
	for _, m := range r.Messages {
		id := m.ID
		if !given(id) {
			id = "made:" + string(m.Role)
		}
		for _, u := range piecesOf([]*content.Message{m}) {
			u.MessageID = id
			updates = append(updates, u)
		}
	}

	return jsonText(listedMessages(agent.Join(updates).Messages)) + r.ConversationID
}

// drawCase generates a case of tools, approvals in the input and turns of a model. The results
// of a service come before the calls that they belong to: in the other order streamed runs see
// them too late (rule 39).
func drawCase(t *rapid.T) *conformanceCase {
	c := &conformanceCase{DistinctCallInstances: rapid.Bool().Draw(t, "distinct")}
	for _, name := range []string{"a", "b", "c", "d"} {
		c.Tools = append(c.Tools, drawTool(t, name))
	}
	one := rapid.IntRange(1, 3).Draw(t, "limits")
	c.Options = caseOptions{
		Concurrent:             rapid.Bool().Draw(t, "concurrent"),
		MaxTurns:               &one,
		MaxErrors:              &one,
		DetailedErrors:         rapid.Bool().Draw(t, "detailed"),
		ConversationID:         rapid.SampledFrom([]string{"", "", "conv"}).Draw(t, "conversation"),
		ResponseConversationID: rapid.SampledFrom([]string{"", "", "conv"}).Draw(t, "kept"),
	}
	c.InputMessages = drawInput(t)
	for n := range 5 {
		c.ModelTurns = append(c.ModelTurns, drawTurn(t, n))
	}
	return c
}

func drawTool(t *rapid.T, name string) *caseTool {
	ct := &caseTool{Name: name, Returns: json.RawMessage(`"done"`)}
	ct.Kind = rapid.SampledFrom([]string{"function", "function", "function", "function", "declaration_only"}).
		Draw(t, "kind")
	ct.Source = rapid.SampledFrom([]string{"request", "additional"}).Draw(t, "source")
	if ct.Kind == "function" {
		ct.RequiresApproval = rapid.Bool().Draw(t, "marked")
		ct.Terminates = rapid.IntRange(0, 5).Draw(t, "stops") == 0
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			ct.Throws = json.RawMessage(`"broken"`)
		}
	}

	return ct
}

func drawCall(t *rapid.T, id string) caseContent {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "unknown"}).Draw(t, "name")
	return caseContent{contentFields: contentFields{Type: "function_call", CallID: id,
		Name: name, InformationalOnly: rapid.IntRange(0, 6).Draw(t, "inert") == 0}}
}

func textContent(s string) caseContent {
	return caseContent{contentFields: contentFields{Type: "text", Text: s}}
}

// drawInput generates requests and answers, sometimes one too many or too few.
func drawInput(t *rapid.T) []caseMessage {
	ms := []caseMessage{{Role: "user", Contents: []caseContent{textContent("hello")}}}
	for n := range rapid.IntRange(0, 3).Draw(t, "request messages") {
		q := caseMessage{Role: "assistant",
			MessageID: rapid.SampledFrom([]string{"", fmt.Sprint("q-", n)}).Draw(t, "id")}
		a := caseMessage{Role: "user"}
		for k := range rapid.IntRange(1, 3).Draw(t, "requests") {
			call := drawCall(t, fmt.Sprint("i", n, k))
			fields := contentFields{RequestID: "ficc_" + call.CallID, ToolCall: &call,
				Approved: rapid.Bool().Draw(t, "approved"), Reason: "because"}
			fields.Type = "approval_request"
			if rapid.IntRange(0, 9).Draw(t, "lone answer") > 0 {
				q.Contents = append(q.Contents, caseContent{contentFields: fields})
			}
			fields.Type = "approval_response"
			for range rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 1, 1, 2, 0}).Draw(t, "answers") {
				a.Contents = append(a.Contents, caseContent{contentFields: fields})
			}
		}

		if rapid.Bool().Draw(t, "words") {
			a.Contents = append(a.Contents, textContent("please"))
		}
		ms = append(ms, q, a)
	}

	return ms
}

// drawTurn generates the messages of one turn.
func drawTurn(t *rapid.T, n int) []caseMessage {
	var served []caseContent
	m := caseMessage{Role: "assistant", MessageID: fmt.Sprint("t-", n), Contents: []caseContent{textContent("well")}}
	for k := range rapid.IntRange(0, 3).Draw(t, "calls") {
		call := drawCall(t, fmt.Sprint("t", n, k))
		if rapid.IntRange(0, 4).Draw(t, "served") == 0 {
			served = append(served, caseContent{contentFields: contentFields{Type: "function_result",
				CallID: call.CallID, Result: json.RawMessage(`"theirs"`)}})
		}

		m.Contents = append(m.Contents, call)
	}

	if served != nil {
		return []caseMessage{{Role: "tool", MessageID: fmt.Sprint("s-", n), Contents: served}, m}
	}

	return []caseMessage{m}
}
