package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/plans"
)

// policiesOf lists the policies of directories. It skips policies that can't be read, because the
// planner reports them.
func policiesOf(dirs []string) []*policy.Policy {
	var out []*policy.Policy
	for _, dir := range dirs {
		set, _ := policy.LoadFS(os.DirFS(dir), dir)
		if set.Err() == nil {
			out = append(out, set.Policies()...)
		}
	}

	return out
}

// shortStage is a stage of a rule for which there are not enough people. Its requests can only be
// denied, or expire.
type shortStage struct {
	policy, rule string
	people.Shortage
	empty bool   // the group has no members
	agent string // whose owners may not approve; "" if the stage is short for every agent
}

// String names the stage and suggests a fix.
func (s shortStage) String() string {
	group := "all approvers"
	if s.Group != "" {
		group = fmt.Sprintf("the group %q", s.Group)
	}
	have := fmt.Sprintf("only %d can fill it", s.Have)
	if s.Have == 0 {
		have = "nobody can fill it"
	}
	if s.agent != "" {
		return fmt.Sprintf(
			"policy %s, rule %s: a stage needs %d of %s, and %s of the agent %s, whose owners may not approve its "+
				"calls: add people to the group who do not own it, or require fewer",
			s.policy, s.rule, s.Need, group, have, s.agent,
		)
	}
	return fmt.Sprintf(
		"policy %s, rule %s: a stage needs %d of %s, and %s: add people to the group in people.yaml, or require fewer",
		s.policy, s.rule, s.Need, group, have,
	)
}

// shortStages lists the stages of a tenant's loaded rules that can't be
// filled by the people of dir.
func (t *tenant) shortStages(ctx context.Context, dir approval.Directory) (out []shortStage, err error) {
	members := func(group string) ([]approval.Person, error) { return dir.Members(ctx, t.cfg.Name, group) }
	for _, p := range policiesOf(t.cfg.Policies) {
		for i := range p.Rules {
			if p.Rules[i].Approval == nil {
				continue
			}
			short, err := approval.ShortagesOf(p.Rules[i].Require.Stages, p.Rules[i].Require.AnyOf, nil, members)
			if err != nil {
				return out, fmt.Errorf("policy %s, rule %s: %w", p.Ref, p.Rules[i].ID, err)
			}
			for _, s := range short {
				in, err := members(s.Group)
				if err != nil {
					return out, fmt.Errorf("policy %s, rule %s: %w", p.Ref, p.Rules[i].ID, err)
				}
				out = append(out, shortStage{
					policy: p.Ref, rule: p.Rules[i].ID, Shortage: s, empty: len(in) == 0,
				})
			}
		}
	}

	return out, nil
}

// shortOfOwners lists the stages that have enough people only if the owners of an agent are
// counted, who may not approve.
func (t *tenant) shortOfOwners(
	ctx context.Context, dir approval.Directory, agents *plans.Plans,
) (out []shortStage, err error) {
	members := func(group string) ([]approval.Person, error) { return dir.Members(ctx, t.cfg.Name, group) }
	for _, agent := range agents.Agents() {
		compiled, err := agents.Plan(ctx, t.cfg.Name, agent)
		if err != nil {
			continue // reported with the agents
		}
		owners, err := ownersOf(ctx, t.cfg.Name, dir, compiled)
		if err != nil {
			return out, err
		}
		if len(owners) == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, call := range compiled.Plan.Targets() {
			for _, gate := range compiled.Plan.Target(&call).Gates {
				key := gate.Policy + " " + gate.Rule
				if gate.Require == nil || seen[key] {
					continue
				}
				seen[key] = true
				stages, anyOf := gate.Require.Stages, gate.Require.AnyOf
				if all, err := approval.ShortagesOf(stages, anyOf, nil, members); err != nil || len(all) > 0 {
					continue // shortStages reports it
				}
				short, err := approval.ShortagesOf(stages, anyOf, owners, members)
				if err != nil {
					return out, fmt.Errorf("policy %s, rule %s: %w", gate.Policy, gate.Rule, err)
				}
				for _, s := range short {
					out = append(out, shortStage{policy: gate.Policy, rule: gate.Rule, Shortage: s, agent: agent})
				}
			}
		}
	}

	return out, nil
}

// ownersOf lists the ids of the people who own an agent.
func ownersOf(
	ctx context.Context, tenant string, dir approval.Directory, agent *approval.Compiled,
) (map[string]string, error) {
	names, err := dir.Owners(ctx, tenant, agent.Agent.ID)
	if err != nil {
		return nil, fmt.Errorf("who owns %s: %w", agent.Agent.ID, err)
	}
	out := map[string]string{}
	for _, name := range slices.Concat(agent.Owners, names) {
		p, known, err := dir.Person(ctx, tenant, name)
		if err != nil {
			return nil, fmt.Errorf("who owns %s: %w", agent.Agent.ID, err)
		}
		if known {
			out[p.ID] = agent.Agent.ID
		}
	}
	return out, nil
}

// warnOfShortStages logs the stages of the loaded rules that can't be filled. Groups without
// members are reported by warnOfEmptyGroups.
func (ts tenants) warnOfShortStages(ctx context.Context, dir approval.Directory, log *slog.Logger) {
	for name, t := range ts {
		log := log.With("tenant", name)
		short, err := t.shortStages(ctx, dir)
		if err != nil {
			log.Warn("who can fill the stages of a rule is not known", "error", err)
		}
		hint := "add people to the group in people.yaml, or ask fewer"
		if t.cfg.OIDC != nil {
			hint += ", unless sign-ins bring them"
		}
		for _, s := range short {
			if s.empty {
				continue
			}
			log.Warn(
				"a stage asks for more people than can fill it",
				"policy", s.policy, "rule", s.rule, "group", s.Group, "need", s.Need, "have", s.Have, "hint", hint,
			)
		}
	}
}
