package layer

import (
	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// misfitEntry returns the reason why an answer is not valid for a recorded request, or nil if
// it is valid.
func misfitEntry(e *rounds.Entry, a content.InputResponse, tools rounds.Toolbox) *agent.Refusal {
	if answer := approval(a); e.Reused && answer != nil && answer.Call == nil {
		return &agent.Refusal{
			RequestID: e.ID,
			Reason:    agent.OtherCall,
			Detail:    "two calls were asked about under this id, and the answer shows neither",
		}
	}

	return misfit(e.Request.InputRequest, a, tools)
}

func misfit(q content.InputRequest, a content.InputResponse, tools rounds.Toolbox) *agent.Refusal {
	if no := agent.CheckAnswer(q, a); no != nil {
		return no
	}
	if answer := approval(a); answer != nil && answer.Edited != nil && !rounds.Nested(q) {
		if err := checkEdit(answer.Edited, tools); err != nil {
			return &agent.Refusal{
				RequestID: q.InputRequestID(),
				Reason:    agent.BadAnswer,
				Detail:    err.Error(),
			}
		}
	}

	return nil
}

// checkEdit checks edited arguments against the schemas of their tool. Tools of nested agents
// are not known here and are checked by their own loops.
func checkEdit(edited *content.FunctionCall, tools rounds.Toolbox) error {
	for _, t := range tools.Named(edited.Name) {
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
