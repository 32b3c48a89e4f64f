package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// planning are the commands that evaluate the plan of one agent.
type planning struct{ program }

// planFiles holds the files from which one plan is compiled: an agent and what governs it.
// Comparisons read many agents instead (sides.go).
type planFiles struct {
	agent    string
	config   string
	policies []string
}

// flags adds the flags of a plan, whose names begin with a prefix.
func (s *planFiles) flags(cmd *cobra.Command, prefix, of string) {
	flags := cmd.Flags()
	flags.StringVar(&s.agent, prefix+"agent", "", "`FILE` of the agent, .agf.yaml"+of)
	flags.StringArrayVar(
		&s.policies,
		prefix+"policies",
		nil,
		"`DIR` of *.policy.yaml that the agent may name, or that apply by selector (repeatable); instead of those of --"+
			prefix+"decisions"+of,
	)
	flags.StringVar(
		&s.config,
		prefix+"decisions",
		"",
		"decisions.yaml: `FILE` of what the owner chose, as assent serve reads it"+of,
	)
}

// compilePlan compiles the plan of its files. Problems are printed to standard error and returned
// as an error, because a plan that denies every call, or that would change once its files are
// fixed, must not be reported on.
func (v planning) compilePlan(s planFiles) (*resolve.Plan, *schema.Agent, error) {
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

// parseAgent reads the file of an agent. Problems are printed to standard error.
func (v planning) parseAgent(path string) (*schema.Agent, error) {
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

// chosen reads the configuration of a plan.
func (v planning) chosen(s planFiles) (*term.Decisions, error) {
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
