package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// payer is a Standing with a clock, a thread and an inner client that always requests to pay.
type payer struct {
	t   *testing.T
	m   *model
	c   agent.ChatClient
	opt *agent.Options
	now time.Time
}

func newPayer(t *testing.T, cfg layer.StandingConfig, turns ...[]*content.Message) *payer {
	d := &payer{t: t, m: says(turns...), now: time.Unix(1e9, 0), opt: on(function("pay"), function("look"))}
	cfg.Now = func() time.Time { return d.now }
	cfg.Log = quiet()
	d.c = layer.NewStanding(d.m, cfg)
	return d
}

func (d *payer) run(messages ...*content.Message) *agent.Response {
	d.t.Helper()
	return respond(d.t, d.c, d.opt, messages...)
}

func (d *payer) rules() []layer.Rule {
	d.t.Helper()
	return must.Get(layer.Rules(d.opt.Thread))(d.t)
}

var done = list(assistant(text("done")))

func pays(n, args string) []*content.Message {
	return list(assistant(ask("q"+n, call("c"+n, "pay", args))))
}

// TestStandingMints answers one request and checks the rule that the answer creates.
func TestStandingMints(t *testing.T) {
	five := call("c1", "pay", `{"cents":5}`)
	edited := always(yes("q1", five), content.AlwaysArguments)
	edited.Edited = call("c1", "pay", `{"cents":4}`)
	table := []struct {
		name   string
		cfg    layer.StandingConfig
		answer content.Content
		tools  []agent.Tool
		rules  int
	}{
		{"these arguments", layer.StandingConfig{}, always(yes("q1", five), content.AlwaysArguments), nil, 1},
		{"any arguments, not allowed", layer.StandingConfig{}, always(yes("q1", five), content.AlwaysTool), nil, 0},
		{"any arguments", layer.StandingConfig{AllowToolScope: true}, always(yes("q1", five), content.AlwaysTool),
			nil, 1},
		{"once", layer.StandingConfig{AllowToolScope: true}, yes("q1", five), nil, 0},
		{"rejected", layer.StandingConfig{}, always(no("q1", five), content.AlwaysArguments), nil, 0},
		{"edited", layer.StandingConfig{}, edited, nil, 0},
		{"tampered", layer.StandingConfig{},
			always(yes("q1", call("c1", "pay", `{"cents":50}`)), content.AlwaysArguments), nil, 0},
		{"never asked", layer.StandingConfig{}, always(yes("q9", five), content.AlwaysArguments), nil, 0},
		{"forbidden", layer.StandingConfig{Forbids: func(c content.ToolCall) bool {
			return c.ToolName() == "pay"
		}}, always(yes("q1", five), content.AlwaysArguments), nil, 0},
		{"unknown tool", layer.StandingConfig{}, always(yes("q1", five), content.AlwaysArguments),
			[]agent.Tool{function("look")}, 0},
		{"schema that is no JSON", layer.StandingConfig{}, always(yes("q1", five), content.AlwaysArguments),
			[]agent.Tool{agent.NewFunction("pay", "", json.RawMessage(`{`), nil)}, 0},
		{"tool of the loop", layer.StandingConfig{Tools: []agent.Tool{function("pay")}},
			always(yes("q1", five), content.AlwaysArguments), []agent.Tool{function("look")}, 1},
		{"not a call", layer.StandingConfig{}, &content.TextApprovalResponse{RequestID: "q1", Approved: true}, nil, 0},
	}
	for _, row := range table {
		d := newPayer(t, row.cfg, pays("1", `{"cents":5}`), done)
		d.run(user(text("pay")))
		if row.tools != nil {
			d.opt.Tools = row.tools
		}
		d.run(user(row.answer))
		rules := d.rules()
		if len(rules) != row.rules {
			t.Errorf("%s: %d rules, want %d", row.name, len(rules), row.rules)
			continue
		}
		for a := range content.All[*content.ToolApprovalResponse](d.m.last()) {
			if a.Always != content.AlwaysNot {
				t.Errorf("%s: the wish for a rule went on to the inner client", row.name)
			}
		}
		for _, r := range rules {
			if r.Left != 100 || r.Expires.Sub(r.Created) != 8*time.Hour || r.Definition == "" || r.RequestID != "q1" {
				t.Errorf("%s: the rule is %+v", row.name, r)
			}
		}
	}
}

