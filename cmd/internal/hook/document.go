package hook

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
)

// moment is the point in the life of a call at which the hook runs.
type moment int

const (
	before  moment = iota // the call wants to run
	dialog                // the product would ask its user now
	elicits               // an MCP server asks the user for a form
	after                 // the call has run
)

// event is a product's document about one call, in a form that is independent of the product.
type event struct {
	product *product
	// name is the product's own name of the event. It is empty if the document has none.
	name    string
	moment  moment
	failed  bool // at after: the tool reported an error
	blocked bool // at after: the product did not run the call
	session string
	id      string // of the call; empty if the product has none
	call    resolve.Call
	from    provenance // of the call's MCP server
	mode    string     // of the product's own permissions
	cwd     string
	named   []string // see names
	// commands are the command lines; see lines.
	commands []string
	root     string // of the project; empty for cwd
	// camel is set if the document has Copilot's own form, with names in camel case.
	camel bool
	// fixed is set if the product accepts no changed arguments at this event.
	fixed bool
}

// maxDocument limits the size of a document, in bytes: the largest arguments of a call and the
// fields around them.
const maxDocument = 16 << 20

// readDocument reads standard input. It returns an error if there is more than maxDocument.
func readDocument(in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the hook document on standard input: %w", err)
	case len(text) > maxDocument:
		return nil, fmt.Errorf("the hook document is larger than %d MiB", maxDocument>>20)
	case len(jsonmsg.Trim(text)) == 0:
		return nil, errors.New("standard input is empty: expected the hook document, as the product writes it")
	}

	return text, nil
}

// readEvent reads a document. It ignores unknown fields, because newer versions of a product add
// some. A required field that is missing or has the wrong type is an error.
func readEvent(p *product, text []byte) (*event, error) {
	in := jsonmsg.Read(text, jsonmsg.Limits())
	e := &event{product: p}
	if in.Err() == nil {
		p.read(in, e)
	}
	if err := in.Err(); err != nil {
		return e, fmt.Errorf("the hook document can't be read: %w", err)
	}
	if e.session == "" {
		return e, errors.New("the hook document names no session: expected one, which tells calls apart")
	}
	e.call.Session = e.session

	return e, nil
}

// moments lists a product's event names for each moment.
type moments struct{ before, dialog, elicits, after, failed, blocked []string }

// at sets the moment of the event. An unknown name is an error, because the format of its answer is
// unknown too.
func (e *event) at(in jsonmsg.Fields, name string, m moments) {
	e.name = name
	switch {
	case slices.Contains(m.before, name):
		e.moment = before
	case slices.Contains(m.dialog, name):
		e.moment = dialog
	case slices.Contains(m.elicits, name):
		e.moment = elicits
	case slices.Contains(m.after, name):
		e.moment = after
	case slices.Contains(m.failed, name):
		e.moment, e.failed = after, true
	case slices.Contains(m.blocked, name):
		e.moment, e.blocked = after, true
	default:
		all := slices.Concat(m.before, m.dialog, m.elicits, m.after, m.failed, m.blocked)
		in.Expect("hook_event_name", "one of "+strings.Join(all, ", "))
	}
}

// claudeMoments returns the event names of Claude Code and of the products that use its format.
func claudeMoments(p *product) moments {
	return moments{
		before:  []string{"PreToolUse"},
		dialog:  []string{"PermissionRequest"},
		elicits: p.elicits,
		after:   []string{"PostToolUse"},
		failed:  []string{"PostToolUseFailure"},
		blocked: p.blocked,
	}
}

// readClaude reads the documents of Claude Code and of Codex.
func readClaude(in jsonmsg.Fields, e *event) {
	e.at(in, in.Need("hook_event_name"), claudeMoments(e.product))
	e.session = in.NonEmpty("session_id")
	e.id = in.Text("tool_use_id")
	e.mode = in.Text("permission_mode")
	e.cwd, e.root = in.Text("cwd"), projectOf(in, e.product.project)
	if e.moment == elicits {
		readElicitation(in, e)
		return
	}
	e.tool(in, "tool_name")
	e.call.Args = in.Required("tool_input").Source
}

