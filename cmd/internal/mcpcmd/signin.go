package mcpcmd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/auth"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
)

// Given reads what the configuration of a server refers to.
type Given struct {
	Headers func(mcpconfig.Upstream) (map[string]string, error) // of requests
	Secret  func(file string) (string, error)
}

// SignInOf returns the sign-in of a person to a server, whose tokens are kept in a file.
func (g Given) SignInOf(u mcpconfig.Upstream, file string) (*auth.SignIn, error) {
	headers, err := g.Headers(u)
	if err != nil {
		return nil, err
	}
	cfg := auth.SignInConfig{URL: u.URL, File: file, Headers: headers}
	own := u.SignIn
	if own == nil {
		own = &mcpconfig.SignIn{}
	}
	cfg.Issuer, cfg.ID, cfg.Scopes = own.Issuer, own.ID, own.Scopes
	if own.SecretFile != "" {
		cfg.Secret = func() (string, error) { return g.Secret(own.SecretFile) }
	}
	for _, name := range append(append([]string{}, u.Networks...), own.Networks...) {
		p, err := netip.ParsePrefix(name)
		if err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
		cfg.Networks = append(cfg.Networks, p)
	}
	return auth.NewSignIn(cfg)
}

// signInFlags are the flags of assent mcp sign-in.
type signInFlags struct {
	file   string
	scopes []string
	within time.Duration
	asJSON bool
}

// SignIn returns the command assent mcp sign-in.
func SignIn(reader config.Reader, given Given) *cobra.Command {
	var f signInFlags
	cmd := &cobra.Command{
		Use:   "sign-in ALIAS --config FILE [--scope SCOPE]...",
		Short: "Sign in to a server behind a gateway that wants a person",
		Long: "sign-in prints a link to the page at which you sign in to the server ALIAS, and waits until you have. Open it " +
			"in a browser on this machine.\n" +
			"The tokens are kept beside the store of the gateway, readable by you alone, and renewed. A gateway that runs " +
			"uses them at once.\n" +
			"Whoever may call the tools of the gateway then acts at the server as you.\n" +
			"Exit code 0: you are signed in; 1: you are not; 2: the sign-in could not begin.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return signIn(ctx, reader, f, args[0], given)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "YAML `FILE` of the gateway")
	flags.StringArrayVar(&f.scopes, "scope", nil, "`SCOPE` to ask for beside those that are asked for anyway (repeatable)")
	flags.DurationVar(&f.within, "within", 10*time.Minute, "`TIME` to wait for you")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON documents: the link, and then how it ended")
	return cmd
}

// server returns the server of a gateway that has an alias.
func server(reader config.Reader, file, alias string) (cfg config.MCP, u mcpconfig.Upstream, err error) {
	if file == "" {
		return cfg, u, errors.New("expected --config FILE of the gateway")
	}
	if cfg, err = reader.MCP(config.MCPFlags{File: file}); err != nil {
		return cfg, u, err
	}
	var names []string
	for _, u := range cfg.Upstream {
		if u.Alias == alias {
			u, err = u.Filled(os.Getenv)
			return cfg, u, err
		}
		names = append(names, u.Alias)
	}
	return cfg, u, fmt.Errorf("%s has no server %q%s", file, alias, near(alias, names))
}

// linkDoc is the first document of assent mcp sign-in --json.
type linkDoc struct {
	Alias  string   `json:"alias"`
	Link   string   `json:"link"`
	Issuer string   `json:"issuer"`
	Scopes []string `json:"scopes"`
}

// signedInDoc is the second document of assent mcp sign-in --json.
type signedInDoc struct {
	Alias   string     `json:"alias"`
	Issuer  string     `json:"issuer"`
	Scopes  []string   `json:"scopes"`
	Expires *time.Time `json:"expires,omitempty"`
	Renews  bool       `json:"renews"`
}

func signIn(ctx context.Context, reader config.Reader, f signInFlags, alias string, given Given) (err error) {
	cfg, u, err := server(reader, f.file, alias)
	switch {
	case err != nil:
		return err
	case u.URL == "":
		return fmt.Errorf("%s is a program, which signs in by itself", alias)
	case !u.SignsIn():
		return fmt.Errorf("%s gets its token by the configuration: to sign in, take it out there", alias)
	}
	s, err := given.SignInOf(u, cfg.SignIn(alias))
	if err != nil {
		return fmt.Errorf("%s: %w", alias, err)
	}
	port := 0
	if u.SignIn != nil {
		port = u.SignIn.RedirectPort
	}
	a, err := s.Begin(ctx, f.scopes, port)
	if err != nil {
		return fmt.Errorf("%s: %w", alias, err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	p := reader.Printer()
	if f.asJSON {
		doc := linkDoc{Alias: alias, Link: a.Link, Issuer: a.Issuer, Scopes: append([]string{}, a.Scopes...)}
		p.Err = p.JSONLine(doc)
	} else {
		p.Printf("to sign in to %s at %s, open:\n\n    %s\n\n",
			alias, term.ScrubLine(hostOf(a.Issuer)), term.ScrubLine(a.Link))
		p.Printf("waiting until %s\n", term.Stamp(time.Now().Add(f.within)))
	}
	if p.Err != nil {
		return p.Err
	}
	waiting, stop := context.WithTimeoutCause(ctx, f.within, fmt.Errorf("waited %s", f.within))
	defer stop()
	result, err := a.Wait(waiting)
	if err != nil {
		return term.No("%s: %w", alias, err)
	}
	return show(p, f, alias, result)
}

// show prints how a sign-in has ended.
func show(p *term.Printer, f signInFlags, alias string, r auth.Result) error {
	if f.asJSON {
		doc := signedInDoc{Alias: alias, Issuer: r.Issuer, Scopes: append([]string{}, r.Scopes...), Renews: r.Renews}
		if !r.Until.IsZero() {
			doc.Expires = &r.Until
		}
		return p.JSONLine(doc)
	}
	p.Printf("signed in to %s\n", alias)
	switch {
	case r.Renews:
		p.Printf("the token is renewed until you sign out: assent mcp sign-out %s --config %s\n",
			alias, term.ScrubLine(f.file))
	case !r.Until.IsZero():
		p.Printf("the token ends at %s and can't be renewed: sign in again then\n", term.Stamp(r.Until))
	}
	return p.Done()
}

// hostOf returns the host of an address, or the address if it has none.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// SignOut returns the command assent mcp sign-out.
func SignOut(reader config.Reader, given Given) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "sign-out ALIAS --config FILE",
		Short: "Forget the tokens of a sign-in to a server",
		Long: "sign-out removes the tokens of the last sign-in to the server ALIAS from this machine. To make them invalid " +
			"at the server, too, revoke the access of assent there.\n" +
			"Exit code 0: they are removed; 1: there were none; 2: they can't be removed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, u, err := server(reader, file, args[0])
			if err != nil {
				return err
			}
			if u.URL == "" {
				return fmt.Errorf("%s is a program, which signs in by itself", args[0])
			}
			s, err := given.SignInOf(u, cfg.SignIn(args[0]))
			if err != nil {
				return err
			}
			had, err := s.Forget(cmd.Context())
			switch {
			case err != nil:
				return fmt.Errorf("forget the tokens: %w", err)
			case !had:
				return term.No("nobody was signed in to %s", args[0])
			}
			p := reader.Printer()
			p.Printf("signed out of %s\n", args[0])
			return p.Done()
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `FILE` of the gateway")
	return cmd
}
