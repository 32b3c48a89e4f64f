package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/template"
)

// page prints who said what. Everything from models, tools and people is escaped, so that no text can move the cursor, hide a part of itself
// or look like a line of somebody else.
type page struct {
	w     io.Writer
	err   error             // the first; later lines are not written
	tools map[string]string // names by the ids of calls, for their results
}

func newPage(w io.Writer) *page { return &page{w: w, tools: map[string]string{}} }

func (p *page) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *page) title(format string, args ...any) {
	p.print("— %s\n", template.Escape(fmt.Sprintf(format, args...)))
}

// line writes a text beside the name of its speaker. Its own line breaks stay on the right.
func (p *page) line(who, text string) {
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		p.print("%s\n", strings.TrimRight(fmt.Sprintf("  %-9s %s", who, template.Escape(l)), " "))
		who = ""
	}
}

func (p *page) message(m *content.Message) {
	for _, c := range m.Contents {
		switch c := c.(type) {
		case *content.Text:
			p.line(speaker(m.Role), c.Text)
		case *content.FunctionCall:
			p.tools[c.CallID] = c.Name
			p.line("calls", callText(c))
		case *content.FunctionResult:
			p.line("result", p.tools[c.CallID]+" gave "+string(c.Result))
		case content.InputRequest:
			p.request(c)
		case content.InputResponse:
			p.response(c)
		}
	}
}

// request shows what is asked. The exact call stands beside the sentence that was made of it.
func (p *page) request(r content.InputRequest) {
	switch q := r.(type) {
	case *content.ToolApprovalRequest:
		p.line("asks", q.Note.Message)
		p.line("about", callText(q.Call))
		p.note("until", q.Note.Expires)
	case *content.StructuredInputRequest:
		p.line("asks", q.Text)
		p.line("data as", string(q.Schema))
	}
	p.line("id", r.InputRequestID())
}

func (p *page) note(who string, at time.Time) {
	if !at.IsZero() {
		p.line(who, at.Format("2006-01-02 15:04 MST"))
	}
}

func (p *page) response(r content.InputResponse) {
	switch a := r.(type) {
	case *content.ToolApprovalResponse:
		p.line("answer", strings.TrimSpace(verdict(a)+" "+a.Reason))
	case *content.StructuredInputResponse:
		if a.Declined {
			p.line("answer", strings.TrimSpace("no "+a.Reason))
			return
		}
		p.line("answer", string(a.Data))
	}
}

func verdict(a *content.ToolApprovalResponse) string {
	switch {
	case a.Edited != nil:
		return "yes, but " + callText(a.Edited)
	case a.Approved:
		return "yes"
	}
	return "no"
}

func speaker(role content.Role) string {
	if role == content.User {
		return "traveller"
	}
	return "agent"
}

// callText shows a call with its arguments on one line. Compacting drops white space between values and nothing else.
func callText(c content.ToolCall) string {
	var args bytes.Buffer
	if json.Compact(&args, c.Args()) != nil { // no JSON: as it is
		return c.ToolName() + " " + string(c.Args())
	}
	return c.ToolName() + " " + args.String()
}
