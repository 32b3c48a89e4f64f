package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

// fullThread returns a thread with every kind of state.
func fullThread() *Thread {
	at := time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC)
	pay := func(id string) *content.FunctionCall {
		return call(id, "pay", `{"to":"bob","n":1.50,"html":"<&>"}`)
	}
	asked := func(id string, answer content.InputResponse) *ask {
		return &ask{Request: &content.ToolApprovalRequest{RequestID: id, Call: pay(id)}, Since: at, Answer: answer}
	}
	yes := func(id string) *content.ToolApprovalResponse {
		return &content.ToolApprovalResponse{RequestID: id, Approved: true, Call: pay(id), Reason: "fine"}
	}
	edited := yes("c")
	edited.Edited = call("c", "pay", `{"to":"bob","n":1}`)
	text := &content.TextApprovalRequest{RequestID: "e1", Text: "sure?",
		Note: content.Note{Message: "m", Agent: "a/b", Where: "w", Expires: at}}
	data := &content.StructuredInputRequest{RequestID: "e2", Text: "who?", Schema: json.RawMessage(`{"type":"object"}`)}
	mcp := mcpRequest("s")
	require := &policy.Require{Stages: []policy.Stage{{Group: "ops", People: 2}}, Within: time.Hour,
		OnTimeout: policy.TimeoutDeny, Grants: policy.Grants{Bounds: []policy.Bound{}}}
	t := NewThread("the thread")
	t.Revision, t.ConversationID = 7, "conv"
	t.Messages = []*content.Message{
		content.UserText("hi"),
		content.NewMessage(content.Assistant, call("0", "look", "")),
		content.NewMessage(content.ToolRole,
			&content.FunctionResult{CallID: "0", Result: json.RawMessage(`{"a":1.0}`)}),
	}
	t.State = map[string]json.RawMessage{"layer": json.RawMessage(`{"x":1}`)}
	t.closed = []closedRequest{{ID: "old", How: howAnswered}, {ID: "older", How: howExpired, Service: true}}
	t.heldBack = []*content.Message{content.UserText("by the way")}
	t.batches = []*batch{
		{
			MessageID:      "m1",
			AuthorName:     "bot",
			ConversationID: "conv",
			Items: []*item{
				{Call: pay("a"), Stage: open, Asks: []*ask{asked("a", nil)},
					Ground: ground{Binding: "b", Definition: "d", Rules: []string{"r"}, Require: require}},
				{Call: pay("b"), Stage: approved, Asks: []*ask{asked("b", yes("b"))}, By: "ann", Key: "key"},
				{Call: call("c", "pay", `{"to":"bob","n":1}`), Asked: pay("c"), Stage: running,
					Asks: []*ask{asked("c", edited)}},
				{Call: pay("d"), Stage: external},
				{
					Call:  pay("e"),
					Stage: open,
					State: json.RawMessage(`{"step":1}`),
					Poll:  true,
					Asks: []*ask{
						{Request: text, Inner: "x", Since: at, Expires: at.Add(time.Hour),
							Answer: text.CreateApproval("")},
						{Request: data, Inner: "y", Since: at}},
				},
				{Call: pay("f"), Stage: done, Result: json.RawMessage(`"no"`), Rejected: true},
			},
		},
		{Items: []*item{
			{Call: mcp.Call, Service: true, Stage: open, Asks: []*ask{{Request: mcp, Since: at}}},
			{
				Call:    mcpRequest("s2").Call,
				Service: true,
				Stage:   done,
				Asks:    []*ask{{Request: mcpRequest("s2"), Since: at, Answer: mcpRequest("s2").CreateRejection("no")}},
			},
			{Call: pay("h"), Stage: open, Asks: []*ask{{Request: asked("h", nil).Request, Since: at, Ref: "ref"}}},
			{
				Call:  pay("i"),
				Stage: open,
				State: json.RawMessage(`null`),
				Asks: []*ask{
					{
						Request: data2("i1"),
						Inner:   "d",
						Since:   at,
						Answer:  &content.StructuredInputResponse{RequestID: "i1", Data: json.RawMessage(`{"n":1.0}`)},
					},
					{Request: data2("i2"), Inner: "e", Since: at,
						Answer: &content.StructuredInputResponse{RequestID: "i2", Declined: true}},
					{Request: data2("i3"), Inner: "f", Since: at}},
			},
		}},
	}
	return t
}

