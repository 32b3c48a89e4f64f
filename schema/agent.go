package schema

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/template"
)

// Agent is one parsed `.agf.yaml` with the standard's defaults applied.
// It is not changed after Parse.
type Agent struct {
	File          string
	Doc           *yamldoc.Document
	SchemaVersion string
	SchemaRange   diag.Range // of the schema_version value
	Metadata      Metadata
	Interface     Interface
	Memory        Memory
	Constraints   Constraints
	ActionSpace   ActionSpace
	Policy        ExecutionPolicy
	// Strays are fields outside of the entries that look like misspelt gates, by the StrayKey of
	// the target for which they were written. The empty key is for every call.
	Strays map[string][]MisspeltGate
	// Cut names the top-level blocks from which broken parts were removed; see ParseParts. It is
	// nil for an agent from Parse.
	Cut map[string]bool
}

// HasFileAgents reports whether the agent has sub-agents in other files, so that LoadGraph has
// something to load.
func (a *Agent) HasFileAgents() bool {
	return slices.ContainsFunc(
		a.ActionSpace.LocalAgents,
		func(l LocalAgent) bool { return l.SourceType == sourceFile },
	)
}

// Metadata identifies the agent. Governance policies select agents by it.
type Metadata struct {
	ID, Name, Version, Description, Namespace, DataClassification string

	Labels map[string]string // nil when absent
	Range  diag.Range
}

// Interface contains the JSON Schemas of the agent's input and output, which are not interpreted.
type Interface struct {
	Input, Output *yamldoc.Node
	Range         diag.Range
}

// Memory says whether the agent may run without a stable memory
// (default: it may).
type Memory struct {
	Required bool
}

// Constraints are the agent's own limits and the governance policies that it names.
type Constraints struct {
	TightenOnly      bool       // default true
	TightenOnlyRange diag.Range // of the written value; zero when absent
	Budget           Budget
	Limits           Limits
	Policies         []PolicyRef
}

// Budget limits one run. Nil means that the file sets no limit.
type Budget struct {
	MaxTokenUsage      *int64 // tokens, in and out
	MaxDurationSeconds *int64
}

// Limits limits one run by counts. Nil means that the file sets no limit, and 0 that none is
// allowed.
type Limits struct {
	MaxLLMCalls, MaxToolCalls, MaxDelegationDepth *int64
}

// PolicyRef names a governance policy that applies to the agent.
type PolicyRef struct {
	Ref      string
	Required bool       // default true: without the policy the agent must not run
	RefRange diag.Range // of the policy_ref value
	Range    diag.Range
}

// ActionSpace lists everything that the agent may reach.
type ActionSpace struct {
	LocalTools   []LocalTool
	MCPServers   []MCPServer
	LocalAgents  []LocalAgent
	RemoteAgents []RemoteAgent
}

// Entry has the fields that all entries of the action space have.
type Entry struct {
	Alias             string
	Approval          *Approval      // nil when absent
	Misspelt          []MisspeltGate // fields that are meant as gates; every call of the entry asks
	AliasRange, Range diag.Range
}

// List is one of the four lists of an action space.
type List struct {
	Key     string
	What    string // an entry of it, for sentences
	Entries []*Entry
}

// Lists returns all four, in the order in which the standard has them.
func (s *ActionSpace) Lists() []List {
	return []List{
		{"local_tools", "local tool", entries(s.LocalTools, func(t *LocalTool) *Entry { return &t.Entry })},
		{"mcp_servers", "MCP server", entries(s.MCPServers, func(m *MCPServer) *Entry { return &m.Entry })},
		{"local_agents", "local agent", entries(s.LocalAgents, func(l *LocalAgent) *Entry { return &l.Entry })},
		{"remote_agents", "remote agent", entries(s.RemoteAgents, func(r *RemoteAgent) *Entry { return &r.Entry })},
	}
}

func entries[T any](list []T, entry func(*T) *Entry) []*Entry {
	var all []*Entry
	for i := range list {
		all = append(all, entry(&list[i]))
	}
	return all
}

// LocalTool is a function that the runtime binds by alias.
type LocalTool struct {
	Entry
	Name string
}

// MCPServer is a tool server. Its approval applies to all tools that have none of their own.
type MCPServer struct {
	Entry
	ServerRef     string
	AllowedTools  *[]ToolRef    // nil when absent: every tool; empty: none
	AllowedRange  diag.Range    // of the allowed_tools list; zero when absent
	MisspeltAllow *yamldoc.Node // the value of allow_tools, the old name; nil when absent
	MisspeltLists []MisspeltList
}

