package operate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/registry"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/value"
)

func (a Commands) policiesCommand() *cobra.Command {
	return term.Parent("policies", "Look after the policies that a decision configuration names", "",
		a.fetchPoliciesCommand())
}

func (a Commands) fetchPoliciesCommand() *cobra.Command {
	var file, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fetch --decisions FILE [--out DIR]",
		Short: "Fetch what the policy registry holds now, for agf-validate",
		Long: "fetch asks the registry that decisions.yaml names, and writes all of it to its registry.cache, which " +
			"agf-validate --config reads: it fetches nothing\n" +
			"itself. With --out the policies are written as files instead, for --policies. What is not sound is not " +
			"written: then, and when the registry can't\n" +
			"be reached, the copy stays as it was (docs/contracts/decisions.md).\n" +
			"Exit code 0: it is written; 2: it is not.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.fetchPolicies(cmd.Context(), file, out, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "decisions", "", "decisions.yaml: `FILE` of what the owner chose")
	cmd.Flags().StringVar(&out, "out", "", "`DIR` to write the policies to, which is not there yet, instead of the cache")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	term.Required(cmd, "decisions")

	return cmd
}

// fetchedPolicies is the output of assent policies fetch.
type fetchedPolicies struct {
	Origin   string `json:"origin"`
	Policies int    `json:"policies"`
	Digest   string `json:"digest"` // of the bundle's bytes, as its ETag has it where assent serves it
	Written  string `json:"written"`
}

func (a Commands) fetchPolicies(ctx context.Context, file, out string, asJSON bool) error {
	chosen, err := term.ReadDecisions(file, a.In, a.Err)
	if err != nil {
		return err
	}
	if chosen.Registry != nil && chosen.Registry.Cache == "" && out == "" {
		return fmt.Errorf("%s: registry.cache: expected the file to write to, or --out DIR", file)
	}
	fetched, err := registry.Fetch(ctx, chosen)
	if err != nil {
		return err
	}
	term.PrintFindings(a.Err, fetched.Findings, nil)
	doc := fetchedPolicies{
		Origin:   fetched.Origin,
		Policies: fetched.Policies,
		Digest:   value.SumCanonical(fetched.Bundle).String(),
		Written:  out,
	}
	if out != "" {
		err = fetched.Unpack(out)
	} else {
		doc.Written, err = fetched.Keep(chosen)
	}
	if err != nil {
		return err
	}

	return term.Print(a.Streams, asJSON, doc, func(p *term.Printer, d fetchedPolicies) {
		p.Printf("%s holds %d policies, %s\n", d.Origin, d.Policies, d.Digest)
		p.Printf("they are written to %s\n", d.Written)
	})
}