// TestStandingRules applies a rule for pay(5) to another request.
func TestStandingRules(t *testing.T) {
	marked := agent.RequireApproval(function("pay"))
	table := []struct {
		name   string
		cfg    layer.StandingConfig
		scope  content.AlwaysScope
		change func(*payer)
		args   string
		shown  bool
	}{
		{"the same", layer.StandingConfig{}, content.AlwaysArguments, nil, `{"cents":5}`, false},
		{"the same in another form", layer.StandingConfig{}, content.AlwaysArguments, nil, `{ "cents" : 5.0 }`, false},
		{"another number", layer.StandingConfig{}, content.AlwaysArguments, nil, `{"cents":5.0000000000000001}`, true},
		{"one more", layer.StandingConfig{}, content.AlwaysArguments, nil, `{"cents":5,"to":"x"}`, true},
		{"unreadable", layer.StandingConfig{AllowToolScope: true}, content.AlwaysTool, nil, `[5]`, true},
		{"any arguments", layer.StandingConfig{AllowToolScope: true}, content.AlwaysTool, nil, `{"cents":500}`, false},
		{"just before its end", layer.StandingConfig{MaxAge: time.Hour}, content.AlwaysArguments, func(d *payer) {
			d.now = d.now.Add(time.Hour - 1)
		}, `{"cents":5}`, false},
		{"expired", layer.StandingConfig{MaxAge: time.Hour}, content.AlwaysArguments, func(d *payer) {
			d.now = d.now.Add(time.Hour)
		}, `{"cents":5}`, true},
		{"before its time", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.now = d.now.Add(-time.Hour)
		}, `{"cents":5}`, true},
		{"definition changed", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = []agent.Tool{agent.NewFunction("pay", "does more", nil, nil)}
		}, `{"cents":5}`, true},
		{"schema changed", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = []agent.Tool{agent.NewFunction("pay", "does pay", json.RawMessage(`{}`), nil)}
		}, `{"cents":5}`, true},
		{"target changed", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = []agent.Tool{agent.WithTarget(function("pay"),
				agent.Target{Kind: resolve.MCPTool, Server: "bank", Tool: "pay"})}
		}, `{"cents":5}`, true},
		{"a namesake came", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = append(d.opt.Tools, agent.NewFunction("pay", "another", nil, nil))
		}, `{"cents":5}`, true},
		{"tool gone", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = nil
		}, `{"cents":5}`, true},
		{"marked since", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			d.opt.Tools = []agent.Tool{marked}
		}, `{"cents":5}`, false},
		{"revoked", layer.StandingConfig{}, content.AlwaysArguments, func(d *payer) {
			if err := layer.Revoke(d.opt.Thread, d.rules()[0].ID); err != nil {
				d.t.Error(err)
			}
		}, `{"cents":5}`, true},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			d := newPayer(t, row.cfg, pays("1", `{"cents":5}`), done, pays("2", row.args),
				list(assistant(text("paid"))))
			d.run(user(text("pay")))
			d.run(user(always(yes("q1", call("c1", "pay", `{"cents":5}`)), row.scope)))
			if row.change != nil {
				row.change(d)
			}
			r := d.run(user(text("again")))
			if shown := len(r.UserInputRequests()) == 1; shown != row.shown {
				t.Fatalf("shown is %t", shown)
			}
			if !row.shown {
				wantTold(t, "inner", d.m.last(),
					`user: "again"; assistant: ask[q2 c2 pay(`+row.args+
						`)]; user: yes (Approved by standing rule-1)[q2 c2 pay(`+row.args+`)]`)
			}
		})
	}
}

func TestStandingUsesEnd(t *testing.T) {
	d := newPayer(
		t,
		layer.StandingConfig{MaxUses: 2},
		pays("1", `{}`),
		done,
		pays("2", ""),
		pays("3", " { } "),
		pays("4", "{}"),
	)
	d.run(user(text("pay")))
	d.run(user(always(yes("q1", call("c1", "pay", `{}`)), content.AlwaysArguments)))
	wantTold(t, "third", d.run(user(text("thrice"))).Messages, "assistant: ask[q4 c4 pay({})]")
	if rules := d.rules(); len(rules) != 1 || rules[0].Left != 0 {
		t.Errorf("the rules are %+v", rules)
	}
}

