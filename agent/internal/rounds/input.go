package rounds

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// FirstNew returns the index of the first new message of a run.
func (in Input) FirstNew() int {
	fresh := 0
	if in.Options != nil {
		fresh = in.Options.Fresh
	}
	return agent.FirstNew(in.Messages, fresh)
}

// trailing returns the index of the first of the last messages for which fit returns true.
func trailing(messages []*content.Message, fit func(*content.Message) bool) int {
	i := len(messages)
	for i > 0 && fit(messages[i-1]) {
		i--
	}
	return i
}

// WithFresh returns options with the number of new messages. If the options didn't set that
// number, it stays unset.
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

// InsertAnswers inserts a user message with answers before the user's last messages, so that
// the text follows the results.
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

// Toolbox contains the tools of a run that a layer knows.
type Toolbox []agent.Tool

// ToolsOf returns the tools of the options and more.
func ToolsOf(opt *agent.Options, more []agent.Tool) Toolbox {
	if opt == nil {
		return more
	}
	return slices.Concat(opt.Tools, more)
}

// Named returns the tools with the name. Hosted servers are not included, since the label of a
// server is not a function name.
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

// Functions returns the tools with the name that run here.
func (b Toolbox) Functions(name string) []agent.Function {
	var out []agent.Function
	for _, t := range b.Named(name) {
		if f, ok := t.(agent.Function); ok {
			out = append(out, f)
		}
	}
	return out
}

// CallOf returns the call in an approval request or answer, or nil.
func CallOf(c content.Content) content.ToolCall {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		return c.Call
	case *content.ToolApprovalResponse:
		return c.Call
	}

	return nil
}

// Inert reports whether c is a request or an answer about a call that was handled before.
func Inert(c content.Content) bool {
	f, ok := CallOf(c).(*content.FunctionCall)
	return ok && f != nil && f.InformationalOnly
}

// FunctionCall returns the call that a request is about, or nil if it is not a call that runs
// here.
func FunctionCall(q content.InputRequest) *content.FunctionCall {
	if a, ok := q.(*content.ToolApprovalRequest); ok {
		f, _ := a.Call.(*content.FunctionCall)
		return f
	}
	return nil
}

// Nested reports whether a request comes from an agent that runs as a tool here. The nested agent
// has its own tools. A tool of the same name here is a different tool.
func Nested(q content.InputRequest) bool { return content.NoteOf(q).Agent != "" }

// Warner logs once that a layer can't do its work.
type Warner struct {
	Log  *slog.Logger
	once atomic.Bool
}

// NewWarner returns a Warner that uses the log. The default is slog.Default().
func NewWarner(log *slog.Logger) *Warner {
	if log == nil {
		log = slog.Default()
	}
	return &Warner{Log: log}
}

// NoThread logs a warning about the first run without a thread.
func (w *Warner) NoThread(ctx context.Context, layer, consequence string) {
	if !w.once.Swap(true) {
		w.Log.WarnContext(ctx, layer+": the options carry no thread; "+consequence)
	}
}

// invocable returns the calls of functions that run here if the messages also contain calls
// that the caller runs.
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
