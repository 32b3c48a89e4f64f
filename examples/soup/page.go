package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

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

func (p *page) title(format string, args ...any) { p.print("— "+format+"\n", args...) }

func (p *page) prompt(text string) { p.print("  %-9s %s", "you", template.Escape(text)) }

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
		case *content.ToolApprovalRequest:
			p.line("asks", callText(c.Call)+"?")
		case *content.ToolApprovalResponse:
			p.line("answer", answerText(c))
		}
	}
}

func speaker(role content.Role) string {
	if role == content.User {
		return "guest"
	}
	return "waiter"
}

// callText shows a call with its arguments on one line. Compacting drops white space between values and nothing else.
func callText(c content.ToolCall) string {
	var args bytes.Buffer
	if json.Compact(&args, c.Args()) != nil { // no JSON: as it is
		return c.ToolName() + " " + string(c.Args())
	}
	return c.ToolName() + " " + args.String()
}

func answerText(a *content.ToolApprovalResponse) string {
	text := "no"
	if a.Approved {
		text = "yes"
	}
	text += " to " + callText(a.Call)
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}
