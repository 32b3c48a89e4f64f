package main

import (
	"strings"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/examples/internal/stage"
)

// page shows the conversation between a traveller and the agent.
type page struct{ *stage.Page }

func (p page) message(m *content.Message) {
	p.Message(m, func(c content.Content) {
		switch c := c.(type) {
		case content.InputRequest:
			p.request(c)
		case content.InputResponse:
			p.response(c)
		}
	})
}

// request shows a question. It shows the exact call below the message about it.
func (p page) request(r content.InputRequest) {
	switch q := r.(type) {
	case *content.ToolApprovalRequest:
		p.Line("asks", q.Note.Message)
		p.Line("about", stage.CallText(q.Call))
		p.note("until", q.Note.Expires)
	case *content.StructuredInputRequest:
		p.Line("asks", q.Text)
		p.Line("data as", string(q.Schema))
	}

	p.Line("id", r.InputRequestID())
}

func (p page) note(who string, at time.Time) {
	if !at.IsZero() {
		p.Line(who, at.Format("2006-01-02 15:04 MST"))
	}
}

func (p page) response(r content.InputResponse) {
	switch a := r.(type) {
	case *content.ToolApprovalResponse:
		p.Line("answer", strings.TrimSpace(verdict(a)+" "+a.Reason))
	case *content.StructuredInputResponse:
		if a.Declined {
			p.Line("answer", strings.TrimSpace("no "+a.Reason))
			return
		}
		p.Line("answer", string(a.Data))
	}
}

func verdict(a *content.ToolApprovalResponse) string {
	switch {
	case a.Edited != nil:
		return "yes, but " + stage.CallText(a.Edited)
	case a.Approved:
		return "yes"
	}

	return "no"
}
