package resolve_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// decode reads drawn arguments the way a runtime would.
func decode(t interface{ Fatal(...any) }, args []byte) map[string]any {
	if args == nil {
		return nil
	}
	var v map[string]any
	if err := json.Unmarshal(args, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// oracle decides a call without a plan, from the typed documents and docs/design/001-semantics.md.
// It evaluates every rule of every policy for every call, without slicing, slots or caches.
type oracle struct {
	agent    *schema.Agent
	policies []*policy.Policy
	call     *resolve.Call
	spoke    []string
	outside  bool // the call goes to a server or remote agent, whose hints are not trusted here
}

// TestSliceEqualsEverything checks that deciding with the rules that a plan prepared for a target
// equals deciding with all rules.
func TestSliceEqualsEverything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		agent := agentText(rt)
		texts := policiesText(rt)
		call := callOf(rt)
		o := &oracle{agent: parseAgent(t, "agent.agf.yaml", agent), call: call}
		for _, text := range texts {
			o.policies = append(o.policies, parsePolicy(t, "p.policy.yaml", text))
		}
		want := o.decide()
		p := plan(t, resolve.Options{}, agent, texts...)
		for range 2 { // the second answer may come from what the first one prepared
			if got := spoke(p.Decide(call)); fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("agent:\n%s\npolicies: %s\ncall: %+v\nplan:   %v\noracle: %v", agent, texts, call, got, want)
			}
		}
	})
}

func (o *oracle) say(source resolve.Source, ref, id string, code resolve.Code) {
	o.spoke = append(o.spoke, fmt.Sprintf("%s %s %s %s", source, ref, id, code))
}

func (o *oracle) decide() []string {
	o.outside = true
	switch o.call.Kind {
	case resolve.Tool:
		o.tool()
	case resolve.MCPTool:
		o.mcpTool()
	case resolve.Skill:
		o.skill()
	default:
		o.delegation()
	}

	if o.spoke == nil {
		o.spoke = []string{}
	}
	sort.Strings(o.spoke)
	return o.spoke
}

func (o *oracle) tool() {
	o.outside = false
	found := false
	for _, t := range o.agent.ActionSpace.LocalTools {
		if t.Alias == o.call.Tool {
			found = true
			o.approval(resolve.FromAgent, "local_tools."+t.Alias, t.Approval, condition.ToolArgs)
		}
	}

	if !found {
		o.say(resolve.FromActionSpace, "", "", resolve.NotDeclared)
	}
	o.governance(map[*policy.Rule]bool{}, resolve.Tool, o.call.Tool, "")
}

func (o *oracle) mcpTool() {
	found := false
	for _, s := range o.agent.ActionSpace.MCPServers {
		if s.Alias == o.call.Server {
			found = true
			o.list("mcp_servers."+s.Alias, s.AllowedTools, s.Approval, o.call.Tool, condition.ToolArgs)
		}
	}

	if !found {
		o.say(resolve.FromActionSpace, "", "", resolve.NotDeclared)
	}
	o.governance(map[*policy.Rule]bool{}, resolve.MCPTool, o.call.Tool, o.call.Server)
}

func (o *oracle) list(id string, list *[]schema.ToolRef, blanket *schema.Approval, name string, use condition.Use) {
	if list == nil {
		o.approval(resolve.FromServer, id, blanket, use)
		return
	}
	found := false
	for _, e := range *list {
		if e.Name != name {
			continue
		}
		found = true
		if e.Approval != nil {
			o.approval(resolve.FromAgent, id+"."+name, e.Approval, use)
		} else {
			o.approval(resolve.FromServer, id, blanket, use)
		}
	}

	if !found {
		o.say(resolve.FromActionSpace, "", id, resolve.NotAllowed)
	}
}

