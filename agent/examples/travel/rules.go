package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// The rules are part of the program, so that it can't run with other rules by mistake.
//
//go:embed travel.agf.yaml policies
var files embed.FS

// decider decides by the agent's file and the policies next to it, with the owner's options.
func decider(owner resolve.Options) (agent.Decider, error) {
	const file = "travel.agf.yaml"
	text, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the agent's file: %w", err)
	}
	described, findings := schema.Parse(file, text)
	if described == nil {
		return nil, refused(findings)
	}
	folder, err := fs.Sub(files, "policies")
	if err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	set, findings := policy.LoadFS(folder, "policies")
	if len(findings) > 0 {
		return nil, refused(findings)
	}
	plan, err := resolve.Compile(described, set, owner)
	if err != nil {
		return nil, fmt.Errorf("compile the plan: %w", err)
	}
	return agent.ByPlan(plan, agent.PlanOptions{}), nil
}

func refused(findings []diag.Finding) error {
	var all []error
	for _, f := range findings {
		all = append(all, fmt.Errorf("%s:%d: %s", f.File, f.Range.Start.Line, f.Message))
	}
	return errors.Join(all...)
}
