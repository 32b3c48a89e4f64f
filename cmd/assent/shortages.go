package main

import (
	"context"
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

// warnOfShortStages says which stages of the loaded rules nobody can
// fill, whoever asks: what they ask can only be denied, or expire. A
// group that nobody is in is warnOfEmptyGroups' to report.
func (ts tenants) warnOfShortStages(ctx context.Context, dir approval.Directory, log *slog.Logger) {
	for name, t := range ts {
		members := func(group string) ([]approval.Person, error) { return dir.Members(ctx, name, group) }
		for _, p := range policiesOf(t.cfg.Policies) {
			for i := range p.Rules {
				if p.Rules[i].Approval == nil {
					continue
				}
				log := log.With("tenant", name, "policy", p.Ref, "rule", p.Rules[i].ID)
				t.warnOfShortStages(log, p.Rules[i].Require.Stages, members)
			}
		}
	}
}

func (t *tenant) warnOfShortStages(
	log *slog.Logger, stages []policy.Stage, members func(string) ([]approval.Person, error),
) {
	hint := "add people to the group in people.yaml, or ask fewer"
	if t.cfg.OIDC != nil {
		hint += ", unless sign-ins bring them"
	}
	short, err := people.FindShortages(stages, nil, members)
	if err != nil {
		log.Warn("who can fill the stages of a rule is not known", "error", err)
		return
	}
	for _, s := range short {
		if in, err := members(s.Group); err == nil && len(in) > 0 {
			log.Warn(
				"a stage asks for more people than can fill it",
				"group",
				s.Group,
				"need",
				s.Need,
				"have",
				s.Have,
				"hint",
				hint,
			)
		}
	}
}
