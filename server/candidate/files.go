package candidate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

// holds describes the contents of a candidate's directory.
type holds struct {
	agents, policies bool
	problem          string // why it can't be used
}

// files are a candidate's files in the state in which they were read last.
type files struct {
	holds    holds
	plans    *plans.Plans // nil if they can't be read
	digest   string
	agents   int
	problems []string
}

// plan returns the candidate's plan of an agent, or the reason why there is none.
func (f *files) plan(ctx context.Context, agent string) (*approval.Compiled, string) {
	if f.plans == nil {
		return nil, f.err().Error()
	}
	c, err := f.plans.Plan(ctx, "", agent)
	if errors.Is(err, approval.ErrUnknownAgent) {
		return nil, "the candidate has no agent with this id"
	}
	if err != nil {
		return nil, err.Error()
	}
	return c, ""
}

func (f *files) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	text := f.problems[0]
	if more := len(f.problems) - 1; more > 0 {
		text = fmt.Sprintf("%s (and %d more)", text, more)
	}
	return errors.New(text)
}

// reload reads the files again if they changed.
func (f *files) reload(cfg *Config) (files, bool) {
	now := look(cfg.Dir)
	if f.plans != nil && now == f.holds {
		if !f.plans.Reload() {
			return *f, false
		}
		next := files{holds: now, plans: f.plans}
		next.sum()
		return next, true
	}

	next := files{holds: now}
	next.load(cfg)
	same := f.plans == nil && next.plans == nil && slices.Equal(f.problems, next.problems)
	return next, !same
}

// load reads the files for the first time.
func (f *files) load(cfg *Config) {
	if f.holds.problem != "" {
		f.problems = []string{f.holds.problem}
		return
	}
	var err error
	if f.plans, err = plans.Load(planConfig(cfg, f.holds)); err != nil {
		f.plans, f.problems = nil, []string{err.Error()}
		return
	}
	f.sum()
}

// sum records the digest, the agents and the problems of the files in force.
func (f *files) sum() {
	var digests []string
	for _, p := range f.plans.Parts() {
		digests = append(digests, p.Digest)
	}
	f.digest = strings.Join(digests, " ")
	f.agents = len(f.plans.Agents())
	for _, p := range f.plans.Problems() {
		f.problems = append(f.problems, p.Why...)
	}
}

// planConfig returns the configuration of the live plans with the candidate's files instead
// of the live ones. It uses no last good copies of broken files, because then the
// comparison would not be about the current files.
func planConfig(cfg *Config, has holds) plans.Config {
	c := cfg.Live
	c.Logger = slog.New(slog.DiscardHandler) // it would log denied calls
	c.DenyBroken = true
	if has.agents {
		c.Agents = []string{cfg.Dir}
	}
	if live := c.Decisions; live != nil {
		c.Decisions = &plans.Decisions{File: live.File, Open: live.Open}
		if has.policies {
			c.Decisions.Open = func(*resolve.Config) (plans.Sources, error) {
				return plans.Sources{Policies: []string{cfg.Dir}}, nil
			}
		}
	}

	if has.policies {
		c.Policies = []string{cfg.Dir}
		c.Registry = nil
	}
	return c
}

// look returns the contents of a directory.
func look(dir string) holds {
	var has holds
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return holds{problem: dir + ": expected a directory"}
	}
	if err == nil {
		err = fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			has.add(dir, strings.ToLower(d.Name()))
			return nil
		})
	}

	switch {
	case err != nil:
		return holds{problem: "the candidate can't be read: " + err.Error()}
	case has.problem == "" && !has.agents && !has.policies:
		has.problem = dir + ": expected *.agf.yaml, *.policy.yaml, or both: a candidate's agents stand in the place " +
			"of all agents, and its policies in the place of all policies"
	}

	return has
}

func (h *holds) add(dir, name string) {
	is := func(word string) bool {
		return strings.HasSuffix(name, word+".yaml") || strings.HasSuffix(name, word+".yml") ||
			strings.HasSuffix(name, word+".json")
	}
	h.agents = h.agents || is(".agf")
	h.policies = h.policies || is(".policy") || is(".policies")
	if name == "decisions.yaml" {
		h.problem = dir + " has a decisions.yaml: a candidate is compared under the live decision configuration; " +
			"replay another one by agf-validate replay"
	}
}
