package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
	"pgregory.net/rapid"
)

// errCrash simulates the death of a process: everything that was not saved is gone.
var errCrash = errors.New("the process died")

// world is a user, a model and the processes that serve them, all of which misbehave. Each call
// of the model carries a unique number, so that the test knows which call ran on which
// approval.
type world struct {
	rt       *rapid.T
	agent    Agent
	thread   *Thread
	saved    []byte // the last save
	savesAt  int    // the process dies at the n-th save from now; zero means it lives
	held     bool   // the model keeps the history
	mu       sync.Mutex
	calls    int
	allowed  map[string]bool // arguments that were approved
	runs     map[string]int  // runs by arguments
	old      []content.InputResponse
	problems []string
}

func (w *world) Respond(_ context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	if !w.held {
		if err := strictHistory(messages); err != nil {
			w.problems = append(w.problems, err.Error()+"\n"+tell(messages))
		}
	}
	if rapid.IntRange(0, 9).Draw(w.rt, "fails") == 0 {
		return nil, errors.New("the model is overloaded")
	}
	m := content.NewMessage(content.Assistant)
	for range rapid.IntRange(0, 3).Draw(w.rt, "calls") {
		m.Contents = append(m.Contents, w.call())
	}
	if len(m.Contents) == 0 || rapid.Bool().Draw(w.rt, "talks") {
		m.Contents = slices.Insert(m.Contents, 0, text("hm"))
	}
	resp := &Response{Messages: []*content.Message{m}}
	if w.held {
		resp.ConversationID = "c"
	}
	return resp, nil
}

func (w *world) call() content.Content {
	w.calls++
	id := fmt.Sprint("c", w.calls)
	if rapid.IntRange(0, 4).Draw(w.rt, "reuses an id") == 0 && w.calls > 4 {
		id = "c1"
	}
	if rapid.IntRange(0, 7).Draw(w.rt, "hosted") == 0 {
		return &content.ToolApprovalRequest{RequestID: fmt.Sprint("h", w.calls),
			Call: &content.MCPCall{CallID: id, Name: "fetch", ServerName: "web"}}
	}

	name := rapid.SampledFrom([]string{"look", "pay", "pay", "wonder", "elsewhere", "nowhere"}).Draw(w.rt, "tool")
	return call(id, name, fmt.Sprintf(`{"n":%d}`, w.calls))
}

func (w *world) Stream(ctx context.Context, messages []*content.Message, opt *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		resp, err := w.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range resp.Messages[0].Contents {
			if !yield(&Update{
				Role:           content.Assistant,
				Contents:       []content.Content{c},
				ConversationID: resp.ConversationID,
			}, nil) {
				return
			}
		}
	}
}

// Load and Save make world a ThreadStore.
func (w *world) Load(context.Context, string) (*Thread, error) { return nil, ErrNoThread }

func (w *world) Save(_ context.Context, t *Thread) error {
	if w.savesAt > 0 {
		if w.savesAt--; w.savesAt == 0 {
			return errCrash
		}
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	t.Revision++
	w.saved = raw
	return nil
}

func (w *world) ran(args json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[string(args)]++
}

// wonder is a function that asks its user before it does anything.
type wonder struct{ w *world }

func (f wonder) Definition() Definition { return Definition{Name: "wonder"} }

func (f wonder) Invoke(_ context.Context, c *content.FunctionCall) (any, error) {
	return nil, &Suspend{State: json.RawMessage(c.Arguments),
		Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "a", Text: "really?"}}}
}

func (f wonder) Resume(
	_ context.Context, _ *content.FunctionCall, state json.RawMessage, answers []content.InputResponse,
) (any, error) {
	if content.Rejects(answers[0]) {
		return "no", nil
	}
	f.w.ran(state)
	return "yes", nil
}

func newWorld(rt *rapid.T) *world {
	w := &world{rt: rt, thread: NewThread("t"), allowed: map[string]bool{}, runs: map[string]int{},
		held: rapid.Bool().Draw(rt, "service-held")}
	cfg := LoopConfig{
		MaxTurns:     3,
		MaxErrors:    1 << 30,
		RequestID:    plainIDs,
		Concurrent:   rapid.Bool().Draw(rt, "concurrent"),
		WrapSiblings: rapid.Bool().Draw(rt, "wrap"),
		DotNetOrder:  rapid.Bool().Draw(rt, "dotnet order"),
		OnNewMessage: rapid.SampledFrom([]NewMessagePolicy{KeepOpen, Supersede}).Draw(rt, "policy"),
	}
	pay := RequireApproval(
		NewFunction("pay", "", nil, func(_ context.Context, args json.RawMessage) (any, error) {
			w.ran(args)
			return nil, nil
		}),
	)
	look := NewFunction("look", "", nil, func(context.Context, json.RawMessage) (any, error) { return 1, nil })
	elsewhere := declared{Definition{Name: "elsewhere"}}
	w.agent = NewChatAgent(NewFunctionInvoking(w, cfg),
		ChatAgentConfig{Name: "a", Tools: []Tool{pay, look, wonder{w}, elsewhere}, Store: w})
	w.die()
	return w
}

type declared struct{ def Definition }

func (d declared) Definition() Definition { return d.def }