func data2(id string) *content.StructuredInputRequest {
	return &content.StructuredInputRequest{RequestID: id, Schema: json.RawMessage(`{"type":"object"}`)}
}

func TestThreadRoundTrip(t *testing.T) {
	want := fullThread()
	raw := sure(want.MarshalJSON())
	got := sure(loaded(raw, "other"))
	again := sure(got.MarshalJSON())
	if !bytes.Equal(raw, again) {
		t.Errorf("written, read and written:\n%s\n%s", raw, again)
	}
	if got.ID != want.ID || got.Revision != 7 || !reflect.DeepEqual(got.State, want.State) ||
		!reflect.DeepEqual(got.closed, want.closed) {
		t.Errorf("%+v", got)
	}
	for i, b := range want.batches {
		for j, it := range b.Items {
			if other := got.batches[i].Items[j]; !reflect.DeepEqual(it, other) {
				t.Errorf("batch %d, call %d:\n%s\n%s", i, j, sure(json.Marshal(it)), sure(json.Marshal(other)))
			}
		}
	}

	if len(got.Pending()) != len(want.Pending()) || len(want.Pending()) != 5 {
		t.Error(got.Pending())
	}
}

// TestThreadOfVersion1 reads a thread that earlier releases stored. It must never fail.
func TestThreadOfVersion1(t *testing.T) {
	raw := sure(os.ReadFile("testdata/threads/version-1.json"))
	th := sure(loaded(raw, ""))
	var compact bytes.Buffer
	must.Do(t, json.Compact(&compact, raw))
	if got := sure(th.MarshalJSON()); !bytes.Equal(got, compact.Bytes()) {
		t.Errorf("read and written:\n%s\nwant\n%s", got, compact.Bytes())
	}
	if len(th.Pending()) != 5 || th.Revision != 7 || len(th.Messages) != 3 {
		t.Errorf("%+v", th)
	}
}

func TestThreadGoesOnAfterIt(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		th := sure(loaded(sure(os.ReadFile("testdata/threads/version-1.json")), ""))
		th.ConversationID = ""
		resp := must.Get(t.try(
			chat(talk(t), LoopConfig{Holder: &heldStub{later: hold.Held{State: hold.Pending}}}, nil,
				RequireApproval(c.tool("pay"))),
			th,
		))(t)
		if len(resp.UserInputRequests()) < 4 || th.batches[0].Items[2].Stage != done {
			t.Error(tell(resp.Messages))
		}
	})
}

