package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// runMarked runs calls of marked tools, approved, and tells what the model gets.
func runMarked(t *testing.T, r runner, cfg LoopConfig, calls []content.Content, tools ...Tool) (string, *Response, *Thread) {
	t.Helper()
	k := talk(t, said(calls...), said(text("ok")))
	for i, tool := range tools {
		tools[i] = RequireApproval(tool.(Function))
	}
	a := chat(k, cfg, nil, tools...)
	th := NewThread("t")
	resp := r.run(a, th, content.UserText("x"))
	reply := answers()
	for i := range resp.UserInputRequests() {
		reply.Contents = append(reply.Contents, approvalOf(t, resp, i).CreateApproval(""))
	}
	resp, err := r.try(a, th, reply)
	if err != nil {
		t.Fatal(err)
	}
	if len(k.seen) < 2 {
		return "", resp, th
	}
	return tell(coalesced(k.seen[1])), resp, th
}

func toolOf(name string, run func(ctx context.Context) (any, error)) Function {
	return NewFunction(name, "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) { return run(ctx) })
}

func TestToolsThatMisbehave(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context) (any, error){
		"panic":        func(context.Context) (any, error) { panic("boom") },
		"out of range": func(context.Context) (any, error) { var none []int; return none[len(none)], nil },
		"goexit":       func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
		"a function":   func(context.Context) (any, error) { return func() {}, nil },
		"not a number": func(context.Context) (any, error) { return math.NaN(), nil },
		"raw, no JSON": func(context.Context) (any, error) { return json.RawMessage(`{`), nil },
		"error":        func(context.Context) (any, error) { return "secret", errors.New("secret") },
		"suspend": func(context.Context) (any, error) {
			return nil, &Suspend{Requests: []content.InputRequest{mcpRequest("x")}}
		},
		"wrapped suspend": func(context.Context) (any, error) { return nil, fmt.Errorf("wrapped: %w", &Suspend{}) },
	} {
		for _, concurrent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bothWays(t, func(t *testing.T, r runner) {
					var c counted
					got, _, th := runMarked(t, r, LoopConfig{Concurrent: concurrent}, says(call("1", "bad", ""), call("2", "good", "")), toolOf("bad", run), c.tool("good"))
					expect(t, "sent", got, "user: \"x\"\nassistant: 1=bad() 2=good()\ntool: 1→\"Error: Function failed.\" 2→\"did good\"\n")
					if strings.Contains(got, "secret") || len(th.Pending()) > 0 {
						t.Error(got)
					}
				})
			})
		}
	}
}

func TestResultsOfTools(t *testing.T) {
	for name, tt := range map[string]struct {
		result any
		want   string
	}{
		"nothing":   {nil, `"Success: Function completed."`},
		"null":      {json.RawMessage(`null`), `null`},
		"raw":       {json.RawMessage(`{"a":1.50}`), `{"a":1.50}`},
		"html":      {"<b>&", `"<b>&"`},
		"a number":  {1, `1`},
		"empty raw": {json.RawMessage(nil), `"Success: Function completed."`},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, r runner) {
				got, _, _ := runMarked(t, r, LoopConfig{}, says(call("1", "f", "")), toolOf("f", func(context.Context) (any, error) { return tt.result, nil }))
				expect(t, "sent", got, "user: \"x\"\nassistant: 1=f()\ntool: 1→"+tt.want+"\n")
			})
		})
	}
}

func TestModelIsToldOfErrorsInDetail(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		got, _, _ := runMarked(t, r, LoopConfig{DetailedErrors: true}, says(call("1", "f", "")), toolOf("f", func(context.Context) (any, error) { return nil, errors.New("no ink") }))
		expect(t, "sent", got, "user: \"x\"\nassistant: 1=f()\ntool: 1→\"Error: Function failed. Exception: no ink\"\n")
	})
}

