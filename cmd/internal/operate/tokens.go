package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// TokenFlags are the flags of the token commands.
type TokenFlags struct {
	Place
	name    string
	scopes  []string
	agents  []string
	person  string
	expires string
	replace string
	wait    bool
}

// Place is the target of an administrative command: a server, or a store directly.
type Place struct {
	remote.Connection
	config.StoreFlags
	Tenant string
}

// direct reports whether the command works directly on the store, which needs no token. The first
// token can only be created this way.
func (p Place) direct() bool { return p.Where != "" || p.File != "" || p.ServeFile != "" }

// placed adds the flags that select the target of a command.
func placed(cmd *cobra.Command, p *Place) *cobra.Command {
	flags := remote.Connected(cmd, &p.Connection).Flags()
	config.StoreFlag(cmd, &p.StoreFlags, "", "work on this store itself: `PATH` or postgres:// URL")
	flags.StringVar(&p.Tenant, "tenant", config.DefaultTenant, "with --store: `NAME` of the tenant")

	return cmd
}

func (a Commands) tokenCommand() *cobra.Command {
	return term.Parent(
		"token",
		"Make, list and revoke the tokens of runtimes and command lines",
		"Through the API with a token of scope admin; or with --store on the store itself, as whoever may "+
			"write to it. That is how the first\n"+
			"token is made.",
		a.tokenCreateCommand(),
		a.tokenListCommand(),
		a.tokenRevokeCommand(),
	)
}

func (a Commands) tokenCreateCommand() *cobra.Command {
	var f TokenFlags
	cmd := &cobra.Command{
		Use: "create --name NAME --scopes SCOPE,... [--agents ID,...] [--person ID] [--expires 90d] [--replaces " +
			"ID] [--wait]",
		Short: "Make a token and print its secret, once",
		Long: "Through the API, administrators approve it first: the command says which request asks them, and " +
			"makes the token when it is\n" +
			"given again, or at once with --wait. A token that answers for a person (vote) is made by that person: " +
			"`assent login`, or the\n" +
			"inbox. With --store, whoever holds the store and its key makes any token; the ledger says so.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.createToken(ctx, f)
		},
	}
	flags := placed(cmd, &f.Place).Flags()
	flags.StringVar(&f.name, "name", "", "`NAME` of the runtime: letters, digits and ._-")
	flags.StringSliceVar(
		&f.scopes,
		"scopes",
		nil,
		"what it may do, `SCOPES` separated by commas: "+strings.Join(scopeNames(), ", "),
	)
	flags.StringSliceVar(
		&f.agents,
		"agents",
		nil,
		"`IDS` of the agents that it may act for, separated by commas; * for all of them",
	)
	flags.StringVar(
		&f.person,
		"person",
		"",
		"`ID` of the person whose token it is: who then can't answer what it asks; the scope vote needs it",
	)
	flags.StringVar(
		&f.expires,
		"expires",
		"",
		"how long it is good: a `TIME` such as 720h or 90d; 90d, at most 365d; with the scope vote 12h, at most 7d",
	)
	flags.StringVar(&f.replace, "replaces", "", "`ID` of a token of the same name and person, which ends")
	flags.BoolVar(&f.wait, "wait", false, "wait until administrators have approved it")
	term.Offer(cmd, "scopes", scopeNames()...)
	term.Required(cmd, "name", "scopes")
	return cmd
}

func scopeNames() []string {
	return []string{
		string(openapi.ScopeDecide),
		string(openapi.ScopeRequest),
		string(openapi.ScopeRead),
		string(openapi.ScopeVote),
		string(openapi.ScopeAdmin),
		string(openapi.ScopeWitness),
	}
}

func (a Commands) createToken(ctx context.Context, f TokenFlags) error {
	body, err := f.body()
	if err != nil {
		return err
	}
	made, err := a.MakeToken(ctx, f.Place, f.wait, body)
	if err != nil {
		return err
	}
	if f.direct() && f.asks() && len(made.Token.Agents) == 0 {
		fmt.Fprintln(
			a.Err,
			"assent: warning: the token may act for every agent of the tenant, also later ones; --agents binds it "+
				"to some",
		)
	}

	p := a.Printer()
	if f.AsJSON {
		return p.Document(made)
	}
	if f.direct() && f.person != "" {
		fmt.Fprintf(a.Err, "assent: a store knows no people: nobody checked that %s is in people.yaml, "+
			"and answers of anybody else are refused\n", term.ScrubLine(f.person))
	}
	fmt.Fprintf(
		a.Err,
		"token %s of %s, good until %s; the secret is shown this once:\n",
		term.ScrubLine(made.Token.ID),
		term.ScrubLine(made.Token.Name),
		term.Stamp(made.Token.Expires),
	)
	p.Printf("%s\n", made.Secret)
	return p.Done()
}

// body returns the token that the flags describe.
func (f TokenFlags) body() (openapi.TokenBody, error) {
	body := openapi.TokenBody{
		Name:     f.name,
		Agents:   f.agents,
		Person:   f.person,
		Replaces: f.replace,
	}
	for _, s := range f.scopes {
		body.Scopes = append(body.Scopes, openapi.Scope(s))
	}
	if f.expires == "" {
		return body, nil
	}
	age, err := term.ParseAge(f.expires)
	if err != nil || age == 0 {
		return body, fmt.Errorf("--expires: %q is no time, expected one such as 720h or 90d", f.expires)
	}
	body.ExpiresIn = age.String()

	return body, nil
}

