package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// changing is a Decider whose verdict a test changes.
type changing struct {
	verdict hold.Verdict
	err     error
	asked   int
}

func (d *changing) Decide(context.Context, Tool, content.ToolCall) (hold.Verdict, error) {
	d.asked++
	return d.verdict, d.err
}

func required(v hold.Verdict, within time.Duration, stages ...policy.Stage) hold.Verdict {
	v.Require = &policy.Require{Within: within, Stages: stages}
	return v
}

// TestChangesBetweenRequestAndAnswer changes the decider's verdict while the request is open.
func TestChangesBetweenRequestAndAnswer(t *testing.T) {
	ask := outcomeOf(resolve.Ask, "one")
	for name, tt := range map[string]struct {
		after hold.Verdict
		err   error
		tool  func(c *counted) Tool
		want  string // result; empty if a new request is expected
	}{
		"nothing":          {after: ask, want: `"did pay"`},
		"allowed by now":   {after: outcomeOf(resolve.Allow), want: `"did pay"`},
		"denied by now":    {after: outcomeOf(resolve.Deny, "two"), want: `"Tool call denied: rule two."`},
		"undecided by now": {err: errors.New("away"), want: `"` + textUndecided + `"`},
		"a rule more":      {after: outcomeOf(resolve.Ask, "one", "two")},
		"another rule":     {after: outcomeOf(resolve.Ask, "two")},
		"another binding": {after: hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask, Binding: "x",
			Reasons: ask.Reasons}}},
		"a deadline": {after: required(ask, time.Hour)},
		"people": {after: required(ask, 0, policy.Stage{Group: "ops", People: 2}),
			want: `"Tool call not run: it needs the approval of 2 of ops, and nothing here can ask them."`},
		"the tool is gone": {
			after: ask,
			tool: func(*counted) Tool {
				return nil
			},
			want: `"Error: Requested function \"pay\" not found."`,
		},
		"a new description": {
			after: ask,
			tool: func(c *counted) Tool {
				return NewFunction("pay", "quite harmless", nil, c.tool("pay").(*function).run)
			},
		},
		"a new schema": {
			after: ask,
			tool: func(c *counted) Tool {
				return NewFunction("pay", "does pay", json.RawMessage(`{}`), c.tool("pay").(*function).run)
			},
		},
		"another target": {
			after: ask,
			tool: func(c *counted) Tool {
				return WithTarget(c.tool("pay"), Target{Kind: resolve.MCPTool, Server: "s"})
			},
		},
		"a marker": {after: ask, tool: func(c *counted) Tool { return RequireApproval(c.tool("pay")) }},
		"run by the caller": {
			after: outcomeOf(resolve.Allow),
			tool: func(*counted) Tool {
				return declaredTool("pay")
			},
			want: "external",
		},
		"the caller's, asks": {after: ask, tool: func(*counted) Tool { return declaredTool("pay") }},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			d := &changing{verdict: ask}
			k := paying(t, "")
			th := NewThread("t")
			q := approvalOf(t,
				t.run(chat(k, LoopConfig{Decider: d}, nil, c.tool("pay")), th, content.UserText("x")), 0)
			tools := []Tool{c.tool("pay")}
			if tt.tool != nil {
				tools = []Tool{tt.tool(&c)}
			}
			d.verdict, d.err = tt.after, tt.err
			a := chat(k, LoopConfig{Decider: d}, nil, tools...)
			th = reload(t, th)
			resp := t.yes(a, th, q)
			switch tt.want {
			case "external":
				expect(t, "handed over", tell(resp.Messages), "assistant: 1=pay()\n")
			case "":
				again := approvalOf(t, resp, 0)
				if len(c.runs) > 0 || again.RequestID == q.RequestID {
					t.Fatalf("ran %v, asked under %s", c.runs, again.RequestID)
				}
				resp = t.yes(a, reload(t, th), q)
				expect(t, "refused", refusals(resp), q.RequestID+" closed_request")
				t.yes(a, th, again)
				if _, ours := tools[0].(Function); ours && c.runs["pay"] != 1 {
					t.Error(c.runs)
				}
			default:
				expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=pay()\ntool: 1→"+tt.want+"\n")
				if ran := c.runs["pay"] == 1; ran != (tt.want == `"did pay"`) {
					t.Error(c.runs)
				}
			}
		})
	}
}

