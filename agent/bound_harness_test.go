package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// runner runs an agent with Run or with Stream.
type runner struct {
	*testing.T
	stream bool
}

// bothWays runs a test with Run and with Stream.
func bothWays(t *testing.T, test func(t runner)) {
	t.Helper()
	for name, stream := range map[string]bool{"run": false, "stream": true} {
		t.Run(name, func(t *testing.T) { test(runner{t, stream}) })
	}
}

// bothWaysOf runs bothWays as a subtest with a name.
func bothWaysOf(t *testing.T, name string, test func(t runner)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bothWays(t, test) })
}

func (t runner) try(a Agent, thread *Thread, messages ...*content.Message) (*Response, error) {
	if t.stream {
		return Collect(a.Stream(t.Context(), thread, messages...))
	}
	resp, err := a.Run(t.Context(), thread, messages...)
	if resp != nil {
		resp.Messages = coalesced(resp.Messages)
	}
	return resp, err
}

func (t runner) run(a Agent, thread *Thread, messages ...*content.Message) *Response {
	t.Helper()
	return must.Get(t.try(a, thread, messages...))(t)
}

// say runs an agent with a text of the user.
func (t runner) say(a Agent, thread *Thread, said string) *Response {
	t.Helper()
	return t.run(a, thread, content.UserText(said))
}

// yes approves a request.
func (t runner) yes(a Agent, thread *Thread, q content.InputRequest) *Response {
	t.Helper()
	if q, ok := q.(*content.TextApprovalRequest); ok {
		return t.run(a, thread, answers(q.CreateApproval("")))
	}
	return t.run(a, thread, answers(q.(*content.ToolApprovalRequest).CreateApproval("")))
}

// begin runs an agent on a new thread and returns the thread.
func (t runner) begin(a Agent, said string) *Thread {
	t.Helper()
	th := NewThread("t")
	t.run(a, th, content.UserText(said))
	return th
}

// asks runs an agent on a new thread until it requests approval of a call.
func (t runner) asks(a Agent, said string) (*Thread, *content.ToolApprovalRequest) {
	t.Helper()
	th := NewThread("t")
	return th, approvalOf(t, t.run(a, th, content.UserText(said)), 0)
}

// client does the same as try for a loop without an agent.
func (t runner) client(c ChatClient, messages []*content.Message, opt *Options) (*Response, error) {
	if t.stream {
		return Collect(c.Stream(t.Context(), messages, opt))
	}
	return c.Respond(t.Context(), messages, opt)
}

// coalesced joins messages in the same way as a stream of them would be joined.
func coalesced(messages []*content.Message) []*content.Message {
	var updates []*Update
	for _, m := range messages {
		updates = append(updates,
			&Update{Role: m.Role, AuthorName: m.AuthorName, MessageID: m.ID, Contents: m.Contents})
	}

	return Join(updates).Messages
}

// talker is a model with scripted turns. A turn can look at the messages that it gets and
// return several messages.
type talker struct {
	t       testing.TB
	turns   []func(messages []*content.Message, opt *Options) ([]*content.Message, error)
	seen    [][]*content.Message
	options []*Options
	keeps   string
}

func talk(t testing.TB, turns ...func([]*content.Message, *Options) ([]*content.Message, error)) *talker {
	return &talker{t: t, turns: turns}
}

// paying returns a model that calls pay once and then answers "ok".
func paying(t testing.TB, args string) *talker {
	return talk(t, said(call("1", "pay", args)), said(text("ok")))
}

// said returns a turn that consists of one message.
func said(contents ...content.Content) func([]*content.Message, *Options) ([]*content.Message, error) {
	return saidAll(content.NewMessage(content.Assistant, contents...))
}

func saidAll(messages ...*content.Message) func([]*content.Message, *Options) ([]*content.Message, error) {
	return func([]*content.Message, *Options) ([]*content.Message, error) { return messages, nil }
}

var errModel = errors.New("the model is away")

func fails([]*content.Message, *Options) ([]*content.Message, error) { return nil, errModel }

func (k *talker) Respond(_ context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	k.seen, k.options = append(k.seen, messages), append(k.options, opt)
	if k.keeps == "" {
		if err := strictHistory(messages); err != nil {
			return nil, fmt.Errorf("%w:\n%s", err, tell(messages))
		}
	}
	n := len(k.seen) - 1
	if n >= len(k.turns) {
		return nil, fmt.Errorf("nothing to say in turn %d to\n%s", n, tell(messages))
	}
	out, err := k.turns[n](messages, opt)
	if err != nil {
		return nil, err
	}
	resp := &Response{ConversationID: k.keeps, FinishReason: "stop", Model: "m"}
	for i, m := range out {
		m := m.With(slices.Clone(m.Contents))
		if m.ID == "" {
			m.ID = fmt.Sprintf("t%d.%d", n, i)
		}
		resp.Messages = append(resp.Messages, m)
	}

	return resp, nil
}

