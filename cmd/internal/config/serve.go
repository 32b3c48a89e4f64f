package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
)

// What commands assume unless they are told otherwise.
const (
	DefaultStore  = "./assent.db"
	DefaultTenant = "default"
	defaultListen = "127.0.0.1:7717"
	defaultAdmins = "admins"
	defaultDrain  = 10 * time.Second
)

// What files that can't be used mean (Serve.OnBrokenFiles).
const (
	KeepLastGood = "keep" // what was in force stays in force
	DenyBroken   = "deny" // what they would decide is denied
)

// Serve says what to serve; see assent serve --help. Files are paths, not contents.
type Serve struct {
	Listen        string
	MetricsListen string   // a listener of its own for /metrics; "" leaves it beside the API
	PublicURL     string   // how people reach it; "" means http:// and the address
	Hosts         []string // further names by which it is reached, beside those of Listen and PublicURL
	Store         string   // path or postgres:// URL
	StoreFile     string   // file that holds Store
	KeyFile       string   // "" means assent.key beside a store that is a file
	Watermark     string   // file; "" means one beside the key, NoWatermark none
	KeepArgs      int      // bytes of arguments that the ledger keeps of a call that nobody is asked about; 0: approval.Config's
	OnBrokenFiles string   // KeepLastGood or DenyBroken
	LogLevel      string   // one of LogLevels
	Drain         time.Duration
	Dev           bool
	DevPerson     string   // whose sign-in link Dev makes
	Tenants       []Tenant // at least one, names unique
	Witnesses     []Witness
	Limits        Limits
	LogText       bool // for a person; else JSON
}

// Tenant is one tenant.
type Tenant struct {
	Name     string
	Agents   []string
	Policies []string
	People   string // "" with Dev: one approver, you, who is in every group
	// TrustedServers are the MCP servers and remote agents whose annotations are believed, by globs over their aliases.
	TrustedServers []string
	// CaseSensitive names targets, such as "mcp_tool files/grep", whose arguments may have keys that differ in case alone.
	CaseSensitive []string
	// AcceptUnknown takes calls for principals whom the directory doesn't know without asking one more person.
	AcceptUnknown bool
	Admins        Admins
	OIDC          *OIDC
	Webhooks      []Webhook
	Slack         *Slack
	RAP           *RAP
}

// Admins says who may freeze, thaw and redeliver in the inbox.
type Admins struct {
	Group      string
	FromSignIn bool // an identity provider may put people into it, not only people.yaml
}

// OIDC is how people of a tenant sign in.
type OIDC struct {
	Name             string // of the provider, on the button; "" means the issuer's host
	Issuer           string
	ClientID         string
	ClientSecretFile string
	Scopes           []string // beside openid; none: email and profile
	GroupsClaim      string
}

// Route picks events; empty lists don't filter, but for Events, where none means those after which somebody may have to act.
type Route struct {
	Events []string
	Agents []string
	Groups []string
}

// Webhook is one receiver of webhooks.
type Webhook struct {
	Route
	Name        string
	URLFile     string // paths of webhooks are often secrets; this or URL
	URL         string
	SecretFiles []string // whsec_…; each signs, which lets a receiver change secrets
	Loopback    bool     // this machine may be reached, by plain http too
	Networks    []string // private networks that may be reached
}

// Slack is one Slack workspace.
type Slack struct {
	Route
	Team              string
	TokenFile         string
	SigningSecretFile string
	Channels          map[string]string // by group; "" for every other
	Arguments         bool              // show arguments, and so offer buttons
	API               string            // base of Slack's API; "" for https://slack.com/api/
	Loopback          bool              // may be reached on this machine, by plain http too
}

// ServeFlags are the flags of assent serve, over one tenant.
type ServeFlags struct {
	Serve
	Tenant Tenant
	oidc   OIDC
	Config string
	Check  bool
	AsJSON bool
}

