package agent

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// accepted is an answer that found its request.
type accepted struct {
	item   *item
	ask    *ask
	answer content.InputResponse
}

// match finds the request of each answer and keeps those that may act,
// at most one for each request. It changes nothing.
func (t *Thread) match(in input) ([]accepted, []Refusal) {
	var ids []string
	byID := map[string][]content.InputResponse{}
	for _, a := range in.answers {
		id := a.InputResponseTo()
		if _, seen := byID[id]; !seen {
			ids = append(ids, id)
		}
		byID[id] = append(byID[id], a)
	}

	var out []accepted
	refused := in.refused
	for _, id := range ids {
		hit, no := t.matchOne(id, byID[id])
		if hit != nil {
			out = append(out, *hit)
		}
		refused = append(refused, no...)
	}

	return out, refused
}

func (t *Thread) matchOne(id string, answers []content.InputResponse) (*accepted, []Refusal) {
	it, a := t.find(id)
	if a == nil {
		return nil, []Refusal{t.noSuch(id)}
	}
	if a.Ref != "" {
		return nil, []Refusal{
			{id, HeldElsewhere, "the request is answered where it is held, not in the messages"},
		}
	}
	var fit []content.InputResponse
	var refused []Refusal
	for _, answer := range answers {
		if no := CheckAnswer(a.Request, answer); no != nil {
			refused = append(refused, *no)
			continue
		}
		fit = append(fit, answer)
	}

	one, no := agree(id, fit)
	refused = append(refused, no...)
	if one == nil {
		return nil, refused
	}
	return &accepted{it, a, one}, refused
}

func (t *Thread) noSuch(id string) Refusal {
	if how := t.ended(id); how != "" {
		return Refusal{id, ClosedRequest, "the request has ended: " + how}
	}
	return Refusal{id, UnknownRequest, "this thread asks nothing of that id"}
}

// CheckAnswer tells why an answer can't be one to a request that was
// recorded; nil when it can. It is what every layer holds answers to.
func CheckAnswer(request content.InputRequest, answer content.InputResponse) *Refusal {
	id := request.InputRequestID()
	switch q := request.(type) {
	case *content.ToolApprovalRequest:
		if a, ok := answer.(*content.ToolApprovalResponse); ok {
			return misfitCall(q, a)
		}
	case *content.TextApprovalRequest:
		if _, ok := answer.(*content.TextApprovalResponse); ok {
			return nil
		}
	case *content.StructuredInputRequest:
		if a, ok := answer.(*content.StructuredInputResponse); ok {
			if err := q.Check(a); err != nil {
				return &Refusal{id, BadAnswer, err.Error()}
			}
			return nil
		}
	}

	return &Refusal{id, WrongKind, fmt.Sprintf("%s does not answer %s", kindOf(answer), kindOf(request))}
}

// kindOf names a request or a response for people.
func kindOf(c content.Content) string {
	switch c.(type) {
	case *content.ToolApprovalRequest, *content.ToolApprovalResponse:
		return "a tool approval"
	case *content.TextApprovalRequest, *content.TextApprovalResponse:
		return "a text approval"
	case *content.StructuredInputRequest, *content.StructuredInputResponse:
		return "structured input"
	}

	return fmt.Sprintf("a %T", c)
}

const textRounded = "the answer shows the call with rounded numbers: " +
	"whoever answered keeps numbers as doubles, which can't hold this call's; let the tool take such a number as a text"

// misfitCall holds the copy in the answer against the call that was
// asked about: whoever answered something else was shown something
// else. Wires that carry no copy are bound by the id alone.
func misfitCall(q *content.ToolApprovalRequest, a *content.ToolApprovalResponse) *Refusal {
	id := q.RequestID
	switch {
	case a.Edited != nil && !editable(q.Call):
		return &Refusal{id, BadAnswer, "only calls of functions can be edited"}
	case a.Call != nil && content.SameButRounded(q.Call, a.Call):
		return &Refusal{id, OtherCall, textRounded}
	case a.Call != nil && !content.SameCall(q.Call, a.Call):
		return &Refusal{id, OtherCall, "the answer shows another call than the one that was asked about"}
	case a.Edited == nil:
		return nil
	case !a.Approved:
		return &Refusal{id, BadAnswer, "a rejection can't edit"}
	case a.Edited.Name != q.Call.ToolName() || a.Edited.CallID != q.Call.ID():
		return &Refusal{id, BadAnswer, "an edit changes arguments, never the tool: expected " + q.Call.ToolName()}
	}

	if err := a.Edited.CheckArguments(); err != nil {
		return &Refusal{id, BadAnswer, err.Error()}
	}
	return nil
}

func editable(c content.ToolCall) bool {
	_, ok := c.(*content.FunctionCall)
	return ok
}

// agree makes one of several answers to one request. When they differ
// only a rejection can stand.
func agree(id string, answers []content.InputResponse) (content.InputResponse, []Refusal) {
	if len(answers) == 0 {
		return nil, nil
	}
	first := answers[0]
	differ := slices.ContainsFunc(answers[1:], func(a content.InputResponse) bool {
		return !content.SameAnswer(first, a)
	})
	var refused []Refusal
	if !differ {
		for range answers[1:] {
			refused = append(refused, Refusal{id, RepeatedAnswer, "the same answer again"})
		}
		return first, refused
	}

	var stands content.InputResponse
	for _, a := range answers {
		if stands == nil && content.Rejects(a) {
			stands = a
			continue
		}
		refused = append(refused, Refusal{id, Contradiction, "several answers to one request differ"})
	}

	return stands, refused
}