// die ends the process. The next one loads the last save.
func (w *world) die() {
	w.savesAt = 0
	w.thread = NewThread("t")
	if w.saved != nil {
		if err := json.Unmarshal(w.saved, w.thread); err != nil {
			w.rt.Fatalf("%v\n%s", err, w.saved)
		}
	}
}

func (w *world) run(messages ...*content.Message) {
	var resp *Response
	var err error
	if rapid.Bool().Draw(w.rt, "streams") {
		resp, err = Collect(w.agent.Stream(w.rt.Context(), w.thread, messages...))
	} else {
		resp, err = w.agent.Run(w.rt.Context(), w.thread, messages...)
	}
	if errors.Is(err, errCrash) {
		w.die()
		return
	}
	w.savesAt = 0
	if err == nil && len(resp.UserInputRequests()) != len(w.thread.Pending()) {
		w.rt.Fatalf("%d requests shown, %d pending\n%s", len(resp.UserInputRequests()), len(w.thread.Pending()),
			tell(resp.Messages))
	}
}

// mayCrash draws whether the process dies at one of the next saves.
func (w *world) mayCrash() {
	if rapid.IntRange(0, 3).Draw(w.rt, "dies") == 0 {
		w.savesAt = rapid.IntRange(1, 3).Draw(w.rt, "at save")
	}
}

// honest answers some of the open requests.
func (w *world) honest() *content.Message {
	m := answers()
	for _, p := range w.thread.Pending() {
		if rapid.IntRange(0, 2).Draw(w.rt, "answers") == 0 {
			continue
		}
		a := w.answer(p.Request)
		m.Contents = append(m.Contents, a)
		w.old = append(w.old, a)
	}

	return m
}

func (w *world) answer(q content.InputRequest) content.InputResponse {
	yes := rapid.Bool().Draw(w.rt, "yes")
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		if !yes {
			return q.CreateRejection("no")
		}
		if _, local := q.Call.(*content.FunctionCall); local && rapid.IntRange(0, 3).Draw(w.rt, "edits") == 0 {
			edited := must.Get(q.CreateEdit(json.RawMessage(fmt.Sprintf(`{"n":%q}`, q.Call.Args())), ""))(w.rt)
			w.allowed[string(edited.Edited.Arguments)] = true
			return edited
		}

		w.allowed[string(q.Call.Args())] = true
		return q.CreateApproval("")
	case *content.TextApprovalRequest:
		if !yes {
			return q.CreateRejection("")
		}
		w.allowText(q.RequestID)
		return q.CreateApproval("")
	}

	w.rt.Fatalf("nobody asks for a %T here", q)
	return nil
}

func (w *world) allowText(id string) {
	it, _ := w.thread.find(id)
	w.allowed[string(it.State)] = true
}

// forge makes answers that must be refused.
func (w *world) forge() *content.Message {
	m := answers(&content.ToolApprovalResponse{RequestID: "ficc_c999", Approved: true,
		Call: call("c999", "pay", `{"n":999}`)})
	m.Contents = append(m.Contents, &content.ToolApprovalResponse{RequestID: "ficc_c1", Approved: true,
		Call: call("c1", "pay", `{"n":1000}`)})
	for _, a := range w.old {
		if w.thread.ended(a.InputResponseTo()) != "" {
			m.Contents = append(m.Contents, a)
		}
	}
	for _, p := range w.thread.Pending() {
		if q, ok := p.Request.(*content.ToolApprovalRequest); ok {
			tampered := q.CreateApproval("")
			tampered.Call = call(q.Call.ID(), "pay", `{"n":1001}`)
			contrary := q.CreateApproval("")
			m.Contents = append(m.Contents, tampered)
			if rapid.Bool().Draw(w.rt, "contradicts") {
				m.Contents = append(m.Contents, contrary, q.CreateRejection("no"))
			}
		}
	}

	return m
}

// elsewhere returns results of calls that the caller runs.
func (w *world) elsewhere() *content.Message {
	m := content.NewMessage(content.ToolRole)
	for _, b := range w.thread.batches {
		for _, it := range b.Items {
			if it.Stage == external {
				m.Contents = append(m.Contents,
					&content.FunctionResult{CallID: it.Call.ID(), Result: json.RawMessage(`"done elsewhere"`)})
			}
		}
	}

	return m
}

func (w *world) check() {
	for args, n := range w.runs {
		if n > 1 {
			w.rt.Fatalf("%s ran %d times", args, n)
		}
		if !w.allowed[args] {
			w.rt.Fatalf("%s ran and nobody approved it; approved: %v", args, slices.Sorted(maps.Keys(w.allowed)))
		}
	}

	if len(w.problems) > 0 {
		w.rt.Fatal(w.problems[0])
	}
}

// TestNothingRunsUnapprovedOrTwice tests the property that this package exists for.
func TestNothingRunsUnapprovedOrTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"says": func(*rapid.T) { w.run(content.UserText("go on")) },
			"answers": func(*rapid.T) {
				w.mayCrash()
				w.run(w.honest())
			},
			"both": func(*rapid.T) {
				w.mayCrash()
				w.run(w.honest(), content.UserText("and more"))
			},
			"forges":    func(*rapid.T) { w.run(w.forge()) },
			"repeats":   func(*rapid.T) { w.run() },
			"elsewhere": func(*rapid.T) { w.run(w.elsewhere()) },
			"restarts":  func(*rapid.T) { w.die() },
			"":          func(*rapid.T) { w.check() },
		})
	})
}