// readCopilot reads both forms of Copilot CLI documents. Copilot's own form doesn't name the event:
// if there is a result, the call has run.
func readCopilot(in jsonmsg.Fields, e *event) {
	if in.Has("hook_event_name") {
		readClaude(in, e)
		return
	}
	e.camel = true
	e.session = in.NonEmpty("sessionId")
	e.id = in.Text("toolCallId")
	e.cwd, e.root = in.Text("cwd"), projectOf(in, e.product.project)
	e.tool(in, "toolName")
	e.call.Args = arguments(in, "toolArgs")
	if in.Has("toolResult") {
		e.moment = after
		result := in.Object("toolResult").Text("resultType")
		e.failed, e.blocked = result == "failure", result == "denied" || result == "rejected"
	}
}

// readCursor reads the documents of Cursor. Shell commands and calls of MCP servers have events of
// their own, which accept no changed arguments.
func readCursor(in jsonmsg.Fields, e *event) {
	name := in.Need("hook_event_name")
	e.at(in, name, moments{
		before: []string{"preToolUse", "beforeShellExecution", "beforeMCPExecution"},
		after:  []string{"postToolUse"},
		failed: []string{"postToolUseFailure"},
	})
	e.session = in.NonEmpty("conversation_id")
	e.id = in.Text("tool_use_id")
	e.cwd, e.root = in.Text("cwd"), projectOf(in, e.product.project)
	if e.cwd == "" {
		e.cwd = e.root
	}
	e.blocked = e.failed && in.Text("failure_type") == "permission_denied"
	e.fixed = name == "beforeShellExecution" || name == "beforeMCPExecution"
	if name == "beforeShellExecution" {
		e.call.Kind, e.call.Tool = resolve.Tool, "Shell"
		e.call.Args = shellArguments(in)
		return
	}
	e.tool(in, "tool_name")
	if name == "beforeMCPExecution" && e.call.Kind != resolve.MCPTool {
		in.Expect("tool_name", "mcp__SERVER__TOOL: a bare name may be that of a tool of Cursor itself")
	}
	e.call.Args = arguments(in, "tool_input")
}

// shellArguments converts the event for a shell command to the arguments that the tool Shell has.
func shellArguments(in jsonmsg.Fields) []byte {
	command := in.NonEmpty("command")
	args, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Member("command", command) })
	if err != nil {
		in.Fail(err)
	}

	return args
}

// readGemini reads the documents of Gemini CLI. Gemini's names of MCP tools can't be split into
// server and tool, so the server is read from the MCP context of the document.
func readGemini(in jsonmsg.Fields, e *event) {
	e.at(in, in.Need("hook_event_name"), moments{
		before: []string{"BeforeTool"},
		after:  []string{"AfterTool"},
	})
	e.session = in.NonEmpty("session_id")
	e.cwd, e.root = in.Text("cwd"), projectOf(in, e.product.project)
	e.call.Kind, e.call.Tool = resolve.Tool, in.NonEmpty("tool_name")
	if in.Has("mcp_context") {
		from := in.Object("mcp_context")
		e.call.Kind = resolve.MCPTool
		e.call.Server, e.call.Tool = from.NonEmpty("server_name"), from.NonEmpty("tool_name")
	}
	e.call.Args = in.Required("tool_input").Source
	if e.moment == after {
		e.failed = in.Object("tool_response").Has("error")
	}
}

// arguments returns the named field, which must be an object or a string that contains the text of
// an object.
func arguments(in jsonmsg.Fields, name string) []byte {
	raw := in.Raw(name)
	if text, ok := jsonmsg.ReadString(raw); ok {
		raw = []byte(text)
	}
	if _, err := jsonmsg.Check(raw, jsonmsg.Limits()); err != nil || !jsonmsg.IsObject(raw) {
		in.Expect(name, "an object, or a string that holds one")
		return nil
	}

	return raw
}
