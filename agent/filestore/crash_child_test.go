package filestore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// The test binary, run with a life in this variable, runs an agent once and is killed on the
// way.
const childLife = "FILESTORE_TEST_LIFE"

// life describes one process: one run of an agent on the thread of the test.
type life struct {
	Dir        string // directory of the threads
	Effects    string // file that records what tools did
	Kind       string // kind of agent, one of scenes
	Service    string // folder of the approval service, for an agent with a holder
	Stream     bool
	Concurrent bool
	Message    json.RawMessage `json:",omitempty"` // in .NET's format, if any
}

const threadID = "a"

// live runs the agent. The last line of its output is the result.
func live(text string) error {
	var l life
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return err
	}
	store, err := New(l.Dir)
	if err != nil {
		return err
	}
	w := &worker{life: l, in: bufio.NewReader(os.Stdin)}
	a, err := w.agent(gated{store, w})
	if err != nil {
		return err
	}
	err = w.run(context.Background(), a, store)
	switch {
	case errors.Is(err, agent.ErrConflict):
		fmt.Println("conflict")
	case err != nil:
		return err
	default:
		fmt.Println("end")
	}

	return nil
}

func (w *worker) run(ctx context.Context, a agent.Agent, store *Store) error {
	t, err := store.Load(ctx, threadID)
	if errors.Is(err, agent.ErrNoThread) {
		t, err = agent.NewThread(threadID), nil
	}
	if err != nil {
		return err
	}
	var said []*content.Message
	if w.Message != nil {
		if said, err = content.DotNet().DecodeMessages(w.Message); err != nil {
			return err
		}
	}
	if w.Stream {
		_, err = agent.Collect(a.Stream(ctx, t, said...))
	} else {
		_, err = a.Run(ctx, t, said...)
	}
	return err
}

// worker is the process with its tools.
type worker struct {
	life
	mu sync.Mutex
	in *bufio.Reader
}

// gate reports to the parent which point the process has reached, and waits to be killed or
// released.
func (w *worker) gate(point string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println("at " + point)
	if _, err := w.in.ReadString('\n'); err != nil {
		os.Exit(3) // the parent has exited
	}
}

// gated is a store that stops before and after each save.
type gated struct {
	*Store
	w *worker
}

func (g gated) Save(ctx context.Context, t *agent.Thread) error {
	g.w.gate("save")
	if err := g.Store.Save(ctx, t); err != nil {
		return err
	}
	g.w.gate("saved")
	return nil
}

// act writes a line, durably, and stops before and after.
func (w *worker) act(line string) error {
	w.gate("act " + line)
	f, err := os.OpenFile(w.Effects, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	w.gate("acted " + line)
	return nil
}

func (w *worker) pay() agent.Function { return w.acting("pay") }

// acting returns a tool that acts on its arguments.
func (w *worker) acting(name string) agent.Function {
	return agent.NewFunction(name, "Acts.", nil, func(_ context.Context, args json.RawMessage) (any, error) {
		return "paid", w.act(lineOf(args))
	})
}

// lineOf returns the line that a call writes: its number, which is unique.
func lineOf(arguments json.RawMessage) string {
	var in struct{ N int }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return err.Error()
	}
	return strconv.Itoa(in.N)
}

func look() agent.Function {
	return agent.NewFunction("look", "Looks.", nil, func(context.Context, json.RawMessage) (any, error) {
		return "seen", nil
	})
}

// patient is a tool that asks before it acts.
type patient struct{ w *worker }

func (patient) Definition() agent.Definition { return agent.Definition{Name: "wait"} }

func (patient) Invoke(context.Context, *content.FunctionCall) (any, error) {
	return nil, &agent.Suspend{State: json.RawMessage(`1`),
		Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "sure?"}}}
}

func (p patient) Resume(
	_ context.Context, call *content.FunctionCall, _ json.RawMessage, _ []content.InputResponse,
) (any, error) {
	return "paid", p.w.act(lineOf(call.Arguments))
}

// The questions of curious, in order.
const (
	sureAsked = "sure?"
	whoAsked  = "who?"
)

