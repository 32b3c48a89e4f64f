package a2a

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
	"pgregory.net/rapid"
)

// requests returns the requests that the fixtures name.
func requests() map[string]content.InputRequest {
	return map[string]content.InputRequest{
		"call": &content.ToolApprovalRequest{
			RequestID: "r1",
			Note:      content.Note{Message: "Send 5 to bob?"},
			Call: &content.FunctionCall{CallID: "call_1", Name: "transfer",
				Arguments: json.RawMessage(`{"to":"bob","amount":5}`)},
		},
		"text": &content.TextApprovalRequest{RequestID: "r2", Text: "Do you agree?"},
		"input": &content.StructuredInputRequest{
			RequestID: "r3",
			Text:      "Where?",
			Schema:    json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
		"hosted": &content.ToolApprovalRequest{RequestID: "r4",
			Call: &content.MCPCall{CallID: "call_4", Name: "search", ServerName: "docs",
				Arguments: json.RawMessage(`{"q":"x"}`)}},
		"word": &content.StructuredInputRequest{RequestID: "r5", Text: "Where?",
			Schema: json.RawMessage(`{"type":"string"}`)},
	}
}

func asked(names ...string) Asked {
	a := Asked{TaskID: "task-1", ContextID: "ctx-1"}
	for _, name := range names {
		if q := requests()[name]; q != nil {
			a.Requests = append(a.Requests, q)
		}
	}
	return a
}

func readFixture(t testing.TB, file string, into any) {
	t.Helper()
	doc := must.Get(os.ReadFile(file))(t)
	must.Do(t, json.Unmarshal(doc, into))
}

func sameJSON(t *testing.T, got any, want json.RawMessage) {
	t.Helper()
	doc := must.Get(json.Marshal(got))(t)
	if !content.SameArguments(doc, want) {
		t.Errorf("got\n%s\nwant\n%s", doc, want)
	}
}

func wantCode(t *testing.T, err error, code Code) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Error() == "" {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

// answer is a response in the format of the fixtures.
type answer struct {
	ID       string          `json:"id"`
	Approved *bool           `json:"approved,omitempty"`
	Edited   json.RawMessage `json:"edited,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Declined bool            `json:"declined,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

func describe(c content.Content) answer {
	switch c := c.(type) {
	case *content.ToolApprovalResponse:
		out := answer{ID: c.RequestID, Approved: &c.Approved, Reason: c.Reason}
		if c.Edited != nil {
			out.Edited = c.Edited.Arguments
		}
		return out
	case *content.TextApprovalResponse:
		return answer{ID: c.RequestID, Approved: &c.Approved, Reason: c.Reason}
	case *content.StructuredInputResponse:
		return answer{ID: c.RequestID, Data: c.Data, Declined: c.Declined, Reason: c.Reason}
	}

	return answer{}
}

func (a answer) response() content.InputResponse {
	if a.Approved != nil {
		return &content.TextApprovalResponse{RequestID: a.ID, Approved: *a.Approved, Reason: a.Reason}
	}

	return &content.StructuredInputResponse{RequestID: a.ID, Data: a.Data, Declined: a.Declined, Reason: a.Reason}
}

func TestStatus(t *testing.T) {
	status := must.Get(asked("call", "text", "input", "hosted").Status("m1"))(t)
	want := must.Get(os.ReadFile("testdata/status.json"))(t)
	sameJSON(t, status, want)
}

func TestErrorsSayWhy(t *testing.T) {
	_, err := DecodeTask([]byte("{"))
	var cause *value.Error
	if !errors.As(err, &cause) || !strings.Contains(err.Error(), cause.Detail) {
		t.Errorf("error %v hides its cause", err)
	}
	_, err = asked("input").Answers(&Message{
		Role:   RoleUser,
		TaskID: "task-1",
		Parts: []Part{{MediaType: ResponseMediaType,
			Data: json.RawMessage(`{"$type":"structuredInputResponse","requestId":"r3","structuredData":{}}`)}},
	})
	var bad *content.BadError
	if !errors.As(err, &bad) || bad.Code != content.BadData || !strings.Contains(err.Error(), `"r3"`) {
		t.Errorf("error %v", err)
	}
}

func TestStatusRefuses(t *testing.T) {
	twice := asked("text", "text")
	nobody := asked("text")
	nobody.TaskID = ""
	for name, a := range map[string]Asked{
		"nothing":      asked(),
		"no task":      nobody,
		"one id twice": twice,
		"no id":        {TaskID: "t", Requests: []content.InputRequest{&content.TextApprovalRequest{Text: "x"}}},
		"nil":          {TaskID: "t", Requests: []content.InputRequest{nil}},
		"no call":      {TaskID: "t", Requests: []content.InputRequest{&content.ToolApprovalRequest{RequestID: "x"}}},
		"own kind":     {TaskID: "t", Requests: []content.InputRequest{&ownRequest{}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Status("m1")
			wantCode(t, err, BadRequest)
		})
	}

	if _, err := asked("text").Status(""); err == nil {
		t.Error("a message without an id was made")
	}
	_, err := twice.Answers(&Message{})
	wantCode(t, err, BadRequest)
	_, err = nobody.Answers(&Message{MessageID: "m", Role: RoleUser, Parts: []Part{textPart("x")}})
	wantCode(t, err, WrongTask)
	_, err = asked("text").Answers(nil)
	wantCode(t, err, MissingAnswer)
}

// ownRequest is a request of an unknown kind.
type ownRequest struct{ content.Common }

func (r *ownRequest) InputRequestID() string { return "own" }

type answerCase struct {
	Name    string
	Pending []string
	Message json.RawMessage
	Answers json.RawMessage
	Code    Code
}

func answerCases(t testing.TB) []answerCase {
	t.Helper()
	var out []answerCase
	readFixture(t, "testdata/answers.json", &out)
	return out
}

func TestAnswers(t *testing.T) {
	for _, c := range answerCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if c.Pending == nil {
				c.Pending = []string{"call"}
			}
			var got []content.Content
			m, err := DecodeMessage(c.Message)
			if err == nil {
				got, err = asked(c.Pending...).Answers(m)
			}
			if c.Code != "" {
				wantCode(t, err, c.Code)
				if got != nil {
					t.Errorf("answers beside an error: %v", got)
				}
				return
			}

			must.Do(t, err)
			var said []answer
			for _, a := range got {
				said = append(said, describe(a))
				if r, ok := a.(*content.ToolApprovalResponse); ok && !isRecorded(r) {
					t.Errorf("the call of the answer is %+v", r.Call)
				}
			}

			sameJSON(t, said, c.Answers)
		})
	}
}

