package template

import (
	"strings"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// Facts has the known facts of a call, which are the source of every variable. An empty string
// or an Absent value means that a fact is not known.
type Facts struct {
	ToolName    string // the local tool's alias; for MCP tools, which have no alias, the tool's name
	MCPServer   string // alias
	SkillID     string
	RemoteAgent string // alias

	// AgentAlias has two meanings in the standard. For tools and skills it is the executing
	// agent's own alias; a root agent has none, and then agent_alias shows AgentID. For
	// delegation it is the alias of the called agent.
	AgentAlias string
	AgentID    string // metadata.id of the executing agent; for delegation, of the parent

	Args        value.Value // of the tool or skill; Absent counts as {}
	ParentInput value.Value // of the delegating agent
}

// text returns a variable's value, not escaped yet. It returns false if the variable has none
// in this context.
func (f *Facts) text(ctx Context, r reference) (safetext.Value, bool) {
	if !r.in(ctx) {
		return safetext.Value{}, false
	}
	switch r.root {
	case toolArgs, skillArgs:
		return documentText(f.args(), r.path)
	case parentInput:
		return documentText(f.ParentInput, r.path)
	}

	s := f.name(ctx, r.root)
	return safetext.Value{Text: s}, s != ""
}

func (f *Facts) args() value.Value {
	if f.Args.Kind == value.Absent {
		return value.Value{Kind: value.Object}
	}
	return f.Args
}

// name returns the value of a variable that is a plain name.
func (f *Facts) name(ctx Context, r root) string {
	switch r {
	case toolName:
		return f.ToolName
	case mcpServerAlias:
		return f.MCPServer
	case skillID:
		return f.SkillID
	case remoteAgentAlias:
		return f.remote(ctx)
	case agentAlias:
		return f.alias(ctx)
	}

	return f.AgentID
}

func (f *Facts) alias(ctx Context) string {
	switch {
	case f.AgentAlias != "":
		return f.AgentAlias
	case ctx == RemoteDelegation:
		return f.RemoteAgent
	case ctx == LocalDelegation:
		return "" // the parent's id would name the wrong agent
	}

	return f.AgentID
}

// remote returns the remote agent's alias. In a delegation that is the called agent, from
// either field.
func (f *Facts) remote(ctx Context) string {
	if f.RemoteAgent == "" && ctx == RemoteDelegation {
		return f.AgentAlias
	}
	return f.RemoteAgent
}

// documentText returns the value at a path of a document. The whole document is always shown as
// JSON, even if it is a string.
func documentText(v value.Value, path string) (safetext.Value, bool) {
	if path == "" {
		return jsonText(v)
	}
	found, ok := v.Lookup(path)
	if ok && found.Kind == value.String {
		return safetext.Value{Text: found.Text}, true
	}
	return jsonText(found)
}

// jsonText returns compact JSON in source order, with numbers in their original spelling.
func jsonText(v value.Value) (safetext.Value, bool) {
	if v.Kind == value.Absent {
		return safetext.Value{}, false
	}
	return safetext.Value{Text: string(v.AppendJSON(nil)), JSON: true}, true
}

// Default returns the message for a call whose rule has no template: who asks to do what, with
// all arguments. Names are quoted, so that they can't be mistaken for parts of the sentence.
func Default(ctx Context, f *Facts) string {
	text, _ := defaultText(ctx, f)
	return text
}

// defaultText also returns which variable was cut.
func defaultText(ctx Context, f *Facts) (text string, cut []string) {
	if f == nil {
		f = &Facts{}
	}
	var b strings.Builder
	b.WriteString("Agent " + quote(f.AgentID) + " asks to ")
	doc := f.args()
	switch ctx {
	case LocalTool:
		b.WriteString("call tool " + quote(f.ToolName) + " with arguments ")
	case MCPTool:
		b.WriteString(
			"call tool " + quote(f.ToolName) + " of MCP server " + quote(f.MCPServer) + " with arguments ",
		)
	case Skill:
		b.WriteString(
			"use skill " + quote(f.SkillID) + " of remote agent " + quote(f.RemoteAgent) + " with arguments ",
		)
	case LocalDelegation:
		doc = f.ParentInput
		b.WriteString("delegate to agent " + quote(f.alias(ctx)) + " with input ")
	case RemoteDelegation:
		doc = f.ParentInput
		b.WriteString("delegate to remote agent " + quote(f.remote(ctx)) + " with input ")
	default:
		b.WriteString("do something of an unknown kind with arguments ")
	}

	whole, known := jsonText(doc)
	if !known {
		whole.Text = "(unknown)"
	}
	shown, truncated := whole.Show(maxValue)
	if truncated {
		cut = []string{document(ctx)}
	}
	b.WriteString(shown)
	return b.String(), cut
}

// quote returns a name as a JSON string, or "(unknown)" if it is empty.
func quote(name string) string {
	if name == "" {
		return "(unknown)"
	}
	text, _ := jsonText(value.Value{Kind: value.String, Text: name})
	shown, _ := text.Show(maxValue)
	return shown
}
