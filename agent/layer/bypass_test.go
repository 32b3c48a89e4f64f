package layer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// deciding returns an outcome for calls of some tools, by name.
type deciding map[string]resolve.Outcome

var errDecide = errors.New("nobody can decide")

func (d deciding) Decide(_ context.Context, _ agent.Tool, c content.ToolCall) (hold.Verdict, error) {
	o, ok := d[c.ToolName()]
	if !ok {
		return hold.Verdict{}, errDecide
	}
	return hold.Verdict{Decision: resolve.Decision{Outcome: o}}, nil
}

func TestBypassParks(t *testing.T) {
	look, pay := call("c1", "look", ""), call("c2", "pay", "")
	free, marked := function("look"), agent.RequireApproval(function("look"))
	mcp := &content.MCPCall{CallID: "m", Name: "look", ServerName: "s"}
	table := []struct {
		name    string
		request content.InputRequest
		tools   []agent.Tool
		more    []agent.Tool
		decider agent.Decider
		dflt    bool // parked in the default profile
		dotnet  bool
	}{
		{"harmless sibling", harmless("q1", look), []agent.Tool{free}, nil, nil, true, true},
		{"tool of the loop", harmless("q1", look), nil, []agent.Tool{free}, nil, true, true},
		{"wants an answer", ask("q1", look), []agent.Tool{free}, nil, nil, false, true},
		{"marked", harmless("q1", look), []agent.Tool{marked}, nil, nil, false, false},
		{"a marked namesake", harmless("q1", look), []agent.Tool{free}, []agent.Tool{marked}, nil, false, true},
		{"unknown", harmless("q1", look), []agent.Tool{function("other"), nil}, nil, nil, false, false},
		{"declared only", harmless("q1", look), []agent.Tool{declared("look")}, nil, nil, false, false},
		{
			"label of a server",
			harmless("q1", look),
			[]agent.Tool{&agent.HostedMCP{Name: "look"}},
			nil,
			nil,
			false,
			false,
		},
		{"hosted call", harmless("q1", mcp), []agent.Tool{free}, nil, nil, false, false},
		{"text", &content.TextApprovalRequest{RequestID: "q1"}, []agent.Tool{free}, nil, nil, false, false},
		{
			"decided to ask",
			harmless("q1", look),
			[]agent.Tool{free},
			nil,
			deciding{"look": resolve.Ask},
			false,
			true,
		},
		{
			"decided to deny",
			harmless("q1", look),
			[]agent.Tool{free},
			nil,
			deciding{"look": resolve.Deny},
			false,
			true,
		},
		{
			"decided to allow",
			harmless("q1", look),
			[]agent.Tool{free},
			nil,
			deciding{"look": resolve.Allow},
			true,
			true,
		},
	}
	for _, row := range table {
		for p, want := range map[profile]bool{safe: row.dflt, compatible: row.dotnet} {
			m := says(list(assistant(text("hm"), row.request, ask("q2", pay))))
			opt := on(row.tools...)
			r := respond(t, p.bypass(m, layer.BypassConfig{Tools: row.more, Decider: row.decider, Log: quiet()}),
				opt, user(text("go")))
			n, shown := len(parked(t, opt.Thread, layer.BypassState)), len(r.UserInputRequests())
			if n == 1 != want || shown == 1 != want {
				t.Errorf("%s, profile %t: parked %d, shown %d", row.name, p, n, shown)
			}
		}
	}
}