// isRecorded reports whether the call in an answer has the name, id and arguments of the call
// in its request.
func isRecorded(r *content.ToolApprovalResponse) bool {
	for _, q := range requests() {
		if q, ok := q.(*content.ToolApprovalRequest); ok && q.RequestID == r.RequestID {
			return reflect.DeepEqual(q.Call, r.Call) &&
				(r.Edited == nil || r.Edited.Name == q.Call.ToolName() && r.Edited.CallID == q.Call.ID())
		}
	}

	return false
}

type questionCase struct {
	Name      string
	Task      json.RawMessage
	Questions json.RawMessage
	Code      Code
	Answers   []answer
	Reply     json.RawMessage
	ReplyCode Code `json:"reply_code"`
}

func questionCases(t testing.TB) []questionCase {
	t.Helper()
	var out []questionCase
	readFixture(t, "testdata/questions.json", &out)
	return out
}

// asking is a question in the format of the fixtures.
type asking struct {
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`
	Text   string          `json:"text"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

func describeQuestions(t *testing.T, all []content.InputRequest) []asking {
	t.Helper()
	out := []asking{}
	for _, q := range all {
		switch q := q.(type) {
		case *content.TextApprovalRequest:
			out = append(out, asking{"text", q.RequestID, q.Text, nil})
		case *content.StructuredInputRequest:
			out = append(out, asking{"input", q.RequestID, q.Text, q.Schema})
		default:
			t.Errorf("a peer made a %T", q)
		}
	}

	return out
}

func TestQuestions(t *testing.T) {
	for _, c := range questionCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			var got []content.InputRequest
			task, err := DecodeTask(c.Task)
			if err == nil {
				got, err = task.Questions()
			}
			if c.Code == "auth_required" {
				wantAuth(t, task, err)
				return
			}
			if c.Code != "" {
				wantCode(t, err, c.Code)
				return
			}
			must.Do(t, err)
			sameJSON(t, describeQuestions(t, got), c.Questions)
			if c.Answers != nil {
				checkReply(t, task, c)
			}
		})
	}
}

