package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/policy"
)

// policiesOf lists the policies of directories. What can't be read is
// the planner's to report.
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

// shortStage is a stage of a rule that not enough people can fill,
// whoever asks: what it asks can only be denied, or expire.
type shortStage struct {
	policy, rule string
	people.Shortage
	empty bool // nobody is in the group
}

// String says which stage it is, and what to do.
func (s shortStage) String() string {
	group := "all approvers"
	if s.Group != "" {
		group = fmt.Sprintf("the group %q", s.Group)
	}
	have := fmt.Sprintf("only %d can fill it", s.Have)
	if s.Have == 0 {
		have = "nobody can fill it"
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
			short, err := people.FindShortages(p.Rules[i].Require.Stages, nil, members)
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

// warnOfShortStages logs the stages of the loaded rules that can't be
// filled. A group that nobody is in is warnOfEmptyGroups' to report.
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