// ToolRef is one entry of allowed_tools (a tool's name) or
// allowed_skills (a skill's id).
type ToolRef struct {
	Name      string
	Approval  *Approval      // nil if absent: the container's approval applies
	Misspelt  []MisspeltGate // fields that are meant as gates; every call asks
	NameRange diag.Range
	Range     diag.Range
}

// LocalAgent is a sub-agent that runs in the same runtime as its parent. Its approval gates the
// delegation.
type LocalAgent struct {
	Entry
	Source              string
	SourceType          string     // default "file"; "registry", "db" or a runtime's own otherwise
	MemoryScopeStrategy string     // "inherit" (default), "isolated" or "none"
	SourceRange         diag.Range // of the source value
}

// RemoteAgent is an agent reached over A2A. Its approval gates the delegation, and each skill may
// have its own.
type RemoteAgent struct {
	Entry
	AllowedSkills *[]ToolRef    // nil when absent: every skill; empty: none
	AllowedRange  diag.Range    // of the allowed_skills list; zero when absent
	MisspeltAllow *yamldoc.Node // the value of allow_skills, the old name; nil when absent
	MisspeltLists []MisspeltList
}

// Form says when an approval asks. The zero value asks always.
type Form uint8

// The forms of an approval (Agent Format, HITL).
const (
	Always      Form = iota // true, {}, or an object with none of the fields that an approval has
	Conditional             // an object with a condition
	Never                   // false: lifts what would be inherited, never what a policy demands
)

// String returns "always", "conditional" or "never".
func (f Form) String() string {
	switch f {
	case Conditional:
		return "conditional"
	case Never:
		return "never"
	default:
		return "always"
	}
}

// Approval is one approval requirement.
type Approval struct {
	Form      Form
	Template  *Template       // nil when absent
	Condition *condition.Expr // set when Form is Conditional
	Node      *yamldoc.Node
	Range     diag.Range
}

// Template is a text with placeholders, and its node for exact positions.
type Template struct {
	Text   string
	Parsed *template.Template
	Node   *yamldoc.Node
}

// ExecutionPolicy defines how the agent runs. ID determines which fields are set; a vendor's policy
// has only its Config.
type ExecutionPolicy struct {
	ID      string
	IDRange diag.Range
	Config  *yamldoc.Node
	Range   diag.Range

	React         *React          // agf.react
	Steps         []Step          // agf.sequential, agf.loop: in order; agf.parallel: its agents
	Batch         *Batch          // agf.batch
	MaxIterations int64           // agf.loop, default 10
	ExitCondition *condition.Expr // agf.loop; nil when absent: exactly MaxIterations
	Routes        []Route         // agf.conditional, in order
	DefaultAgent  *AgentRef       // agf.conditional; nil when absent: no match is an error
	Output        Output          // agf.sequential, agf.parallel, agf.loop
}

// The execution policies of the standard.
const (
	PolicyReact       = "agf.react"
	PolicySequential  = "agf.sequential"
	PolicyParallel    = "agf.parallel"
	PolicyLoop        = "agf.loop"
	PolicyBatch       = "agf.batch"
	PolicyConditional = "agf.conditional"
)

// React is the configuration of agf.react, as far as approvals and lint use it.
type React struct {
	Model, Provider, ToolChoice string
	MaxSteps                    int64     // default 10
	UserPromptTemplate          *Template // reads the agent's input fields, none of the approval variables
}

// AgentRef is the use of a sub-agent's alias.
type AgentRef struct {
	Alias string
	Range diag.Range
}

// Step is one sub-agent call of a sequence, a loop or a parallel run.
type Step struct {
	Agent AgentRef
	Input []Mapping // in source order; nil when absent
	Range diag.Range
}

// Mapping fills one input field of a sub-agent from a path.
type Mapping struct {
	Field string
	Path  Path // zero when the text is no path
	Node  *yamldoc.Node
}

// Batch is the configuration of agf.batch.
type Batch struct {
	Agent    AgentRef
	Input    []Mapping
	MaxCount int64 // 0 (default): no bound
}

// Route is one branch of agf.conditional.
type Route struct {
	When  *condition.Expr
	Agent AgentRef
	Input []Mapping
	Range diag.Range
}

// Output selects the result of several sub-agents. Exactly one field is set.
type Output struct {
	Strategy  string // "last", "first" or "merge"; the policy's default when output_from is absent
	Agent     *AgentRef
	Transform string     // a function that the runtime knows
	Range     diag.Range // zero when absent
}
