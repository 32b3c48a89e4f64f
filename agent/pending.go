package agent

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
	"github.com/assent-dev/assent/policy"
)

// batch is one turn of the model of which some call could not run at
// once: all its calls, in the model's order, each with its result as
// soon as it has one. When all have one, the batch becomes messages.
type batch struct {
	MessageID      string `json:"message_id,omitempty"` // of the message that held the calls
	AuthorName     string `json:"author_name,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"` // in which the service waits for the results
	Items          items  `json:"calls"`
}

// stage is how far a call has come.
type stage string

const (
	open     stage = "open"     // somebody is asked
	approved stage = "approved" // may run
	running  stage = "running"  // was begun; when found in a loaded thread, nobody knows what became of it
	external stage = "external" // the caller runs it and gives the result
	done     stage = "done"     // has its result
)

// item is one call of a batch. Its contents, and those of its asks, are
// stored by MarshalJSON.
type item struct {
	Call     content.ToolCall  `json:"-"` // what will run: after an edit, the edited call
	Asked    content.ToolCall  `json:"-"` // what the model wrote, when that differs
	Lead     []content.Content `json:"-"` // thoughts before the call: providers refuse the one without the other
	Stage    stage             `json:"stage"`
	Service  bool              `json:"service,omitempty"` // the model's side asks, and gets the answers
	Asks     []*ask            `json:"asks,omitempty"`
	State    json.RawMessage   `json:"state,omitempty"` // of a suspended function
	Poll     bool              `json:"poll,omitempty"`  // the suspended function may be resumed without answers
	Result   json.RawMessage   `json:"result,omitempty"`
	Rejected bool              `json:"rejected,omitempty"` // the result replaces a run that somebody refused
	By       string            `json:"by,omitempty"`
	Ground   ground            `json:"ground,omitzero"`
	Key      string            `json:"key,omitempty"` // of the claim
	// Unrecorded says that the call has ended and that the record of it
	// failed; it is made up for before anything else.
	Unrecorded bool            `json:"unrecorded,omitempty"`
	Tries      int             `json:"tries,omitempty"` // resumptions that could not go on
	ended      string          // how the run ended, for the record
	tool       Tool            // that was decided about, while a run lasts
	origin     content.Content // what the model's side wrote, while its turn lasts
}

// ground is what an approval rests on: when it changes before the run,
// it is asked again.
type ground struct {
	Binding    string          `json:"binding,omitempty"`    // of the plan's decision
	Definition string          `json:"definition,omitempty"` // digest of the tool's definition
	Rules      []string        `json:"rules,omitempty"`      // that asked
	Require    *policy.Require `json:"require,omitempty"`
}

// ask is one thing that the user is asked.
type ask struct {
	Request content.InputRequest  `json:"-"`
	Inner   string                `json:"inner,omitempty"` // id of the request within the suspended function
	Since   time.Time             `json:"since"`
	Expires time.Time             `json:"expires,omitzero"`
	Ref     string                `json:"ref,omitempty"` // of the holder
	Answer  content.InputResponse `json:"-"`             // nil while open
}

// closedRequest remembers how a request ended, so that a late answer is
// told so.
type closedRequest struct {
	ID  string `json:"id"`
	How string `json:"how"` // "answered", "superseded", "expired", "asked again"
	// Service says that it was the model's side who asked: it wants to
	// see request and answer in the history.
	Service bool `json:"service,omitempty"`
	Yes     bool `json:"yes,omitempty"` // what the answer was
}

// maxClosed bounds what a thread remembers of requests that have ended.
const maxClosed = 4096

// Pending is an open request.
type Pending struct {
	Request content.InputRequest
	Since   time.Time
	Ref     string // of the holder; "" without one
}

// Pending returns the open requests, oldest first.
func (t *Thread) Pending() []Pending {
	var out []Pending
	for _, a := range t.openAsks() {
		out = append(out, Pending{cloneRequest(a.Request), a.Since, a.Ref})
	}
	return out
}

