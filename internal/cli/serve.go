package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
)

// What commands assume unless they are told otherwise.
const (
	defaultStore  = "./assent.db"
	defaultTenant = "default"
	defaultListen = "127.0.0.1:7717"
	defaultDrain  = 10 * time.Second
)

// ServeConfig says what to serve; see assent serve --help. Files are paths, not contents.
type ServeConfig struct {
	Listen    string
	PublicURL string // how people reach it; "" means http:// and the address
	Store     string // path or postgres:// URL
	KeyFile   string // "" means assent.key beside a store that is a file
	Drain     time.Duration
	Dev       bool
	DevPerson string         // whose sign-in link Dev makes
	Tenants   []TenantConfig // at least one, names unique
	LogText   bool           // for a person; else JSON
}

// TenantConfig is one tenant.
type TenantConfig struct {
	Name     string
	Agents   []string
	Policies []string
	People   string // "" with Dev: one approver, you, who is in every group
	OIDC     *OIDCConfig
	Webhooks []WebhookConfig
	Slack    *SlackConfig
	RAP      *RAPConfig
	// CaseSensitive names targets, such as "mcp_tool files/grep", whose arguments may have keys that differ in case alone.
	CaseSensitive []string
}

// OIDCConfig is how people of a tenant sign in.
type OIDCConfig struct {
	Issuer           string
	ClientID         string
	ClientSecretFile string
	GroupsClaim      string
}

// RouteConfig picks events; empty lists don't filter, but for Events, where none means those after which somebody may have to act.
type RouteConfig struct {
	Events []string
	Agents []string
	Groups []string
}

// WebhookConfig is one receiver of webhooks.
type WebhookConfig struct {
	RouteConfig
	Name        string
	URLFile     string // paths of webhooks are often secrets; this or URL
	URL         string
	SecretFiles []string // whsec_…; each signs, which lets a receiver change secrets
	Loopback    bool     // this machine may be reached, by plain http too
	Networks    []string // private networks that may be reached
}

// SlackConfig is one Slack workspace.
type SlackConfig struct {
	RouteConfig
	Team              string
	TokenFile         string
	SigningSecretFile string
	Channels          map[string]string // by group; "" for every other
	Arguments         bool              // show arguments, and so offer buttons
}

// Ready is what a service says once it answers.
type Ready struct {
	URL  string `json:"url"`            // where people reach it
	API  string `json:"api"`            // where it listens
	Link string `json:"link,omitempty"` // one-time sign-in link of --dev
}

// serveFlags are the flags of assent serve, over one tenant.
type serveFlags struct {
	ServeConfig
	tenant TenantConfig
	oidc   OIDCConfig
	config string
	asJSON bool
}

func (a Assent) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve --agents DIR... [--policies DIR]... [--people FILE] [--store STORE] [--dev]",
		Short: "Run the approval service",
		Long: "serve needs nothing but the agents: it keeps everything in one file, and makes the ledger's key on the first start. Several of it may\n" +
			"share one PostgreSQL. --dev is for a laptop: loopback only, and it prints a link that signs you in.\n\n" +
			"--config reads the same from YAML, with several tenants, webhooks and Slack beside it; a flag goes before the file.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.serveConfig(cmd, f)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			return a.serve(ctx, cfg, f.asJSON)
		},
	}
	serveFlagSet(cmd, &f)
	cmd.Flags().StringVar(&f.config, "config", "", "YAML `FILE` with the same fields, and more")
	return cmd
}