// MakeToken creates a token at a place, after administrators have approved it if that is required.
func (a Commands) MakeToken(
	ctx context.Context, p Place, wait bool, body openapi.TokenBody,
) (*openapi.CreatedToken, error) {
	return at(ctx, a, p, true, func(s store.Store, tenant string) (*openapi.CreatedToken, error) {
		return a.Backend.CreateToken(ctx, s, tenant, body)
	}, func(s *client.Client) (*openapi.CreatedToken, error) {
		return administer(ctx, a, wait, func() (*openapi.CreatedToken, error) { return s.CreateToken(ctx, body) })
	})
}

// administerPause is the interval for checking if administrators have approved an act.
const administerPause = 2 * time.Second

// administer performs an act that administrators may have to approve first. It prints that they are
// asked, and with wait it continues once they have approved it.
func administer[T any](ctx context.Context, a Commands, wait bool, act func() (T, error)) (T, error) {
	told := ""
	for {
		out, err := act()
		var asked *client.AskedError
		if !errors.As(err, &asked) {
			return out, remote.Explain(err)
		}
		id := term.ScrubLine(asked.Request.ID)
		if !wait {
			text := "administrators are asked first: " + id +
				"; give the same command again once they have approved it, or wait with --wait"
			return out, term.No("%s", text)
		}
		if told != id {
			fmt.Fprintf(
				a.Err,
				"assent: %s waits for administrators, %s\n",
				id,
				term.Until(asked.Request.Deadline, time.Now()),
			)
			told = id
		}

		select {
		case <-ctx.Done():
			return out, term.No("%s", "stopped waiting: "+id+" stays open")
		case <-time.After(administerPause):
		}
	}
}

// asks reports whether the token may ask for calls, but the flags don't limit it to agents.
func (f TokenFlags) asks() bool {
	return len(f.agents) == 0 &&
		(slices.Contains(f.scopes, string(openapi.ScopeRequest)) ||
			slices.Contains(f.scopes, string(openapi.ScopeDecide)))
}

// at works directly on the store if flags name one, otherwise on the server. The environment alone
// never selects the store. With create a missing store is created.
func at[T any](
	ctx context.Context, a Commands, p Place, create bool,
	directly func(s store.Store, tenant string) (T, error), remotely func(*client.Client) (T, error),
) (out T, err error) {
	if !p.direct() {
		server, err := a.Dial(p.Connection)
		if err != nil {
			return out, err
		}
		out, err = remotely(server)
		return out, remote.Explain(err)
	}

	if p.Where != "" && p.File != "" {
		return out, config.ErrTwoStores
	}
	where, err := p.Config(a.Reader, p.Where != "" || p.File != "")
	if err != nil {
		return out, err
	}
	tenant, err := where.Tenant(p.Tenant)
	if err != nil {
		return out, err
	}
	where.Create = create
	err = upkeep{a}.withStore(ctx, where, func(s store.Store) error {
		out, err = directly(s, tenant)
		return err
	})

	return out, err
}

func (a Commands) tokenListCommand() *cobra.Command {
	var f TokenFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens; nobody keeps their secrets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listTokens(cmd.Context(), f) },
	}
	return placed(cmd, &f.Place)
}

func (a Commands) listTokens(ctx context.Context, f TokenFlags) error {
	doc, err := at(ctx, a, f.Place, false, func(s store.Store, tenant string) (openapi.Tokens, error) {
		doc := openapi.Tokens{Tokens: []openapi.Token{}}
		list, err := s.Tokens(ctx, tenant)
		for _, t := range list {
			doc.Tokens = append(doc.Tokens, tokens.Shown(t))
		}
		return doc, err
	}, func(s *client.Client) (openapi.Tokens, error) {
		list, err := s.Tokens(ctx)
		return openapi.Tokens{Tokens: list}, err
	})
	if err != nil {
		return err
	}
	return term.Print(a.Streams, f.AsJSON, doc, printTokens)
}

func printTokens(p *term.Printer, t openapi.Tokens) {
	if len(t.Tokens) == 0 {
		p.Printf("no tokens\n")
		return
	}
	table := term.Heading("ID", "NAME", "SCOPES", "ENDS", "PERSON", "AGENTS", "MADE BY")
	for _, x := range t.Tokens {
		end := term.Until(x.Expires, time.Now())
		if end == "now" {
			end = "expired"
		}
		if x.Revoked != nil {
			end = "revoked"
		}
		agents := cmp.Or(strings.Join(x.Agents, ","), "all")
		table.Row(term.Bold.Of(x.ID), x.Name, strings.Join(x.Scopes, ","), end, x.Person, agents, x.Maker)
	}

	p.Table(table)
}

func (a Commands) tokenRevokeCommand() *cobra.Command {
	var f TokenFlags
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token",
		Args:  term.OneOf("the ID of a token, as `assent token list` shows it"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.revokeToken(cmd.Context(), f, args[0]) },
	}
	return placed(cmd, &f.Place)
}

func (a Commands) revokeToken(ctx context.Context, f TokenFlags, id string) error {
	doc, err := at(ctx, a, f.Place, false, func(s store.Store, tenant string) (map[string]string, error) {
		return map[string]string{"revoked": id}, a.Backend.RevokeToken(ctx, s, tenant, id)
	}, func(s *client.Client) (map[string]string, error) {
		return map[string]string{"revoked": id}, s.RevokeToken(ctx, id)
	})
	if err != nil {
		return err
	}
	return term.Print(a.Streams, f.AsJSON, doc, func(p *term.Printer, _ map[string]string) {
		p.Printf("%s: revoked\n", id)
	})
}