// items are the calls of all batches, in order.
func (t *Thread) items() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for _, b := range t.batches {
			for _, it := range b.Items {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// openAsks are the requests without an answer, with the calls that they
// are about.
func (t *Thread) openAsks() iter.Seq2[*item, *ask] {
	return func(yield func(*item, *ask) bool) {
		for it := range t.items() {
			for _, a := range it.Asks {
				if it.Stage == open && a.Answer == nil && !yield(it, a) {
					return
				}
			}
		}
	}
}

// waiting reports whether a call of the thread still waits for somebody.
func (t *Thread) waiting() bool {
	return slices.ContainsFunc(t.batches, func(b *batch) bool { return !b.finished() })
}

func (b *batch) finished() bool {
	return !slices.ContainsFunc(b.Items, func(it *item) bool { return it.Stage != done })
}

// find returns an open request with the call that it is about.
func (t *Thread) find(id string) (*item, *ask) {
	for it, a := range t.openAsks() {
		if a.Request.InputRequestID() == id {
			return it, a
		}
	}
	return nil, nil
}

// pendingCall returns the call of an unfinished batch.
func (t *Thread) pendingCall(callID string) *item {
	for it := range t.items() {
		if it.Call.ID() == callID {
			return it
		}
	}
	return nil
}

// externalCall returns a call of that id that waits for its caller's result.
func (t *Thread) externalCall(callID string) *item {
	for it := range t.items() {
		if it.Call.ID() == callID && it.Stage == external {
			return it
		}
	}
	return nil
}

// close remembers how a request ended.
func (t *Thread) close(it *item, a *ask, how string) {
	t.closed = append(t.closed, closedRequest{
		ID:      a.Request.InputRequestID(),
		How:     how,
		Service: it.Service,
		Yes:     a.Answer != nil && !content.Rejects(a.Answer),
	})
	if over := len(t.closed) - maxClosed; over > 0 {
		t.closed = slices.Delete(t.closed, 0, over)
	}
}

// ended tells how a request ended; "" when this thread does not remember it.
func (t *Thread) ended(id string) string {
	for _, c := range slices.Backward(t.closed) {
		if c.ID == id {
			return c.How
		}
	}
	return ""
}

// waitingConversation is the service-held conversation that waits for a
// result; "" for none.
func (t *Thread) waitingConversation() string {
	for _, b := range t.batches {
		if b.ConversationID != "" {
			return b.ConversationID
		}
	}
	return ""
}

// visible is what the caller is shown of a call that waits.
func (it *item) visible() []content.Content {
	switch it.Stage {
	case external:
		return []content.Content{content.CloneCall(it.Call)}
	case open:
		var out []content.Content
		for _, a := range it.Asks {
			if a.Answer == nil {
				out = append(out, cloneRequest(a.Request))
			}
		}
		return out
	}

	return nil
}

// cloneRequest copies a request: whoever gets it may change it, and the
// thread's own must stay what was asked.
func cloneRequest(q content.InputRequest) content.InputRequest {
	out := reid.Request(q, q.InputRequestID())
	note := content.NoteOf(out)
	note.Context = slices.Clone(note.Context)
	if approval, ok := out.(*content.ToolApprovalRequest); ok {
		approval.Call = content.CloneCall(approval.Call)
	}
	return out
}

// messages are a finished batch as a history has it: the calls, what
// was refused, what was run, and answers that go to a service. Rejected
// calls, and their results, come first when dotNet says so; else all
// keep the model's order, which reasoning models rest on.
func (b *batch) messages(dotNet bool) []*content.Message {
	var calls, late, refused, results, answers []content.Content
	told := &results // where the result of a refused call stands
	if dotNet {
		told = &refused
	}
	for _, it := range b.Items {
		if it.Service {
			calls, answers = append(append(calls, it.Lead...), it.Asks[0].Request), append(answers, it.Asks[0].Answer)
			continue
		}

		result := &content.FunctionResult{CallID: it.Call.ID(), Result: it.Result}
		if it.Rejected {
			calls, *told = append(append(calls, it.Lead...), it.Call), append(*told, result)
			continue
		}
		results = append(results, result)
		if dotNet {
			late = append(append(late, it.Lead...), it.Call)
		} else {
			calls = append(append(calls, it.Lead...), it.Call)
		}
	}

	first := &content.Message{
		ID:         b.MessageID,
		Role:       content.Assistant,
		AuthorName: b.AuthorName,
		Contents:   append(calls, late...),
	}
	out := []*content.Message{first}
	for _, contents := range [][]content.Content{refused, results} {
		if len(contents) > 0 {
			out = append(out, content.NewMessage(content.ToolRole, contents...))
		}
	}
	if len(answers) > 0 {
		out = append(out, content.NewMessage(content.User, answers...))
	}
	return out
}

// settle gives a call its result instead of a run.
func (it *item) settle(text string) { it.reject(jsonText(text)) }

func (it *item) reject(result json.RawMessage) {
	it.Stage = done
	it.Rejected = true
	it.Result = result
}