// TestCallsThatNobodyCanRun gives marked tools calls that can't be asked about: they are refused,
// and no one is asked.
func TestCallsThatNobodyCanRun(t *testing.T) {
	for args, part := range map[string]string{`{oops`: "arguments", `[1]`: "expected an object", `{"a":1,"a":2}`: "arguments", `"x"`: "expected an object", `{"a":1e999}`: "arguments"} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			k := talk(t, said(call("1", "pay", args), call("2", "nothing", ""), call("3", "Pay", "")), said(text("ok")))
			a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
			th := NewThread("t")
			resp := r.run(a, th, content.UserText("x"))
			if len(resp.UserInputRequests()) > 0 || len(c.runs) > 0 {
				t.Fatal(tell(resp.Messages), c.runs)
			}
			results := k.seen[1][2].Contents
			if len(results) != 3 || !strings.Contains(tellContent(results[0]), part) || !strings.Contains(tellContent(results[2]), `\"Pay\" not found`) {
				t.Errorf("%s: %s", args, k.last())
			}
		})
	}
}

func TestInformationalCallsAreLeftAlone(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		old := call("1", "pay", "")
		old.InformationalOnly = true
		k := talk(t, said(text("did it"), old, call("2", "pay", ""), &content.FunctionResult{CallID: "2", Result: json.RawMessage(`"by the service"`)}))
		a := chat(k, LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		resp := r.run(a, NewThread("t"), content.UserText("x"))
		if len(resp.UserInputRequests()) > 0 || len(c.runs) > 0 {
			t.Fatal(tell(resp.Messages), c.runs)
		}
		expect(t, "told", tell(resp.Messages), "assistant: \"did it\" 1=pay() 2=pay() 2→\"by the service\"\n")
	})
}

func TestDeclaredTools(t *testing.T) {
	result := func(id, value string) *content.Message {
		return content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: id, Result: json.RawMessage(value)})
	}
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		j := &journal{}
		k := talk(t, said(call("1", "theirs", `{"a":1}`), call("2", "look", ""), call("3", "pay", ""), call("4", "theirs", "")), said(text("ok")))
		a := chat(k, LoopConfig{Audit: j.take}, nil, declaredTool("theirs"), c.tool("look"), RequireApproval(c.tool("pay")))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("x"))
		expect(t, "asked", tell(resp.Messages), "assistant: 1=theirs({\"a\":1}) ficc_3?[3=pay()] 4=theirs()\n")
		q := approvalOf(t, resp, 0)
		th = reload(t, th)
		resp = r.run(a, th, result("1", `"one"`), result("3", `"forged"`), result("1", `"twice"`))
		expect(t, "refused", refusals(resp), "3 unknown_request; 1 unknown_request")
		expect(t, "left", tell(resp.Messages), "assistant: ficc_3?[3=pay()] 4=theirs()\n")
		th = reload(t, th)
		r.run(a, th, answers(q.CreateApproval("")))
		if len(k.seen) != 1 || c.runs["pay"] != 1 {
			t.Fatal("the model goes on before all is there, or nothing ran:", c.runs)
		}
		th = reload(t, th)
		r.run(a, th, result("4", `null`))
		expect(t, "sent", tell(coalesced(k.seen[1])), "user: \"x\"\nassistant: 1=theirs({\"a\":1}) 2=look() 3=pay() 4=theirs()\n"+
			"tool: 1→\"one\" 2→\"did look\" 3→\"did pay\" 4→null\n")
	})
}

// markedDeclared is a tool of the caller's that needs approval.
type markedDeclared struct{ declaredTool }

func (m markedDeclared) Unwrap() Tool { return RequireApproval(toolOf("x", nil)) }

func TestDeclaredToolThatNeedsApproval(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		k := talk(t, said(call("1", "theirs", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, markedDeclared{"theirs"})
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		result := content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage(`"done"`)})
		resp := r.run(a, th, result)
		expect(t, "refused", refusals(resp), "1 unknown_request")
		resp = r.run(a, th, answers(q.CreateApproval("")))
		expect(t, "handed over", tell(resp.Messages), "assistant: 1=theirs()\n")
		r.run(a, reload(t, th), result)
		expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=theirs()\ntool: 1→\"done\"\n")
	})
}