func ServeFlagSet(cmd *cobra.Command, f *ServeFlags) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Tenant.Agents, "agents", nil, "`DIR` of *.agf.yaml, or one such file (repeatable)")
	flags.StringArrayVar(&f.Tenant.Policies, "policies", nil, "`DIR` of *.policy.yaml (repeatable)")
	flags.StringVar(&f.Tenant.People, "people", "", "people.yaml: `FILE` of who may answer (docs/contracts/people.md)")
	flags.StringVar(&f.Tenant.Admins.Group, "admin-group", defaultAdmins,
		"`GROUP` whose members may freeze and thaw in the inbox")
	flags.StringVar(&f.Store, "store", DefaultStore, "`PATH` of the embedded store, or postgres:// URL; ASSENT_STORE")
	flags.StringVar(&f.StoreFile, "store-file", "", "`FILE` that holds what --store would say, for a URL with a password")
	flags.StringVar(&f.Listen, "listen", defaultListen, "`ADDRESS` to listen at")
	flags.StringVar(&f.MetricsListen, "metrics-listen", "",
		"`ADDRESS` of a listener of its own for /metrics; without, it is beside the API")
	flags.StringArrayVar(&f.Hosts, "host", nil,
		"a further `NAME` by which it is reached, such as assent.internal (repeatable); addresses need none")
	flags.StringVar(&f.KeyFile, "key", "", "`FILE` of the ledger's key, made on the first start with FILE.pub; assent.key beside the store")
	flags.StringVar(&f.Watermark, "watermark", "", "`FILE` that remembers how far the ledger had come, or none; FILE.watermark beside the key")
	SignInFlagSet(cmd, f)
	flags.BoolVar(&f.Dev, "dev", false, "for a laptop: loopback only, prints a link that signs in")
	flags.StringVar(&f.DevPerson, "dev-person", "", "`ID` of the person whom the link of --dev signs in; you, when there is no --people")
	flags.StringVar(&f.OnBrokenFiles, "on-broken-files", KeepLastGood,
		"what agents, policies and people that can't be read mean: `keep` what was in force, or deny")
	flags.StringVar(&f.LogLevel, "log-level", "info", "the least `LEVEL` to log: "+strings.Join(LogLevels(), ", "))
	flags.DurationVar(&f.Drain, "drain", defaultDrain, "how long to let requests end after a signal")
	term.Offer(cmd, "on-broken-files", KeepLastGood, DenyBroken)
	term.Offer(cmd, "log-level", LogLevels()...)
	flags.BoolVar(&f.AsJSON, "json", false, "tell in JSON where it answers")
}

// SignInFlagSet adds the flags of how people sign in, and of what they sign in to.
func SignInFlagSet(cmd *cobra.Command, f *ServeFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.Tenant.Name, "tenant", DefaultTenant, "`NAME` of the tenant")
	flags.StringVar(&f.PublicURL, "public-url", "", "`URL` at which people reach it; https, through your proxy")
	flags.StringVar(&f.oidc.Issuer, "oidc-issuer", "", "`URL` of the identity provider that people sign in at")
	flags.StringVar(&f.oidc.ClientID, "oidc-client-id", "", "client `ID` there")
	flags.StringVar(&f.oidc.ClientSecretFile, "oidc-client-secret-file", "", "`FILE` of the client's secret")
	flags.StringVar(&f.oidc.Name, "oidc-name", "", "`NAME` of the provider on the sign-in page; the issuer's host")
	flags.StringSliceVar(&f.oidc.Scopes, "oidc-scopes", nil,
		"`SCOPES` to ask for beside openid, separated by commas; email,profile")
	flags.StringVar(&f.oidc.GroupsClaim, "oidc-groups-claim", "", "`CLAIM` that lists groups; groups")
}

// LogLevels are the levels of the log, least first.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Serve puts the file and the flags together, and checks the whole.
func (a Reader) Serve(cmd *cobra.Command, f ServeFlags) (Serve, error) {
	cfg, err := a.GatherConfig(cmd, f)
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.check()
}