func wantAuth(t *testing.T, task *Task, err error) {
	t.Helper()
	var auth *AuthRequiredError
	if !errors.As(err, &auth) || auth.TaskID != "remote-1" || auth.Text != task.text() {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error(), "https://") {
		t.Errorf("the peer's words stand in the error: %v", err)
	}
	if _, err := task.Reply("m2", nil); !errors.As(err, &auth) {
		t.Errorf("reply: %v", err)
	}
}

func checkReply(t *testing.T, task *Task, c questionCase) {
	t.Helper()
	var answers []content.InputResponse
	for _, a := range c.Answers {
		answers = append(answers, a.response())
	}
	m, err := task.Reply("m2", answers)
	if c.ReplyCode != "" {
		wantCode(t, err, c.ReplyCode)
		return
	}
	must.Do(t, err)
	sameJSON(t, m, c.Reply)
	if _, err := task.Reply("", answers); err == nil {
		t.Error("a reply without an id was made")
	}
}

// TestPeerChoosesNothing uses a peer that names a tool of ours, the id of an open request of
// ours and a place to sign in (adk-js #755). None of these may become a call, an approval, an
// answer, an id or a link.
func TestPeerChoosesNothing(t *testing.T) {
	for _, c := range questionCases(t) {
		task, err := DecodeTask(c.Task)
		if err != nil {
			continue
		}
		all, err := task.Questions()
		if err != nil {
			continue
		}
		for _, q := range all {
			if _, ok := q.(*content.ToolApprovalRequest); ok {
				t.Errorf("%s: an approval of a call", c.Name)
			}
			if !strings.HasPrefix(q.InputRequestID(), "a2a_") {
				t.Errorf("%s: the peer chose the id %q", c.Name, q.InputRequestID())
			}
			if common := content.CommonOf(q); common.Properties != nil || common.Extra != nil {
				t.Errorf("%s: properties of the peer came along: %+v", c.Name, common)
			}
		}
	}
}

// TestRoundTrip asks as one agent, answers as another and expects the same answers, with only
// the wire format between them.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"call", "text", "input", "hosted", "word"}), 1,
			5, rapid.ID).
			Draw(t, "asked")
		yes := rapid.Bool().Draw(t, "yes")
		server := asked(names...)
		status := must.Get(server.Status("m1"))(t)
		wire := must.Get(json.Marshal(Task{
			ID:        server.TaskID,
			ContextID: server.ContextID,
			Status:    *status,
		}))(t)
		task := must.Get(DecodeTask(wire))(t)
		questions, err := task.Questions()
		if err != nil || len(questions) != len(names) {
			t.Fatalf("%d questions for %v, %v", len(questions), names, err)
		}
		var answers []content.InputResponse
		for _, q := range questions {
			answers = append(answers, reply(q, yes))
		}
		m := must.Get(task.Reply("m2", rapid.Permutation(answers).Draw(t, "order")))(t)
		wire = must.Get(json.Marshal(m))(t)
		back := must.Get(DecodeMessage(wire))(t)
		got := must.Get(server.Answers(back))(t)
		for i, c := range got {
			a := describe(c)
			said := a.Approved != nil && *a.Approved || a.Approved == nil && !a.Declined
			if a.ID != server.Requests[i].InputRequestID() || said != yes {
				t.Fatalf("%v: said %v, answer %d is %+v", names, yes, i, a)
			}
		}
	})
}