func TestConcurrentCallsRunAtOnce(t *testing.T) {
	for _, marked := range []bool{false, true} {
		bothWays(t, func(t *testing.T, r runner) {
			var meet sync.WaitGroup
			meet.Add(2)
			wait := func(ctx context.Context) (any, error) {
				meet.Done()
				meet.Wait() // would never come back if one ran after the other
				return InvocationOf(ctx).Approval, nil
			}
			calls := says(call("1", "a", ""), call("2", "b", ""))
			if marked {
				got, _, _ := runMarked(t, r, LoopConfig{Concurrent: true}, calls, toolOf("a", wait), toolOf("b", wait))
				expect(t, "sent", got, "user: \"x\"\nassistant: 1=a() 2=b()\ntool: 1→\"user\" 2→\"user\"\n")
				return
			}
			k := talk(t, said(calls...), said(text("ok")))
			r.run(chat(k, LoopConfig{Concurrent: true}, nil, toolOf("a", wait), toolOf("b", wait)), NewThread("t"), content.UserText("x"))
			expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=a() 2=b()\ntool: 1→\"\" 2→\"\"\n")
		})
	}
}

func TestConcurrentHarmlessCallsChangeTools(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		add := toolOf("add", func(ctx context.Context) (any, error) {
			inv := InvocationOf(ctx)
			inv.Options.Tools = append(inv.Options.Tools, c.tool("extra"))
			return nil, nil
		})
		k := talk(t, said(call("1", "add", ""), call("2", "die", "")), said(call("3", "extra", "")), said(text("ok")))
		die := toolOf("die", func(context.Context) (any, error) { runtime.Goexit(); return nil, nil })
		r.run(chat(k, LoopConfig{Concurrent: true}, nil, add, die), NewThread("t"), content.UserText("x"))
		if c.runs["extra"] != 1 {
			t.Error(c.runs, k.last())
		}
	})
}

func halting(name string) Function {
	return toolOf(name, func(ctx context.Context) (any, error) { InvocationOf(ctx).Stop = true; return "halted", nil })
}

// TestStop ends runs: each call has a result, and the next run goes on.
func TestStop(t *testing.T) {
	stopped := `"` + textStopped + `"`
	for _, marked := range []bool{false, true} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			k := talk(t, said(call("1", "look", ""), call("2", "halt", ""), call("3", "look", "")), said(text("ok")))
			look, halt := Tool(c.tool("look")), Tool(halting("halt"))
			if marked {
				look, halt = RequireApproval(c.tool("look")), RequireApproval(halting("halt"))
			}
			a := chat(k, LoopConfig{}, nil, look, halt)
			th := NewThread("t")
			resp := r.run(a, th, content.UserText("x"))
			if marked {
				resp = r.run(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""), approvalOf(t, resp, 1).CreateApproval(""), approvalOf(t, resp, 2).CreateApproval("")))
			}
			calls := "assistant: 1=look() 2=halt() 3=look()\n"
			if len(k.seen) != 1 || c.runs["look"] != 1 || !strings.HasPrefix(tell(resp.Messages), calls) {
				t.Fatalf("%d turns, ran %v\n%s", len(k.seen), c.runs, tell(resp.Messages))
			}
			r.run(a, reload(t, th), content.UserText("y"))
			for _, want := range []string{"1→\"did look\"", "2→\"halted\"", "3→" + stopped} {
				if !strings.Contains(k.last(), want) {
					t.Errorf("%s is missing:\n%s", want, k.last())
				}
			}
		})
	}
}

func TestStopBesideARequest(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "halt", ""), call("2", "pay", ""), call("3", "look", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, halting("halt"), RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		r.run(a, th, answers(q.CreateApproval("")))
		if c.runs["pay"] != 1 || c.runs["look"] != 0 || len(k.seen) != 2 {
			t.Errorf("ran %v, %d turns", c.runs, len(k.seen))
		}
	})
}

