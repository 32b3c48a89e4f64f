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

// batch is one turn of the model in which some call could not run immediately. It contains all
// calls of the turn in the model's order, with the results that are known so far. When all
// calls have results, the batch becomes messages.
type batch struct {
	MessageID  string `json:"message_id,omitempty"` // of the message that contained the calls
	AuthorName string `json:"author_name,omitempty"`
	// conversation in which the service waits for the results
	ConversationID string `json:"conversation_id,omitempty"`
	Items          items  `json:"calls"`
}

// stage is the progress of a call.
type stage string

const (
	open     stage = "open"     // a person is being asked
	approved stage = "approved" // may run
	running  stage = "running"  // was begun; in a loaded thread its effect is unknown
	external stage = "external" // the caller runs it and supplies the result
	done     stage = "done"     // has its result
)

// item is one call of a batch. MarshalJSON stores its contents and those of its asks.
type item struct {
	Call     content.ToolCall  `json:"-"` // the call that will run: after an edit, the edited call
	Asked    content.ToolCall  `json:"-"` // the model's own call, if it differs
	Lead     []content.Content `json:"-"` // reasoning before the call; providers reject a call without its reasoning
	Stage    stage             `json:"stage"`
	Service  bool              `json:"service,omitempty"` // a request of the model's service, which gets the answer
	Asks     []*ask            `json:"asks,omitempty"`
	State    json.RawMessage   `json:"state,omitempty"` // state of a suspended function
	Poll     bool              `json:"poll,omitempty"`  // the suspended function may be resumed without answers
	Result   json.RawMessage   `json:"result,omitempty"`
	Rejected bool              `json:"rejected,omitempty"` // the call did not run; the result says why
	By       string            `json:"by,omitempty"`
	Ground   ground            `json:"ground,omitzero"`
	Key      string            `json:"key,omitempty"` // key of the claim
	// Unrecorded is set if the call has ended but its end could not be recorded. The next run
	// records it before anything else.
	Unrecorded bool            `json:"unrecorded,omitempty"`
	Tries      int             `json:"tries,omitempty"` // attempts to resume that could not continue
	ended      string          // how the run ended, for the record
	tool       Tool            // the tool that was decided about; set during a run
	origin     content.Content // the content that the model wrote; set during its turn
}

// ground is the basis of an approval. If it changes before the call runs, the user is asked
// again.
type ground struct {
	Binding    string          `json:"binding,omitempty"`    // binding of the plan's decision
	Definition string          `json:"definition,omitempty"` // digest of the tool's definition
	Rules      []string        `json:"rules,omitempty"`      // rules that require approval
	Require    *policy.Require `json:"require,omitempty"`
}

// ask is one request to the user.
type ask struct {
	Request content.InputRequest  `json:"-"`
	Inner   string                `json:"inner,omitempty"` // id of the request within the suspended function
	Since   time.Time             `json:"since"`
	Expires time.Time             `json:"expires,omitzero"`
	Ref     string                `json:"ref,omitempty"` // the holder's reference
	Answer  content.InputResponse `json:"-"`             // nil while open
}

// closedRequest records how a request ended, so that a late answer can be refused with the
// reason.
type closedRequest struct {
	ID  string `json:"id"`
	How string `json:"how"` // "answered", "superseded", "expired", "withdrawn", "settled elsewhere" or "asked again"
	// Service is set for a request of the model's service, which needs the request and its
	// answer in the history.
	Service bool `json:"service,omitempty"`
	Yes     bool `json:"yes,omitempty"` // the answer was an approval
}

// maxClosed limits how many closed requests a thread remembers.
const maxClosed = 4096

// Pending is an open request.
type Pending struct {
	Request content.InputRequest
	Since   time.Time
	Ref     string // the holder's reference, if there is a holder
}

// Pending returns the open requests, oldest first.
func (t *Thread) Pending() []Pending {
	var out []Pending
	for _, a := range t.openAsks() {
		out = append(out, Pending{cloneRequest(a.Request), a.Since, a.Ref})
	}
	return out
}

// items iterates over the calls of all batches, in order.
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

// openAsks iterates over the unanswered requests and the calls that they are about.
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

// waiting reports whether a call of the thread has no result yet.
func (t *Thread) waiting() bool {
	return slices.ContainsFunc(t.batches, func(b *batch) bool { return !b.finished() })
}

func (b *batch) finished() bool {
	return !slices.ContainsFunc(b.Items, func(it *item) bool { return it.Stage != done })
}

// find returns the open request with the id and the call that it is about.
func (t *Thread) find(id string) (*item, *ask) {
	for it, a := range t.openAsks() {
		if a.Request.InputRequestID() == id {
			return it, a
		}
	}
	return nil, nil
}

// pendingCall returns the call with the id, if a batch of the thread contains it.
func (t *Thread) pendingCall(callID string) *item {
	for it := range t.items() {
		if it.Call.ID() == callID {
			return it
		}
	}
	return nil
}

// externalCall returns the call with the id if it waits for a result from the caller.
func (t *Thread) externalCall(callID string) *item {
	for it := range t.items() {
		if it.Call.ID() == callID && it.Stage == external {
			return it
		}
	}
	return nil
}

// close records how a request ended.
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

// ended returns how a request ended, or an empty string if this thread doesn't remember it.
func (t *Thread) ended(id string) string {
	for _, c := range slices.Backward(t.closed) {
		if c.ID == id {
			return c.How
		}
	}
	return ""
}

// waitingConversation returns the id of the conversation in which the service waits for a
// result, or an empty string.
func (t *Thread) waitingConversation() string {
	for _, b := range t.batches {
		if b.ConversationID != "" {
			return b.ConversationID
		}
	}
	return ""
}

// visible returns the contents that the caller sees for a call that waits.
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

// cloneRequest copies a request, so that changes by the caller don't change the request in the
// thread.
func cloneRequest(q content.InputRequest) content.InputRequest {
	out := reid.Request(q, q.InputRequestID())
	note := content.NoteOf(out)
	note.Context = slices.Clone(note.Context)
	if approval, ok := out.(*content.ToolApprovalRequest); ok {
		approval.Call = content.CloneCall(approval.Call)
	}
	return out
}

// messages converts a finished batch into messages for the history: the calls, the results of
// refused calls, the results of the others, and answers for a service. If dotNet is set,
// rejected calls and their results come first. Otherwise all keep the model's order, which
// reasoning models depend on.
func (b *batch) messages(dotNet bool) []*content.Message {
	var calls, late, refused, results, answers []content.Content
	target := &results // where results of refused calls go
	if dotNet {
		target = &refused
	}
	for _, it := range b.Items {
		if it.Service {
			calls, answers = append(append(calls, it.Lead...), it.Asks[0].Request), append(answers, it.Asks[0].Answer)
			continue
		}

		result := &content.FunctionResult{CallID: it.Call.ID(), Result: it.Result}
		if it.Rejected {
			calls, *target = append(append(calls, it.Lead...), it.Call), append(*target, result)
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

// settle gives a call a result instead of running it.
func (it *item) settle(text string) { it.reject(jsonText(text)) }

func (it *item) reject(result json.RawMessage) {
	it.Stage = done
	it.Rejected = true
	it.Result = result
}
