package main

import (
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// page shows the conversation between a guest and the waiter.
type page struct{ *stage.Page }

func (p page) message(m *content.Message) {
	p.Message(m, func(c content.Content) {
		switch c := c.(type) {
		case *content.ToolApprovalRequest:
			p.Line("asks", stage.CallText(c.Call)+"?")
		case *content.ToolApprovalResponse:
			p.Line("answer", answerText(c))
		}
	})
}

func answerText(a *content.ToolApprovalResponse) string {
	text := "no"
	if a.Approved {
		text = "yes"
	}
	text += " to " + stage.CallText(a.Call)
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}
