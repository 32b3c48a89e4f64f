package administration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Agent is the id of the reserved agent. A tenant can't have an agent with that id.
const Agent = approval.AdministrationAgent

// Planner adds the reserved agent to the agents of another planner.
type Planner struct {
	Next   approval.Planner
	Admins func(tenant string) string // the group of a tenant's administrators

	mu       sync.Mutex
	compiled map[string]*approval.Compiled // by group
}

// Plan returns the plan of the reserved agent. It passes other ids to the other planner.
func (p *Planner) Plan(ctx context.Context, tenant, agent string) (*approval.Compiled, error) {
	if agent != Agent {
		return p.Next.Plan(ctx, tenant, agent)
	}
	group := p.Admins(tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.compiled[group]; c != nil {
		return c, nil
	}
	c, err := compile(group)
	if err != nil {
		return nil, err
	}
	if p.compiled == nil {
		p.compiled = map[string]*approval.Compiled{}
	}
	p.compiled[group] = c

	return c, nil
}

// Past returns what the rules of the tenant's agents read of past calls. Acts of administration are none.
func (p *Planner) Past(tenant string) *approval.PastRules { return p.Next.Past(tenant) }

// compile makes the plan for a group of administrators.
func compile(group string) (*approval.Compiled, error) {
	name, err := json.Marshal(group) // a JSON string is also valid YAML
	if err != nil {
		return nil, fmt.Errorf("the group of administrators: %w", err)
	}
	agent, findings := schema.Parse("administration/agent.agf.yaml", agentFile)
	if agent == nil {
		return nil, fmt.Errorf("the agent of administration can't be used: %v", findings)
	}
	text := strings.ReplaceAll(policyFile, "GROUP", string(name))
	rules, findings := policy.Parse("administration/administration.policy.yaml", []byte(text))
	if rules == nil {
		return nil, fmt.Errorf("the rules of administration can't be used with the group %q: %v", group, findings)
	}
	set, findings := policy.NewSet(rules)
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf(
			"the rules of administration can't be used with the group %q: %w: %v",
			group,
			err,
			findings,
		)
	}

	plan, err := resolve.Compile(agent, set, resolve.Options{})
	if err != nil {
		return nil, fmt.Errorf("the rules of administration: %w", err)
	}

	return &approval.Compiled{
		Agent: approval.Agent{
			ID:          agent.Metadata.ID,
			Version:     agent.Metadata.Version,
			Name:        agent.Metadata.Name,
			Description: agent.Metadata.Description,
		},
		Plan: plan,
	}, nil
}
