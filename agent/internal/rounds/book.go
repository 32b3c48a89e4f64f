package rounds

import (
	"errors"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// maxKept limits how many answered requests a thread remembers, and how many requests without
// an answer.
const maxKept = 1000

// Book records the requests that a layer passed on.
type Book struct {
	Open   []*Entry `json:"open,omitempty"`
	Closed []*Entry `json:"closed,omitempty"`
}

// Entry is one request. A closed entry keeps only the id, except for requests of a service,
// because services read them again.
type Entry struct {
	ID       string   `json:"id"`
	Request  *Request `json:"request,omitempty"`
	Reused   bool     `json:"reused,omitempty"`   // two calls had this id, so an answer must contain the call
	Approved bool     `json:"approved,omitempty"` // answer of a closed request
}

// Request is a request that is stored as JSON. It is also a snapshot: later changes of the
// original content don't change the record.
type Request struct{ content.InputRequest }

// MarshalJSON writes the content.
func (r *Request) MarshalJSON() ([]byte, error) { return WriteContent(r.InputRequest) }

// UnmarshalJSON reads the content. It returns an error if it is not a request.
func (r *Request) UnmarshalJSON(raw []byte) error {
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

// Snapshot copies a request by encoding and decoding it.
func Snapshot(q content.InputRequest) (*Request, error) {
	raw, err := (&Request{q}).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("the request %q can't be recorded: %w", q.InputRequestID(), err)
	}
	out := &Request{}
	if err := out.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("the request %q can't be recorded: %w", q.InputRequestID(), err)
	}
	return out, nil
}

// Find returns the latest entry with the id, or nil.
func Find(entries []*Entry, id string) *Entry {
	for _, e := range slices.Backward(entries) {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// Record opens a request. If its id is open for a different request, the older one is dropped,
// because an id belongs to one call.
func (b *Book) Record(q content.InputRequest) error {
	snap, err := Snapshot(q)
	if err != nil {
		return err
	}
	id := q.InputRequestID()
	fresh := &Entry{ID: id, Request: snap}
	if old := Find(b.Open, id); old != nil {
		fresh.Reused = old.Reused || !SameRequest(old.Request.InputRequest, q)
		b.Open = slices.DeleteFunc(b.Open, func(e *Entry) bool { return e == old })
	}
	b.Open = Newest(append(b.Open, fresh))
	return nil
}

// Close closes a request with its answer.
func (b *Book) Close(e *Entry, approved bool) {
	b.Open = slices.DeleteFunc(b.Open, func(o *Entry) bool { return o == e })
	done := &Entry{ID: e.ID, Approved: approved}
	if q, ok := e.Request.InputRequest.(*content.ToolApprovalRequest); ok && FunctionCall(q) == nil {
		done.Request = e.Request
	}
	b.Closed = Newest(append(b.Closed, done))
}

// Newest drops the oldest elements to stay within maxKept.
func Newest[T any](kept []T) []T {
	return slices.Delete(kept, 0, max(0, len(kept)-maxKept))
}

// SameRequest reports whether two requests ask the same.
func SameRequest(a, b content.InputRequest) bool {
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

// RequestsOf returns the requests of some entries.
func RequestsOf(entries []*Entry) []content.InputRequest {
	var out []content.InputRequest
	for _, e := range entries {
		out = append(out, e.Request.InputRequest)
	}
	return out
}

// Keep puts the book into the thread.
func (b *Book) Keep(t *agent.Thread, key string) error {
	if len(b.Open) == 0 && len(b.Closed) == 0 {
		t.Drop(key)
		return nil
	}
	return t.Put(key, b)
}

// Load reads a state of a thread. It returns an error if the state can't be read, because then
// it is not known what was asked.
func Load[T any, P state[T]](t *agent.Thread, key string) (*T, error) {
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

// state is the state of a layer. It is whole if no request is missing.
type state[T any] interface {
	*T
	whole() bool
}

var errTorn = errors.New("a request is missing")

func (b *Book) whole() bool {
	missing := func(e *Entry) bool {
		return e == nil || !e.Request.whole() || e.Request.InputRequestID() != e.ID
	}
	torn := func(e *Entry) bool { return e == nil || e.Request != nil && missing(e) }
	return !slices.ContainsFunc(b.Open, missing) && !slices.ContainsFunc(b.Closed, torn)
}

func (r *Request) whole() bool { return r != nil && r.InputRequest != nil }

// Rebind returns the answer with the recorded call in place of its copy.
func Rebind(q content.InputRequest, a content.InputResponse) content.InputResponse {
	answer, ok := a.(*content.ToolApprovalResponse)
	if !ok {
		return a
	}
	out := *answer
	out.Call = content.CloneCall(q.(*content.ToolApprovalRequest).Call)
	if answer.Edited != nil {
		out.Edited = content.CloneCall(answer.Edited).(*content.FunctionCall)
	}
	return &out
}