func TestRevokeUnknown(t *testing.T) {
	if err := layer.Revoke(agent.NewThread("t"), "rule-7"); !errors.Is(err, layer.ErrNoRule) {
		t.Errorf("the error is %v", err)
	}
	torn := agent.NewThread("t")
	torn.State[layer.StandingState] = json.RawMessage("1")
	if _, err := layer.Rules(torn); err == nil || layer.Revoke(torn, "rule-1") == nil {
		t.Error("a torn state was read")
	}
}

// TestStandingIgnoresUnboundedRules uses rules that the compatible profile created.
func TestStandingIgnoresUnboundedRules(t *testing.T) {
	five := call("c1", "pay", `{"cents":5}`)
	m := says(done, pays("2", `{"cents":5}`))
	opt := on(function("pay"))
	respond(t, compat.NewStanding(m, compat.StandingConfig{}), opt, user(always(yes("q1", five), content.AlwaysTool)))
	r := respond(t, layer.NewStanding(m, layer.StandingConfig{AllowToolScope: true, Log: quiet()}), opt,
		user(text("on")))
	if len(r.UserInputRequests()) != 1 {
		t.Error("an unbounded rule approved a call")
	}
}

func TestCompatibleMakesARuleOnce(t *testing.T) {
	five, opt := call("c1", "pay", `{"cents":5}`), on(function("pay"))
	respond(t, compat.NewStanding(says(done), compat.StandingConfig{}), opt,
		user(always(yes("q1", five), content.AlwaysArguments), always(yes("q2", five), content.AlwaysArguments)))
	if rules := must.Get(layer.Rules(opt.Thread))(t); len(rules) != 1 {
		t.Errorf("the rules are %+v", rules)
	}
}

func TestStandingPredicates(t *testing.T) {
	var asked []layer.Asked
	says := func(name string, ok bool) layer.Predicate {
		return layer.Predicate{
			Name: name,
			Approve: func(_ context.Context, a layer.Asked) bool {
				asked = append(asked, a)
				return ok
			},
		}
	}
	cfg := layer.StandingConfig{
		Agent:      "clerk",
		Predicates: []layer.Predicate{says("", true), {Name: "none"}, says("never", false), says("small sums", true)},
	}
	d := newPayer(t, cfg, list(assistant(text("Paying."), ask("q1", call("c1", "pay", "")))), done)
	d.opt.Fresh = 1
	r := d.run(user(text("pay")))
	wantTold(t, "inner", d.m.last(),
		`user: "pay"; assistant: "Paying.", ask[q1 c1 pay()]; user: yes (Approved by small sums)[q1 c1 pay()]`)
	wantTold(t, "caller", r.Messages, `assistant: "Paying."; assistant: "done"`)
	if a := asked[0]; a.Agent != "clerk" || a.Thread != d.opt.Thread || a.Call.Name != "pay" ||
		tell(a.Messages) != `user: "pay"` ||
		a.Options == nil {
		t.Errorf("the predicate was asked %+v", a)
	}
}

// TestStandingWaits has one request approved by a rule while a person is asked about another.
// The automatic approval is checked again before it is used.
func TestStandingWaits(t *testing.T) {
	look := call("c3", "look", "")
	for name, revoked := range map[string]bool{"kept": false, "revoked": true} {
		t.Run(name, func(t *testing.T) {
			d := newPayer(t, layer.StandingConfig{}, pays("1", ""), done,
				list(assistant(ask("q2", call("c2", "pay", "")), ask("q3", look))), done)
			d.run(user(text("pay")))
			d.run(user(always(yes("q1", call("c1", "pay", "")), content.AlwaysArguments)))
			wantTold(t, "shown", d.run(user(text("both"))).Messages, "assistant: ask[q3 c3 look()]")
			if revoked {
				must.Do(t, layer.Revoke(d.opt.Thread, "rule-1"))
			}
			r := d.run(user(no("q3", look)))
			if revoked {
				wantTold(t, "inner", d.m.last(), "user: no[q3 c3 look()]")
				wantTold(t, "asked", r.Messages, `assistant: "done", ask[q2 c2 pay()]`)
			} else {
				wantTold(t, "inner", d.m.last(),
					"user: yes (Approved by standing rule-1)[q2 c2 pay()]; user: no[q3 c3 look()]")
			}
		})
	}
}

func TestStandingPredicateChangesItsMind(t *testing.T) {
	n := 0
	once := layer.Predicate{
		Name: "moody",
		Approve: func(context.Context, layer.Asked) bool {
			n++
			return n == 1
		},
	}
	d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{once}}, pays("1", ""))
	wantTold(t, "shown", d.run(user(text("pay"))).Messages, "assistant: ask[q1 c1 pay()]")
}

