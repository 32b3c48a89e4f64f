package layer

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// firstNew is where the new messages of a run begin.
func (in input) firstNew() int {
	fresh := 0
	if in.options != nil {
		fresh = in.options.Fresh
	}
	return agent.FirstNew(in.messages, fresh)
}

// trailing is where the last messages that fit begin.
func trailing(messages []*content.Message, fit func(*content.Message) bool) int {
	i := len(messages)
	for i > 0 && fit(messages[i-1]) {
		i--
	}
	return i
}

// withFresh returns options that tell how many messages are new. Options that left it open still do.
func withFresh(opt *agent.Options, fresh int) *agent.Options {
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

// insertAnswers puts a user's message with answers before what the user said last, so that the text follows the results.
func (in input) insertAnswers(answers []content.Content) input {
	if len(answers) == 0 {
		return in
	}
	at := max(in.firstNew(), trailing(in.messages, func(m *content.Message) bool { return m.Role == content.User }))
	in.messages = slices.Insert(slices.Clone(in.messages), at, content.NewMessage(content.User, answers...))
	return in.moreFresh(1)
}

func (in input) moreFresh(more int) input {
	if in.options != nil {
		in.options = withFresh(in.options, max(0, in.options.Fresh)+more)
	}
	return in
}

// toolbox is what a layer knows of the tools of a run.
type toolbox []agent.Tool

func toolsOf(opt *agent.Options, more []agent.Tool) toolbox {
	if opt == nil {
		return more
	}
	return slices.Concat(opt.Tools, more)
}

// named returns the tools of a name, without hosted ones: a label of a server is no name of a function.
func (b toolbox) named(name string) []agent.Tool {
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

// functions returns those of a name that run here.
func (b toolbox) functions(name string) []agent.Function {
	var out []agent.Function
	for _, t := range b.named(name) {
		if f, ok := t.(agent.Function); ok {
			out = append(out, f)
		}
	}
	return out
}

// callOf returns the call in either half of an approval; nil when it holds none.
func callOf(c content.Content) content.ToolCall {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		return c.Call
	case *content.ToolApprovalResponse:
		return c.Call
	}
	return nil
}

// inert holds for halves of an approval that was handled before.
func inert(c content.Content) bool {
	f, ok := callOf(c).(*content.FunctionCall)
	return ok && f != nil && f.InformationalOnly
}

// functionCall returns the call that a request asks about, nil when it asks about none that runs here.
func functionCall(q content.InputRequest) *content.FunctionCall {
	if a, ok := q.(*content.ToolApprovalRequest); ok {
		f, _ := a.Call.(*content.FunctionCall)
		return f
	}
	return nil
}

// nested holds for what an agent asks that runs as a tool here. Its tools are its own: what is known here of one of the same name says nothing.
func nested(q content.InputRequest) bool {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		return q.Note.Agent != ""
	case *content.TextApprovalRequest:
		return q.Note.Agent != ""
	case *content.StructuredInputRequest:
		return q.Note.Agent != ""
	}
	return false
}

// warner says once that a layer can't do its work.
type warner struct {
	log  *slog.Logger
	once atomic.Bool
}

func newWarner(log *slog.Logger) *warner {
	if log == nil {
		log = slog.Default()
	}
	return &warner{log: log}
}

func (w *warner) noThread(ctx context.Context, layer, consequence string) {
	if !w.once.Swap(true) {
		w.log.WarnContext(ctx, layer+": the options carry no thread; "+consequence)
	}
}
