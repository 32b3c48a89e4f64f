package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

const transferArgs = `{"to":"bob","amount":5,"rate":0.5,"tags":["a"],"options":{"fast":true},"memo":null,"now":false}`

// requests returns the requests that the fixtures name.
func requests() map[string]content.InputRequest {
	return map[string]content.InputRequest{
		"call": &content.ToolApprovalRequest{RequestID: "r1",
			Call: &content.FunctionCall{CallID: "call_1", Name: "transfer", Arguments: json.RawMessage(transferArgs)}},
		"text":  &content.TextApprovalRequest{RequestID: "r2", Text: "Do you agree?"},
		"input": &content.StructuredInputRequest{RequestID: "r3", Text: "Where?", Schema: json.RawMessage(citySchema)},
		"hosted": &content.ToolApprovalRequest{RequestID: "r4",
			Call: &content.MCPCall{CallID: "call_4", Name: "search", ServerName: "docs",
				Arguments: json.RawMessage(`{"q":"x"}`)}},
		"reserved": &content.ToolApprovalRequest{RequestID: "r5",
			Call: &content.FunctionCall{CallID: "call_5", Name: "vote",
				Arguments: json.RawMessage(`{"approved":false,"reason":"theirs"}`)}},
		"unreadable": &content.ToolApprovalRequest{RequestID: "r6",
			Call: &content.FunctionCall{CallID: "call_6", Name: "f", Arguments: json.RawMessage(`{"x":`)}},
	}
}

const citySchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

type resumeCase struct {
	Name          string
	Pending       []string
	Resume        json.RawMessage
	FailCancelled bool `json:"fail_cancelled"`
	Code          Code
	Answers       []json.RawMessage
}

func (c resumeCase) open() []content.InputRequest {
	if c.Pending == nil {
		c.Pending = []string{"call"}
	}
	var out []content.InputRequest
	for _, name := range c.Pending {
		out = append(out, requests()[name])
	}
	return out
}

func resumeCases(t testing.TB) []resumeCase {
	t.Helper()
	doc := must.Get(os.ReadFile("testdata/resume.json"))(t)
	var out []resumeCase
	must.Do(t, json.Unmarshal(doc, &out))
	return out
}

func TestResume(t *testing.T) {
	for _, c := range resumeCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Resume{Pending: c.open(), FailCancelled: c.FailCancelled}.Answers(c.Resume)
			if c.Code != "" {
				wantCode(t, err, c.Code)
				if got != nil {
					t.Errorf("answers beside an error: %v", got)
				}
				return
			}

			must.Do(t, err)
			if len(got) != len(c.Answers) {
				t.Fatalf("%d answers, want %d", len(got), len(c.Answers))
			}
			for i, want := range c.Answers {
				sameJSON(t, describe(got[i]), want)
			}
		})
	}
}

func wantCode(t *testing.T, err error, code Code) {
	t.Helper()
	var refused *ResumeError
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	e := ErrorEvent(err)
	if e.Type != RunError || e.Code != string(code) || e.Message == "" {
		t.Errorf("event %+v", e)
	}
}

// describe returns an answer in the format of the fixtures.
func describe(c content.Content) obj {
	switch c := c.(type) {
	case *content.ToolApprovalResponse:
		out := obj{{"id", c.RequestID}, {"approved", c.Approved}}
		if c.Edited != nil {
			out = append(out, pair{"edited", c.Edited.Arguments})
		}
		return out.because(c.Reason)
	case *content.TextApprovalResponse:
		return obj{{"id", c.RequestID}, {"approved", c.Approved}}.because(c.Reason)
	case *content.StructuredInputResponse:
		if c.Declined {
			return obj{{"id", c.RequestID}, {"declined", true}}.because(c.Reason)
		}
		return obj{{"id", c.RequestID}, {"data", c.Data}}.because(c.Reason)
	}

	return obj{{"unknown", fmt.Sprintf("%T", c)}}
}

func (o obj) because(reason string) obj {
	if reason == "" {
		return o
	}
	return append(o, pair{"reason", reason})
}

func sameJSON(t *testing.T, got any, want json.RawMessage) {
	t.Helper()
	doc := must.Get(json.Marshal(got))(t)
	if !content.SameArguments(doc, want) {
		t.Errorf("got\n%s\nwant\n%s", doc, want)
	}
}

