package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// runLoopCase runs a case of function_invocation_loop.
func runLoopCase(t *testing.T, c *conformanceCase, streaming bool) {
	if c.ExpectedErrorWithoutPreStep != "" {
		bare := *c
		bare.PreStep, bare.ExpectedError = "", c.ExpectedErrorWithoutPreStep
		bare.ExpectedOutput = nil
		bare.ExpectedDownstreamInput = nil
		bare.ExpectedInnerCalls = nil
		bare.ExpectedStateAfter = nil
		r := newLoopRun(t, &bare)
		r.start(streaming)
		r.checkError(t)
	}

	r := newLoopRun(t, c)
	r.start(streaming)
	r.check(t, streaming)
}

// loopRun is one run of the loop with everything that a case checks.
type loopRun struct {
	c       *conformanceCase
	model   *scriptedModel
	tools   *toolbox
	log     *logKeeper
	client  agent.ChatClient
	options *agent.Options
	input   []*content.Message

	response *agent.Response
	err      error
	updates  []*agent.Update
	consumed []int // number of updates taken from the model when each update arrived
}

func newLoopRun(t *testing.T, c *conformanceCase) *loopRun {
	t.Helper()
	r := &loopRun{c: c, tools: &toolbox{}, log: &logKeeper{}, input: caseInput(c)}
	r.model = &scriptedModel{turns: c.ModelTurns, updates: c.ModelStreamUpdates,
		conversation: c.Options.ResponseConversationID}
	cfg := c.Options.config()
	cfg.Log = slog.New(r.log)
	r.options = &agent.Options{ConversationID: c.Options.ConversationID}
	for _, ct := range c.Tools {
		made := must.Get(r.tools.make(ct))(t)
		switch ct.Source {
		case "", "request":
			r.options.Tools = append(r.options.Tools, made)
		case "additional":
			cfg.Tools = append(cfg.Tools, made)
		default:
			t.Fatalf("the tool %q comes from %q", ct.Name, ct.Source)
		}
	}

	r.client = compat.NewFunctionInvoking(r.model, cfg)
	must.Do(t, preStep(c.PreStep, r.input))
	return r
}

// caseInput makes the input. A request and its response share one call object, as when a
// response is created in process, unless the case wants two.
func caseInput(c *conformanceCase) []*content.Message {
	ms := messagesOf(c.InputMessages)
	if c.DistinctCallInstances {
		return ms
	}
	requests := map[string]content.ToolCall{}
	for _, m := range ms {
		for _, x := range m.Contents {
			switch x := x.(type) {
			case *content.ToolApprovalRequest:
				requests[x.RequestID] = x.Call
			case *content.ToolApprovalResponse:
				if call := requests[x.RequestID]; content.SameCall(call, x.Call) &&
					informational(call) == informational(x.Call) {
					x.Call = call
				}
			}
		}
	}

	return ms
}

func informational(c content.ToolCall) bool {
	f, ok := c.(*content.FunctionCall)
	return ok && f.InformationalOnly
}

func preStep(name string, input []*content.Message) error {
	switch name {
	case "":
		return nil
	case "normalize_informational_only":
		normalize(input)
		return nil
	}

	return fmt.Errorf("there is no pre-step %q", name)
}

// normalize marks the requests whose responses are marked as handled.
func normalize(input []*content.Message) {
	inert := map[string]bool{}
	for a := range content.All[*content.ToolApprovalResponse](input) {
		if informational(a.Call) {
			inert[a.Call.ID()] = true
		}
	}
	for q := range content.All[*content.ToolApprovalRequest](input) {
		if inert[q.Call.ID()] {
			q.Call.(*content.FunctionCall).InformationalOnly = true
		}
	}
}

func (r *loopRun) start(streaming bool) {
	if !streaming {
		r.response, r.err = r.client.Respond(context.Background(), r.input, r.options)
		return
	}
	for u, err := range r.client.Stream(context.Background(), r.input, r.options) {
		if err != nil {
			r.err = err
			break
		}
		r.updates, r.consumed = append(r.updates, u), append(r.consumed, r.model.taken)
	}

	r.response = agent.Join(r.updates)
}

