package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// tokenFlags are the flags of the token commands.
type tokenFlags struct {
	connection
	store   string
	tenant  string
	name    string
	scopes  []string
	agents  []string
	person  string
	expires string
}

// direct tells whether the store is worked on itself, which needs no token: that is how the first one comes about.
func (f tokenFlags) direct() bool { return f.store != "" }

func (a Assent) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of runtimes and command lines",
		Long: "Through the API with a token of scope admin; or with --store on the store itself, as whoever may write to it. That is how the first\n" +
			"token is made.",
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return cmd
}

// tokens adds the flags that say where the tokens are.
func tokens(cmd *cobra.Command, f *tokenFlags) *cobra.Command {
	flags := connected(cmd, &f.connection).Flags()
	flags.StringVar(&f.store, "store", "", "work on this store itself: `PATH` or postgres:// URL")
	flags.StringVar(&f.tenant, "tenant", defaultTenant, "with --store: `NAME` of the tenant")
	return cmd
}

func (a Assent) tokenCreateCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "create --name NAME --scopes SCOPE,... [--agents ID,...] [--person ID] [--expires 90d]",
		Short: "Make a token and print its secret, once",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.createToken(cmd.Context(), f) },
	}
	flags := tokens(cmd, &f).Flags()
	flags.StringVar(&f.name, "name", "", "`NAME` of the runtime: letters, digits and ._-")
	flags.StringSliceVar(&f.scopes, "scopes", nil, "what it may do, `SCOPES` separated by commas: "+strings.Join(scopeNames(), ", "))
	flags.StringSliceVar(&f.agents, "agents", nil, "`IDS` of the agents that it may act for, separated by commas; without it, all")
	flags.StringVar(&f.person, "person", "", "`ID` of the person whose answers it gives; the scope vote needs it")
	flags.StringVar(&f.expires, "expires", "90d", "how long it is good: a `TIME` such as 720h or 90d, at most 365d")
	offer(cmd, "scopes", scopeNames()...)
	for _, name := range []string{"name", "scopes"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // both flags are defined above
		}
	}
	return cmd
}

func scopeNames() []string {
	return []string{string(openapi.ScopeDecide), string(openapi.ScopeRequest), string(openapi.ScopeRead), string(openapi.ScopeVote), string(openapi.ScopeAdmin)}
}

func (a Assent) createToken(ctx context.Context, f tokenFlags) error {
	age, err := parseAge(f.expires)
	if err != nil || age == 0 {
		return fmt.Errorf("--expires: %q is no time, expected one such as 720h or 90d", f.expires)
	}
	body := openapi.TokenBody{Name: f.name, Agents: f.agents, Person: f.person, ExpiresIn: age.String()}
	for _, s := range f.scopes {
		body.Scopes = append(body.Scopes, openapi.Scope(s))
	}
	var made *openapi.CreatedToken
	if f.direct() {
		made, err = a.createDirectly(ctx, f, body)
	} else {
		made, err = a.createThroughAPI(ctx, f, body)
	}
	if err != nil {
		return err
	}
	p := a.printer()
	if f.asJSON {
		return p.document(made)
	}
	fmt.Fprintf(a.Err, "token %s of %s, good until %s; the secret is shown this once:\n", scrubLine(made.Token.ID), scrubLine(made.Token.Name), stamp(made.Token.Expires))
	p.printf("%s\n", made.Secret)
	return p.done()
}

func (a Assent) createThroughAPI(ctx context.Context, f tokenFlags, body openapi.TokenBody) (*openapi.CreatedToken, error) {
	server, err := a.dial(f.connection)
	if err != nil {
		return nil, err
	}
	made, err := server.CreateToken(ctx, body)
	if err != nil {
		return nil, answer(err)
	}
	return made, nil
}

