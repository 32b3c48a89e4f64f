package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// Kind is the kind of a call.
type Kind = policy.Kind

// The kinds of call.
const (
	Tool       = policy.Tool
	MCPTool    = policy.MCPTool
	Skill      = policy.Skill
	Delegation = policy.Delegation
)

// Remote reports whether a delegated agent is local or remote if its alias could be both.
type Remote uint8

// The readings of a delegation's alias.
const (
	RemoteUnstated Remote = iota // both sets of rules apply
	RemoteYes
	RemoteNo
)

// MarshalJSON writes what a call's JSON says: true, false, or null when
// it says nothing.
func (r Remote) MarshalJSON() ([]byte, error) {
	return []byte([]string{"null", "true", "false"}[min(r, RemoteNo)]), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Remote) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		*r = RemoteUnstated
	case "true":
		*r = RemoteYes
	case "false":
		*r = RemoteNo
	default:
		return fmt.Errorf("remote: %s is neither true nor false", data)
	}

	return nil
}

// Call describes a call that an agent wants to make. Kind decides which names are read: Tool for a
// local tool, Server and Tool for an MCP tool, Agent and Skill for a skill, Agent for a delegation.
//
// A call has two forms in JSON, and both keep the bytes of its arguments. A caller presents it with
// the arguments as they are (ParseCall, JSON). A request records it with their text in a string
// (encoding/json), so that no encoder on the way changes them.
type Call struct {
	Kind   Kind   `json:"kind"`
	Tool   string `json:"tool,omitempty"`
	Server string `json:"server,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Skill  string `json:"skill,omitempty"`

	// Args is the raw JSON of the arguments: exactly the bytes that
	// will be forwarded. They are checked strictly and must not change
	// during the call.
	Args Raw `json:"args"`
	// Values are decoded arguments, read when Args is nil. Both nil
	// mean {}. They are never recorded.
	Values map[string]any `json:"-"`
	// ParentInput is the raw JSON of the calling agent's own input, which conditions of delegations
	// test. It is nil if unknown.
	ParentInput Raw `json:"parent_input,omitempty"`
	// Annotations are the MCP hints that the server reported; a hint
	// that is not there takes MCP's default.
	Annotations map[string]bool `json:"annotations,omitempty"`
	// Declared lists the arguments that the tool's input schema declares, sorted. It is nil if the
	// schema is not known. A rule with takes meets the call if each argument is declared or present.
	Declared []string `json:"declared,omitempty"`
	// Remote distinguishes local and remote agents with the same alias.
	Remote Remote `json:"remote,omitempty"`

	// Principal, Session and ToolDefinition (a digest of the tool's definition) become part of the
	// binding unchanged.
	Principal      string `json:"principal,omitempty"`
	Session        string `json:"session,omitempty"`
	ToolDefinition string `json:"tool_definition,omitempty"`

	// At is the moment of the call, for conditions of time. It is the zero time if it is not known.
	// It is not part of the binding, and not of a record: a call that is decided again later is
	// decided with the new moment.
	At time.Time `json:"-"`

	// History has the past calls, in any order and of any agent, for tests of the history. They are
	// not known unless HistoryKnown is set. Like At, they are neither part of the binding nor of a
	// record.
	History      []PastCall `json:"-"`
	HistoryKnown bool       `json:"-"`

	// Workspace is the directory in which the call runs, for the facts of Derived. It is not part
	// of the binding.
	Workspace *Workspace `json:"workspace,omitempty"`
}

// Workspace is the directory of a call, as its runtime declares it.
type Workspace = shellfacts.Workspace

// Raw is a JSON text that is kept byte for byte. In a document it is a
// string.
type Raw []byte

// String returns the text.
func (r Raw) String() string { return string(r) }

// MarshalText returns the text.
func (r Raw) MarshalText() ([]byte, error) { return r, nil }

// UnmarshalText takes a copy of the text. An empty one stays empty: a
// plan can't read it, while absent arguments (nil) are the empty
// object.
func (r *Raw) UnmarshalText(text []byte) error {
	*r = append(Raw{}, text...)

	return nil
}

// Recorded returns a copy of the call for a record: absent arguments
// are the empty object, and nothing is shared with the caller. Decoded
// arguments are left out, since only their text can be approved.
func (c *Call) Recorded() Call {
	out := *c
	out.Values = nil
	out.At, out.History, out.HistoryKnown = time.Time{}, nil, false
	out.Args = slices.Clone(c.Args)
	if len(out.Args) == 0 {
		out.Args = Raw("{}")
	}
	out.ParentInput = nil
	if len(c.ParentInput) > 0 {
		out.ParentInput = slices.Clone(c.ParentInput)
	}
	out.Annotations = maps.Clone(c.Annotations)
	out.Declared = slices.Clone(c.Declared)
	if c.Workspace != nil {
		workspace := *c.Workspace
		workspace.Outside = slices.Clone(workspace.Outside)
		workspace.Secrets = slices.Clone(workspace.Secrets)
		workspace.Sensitive = slices.Clone(workspace.Sensitive)
		workspace.Installed = slices.Clone(workspace.Installed)
		out.Workspace = &workspace
	}

	return out
}

// Target names the target of the call: "tool execute_trade", "mcp_tool broker/sell", "skill
// payments/refund". It returns "no call" if the kind is empty.
func (c *Call) Target() string {
	switch c.Kind {
	case "":
		return "no call"
	case MCPTool:
		return string(c.Kind) + " " + c.Server + "/" + c.Tool
	case Skill:
		return string(c.Kind) + " " + c.Agent + "/" + c.Skill
	case Delegation:
		return string(c.Kind) + " " + c.Agent
	}

	return string(c.Kind) + " " + c.Tool
}

// Container returns the MCP server or the remote agent of the call. It is empty for a local target.
func (c *Call) Container() string {
	switch {
	case c.Kind == MCPTool:
		return c.Server
	case c.Kind == Skill, c.Kind == Delegation && c.Remote != RemoteNo:
		return c.Agent
	}

	return ""
}

// CallError is the error for a call that can't be read.
type CallError struct {
	Field string // envelope field, "" for the whole
	Err   error
}

// Error names the field and what was expected.
func (e *CallError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Field, e.Err)
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// ParseCall reads one call in its JSON form (docs/contracts/decide.md).
// The envelope is read strictly: unknown, repeated, wrong-case and
// mistyped fields are refused with a *CallError, arguments that are no
// object among them. The arguments and the parent's input are kept as
// raw bytes; whether they are readable is decided by Plan.Decide.
func ParseCall(line []byte, lim value.Limits) (*Call, error) {
	c := &Call{}
	seen := map[string]bool{}
	for m, err := range value.SplitObject(line) {
		if err != nil {
			return nil, &CallError{Err: err}
		}
		if seen[m.Key] {
			return nil, &CallError{m.Key, errors.New("the field stands twice")}
		}
		seen[m.Key] = true
		if err := c.set(m.Key, m.Raw, lim); err != nil {
			return nil, &CallError{m.Key, err}
		}
	}

	if err := c.check(seen); err != nil {
		return nil, err
	}
	return c, nil
}

// mostEnveloped limits the JSON values in each field of a call other than the arguments and the
// parent's input.
const mostEnveloped = 10_000

func (c *Call) set(field string, raw []byte, lim value.Limits) error {
	switch field {
	case "args":
		c.Args = raw
		return checkArguments(raw, lim)
	case "parent":
		return c.setParent(raw, lim)
	case "history":
		return c.setHistory(raw, lim)
	}

	lim.MaxValues = mostEnveloped
	switch field {
	case "annotations":
		return c.setAnnotations(raw, lim)
	case "declared":
		return c.setDeclared(raw, lim)
	case "remote":
		return c.setRemote(raw, lim)
	case "workspace":
		return c.setWorkspace(raw, lim)
	case "at":
		at, err := parseMoment(raw, lim)
		c.At = at
		return err
	}

	dst := c.text(field)
	if dst == nil {
		return unknownField(field)
	}
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	if v.Kind != value.String || v.Text == "" {
		return errors.New("expected a string that is not empty")
	}
	*dst = v.Text
	return nil
}

// checkArguments returns an error for arguments that are no JSON object, with a hint what to send.
func checkArguments(raw []byte, lim value.Limits) error {
	if err := wellFormed(raw, lim); err != nil || raw[0] == '{' {
		return err
	}
	v, err := value.Parse(raw, lim)
	if err != nil {
		return fmt.Errorf("expected an object: %w", err)
	}
	switch {
	case v.Kind == value.String && holdsObject(v.Text, lim):
		return errors.New("expected an object; args is JSON text: send the object itself")
	case v.Kind == value.Null:
		return errors.New("expected an object, found null: leave args out where there are no arguments")
	default:
		return fmt.Errorf("expected an object, found JSON of kind %s", v.Kind)
	}
}

// holdsObject reports whether a text is the JSON of an object.
func holdsObject(text string, lim value.Limits) bool {
	v, err := value.Parse([]byte(text), lim)
	return err == nil && v.Kind == value.Object
}

// wellFormed returns an error for text that is not JSON at all. It accepts JSON that is only
// unreadable (duplicate keys, too large): the call is then valid, and denied because of its
// arguments.
func wellFormed(raw []byte, lim value.Limits) error {
	var bad *value.Error
	var shape value.ShapeBuilder
	err := shape.Build().Scan(raw, lim, &value.Scratch{})
	if errors.As(err, &bad) && (bad.Code == value.Syntax || bad.Code == value.TrailingData) {
		return err
	}
	return nil
}

func (c *Call) text(field string) *string {
	switch field {
	case "kind":
		return (*string)(&c.Kind)
	case "tool":
		return &c.Tool
	case "server":
		return &c.Server
	case "agent":
		return &c.Agent
	case "skill":
		return &c.Skill
	case "principal":
		return &c.Principal
	case "session":
		return &c.Session
	case "tool_definition":
		return &c.ToolDefinition
	}

	return nil
}

func (c *Call) setParent(raw []byte, lim value.Limits) error {
	only := errors.New(`expected an object with the one field "input"`)
	for m, err := range value.SplitObject(raw) {
		if err != nil {
			return err
		}
		if m.Key != "input" || c.ParentInput != nil {
			return only
		}
		c.ParentInput = m.Raw
	}

	if c.ParentInput == nil {
		return only
	}
	return wellFormed(c.ParentInput, lim)
}

// setWorkspace reads an object of texts and lists of texts.
func (c *Call) setWorkspace(raw []byte, lim value.Limits) error {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	if v.Kind != value.Object {
		return errors.New("expected an object")
	}
	w := &Workspace{}
	texts := map[string]*string{
		"root": &w.Root, "directory": &w.Directory, "foreign": &w.Foreign, "unknown": &w.Unknown,
		"incomplete": &w.Incomplete,
	}
	lists := map[string]*[]string{
		"outside": &w.Outside, "secrets": &w.Secrets, "installed": &w.Installed, "sensitive": &w.Sensitive,
	}
	for _, m := range v.Members {
		text, list := texts[m.Key], lists[m.Key]
		switch {
		case list != nil && m.Value.Kind == value.Array:
			*list = []string{}
			for _, item := range m.Value.Items {
				if item.Kind != value.String {
					return fmt.Errorf("%s: expected texts", m.Key)
				}
				*list = append(*list, item.Text)
			}
		case text != nil && m.Value.Kind == value.String:
			*text = m.Value.Text
		default:
			return fmt.Errorf("%q: expected root, directory, foreign, incomplete and unknown with a text, or outside, "+
				"secrets, sensitive and installed with a list", m.Key)
		}
	}
	c.Workspace = w

	return nil
}

func (c *Call) setAnnotations(raw []byte, lim value.Limits) error {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	if v.Kind != value.Object {
		return errors.New("expected an object of hints")
	}
	c.Annotations = make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		// The title and hints of other types contain nothing that a rule can match. A boolean hint
		// of a wrong type counts as absent.
		if m.Value.Kind == value.Bool {
			c.Annotations[m.Key] = m.Value.Bool
		}
	}

	return nil
}

func (c *Call) setDeclared(raw []byte, lim value.Limits) error {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	c.Declared = []string{}
	for _, item := range v.Items {
		if item.Kind == value.String {
			c.Declared = append(c.Declared, item.Text)
		}
	}
	if v.Kind != value.Array || len(c.Declared) != len(v.Items) {
		return errors.New("expected a list of names")
	}
	slices.Sort(c.Declared)
	c.Declared = slices.Compact(c.Declared)
	return nil
}

// DeclaredIn returns the sorted names of the arguments that the input schema of a tool declares: the
// members of its `properties`.
func DeclaredIn(schema []byte) []string {
	names := []string{}
	for m, err := range value.SplitObject(schema) {
		if err != nil || m.Key != "properties" {
			continue
		}
		for property, err := range value.SplitObject(m.Raw) {
			if err == nil {
				names = append(names, property.Key)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Call) setRemote(raw []byte, lim value.Limits) error {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	if v.Kind != value.Bool {
		return errors.New("expected true or false")
	}
	c.Remote = RemoteNo
	if v.Bool {
		c.Remote = RemoteYes
	}
	return nil
}

// parseMoment reads a moment as RFC 3339 writes it, with capital letters and without leap seconds.
func parseMoment(raw []byte, lim value.Limits) (time.Time, error) {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return time.Time{}, err
	}
	return ParseMoment(v.Text) // empty if it is no string
}

var errMoment = errors.New(`expected a moment such as "2026-11-28T14:30:00Z"`)

// ParseMoment reads the moment of a call.
func ParseMoment(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	const day = 24 * 60 * 60
	_, offset := at.Zone()
	// Parse also takes hours of one digit, a comma before the fraction, and an offset of 24 hours or with
	// 60 minutes.
	lenient := len(text) < len("2006-01-02T15:04:05Z") || text[len("2006-01-02T15")] != ':' ||
		strings.Contains(text, ",") || strings.HasSuffix(text, ":60") || offset <= -day || offset >= day
	if err != nil || lenient {
		return time.Time{}, errMoment
	}
	if at.IsZero() {
		at = at.Add(1) // the zero time means that no moment is known
	}

	return at, nil
}

func unknownField(field string) error {
	known := []string{
		"kind",
		"tool",
		"server",
		"agent",
		"skill",
		"args",
		"parent",
		"annotations",
		"declared",
		"remote",
		"principal",
		"session",
		"tool_definition",
		"workspace",
		"at",
		"history",
	}
	if near := diag.Nearest(field, known); near != "" {
		return fmt.Errorf("unknown field, did you mean %q", near)
	}
	return fmt.Errorf("unknown field, expected one of %s", strings.Join(known, ", "))
}

// fieldsOf lists the fields that name the target of a kind, and the other fields that only this
// kind may have.
func fieldsOf(k Kind) (must, may []string) {
	switch k {
	case Tool:
		return []string{"tool"}, []string{"annotations", "declared"}
	case MCPTool:
		return []string{"server", "tool"}, []string{"annotations", "declared"}
	case Skill:
		return []string{"agent", "skill"}, []string{"parent", "annotations"}
	case Delegation:
		return []string{"agent"}, []string{"parent", "remote", "annotations"}
	}

	return nil, nil
}

// check compares the names in a call with its kind, so that no field is silently ignored.
func (c *Call) check(seen map[string]bool) error {
	must, may := fieldsOf(c.Kind)
	if must == nil {
		return &CallError{
			"kind",
			fmt.Errorf("%s is no kind of call, expected tool, mcp_tool, skill or delegation",
				quote(string(c.Kind))),
		}
	}

	fits := map[string]bool{
		"kind":            true,
		"args":            true,
		"principal":       true,
		"session":         true,
		"tool_definition": true,
		"workspace":       true,
		"at":              true,
		"history":         true,
	}
	for _, f := range append(may, must...) {
		fits[f] = true
	}
	for _, f := range must {
		if !seen[f] {
			return &CallError{f, fmt.Errorf("a call of kind %s needs this field", c.Kind)}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(seen)) {
		if !fits[f] {
			return &CallError{f, fmt.Errorf("a call of kind %s has no such field", c.Kind)}
		}
	}
	return nil
}
