package agent

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

type anyFunc func(ctx context.Context, arguments json.RawMessage) (any, error)

func fn(name string, run anyFunc) Function { return NewFunction(name, "", nil, run) }

func fixed(name string, result any, err error) Function {
	return fn(name, func(context.Context, json.RawMessage) (any, error) { return result, err })
}

// toldOf runs one call and returns what the model is told.
func toldOf(t *testing.T, v *invoker, f Tool, arguments string) (string, outcome) {
	t.Helper()
	call := &content.FunctionCall{CallID: "c", Name: "f"}
	if arguments != "" {
		call.Arguments = json.RawMessage(arguments)
	}
	var opt *Options
	if f != nil {
		opt = &Options{Tools: []Tool{f}}
	}
	o := v.run(t.Context(), call, opt, 0, "")
	return string(resultContent(call, o, v.cfg).Result), o
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("no words") }

func TestResults(t *testing.T) {
	for _, test := range []struct {
		name   string
		result any
		err    error
		want   string
	}{
		{"nothing", nil, nil, `"Success: Function completed."`},
		{"a nil pointer", (*int)(nil), nil, `"Success: Function completed."`},
		{"no raw text", json.RawMessage(nil), nil, `"Success: Function completed."`},
		{"raw null", json.RawMessage(`null`), nil, `null`},
		{"raw text", json.RawMessage(`{"b":1.50, "a":2}`), nil, `{"b":1.50, "a":2}`},
		{"a string", "<b>\u2028", nil, `"<b>\u2028"`},
		{"an object", map[string]any{"n": 1, "s": "&"}, nil, `{"n":1,"s":"&"}`},
		{"no JSON", json.RawMessage(`{`), nil, `"Error: Function failed."`},
		{"what can't be written", make(chan int), nil, `"Error: Function failed."`},
		{"a panic while writing", badJSON{}, nil, `"Error: Function failed."`},
		{"an error", "result", errors.New("secret"), `"Error: Function failed."`},
	} {
		got, _ := toldOf(t, &invoker{}, fixed("f", test.result, test.err), "")
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDetailedErrors(t *testing.T) {
	v := &invoker{LoopConfig{DetailedErrors: true}}
	if got, _ := toldOf(t, v, fixed("f", nil, errors.New(`a "b"`)), ""); got != `"Error: Function failed. Exception: a \"b\""` {
		t.Error(got)
	}
	panics := fn("f", func(context.Context, json.RawMessage) (any, error) { panic("boom") })
	if got, o := toldOf(t, v, panics, ""); got != `"Error: Function failed. Exception: the function panicked: boom"` || o.err == nil || !o.found {
		t.Error(got, o)
	}
}

func TestUnknownAndDeclaredOnly(t *testing.T) {
	v := &invoker{}
	if got, o := toldOf(t, v, nil, ""); got != `"Error: Requested function \"f\" not found."` || o.found || o.err != nil {
		t.Error(got, o)
	}
	if got, _ := toldOf(t, v, onlyDeclared{"f"}, ""); got != `"Error: Requested function \"f\" not found."` {
		t.Error(got)
	}
}

type onlyDeclared struct{ name string }

func (d onlyDeclared) Definition() Definition { return Definition{Name: d.name} }

func TestBadArgumentsDoNotRun(t *testing.T) {
	ran := 0
	f := fn("f", func(context.Context, json.RawMessage) (any, error) { ran++; return nil, nil })
	for _, bad := range []string{`[]`, `"x"`, `null`, `{"a":1,"a":2}`, `{"a":`, `{} {}`, "{\"a\":\"\xff\"}"} {
		got, o := toldOf(t, &invoker{}, f, bad)
		if _, is := errors.AsType[*content.BadError](o.err); !is || got != `"Error: Function failed."` {
			t.Errorf("%s: %s, %v", bad, got, o.err)
		}
	}
	if ran != 0 {
		t.Errorf("ran %d times", ran)
	}
}

func TestInvocation(t *testing.T) {
	opt := &Options{Model: "before", Tools: []Tool{nil}}
	call := &content.FunctionCall{CallID: "c", Name: "f", Arguments: json.RawMessage(`{"a":1}`)}
	f := fn("f", func(ctx context.Context, arguments json.RawMessage) (any, error) {
		inv := InvocationOf(ctx)
		if inv.Turn != 7 || inv.Approval != "ann" || inv.Call.CallID != "c" || string(arguments) != `{"a":1}` {
			t.Errorf("%+v %s", inv, arguments)
		}
		inv.Call.Name = "other"
		inv.Options.Model, inv.Stop = "after", true
		inv.Options.Tools = append(inv.Options.Tools, fixed("g", nil, nil))
		return nil, nil
	})
	opt.Tools[0] = f
	o := (&invoker{}).run(t.Context(), call, opt, 7, "ann")
	if !o.stop || o.opt.Model != "after" || len(o.opt.Tools) != 2 {
		t.Errorf("%+v", o)
	}
	if opt.Model != "before" || len(opt.Tools) != 1 || call.Name != "f" {
		t.Error("the caller's options or call changed")
	}
	if InvocationOf(t.Context()) != nil {
		t.Error("there is an invocation outside of one")
	}
}

func TestAFunctionMayDropItsOptions(t *testing.T) {
	f := fn("f", func(ctx context.Context, _ json.RawMessage) (any, error) {
		InvocationOf(ctx).Options = nil
		InvocationOf(ctx).Stop = true
		return nil, errors.New("no")
	})
	if _, o := toldOf(t, &invoker{}, f, ""); o.opt == nil || o.stop {
		t.Errorf("%+v: a failing function does not stop a run, and options are never nil", o)
	}
}

// asker suspends once and then gives its answers.
type asker struct{ Function }

func (asker) Resume(_ context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse) (any, error) {
	if string(state) == `"panic"` {
		panic("resumed")
	}
	return []any{state, len(answers)}, nil
}

type around struct{ Function }

func (a around) Unwrap() Tool { return a.Function }

func TestSuspend(t *testing.T) {
	suspends := fixed("f", nil, &Suspend{State: json.RawMessage(`1`)})
	if _, o := toldOf(t, &invoker{}, suspends, ""); !errors.Is(o.err, ErrNotResumer) || o.suspend != nil {
		t.Errorf("no Resumer: %+v", o)
	}
	tool := RequireApproval(around{asker{suspends}})
	if _, o := toldOf(t, &invoker{}, tool, ""); o.suspend == nil || string(o.suspend.State) != `1` {
		t.Errorf("a Resumer inside wrappers: %+v", o)
	}
	v, j := &invoker{}, job{call: &content.FunctionCall{Name: "f"}, tool: tool}
	if o := v.resume(t.Context(), j, nil, json.RawMessage(`1`), make([]content.InputResponse, 2)); string(o.result) != `[1,2]` || o.err != nil {
		t.Errorf("resumed: %+v", o)
	}
	if o := v.resume(t.Context(), j, nil, json.RawMessage(`"panic"`), nil); o.err == nil {
		t.Error("a panic of Resume is no error")
	}
	for _, none := range []Tool{nil, suspends, onlyDeclared{"f"}, around{suspends}} {
		if o := v.resume(t.Context(), job{call: j.call, tool: none}, nil, nil, nil); !errors.Is(o.err, ErrNotResumer) {
			t.Errorf("%T: %v", none, o.err)
		}
	}
}

func TestFindTool(t *testing.T) {
	first, second, extra := fixed("f", 1, nil), fixed("f", 2, nil), fixed("f", 3, nil)
	opt := &Options{Tools: []Tool{nil, first, second, fixed("F", 4, nil)}}
	if findTool("f", opt, []Tool{extra}) != Tool(second) || findTool("f", nil, []Tool{extra}) != Tool(extra) || findTool("g", opt, []Tool{extra}) != nil {
		t.Error("the last tool of exactly that name wins in the request, and the request over the loop")
	}
}

func jobsOf(tools ...Function) []job {
	var out []job
	for _, f := range tools {
		name := f.Definition().Name
		out = append(out, job{call: &content.FunctionCall{CallID: name, Name: name}, tool: f})
	}
	return out
}

func TestConcurrentCallsOverlap(t *testing.T) {
	meet := make(chan string)
	give := fn("give", func(context.Context, json.RawMessage) (any, error) { meet <- "here"; return nil, nil })
	take := fn("take", func(context.Context, json.RawMessage) (any, error) { return <-meet, nil })
	v := &invoker{LoopConfig{Concurrent: true}}
	outs, _, err := v.runAll(t.Context(), jobsOf(take, give), nil, 0, newFailures(v.cfg))
	if err != nil || string(outs[0].result) != `"here"` {
		t.Error(outs, err)
	}
}

func TestConcurrentCallsMayShareOne(t *testing.T) {
	j := jobsOf(fixed("f", 1, nil))[0]
	v := &invoker{LoopConfig{Concurrent: true}}
	if outs, _, err := v.runAll(t.Context(), []job{j, j, j}, nil, 0, newFailures(v.cfg)); err != nil || len(outs) != 3 || !j.call.InformationalOnly {
		t.Error(outs, err)
	}
}

func TestAGoroutineThatEnds(t *testing.T) {
	v := &invoker{LoopConfig{Concurrent: true}}
	gone := fn("gone", func(context.Context, json.RawMessage) (any, error) { runtime.Goexit(); return nil, nil })
	outs, _, err := v.runAll(t.Context(), jobsOf(gone, fixed("f", 1, nil)), nil, 0, newFailures(v.cfg))
	if err != nil || outs[0].err == nil || !outs[0].found || outs[1].err != nil {
		t.Error(outs, err)
	}
}

func TestCancelledRunsEnd(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		f := fn("f", func(ctx context.Context, _ json.RawMessage) (any, error) { cancel(); return nil, ctx.Err() })
		v := &invoker{LoopConfig{Concurrent: concurrent}}
		if _, _, err := v.runAll(ctx, jobsOf(f, f), nil, 0, newFailures(v.cfg)); !errors.Is(err, context.Canceled) {
			t.Errorf("concurrent %v: %v", concurrent, err)
		}
	}
}

func TestFailuresInARow(t *testing.T) {
	bad, good := errors.New("bad"), error(nil)
	for _, test := range []struct {
		max   int
		turns []error
		ends  int // turn that ends the run; -1 for none
	}{
		{0, []error{bad, bad, bad}, -1},
		{0, []error{bad, bad, bad, bad}, 3},
		{0, []error{bad, bad, bad, good, bad, bad, bad}, -1},
		{1, []error{bad, good, bad, bad}, 3},
		{-1, []error{good, bad}, 1},
	} {
		for _, concurrent := range []bool{false, true} {
			v := &invoker{LoopConfig{MaxErrors: test.max, Concurrent: concurrent}}
			f, ended := newFailures(v.cfg), -1
			for i, err := range test.turns {
				_, _, failed := v.runAll(t.Context(), jobsOf(fixed("a", 1, nil), fixed("b", 1, err)), nil, i, f)
				if several, ok := errors.AsType[*FunctionErrors](failed); ok && errors.Is(failed, bad) && len(several.Errs) == 1 {
					ended = i
					break
				}
			}
			if ended != test.ends {
				t.Errorf("%+v, concurrent %v: ended at %d", test, concurrent, ended)
			}
		}
	}
}

func TestAllErrorsOfTheLastTurn(t *testing.T) {
	v := &invoker{LoopConfig{MaxErrors: -1, Concurrent: true}}
	_, _, err := v.runAll(t.Context(), jobsOf(fixed("a", nil, errors.New("one")), fixed("b", nil, errors.New("two"))), nil, 0, newFailures(v.cfg))
	if err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Error(err)
	}
}

