package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/config"
)

// These are the defaults of commands.
const (
	DefaultStore  = "./assent.db"
	DefaultTenant = "default"
)

// DefaultDrainDelay is the time that a proxy or a Kubernetes service may need until it sends no
// more requests to a server that is not ready.
const DefaultDrainDelay = 5 * time.Second

// These are the values of Serve.OnBrokenFiles, for files that can't be used.
const (
	KeepLastGood = "keep" // what was in force stays in force
	DenyBroken   = "deny" // what they would decide is denied
)

// Serve is the configuration of the server; see assent serve --help. Files are given as paths.
type Serve struct {
	Listen        string `doc:"listen"`
	MetricsListen string `doc:"metrics_listen"` // a listener of its own for /metrics; "": on the listener of the API
	PublicURL     string `doc:"public_url"`     // how people reach it; "" means http:// and the address
	// Hosts are further names of the server, in addition to those of Listen and PublicURL.
	Hosts     []string `doc:"hosts"`
	Store     string   `doc:"store"`      // path or postgres:// URL
	StoreFile string   `doc:"store_file"` // file that holds Store
	KeyFile   string   `doc:"key"`        // "" means assent.key next to a store that is a file
	Watermark string   `doc:"watermark"`  // file; "" means one next to the key, NoWatermark none
	Kept      `doc:"ledger"`
	// Retention is the time after which ended requests are redacted, as by assent prune. 0 means
	// never.
	Retention     time.Duration `doc:"retention"`
	OnBrokenFiles string        `doc:"on_broken_files"` // KeepLastGood or DenyBroken
	LogLevel      string        `doc:"log_level"`       // one of LogLevels
	Drain         time.Duration `doc:"drain"`
	// DrainDelay is how long the server continues to serve after a signal, while it reports that it
	// is not ready. Nil means DefaultDrainDelay, or no delay on loopback.
	DrainDelay *time.Duration `doc:"drain_delay"`
	Dev        bool           `doc:"dev"`
	DevPerson  string         `doc:"dev_person"` // whose sign-in link Dev makes
	Personal   bool           // it is a gateway's inbox, for the person of this machine: Dev is no warning then
	Tenants    []Tenant       `doc:"tenants"` // at least one, names unique
	Witnesses  []Witness      `doc:"witness"`
	Limits     Limits         `doc:"limits"`
	LogText    bool           // for a person; else JSON
	Strict     bool           // an error in a file of agents or policies refuses the start
}

// Kept limits what the ledger stores.
type Kept struct {
	// KeepArgs is the maximum size in bytes of stored arguments, for calls about which no one is
	// asked. 0 means the default of approval.Config.
	KeepArgs int `doc:"keep_arguments"`
}

// Tenant is one tenant.
type Tenant struct {
	Name     string   `doc:"name"`
	Agents   []string `doc:"agents"`
	Policies []string `doc:"policies"`
	// Candidate is a directory of files with which calls are evaluated too, without effect on
	// decisions. It may be empty.
	Candidate string `doc:"candidate"`
	People    string `doc:"people"` // "" with Dev: one approver, you, who is in every group
	// Decisions is the file of the decision configuration. It may be empty. Its content is in
	// Chosen, and in the three fields that it replaces: Policies, TrustedServers and CaseSensitive.
	Decisions string `doc:"decisions"`
	Chosen    *term.Decisions
	// TrustedServers are the MCP servers and remote agents whose
	// annotations are believed, by globs over their aliases.
	TrustedServers []string `doc:"trusted_servers"`
	// CaseSensitive names targets, such as "mcp_tool files/grep", whose arguments may have keys
	// that differ only in case.
	CaseSensitive []string `doc:"case_sensitive_arguments"`
	// UnknownPrincipals is AcceptUnknown, or one_more (the default): calls for principals who are
	// not in the directory then need one more approver.
	UnknownPrincipals string `doc:"unknown_principals"`
	Admins            Admins `doc:"admins"`
	OIDC              *OIDC  `doc:"oidc"`
	Notify            Notify `doc:"notify"`
	RAP               *RAP   `doc:"rap"`
	// MCP are gateways for MCP.
	MCP []config.Served `doc:"mcp"`
	// Permits are the tools that check permits.
	Permits []PermitAudience `doc:"permits"`
	// AskUndeclared and PermitAge are set for an MCP gateway if Decisions doesn't set them.
	AskUndeclared bool
	PermitAge     time.Duration // 0: as everywhere
}

// PermitAudience is a tool that checks permits.
type PermitAudience struct {
	Audience string        `doc:"audience"`
	Targets  []string      `doc:"targets"`
	Lifetime time.Duration `doc:"lifetime"`
}

// AcceptUnknown is the value with which calls for principals who are not in the directory need no
// additional approver.
const AcceptUnknown = "accept"

