package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
)

// model returns scripted turns and records its inputs.
type model struct {
	turns []*agent.Response
	seen  [][]*content.Message
	opts  []*agent.Options
	err   error // returned after the turns
}

var errNoTurn = errors.New("the script is over")

func says(turns ...[]*content.Message) *model {
	m := &model{}
	for _, t := range turns {
		m.turns = append(m.turns, &agent.Response{Messages: t})
	}
	return m
}

func (m *model) next(messages []*content.Message, opt *agent.Options) (*agent.Response, error) {
	m.seen, m.opts = append(m.seen, messages), append(m.opts, opt)
	if len(m.seen) > len(m.turns) {
		if m.err == nil {
			m.err = errNoTurn
		}
		return nil, m.err
	}

	return m.turns[len(m.seen)-1], nil
}

func (m *model) Respond(_ context.Context, messages []*content.Message, opt *agent.Options) (*agent.Response, error) {
	return m.next(messages, opt)
}

func (m *model) Stream(
	_ context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		r, err := m.next(messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, u := range updatesOf(r) {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// updatesOf splits a response into one update for each content.
func updatesOf(r *agent.Response) []*agent.Update {
	var out []*agent.Update
	for _, m := range r.Messages {
		for _, c := range m.Contents {
			out = append(out, &agent.Update{Role: m.Role, MessageID: m.ID, AuthorName: m.AuthorName,
				Contents: []content.Content{c}})
		}
	}

	return append(out, &agent.Update{ID: r.ID, Model: r.Model,
		ConversationID: r.ConversationID, FinishReason: r.FinishReason, Refused: r.Refused})
}

func (m *model) last() []*content.Message { return m.seen[len(m.seen)-1] }

func call(id, name, args string) *content.FunctionCall {
	c := &content.FunctionCall{CallID: id, Name: name}
	if args != "" {
		c.Arguments = json.RawMessage(args)
	}
	return c
}

func ask(id string, c content.ToolCall) *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: id, Call: c}
}

func harmless(id string, c content.ToolCall) *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: id, Call: c, NoConfirmation: true}
}

func yes(id string, c content.ToolCall) *content.ToolApprovalResponse {
	return &content.ToolApprovalResponse{RequestID: id, Approved: true, Call: c}
}

func no(id string, c content.ToolCall) *content.ToolApprovalResponse {
	return &content.ToolApprovalResponse{RequestID: id, Call: c}
}

func always(a *content.ToolApprovalResponse, scope content.AlwaysScope) *content.ToolApprovalResponse {
	a.Always = scope
	return a
}

func user(cs ...content.Content) *content.Message { return content.NewMessage(content.User, cs...) }

func assistant(cs ...content.Content) *content.Message {
	return content.NewMessage(content.Assistant, cs...)
}

func list(ms ...*content.Message) []*content.Message { return ms }

func text(s string) *content.Text { return &content.Text{Text: s} }

func function(name string) agent.Function {
	return agent.NewFunction(name, "does "+name, nil, func(context.Context, json.RawMessage) (any, error) {
		return "ok", nil
	})
}

type declared string

func (d declared) Definition() agent.Definition { return agent.Definition{Name: string(d)} }

// tell formats messages as short text, for comparison.
func tell(messages []*content.Message) string {
	var lines []string
	for _, m := range messages {
		var cs []string
		for _, c := range m.Contents {
			cs = append(cs, tellOne(c))
		}
		lines = append(lines, string(m.Role)+": "+strings.Join(cs, ", "))
	}

	return strings.Join(lines, "; ")
}

func tellOne(c content.Content) string {
	switch c := c.(type) {
	case *content.Text:
		return fmt.Sprintf("%q", c.Text)
	case *content.FunctionCall:
		return fmt.Sprintf("%s %s(%s)", c.CallID, c.Name, c.Arguments)
	case *content.FunctionResult:
		return fmt.Sprintf("%s=%s", c.CallID, c.Result)
	case *content.ToolApprovalRequest:
		return fmt.Sprintf("ask[%s %s]", c.RequestID, tellCall(c.Call))
	case *content.ToolApprovalResponse:
		word := "no"
		if c.Approved {
			word = "yes"
		}
		if c.Reason != "" {
			word += " (" + c.Reason + ")"
		}
		if c.Edited != nil {
			word += " edited " + tellOne(c.Edited)
		}
		return fmt.Sprintf("%s[%s %s]", word, c.RequestID, tellCall(c.Call))
	case content.InputRequest:
		return fmt.Sprintf("%T[%s]", c, c.InputRequestID())
	case content.InputResponse:
		return fmt.Sprintf("%T[%s]", c, c.InputResponseTo())
	}

	return fmt.Sprintf("%T", c)
}

