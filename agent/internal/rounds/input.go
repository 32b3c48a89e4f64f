package rounds

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// FirstNew is where the new messages of a run begin.
func (in Input) FirstNew() int {
	fresh := 0
	if in.Options != nil {
		fresh = in.Options.Fresh
	}
	return agent.FirstNew(in.Messages, fresh)
}

// trailing is where the last messages that fit begin.
func trailing(messages []*content.Message, fit func(*content.Message) bool) int {
	i := len(messages)
	for i > 0 && fit(messages[i-1]) {
		i--
	}
	return i
}

// WithFresh returns options that tell how many messages are new.
// Options that left it open still do.
func WithFresh(opt *agent.Options, fresh int) *agent.Options {
	if fresh == 0 {
		fresh = -1
	}
	if opt == nil || opt.Fresh == 0 || opt.Fresh == fresh {
		return opt
	}
	out := opt.Clone()
	out.Fresh = fresh
	return out
}

// InsertAnswers puts a user's message with answers before what the user
// said last, so that the text follows the results.
func (in Input) InsertAnswers(answers []content.Content) Input {
	if len(answers) == 0 {
		return in
	}
	at := max(
		in.FirstNew(),
		trailing(in.Messages, func(m *content.Message) bool { return m.Role == content.User }),
	)
	in.Messages = slices.Insert(slices.Clone(in.Messages), at, content.NewMessage(content.User, answers...))
	return in.MoreFresh(1)
}

// MoreFresh counts more messages at the end as new.
func (in Input) MoreFresh(more int) Input {
	if in.Options != nil {
		in.Options = WithFresh(in.Options, max(0, in.Options.Fresh)+more)
	}
	return in
}

// Toolbox is what a layer knows of the tools of a run.
type Toolbox []agent.Tool

// ToolsOf are the tools of the options and more.
func ToolsOf(opt *agent.Options, more []agent.Tool) Toolbox {
	if opt == nil {
		return more
	}
	return slices.Concat(opt.Tools, more)
}

// Named returns the tools of a name, without hosted ones: a label of a
// server is no name of a function.
func (b Toolbox) Named(name string) []agent.Tool {
	var out []agent.Tool
	for _, t := range b {
		if t == nil {
			continue
		}
		if _, hosted := t.(*agent.HostedMCP); !hosted && t.Definition().Name == name {
			out = append(out, t)
		}
	}

	return out
}

// Functions returns those of a name that run here.
func (b Toolbox) Functions(name string) []agent.Function {
	var out []agent.Function
	for _, t := range b.Named(name) {
		if f, ok := t.(agent.Function); ok {
			out = append(out, f)
		}
	}
	return out
}

// CallOf returns the call in either half of an approval; nil when it
// holds none.
func CallOf(c content.Content) content.ToolCall {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		return c.Call
	case *content.ToolApprovalResponse:
		return c.Call
	}

	return nil
}

// Inert holds for halves of an approval that was handled before.
func Inert(c content.Content) bool {
	f, ok := CallOf(c).(*content.FunctionCall)
	return ok && f != nil && f.InformationalOnly
}

// FunctionCall returns the call that a request asks about, nil when it
// asks about none that runs here.
func FunctionCall(q content.InputRequest) *content.FunctionCall {
	if a, ok := q.(*content.ToolApprovalRequest); ok {
		f, _ := a.Call.(*content.FunctionCall)
		return f
	}
	return nil
}

// Nested holds for what an agent asks that runs as a tool here. Its
// tools are its own: what is known here of one of the same name says
// nothing.
func Nested(q content.InputRequest) bool { return content.NoteOf(q).Agent != "" }

// Warner says once that a layer can't do its work.
type Warner struct {
	Log  *slog.Logger
	once atomic.Bool
}

// NewWarner warns in a log; nil means slog.Default().
func NewWarner(log *slog.Logger) *Warner {
	if log == nil {
		log = slog.Default()
	}
	return &Warner{Log: log}
}

// NoThread warns, the first time, of a run without a thread.
func (w *Warner) NoThread(ctx context.Context, layer, consequence string) {
	if !w.once.Swap(true) {
		w.Log.WarnContext(ctx, layer+": the options carry no thread; "+consequence)
	}
}

// invocable returns the calls of functions that run here when they
// stand beside calls that the caller runs.
func (b Toolbox) invocable(messages []*content.Message) []*content.FunctionCall {
	var mine []*content.FunctionCall
	theirs := false
	for _, call := range openCalls(messages) {
		switch {
		case len(b.Functions(call.Name)) > 0:
			mine = append(mine, call)
		case len(b.Named(call.Name)) > 0:
			theirs = true
		}
	}

	if !theirs {
		return nil
	}
	return mine
}