func serveFlagSet(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.tenant.Agents, "agents", nil, "`DIR` of *.agf.yaml, or one such file (repeatable)")
	flags.StringArrayVar(&f.tenant.Policies, "policies", nil, "`DIR` of *.policy.yaml (repeatable)")
	flags.StringVar(&f.tenant.People, "people", "", "people.yaml: `FILE` of who may answer (docs/contracts/people.md)")
	flags.StringVar(&f.tenant.Name, "tenant", defaultTenant, "`NAME` of the tenant")
	flags.StringVar(&f.Store, "store", defaultStore, "`PATH` of the embedded store, or postgres:// URL")
	flags.StringVar(&f.Listen, "listen", defaultListen, "`ADDRESS` to listen at")
	flags.StringVar(&f.PublicURL, "public-url", "", "`URL` at which people reach it; https, through your proxy")
	flags.StringVar(&f.KeyFile, "key", "", "`FILE` of the ledger's key, made on the first start with FILE.pub; assent.key beside the store")
	flags.StringVar(&f.oidc.Issuer, "oidc-issuer", "", "`URL` of the identity provider that people sign in at")
	flags.StringVar(&f.oidc.ClientID, "oidc-client-id", "", "client `ID` there")
	flags.StringVar(&f.oidc.ClientSecretFile, "oidc-client-secret-file", "", "`FILE` of the client's secret")
	flags.StringVar(&f.oidc.GroupsClaim, "oidc-groups-claim", "", "`CLAIM` that lists groups; groups")
	flags.BoolVar(&f.Dev, "dev", false, "for a laptop: loopback only, prints a link that signs in")
	flags.StringVar(&f.DevPerson, "dev-person", "", "`ID` of the person whom the link of --dev signs in; you, when there is no --people")
	flags.DurationVar(&f.Drain, "drain", defaultDrain, "how long to let requests end after a signal")
	flags.BoolVar(&f.asJSON, "json", false, "tell in JSON where it answers")
}

// serveConfig puts the file and the flags together, and checks the whole.
func (a Assent) serveConfig(cmd *cobra.Command, f serveFlags) (ServeConfig, error) {
	cfg := f.ServeConfig
	if f.oidc != (OIDCConfig{}) {
		f.tenant.OIDC = &f.oidc
	}
	cfg.Tenants = []TenantConfig{f.tenant}
	if f.config != "" {
		file, err := a.readServeConfig(f.config)
		if err != nil {
			return cfg, err
		}
		if cfg, err = overlay(file, f, cmd.Flags().Changed); err != nil {
			return cfg, err
		}
	}
	cfg.LogText = a.ErrTerminal
	return cfg, cfg.check()
}

// overlay puts flags that were given over a file.
func overlay(cfg ServeConfig, f serveFlags, given func(string) bool) (ServeConfig, error) {
	for name, field := range map[string][2]*string{
		"store": {&cfg.Store, &f.Store}, "listen": {&cfg.Listen, &f.Listen}, "public-url": {&cfg.PublicURL, &f.PublicURL},
		"key": {&cfg.KeyFile, &f.KeyFile}, "dev-person": {&cfg.DevPerson, &f.DevPerson},
	} {
		if given(name) {
			*field[0] = *field[1]
		}
	}
	if given("drain") {
		cfg.Drain = f.Drain
	}
	if given("dev") {
		cfg.Dev = f.Dev
	}
	ofTenant := []string{"agents", "policies", "people", "tenant", "oidc-issuer", "oidc-client-id", "oidc-client-secret-file", "oidc-groups-claim"}
	if i := slices.IndexFunc(ofTenant, given); i >= 0 && len(cfg.Tenants) != 1 {
		return cfg, fmt.Errorf("--%s: the configuration has %d tenants, so say it there", ofTenant[i], len(cfg.Tenants))
	} else if i < 0 {
		return cfg, nil
	}
	t := &cfg.Tenants[0]
	for name, put := range map[string]func(){
		"agents": func() { t.Agents = f.tenant.Agents }, "policies": func() { t.Policies = f.tenant.Policies }, "people": func() { t.People = f.tenant.People },
		"tenant": func() { t.Name = f.tenant.Name },
	} {
		if given(name) {
			put()
		}
	}
	if f.tenant.OIDC != nil {
		t.OIDC = f.tenant.OIDC
	}
	return cfg, nil
}

