package template

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// Context is the kind of call to be approved. It determines which variables exist.
type Context uint8

// The contexts of Agent Format's variable catalog.
const (
	LocalTool        Context = iota // a call of a tool in local_tools
	MCPTool                         // a call of a tool of an MCP server
	Skill                           // a skill of a remote agent
	LocalDelegation                 // delegation to an agent in local_agents
	RemoteDelegation                // delegation to an agent in remote_agents
)

// String returns the context's name for findings.
func (c Context) String() string {
	names := [...]string{"local tool", "MCP tool", "skill", "local delegation", "remote delegation"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown context"
}

// Fit says whether a variable can have a value in a context.
type Fit uint8

// Results of Check.
const (
	Unknown      Fit = iota // not in the catalog
	WrongContext            // only in another context
	Known                   // in this context; rendering a call shows whether the arguments have the path
)

// root is a variable of the catalog.
type root uint8

const (
	noRoot root = iota
	toolName
	toolArgs
	mcpServerAlias
	skillID
	skillArgs
	remoteAgentAlias
	parentInput
	agentAlias
	agentID
)

const (
	inTool       = 1<<LocalTool | 1<<MCPTool
	inDelegation = 1<<LocalDelegation | 1<<RemoteDelegation
	everywhere   = inTool | 1<<Skill | inDelegation
)

// entry is one row of the catalog.
type entry struct {
	root     root
	name     string
	document bool // JSON, with paths below it
	contexts uint8
}

// catalog lists the variables in the order for documentation.
func catalog() [9]entry {
	return [9]entry{
		{toolName, "tool_name", false, inTool},
		{toolArgs, "tool_args", true, inTool},
		{mcpServerAlias, "mcp_server_alias", false, 1 << MCPTool},
		{skillID, "skill_id", false, 1 << Skill},
		{skillArgs, "skill_args", true, 1 << Skill},
		{remoteAgentAlias, "remote_agent_alias", false, 1<<Skill | 1<<RemoteDelegation},
		{parentInput, "parent.input", true, inDelegation},
		{agentAlias, "agent_alias", false, everywhere},
		{agentID, "agent_id", false, everywhere},
	}
}

// reference is a parsed variable name: a root and, for documents, the path below it, which is
// empty for the whole document.
type reference struct {
	root     root
	path     string
	contexts uint8
}

func refer(name string) reference {
	for _, e := range catalog() {
		path, below := strings.CutPrefix(name, e.name+".")
		if name == e.name {
			return reference{root: e.root, contexts: e.contexts}
		}
		if below && e.document {
			return reference{root: e.root, path: path, contexts: e.contexts}
		}
	}

	return reference{}
}

func (r reference) in(ctx Context) bool { return r.contexts>>ctx&1 == 1 }

// Variables returns the catalog's names for a context. Below tool_args, skill_args and
// parent.input any path is allowed.
func Variables(ctx Context) []string {
	var names []string
	for _, e := range catalog() {
		if e.contexts>>ctx&1 == 1 {
			names = append(names, e.name)
		}
	}
	return names
}

// Check reports whether a variable, named as in Ref, can have a value in a context.
func Check(ctx Context, name string) Fit {
	switch r := refer(name); {
	case r.root == noRoot:
		return Unknown
	case !r.in(ctx):
		return WrongContext
	}

	return Known
}

// Suggest returns the name that an author probably meant by one that does not fit the context:
// the corresponding variable of the context, a name with a similar spelling, or the argument of
// that name. It returns an empty string for a name that fits.
func Suggest(ctx Context, name string) string {
	r := refer(name)
	switch {
	case r.in(ctx):
		return ""
	case r.root == toolArgs, r.root == skillArgs, r.root == parentInput:
		return join(document(ctx), r.path)
	case r.root != noRoot:
		return subject(ctx)
	}

	return suggestUnknown(ctx, name)
}

// suggestUnknown looks for a misspelled root. Otherwise an unknown name is most likely an
// argument without its prefix.
func suggestUnknown(ctx Context, name string) string {
	head, rest, _ := strings.Cut(name, ".")
	switch near := diag.Nearest(head, Variables(ctx)); near {
	case "":
	case document(ctx):
		return join(near, rest)
	default:
		return near
	}

	if near := diag.Nearest(name, Variables(ctx)); near != "" {
		return near
	}
	if i := slices.IndexFunc(Variables(ctx), func(v string) bool { return strings.HasPrefix(v, name+"_") }); i >= 0 {
		return Variables(ctx)[i] // remote_agent for remote_agent_alias
	}
	switch head {
	case "args", "arguments", "input", "params", "parameters", "parent":
		return join(document(ctx), strings.TrimPrefix(rest, "input."))
	}
	return join(document(ctx), name)
}

// document returns the context's variable that has the JSON arguments.
func document(ctx Context) string {
	switch ctx {
	case Skill:
		return "skill_args"
	case LocalDelegation, RemoteDelegation:
		return "parent.input"
	}

	return "tool_args"
}

// subject returns the context's variable that names what is called.
func subject(ctx Context) string {
	switch ctx {
	case Skill:
		return "skill_id"
	case LocalDelegation, RemoteDelegation:
		return "agent_alias"
	}

	return "tool_name"
}

func join(root, path string) string {
	if path == "" {
		return root
	}
	return root + "." + path
}
