package layer

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/content"
)

// misfitEntry tells why an answer can't be one to a recorded request; nil when it can.
func misfitEntry(e *entry, a content.InputResponse, tools toolbox) *agent.Refusal {
	if answer := approval(a); e.Reused && answer != nil && answer.Call == nil {
		return &agent.Refusal{RequestID: e.ID, Reason: agent.OtherCall, Detail: "two calls were asked about under this id, and the answer shows neither"}
	}
	return misfit(e.Request.InputRequest, a, tools)
}

func misfit(q content.InputRequest, a content.InputResponse, tools toolbox) *agent.Refusal {
	no := func(reason agent.RefusalReason, detail string) *agent.Refusal {
		return &agent.Refusal{RequestID: q.InputRequestID(), Reason: reason, Detail: detail}
	}
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		if a := approval(a); a != nil {
			if a.Call != nil && !content.SameCall(q.Call, a.Call) {
				return no(agent.OtherCall, "the answer shows another call than the one that was asked about")
			}
			if err := checkEdit(q, a, tools); err != nil {
				return no(agent.BadAnswer, err.Error())
			}
			return nil
		}
	case *content.TextApprovalRequest:
		if _, ok := a.(*content.TextApprovalResponse); ok {
			return nil
		}
	case *content.StructuredInputRequest:
		if a, ok := a.(*content.StructuredInputResponse); ok {
			if err := q.Check(a); err != nil {
				return no(agent.BadAnswer, err.Error())
			}
			return nil
		}
	}
	return no(agent.WrongKind, fmt.Sprintf("a %T does not answer a %T", a, q))
}

// checkEdit holds an edited call against the one that was asked about and against the schemas of its tool.
func checkEdit(q *content.ToolApprovalRequest, a *content.ToolApprovalResponse, tools toolbox) error {
	edited := a.Edited
	asked := functionCall(q)
	switch {
	case edited == nil:
		return nil
	case !a.Approved:
		return fmt.Errorf("a rejection can't edit")
	case asked == nil:
		return fmt.Errorf("only calls of functions can be edited")
	case edited.Name != asked.Name || edited.CallID != asked.CallID:
		return fmt.Errorf("an edit changes arguments, never the tool: expected %s", asked.Name)
	}
	if err := edited.CheckArguments(); err != nil {
		return err
	}
	for _, t := range tools.named(asked.Name) {
		if schema := t.Definition().Schema; schema != nil {
			if err := content.CheckSchema(schema, orEmpty(edited.Arguments)); err != nil {
				return err
			}
		}
	}
	return nil
}

func orEmpty(arguments []byte) []byte {
	if len(arguments) == 0 {
		return []byte("{}")
	}
	return arguments
}

// agree tells which of the answers to one request stands, -1 for none. When they differ only a rejection can.
func agree(g *answers, fit []int) (int, []agent.Refusal) {
	if len(fit) == 0 {
		return -1, nil
	}
	first := g.as[fit[0]]
	if !slices.ContainsFunc(fit, func(i int) bool { return !sameAnswer(first, g.as[i]) }) {
		again := agent.Refusal{RequestID: g.id, Reason: agent.RepeatedAnswer, Detail: "the same answer again"}
		return fit[0], repeat(again, len(fit)-1)
	}
	stands, refused := -1, 0
	for _, i := range fit {
		if stands < 0 && rejects(g.as[i]) {
			stands = i
			continue
		}
		refused++
	}
	return stands, repeat(agent.Refusal{RequestID: g.id, Reason: agent.Contradiction, Detail: "several answers to one request differ"}, refused)
}

func rejects(a content.InputResponse) bool {
	switch a := a.(type) {
	case *content.ToolApprovalResponse:
		return !a.Approved
	case *content.TextApprovalResponse:
		return !a.Approved
	case *content.StructuredInputResponse:
		return a.Declined
	}
	return true
}

// sameAnswer tells whether two answers do the same. Reasons do nothing.
func sameAnswer(a, b content.InputResponse) bool {
	if rejects(a) != rejects(b) {
		return false
	}
	switch x := a.(type) {
	case *content.ToolApprovalResponse:
		y := approval(b)
		return y != nil && x.Always == y.Always && sameEdit(x.Edited, y.Edited)
	case *content.TextApprovalResponse:
		_, ok := b.(*content.TextApprovalResponse)
		return ok
	case *content.StructuredInputResponse:
		y, ok := b.(*content.StructuredInputResponse)
		return ok && (x.Declined || content.SameArguments(x.Data, y.Data))
	}
	return false
}

func sameEdit(a, b *content.FunctionCall) bool {
	if a == nil || b == nil {
		return a == b
	}
	return content.SameCall(a, b)
}

// rebind returns the answer with the recorded call in place of its copy.
func rebind(q content.InputRequest, a content.InputResponse) content.InputResponse {
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