func (r *loopRun) check(t *testing.T, streaming bool) {
	r.checkError(t)
	r.checkCalls(t)
	r.checkLogs(t)
	r.checkState(t)
	if r.c.ExpectedStream != nil {
		r.checkStream(t, streaming)
	}
	want := r.c.ExpectedOutput
	if streaming && r.c.ExpectedOutputStreaming != nil {
		want = r.c.ExpectedOutputStreaming
	}
	if want == nil || r.err != nil {
		return
	}
	err := matchMessages(want, r.response.Messages)
	if err != nil && streaming && matchMessages(want, joinApart(r.updates)) == nil {
		err = nil
	}
	if err != nil {
		t.Errorf("output: %v", err)
	}
	if not := r.c.ExpectedFirstMessageIDNot; not != "" &&
		(len(r.response.Messages) == 0 || r.response.Messages[0].ID == not) {
		t.Errorf("the first message has the id %q", not)
	}
}

// joinApart joins updates with the other interpretation of a missing id, in which it differs
// from every id. Join lets it match any id, as .NET does. Cases whose model returns no ids
// don't specify which one they mean.
func joinApart(updates []*agent.Update) []*content.Message {
	var named []*agent.Update
	before, n := "", 0
	for _, u := range updates {
		if u.MessageID != before || u.MessageID != "" {
			n++
		}
		before = u.MessageID
		copied := *u
		if u.MessageID == "" {
			copied.MessageID = fmt.Sprint("none ", n)
		}
		named = append(named, &copied)
	}

	out := agent.Join(named).Messages
	for _, m := range out {
		if strings.HasPrefix(m.ID, "none ") {
			m.ID = ""
		}
	}
	return out
}

