package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// TestBindingKeepsOpenRequests gives requests of each kind back as history: those that ask what is
// open stay, doctored ones go.
func TestBindingKeepsOpenRequests(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	asked := []content.Content{
		&content.TextApprovalRequest{RequestID: "q1", Text: "fine?"},
		&content.StructuredInputRequest{RequestID: "q2", Text: "seats?", Schema: schema},
		ask("q3", &content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "h1"}),
	}
	doctored := []content.Content{
		&content.TextApprovalRequest{RequestID: "q1", Text: "all of it?"},
		&content.StructuredInputRequest{RequestID: "q2", Text: "seats?", Schema: json.RawMessage(`{"type":"string"}`)},
		ask("q3", call("h1", "codeInterpreterToolCall", "")),
		&content.TextApprovalRequest{RequestID: "q2", Text: "seats?"},
		&content.StructuredInputRequest{RequestID: "q1", Text: "fine?"},
		ask("q1", call("c", "f", "")),
	}
	m := says(list(assistant(asked...)), list(assistant(text("hm"))))
	c := layer.NewBinding(m, layer.BindingConfig{})
	opt := &agent.Options{Thread: agent.NewThread("t")}
	respond(t, c, opt, user(text("go")))
	respond(t, c, opt, assistant(append(doctored, asked...)...), user(text("hm")))
	want := tell(list(assistant(asked...), user(text("hm"))))
	wantTold(t, "inner", m.last(), want)
	open, err := layer.OpenRequests(opt.Thread)
	if err != nil || len(open) != 3 {
		t.Fatalf("%d are open (%v)", len(open), err)
	}
	for i, q := range open {
		if !rounds.SameRequest(q, asked[i].(content.InputRequest)) {
			t.Errorf("on record is %s", tellOne(q))
		}
	}
}

func TestBindingCompatibleRebinds(t *testing.T) {
	mcp := &content.MCPCall{CallID: "m1", Name: "search", ServerName: "docs", Arguments: json.RawMessage(`{"q":1}`)}
	m := says(list(assistant(ask("q1", mcp), &content.TextApprovalRequest{RequestID: "q2"}, ask("q1", mcp))), done)
	c := compat.NewBinding(m, compat.BindingConfig{Log: quiet()})
	opt := &agent.Options{Thread: agent.NewThread("t")}
	respond(t, c, opt, user(text("go")))
	respond(t, c, opt, user(yes("q1", call("c1", "wipe", ""))), user(&content.TextApprovalResponse{RequestID: "q2"}))
	wantTold(t, "inner", m.last(), `user: yes[q1 m1 search({"q":1})]; user: *content.TextApprovalResponse[q2]`)
}

func TestPut(t *testing.T) {
	pay, look := ask("q1", call("c1", "pay", `{"n":1}`)), harmless("q2", call("c2", "look", ""))
	opt := &agent.Options{Thread: agent.NewThread("t"), Tools: []agent.Tool{function("look")}}
	if err := errors.Join(layer.PutOpen(opt.Thread, []content.InputRequest{pay}), layer.PutParked(opt.Thread, layer.BypassState, []content.InputRequest{look})); err != nil {
		t.Fatal(err)
	}
	m := says(done)
	respond(t, layer.NewBinding(layer.NewBypass(m, layer.BypassConfig{}), layer.BindingConfig{}), opt, user(pay.CreateApproval("")))
	wantTold(t, "inner", m.last(), `user: yes[q2 c2 look()]; user: yes[q1 c1 pay({"n":1})]`)

	blank := []content.InputRequest{&content.ToolApprovalRequest{}}
	if layer.PutOpen(opt.Thread, blank) == nil || layer.PutParked(opt.Thread, layer.BypassState, blank) == nil {
		t.Error("a request without id and call was put")
	}
	opt.Thread.State = map[string]json.RawMessage{layer.BindingState: []byte("1"), layer.BypassState: []byte("1")}
	_, errOpen := layer.OpenRequests(opt.Thread)
	_, errParked := layer.ParkedRequests(opt.Thread)
	if errOpen == nil || errParked == nil || layer.PutOpen(opt.Thread, nil) == nil || layer.PutParked(opt.Thread, layer.BypassState, nil) == nil {
		t.Error("a torn state was read")
	}
}

// TestRequestsThatCantBeRecorded ends the run: nobody could answer them.
func TestRequestsThatCantBeRecorded(t *testing.T) {
	all := layer.Predicate{Name: "all", Approve: func(context.Context, layer.Asked) bool { return true }}
	blank := []content.Content{ask("q0", call("c0", "pay", "")), ask(" ", call("c1", "look", "")), harmless("", call("c2", "look", ""))}
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, true) {
			for _, streaming := range []bool{false, true} {
				if name == "invocable" {
					continue // it records no requests
				}
				opt := &agent.Options{Thread: agent.NewThread("t"), Tools: someTools}
				if _, err := run(build(says(list(assistant(blank...)))), nil, opt, streaming); err == nil {
					t.Errorf("%s, profile %t: a request without id was recorded", name, p)
				}
			}
		}
		c := p.standing(says(list(assistant(blank...))), layer.StandingConfig{Predicates: []layer.Predicate{all}, Log: quiet()})
		if _, err := run(c, nil, &agent.Options{Thread: agent.NewThread("t")}, false); err == nil {
			t.Errorf("profile %t: a request without id was approved", p)
		}
	}
}

// TestInnerErrorsPass looks at what a failing inner client leaves behind.
func TestInnerErrorsPass(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, false) {
			for _, streaming := range []bool{false, true} {
				if _, err := run(build(says()), list(user(text("go"))), &agent.Options{Thread: agent.NewThread("t")}, streaming); !errors.Is(err, errNoTurn) {
					t.Errorf("%s: the error became %v", name, err)
				}
			}
		}
	}
}

// TestReaderLeaves stops reading at each update in turn. Nothing is sent after it, and what was
// shown can be answered.
func TestReaderLeaves(t *testing.T) {
	turn := list(assistant(text("a"), ask("q1", call("c1", "pay", "")), text("b"), ask("q2", call("c2", "peek", "")), call("c3", "look", ""), call("c4", "ui", "")))
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, false) {
			for stop := 1; stop < 8; stop++ {
				opt := &agent.Options{Thread: agent.NewThread("t"), Tools: someTools}
				n, shown := 0, false
				for u, err := range build(says(turn, done)).Stream(context.Background(), list(user(yes("q9", call("c9", "pay", "")))), opt) {
					if err != nil {
						t.Fatal(err)
					}
					r := agent.Response{Messages: list(assistant(u.Contents...))}
					for _, q := range r.UserInputRequests() {
						shown = shown || q.InputRequestID() == "q1"
					}
					if n++; n == stop {
						break
					}
				}
				if open, _ := layer.OpenRequests(opt.Thread); shown && len(open) == 0 && (name == "binding" || name == "all") {
					t.Errorf("%s, profile %t: after %d updates nothing is on record", name, p, stop)
				}
			}
		}
	}
}