func (a Assent) createDirectly(ctx context.Context, f tokenFlags, body openapi.TokenBody) (made *openapi.CreatedToken, err error) {
	if a.Backend.CreateToken == nil {
		return nil, errNoBackend
	}
	err = a.withStore(ctx, f.store, true, func(s store.Store) error {
		made, err = a.Backend.CreateToken(ctx, s, f.tenant, body)
		return err
	})
	return made, err
}

func (a Assent) tokenListCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens; nobody keeps their secrets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listTokens(cmd.Context(), f) },
	}
	return tokens(cmd, &f)
}

func (a Assent) listTokens(ctx context.Context, f tokenFlags) error {
	if !f.direct() {
		return asking(a, f.connection, func(s *client.Client) (openapi.Tokens, error) {
			list, err := s.Tokens(ctx)
			return openapi.Tokens{Tokens: list}, err
		}, (*printer).tokens)
	}
	return a.withStore(ctx, f.store, false, func(s store.Store) error {
		list, err := s.Tokens(ctx, f.tenant)
		if err != nil {
			return err
		}
		doc := openapi.Tokens{Tokens: []openapi.Token{}}
		for _, t := range list {
			doc.Tokens = append(doc.Tokens, openapi.Token{
				ID: t.ID, Tenant: t.Tenant, Name: t.Name, Scopes: t.Scopes, Agents: t.Agents, Person: t.Person, Created: t.Created, Expires: t.Expires, Revoked: t.Revoked,
			})
		}
		p := a.printer()
		if f.asJSON {
			return p.document(doc)
		}
		p.tokens(doc)
		return p.done()
	})
}

func (p *printer) tokens(t openapi.Tokens) {
	if len(t.Tokens) == 0 {
		p.printf("no tokens\n")
		return
	}
	rows := [][]styled{heading("ID", "NAME", "SCOPES", "ENDS", "PERSON", "AGENTS")}
	for _, x := range t.Tokens {
		end := until(x.Expires, time.Now())
		if end == "now" {
			end = "expired"
		}
		if x.Revoked != nil {
			end = "revoked"
		}
		agents := strings.Join(x.Agents, ",")
		if agents == "" {
			agents = "all"
		}
		rows = append(rows, []styled{{bold, x.ID}, cell(x.Name), cell(strings.Join(x.Scopes, ",")), cell(end), cell(x.Person), cell(agents)})
	}
	p.table(rows)
}

func (a Assent) tokenRevokeCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token",
		Args:  oneOf("the ID of a token, as `assent token list` shows it"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.revokeToken(cmd.Context(), f, args[0]) },
	}
	return tokens(cmd, &f)
}

func (a Assent) revokeToken(ctx context.Context, f tokenFlags, id string) error {
	if f.direct() {
		if a.Backend.RevokeToken == nil {
			return errNoBackend
		}
		err := a.withStore(ctx, f.store, false, func(s store.Store) error { return a.Backend.RevokeToken(ctx, s, f.tenant, id) })
		if err != nil {
			return err
		}
	} else {
		server, err := a.dial(f.connection)
		if err != nil {
			return err
		}
		if err := server.RevokeToken(ctx, id); err != nil {
			return answer(err)
		}
	}
	p := a.printer()
	if f.asJSON {
		return p.document(map[string]string{"revoked": id})
	}
	p.printf("%s: revoked\n", id)
	return p.done()
}

// errNoBackend says that this binary was built without the service.
var errNoBackend = errors.New("this program was built without the service")

// withStore opens a store for one piece of work.
func (a Assent) withStore(ctx context.Context, where string, create bool, work func(store.Store) error) (err error) {
	if a.Backend.OpenStore == nil {
		return errNoBackend
	}
	if err := checkStore(where); err != nil {
		return err
	}
	_, missing := os.Stat(where)
	s, err := a.Backend.OpenStore(ctx, where, create)
	if err != nil {
		return err
	}
	if create && missing != nil && !isURL(where) { // the path may be misspelt, and a token in a store that nobody serves opens nothing
		fmt.Fprintf(a.Err, "assent: there was no store at %s, so a new one was made there\n", scrubLine(where))
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return work(s)
}