// curious is a tool that asks people two questions at once, and acts when mara has answered
// both.
type curious struct{ w *worker }

func (curious) Definition() agent.Definition { return agent.Definition{Name: "ask"} }

func (curious) Invoke(context.Context, *content.FunctionCall) (any, error) {
	return nil, &agent.Suspend{
		State: json.RawMessage(`1`),
		Requests: []content.InputRequest{
			&content.TextApprovalRequest{RequestID: "x", Text: sureAsked},
			&content.StructuredInputRequest{RequestID: "y", Text: whoAsked,
				Schema: json.RawMessage(`{"type":"string"}`)},
		},
	}
}

func (c curious) Resume(
	_ context.Context, call *content.FunctionCall, _ json.RawMessage, answers []content.InputResponse,
) (any, error) {
	if len(answers) != 2 {
		return nil, fmt.Errorf("%d answers", len(answers))
	}
	yes, _ := answers[0].(*content.TextApprovalResponse)
	name, _ := answers[1].(*content.StructuredInputResponse)
	if yes == nil || !yes.Approved || yes.By != "mara" || name == nil || string(name.Data) != `"Ann"` ||
		name.By != "mara" {
		return nil, fmt.Errorf("the answers are %+v and %+v", answers[0], answers[1])
	}

	return "paid", c.w.act(lineOf(call.Arguments))
}

// story is a model that decides from the messages alone, as real models do: it makes the calls
// of a turn when those of the previous turn have results.
type story [][]*content.FunctionCall

// call returns the call with this number.
func call(name string, n int) *content.FunctionCall {
	return &content.FunctionCall{CallID: callID(strconv.Itoa(n)), Name: name,
		Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

func callID(line string) string { return "c" + line }

// deputy returns the call of an agent that is a tool.
func deputy(name string) *content.FunctionCall {
	return &content.FunctionCall{CallID: callID(name), Name: name, Arguments: json.RawMessage(`{"input":"pay"}`)}
}

func (s story) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	results, err := readHistory(messages)
	if err != nil {
		return nil, err
	}
	m := content.AssistantText("done")
	for _, turn := range s {
		if results[turn[0].CallID] == "" {
			m = content.NewMessage(content.Assistant)
			for _, c := range turn {
				m.Contents = append(m.Contents, content.CloneCall(c))
			}
			break
		}
	}

	return &agent.Response{Messages: []*content.Message{m}}, nil
}

func (s story) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := s.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range resp.Messages[0].Contents {
			if !yield(&agent.Update{Role: content.Assistant, Contents: []content.Content{c}}, nil) {
				return
			}
		}
	}
}

// readHistory returns the result of each call. It returns an error for a history that a strict
// provider would reject: each call must have exactly one result before anything else follows,
// and the first message must be the user's.
func readHistory(messages []*content.Message) (map[string]string, error) {
	results := map[string]string{}
	var waiting []string
	if len(messages) > 0 && messages[0].Role != content.User {
		return nil, fmt.Errorf("the history begins with the %s", messages[0].Role)
	}
	for i, m := range messages {
		if len(waiting) > 0 && m.Role != content.ToolRole {
			return nil, fmt.Errorf("message %d should be the results of %v", i, waiting)
		}
		for _, c := range m.Contents {
			switch c := c.(type) {
			case *content.FunctionCall:
				waiting = append(waiting, c.CallID)
			case *content.FunctionResult:
				at := slices.Index(waiting, c.CallID)
				if at < 0 || results[c.CallID] != "" {
					return nil, fmt.Errorf("message %d has a result of %s too many", i, c.CallID)
				}
				waiting = slices.Delete(waiting, at, at+1)
				results[c.CallID] = strings.Trim(string(c.Result), `"`)
			case content.InputRequest, content.InputResponse:
				return nil, fmt.Errorf("message %d holds a %T", i, c)
			}
		}
	}

	if len(waiting) > 0 {
		return nil, fmt.Errorf("there are no results of %v", waiting)
	}
	return results, nil
}