func TestBypassInjectsBeforeTheLastText(t *testing.T) {
	look, pay := call("c1", "look", ""), call("c2", "pay", "")
	m := says(
		list(assistant(harmless("q1", look), ask("q2", pay))),
		list(assistant(text("done"))),
		list(assistant(text("hi"))),
	)
	c := layer.NewBypass(m, layer.BypassConfig{})
	opt := &agent.Options{Thread: agent.NewThread("t"), Tools: []agent.Tool{function("look")}, Fresh: 2}
	respond(t, c, opt, user(text("go")))
	respond(t, c, opt, user(text("go")), assistant(text("well?")), user(yes("q2", pay)), user(text("thanks")))
	wantTold(t, "inner", m.last(),
		`user: "go"; assistant: "well?"; user: yes[q1 c1 look()]; user: yes[q2 c2 pay()]; user: "thanks"`)
	if n := m.opts[1].Fresh; n != 3 {
		t.Errorf("the inner client was told of %d new messages, want 3", n)
	}
	respond(t, c, opt, user(text("once")))
	wantTold(t, "afterwards", m.last(), `user: "once"`)
}

// TestBypassLooksAgain parks a call and then changes the basis of that decision. The user is
// asked, once.
func TestBypassLooksAgain(t *testing.T) {
	look := call("c1", "look", `{"a":1}`)
	change := map[string]func(*agent.Options, deciding){
		"marked": func(o *agent.Options, _ deciding) {
			o.Tools = []agent.Tool{agent.RequireApproval(function("look"))}
		},
		"gone":    func(o *agent.Options, _ deciding) { o.Tools = nil },
		"decided": func(_ *agent.Options, d deciding) { d["look"] = resolve.Ask },
		"another thread": func(o *agent.Options, _ deciding) {
			o.Thread = &agent.Thread{ID: "other", State: o.Thread.State}
		},
	}
	for name, apply := range change {
		for _, repeats := range []bool{false, true} {
			if repeats && name == "another thread" {
				continue // the compatible profile makes a new request and parks it
			}
			decider := deciding{"look": resolve.Allow}
			second := assistant(text("hm"))
			if repeats {
				second = assistant(text("hm"), harmless("q1", look))
			}
			m := says(list(assistant(harmless("q1", look))), list(second), list(assistant(text("x"))))
			c := layer.NewBypass(m, layer.BypassConfig{Decider: decider})
			opt := on(function("look"))
			if r := respond(t, c, opt, user(text("go"))); len(r.Messages) != 0 {
				t.Fatalf("%s: the request was shown: %s", name, tell(r.Messages))
			}
			apply(opt, decider)
			r := respond(t, c, opt, user(text("on")))
			wantTold(t, name+", inner", m.last(), `user: "on"`)
			wantTold(t, name, r.Messages, `assistant: "hm", ask[q1 c1 look({"a":1})]`)
			if left := parked(t, opt.Thread, layer.BypassState); len(left) != 0 {
				t.Errorf("%s: %d are still parked", name, len(left))
			}
		}
	}
}

func TestBypassFailures(t *testing.T) {
	look := call("c1", "look", "")
	for _, p := range []profile{safe, compatible} {
		m := says(list(assistant(harmless("q1", look))))
		c := p.bypass(m, layer.BypassConfig{})
		opt := on(function("look"))
		respond(t, c, opt, user(text("go")))
		for range 2 {
			if _, err := c.Respond(context.Background(), list(user(text("on"))), opt); !errors.Is(err, errNoTurn) {
				t.Fatalf("the error is %v", err)
			}
		}

		if left := parked(t, opt.Thread, layer.BypassState); len(left) != 1 {
			t.Errorf("profile %t: a run that failed took the parked call along", p)
		}
	}

	m := says(list(assistant(harmless("q1", look))))
	opt := on(function("look"))
	if _, err := layer.NewBypass(
		m,
		layer.BypassConfig{Decider: deciding{}},
	).Respond(context.Background(), nil, opt); !errors.Is(err, errDecide) {
		t.Errorf("the error of the decider became %v", err)
	}
}

func TestBypassWithoutThread(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for _, build := range []func(agent.ChatClient, layer.BypassConfig) agent.ChatClient{
			p.bypass,
			p.invocableBypass,
		} {
			m := says(
				list(assistant(harmless("q1", call("c1", "look", "")), call("c2", "look", ""), call("c3", "ui", ""))),
			)
			r := respond(t, build(m, layer.BypassConfig{Log: quiet()}),
				&agent.Options{Tools: []agent.Tool{function("look"), declared("ui")}}, user(text("go")))
			if n := len(r.Messages[0].Contents); n != 3 {
				t.Errorf("%d contents passed, want 3", n)
			}
		}
	}
}