func (k *talker) Stream(ctx context.Context, messages []*content.Message, opt *Options) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		resp, err := k.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(&Update{Role: content.Assistant, ConversationID: k.keeps, Model: "m"}, nil) {
			return
		}

		for _, m := range resp.Messages {
			for _, c := range m.Contents {
				if !yield(&Update{Role: m.Role, MessageID: m.ID, Contents: []content.Content{c}}, nil) {
					return
				}
			}
		}

		yield(&Update{FinishReason: "stop"}, nil)
	}
}

func (k *talker) last() string { return tell(k.seen[len(k.seen)-1]) }

// strictHistory checks what the strictest provider requires: a message with calls is followed
// by messages that contain only results, one result for each call, and no result appears
// elsewhere.
func strictHistory(messages []*content.Message) error {
	for i := 0; i < len(messages); i++ {
		want := map[string]int{}
		for _, c := range messages[i].Contents {
			switch c := c.(type) {
			case *content.FunctionCall:
				want[c.CallID]++
			case *content.FunctionResult:
				return fmt.Errorf("message %d has a result of %s without a call before it", i, c.CallID)
			case *content.ToolApprovalRequest:
				if _, local := c.Call.(*content.FunctionCall); local {
					return fmt.Errorf("message %d has the request %s, which is for people", i, c.RequestID)
				}
			}
		}

		for missing := len(want) > 0; missing; {
			i++
			if i >= len(messages) || messages[i].Role != content.ToolRole {
				return fmt.Errorf("message %d should be results of %v", i, want)
			}
			for _, c := range messages[i].Contents {
				result, ok := c.(*content.FunctionResult)
				if !ok || want[result.CallID] == 0 {
					return fmt.Errorf("message %d holds what is no result of a call before it", i)
				}
				if want[result.CallID]--; want[result.CallID] == 0 {
					delete(want, result.CallID)
				}
			}

			missing = len(want) > 0
		}
	}

	return nil
}

// journal records events, and fails for events that failAt selects.
type journal struct {
	mu     sync.Mutex
	events []Event
	failAt func(e Event) bool
}

var errAudit = errors.New("the journal is full")

func (j *journal) take(_ context.Context, e Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failAt != nil && j.failAt(e) {
		return errAudit
	}
	j.events = append(j.events, e)
	return nil
}

func (j *journal) tell() string {
	var out []string
	for _, e := range j.events {
		line := e.Type + " " + e.CallID
		if e.RequestID != "" {
			line += " " + e.RequestID
		}
		if e.Approved != nil {
			line += fmt.Sprintf(" %v", *e.Approved)
		}
		out = append(out, line)
	}

	return strings.Join(out, "\n") + "\n"
}

// keeper is a store that keeps every version of a thread that was saved.
type keeper struct {
	saved  [][]byte
	failAt int // number of the save that fails, starting at 1
	err    error
}

func (k *keeper) Load(_ context.Context, id string) (*Thread, error) {
	if len(k.saved) == 0 {
		return nil, ErrNoThread
	}
	return loaded(k.saved[len(k.saved)-1], id)
}

func loaded(raw []byte, id string) (*Thread, error) {
	t := NewThread(id)
	return t, json.Unmarshal(raw, t)
}

func (k *keeper) Save(_ context.Context, t *Thread) error {
	if k.failAt > 0 {
		if k.failAt--; k.failAt == 0 {
			return k.err
		}
	}
	if len(k.saved) > 0 {
		before, err := loaded(k.saved[len(k.saved)-1], t.ID)
		if err != nil {
			return err
		}
		if before.Revision != t.Revision {
			return ErrConflict
		}
	}

	t.Revision++
	raw, err := json.Marshal(t)
	if err != nil {
		t.Revision--
		return err
	}
	k.saved = append(k.saved, raw)
	return nil
}

// decideFunc is a function that implements Decider.
type decideFunc func(t Tool, call content.ToolCall) (hold.Verdict, error)

func (d decideFunc) Decide(_ context.Context, t Tool, call content.ToolCall) (hold.Verdict, error) {
	return d(t, call)
}

func outcomeOf(o resolve.Outcome, rules ...string) hold.Verdict {
	v := hold.Verdict{Decision: resolve.Decision{Outcome: o, Binding: strings.Join(rules, "+")}}
	for _, rule := range rules {
		v.Reasons = append(v.Reasons, resolve.Reason{Rule: rule, Detail: "rule " + rule})
	}
	return v
}

// clock is a clock that tests set.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

// declaredTool is declared to the model and run by the caller.
type declaredTool string

func (d declaredTool) Definition() Definition { return Definition{Name: string(d)} }

func refusals(resp *Response) string {
	var out []string
	for _, no := range resp.Refused {
		out = append(out, no.RequestID+" "+string(no.Reason))
	}
	return strings.Join(out, "; ")
}

func chat(model ChatClient, cfg LoopConfig, store ThreadStore, tools ...Tool) Agent {
	if cfg.RequestID == nil {
		cfg.RequestID = plainIDs
	}
	return NewChatAgent(NewFunctionInvoking(model, cfg), ChatAgentConfig{Name: "test", Tools: tools, Store: store})
}

// asking is a function that suspends with requests, and returns the answers when it is resumed.
type asking struct {
	name    string
	ask     func() *Suspend
	resumed func(state json.RawMessage, answers []content.InputResponse) (any, error)
}

