package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
)

// ownRequest is a request of an unknown kind.
type ownRequest struct {
	content.Common
	id string
}

func (r *ownRequest) InputRequestID() string { return r.id }

func stream(err error, updates ...*agent.Update) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		for _, u := range updates {
			if !yield(u, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func says(id string, contents ...content.Content) *agent.Update {
	return &agent.Update{Role: content.Assistant, MessageID: id, Contents: contents}
}

func text(s string) content.Content { return &content.Text{Text: s} }

// checkGolden compares events with a file that has one event per line.
func checkGolden(t *testing.T, file string, events iter.Seq2[Event, error]) {
	t.Helper()
	var got bytes.Buffer
	for e, err := range events {
		must.Do(t, err)
		line := must.Get(jsonmsg.Marshal(e))(t)
		got.Write(append(line, '\n'))
	}

	if os.Getenv("UPDATE_GOLDEN") != "" {
		must.Do(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	want := must.Get(os.ReadFile(file))(t)
	if got.String() != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got.String(), want)
	}
}

// asking returns a run with a text, a call that runs immediately and one request of each kind.
func asking() iter.Seq2[*agent.Update, error] {
	all := requests()
	call := all["call"].(*content.ToolApprovalRequest)
	call.Note = content.Note{Message: "Send <5> to bob?",
		Expires: time.Date(2026, 8, 1, 12, 0, 0, 0, time.FixedZone("", 3600)), Where: "https://inbox/1"}
	sibling := &content.ToolApprovalRequest{RequestID: "r7", NoConfirmation: true,
		Call: &content.FunctionCall{CallID: "call_7", Name: "now"}}
	return stream(
		nil,
		says("m1", text("Let me ")),
		says("m1", text("see.")),
		says("m1", &content.FunctionCall{CallID: "call_0", Name: "look", Arguments: json.RawMessage(`{"at":"x"}`)}),
		&agent.Update{
			Role:     content.ToolRole,
			Contents: []content.Content{&content.FunctionResult{CallID: "call_0", Result: json.RawMessage(`"found"`)}},
		},
		says("m1", text("More.")),
		says("", text(" And more.")),
		says("m2", call, all["text"], all["input"], all["hosted"], all["unreadable"], sibling),
	)
}

func TestEvents(t *testing.T) {
	checkGolden(t, "testdata/asking.jsonl", Run{ThreadID: "t1", RunID: "run-1"}.Events(asking()))
	checkGolden(t, "testdata/asking-dotnet.jsonl", Run{ThreadID: "t1", RunID: "run-1", DotNet: true}.Events(asking()))
}

// TestResumedRun checks that a call that was shown before is not shown again, but its result
// is.
func TestResumedRun(t *testing.T) {
	run := Run{ThreadID: "t1", RunID: "run-2", Shown: []string{"call_1"}}
	checkGolden(t, "testdata/resumed.jsonl", run.Events(stream(
		nil,
		says("m3", &content.FunctionCall{CallID: "call_1", Name: "transfer", Arguments: json.RawMessage(`{}`)},
			&content.FunctionCall{CallID: "call_2", Name: "f"}),
		&agent.Update{
			Role: content.ToolRole,
			Contents: []content.Content{
				&content.FunctionResult{CallID: "call_1", Result: json.RawMessage(`{"ok":true}`)},
				&content.FunctionResult{CallID: "call_2"},
				&content.MCPResult{CallID: "call_3", Outputs: []content.Content{text("a"), text("b")}},
			},
		},
		nil,
		says("m3", &content.FunctionCall{CallID: "call_2", Name: "f"}), // a second time, as some services do
		&agent.Update{Role: content.User, Contents: []content.Content{text("not the assistant's")}},
		says("", text(""), &content.Reasoning{Text: "hm"}, &content.FunctionCall{Name: "no id"},
			&content.FunctionResult{}),
		says("m4", text("Done.")),
	)))
	if len(run.Shown) != 1 {
		t.Errorf("the caller's list became %v", run.Shown)
	}
}

func TestFailures(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7: password=hunter2")
	for name, c := range map[string]struct {
		stream iter.Seq2[*agent.Update, error]
		code   string
	}{
		"of the model": {stream(secret, says("m", text("I"))), CodeFailed},
		"of a resume list": {stream(refuse(CodeNotFound, "x", "no such request is open"), says("m", text("I"))),
			string(CodeNotFound)},
		"request with no id": {stream(nil, says("m", text("I"), &content.TextApprovalRequest{})), CodeFailed},
		"two of one id":      {stream(nil, says("m", text("I"), requests()["text"], requests()["text"])), CodeFailed},
		"a broken schema": {
			stream(
				nil,
				says("m", text("I"), &content.StructuredInputRequest{RequestID: "x", Schema: json.RawMessage(`{`)}),
			),
			CodeFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var types []EventType
			var last Event
			var problem error
			for e, err := range (Run{ThreadID: "t", RunID: "r"}).Events(c.stream) {
				types = append(types, e.Type)
				last = e
				problem = err
			}
			want := []EventType{RunStarted, TextMessageStart, TextMessageContent, TextMessageEnd, RunError}
			if !slices.Equal(types, want) || problem == nil {
				t.Errorf("events %v, error %v", types, problem)
			}
			if last.Code != c.code || strings.Contains(last.Message, "hunter2") {
				t.Errorf("the client is told %+v", last)
			}
		})
	}
}

// TestReaderStops stops after each event, and checks that no further event is sent and no
// further piece of the stream is read.
func TestReaderStops(t *testing.T) {
	for stop := 1; stop <= 8; stop++ {
		pulled := 0
		pieces := func(yield func(*agent.Update, error) bool) {
			for _, u := range []*agent.Update{says("m", text("a")), says("n", text("b"), text("c"))} {
				pulled++
				if !yield(u, nil) {
					return
				}
			}

			pulled++
			yield(nil, errors.New("end"))
		}
		seen := 0
		for range (Run{RunID: "r"}).Events(pieces) {
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Fatalf("stop %d: %d events", stop, seen)
		}
		want := map[int]int{1: 0, 2: 1, 3: 1}[stop]
		if stop > 3 {
			want = 2
		}
		if stop > 7 {
			want = 3
		}
		if pulled != want {
			t.Errorf("stop %d: %d pieces of the stream were read, want %d", stop, pulled, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	run := Run{ThreadID: "t", RunID: "r"}
	done, err := run.Outcome(&agent.Response{Messages: []*content.Message{content.AssistantText("hi")}})
	if err != nil || done.Outcome.Type != "success" || done.Outcome.Interrupts != nil {
		t.Errorf("event %+v, %v", done, err)
	}
	asks := &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, requests()["text"])}}
	asked, err := run.Outcome(asks)
	if err != nil || asked.Outcome.Type != "interrupt" || asked.Outcome.Interrupts[0].ID != "r2" {
		t.Errorf("event %+v, %v", asked, err)
	}
	nameless := &content.ToolApprovalRequest{RequestID: "x", Call: &content.HostedCall{},
		Note: content.Note{Agent: "helper"}}
	i, err := InterruptOf(nameless)
	if err != nil || i.Reason != "confirmation" || i.Message != "Approve running this tool?" ||
		!strings.Contains(string(i.Metadata), "helper") {
		t.Errorf("interrupt %+v, %v", i, err)
	}
}

func TestRequestApproval(t *testing.T) {
	all := requests()
	call := must.Get(RequestApproval(all["call"].(*content.ToolApprovalRequest)))(t)
	if call.CallID != "r1" || call.Name != "request_approval" {
		t.Errorf("call %+v", call)
	}
	sameJSON(
		t,
		call.Arguments,
		json.RawMessage(
			`{"request":{"approval_id":"r1","function_name":"transfer","function_arguments":`+transferArgs+
				`,"message":"Approve execution of 'transfer'?"}}`,
		),
	)
	for _, name := range []string{"hosted", "unreadable"} {
		if _, err := RequestApproval(all[name].(*content.ToolApprovalRequest)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := RequestApproval(&content.ToolApprovalRequest{Call: &content.FunctionCall{}}); err == nil {
		t.Error("without an id: no error")
	}
}

type resultCase struct {
	Name     string
	CallID   string `json:"call_id"`
	Result   json.RawMessage
	Approved bool
	Code     Code
}

func resultCases(t testing.TB) []resultCase {
	t.Helper()
	doc := must.Get(os.ReadFile("testdata/request_approval.json"))(t)
	var out []resultCase
	must.Do(t, json.Unmarshal(doc, &out))
	return out
}

func TestApprovalResult(t *testing.T) {
	all := requests()
	open := []content.InputRequest{all["text"], all["call"]}
	for _, c := range resultCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			got, err := ApprovalResult(open, &content.FunctionResult{CallID: c.CallID, Result: c.Result})
			if c.Code != "" {
				wantCode(t, err, c.Code)
				return
			}
			must.Do(t, err)
			if got.RequestID != "r1" || got.Approved != c.Approved ||
				!content.SameCall(got.Call, all["call"].(*content.ToolApprovalRequest).Call) {
				t.Errorf("answer %+v", got)
			}
		})
	}
}

func FuzzApprovalResult(f *testing.F) {
	for _, c := range resultCases(f) {
		f.Add([]byte(c.Result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		got, err := ApprovalResult([]content.InputRequest{requests()["call"]},
			&content.FunctionResult{CallID: "r1", Result: result})
		var refused *ResumeError
		if err != nil && !errors.As(err, &refused) || err == nil && got.RequestID != "r1" {
			t.Fatalf("answer %+v, error %v", got, err)
		}
	})
}
