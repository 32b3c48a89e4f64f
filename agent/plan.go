package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Target says what a tool is in the agent's file: a local tool of the
// tool's name unless WithTarget says otherwise.
type Target struct {
	Kind        resolve.Kind
	Tool        string
	Server      string // of an MCP tool
	Agent       string // of a skill or a delegation
	Skill       string
	Remote      resolve.Remote
	Annotations map[string]bool // MCP hints, as the server reports them
}

// WithTarget says what a function is in the agent's file, for ByPlan.
func WithTarget(f Function, target Target) Function { return &targeted{f, target} }

type targeted struct {
	Function
	target Target
}

func (t *targeted) Unwrap() Tool { return t.Function }

// PlanOptions say for whom the agent acts; they go into the binding of
// each decision (see resolve.Call).
type PlanOptions struct {
	Principal   string
	Session     string
	ParentInput json.RawMessage
}

// ByPlan decides with an agent's file and its policies. The arguments
// are decided exactly as the function will get them; the digest of the
// tool's definition is part of the binding, so a tool that changed
// since is asked about again.
func ByPlan(plan *resolve.Plan, opt PlanOptions) Decider { return &byPlan{plan: plan, opt: opt} }

type byPlan struct {
	plan    *resolve.Plan
	opt     PlanOptions
	digests sync.Map // of names to known, since most tools never change
}

// known is the digest of a definition that was seen before.
type known struct {
	def    Definition
	target *Target
	digest string
}

func (d *byPlan) digest(t Tool) string {
	if t == nil {
		return ""
	}
	def, target := t.Definition(), targetOf(t)
	if seen, ok := d.digests.Load(def.Name); ok {
		k := seen.(known)
		if k.target == target && k.def.Description == def.Description && bytes.Equal(k.def.Schema, def.Schema) {
			return k.digest
		}
	}

	k := known{def, target, DefinitionDigest(t)}
	k.def.Schema = bytes.Clone(def.Schema)
	d.digests.Store(def.Name, k)
	return k.digest
}

// Decide answers one call.
func (d *byPlan) Decide(_ context.Context, t Tool, call content.ToolCall) (hold.Verdict, error) {
	if d.plan == nil {
		return hold.Verdict{}, errors.New("there is no plan to decide with")
	}
	c := callOf(t, call)
	c.Args = call.Args()
	c.Principal = d.opt.Principal
	c.Session = d.opt.Session
	c.ParentInput = resolve.Raw(d.opt.ParentInput)
	c.ToolDefinition = d.digest(t)
	return hold.Verdict{Decision: d.plan.Decide(c), Call: c}, nil
}

func callOf(t Tool, call content.ToolCall) *resolve.Call {
	if mcp, ok := call.(*content.MCPCall); ok {
		return &resolve.Call{Kind: resolve.MCPTool, Server: mcp.ServerName, Tool: mcp.Name}
	}

	target := targetOf(t)
	if target == nil {
		return &resolve.Call{Kind: resolve.Tool, Tool: call.ToolName()}
	}
	return &resolve.Call{
		Kind:        target.Kind,
		Tool:        target.Tool,
		Server:      target.Server,
		Agent:       target.Agent,
		Skill:       target.Skill,
		Remote:      target.Remote,
		Annotations: target.Annotations,
	}
}

func targetOf(t Tool) *Target {
	if with, ok := Inner[*targeted](t); ok {
		return &with.target
	}
	return nil
}

// DefinitionDigest is the digest of what the model was told of a tool,
// and of what it is in the agent's file: "sha256:…"; "" for no tool,
// and "unreadable" for one whose schema is no JSON.
func DefinitionDigest(t Tool) string {
	if t == nil {
		return ""
	}
	raw, err := json.Marshal(struct {
		Definition
		Target *Target
	}{t.Definition(), targetOf(t)})
	if err != nil { // a schema that is no JSON
		return "unreadable"
	}
	v, err := value.Parse(raw, value.Limits{})
	if err != nil {
		return "unreadable"
	}
	return v.Digest().String()
}