// TestBypassReaderLeaves ends a stream early. Approvals that were injected are not injected
// again.
func TestBypassReaderLeaves(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		look := call("c1", "look", "")
		m := says(
			list(assistant(harmless("q1", look))),
			list(assistant(text("a"), ask("q2", call("c2", "pay", "")))),
			list(assistant(text("b"))),
		)
		c := p.bypass(m, layer.BypassConfig{})
		opt := on(function("look"))
		respond(t, c, opt, user(text("go")))
		for range c.Stream(context.Background(), list(user(text("on"))), opt) {
			break
		}
		respond(t, c, opt, user(text("more")))
		wantTold(t, "inner", m.last(), `user: "more"`)
	}
}

func TestInvocable(t *testing.T) {
	look, ui := call("c1", "look", `{"a":1}`), call("c2", "ui", "")
	done := content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "c1", Result: []byte(`"ok"`)})
	tools := []agent.Tool{function("look"), declared("ui"), agent.RequireApproval(function("pay"))}
	table := []struct {
		name string
		says []*content.Message
		got  string
		park int
	}{
		{"mixed", list(assistant(text("See."), look, ui)), `assistant: "See.", c2 ui()`, 1},
		{"the caller's only", list(assistant(ui)), `assistant: c2 ui()`, 0},
		{"ours only", list(assistant(look)), `assistant: c1 look({"a":1})`, 0},
		{"ours has run", list(assistant(look), done, assistant(ui)),
			`assistant: c1 look({"a":1}); tool: c1="ok"; assistant: c2 ui()`, 0},
		{"unknown beside ours", list(assistant(look, call("c3", "what", ""))),
			`assistant: c1 look({"a":1}), c3 what()`, 0},
		{"handled", list(assistant(&content.FunctionCall{
			CallID:            "c1",
			Name:              "look",
			InformationalOnly: true,
		}, ui)), `assistant: c1 look(), c2 ui()`, 0},
		{"emptied message", list(assistant(look), assistant(text("and"), ui)), `assistant: "and", c2 ui()`, 1},
	}
	for _, row := range table {
		for _, p := range []profile{safe, compatible} {
			for _, streaming := range []bool{false, true} {
				opt := on(tools...)
				got := must.Get(run(p.invocableBypass(says(row.says), layer.BypassConfig{}), list(user(text("go"))),
					opt, streaming))(t)
				wantTold(t, row.name, got.Messages, row.got)
				if n := len(parked(t, opt.Thread, layer.InvocableState)); n != row.park {
					t.Errorf("%s: %d are parked, want %d", row.name, n, row.park)
				}
			}
		}
	}
}

func TestInvocableInjects(t *testing.T) {
	look, ui := call("c1", "look", `{"a":1}`), call("c2", "ui", "")
	result := content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "c2", Result: []byte("1")})
	want := map[profile]string{
		safe:       `tool: c2=1; user: yes[ficc_c1 c1 look({"a":1})]; user: "go on"`,
		compatible: `tool: c2=1; user: "go on"; user: yes[ficc_c1 c1 look({"a":1})]`,
	}
	for p, told := range want {
		m := says(list(assistant(look, ui)), list(assistant(text("done"))))
		c := p.invocableBypass(m, layer.BypassConfig{})
		opt := on(function("look"), declared("ui"))
		respond(t, c, opt, user(text("go")))
		respond(t, c, opt, result, user(text("go on")))
		wantTold(t, "inner", m.last(), told)
		if len(parked(t, opt.Thread, layer.InvocableState)) != 0 {
			t.Error("the call is still parked")
		}
	}
}
