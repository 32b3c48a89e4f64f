package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/template"
)

// Page prints a conversation. It escapes all text from models, tools and people, so that no
// text can move the cursor, hide a part of itself, or look like a line by another speaker.
type Page struct {
	Err   error // the first write error; later lines aren't written
	w     io.Writer
	user  string            // the name of the user
	agent string            // the name of the agent
	tools map[string]string // names by call id, for the results
}

// NewPage returns a page for a user and an agent with these names.
func NewPage(w io.Writer, user, agent string) *Page {
	return &Page{
		w:     w,
		user:  user,
		agent: agent,
		tools: map[string]string{},
	}
}

func (p *Page) print(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintf(p.w, format, args...)
	}
}

// Title writes a heading.
func (p *Page) Title(format string, args ...any) {
	p.print("— %s\n", template.Escape(fmt.Sprintf(format, args...)))
}

// Prompt writes a question to the person at the terminal, who answers on the same line.
func (p *Page) Prompt(text string) { p.print("  %-9s %s", "you", template.Escape(text)) }

// Line writes a text to the right of its speaker's name. Further lines of the text are indented
// below the first.
func (p *Page) Line(who, text string) {
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		p.print("%s\n", strings.TrimRight(fmt.Sprintf("  %-9s %s", who, template.Escape(l)), " "))
		who = ""
	}
}

// Message writes a message. It calls ask for questions and answers, because each example shows
// them in its own way.
func (p *Page) Message(m *content.Message, ask func(content.Content)) {
	for _, c := range m.Contents {
		switch c := c.(type) {
		case *content.Text:
			p.Line(p.speaker(m.Role), c.Text)
		case *content.FunctionCall:
			p.tools[c.CallID] = c.Name
			p.Line("calls", CallText(c))
		case *content.FunctionResult:
			p.Line("result", p.tools[c.CallID]+" gave "+string(c.Result))
		default:
			ask(c)
		}
	}
}

func (p *Page) speaker(role content.Role) string {
	if role == content.User {
		return p.user
	}
	return p.agent
}

// CallText shows a call with its arguments on one line. Compacting only removes white space
// between values.
func CallText(c content.ToolCall) string {
	var args bytes.Buffer
	if json.Compact(&args, c.Args()) != nil { // not JSON, so it is shown unchanged
		return c.ToolName() + content.ServerWords(c) + " " + string(c.Args())
	}
	return c.ToolName() + content.ServerWords(c) + " " + args.String()
}
