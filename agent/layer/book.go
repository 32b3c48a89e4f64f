package layer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// maxKept bounds what a thread remembers of requests that were answered, and of requests that nobody ever answers.
const maxKept = 1000

// book is what a layer remembers of the requests that it let out.
type book struct {
	Open   []*entry `json:"open,omitempty"`
	Closed []*entry `json:"closed,omitempty"`
}

// entry is one request. Once it is closed only those that a service made keep more than their id: services want to read them again.
type entry struct {
	ID       string   `json:"id"`
	Request  *request `json:"request,omitempty"`
	Reused   bool     `json:"reused,omitempty"`   // another call was asked about under this id, so an answer must show which it means
	Approved bool     `json:"approved,omitempty"` // of a closed one
}

// request is a request as JSON, which is a snapshot too: whoever has the content can't change what is recorded.
type request struct{ content.InputRequest }

// MarshalJSON writes the content.
func (r *request) MarshalJSON() ([]byte, error) { return writeContent(r.InputRequest) }

// UnmarshalJSON reads the content; anything but a request is an error.
func (r *request) UnmarshalJSON(raw []byte) error {
	c, err := readContent(raw)
	if err != nil {
		return err
	}
	q, ok := c.(content.InputRequest)
	if !ok {
		return fmt.Errorf("a %T is no request", c)
	}
	r.InputRequest = q
	return nil
}

// snapshot copies a request by way of its JSON.
func snapshot(q content.InputRequest) (*request, error) {
	raw, err := (&request{q}).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("the request %q can't be recorded: %w", q.InputRequestID(), err)
	}
	out := &request{}
	if err := out.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("the request %q can't be recorded: %w", q.InputRequestID(), err)
	}
	return out, nil
}