var errorKinds = map[string]func(error) bool{
	"duplicate_key":   isA[*compat.DuplicateRequestError],
	"unanswered":      isA[*compat.UnansweredError],
	"function_error":  isA[*agent.FunctionErrors],
	"function_errors": isA[*agent.FunctionErrors],
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func (r *loopRun) checkError(t *testing.T) {
	t.Helper()
	want, kind := r.c.ExpectedError, r.c.ExpectedErrorKind
	if want == "" && kind == "" {
		if r.err != nil {
			t.Errorf("the run failed: %v", r.err)
		}
		return
	}

	if r.err == nil {
		t.Errorf("the run did not fail, want %q %s", want, kind)
		return
	}
	if want != "" && !says(r.err, want) {
		t.Errorf("the run failed with %q, want %q", r.err, want)
	}
	if is, ok := errorKinds[kind]; kind != "" && (!ok || !is(r.err)) {
		t.Errorf("the run failed with %T %q, want the kind %q", r.err, r.err, kind)
	}
}

// says reports whether an error, or the error of the only function that ended the run, has
// exactly this text.
func says(err error, text string) bool {
	if several, ok := errors.AsType[*agent.FunctionErrors](err); ok && len(several.Errs) == 1 &&
		several.Errs[0].Error() == text {
		return true
	}
	return err.Error() == text
}

// checkCalls checks the inputs of the model and the functions that ran.
func (r *loopRun) checkCalls(t *testing.T) {
	if r.model.err != nil {
		t.Error(r.model.err)
	}
	if n := r.c.ExpectedInnerCalls; n != nil && *n != len(r.model.inputs) {
		t.Errorf("the model was called %d times, want %d", len(r.model.inputs), *n)
	}
	for k, want := range r.c.ExpectedDownstreamInput {
		switch {
		case k >= len(r.model.inputs):
			t.Errorf("call %d of the model did not come", k)
		case want != nil:
			if err := matchListed(want, r.model.inputs[k]); err != nil {
				t.Errorf("call %d of the model: %v", k, err)
			}
		}
	}

	for name, n := range r.c.ExpectedInvocations {
		if got := r.tools.count(name); got != n {
			t.Errorf("%s ran %d times, want %d", name, got, n)
		}
	}
}

func matchListed(want []caseMessage, got []any) error {
	listed := []any{}
	for _, m := range want {
		listed = append(listed, m.listedAll())
	}
	if err := match("", listed, got); err != nil {
		text, _ := json.Marshal(got)
		return fmt.Errorf("%w\n  got: %s", err, text)
	}
	return nil
}

func (r *loopRun) checkLogs(t *testing.T) {
	for _, want := range r.c.ExpectedLogs {
		if !slices.ContainsFunc(r.log.lines(), func(l caseLog) bool {
			return l.Level == want.Level && strings.Contains(l.Contains, want.Contains)
		}) {
			t.Errorf("no %s record has %q: %v", want.Level, want.Contains, r.log.lines())
		}
	}
}

// checkStream compares the updates one by one and when they arrived. Without an expected number
// of model calls it compares only the first updates.
func (r *loopRun) checkStream(t *testing.T, streaming bool) {
	want := r.c.ExpectedStream
	if !streaming {
		t.Fatal("expected_stream needs the mode streaming")
	}
	if len(r.updates) < len(want) || (r.c.ExpectedInnerCalls != nil && len(r.updates) != len(want)) {
		t.Fatalf("%d updates came, want %d", len(r.updates), len(want))
	}
	for i, w := range want {
		u := r.updates[i]
		got := listedMessage(&content.Message{ID: u.MessageID, Role: u.Role, AuthorName: u.AuthorName,
			Contents: u.Contents})
		if err := match("", w.Update.listedAll(), got); err != nil {
			t.Errorf("update %d: %v", i, err)
		}
		if w.Consumed != nil && *w.Consumed != r.consumed[i] {
			t.Errorf("update %d came after %d of the model, want %d", i, r.consumed[i], *w.Consumed)
		}
	}
}

// checkState looks up paths such as input_messages[1].contents[0].tool_call.informational_only.
func (r *loopRun) checkState(t *testing.T) {
	state := map[string]any{"input_messages": listedMessages(r.input)}
	if r.response != nil {
		state["output"] = listedMessages(r.response.Messages)
	}
	for path, want := range r.c.ExpectedStateAfter {
		got, err := lookUp(state, path)
		if err == nil {
			err = match(path, want, got)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

var pathStep = regexp.MustCompile(`([a-z_]+)|\[(\d+)\]`)

func lookUp(v any, path string) (any, error) {
	for _, m := range pathStep.FindAllStringSubmatch(path, -1) {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[m[1]]
			if !ok {
				return nil, fmt.Errorf("%s: there is no %s", path, m[0])
			}
			v = next
		case []any:
			i, err := strconv.Atoi(m[2])
			if err != nil || i >= len(at) {
				return nil, fmt.Errorf("%s: there is no %s", path, m[0])
			}
			v = at[i]
		default:
			return nil, fmt.Errorf("%s: %s of %T", path, m[0], v)
		}
	}

	return v, nil
}

// scriptedModel answers its k-th call with the k-th turn, and records its inputs.
type scriptedModel struct {
	turns        [][]caseMessage
	updates      []caseMessage // used instead of the first turn of a stream
	conversation string

	inputs  [][]any // in the neutral encoding, as they were at the call
	options []*agent.Options
	taken   int // number of updates taken from it
	err     error
}

func (m *scriptedModel) next(messages []*content.Message, opt *agent.Options) ([]*content.Message, error) {
	k := len(m.inputs)
	m.inputs, m.options = append(m.inputs, listedMessages(messages)), append(m.options, opt.Clone())
	switch {
	case m.updates != nil:
		return []*content.Message{content.AssistantText("done")}, nil
	case k >= len(m.turns):
		m.err = fmt.Errorf("the model was called %d times, the case has %d turns", k+1, len(m.turns))
		return nil, m.err
	}

	return messagesOf(m.turns[k]), nil
}

func (m *scriptedModel) Respond(
	_ context.Context, messages []*content.Message, opt *agent.Options,
) (*agent.Response, error) {
	out, err := m.next(messages, opt)
	return &agent.Response{Messages: out, ConversationID: m.conversation}, err
}

func (m *scriptedModel) Stream(
	_ context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		out, err := m.next(messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		pieces := piecesOf(out)
		if m.updates != nil && len(m.inputs) == 1 {
			pieces = whole(messagesOf(m.updates))
		}
		for _, u := range pieces {
			m.taken++
			u.ConversationID = m.conversation
			if !yield(u, nil) {
				return
			}
		}
	}
}

// piecesOf makes one update for each content.
func piecesOf(in []*content.Message) []*agent.Update {
	var out []*agent.Update
	for _, m := range in {
		for _, c := range m.Contents {
			out = append(out, whole([]*content.Message{m.With([]content.Content{c})})...)
		}
	}
	return out
}

func whole(in []*content.Message) []*agent.Update {
	var out []*agent.Update
	for _, m := range in {
		out = append(out, &agent.Update{Role: m.Role, AuthorName: m.AuthorName, MessageID: m.ID, Contents: m.Contents})
	}

	return out
}

// logKeeper records log messages.
type logKeeper struct {
	mu  sync.Mutex
	all []caseLog
}

func (k *logKeeper) Enabled(context.Context, slog.Level) bool { return true }

func (k *logKeeper) WithAttrs([]slog.Attr) slog.Handler { return k }

func (k *logKeeper) WithGroup(string) slog.Handler { return k }

func (k *logKeeper) Handle(_ context.Context, r slog.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, caseLog{strings.ToLower(r.Level.String()), r.Message})
	return nil
}

func (k *logKeeper) lines() []caseLog {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.all)
}