func reply(q content.InputRequest, yes bool) content.InputResponse {
	switch q := q.(type) {
	case *content.TextApprovalRequest:
		return &content.TextApprovalResponse{RequestID: q.RequestID, Approved: yes}
	case *content.StructuredInputRequest:
		if !yes {
			return q.CreateRejection("")
		}
		data := `{"city":"Kiel"}`
		if string(q.Schema) == plainSchema {
			data = `"Kiel"`
		}
		return &content.StructuredInputResponse{RequestID: q.RequestID, Data: json.RawMessage(data)}
	}

	return nil
}

// TestBadTexts uses documents that are not JSON that all parsers read in the same way.
func TestBadTexts(t *testing.T) {
	for _, doc := range []string{
		``, `{`, "\xff", `{"id":"a","id":"b"}`, `{"task":{}}`, strings.Repeat("[", 100_000),
		`{"messageId":"m","taskId":"task-1","taskId":"task-2","role":"ROLE_USER","parts":[]}`,
	} {
		_, err := DecodeTask([]byte(doc))
		wantCode(t, err, BadMessage)
		_, err = DecodeMessage([]byte(doc))
		wantCode(t, err, BadMessage)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, c := range answerCases(f) {
		f.Add([]byte(c.Message))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := DecodeMessage(doc)
		var got []content.Content
		if err == nil {
			got, err = asked("call", "text", "input").Answers(m)
		}
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("error %v of type %T", err, err)
		}
		for _, c := range got {
			if r, ok := c.(*content.ToolApprovalResponse); ok && !isRecorded(r) {
				t.Fatalf("the call of the answer is %+v", r.Call)
			}
		}
	})
}

func FuzzQuestions(f *testing.F) {
	for _, c := range questionCases(f) {
		f.Add([]byte(c.Task))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		task, err := DecodeTask(doc)
		if err != nil {
			return
		}
		all, err := task.Questions()
		var refused *Error
		var auth *AuthRequiredError
		if err != nil && !errors.As(err, &refused) && !errors.As(err, &auth) {
			t.Fatalf("error %v of type %T", err, err)
		}
		describeQuestions(t, all)
	})
}

func TestTellsTheServerOfAHostedCall(t *testing.T) {
	status, err := asked("hosted").Status("m1")
	if err != nil || !strings.Contains(status.Message.Text(), `Approve running search on the server "docs"?`) {
		t.Errorf("%v, %v", status, err)
	}
}

// The SDKs of A2A write numbers as doubles, so their answers show a different call. The refusal
// must say why.
func TestSaysThatNumbersCameBackRounded(t *testing.T) {
	a := Asked{
		TaskID: "task-1",
		Requests: []content.InputRequest{&content.ToolApprovalRequest{RequestID: "r",
			Call: &content.FunctionCall{CallID: "c", Name: "pay",
				Arguments: json.RawMessage(`{"id":9007199254740993,"amount":5}`)}}},
	}
	for shown, words := range map[string]string{
		`{"id":9007199254740992,"amount":5.0}`: "rounded numbers",
		`{"id":9007199254740992,"amount":6}`:   "another call",
	} {
		for _, approved := range []string{"true", "false"} {
			m := &Message{
				MessageID: "m",
				TaskID:    "task-1",
				Role:      RoleUser,
				Parts: []Part{
					{
						MediaType: ResponseMediaType,
						Data: json.RawMessage(
							`{"$type":"toolApprovalResponse","requestId":"r","approved":` + approved +
								`,"toolCall":{"callId":"c","name":"pay","arguments":` + shown + `}}`,
						),
					},
				},
			}
			_, err := a.Answers(m)
			var refused *Error
			if !errors.As(err, &refused) || refused.Code != OtherCall || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %s", shown, err, words)
			}
		}
	}
}