// GatherConfig puts the file and the flags together.
func (a Reader) GatherConfig(cmd *cobra.Command, f ServeFlags) (Serve, error) {
	cfg, given := f.Serve, cmd.Flags().Changed
	if given("store") && given("store-file") {
		return cfg, ErrTwoStores
	}
	f.Tenant.OIDC = f.overOIDC(nil, given)
	cfg.Tenants = []Tenant{f.Tenant}
	if f.Config != "" {
		file, err := a.ReadServeConfig(f.Config)
		if err != nil {
			return cfg, err
		}
		if cfg, err = overlay(file, f, given); err != nil {
			return cfg, err
		}
	}
	cfg.LogText = a.ErrTerminal
	var err error
	cfg.Store, err = a.whereStore(cfg.Store, cfg.StoreFile, given("store") || given("store-file"))
	return cfg, err
}

// overlay puts flags that were given over a file.
func overlay(cfg Serve, f ServeFlags, given func(string) bool) (Serve, error) {
	for name, put := range map[string]func(){
		"store": func() { cfg.Store, cfg.StoreFile = f.Store, "" }, "store-file": func() { cfg.StoreFile = f.StoreFile },
		"listen": func() { cfg.Listen = f.Listen }, "metrics-listen": func() { cfg.MetricsListen = f.MetricsListen },
		"public-url": func() { cfg.PublicURL = f.PublicURL }, "host": func() { cfg.Hosts = f.Hosts },
		"key": func() { cfg.KeyFile = f.KeyFile }, "watermark": func() { cfg.Watermark = f.Watermark },
		"on-broken-files": func() { cfg.OnBrokenFiles = f.OnBrokenFiles }, "log-level": func() { cfg.LogLevel = f.LogLevel },
		"drain": func() { cfg.Drain = f.Drain }, "dev": func() { cfg.Dev = f.Dev },
		"dev-person": func() { cfg.DevPerson = f.DevPerson },
	} {
		if given(name) {
			put()
		}
	}
	ofTenant := append([]string{"agents", "policies", "people", "tenant", "admin-group"},
		slices.Sorted(maps.Keys(f.putOIDC(&OIDC{})))...)
	if i := slices.IndexFunc(ofTenant, given); i >= 0 && len(cfg.Tenants) != 1 {
		return cfg, fmt.Errorf("--%s: the configuration has %d tenants, so say it there", ofTenant[i], len(cfg.Tenants))
	} else if i < 0 {
		return cfg, nil
	}
	t := &cfg.Tenants[0]
	for name, put := range map[string]func(){
		"agents": func() { t.Agents = f.Tenant.Agents }, "policies": func() { t.Policies = f.Tenant.Policies }, "people": func() { t.People = f.Tenant.People },
		"tenant": func() { t.Name = f.Tenant.Name }, "admin-group": func() { t.Admins.Group = f.Tenant.Admins.Group },
	} {
		if given(name) {
			put()
		}
	}
	t.OIDC = f.overOIDC(t.OIDC, given)
	return cfg, nil
}

// putOIDC says which flags there are of a provider, and what each puts into its configuration.
func (f ServeFlags) putOIDC(into *OIDC) map[string]func() {
	return map[string]func(){
		"oidc-name":               func() { into.Name = f.oidc.Name },
		"oidc-issuer":             func() { into.Issuer = f.oidc.Issuer },
		"oidc-client-id":          func() { into.ClientID = f.oidc.ClientID },
		"oidc-client-secret-file": func() { into.ClientSecretFile = f.oidc.ClientSecretFile },
		"oidc-scopes":             func() { into.Scopes = f.oidc.Scopes },
		"oidc-groups-claim":       func() { into.GroupsClaim = f.oidc.GroupsClaim },
	}
}

// overOIDC puts the flags of a provider that were given over what the file says of it; nil when neither says anything.
func (f ServeFlags) overOIDC(file *OIDC, given func(string) bool) *OIDC {
	var over OIDC
	if file != nil {
		over = *file
	}
	for name, put := range f.putOIDC(&over) {
		if given(name) {
			put()
			file = &over
		}
	}
	return file
}