// TestBadTexts uses resume lists that are not JSON that all parsers read in the same way. A
// fixture can't contain them.
func TestBadTexts(t *testing.T) {
	for _, resume := range []string{
		`[`, `[{}] x`, "\xff", ` `,
		`[{"interruptId":"r1","status":"resolved","payload":{"approved":false,"approved":true}}]`,
		`[{"interruptId":"r1","interruptId":"r2","status":"resolved","payload":true}]`,
		strings.Repeat("[", 100_000),
	} {
		_, err := Answers([]content.InputRequest{requests()["call"]}, json.RawMessage(resume))
		wantCode(t, err, CodeInvalid)
	}
}

func TestUnanswerable(t *testing.T) {
	resume := json.RawMessage(`[{"interruptId":"x","status":"resolved","payload":{"approved":true}}]`)
	for name, q := range map[string]content.InputRequest{
		"no id":       &content.TextApprovalRequest{},
		"none":        nil,
		"no call":     &content.ToolApprovalRequest{RequestID: "x"},
		"of own kind": &ownRequest{id: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Answers([]content.InputRequest{q}, resume)
			wantCode(t, err, CodeInvalid)
			if _, err := InterruptOf(q); err == nil {
				t.Error("there is an interrupt for it")
			}
		})
	}
}

// TestTheRecordedCall checks that the recorded call runs: the answer's call equals the
// request's, with any data from the client, and is not the same object.
func TestTheRecordedCall(t *testing.T) {
	q := requests()["call"].(*content.ToolApprovalRequest)
	for _, payload := range []string{`{"approved":true}`, `{"approved":true,"amount":1}`, `{"approved":false}`} {
		got := must.Get(Answers([]content.InputRequest{q},
			json.RawMessage(`[{"interruptId":"r1","status":"resolved","payload":`+payload+`}]`)))(t)
		r := got[0].(*content.ToolApprovalResponse)
		if !content.SameCall(r.Call, q.Call) || r.Call == q.Call {
			t.Errorf("payload %s: the call of the answer is %+v", payload, r.Call)
		}
		if r.Edited != nil && (r.Edited.Name != "transfer" || r.Edited.CallID != "call_1") {
			t.Errorf("payload %s: an edit chose %s of %s", payload, r.Edited.Name, r.Edited.CallID)
		}
	}
}

// TestSchemasAgree checks the responseSchema of an interrupt against the reader: the schema
// must accept every payload that the reader accepts as an approval.
func TestSchemasAgree(t *testing.T) {
	for _, c := range resumeCases(t) {
		if c.Code != "" || len(c.open()) != 1 {
			continue
		}
		i := must.Get(InterruptOf(c.open()[0]))(t)
		var entries []struct{ Payload json.RawMessage }
		must.Do(t, json.Unmarshal(c.Resume, &entries))
		p := entries[0].Payload
		if len(p) == 0 || p[0] != '{' || strings.Contains(string(p), `"editedArgs": null`) {
			continue // cancelled, or a form that only the reader accepts
		}
		if err := content.CheckSchema(i.ResponseSchema, p); err != nil {
			t.Errorf("%s: the schema refuses %s: %v", c.Name, p, err)
		}
	}
}

// TestOneEntryPerRequest draws lists of ids: only a permutation of the open ones is accepted.
func TestOneEntryPerRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID).
			Draw(t, "open")
		said := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 5).Draw(t, "said")
		var open []content.InputRequest
		for _, id := range ids {
			open = append(open, &content.TextApprovalRequest{RequestID: id})
		}
		var entries []obj
		count := map[string]int{}
		for _, id := range said {
			count[id]++
			entries = append(entries, obj{{"interruptId", id}, {"status", "resolved"}, {"payload", true}})
		}
		good := len(said) == len(ids)
		for _, id := range ids {
			good = good && count[id] == 1
		}
		resume := must.Get(json.Marshal(entries))(t)
		got, err := Answers(open, resume)
		if good != (err == nil) || good && len(got) != len(ids) {
			t.Fatalf("open %v, said %v: %d answers, %v", ids, said, len(got), err)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	for _, c := range resumeCases(f) {
		f.Add([]byte(c.Resume))
	}
	f.Fuzz(func(t *testing.T, resume []byte) {
		all := requests()
		open := []content.InputRequest{all["call"], all["text"]}
		for n := 1; n <= len(open); n++ {
			got, err := Answers(open[:n], resume)
			var refused *ResumeError
			if err != nil && !errors.As(err, &refused) {
				t.Fatalf("error %v of type %T", err, err)
			}
			if err == nil && len(got) != n {
				t.Fatalf("%d answers to %d requests", len(got), n)
			}
			for _, c := range got {
				if r, ok := c.(*content.ToolApprovalResponse); ok && r.Edited != nil &&
					r.Edited.CheckArguments() != nil {
					t.Fatalf("edited to %s", r.Edited.Arguments)
				}
			}
		}
	})
}