func TestMaxTurns(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		again := said(call("1", "look", ""), call("2", "theirs", ""), call("3", "pay", ""))
		k := talk(t, said(call("0", "look", "")), again, said(text("ok")))
		a := chat(k, LoopConfig{MaxTurns: 1}, nil, c.tool("look"), declaredTool("theirs"), RequireApproval(c.tool("pay")))
		th := NewThread("t")
		resp := r.run(a, th, content.UserText("x"))
		if len(resp.UserInputRequests()) > 0 || c.runs["look"] != 1 || len(k.seen) != 2 {
			t.Fatal(tell(resp.Messages), c.runs, len(k.seen))
		}
		if offered := k.options[1].Tools; len(offered) != 1 || offered[0].Definition().Name != "theirs" {
			t.Errorf("offered in the last turn: %v", offered)
		}
		limit := `"` + textLimit + `"`
		expect(t, "told", tell(resp.Messages), "assistant: 0=look()\ntool: 0→\"did look\"\nassistant: 1=look() 2=theirs() 3=pay()\n"+
			"tool: 1→"+limit+" 2→"+limit+" 3→"+limit+"\n")
		r.run(a, reload(t, th), content.UserText("y"))
	})
}

func TestMaxTurnsCountAnew(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		k := talk(t, said(call("1", "pay", "")), said(call("2", "look", "")), said(text("ok")))
		a := chat(k, LoopConfig{MaxTurns: 1}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		resp := r.run(a, th, answers(q.CreateApproval("")))
		if c.runs["look"] != 1 || !strings.HasSuffix(tell(resp.Messages), "assistant: \"ok\"\n") {
			t.Error(tell(resp.Messages))
		}
	})
}

func TestMaxErrors(t *testing.T) {
	boom := errors.New("boom")
	bad := toolOf("bad", func(context.Context) (any, error) { return nil, boom })
	bothWays(t, func(t *testing.T, r runner) {
		for max, turns := range map[int]int{0: 4, -1: 1, 2: 3} {
			turn := said(call("1", "bad", ""), call("2", "bad", ""))
			k := talk(t, turn, turn, turn, turn, turn, turn)
			_, err := r.try(chat(k, LoopConfig{MaxErrors: max}, nil, bad), NewThread("t"), content.UserText("x"))
			var all *FunctionErrors
			if !errors.As(err, &all) || !errors.Is(err, boom) || len(k.seen) != turns {
				t.Errorf("MaxErrors %d: %v after %d turns", max, err, len(k.seen))
			}
		}
	})
}

func TestErrorsOfApprovedCallsCount(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		n := 0
		bad := toolOf("bad", func(context.Context) (any, error) { n++; return nil, errors.New("boom") })
		k := talk(t, said(call("1", "bad", "")), said(text("ok")))
		a := chat(k, LoopConfig{MaxErrors: -1}, nil, RequireApproval(bad))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		var all *FunctionErrors
		if _, err := r.try(a, th, answers(q.CreateApproval(""))); !errors.As(err, &all) {
			t.Fatal(err)
		}
		r.run(a, reload(t, th))
		if n != 1 || !strings.Contains(k.last(), `1→"Error: Function failed."`) {
			t.Errorf("ran %d times\n%s", n, k.last())
		}
	})
}

func TestHarmlessCallThatIsCancelled(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		bad := toolOf("bad", func(context.Context) (any, error) { cancel(); return nil, context.Canceled })
		k := talk(t, said(call("1", "bad", ""), call("2", "bad", "")))
		th := NewThread("t")
		if _, err := chat(k, LoopConfig{Concurrent: concurrent}, nil, bad).Run(ctx, th, content.UserText("x")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if len(th.Messages) != 0 {
			t.Error(tell(th.Messages))
		}
	}
}

func TestInvocationOfAnApprovedCall(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		seen := toolOf("f", func(ctx context.Context) (any, error) {
			inv := InvocationOf(ctx)
			return fmt.Sprintf("%s %d %s", inv.Call.CallID, inv.Turn, inv.Approval), nil
		})
		got, _, _ := runMarked(t, r, LoopConfig{}, says(call("1", "f", "")), seen)
		expect(t, "sent", got, "user: \"x\"\nassistant: 1=f()\ntool: 1→\"1 -1 user\"\n")
	})
}

