package operate

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// Ready is the output of a service once it answers.
type Ready struct {
	URL  string `json:"url"`            // where people reach it
	API  string `json:"api"`            // where it listens
	Link string `json:"link,omitempty"` // one-time sign-in link of --dev
	// Metrics is the address of the metrics, if they have a listener of their own.
	Metrics string `json:"metrics,omitempty"`
	// Register are the addresses that have to be configured in other services.
	Register []Address `json:"register,omitempty"`
}

// Address is an address that an operator has to register elsewhere: at an identity provider, or
// with a Slack app.
type Address struct {
	Tenant string `json:"tenant"`
	For    string `json:"for"` // RedirectURI, SignedOutURI, or what a channel calls it
	URL    string `json:"url"`
	Words  string `json:"-"` // what it is for; "" with those below
}

// The purposes of addresses.
const (
	RedirectURI  = "oidc_redirect_uri"
	SignedOutURI = "oidc_post_logout_redirect_uri"
)

func (a Commands) serveCommand() *cobra.Command {
	var f *config.ServeFlags
	var asJSON, check, strict bool
	cmd := &cobra.Command{
		Use:   "serve --agents DIR... [--policies DIR]... [--people FILE] [--store STORE] [--dev]",
		Short: "Run the approval service",
		Long: "serve needs nothing but the agents: it keeps everything in one file, and makes the ledger's key on " +
			"the first start. Several of it may\n" +
			"share one PostgreSQL. --dev is for a laptop: loopback only, and it prints a link that signs you in.\n\n" +
			"--config reads the same from YAML, with several tenants, webhooks and Slack beside it; a flag goes " +
			"before the\n" +
			"file.\n\n" +
			"--check reads all of it, with the agents, policies and people, says what is wrong, and ends: 0 when " +
			"all is well,\n" +
			"1 when something is wrong.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.Serve(f)
			if err != nil {
				return err
			}
			cfg.Strict = strict
			if check {
				return a.checked(a.Backend.Check(cmd.Context(), cfg), asJSON)
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.serve(ctx, cfg, asJSON)
		},
	}
	f = config.NewServeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.File, "config", "", "YAML `FILE` with the same fields, and more")
	flags.BoolVar(
		&check,
		"check",
		false,
		"say what is wrong with the configuration and its files, and don't serve",
	)
	flags.BoolVar(&strict, "strict", false, "don't start if agf-validate has an error about a file of agents or policies")
	flags.BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	return cmd
}

func (a Commands) serve(ctx context.Context, cfg config.Serve, asJSON bool) error {
	p := a.Printer()
	err := a.Backend.Serve(ctx, cfg, a.Err, func(r Ready) {
		if asJSON {
			p.Err = p.JSONLine(r)
			return
		}
		if cfg.Dev {
			PrintBanner(p)
		}
		p.Printf("assent serves at %s\n", r.URL)
		printAddresses(p, r.Register)
		if r.Link != "" {
			p.Printf("sign in as %s, once, within 10 minutes: %s\n", cfg.DevPerson, r.Link)
		}
	})
	return errors.Join(err, p.Done())
}

// printAddresses prints the addresses that must be registered elsewhere.
func printAddresses(p *term.Printer, all []Address) {
	words := map[string]string{
		RedirectURI:  "redirect URI for the identity provider",
		SignedOutURI: "post-logout redirect URI there",
	}
	for _, address := range all {
		p.Printf("tenant %s: %s: %s\n", address.Tenant, cmp.Or(address.Words, words[address.For]), address.URL)
	}
}

func PrintBanner(p *term.Printer) {
	p.Printf(
		"%s\n",
		term.Yellow.Of(
			"*** DEV MODE: whoever reads this terminal can sign in and approve. Never for real agents. ***",
		),
	)
}
