package layer

import (
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// book matches answers to the requests that the layer recorded.
type book struct{ *rounds.Book }

// knows reports whether a request in the messages is an open one, or one of a service that was
// answered here.
func (b book) knows(q content.InputRequest) bool {
	if rounds.Inert(q) {
		return false
	}
	if e := rounds.Find(b.Open, q.InputRequestID()); e != nil {
		return rounds.SameRequest(e.Request.InputRequest, q)
	}
	e := rounds.Find(b.Closed, q.InputRequestID())
	return e != nil && e.Request != nil && rounds.SameRequest(e.Request.InputRequest, q)
}

// hasAnswer reports whether an old answer in the messages is the one that a request of a service got
// here.
func (b book) hasAnswer(a content.InputResponse) bool {
	e, answer := rounds.Find(b.Closed, a.InputResponseTo()), approval(a)
	return e != nil && e.Request != nil && answer != nil && answer.Edited == nil &&
		answer.Approved == e.Approved &&
		misfit(e.Request.InputRequest, a, nil) == nil
}

func approval(a content.InputResponse) *content.ToolApprovalResponse {
	out, _ := a.(*content.ToolApprovalResponse)
	return out
}

// answers are the new answers to one request.
type answers struct {
	id string
	at []rounds.At
	as []content.InputResponse
}

// bound is the result of binding.
type bound struct {
	messages []*content.Message
	fresh    int // number of new messages at the end
	accepted []settled
	refused  []agent.Refusal
}

// settled is a recorded request with its answer.
type settled struct {
	request content.InputRequest
	answer  content.InputResponse
}

// bind passes an answer on if its request is open and the answer shows the recorded call, and
// closes the request. It removes all other answers, and requests in the messages that are not
// open here. Only messages from index first on can contain answers.
func (b book) bind(messages []*content.Message, first int, tools rounds.Toolbox) bound {
	out := bound{}
	known := map[rounds.At]bool{}
	rounds.Each(messages, func(p rounds.At, c content.Content) {
		if q, ok := c.(content.InputRequest); ok {
			known[p] = b.knows(q)
		}
		if a, ok := c.(content.InputResponse); ok && p.Message < first {
			known[p] = b.hasAnswer(a)
		}
	})
	taken := map[rounds.At]content.InputResponse{}
	for _, g := range gather(messages, first) {
		i, got, refused := b.settle(g, tools)
		out.refused = append(out.refused, refused...)
		if got != nil {
			taken[g.at[i]] = got.answer
			out.accepted = append(out.accepted, *got)
		}
	}

	out.messages, out.fresh = rounds.Rewrite(
		messages,
		first,
		func(p rounds.At, c content.Content) content.Content {
			switch c.(type) {
			case content.InputRequest, content.InputResponse:
				if answer, ok := taken[p]; ok {
					return answer
				}
				if !known[p] {
					return nil
				}
			}

			return c
		},
	)
	return out
}

// gather groups the new answers by request, in order. It skips answers to calls that were
// handled before.
func gather(messages []*content.Message, first int) []*answers {
	var out []*answers
	byID := map[string]*answers{}
	rounds.Each(messages, func(p rounds.At, c content.Content) {
		a, ok := c.(content.InputResponse)
		if !ok || p.Message < first || rounds.Inert(c) {
			return
		}
		g := byID[a.InputResponseTo()]
		if g == nil {
			g = &answers{id: a.InputResponseTo()}
			byID[g.id], out = g, append(out, g)
		}
		g.at, g.as = append(g.at, p), append(g.as, a)
	})
	return out
}

// settle answers one request, at most once. It returns the index of the accepted answer in the
// group and the answer itself.
func (b book) settle(g *answers, tools rounds.Toolbox) (int, *settled, []agent.Refusal) {
	e := rounds.Find(b.Open, g.id)
	if e == nil {
		return 0, nil, slices.Repeat([]agent.Refusal{b.noSuch(g.id)}, len(g.as))
	}
	fits := func(a content.InputResponse) *agent.Refusal { return misfitEntry(e, a, tools) }
	chosen, refused := agent.Agree(g.as, fits)
	if chosen < 0 {
		return 0, nil, refused
	}
	b.Close(e, !content.Rejects(g.as[chosen]))
	q := e.Request.InputRequest
	return chosen, &settled{q, rounds.Rebind(q, g.as[chosen])}, refused
}

func (b book) noSuch(id string) agent.Refusal {
	if rounds.Find(b.Closed, id) != nil {
		return agent.Refusal{
			RequestID: id,
			Reason:    agent.ClosedRequest,
			Detail:    "the request was answered before",
		}
	}

	return agent.Refusal{
		RequestID: id,
		Reason:    agent.UnknownRequest,
		Detail:    "this thread asks nothing of that id",
	}
}