func TestThreadsThatAreRefused(t *testing.T) {
	good := string(sure(json.Marshal(fullThread())))
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in the thread", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	one := func(row string) string {
		return `{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[` + row + `]}]}`
	}
	const x = `{"$type":"functionCall","callId":"1","name":"x"}`
	fn := `"call":` + x
	mcp := `"call":{"$type":"mcpServerToolCall","callId":"1","name":"x","serverName":"s"}`
	asked := `{"request":{"$type":"textApprovalRequest","requestId":"r","text":"?"},"since":"2026-08-01T00:00:00Z"}`
	answered := `{"request":{"$type":"textApprovalRequest","requestId":"r","text":"?"},` +
		`"since":"2026-08-01T00:00:00Z","answer":{"$type":"textApprovalResponse","requestId":"r","approved":true}}`
	rejected := `{"request":{"$type":"toolApprovalRequest","requestId":"r","toolCall":` + x +
		`},"since":"2026-08-01T00:00:00Z",` +
		`"answer":{"$type":"toolApprovalResponse","requestId":"r","approved":false,"toolCall":` + x + `}}`
	for name, raw := range map[string]string{
		"nothing":                        ``,
		"null version":                   `{"version":null}`,
		"no version":                     `{}`,
		"version 0":                      change(`"version":1`, `"version":0`),
		"version -1":                     change(`"version":1`, `"version":-1`),
		"version as text":                change(`"version":1`, `"version":"1"`),
		"an unknown member":              change(`"version":1`, `"version":1,"shared":true`),
		"an unknown member of a batch":   change(`"message_id":`, `"priority":1,"message_id":`),
		"an unknown member of a call":    change(`"stage":"open"`, `"stage":"open","until":1`),
		"an unknown member of a request": change(`"since":`, `"shown":true,"since":`),
		"an unknown stage":               change(`"stage":"open"`, `"stage":"waiting"`),
		"no stage":                       one(`{` + fn + `}`),
		"stage in capitals":              one(`{` + fn + `,"stage":"Done","result":1}`),
		"no call":                        one(`{"stage":"external"}`),
		"a call that is a text":          one(`{"call":{"$type":"text","text":"x"},"stage":"external"}`),
		"an edit that is a text":         one(`{` + fn + `,"asked":{"$type":"text","text":"x"},"stage":"external"}`),
		"a hosted call that runs here":   one(`{` + mcp + `,"stage":"external"}`),
		"open, nothing asked":            one(`{` + fn + `,"stage":"open"}`),
		"open, all answered":             one(`{` + fn + `,"stage":"open","asks":[` + answered + `]}`),
		"approved, nothing asked":        one(`{` + fn + `,"stage":"approved"}`),
		"approved, not answered":         one(`{` + fn + `,"stage":"approved","asks":[` + asked + `]}`),
		"a service's, running":           one(`{` + mcp + `,"service":true,"stage":"running","asks":[` + answered + `]}`),
		"a service's, without request":   one(`{` + mcp + `,"service":true,"stage":"done"}`),
		"a service's, done, no answer":   one(`{` + mcp + `,"service":true,"stage":"done","asks":[` + asked + `]}`),
		"no batch":                       `{"version":1,"id":"t","revision":0,"messages":[],"pending":[null]}`,
		"no item":                        one(`null`),
		"a null request":                 one(`{` + fn + `,"stage":"open","asks":[null]}`),
		"a request that is a text": one(`{` + fn +
			`,"stage":"open","asks":[{"request":{"$type":"text","text":"x"},"since":"2026-08-01T00:00:00Z"}]}`),
		"an answer that is a text": one(`{` + fn +
			`,"stage":"open","asks":[{"request":{"$type":"textApprovalRequest","requestId":"r","text":"?"},` +
			`"since":"2026-08-01T00:00:00Z","answer":{"$type":"text","text":"x"}}]}`),
		"approved by a rejection": one(`{` + fn + `,"stage":"approved","asks":[` + rejected + `]}`),
		"done without a result":   one(`{` + fn + `,"stage":"done"}`),
		"a batch without calls":   one(``),
		"two requests of one id":  one(`{` + fn + `,"stage":"open","asks":[` + asked + `,` + asked + `]}`),
		"a time that is none":     change(`"since":"2026-08-01`, `"since":"2026-13-01`),
		"messages that are none":  change(`"messages":[`, `"messages":[1,`),
		"cut off":                 good[:len(good)-1],
		"more behind":             good + `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			th := NewThread("before")
			if err := th.UnmarshalJSON([]byte(raw)); err == nil {
				t.Error("read without an error")
			}
			if th.ID != "before" || len(th.batches) > 0 {
				t.Error("changed in spite of the error")
			}
		})
	}
}

func TestThreadOfALaterVersion(t *testing.T) {
	var v *VersionError
	err := json.Unmarshal([]byte(`{"version":2,"something":"new"}`), NewThread("x"))
	if !errors.As(err, &v) || v.Version != 2 || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
}

// TestThreadsThatCantBeWritten checks that storing reports an error for contents that can't be
// stored, so that loading doesn't fail later.
func TestThreadsThatCantBeWritten(t *testing.T) {
	th := NewThread("t")
	th.Messages = []*content.Message{content.NewMessage(content.User, &content.ToolApprovalRequest{})}
	if _, err := json.Marshal(th); err == nil {
		t.Error("a request without id or call was written")
	}
}

func TestOldRequestsAreForgotten(t *testing.T) {
	th := NewThread("t")
	for range maxClosed + 10 {
		th.close(&item{}, &ask{Request: mcpRequest("r")}, howAnswered)
	}
	if len(th.closed) != maxClosed {
		t.Error(len(th.closed))
	}
}

func TestStateOfAThread(t *testing.T) {
	th := &Thread{}
	must.Do(t, th.Put("a", map[string]int{"n": 1}))
	var got map[string]int
	if ok, err := th.Get("a", &got); !ok || err != nil || got["n"] != 1 {
		t.Error(ok, err, got)
	}
	var wrong []int
	if ok, err := th.Get("a", &wrong); !ok || err == nil {
		t.Error("read as something else")
	}
	th.Drop("a")
	if ok, err := th.Get("a", &got); ok || err != nil {
		t.Error(ok, err)
	}
	if err := th.Put("a", func() {}); err == nil {
		t.Error("kept a function")
	}
}

func TestSaveSaysWhatItDid(t *testing.T) {
	th := NewThread("t")
	if err := th.Save(t.Context()); err != nil {
		t.Error("without a store there is nothing to do:", err)
	}
	th.Keep(&keeper{failAt: 1, err: ErrConflict})
	if err := th.Save(context.Background()); !errors.Is(err, ErrConflict) ||
		!strings.HasPrefix(err.Error(), "save the thread") {
		t.Error(err)
	}
}

func FuzzThread(f *testing.F) {
	f.Add(sure(json.Marshal(fullThread())))
	f.Add(
		[]byte(
			`{"version":1,"id":"t","revision":0,"messages":[],"pending":[{"calls":[{"call":{"$type":"functionCall",` +
				`"callId":"1","name":"x"},"stage":"external"}]}]}`,
		),
	)
	f.Add([]byte(`{"version":1,"state":{"flow/f":{"input":[],"steps":{"a":{"ended":true,"result":1}}}}}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		th := NewThread("t")
		if th.UnmarshalJSON(data) != nil {
			return
		}
		once, err := json.Marshal(th)
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		again, err := loaded(once, "t")
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, once)
		}
		if twice := sure(json.Marshal(again)); !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
		th.Pending()
		th.waiting()
		readInput(th, false, []*content.Message{content.UserText("x")}, 0)
		c := counted{}
		mute := NewChatAgent(NewFunctionInvoking(silent{}, LoopConfig{}),
			ChatAgentConfig{Name: "a", Tools: []Tool{c.tool("x"), RequireApproval(c.tool("y"))}})
		mute.Run(t.Context(), again, content.UserText("x"))
		NewFlow("f", FlowConfig{}, func(ctx context.Context, f *Flow) error {
			return f.Approve(ctx, "1", "?")
		}).Run(t.Context(), th, content.UserText("x"))
	})
}

// silent is a model that returns an empty response.
type silent struct{}

func (silent) Respond(context.Context, []*content.Message, *Options) (*Response, error) {
	return &Response{}, nil
}

func (silent) Stream(context.Context, []*content.Message, *Options) streamOf {
	return func(func(*Update, error) bool) {}
}

// TestThreadContract reads the thread of docs/contracts/thread.md and looks for members that
// the page does not explain.
func TestThreadContract(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/contracts/thread.md"))(t)
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	thread := &Thread{}
	must.Do(t, json.Unmarshal(example[1], thread))
	if len(thread.Pending()) != 1 || thread.ended("ficc_call_0.1c22b0a4d96e8f13") != howAnswered {
		t.Errorf("pending %v", thread.Pending())
	}
	golden := must.Get(os.ReadFile("testdata/threads/version-1.json"))(t)
	var all map[string]any
	must.Do(t, json.Unmarshal(golden, &all))
	members := map[string]bool{}
	for name := range all {
		members[name] = true
	}
	for _, b := range all["pending"].([]any) {
		for _, c := range b.(map[string]any)["calls"].([]any) {
			for name := range c.(map[string]any) {
				members[name] = true
			}
		}
	}

	for name := range members {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not explain %q", name)
		}
	}
}
