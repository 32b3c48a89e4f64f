package agent

import (
	"encoding/json"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// rejectedState is the key of the thread state that lists the calls a person has rejected since
// the user last wrote something.
const rejectedState = "loop/rejected"

// maxRejected limits the length of that list. The oldest call is dropped first.
const maxRejected = 256

// textRepeated is the reason that the model gets for a call that is not asked about again.
const textRepeated = "The same call was rejected before, and it is not asked about again until the user writes something."

// rejectedCall is a call that a person rejected. Its arguments are stored as text, because they
// need not be valid JSON.
type rejectedCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
}

func (c rejectedCall) same(call *content.FunctionCall) bool {
	return c.Name == call.Name && content.SameArguments(json.RawMessage(c.Arguments), call.Arguments)
}

// noteRejected records a call that a person rejected. A model that gets no reason often makes
// the same call again immediately.
func (r *run) noteRejected(it *item) error {
	call, ok := it.Call.(*content.FunctionCall)
	if !ok || it.Service || !it.Rejected || it.rejectedBefore(r.t) {
		return nil
	}
	all := append(r.t.rejectedCalls(), rejectedCall{Name: call.Name, Arguments: string(call.Arguments)})
	all = slices.Delete(all, 0, max(0, len(all)-maxRejected))
	return r.t.Put(rejectedState, all)
}

// rejectedBefore reports whether a person has rejected the same call since the user last wrote
// something. If the list can't be read, it returns false and the user is asked.
func (it *item) rejectedBefore(t *Thread) bool {
	call, ok := it.Call.(*content.FunctionCall)
	return ok && slices.ContainsFunc(t.rejectedCalls(), func(c rejectedCall) bool { return c.same(call) })
}

func (t *Thread) rejectedCalls() []rejectedCall {
	var all []rejectedCall
	if _, err := t.Get(rejectedState, &all); err != nil {
		return nil
	}
	return all
}