// Location is what the service opens its store with.
func (c *Serve) Location() Store {
	return Store{Where: c.Store, KeyFile: c.KeyFile, Watermark: c.Watermark, Create: true}
}

// check refuses what could not work, before anything is opened.
func (c *Serve) check() error {
	where, err := c.Location().WithDefaults()
	if err != nil {
		return err
	}
	c.KeyFile, c.Watermark = where.KeyFile, where.Watermark
	if c.Drain < 0 {
		return errors.New("--drain: expected a time that is not negative")
	}
	if err := CheckAddress("--listen", c.Listen); err != nil {
		return err
	}
	if c.MetricsListen != "" {
		if err := CheckAddress("--metrics-listen", c.MetricsListen); err != nil {
			return err
		}
	}
	if !slices.Contains([]string{KeepLastGood, DenyBroken}, c.OnBrokenFiles) {
		return fmt.Errorf("--on-broken-files: %q, expected %s or %s", c.OnBrokenFiles, KeepLastGood, DenyBroken)
	}
	if !slices.Contains(LogLevels(), c.LogLevel) {
		return fmt.Errorf("--log-level: %q, expected one of %s", c.LogLevel, strings.Join(LogLevels(), ", "))
	}
	for _, name := range c.Hosts {
		if !hostName(name) {
			return fmt.Errorf("--host: %q, expected a name such as assent.internal, without scheme and port", name)
		}
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

func (c *Serve) checkTenant(t *Tenant) error {
	switch {
	case len(t.Agents) == 0:
		return fmt.Errorf("tenant %s: --agents: expected at least one directory; without agents every call is denied", t.Name)
	case t.People == "" && !c.Dev:
		return fmt.Errorf("tenant %s: --people: expected people.yaml, or nobody could answer (--dev makes do without)", t.Name)
	case t.People != "" && c.Dev && c.DevPerson == "":
		return fmt.Errorf("tenant %s: --dev-person: expected the id of a person of %s, whom the link signs in", t.Name, t.People)
	case t.People == "" && c.DevPerson == "":
		c.DevPerson = DevPerson
	}
	if err := c.CheckSignIn(t); err != nil {
		return err
	}
	for _, path := range slices.Concat(t.Agents, t.Policies) {
		if err := term.Exists(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *Serve) CheckSignIn(t *Tenant) error {
	switch {
	case t.OIDC == nil:
		return nil
	case t.OIDC.Issuer == "" || t.OIDC.ClientID == "":
		return fmt.Errorf("tenant %s: signing in needs --oidc-issuer and --oidc-client-id both", t.Name)
	case c.PublicURL == "":
		return fmt.Errorf("tenant %s: signing in at %s needs --public-url: where the provider sends people back to",
			t.Name, t.OIDC.Issuer)
	}
	return nil
}

// CheckAddress refuses what nobody can listen at.
func CheckAddress(flag, address string) error {
	if !isAddress(address) {
		return fmt.Errorf("%s: %q is no address to listen at, expected HOST:PORT, such as %s", flag, address, defaultListen)
	}
	return nil
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != ""
}

func hostName(text string) bool {
	return text != "" && !strings.ContainsAny(text, ":/ @\\")
}

// DevPerson is who answers with --dev and without people.yaml.
const DevPerson = "you"

func IsURL(store string) bool {
	return strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://")
}

// checkStore refuses the URL of something else, which would be taken for a path.
func checkStore(store string) error {
	scheme, rest, found := strings.Cut(store, ":")
	switch {
	case IsURL(store) || !found:
	case strings.HasPrefix(rest, "//"):
		return fmt.Errorf("--store: expected a path, or a postgres:// URL, and found %s://", scheme)
	case strings.HasPrefix(scheme, "postgres"): // it is not repeated: it may hold a password
		return errors.New("--store: expected a path, or a URL that begins with postgres://")
	}
	return nil
}
