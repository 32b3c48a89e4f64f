package agent

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// accepted is an answer together with the open request and the call that it belongs to.
type accepted struct {
	item   *item
	ask    *ask
	answer content.InputResponse
}

// match finds the request for each answer and returns the answers that may be applied, at most
// one per request, and a refusal for each of the others. It doesn't change the thread.
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
	i, refused := Agree(
		answers,
		func(answer content.InputResponse) *Refusal { return CheckAnswer(a.Request, answer) },
	)
	if i < 0 {
		return nil, refused
	}
	return &accepted{it, a, answers[i]}, refused
}

func (t *Thread) noSuch(id string) Refusal {
	if how := t.ended(id); how != "" {
		return Refusal{id, ClosedRequest, "the request has ended: " + how}
	}
	return Refusal{id, UnknownRequest, "this thread asks nothing of that id"}
}

// CheckAnswer returns the reason why an answer is not valid for a recorded request, or nil if
// it is valid. Every layer checks answers with it.
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

// kindOf names the kind of a request or a response for error messages.
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

// misfitCall compares the copy of the call in the answer with the call that the user was asked
// about. If they differ, the person who answered saw a different call, so the answer is
// refused. Some wire formats carry no copy; then the request id alone links the answer to its
// request.
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

// Agree chooses one of several answers to the same request. It returns the index of that
// answer, or -1 if none can be used, and a refusal for each of the others. Answers for which
// misfit returns a refusal are ignored. If the remaining answers differ, only a rejection among
// them is used.
func Agree(
	answers []content.InputResponse, misfit func(content.InputResponse) *Refusal,
) (chosen int, refused []Refusal) {
	var fit []int
	for i, a := range answers {
		if no := misfit(a); no != nil {
			refused = append(refused, *no)
		} else {
			fit = append(fit, i)
		}
	}

	if len(fit) == 0 {
		return -1, refused
	}
	chosen = fit[0]
	reason, detail := RepeatedAnswer, "the same answer again"
	if slices.ContainsFunc(fit, func(i int) bool { return !content.SameAnswer(answers[chosen], answers[i]) }) {
		reason, detail = Contradiction, "several answers to one request differ"
		no := slices.IndexFunc(fit, func(i int) bool { return content.Rejects(answers[i]) })
		chosen = -1
		if no >= 0 {
			chosen = fit[no]
		}
	}

	for _, i := range fit {
		if i != chosen {
			refused = append(refused, Refusal{answers[i].InputResponseTo(), reason, detail})
		}
	}
	return chosen, refused
}