func TestSerialFailureLeavesTheRestAtTheLimit(t *testing.T) {
	ran := false
	v := &invoker{LoopConfig{MaxErrors: -1}}
	after := fn("b", func(context.Context, json.RawMessage) (any, error) { ran = true; return nil, nil })
	if _, _, err := v.runAll(t.Context(), jobsOf(fixed("a", nil, errors.New("one")), after), nil, 0, newFailures(v.cfg)); err == nil || ran {
		t.Error(err, ran)
	}
}

func TestRefusedCallsDoNotRun(t *testing.T) {
	asked := &content.FunctionCall{}
	ran := false
	j := jobsOf(fn("f", func(context.Context, json.RawMessage) (any, error) { ran = true; return nil, nil }))[0]
	j.asked, j.refuse = asked, func(context.Context) string { return "no" }
	outs, _, err := (&invoker{}).runAll(t.Context(), []job{j}, nil, 0, newFailures(LoopConfig{}))
	if err != nil || ran || string(outs[0].result) != `"no"` || !asked.InformationalOnly || !j.call.InformationalOnly {
		t.Error(outs, err, ran)
	}
}

// byValue is a tool whose type can't be compared.
type byValue struct {
	onlyDeclared
	_ []int
}

func TestMergeTools(t *testing.T) {
	a, b, c := fixed("a", 1, nil), fixed("b", 1, nil), fixed("c", 1, nil)
	b2 := RequireApproval(b)
	odd := byValue{onlyDeclared: onlyDeclared{"odd"}}
	base := &Options{Tools: []Tool{a, b}}
	for _, test := range []struct {
		name string
		left [][]Tool
		want []Tool
	}{
		{"nothing changed", [][]Tool{{a, b}, {a, b}}, []Tool{a, b}},
		{"both added", [][]Tool{{a, b, c}, {a, b, onlyDeclared{"d"}}}, []Tool{a, b, c, onlyDeclared{"d"}}},
		{"one removed, one added", [][]Tool{{b}, {a, b, c}}, []Tool{b, c}},
		{"replaced", [][]Tool{{a, b2}, {a, b}}, []Tool{a, b2}},
		{"one emptied", [][]Tool{nil, {a, b, c}}, []Tool{c}},
		{"one that can't be compared", [][]Tool{{a, b, odd}}, []Tool{a, b, odd}},
		{"a nil tool", [][]Tool{{a, nil}}, []Tool{a, nil}},
	} {
		next := base
		for _, left := range test.left {
			next = mergeTools(base, next, &Options{Tools: left})
		}
		if !reflect.DeepEqual(names(next.Tools), names(test.want)) || NeedsApproval(lastNamed("b", next.Tools)) != NeedsApproval(lastNamed("b", test.want)) {
			t.Errorf("%s: %v", test.name, names(next.Tools))
		}
	}
	if len(base.Tools) != 2 {
		t.Error("the base changed")
	}
}

func names(tools []Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, nameOf(t))
	}
	return out
}

func TestConcurrentFunctionsAddTools(t *testing.T) {
	adds := func(name string) Function {
		return fn(name, func(ctx context.Context, _ json.RawMessage) (any, error) {
			inv := InvocationOf(ctx)
			inv.Options.Tools = append(inv.Options.Tools, fixed("by_"+name, nil, nil))
			return nil, nil
		})
	}
	for _, concurrent := range []bool{false, true} {
		v := &invoker{LoopConfig{Concurrent: concurrent}}
		_, next, err := v.runAll(t.Context(), jobsOf(adds("a"), adds("b")), &Options{}, 0, newFailures(v.cfg))
		if err != nil || !reflect.DeepEqual(names(next.Tools), []string{"by_a", "by_b"}) {
			t.Errorf("concurrent %v: %v %v", concurrent, names(next.Tools), err)
		}
	}
}