func TestDecisionsOfATurn(t *testing.T) {
	for name, tt := range map[string]struct {
		verdict hold.Verdict
		err     error
		marked  bool
		want    string // result; empty if a request is expected
	}{
		"allowed":             {verdict: outcomeOf(resolve.Allow), want: `"did pay"`},
		"allowed, but marked": {verdict: outcomeOf(resolve.Allow), marked: true},
		"asked":               {verdict: outcomeOf(resolve.Ask, "r")},
		"denied": {verdict: outcomeOf(resolve.Deny, "r", "s"),
			want: `"Tool call denied: rule r; rule s."`},
		"denied and marked": {verdict: outcomeOf(resolve.Deny, "r"), marked: true,
			want: `"Tool call denied: rule r."`},
		"nothing said": {want: `"Tool call denied: ."`},
		"an error":     {err: errors.New("away"), verdict: outcomeOf(resolve.Allow), want: `"` + textUndecided + `"`},
		"people, no holder": {
			verdict: required(outcomeOf(resolve.Ask, "r"), 0, policy.Stage{Group: "a", People: 1},
				policy.Stage{Group: "b", People: 2}),
			want: `"Tool call not run: it needs the approval of 1 of a and 2 of b, and nothing here can ask them."`,
		},
		"allowed, with people": {
			verdict: required(outcomeOf(resolve.Allow), 0, policy.Stage{Group: "a", People: 1}),
			marked:  true,
			want:    `"Tool call not run: it needs the approval of 1 of a, and nothing here can ask them."`,
		},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			tool := Tool(c.tool("pay"))
			if tt.marked {
				tool = RequireApproval(c.tool("pay"))
			}
			k := paying(t, "")
			resp := t.run(chat(k, LoopConfig{Decider: &changing{verdict: tt.verdict, err: tt.err}}, nil, tool),
				NewThread("t"), content.UserText("x"))
			if asked := len(resp.UserInputRequests()) == 1; asked != (tt.want == "") {
				t.Fatal(tell(resp.Messages))
			}
			if tt.want != "" {
				expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=pay()\ntool: 1→"+tt.want+"\n")
			}
			if ran := c.runs["pay"] == 1; ran != (tt.want == `"did pay"`) {
				t.Error(c.runs)
			}
		})
	}
}

// byAmount requires more rules the larger n is.
func byAmount(_ Tool, call content.ToolCall) (hold.Verdict, error) {
	args := string(call.Args())
	switch {
	case strings.Contains(args, `"n":1}`):
		return outcomeOf(resolve.Allow), nil
	case strings.Contains(args, `"n":9}`):
		return outcomeOf(resolve.Ask, "small", "big"), nil
	case strings.Contains(args, `"n":99}`):
		return outcomeOf(resolve.Deny, "never"), nil
	}

	return outcomeOf(resolve.Ask, "small"), nil
}

func TestMessageForTheApprover(t *testing.T) {
	var c counted
	v := outcomeOf(resolve.Ask, "r")
	v.Message = "Pay 5?"
	a := chat(talk(t, said(call("1", "pay", ""))), LoopConfig{Decider: &changing{verdict: v}}, nil, c.tool("pay"))
	if q := approvalOf(t, mustRun(t, a, NewThread("t"), content.UserText("x")), 0); q.Note.Message != "Pay 5?" {
		t.Error(q.Note)
	}
}

// TestApprovalOutlivesItsDeadline uses an approval a week after its requirement expired. The
// approved call could not begin earlier because the store was unavailable.
func TestApprovalOutlivesItsDeadline(t *testing.T) {
	clk := newClock()
	v := required(outcomeOf(resolve.Ask, "r"), time.Hour)
	var c counted
	store := &keeper{}
	k := paying(t, "")
	a := chat(k, LoopConfig{Decider: &changing{verdict: v}, Now: clk.now}, store, c.tool("pay"))
	th, q := runner{T: t}.asks(a, "x")
	store.failAt, store.err = 1, errors.New("disk full")
	if _, err := a.Run(t.Context(), th, answers(q.CreateApproval(""))); err == nil {
		t.Fatal("saved")
	}
	clk.at = clk.at.Add(7 * 24 * time.Hour)
	_, err := a.Run(t.Context(), th, content.UserText("good morning"))
	if c.runs["pay"] != 0 {
		t.Errorf("ran on an approval of last week that was good for an hour (%v)", err)
	}
}
