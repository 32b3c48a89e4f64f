package agent

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

type anyFunc func(ctx context.Context, arguments json.RawMessage) (any, error)

func fn(name string, run anyFunc) Function { return NewFunction(name, "", nil, run) }

func fixed(name string, result any, err error) Function {
	return fn(name, func(context.Context, json.RawMessage) (any, error) { return result, err })
}

// toldOf runs one call and returns the result that the model gets.
func toldOf(t *testing.T, detailed bool, f Tool, arguments string) (string, Outcome) {
	t.Helper()
	call := &content.FunctionCall{CallID: "c", Name: "f"}
	if arguments != "" {
		call.Arguments = json.RawMessage(arguments)
	}
	o := Invoke(t.Context(), Job{Call: call, Tool: f}, nil, 0)
	return string(o.Content(call, detailed).Result), o
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
		got, _ := toldOf(t, false, fixed("f", test.result, test.err), "")
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDetailedErrors(t *testing.T) {
	if got, _ := toldOf(t, true, fixed("f", nil, errors.New(`a "b"`)),
		""); got != `"Error: Function failed. Exception: a \"b\""` {
		t.Error(got)
	}

	panics := fn("f", func(context.Context, json.RawMessage) (any, error) { panic("boom") })
	if got, o := toldOf(t, true, panics, ""); got != `"Error: Function failed. Exception: the function panicked: boom"` ||
		o.Err == nil ||
		o.Unknown {
		t.Error(got, o)
	}
}

func TestUnknownAndDeclaredOnly(t *testing.T) {
	if got, o := toldOf(t, false, nil, ""); got != `"Error: Requested function \"f\" not found."` || !o.Unknown ||
		o.Err != nil {
		t.Error(got, o)
	}
	if got, _ := toldOf(t, false, onlyDeclared{"f"}, ""); got != `"Error: Requested function \"f\" not found."` {
		t.Error(got)
	}
}

type onlyDeclared struct{ name string }

func (d onlyDeclared) Definition() Definition { return Definition{Name: d.name} }

func TestBadArgumentsDoNotRun(t *testing.T) {
	ran := 0
	f := fn("f", func(context.Context, json.RawMessage) (any, error) {
		ran++
		return nil, nil
	})
	for _, bad := range []string{`[]`, `"x"`, `null`, `{"a":1,"a":2}`, `{"a":`, `{} {}`, "{\"a\":\"\xff\"}"} {
		got, o := toldOf(t, false, f, bad)
		if _, is := errors.AsType[*content.BadError](o.Err); !is || got != `"Error: Function failed."` {
			t.Errorf("%s: %s, %v", bad, got, o.Err)
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
	o := Invoke(t.Context(), Job{Call: call, Tool: f, Approval: "ann"}, opt, 7)
	if !o.Stop || o.Options.Model != "after" || len(o.Options.Tools) != 2 {
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
	if _, o := toldOf(t, false, f, ""); o.Options == nil || o.Stop {
		t.Errorf("%+v: a failing function does not stop a run, and options are never nil", o)
	}
}

// asker suspends once and then returns its answers.
type asker struct{ Function }

func (asker) Resume(
	_ context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	if string(state) == `"panic"` {
		panic("resumed")
	}
	return []any{state, len(answers)}, nil
}

type around struct{ Function }

func (a around) Unwrap() Tool { return a.Function }

func TestSuspend(t *testing.T) {
	suspends := fixed("f", nil, &Suspend{State: json.RawMessage(`1`)})
	if _, o := toldOf(t, false, suspends, ""); !errors.Is(o.Err, errNotResumer) || o.Suspend != nil {
		t.Errorf("no Resumer: %+v", o)
	}
	tool := RequireApproval(around{asker{suspends}})
	if _, o := toldOf(t, false, tool, ""); o.Suspend == nil || string(o.Suspend.State) != `1` {
		t.Errorf("a Resumer inside wrappers: %+v", o)
	}
	j := Job{Call: &content.FunctionCall{Name: "f"}, Tool: tool}
	if o := resume(t.Context(), j, nil, json.RawMessage(`1`), make([]content.InputResponse, 2)); string(
		o.Result,
	) != `[1,2]` ||
		o.Err != nil {
		t.Errorf("resumed: %+v", o)
	}

	if o := resume(t.Context(), j, nil, json.RawMessage(`"panic"`), nil); o.Err == nil {
		t.Error("a panic of Resume is no error")
	}
	for _, none := range []Tool{nil, suspends, onlyDeclared{"f"}, around{suspends}} {
		if o := resume(t.Context(), Job{Call: j.Call, Tool: none}, nil, nil, nil); !errors.Is(o.Err, errNotResumer) {
			t.Errorf("%T: %v", none, o.Err)
		}
	}
}

func TestFindTool(t *testing.T) {
	first := fixed("f", 1, nil)
	second := fixed("f", 2, nil)
	extra := fixed("f", 3, nil)
	opt := &Options{Tools: []Tool{nil, first, second, fixed("F", 4, nil)}}
	if FindTool("f", opt, []Tool{extra}) != Tool(second) || FindTool("f", nil, []Tool{extra}) != Tool(extra) ||
		FindTool("g", opt, []Tool{extra}) != nil {
		t.Error("the last tool of exactly that name wins in the request, and the request over the loop")
	}
}

// byValue is a tool whose type is not comparable.
type byValue struct {
	onlyDeclared
	_ []int
}

func TestMergeTools(t *testing.T) {
	a := fixed("a", 1, nil)
	b := fixed("b", 1, nil)
	c := fixed("c", 1, nil)
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
		if !reflect.DeepEqual(names(next.Tools), names(test.want)) ||
			NeedsApproval(lastNamed("b", next.Tools)) != NeedsApproval(lastNamed("b", test.want)) {
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