// agent makes the agent of the life.
func (w *worker) agent(store agent.ThreadStore) (agent.Agent, error) {
	pay, wait := agent.RequireApproval(w.pay()), agent.RequireApproval(patient{w})
	switch w.Kind {
	case "chat":
		s := story{{call("pay", 1), call("pay", 2), call("wait", 3), call("look", 4)},
			{call("pay", 5), call("pay", 6)}}
		return w.chat("clerk", s, agent.LoopConfig{}, store, pay, wait, look()), nil
	case "nested":
		teller := w.chat("teller", story{{call("pay", 1), call("wait", 2)}, {call("pay", 3)}}, agent.LoopConfig{},
			nil, pay, wait)
		bank := w.chat("bank", story{{deputy("teller")}}, agent.LoopConfig{}, nil,
			agent.RequireApproval(agent.AsTool(teller, agent.NestedConfig{})))
		return w.chat("clerk", story{{deputy("bank"), call("look", 9)}}, agent.LoopConfig{}, store,
			agent.AsTool(bank, agent.NestedConfig{}), look()), nil
	case "flow":
		return agent.NewFlow("flow", agent.FlowConfig{Store: store}, w.flow), nil
	case "nested flow":
		tool := agent.RequireApproval(
			agent.AsTool(agent.NewFlow("flow", agent.FlowConfig{}, w.flow), agent.NestedConfig{}),
		)
		return w.chat("clerk", story{{deputy("flow")}}, agent.LoopConfig{}, store, tool), nil
	case "held":
		decider, holder, err := w.ask()
		s := story{{call("pay", 1), call("pay", 2), call("look", 4)}, {call("pay", 5), call("pay", 6)}}
		return w.chat("clerk", s, agent.LoopConfig{Decider: decider, Holder: holder}, store, w.pay(), look()), err
	case "questions":
		decider, people, err := w.ask()
		cfg := agent.LoopConfig{Decider: decider,
			Questions: &agent.HeldQuestions{People: people, Asker: "clerk", Groups: []string{"risk"}}}
		s := story{{call("ask", 1), call("ask", 2), call("look", 4)}, {call("ask", 3)}}
		return w.chat("clerk", s, cfg, store, curious{w}, look()), err
	}

	if w.Kind == "let" {
		_, holder, err := w.ask()
		s := story{{call("look", 1), call("look", 2)}, {call("look", 3)}}
		return w.chat("clerk", s, agent.LoopConfig{Decider: careful{}, Holder: holder}, store, w.acting("look")), err
	}

	return nil, fmt.Errorf("no agent %q", w.Kind)
}

func (w *worker) chat(
	name string, model agent.ChatClient, cfg agent.LoopConfig, store agent.ThreadStore, tools ...agent.Tool,
) agent.Agent {
	cfg.Concurrent = w.Concurrent
	return agent.NewChatAgent(agent.NewFunctionInvoking(model, cfg),
		agent.ChatAgentConfig{Name: name, Tools: tools, Store: store})
}

// flow has three steps with two questions between them. It reports steps that were interrupted.
func (w *worker) flow(ctx context.Context, f *agent.Flow) error {
	if err := w.step(ctx, f, "1"); err != nil {
		return err
	}
	if err := f.Approve(ctx, "may", "go on?"); err != nil {
		return err
	}
	if err := w.step(ctx, f, "2"); err != nil {
		return err
	}
	var who struct{ Name string }
	if err := f.Data(ctx, "who", "who?", json.RawMessage(`{"type":"object","required":["name"]}`), &who); err != nil {
		return err
	}
	if err := w.step(ctx, f, "3"); err != nil {
		return err
	}
	f.Say("done")
	return nil
}

func (w *worker) step(ctx context.Context, f *agent.Flow, key string) error {
	result := "paid"
	err := f.Step(ctx, "pay "+key, func(context.Context) (any, error) { return "paid", w.act(key) }, &result)
	if errors.Is(err, agent.ErrStepLost) {
		result, err = "not known", nil
	}
	f.Say(key + " " + result)
	return err
}