func find(entries []*entry, id string) *entry {
	for _, e := range slices.Backward(entries) {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// record opens a request. When its id is open for something else, the older one ends: an id stands for one call.
func (b *book) record(q content.InputRequest) error {
	snap, err := snapshot(q)
	if err != nil {
		return err
	}
	id := q.InputRequestID()
	fresh := &entry{ID: id, Request: snap}
	if old := find(b.Open, id); old != nil {
		fresh.Reused = old.Reused || !sameRequest(old.Request.InputRequest, q)
		b.Open = slices.DeleteFunc(b.Open, func(e *entry) bool { return e == old })
	}
	b.Open = newest(append(b.Open, fresh))
	return nil
}

// close ends a request with its answer.
func (b *book) close(e *entry, approved bool) {
	b.Open = slices.DeleteFunc(b.Open, func(o *entry) bool { return o == e })
	done := &entry{ID: e.ID, Approved: approved}
	if q, ok := e.Request.InputRequest.(*content.ToolApprovalRequest); ok && functionCall(q) == nil {
		done.Request = e.Request
	}
	b.Closed = newest(append(b.Closed, done))
}

func newest[T any](kept []T) []T {
	return slices.Delete(kept, 0, max(0, len(kept)-maxKept))
}

// knows tells whether a request in the messages is one that is open, or one of a service that was answered here.
func (b *book) knows(q content.InputRequest) bool {
	if inert(q) {
		return false
	}
	if e := find(b.Open, q.InputRequestID()); e != nil {
		return sameRequest(e.Request.InputRequest, q)
	}
	e := find(b.Closed, q.InputRequestID())
	return e != nil && e.Request != nil && sameRequest(e.Request.InputRequest, q)
}

// told tells whether an old answer in the messages is the one that a service's request got here.
func (b *book) told(a content.InputResponse) bool {
	e, answer := find(b.Closed, a.InputResponseTo()), approval(a)
	return e != nil && e.Request != nil && answer != nil && answer.Edited == nil && answer.Approved == e.Approved &&
		misfit(e.Request.InputRequest, a, nil) == nil
}

func approval(a content.InputResponse) *content.ToolApprovalResponse {
	out, _ := a.(*content.ToolApprovalResponse)
	return out
}

// sameRequest tells whether two requests ask the same.
func sameRequest(a, b content.InputRequest) bool {
	switch x := a.(type) {
	case *content.ToolApprovalRequest:
		y, ok := b.(*content.ToolApprovalRequest)
		return ok && content.SameCall(x.Call, y.Call)
	case *content.TextApprovalRequest:
		y, ok := b.(*content.TextApprovalRequest)
		return ok && x.Text == y.Text
	case *content.StructuredInputRequest:
		y, ok := b.(*content.StructuredInputRequest)
		return ok && x.Text == y.Text && content.SameArguments(x.Schema, y.Schema)
	}
	return false
}

// at is the place of a content in the messages.
type at struct{ message, content int }

// answers are the fresh answers to one request.
type answers struct {
	id string
	at []at
	as []content.InputResponse
}

// bound is what binding made of the messages.
type bound struct {
	messages []*content.Message
	fresh    int // how many of them, at the end, are new
	accepted []settled
	refused  []agent.Refusal
}

// settled is a recorded request with the answer that it got.
type settled struct {
	request content.InputRequest
	answer  content.InputResponse
}

// bind lets an answer pass when its request is open and shows the recorded call, and closes the request. All other answers are left out,
// and so are requests in the messages that are not open here: they count for nothing. Only messages from first on can answer.
func (b *book) bind(messages []*content.Message, first int, tools toolbox) bound {
	out := bound{}
	known := map[at]bool{}
	each(messages, func(p at, c content.Content) {
		if q, ok := c.(content.InputRequest); ok {
			known[p] = b.knows(q)
		}
		if a, ok := c.(content.InputResponse); ok && p.message < first {
			known[p] = b.told(a)
		}
	})
	taken := map[at]content.InputResponse{}
	for _, g := range gather(messages, first) {
		i, got, refused := b.settle(g, tools)
		out.refused = append(out.refused, refused...)
		if got != nil {
			taken[g.at[i]] = got.answer
			out.accepted = append(out.accepted, *got)
		}
	}
	out.messages, out.fresh = rewrite(messages, first, func(p at, c content.Content) content.Content {
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
	})
	return out
}

func each(messages []*content.Message, do func(at, content.Content)) {
	for i, m := range messages {
		for j, c := range m.Contents {
			do(at{i, j}, c)
		}
	}
}

// gather groups the fresh answers by request, in order. Inert ones say nothing.
func gather(messages []*content.Message, first int) []*answers {
	var out []*answers
	byID := map[string]*answers{}
	each(messages, func(p at, c content.Content) {
		a, ok := c.(content.InputResponse)
		if !ok || p.message < first || inert(c) {
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

// settle answers one request, at most once, and returns the answer with its place among the group.
func (b *book) settle(g *answers, tools toolbox) (int, *settled, []agent.Refusal) {
	e := find(b.Open, g.id)
	if e == nil {
		return 0, nil, repeat(b.noSuch(g.id), len(g.as))
	}
	var fit []int
	var refused []agent.Refusal
	for i, a := range g.as {
		if no := misfitEntry(e, a, tools); no != nil {
			refused = append(refused, *no)
			continue
		}
		fit = append(fit, i)
	}
	stands, no := agree(g, fit)
	refused = append(refused, no...)
	if stands < 0 {
		return 0, nil, refused
	}
	b.close(e, !content.Rejects(g.as[stands]))
	q := e.Request.InputRequest
	return stands, &settled{q, rebind(q, g.as[stands])}, refused
}

func (b *book) noSuch(id string) agent.Refusal {
	if find(b.Closed, id) != nil {
		return agent.Refusal{RequestID: id, Reason: agent.ClosedRequest, Detail: "the request was answered before"}
	}
	return agent.Refusal{RequestID: id, Reason: agent.UnknownRequest, Detail: "this thread asks nothing of that id"}
}

func repeat(r agent.Refusal, n int) []agent.Refusal { return slices.Repeat([]agent.Refusal{r}, n) }

// rewrite puts other contents into the messages, nil for none, and leaves out the messages that this empties.
func rewrite(messages []*content.Message, first int, other func(at, content.Content) content.Content) (out []*content.Message, fresh int) {
	for i, m := range messages {
		changed := false
		var kept []content.Content
		for j, c := range m.Contents {
			now := other(at{i, j}, c)
			changed = changed || now != c
			if now != nil {
				kept = append(kept, now)
			}
		}
		if changed && len(kept) == 0 {
			continue
		}
		if changed {
			m = m.With(kept)
		}
		out = append(out, m)
		if i >= first {
			fresh++
		}
	}
	return out, fresh
}

// load reads a state of a thread. What can't be read stops the run: nobody knows what was asked.
func load[T any, P state[T]](t *agent.Thread, key string) (*T, error) {
	out := P(new(T))
	if t == nil {
		return out, nil
	}
	if _, err := t.Get(key, out); err != nil {
		return nil, err
	}
	if !out.whole() {
		return nil, fmt.Errorf("the state %q of the thread: %w", key, errTorn)
	}
	return out, nil
}

// state is what a layer keeps. It is whole when no request is missing.
type state[T any] interface {
	*T
	whole() bool
}

var errTorn = errors.New("a request is missing")

func (b *book) whole() bool {
	missing := func(e *entry) bool { return e == nil || !e.Request.whole() || e.Request.InputRequestID() != e.ID }
	torn := func(e *entry) bool { return e == nil || e.Request != nil && missing(e) }
	return !slices.ContainsFunc(b.Open, missing) && !slices.ContainsFunc(b.Closed, torn)
}

func (r *request) whole() bool { return r != nil && r.InputRequest != nil }