func TestStandingConversation(t *testing.T) {
	d := newPayer(t, layer.StandingConfig{Predicates: []layer.Predicate{all}}, pays("1", ""), done)
	d.m.turns[0].ConversationID = "conv"
	d.m.turns[0].Usage, d.m.turns[1].Usage = &content.Usage{Total: 3}, &content.Usage{Total: 4}
	r := d.run(user(text("pay")))
	wantTold(t, "inner", d.m.last(), "user: yes (Approved by all)[q1 c1 pay()]")
	if got := d.m.opts[1].ConversationID; got != "conv" || r.ConversationID != "conv" || r.Usage.Total != 7 ||
		d.opt.ConversationID != "" {
		t.Errorf("the conversation is %q, the usage %+v", got, r.Usage)
	}
}

func TestStandingRoundsEnd(t *testing.T) {
	var turns [][]*content.Message
	for range 50 {
		turns = append(turns, pays("1", ""))
	}
	for _, p := range []profile{safe, compatible} {
		d := newPayer(t, layer.StandingConfig{}, turns...)
		d.c = p.standing(d.m, layer.StandingConfig{Predicates: []layer.Predicate{all}, Log: quiet()})
		r := d.run(user(text("pay")))
		if len(d.m.seen) != 41 || len(r.UserInputRequests()) != 1 {
			t.Errorf("%d calls, %d requests", len(d.m.seen), len(r.UserInputRequests()))
		}
	}
}

func TestStandingOneAtATime(t *testing.T) {
	one := call("c1", "pay", `{"n":1}`)
	two := call("c2", "pay", `{"n":2}`)
	three := call("c3", "look", "")
	d := newPayer(
		t,
		layer.StandingConfig{OneAtATime: true},
		list(
			assistant(
				text("Three."),
				ask("q1", one),
				ask("q2", two),
				ask("q3", three),
				ask("q4", call("c4", "pay", `{"n":1}`)),
			),
		),
		list(assistant(text("Three done."))),
		done,
	)
	wantTold(t, "first", d.run(user(text("go"))).Messages, `assistant: "Three.", ask[q1 c1 pay({"n":1})]`)
	wantTold(t, "unanswered", d.run(user(text("why?"))).Messages, `assistant: ask[q1 c1 pay({"n":1})]`)
	r := d.run(user(yes("q2", two)))
	wantRefused(t, r.Refused, agent.UnknownRequest) // it was not shown
	wantTold(t, "second", d.run(user(always(yes("q1", one), content.AlwaysArguments))).Messages,
		`assistant: ask[q2 c2 pay({"n":2})]`)
	r = d.run(user(yes("q2", one)))
	wantRefused(t, r.Refused, agent.OtherCall)
	wantTold(t, "third", d.run(user(no("q2", two))).Messages, `assistant: ask[q3 c3 look()]`)
	r = d.run(user(yes("q3", two)))
	wantRefused(t, r.Refused, agent.OtherCall)
	if len(d.m.seen) != 1 {
		t.Fatal("the inner client was asked before all were answered")
	}
	d.run(user(yes("q3", three), text("go on")))
	wantTold(t, "inner", d.m.seen[1],
		`user: yes[q1 c1 pay({"n":1})], no[q2 c2 pay({"n":2})], yes[q3 c3 look()]; user: "go on"`)
	wantTold(t, "inner", d.m.last(),
		`user: "go on"; assistant: "Three done."; user: yes (Approved by standing rule-1)[q4 c4 pay({"n":1})]`)
}

func TestStandingWithoutThread(t *testing.T) {
	all := []layer.Predicate{all}
	m := says(pays("1", ""))
	r := respond(t, layer.NewStanding(m, layer.StandingConfig{Predicates: all, Log: quiet()}), nil,
		user(text("go"), yes("q1", call("c1", "pay", ""))))
	wantRefused(t, r.Refused, agent.UnknownRequest)
	if len(r.UserInputRequests()) != 1 {
		t.Error("a call was approved though nothing can be kept")
	}
	m = says(pays("1", ""), done)
	r = respond(t, compat.NewStanding(m, compat.StandingConfig{Predicates: all}), nil, user(text("go")))
	wantTold(t, "compatible", r.Messages, `assistant: "done"`)
}
