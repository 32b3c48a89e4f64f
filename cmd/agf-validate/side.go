package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// side is what a plan is compiled of: an agent, and what governs it.
type side struct {
	agent    string
	config   string
	policies []string
}

// flags adds the flags of a side, whose names begin with a prefix.
func (s *side) flags(cmd *cobra.Command, prefix, of string) {
	flags := cmd.Flags()
	flags.StringVar(&s.agent, prefix+"agent", "", "`FILE` of the agent, .agf.yaml"+of)
	flags.StringArrayVar(
		&s.policies,
		prefix+"policies",
		nil,
		"`DIR` of *.policy.yaml that the agent may name, or that apply by selector (repeatable); instead of those of --"+
			prefix+"config"+of,
	)
	flags.StringVar(
		&s.config,
		prefix+"config",
		"",
		"decisions.yaml: `FILE` of what the owner chose, as assent serve reads it"+of,
	)
}

// compileSide makes the plan of a side. What is wrong with its files goes
// to standard error, and stops it: nothing is told of a plan that
// denies every call, or that would be another one once its files are
// mended.
func (v program) compileSide(s side) (*resolve.Plan, *schema.Agent, error) {
	chosen, err := v.chosen(s)
	if err != nil {
		return nil, nil, err
	}
	registry, err := v.policiesOf(chosen)
	if err != nil {
		return nil, nil, err
	}
	agent, err := v.parseAgent(s.agent)
	if err != nil {
		return nil, nil, err
	}
	opt := chosen.Options()
	if s.config == "" {
		opt.Configuration = "" // flags alone are no configuration
	}
	plan, err := resolve.Compile(agent, registry, opt)
	if plan != nil && err != nil {
		term.PrintFindings(v.Err, plan.Findings(), nil)
	}
	return plan, agent, err
}

// parseAgent reads the file of an agent. What is wrong with it goes to
// standard error.
func (v program) parseAgent(path string) (*schema.Agent, error) {
	src, err := term.ReadFile(path, v.In)
	if err != nil {
		return nil, err
	}
	agent, findings := schema.Parse(path, src)
	if agent == nil {
		term.PrintFindings(v.Err, yamldoc.Stopping(findings), map[string][]byte{path: src})
		return nil, fmt.Errorf("the agent %s can't be used", path)
	}
	return agent, nil
}

// chosen reads the configuration of a side.
func (v program) chosen(s side) (*term.Decisions, error) {
	chosen := &term.Decisions{Config: &resolve.Config{}}
	if s.config != "" {
		var err error
		if chosen, err = term.ReadDecisions(s.config, v.In, v.Err); err != nil {
			return nil, err
		}
	}

	if len(s.policies) > 0 {
		chosen.Instead(s.policies)
	}
	return chosen, nil
}

// policiesOf reads the policies of a configuration. It is all or nothing,
// as where calls are decided (docs/contracts/policy.md).
func (v program) policiesOf(chosen *term.Decisions) (policy.Registry, error) {
	files, unread := readDirs(chosen.PolicyDirs())
	if chosen.Registry != nil {
		cache := chosen.Beside(chosen.Registry.Cache)
		body, _, err := readCache(cache)
		if err != nil {
			return nil, fmt.Errorf(
				"%s: the policies of the registry: %w; nothing is fetched here, so name a registry.cache that assent "+
					"wrote, or policies",
				chosen.File,
				err,
			)
		}

		more, missing := policy.ReadBundle(body, cache, len(body))
		files, unread = append(files, more...), append(unread, missing...)
	}

	if len(files) == 0 && len(unread) == 0 {
		return nil, nil
	}
	texts := map[string][]byte{}
	for _, f := range files {
		texts[f.Name] = f.Text
	}
	set, findings := policy.LoadFiles(files, "", unread...)
	if set.Err() != nil {
		term.PrintFindings(v.Err, findings, texts)
		return nil, errors.New("the policies can't be used")
	}
	return set, nil
}

// readDirs reads the policies of directories, and what is wrong with
// their files. A directory without any is a finding.
func readDirs(dirs []string) (files []policy.File, unread []diag.Finding) {
	for _, dir := range dirs {
		found, broken := policy.ReadFS(os.DirFS(dir), dir)
		if len(found) == 0 && len(broken) == 0 {
			broken = []diag.Finding{policy.NoneFound(dir)}
		}
		files, unread = append(files, found...), append(unread, broken...)
	}

	return files, unread
}
