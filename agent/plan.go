package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Target describes what a tool is in the agent file. By default a tool is a local tool with the
// same name. WithTarget overrides this.
type Target struct {
	Kind        resolve.Kind
	Tool        string
	Server      string // for an MCP tool
	Agent       string // for a skill or a delegation
	Skill       string
	Remote      resolve.Remote
	Annotations map[string]bool // MCP hints as reported by the server
}

// WithTarget sets what a function is in the agent file, for ByPlan.
func WithTarget(f Function, target Target) Function { return &targeted{f, target} }

type targeted struct {
	Function
	target Target
}

func (t *targeted) Unwrap() Tool { return t.Function }

// PlanOptions name the person and session for which the agent acts. They are part of the
// binding of each decision (see resolve.Call).
type PlanOptions struct {
	Principal   string
	Session     string
	ParentInput json.RawMessage
	// Now is the clock for rules about time. The default is time.Now.
	Now func() time.Time
}

// ByPlan returns a Decider for an agent file and its policies. It decides the arguments exactly
// as the function will get them. The digest of the tool's definition is part of the binding, so
// the user is asked again if the tool has changed.
func ByPlan(plan *resolve.Plan, opt PlanOptions) Decider { return &byPlan{plan: plan, opt: opt} }

type byPlan struct {
	plan    *resolve.Plan
	opt     PlanOptions
	digests sync.Map // from names to known, since most tools never change
}

// known is a definition that was seen before, with its digest.
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

// Decide returns the plan's verdict for one call.
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
	now := time.Now
	if d.opt.Now != nil {
		now = d.opt.Now
	}
	return hold.Verdict{Decision: d.plan.DecideAt(c, now()), Call: c}, nil
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

// DefinitionDigest returns the digest, in the form "sha256:…", of a tool's definition and
// target. It returns an empty string for a nil tool and "unreadable" if the schema is not valid
// JSON.
func DefinitionDigest(t Tool) string {
	if t == nil {
		return ""
	}
	raw, err := json.Marshal(struct {
		Definition
		Target *Target
	}{t.Definition(), targetOf(t)})
	if err != nil { // a schema that is not JSON
		return "unreadable"
	}
	v, err := value.Parse(raw, value.Limits{})
	if err != nil {
		return "unreadable"
	}
	return v.Digest().String()
}