// check refuses what could not work, before anything is opened.
func (c *ServeConfig) check() error {
	if err := checkStore(c.Store); err != nil {
		return err
	}
	if c.KeyFile == "" {
		if isURL(c.Store) {
			return errors.New("--key: expected a file: with PostgreSQL there is no place beside the store, and all replicas need the same key")
		}
		c.KeyFile = filepath.Join(filepath.Dir(c.Store), "assent.key")
	}
	if c.Drain < 0 {
		return errors.New("--drain: expected a time that is not negative")
	}
	names := map[string]bool{}
	for i := range c.Tenants {
		if err := c.checkTenant(&c.Tenants[i]); err != nil {
			return err
		}
		if names[c.Tenants[i].Name] {
			return fmt.Errorf("two tenants are called %q", c.Tenants[i].Name)
		}
		names[c.Tenants[i].Name] = true
	}
	return nil
}

func (c *ServeConfig) checkTenant(t *TenantConfig) error {
	switch {
	case len(t.Agents) == 0:
		return fmt.Errorf("tenant %s: --agents: expected at least one directory; without agents every call is denied", t.Name)
	case t.People == "" && !c.Dev:
		return fmt.Errorf("tenant %s: --people: expected people.yaml, or nobody could answer (--dev makes do without)", t.Name)
	case t.People != "" && c.Dev && c.DevPerson == "":
		return fmt.Errorf("tenant %s: --dev-person: expected the id of a person of %s, whom the link signs in", t.Name, t.People)
	case t.People == "" && c.DevPerson == "":
		c.DevPerson = devPerson
	}
	if o := t.OIDC; o != nil && (o.Issuer == "" || o.ClientID == "") {
		return fmt.Errorf("tenant %s: signing in needs --oidc-issuer and --oidc-client-id both", t.Name)
	}
	if t.OIDC != nil && c.PublicURL == "" {
		return fmt.Errorf("tenant %s: signing in at %s needs --public-url: the address that the provider sends people back to", t.Name, t.OIDC.Issuer)
	}
	for _, path := range slices.Concat(t.Agents, t.Policies) {
		if err := existing(path); err != nil {
			return err
		}
	}
	return nil
}

// devPerson is who answers with --dev and without people.yaml.
const devPerson = "you"

func isURL(store string) bool {
	return strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://")
}

// checkStore refuses the URL of something else, which would be taken for a path.
func checkStore(store string) error {
	if scheme, _, ok := strings.Cut(store, "://"); ok && !isURL(store) {
		return fmt.Errorf("--store: expected a path, or a postgres:// URL, and found %s://", scheme)
	}
	return nil
}

func (a Assent) serve(ctx context.Context, cfg ServeConfig, asJSON bool) error {
	if a.Backend.Serve == nil {
		return errNoBackend
	}
	p := a.printer()
	err := a.Backend.Serve(ctx, cfg, a.Err, func(r Ready) {
		if asJSON {
			p.err = p.jsonLine(r)
			return
		}
		if cfg.Dev {
			p.banner()
		}
		p.printf("assent serves at %s\n", r.URL)
		if r.Link != "" {
			p.printf("sign in as %s, once, within 10 minutes: %s\n", cfg.DevPerson, r.Link)
		}
	})
	return errors.Join(err, p.done())
}

func (p *printer) banner() {
	p.printf("%s\n", styled{yellow, "*** DEV MODE: whoever reads this terminal can sign in and approve. Never for real agents. ***"})
}