// TestSuspendAndResume suspends twice, with each kind of request, in other processes.
func TestSuspendAndResume(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["n"]}`)
	for _, marked := range []bool{false, true} {
		bothWays(t, func(t *testing.T, r runner) {
			j := &journal{}
			tool := &asking{name: "wait", ask: func() *Suspend {
				return &Suspend{State: json.RawMessage(`{"step":1}`), Requests: []content.InputRequest{
					&content.TextApprovalRequest{RequestID: "consent", Text: "ok?"}, &content.StructuredInputRequest{RequestID: "data", Schema: schema},
					&content.ToolApprovalRequest{RequestID: "tool", Call: call("inner", "x", "")}}}
			}}
			tool.resumed = func(state json.RawMessage, given []content.InputResponse) (any, error) {
				if string(state) == `{"step":1}` {
					if len(given) != 3 || given[0].InputResponseTo() != "consent" || given[1].InputResponseTo() != "data" || given[2].InputResponseTo() != "tool" {
						t.Errorf("%v", given)
					}
					return nil, &Suspend{Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "consent", Text: "sure?"}}}
				}
				return fmt.Sprintf("%s %v", state, content.Rejects(given[0])), nil
			}
			k := talk(t, said(call("1", "wait", "")), said(text("ok")))
			a := chat(k, LoopConfig{Audit: j.take}, nil, tool)
			th := NewThread("t")
			if marked {
				a = chat(k, LoopConfig{Audit: j.take}, nil, RequireApproval(tool))
				th = reload(t, approveAll(t, r, a, th, content.UserText("x")))
			} else {
				r.run(a, th, content.UserText("x"))
			}
			th = reload(t, th)
			open := th.Pending()
			if len(open) != 3 {
				t.Fatal(open)
			}
			consent, data, inner := open[0].Request.(*content.TextApprovalRequest), open[1].Request.(*content.StructuredInputRequest), open[2].Request.(*content.ToolApprovalRequest)
			resp := r.run(a, th, answers(&content.StructuredInputResponse{RequestID: data.RequestID, Data: json.RawMessage(`{}`)},
				&content.ToolApprovalResponse{RequestID: consent.RequestID, Approved: true}, inner.CreateRejection("")))
			expect(t, "refused", refusals(resp), data.RequestID+" bad_answer; "+consent.RequestID+" wrong_kind")
			if len(resp.UserInputRequests()) != 2 {
				t.Fatal(tell(resp.Messages))
			}
			th = reload(t, th)
			r.run(a, th, answers(consent.CreateApproval("")))
			th = reload(t, th)
			r.run(a, th, answers(sure(data.CreateResponse(json.RawMessage(`{"n":1}`)))))
			th = reload(t, th)
			again := th.Pending()[0].Request.(*content.TextApprovalRequest)
			if again.RequestID == consent.RequestID || again.Text != "sure?" {
				t.Fatal(again)
			}
			r.run(a, th, answers(again.CreateRejection("")))
			expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=wait()\ntool: 1→\"null true\"\n")
			if strings.Count(j.tell(), "\nfinished 1\n") != 1 {
				t.Error(j.tell())
			}
		})
	}
}

// approveAll runs and approves what is asked.
func approveAll(t *testing.T, r runner, a Agent, th *Thread, messages ...*content.Message) *Thread {
	t.Helper()
	resp := r.run(a, th, messages...)
	reply := answers()
	for i := range resp.UserInputRequests() {
		reply.Contents = append(reply.Contents, approvalOf(t, resp, i).CreateApproval(""))
	}
	r.run(a, th, reply)
	return th
}

func TestSuspendWithoutRequests(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "wait", ask: func() *Suspend { return &Suspend{} }}
		got, _, th := runMarked(t, r, LoopConfig{}, says(call("1", "wait", "")), tool)
		expect(t, "sent", got, "user: \"x\"\nassistant: 1=wait()\ntool: 1→\"Error: Function failed.\"\n")
		if len(th.Pending()) > 0 {
			t.Error(th.Pending())
		}
	})
}

// TestSuspendedToolThatIsGone takes the tool away before its call is resumed.
func TestSuspendedToolThatIsGone(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "wait", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		k := talk(t, said(call("1", "wait", "")), said(text("ok")))
		th := NewThread("t")
		q := r.run(chat(k, LoopConfig{}, nil, tool), th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
		r.run(chat(k, LoopConfig{}, nil), reload(t, th), answers(q.CreateApproval("")))
		if !strings.Contains(k.last(), `1→"Error: Requested function \"wait\" not found."`) {
			t.Error(k.last())
		}
	})
}