func tellCall(c content.ToolCall) string {
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %s(%s)", c.ID(), c.ToolName(), c.Args())
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// respond runs a client once.
func respond(t testing.TB, c agent.ChatClient, opt *agent.Options, messages ...*content.Message) *agent.Response {
	t.Helper()
	return must.Get(c.Respond(context.Background(), messages, opt))(t)
}

// on returns options with a thread and some tools.
func on(tools ...agent.Tool) *agent.Options {
	return &agent.Options{Thread: agent.NewThread("t"), Tools: tools}
}

// all is a predicate that approves everything.
var all = layer.Predicate{Name: "all", Approve: func(context.Context, layer.Asked) bool { return true }}

// open returns the requests that Binding has recorded.
func open(t testing.TB, thread *agent.Thread) []content.InputRequest {
	t.Helper()
	return rounds.RequestsOf(must.Get(rounds.Load[rounds.Book](thread, layer.BindingState))(t).Open)
}

// parked returns the requests that a bypass has parked.
func parked(t testing.TB, thread *agent.Thread, key string) []content.InputRequest {
	t.Helper()
	return must.Get(rounds.Load[rounds.Parked](thread, key))(t).All()
}

func wantTold(t testing.TB, what string, got []*content.Message, want string) {
	t.Helper()
	if s := tell(got); s != want {
		t.Errorf("%s:\n got %s\nwant %s", what, s, want)
	}
}

func wantRefused(t testing.TB, got []agent.Refusal, want ...agent.RefusalReason) {
	t.Helper()
	var reasons []agent.RefusalReason
	for _, r := range got {
		reasons = append(reasons, r.Reason)
		if r.Detail == "" {
			t.Errorf("the refusal of %s has no detail", r.RequestID)
		}
	}

	if !slices.Equal(reasons, want) {
		t.Errorf("refused %v, want %v", reasons, want)
	}
}

// profile selects the package whose layers are tested.
type profile bool

const (
	safe       profile = false // package layer
	compatible profile = true  // package compat
)

func (p profile) loop(m agent.ChatClient) agent.ChatClient {
	if p == compatible {
		return compat.NewFunctionInvoking(m, compat.Config{})
	}
	return agent.NewFunctionInvoking(m, agent.LoopConfig{WrapSiblings: true})
}

func (p profile) binding(inner agent.ChatClient, cfg layer.BindingConfig) agent.ChatClient {
	if p == compatible {
		return compat.NewBinding(inner, compat.BindingConfig{Log: cfg.Log})
	}
	return layer.NewBinding(inner, cfg)
}

func (p profile) bypass(inner agent.ChatClient, cfg layer.BypassConfig) agent.ChatClient {
	if p == compatible {
		return compat.NewBypass(inner, compat.BypassConfig{Tools: cfg.Tools, Log: cfg.Log})
	}
	return layer.NewBypass(inner, cfg)
}

func (p profile) invocableBypass(inner agent.ChatClient, cfg layer.BypassConfig) agent.ChatClient {
	if p == compatible {
		return compat.NewInvocableBypass(inner, compat.BypassConfig{Tools: cfg.Tools, Log: cfg.Log})
	}
	return layer.NewInvocableBypass(inner, cfg)
}

func (p profile) standing(inner agent.ChatClient, cfg layer.StandingConfig) agent.ChatClient {
	if p == compatible {
		return compat.NewStanding(inner,
			compat.StandingConfig{Agent: cfg.Agent, Predicates: cfg.Predicates, MaxRounds: cfg.MaxRounds})
	}

	return layer.NewStanding(inner, cfg)
}

// stack puts all layers around a client.
func (p profile) stack(inner agent.ChatClient, standing layer.StandingConfig) agent.ChatClient {
	standing.Log = quiet()
	b := layer.BypassConfig{Log: quiet()}
	around := p.bypass(p.invocableBypass(inner, b), b)
	return p.standing(p.binding(around, layer.BindingConfig{Log: quiet()}), standing)
}