// readServeConfig reads the YAML form.
func (a Assent) readServeConfig(file string) (ServeConfig, error) {
	cfg := ServeConfig{Listen: defaultListen, Store: defaultStore, Drain: defaultDrain}
	src, err := readInput(file, nil)
	if err != nil {
		return cfg, err
	}
	one := TenantConfig{Name: defaultTenant}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		known := r.tenantFields(&one)
		known["tenant"] = r.text(&one.Name)
		known["store"] = r.store(&cfg.Store)
		known["listen"] = r.text(&cfg.Listen)
		known["public_url"] = r.text(&cfg.PublicURL)
		known["key"] = r.path(&cfg.KeyFile)
		known["drain"] = r.duration(&cfg.Drain)
		known["dev"] = r.flag(&cfg.Dev)
		known["dev_person"] = r.text(&cfg.DevPerson)
		known["tenants"] = r.list(func(n *yamldoc.Node) {
			t := TenantConfig{}
			f := r.tenantFields(&t)
			f["name"] = r.text(&t.Name)
			if r.mapping(n, f); t.Name == "" {
				r.wrong(n, "this tenant has no name", "name", "")
			}
			cfg.Tenants = append(cfg.Tenants, t)
		})
		r.mapping(root, known)
		if len(cfg.Tenants) > 0 && (one.Name != defaultTenant || len(one.Agents) > 0 || one.People != "") {
			r.wrong(root, "the file has tenants, and a tenant beside them", "everything of a tenant below tenants", "")
		}
	})
	if len(cfg.Tenants) == 0 {
		cfg.Tenants = []TenantConfig{one}
	}
	return cfg, err
}

// store reads a path or a URL.
func (r *configReader) store(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		if read(n); !isURL(*into) {
			*into = r.beside(*into)
		}
	}
}

func (r *configReader) tenantFields(t *TenantConfig) fields {
	return fields{
		"agents": r.paths(&t.Agents), "policies": r.paths(&t.Policies), "people": r.path(&t.People), "rap": r.rap(&t.RAP),
		"case_sensitive_arguments": r.targets(&t.CaseSensitive),
		"oidc": func(n *yamldoc.Node) {
			t.OIDC = &OIDCConfig{}
			r.mapping(n, fields{
				"issuer": r.text(&t.OIDC.Issuer), "client_id": r.text(&t.OIDC.ClientID), "client_secret_file": r.path(&t.OIDC.ClientSecretFile),
				"groups_claim": r.text(&t.OIDC.GroupsClaim),
			})
		},
		"notify": func(n *yamldoc.Node) {
			r.mapping(n, fields{
				"webhooks": r.list(func(n *yamldoc.Node) { t.Webhooks = append(t.Webhooks, r.webhook(n)) }),
				"slack":    func(n *yamldoc.Node) { t.Slack = r.slack(n) },
			})
		},
	}
}

// targets reads names of what calls go to.
func (r *configReader) targets(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var name string
		if r.text(&name)(n); name == "" {
			return
		}
		if err := resolve.CheckTarget(name); err != nil {
			r.wrong(n, err.Error(), "", "")
			return
		}
		*into = append(*into, name)
	})
}

func (r *configReader) route(c *RouteConfig) fields {
	return fields{"events": r.texts(&c.Events), "agents": r.texts(&c.Agents), "groups": r.texts(&c.Groups)}
}

func (r *configReader) webhook(n *yamldoc.Node) WebhookConfig {
	var w WebhookConfig
	f := r.route(&w.RouteConfig)
	f["name"], f["url"], f["url_file"], f["secret_file"] = r.text(&w.Name), r.text(&w.URL), r.path(&w.URLFile), r.paths(&w.SecretFiles)
	f["loopback"], f["networks"] = r.flag(&w.Loopback), r.texts(&w.Networks)
	r.mapping(n, f)
	if w.Name == "" || (w.URL == "") == (w.URLFile == "") || len(w.SecretFiles) == 0 {
		r.wrong(n, "this webhook lacks something", "name, secret_file, and one of url and url_file", "")
	}
	return w
}

func (r *configReader) slack(n *yamldoc.Node) *SlackConfig {
	var s SlackConfig
	f := r.route(&s.RouteConfig)
	f["team"], f["token_file"], f["signing_secret_file"] = r.text(&s.Team), r.path(&s.TokenFile), r.path(&s.SigningSecretFile)
	f["channels"], f["arguments"] = r.table(&s.Channels), r.flag(&s.Arguments)
	r.mapping(n, f)
	if s.Team == "" || s.TokenFile == "" || s.SigningSecretFile == "" || len(s.Channels) == 0 {
		r.wrong(n, "this lacks something", "team, token_file, signing_secret_file and channels", "")
	}
	return &s
}
