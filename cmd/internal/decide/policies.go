package decide

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/registry"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// choices returns the configuration of --decisions, with the values of flags instead of those of
// the file.
func (a Decider) choices(f Flags) (*term.Decisions, error) {
	chosen := &term.Decisions{Config: &resolve.Config{PermitAge: resolve.DefaultPermitAge}}
	if f.Decisions != "" {
		var err error
		if chosen, err = term.ReadDecisions(f.Decisions, a.In, a.Err); err != nil {
			return nil, err
		}
	}

	if len(f.Policies) > 0 {
		chosen.Instead(f.Policies)
	}
	if len(f.trusted) > 0 {
		chosen.TrustedServers = f.trusted
	}
	if len(f.caseSensitive) > 0 {
		chosen.CaseSensitive = f.caseSensitive
	}

	return chosen, nil
}

// policies reads the directories of a configuration and fetches its registry. It returns nil if
// there is neither.
func (a Decider) policies(chosen *term.Decisions) (policy.Registry, error) {
	dirs := chosen.PolicyDirs()
	fetched, err := registry.Open(chosen, func(err error) { fmt.Fprintf(a.Err, "assent: %v\n", err) })
	if err != nil || fetched == nil && len(dirs) == 0 {
		return nil, err
	}
	var more []*policy.Policy
	if fetched != nil {
		findings := fetched.Refresh(context.Background())
		term.PrintFindings(a.Err, findings, nil)
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		more = fetched.Snapshot().Policies()
	}

	return loadPolicies(dirs, more, a.Err)
}

// loadPolicies reads directories of policies into one registry, or returns an error if one of them
// can't be used (docs/contracts/policy.md). more are additional policies.
func loadPolicies(dirs []string, more []*policy.Policy, errOut io.Writer) (*policy.Set, error) {
	policies := more
	texts := map[string][]byte{}
	for _, dir := range dirs {
		files, unread := policy.ReadFS(os.DirFS(dir), dir)
		for _, f := range files {
			texts[f.Name] = f.Text
		}
		set, findings := policy.LoadFiles(files, dir, unread...)
		if set.Err() != nil {
			term.PrintFindings(errOut, findings, texts)
			return nil, fmt.Errorf("the policies in %s can't be used", dir)
		}
		policies = append(policies, set.Policies()...)
	}

	set, findings := policy.NewSet(policies...)
	if set.Err() != nil {
		term.PrintFindings(errOut, findings, texts)
		if len(more) > 0 {
			dirs = append(dirs, "the registry")
		}
		return nil, fmt.Errorf("the policies in %s can't be used together", strings.Join(dirs, ", "))
	}

	return set, nil
}