func (a *asking) Definition() Definition { return Definition{Name: a.name} }

func (a *asking) Invoke(context.Context, *content.FunctionCall) (any, error) { return nil, a.ask() }

func (a *asking) Resume(
	_ context.Context, _ *content.FunctionCall, state json.RawMessage, given []content.InputResponse,
) (any, error) {
	if a.resumed != nil {
		return a.resumed(state, given)
	}
	var out []string
	for _, g := range given {
		out = append(out, fmt.Sprintf("%s %v", g.InputResponseTo(), !content.Rejects(g)))
	}
	return strings.Join(out, ", "), nil
}

// suspending returns a function that suspends every call in the same way.
func suspending(name string, s Suspend) *asking {
	return &asking{name: name, ask: func() *Suspend { return &s }}
}

// approvals approves all open requests.
func approvals(th *Thread) *content.Message {
	reply := answers()
	for _, p := range th.Pending() {
		switch q := p.Request.(type) {
		case *content.ToolApprovalRequest:
			reply.Contents = append(reply.Contents, q.CreateApproval(""))
		case *content.TextApprovalRequest:
			reply.Contents = append(reply.Contents, q.CreateApproval(""))
		}
	}

	return reply
}

func mcpRequest(id string) *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{
		RequestID: id,
		Call: &content.MCPCall{CallID: "call-" + id, ServerName: "files", Name: "wipe",
			Arguments: json.RawMessage(`{"all":true}`)},
	}
}

// Shorter names for long types.
type (
	ctxOf    = context.Context
	streamOf = iter.Seq2[*Update, error]
)

// emptyReader is a source of randomness without any bytes.
type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

// counted is a function that counts its runs by their arguments.
type counted struct{ runs map[string]int }

func (c *counted) tool(name string) Function {
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	return NewFunction(name, "does "+name, nil, func(_ context.Context, args json.RawMessage) (any, error) {
		c.runs[name+string(args)]++
		return "did " + name, nil
	})
}

// asked returns an agent that requests approval for every call of pay.
func (c *counted) asked(model ChatClient, cfg LoopConfig) Agent {
	return chat(model, cfg, nil, RequireApproval(c.tool("pay")))
}

func text(s string) content.Content { return &content.Text{Text: s} }

func call(id, name, args string) *content.FunctionCall {
	c := &content.FunctionCall{CallID: id, Name: name}
	if args != "" {
		c.Arguments = json.RawMessage(args)
	}
	return c
}

func says(contents ...content.Content) []content.Content { return contents }

// tell formats each message as one short line, for comparison.
func tell(messages []*content.Message) string {
	out := ""
	for _, m := range messages {
		out += string(m.Role) + ":"
		for _, c := range m.Contents {
			out += " " + tellContent(c)
		}
		out += "\n"
	}

	return out
}

func tellContent(c content.Content) string {
	switch c := c.(type) {
	case *content.Text:
		return fmt.Sprintf("%q", c.Text)
	case *content.FunctionCall:
		return fmt.Sprintf("%s=%s(%s)", c.CallID, c.Name, c.Arguments)
	case *content.FunctionResult:
		return fmt.Sprintf("%s→%s", c.CallID, c.Result)
	case *content.ToolApprovalRequest:
		return fmt.Sprintf("%s?[%s]", c.RequestID, tellContent(c.Call))
	case *content.ToolApprovalResponse:
		return fmt.Sprintf("%s!%v", c.RequestID, c.Approved)
	case *content.MCPCall:
		return fmt.Sprintf("%s=%s.%s(%s)", c.CallID, c.ServerName, c.Name, c.Arguments)
	case *content.TextApprovalRequest:
		return fmt.Sprintf("%s?%q", c.RequestID, c.Text)
	case *content.StructuredInputRequest:
		return fmt.Sprintf("%s?%s", c.RequestID, c.Schema)
	}

	return fmt.Sprintf("%T", c)
}

// plainIDs makes request ids without a random tail, so that tests can name them.
func plainIDs(callID string) string { return "ficc_" + callID }

func answers(contents ...content.Content) *content.Message {
	return content.NewMessage(content.User, contents...)
}

func mustRun(t testing.TB, a Agent, thread *Thread, messages ...*content.Message) *Response {
	t.Helper()
	return must.Get(a.Run(t.Context(), thread, messages...))(t)
}

func approvalOf(t testing.TB, resp *Response, i int) *content.ToolApprovalRequest {
	t.Helper()
	asked := resp.UserInputRequests()
	if i >= len(asked) {
		t.Fatalf("%d requests, want at least %d:\n%s", len(asked), i+1, tell(resp.Messages))
	}
	q, ok := asked[i].(*content.ToolApprovalRequest)
	if !ok {
		t.Fatalf("request %d is a %T", i, asked[i])
	}
	return q
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", what, got, want)
	}
}

// reload encodes a thread and decodes it again, as if another process loaded it.
func reload(t testing.TB, thread *Thread) *Thread {
	t.Helper()
	raw := must.Get(thread.Encode())(t)
	out := &Thread{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return out
}

// sure returns v and panics on an error.
func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