// Admins says who may freeze, thaw and redeliver in the inbox.
type Admins struct {
	Group      string `doc:"group"`
	FromSignIn bool   `doc:"from_sign_in"` // an identity provider may put people into it, not only people.yaml
}

// OIDC configures the sign-in of a tenant's people.
type OIDC struct {
	Name             string   `doc:"name"` // of the provider, on the button; "" means the issuer's host
	Issuer           string   `doc:"issuer"`
	ClientID         string   `doc:"client_id"`
	ClientSecretFile string   `doc:"client_secret_file"`
	Scopes           []string `doc:"scopes"` // in addition to openid; none: email and profile
	GroupsClaim      string   `doc:"groups_claim"`
}

// Location returns the store that the service opens.
func (c *Serve) Location() Store {
	return Store{Where: c.Store, KeyFile: c.KeyFile, Watermark: c.Watermark, Create: true}
}

// check reports a configuration that could not work, before anything is opened.
func (c *Serve) check() error {
	where, err := c.Location().WithDefaults()
	if err != nil {
		return err
	}
	c.KeyFile, c.Watermark = where.KeyFile, where.Watermark
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

	return c.checkMCP()
}

// checkMCP checks that each gateway for MCP has an address of its own.
func (c *Serve) checkMCP() error {
	names := map[string]string{}
	for _, t := range c.Tenants {
		for _, g := range t.MCP {
			if other, taken := names[g.Name]; taken {
				return fmt.Errorf(
					"tenants %s and %s: mcp: both have a gateway called %s, and it has the address /mcp/%s: rename one",
					other, t.Name, g.Name, g.Name,
				)
			}

			names[g.Name] = t.Name
		}
	}

	return nil
}

// PinsOf returns the file of a gateway's pins.
func (c *Serve) PinsOf(g config.Served) string {
	if g.Pins != "" {
		return g.Pins
	}
	beside := c.Store
	if stores.IsURL(c.Store) {
		beside = c.KeyFile
	}

	return filepath.Join(filepath.Dir(beside), "mcp-"+g.Name+".pins.json")
}

func (c *Serve) checkTenant(t *Tenant) error {
	switch {
	case len(t.Agents) == 0:
		return fmt.Errorf(
			"tenant %s: --agents: expected at least one directory; without agents every call is denied",
			t.Name,
		)
	case t.People == "" && !c.Dev:
		return fmt.Errorf(
			"tenant %s: --people: expected people.yaml, or nobody could answer (--dev makes do without)",
			t.Name,
		)
	case t.People != "" && c.Dev && c.DevPerson == "":
		return fmt.Errorf(
			"tenant %s: --dev-person: expected the id of a person of %s, whom the link signs in",
			t.Name,
			t.People,
		)
	case t.People == "" && c.DevPerson == "":
		c.DevPerson = DevPerson
	}

	if err := errors.Join(c.CheckSignIn(t), t.checkPermits()); err != nil {
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
		return fmt.Errorf(
			"tenant %s: signing in at %s needs --public-url: where the provider sends people back to",
			t.Name,
			t.OIDC.Issuer,
		)
	}

	return nil
}

// checkPermits refuses a call that two tools would run, and lives that
// no permit may have.
func (t *Tenant) checkPermits() error {
	seen := map[string]bool{}
	for _, p := range t.Permits {
		if p.Audience == "" || len(p.Targets) == 0 {
			return fmt.Errorf("tenant %s: permits: expected an audience and its targets", t.Name)
		}
		if p.Lifetime < permit.MinLifetime || p.Lifetime > permit.MaxLifetime {
			return fmt.Errorf(
				"tenant %s: permits: %s: lifetime: expected %v to %v: a permit is for what runs next",
				t.Name,
				p.Audience,
				permit.MinLifetime,
				permit.MaxLifetime,
			)
		}

		for _, target := range p.Targets {
			if seen[target] {
				return fmt.Errorf("tenant %s: permits: %s stands twice: a call is for one tool", t.Name, target)
			}
			seen[target] = true
		}
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

// DevPerson is the person who answers with --dev and without people.yaml.
const DevPerson = "you"

// checkStore returns an error for the URL of another kind of database, which would otherwise be
// used as a path.
func checkStore(store string) error {
	scheme, rest, found := strings.Cut(store, ":")
	switch {
	case stores.IsURL(store) || !found:
	case strings.HasPrefix(rest, "//"):
		return fmt.Errorf("--store: expected a path, or a postgres:// URL, and found %s://", scheme)
	case strings.HasPrefix(scheme, "postgres"): // it is not repeated: it may hold a password
		return errors.New("--store: expected a path, or a URL that begins with postgres://")
	}

	return nil
}
