package operate

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

// Checked is the result of assent serve --check or assent oidc check.
type Checked struct {
	Ok bool `json:"ok"`
	// Retention is the age at which ended requests are redacted. It is empty for never.
	Retention string          `json:"retention,omitempty"`
	Tenants   []CheckedTenant `json:"tenants"`
	Problems  []TenantProblem `json:"problems"`
	Warnings  []TenantProblem `json:"warnings"`
}

// CheckedTenant describes what would be in force for one tenant.
type CheckedTenant struct {
	Tenant   string           `json:"tenant"`
	Loaded   []openapi.Loaded `json:"loaded,omitempty"`
	Provider *CheckedProvider `json:"provider,omitempty"`
}

// CheckedProvider is the relevant metadata of an identity provider.
type CheckedProvider struct {
	Issuer     string   `json:"issuer"`
	Algorithms []string `json:"algorithms"` // of ID tokens
	UserInfo   bool     `json:"user_info"`  // it can be asked for claims that the ID token lacks
	Scopes     []string `json:"scopes"`     // that are asked for
	ClockOff   string   `json:"clock_off"`  // how much its clock is ahead of ours, as a duration
	Register   []string `json:"register"`   // addresses to register there
}

// TenantProblem is a problem or a warning. Tenant is empty if it concerns all tenants.
type TenantProblem struct {
	Tenant  string `json:"tenant,omitempty"`
	Problem string `json:"problem"`
}

func (p TenantProblem) String() string {
	if p.Tenant == "" {
		return p.Problem
	}
	return "tenant " + p.Tenant + ": " + p.Problem
}

// checked prints the result. It returns the exit code "no" if there are problems.
func (a Commands) checked(c Checked, asJSON bool) error {
	c.Ok = len(c.Problems) == 0
	if err := term.Print(a.Streams, asJSON, c, printChecked); err != nil {
		return err
	}
	if !c.Ok {
		return term.Exit(term.ExitNo)
	}
	return nil
}

func printChecked(p *term.Printer, c Checked) {
	if c.Retention != "" {
		p.Printf("retention: what ended is redacted after %s\n", c.Retention)
	}
	for _, t := range c.Tenants {
		for _, l := range t.Loaded {
			p.Printf("tenant %s: %s: %d, %s\n", t.Tenant, l.Part, l.Count, l.Digest)
		}
		if o := t.Provider; o != nil {
			p.Printf("tenant %s: %s answers\n", t.Tenant, o.Issuer)
			p.Printf(
				"  signs ID tokens by %s; UserInfo: %t; its clock is %s ahead of ours\n",
				strings.Join(o.Algorithms, ", "),
				o.UserInfo,
				o.ClockOff,
			)
			p.Printf("  will be asked for the scopes %s\n", strings.Join(o.Scopes, ", "))
			p.Printf("  register there: %s\n", strings.Join(o.Register, ", "))
		}
	}

	for _, w := range c.Warnings {
		p.Printf("warning: %s\n", w.String())
	}
	for _, problem := range c.Problems {
		p.Printf("wrong: %s\n", problem.String())
	}
	switch n := len(c.Problems); n {
	case 0:
		p.Printf("nothing is wrong\n")
	case 1:
		p.Printf("1 problem\n")
	default:
		p.Printf("%d problems\n", n)
	}
}

func (a Commands) oidcCommand() *cobra.Command {
	return term.Parent("oidc", "Look at the identity providers that people sign in at", "", a.oidcCheckCommand())
}

func (a Commands) oidcCheckCommand() *cobra.Command {
	var f *config.ServeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Ask the identity providers of a configuration what they offer, and say what to register there",
		Long: "check reads the same configuration as assent serve, or its flags, and asks each provider for its " +
			"discovery\n" +
			"document: does it answer, are its addresses https, can the scopes be asked for, is its clock right. " +
			"Nobody signs\n" +
			"in. (docs/guides/sign-in.md)",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.checkOIDC(cmd.Context(), f, asJSON) },
	}
	f = config.NewSignInFlags(cmd)
	cmd.Flags().StringVar(&f.File, "config", "", "YAML `FILE` of assent serve")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	return cmd
}

func (a Commands) checkOIDC(ctx context.Context, f *config.ServeFlags, asJSON bool) error {
	cfg, err := a.Gather(f)
	if err != nil {
		return err
	}
	providers := 0
	for i := range cfg.Tenants {
		if err := cfg.CheckSignIn(&cfg.Tenants[i]); err != nil {
			return err
		}
		if cfg.Tenants[i].OIDC != nil {
			providers++
		}
	}

	if providers == 0 {
		return errors.New(
			"no identity provider is named: expected --oidc-issuer, or oidc in the file of --config",
		)
	}
	found, err := a.Backend.CheckOIDC(ctx, cfg)
	if err != nil {
		return err
	}
	return a.checked(found, asJSON)
}
