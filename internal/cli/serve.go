package cli

import "time"

// ServeConfig says what to serve; see assent serve --help. Files are paths, not contents.
type ServeConfig struct {
	Listen    string
	PublicURL string // how people reach it; "" means http:// and the address
	Store     string // path or postgres:// URL
	KeyFile   string
	Drain     time.Duration // how long running requests may take after a signal
	Dev       bool
	DevPerson string
	Tenants   []TenantConfig // at least one, names unique
	LogText   bool           // for a person; else JSON
}

// TenantConfig is one tenant.
type TenantConfig struct {
	Name     string
	Agents   []string
	Policies []string
	People   string
	OIDC     OIDCConfig
	Notify   NotifyConfig
}

// OIDCConfig is how people sign in; the zero value means not at all.
type OIDCConfig struct {
	Issuer           string
	ClientID         string
	ClientSecretFile string
	GroupsClaim      string
}

// NotifyConfig says who hears of what happens.
type NotifyConfig struct {
	Webhooks []WebhookConfig
	Slack    *SlackConfig
}

// WebhookConfig is one receiver of webhooks.
type WebhookConfig struct {
	Name       string
	URL        string
	SecretFile string // whsec_…
	Events     []string
}

// SlackConfig is one Slack workspace.
type SlackConfig struct {
	TokenFile         string
	SigningSecretFile string
	Channel           string            // for groups that Channels does not name
	Channels          map[string]string // by group
	Arguments         bool              // show arguments in messages
}

// Ready is what a service says once it answers.
type Ready struct {
	URL  string
	Link string // one-time sign-in link of --dev; "" otherwise
}