func (o *oracle) skill() {
	remote := o.remote(o.call.Agent)
	if remote == nil {
		o.say(resolve.FromActionSpace, "", "", resolve.NotDeclared)
	} else {
		o.list("remote_agents."+remote.Alias, remote.AllowedSkills, nil, o.call.Skill, condition.SkillArgs)
		o.approval(resolve.FromAgent, "remote_agents."+remote.Alias, remote.Approval, condition.Delegation)
	}

	met := map[*policy.Rule]bool{}
	o.governance(met, resolve.Skill, o.call.Skill, o.call.Agent)
	o.governance(met, resolve.Delegation, o.call.Agent, o.call.Agent)
}

func (o *oracle) remote(alias string) *schema.RemoteAgent {
	for _, r := range o.agent.ActionSpace.RemoteAgents {
		if r.Alias == alias {
			return &r
		}
	}
	return nil
}

func (o *oracle) delegation() {
	alias := o.call.Agent
	var local *schema.LocalAgent
	for _, l := range o.agent.ActionSpace.LocalAgents {
		if l.Alias == alias {
			local = &l
		}
	}
	remote := o.remote(alias)
	asLocal := o.call.Remote != resolve.RemoteYes &&
		(local != nil || o.call.Remote == resolve.RemoteNo || remote == nil)
	asRemote := o.call.Remote != resolve.RemoteNo && (remote != nil || o.call.Remote == resolve.RemoteYes)
	met := map[*policy.Rule]bool{}
	o.outside = asRemote
	if asLocal {
		if local == nil {
			o.say(resolve.FromActionSpace, "", "", resolve.NotDeclared)
		} else {
			o.approval(resolve.FromAgent, "local_agents."+alias, local.Approval, condition.Delegation)
		}
		o.governance(met, resolve.Delegation, alias, "")
	}

	if asRemote {
		if remote == nil {
			o.say(resolve.FromActionSpace, "", "", resolve.NotDeclared)
		} else {
			o.approval(resolve.FromAgent, "remote_agents."+alias, remote.Approval, condition.Delegation)
		}
		o.governance(met, resolve.Delegation, alias, alias)
	}
}

// governance looks at every rule there is. In a call of two gates a
// rule speaks once. Its condition sees the whole call.
func (o *oracle) governance(met map[*policy.Rule]bool, kind resolve.Kind, target, server string) {
	use := condition.Governance
	if o.call.Kind == resolve.Delegation {
		use = condition.Delegation
	}
	for _, pol := range o.policies {
		for i := range pol.Rules {
			r := &pol.Rules[i]
			if met[r] || !r.Match.Target(policy.Called{Kind: kind, Target: target, Server: server}) {
				continue
			}
			met[r] = true
			if !r.Match.Annotated(o.call.Annotations, !o.outside) {
				continue
			}
			if r.Denies {
				o.say(resolve.FromPolicy, pol.Ref, r.ID, resolve.Denied)
			}
			if r.Approval != nil {
				o.ask(resolve.FromPolicy, pol.Ref, r.ID, r.Approval, use)
			}
		}
	}
}

func (o *oracle) approval(source resolve.Source, id string, ap *schema.Approval, use condition.Use) {
	if ap != nil && ap.Form != schema.Never {
		o.ask(source, "", id, ap, use)
	}
}

func (o *oracle) ask(source resolve.Source, ref, id string, ap *schema.Approval, use condition.Use) {
	if ap.Form == schema.Always {
		o.say(source, ref, id, resolve.Always)
		return
	}
	compiler := condition.NewCompiler(condition.Semantics{})
	program := compiler.Add(use, ap.Condition)
	args, parent := compiler.Shapes()
	doc := o.call.Args
	if doc == nil {
		doc = []byte("{}")
	}
	view := &condition.View{}
	if err := args.Scan(doc, value.Limits{}, &view.Args); err != nil {
		panic(err)
	}
	if o.call.ParentInput != nil {
		if err := parent.Scan(o.call.ParentInput, value.Limits{}, &view.Parent); err != nil {
			panic(err)
		}
	}
	switch program.Eval(view) {
	case condition.True:
		o.say(source, ref, id, resolve.ConditionTrue)
	case condition.Unknown:
		o.say(source, ref, id, resolve.ConditionUnknown)
	}
}
