package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
)

// FuzzServeConfig checks that no file makes the reader panic, and that every tenant of an accepted
// file has a name.
func FuzzServeConfig(f *testing.F) {
	f.Add(
		"agents: [a]\npeople: p\nnotify: {webhooks: [{name: a, url: 'https://x', secret_file: s}], slack: {team: T, " +
			"token_file: t, signing_secret_file: s, channels: {'': C}}}",
	)
	f.Add("tenants: [{name: a, agents: x}, 1]\ndrain: 3\nstore: postgres://x")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		var errOut bytes.Buffer
		cfg, err := Reader{Streams: term.Streams{Err: &errOut}}.readServe(path)
		if err != nil {
			return
		}
		for _, tenant := range cfg.Tenants {
			if tenant.Name == "" {
				t.Errorf("%q: a tenant without a name", text)
			}
		}
	})
}

// TestServeConfigReads everything that a file may say.
func TestServeConfigReads(t *testing.T) {
	dir := t.TempDir()
	path := testfiles.Write(
		t,
		filepath.Join(dir, "c.yaml"),
		`listen: 127.0.0.1:1
public_url: https://a.example
store: postgres://u@h/d
key: k
drain: 3s
tenant: acme
agents: a
policies: [p, /q]
people: people.yaml
case_sensitive_arguments: [tool grep, mcp_tool files/grep]
oidc: {issuer: https://idp.example, client_id: c, client_secret_file: s, groups_claim: roles}
notify:
  webhooks: [{name: ops, url_file: u, secret_file: [s1, s2], events: [request_*], agents: [desk], groups: [risk], loopback: true, networks: [10.0.0.0/8]}]
  slack: {team: T1, token_file: t, signing_secret_file: ss, channels: {risk: C1, "": C2}, arguments: true, api: http://127.0.0.1:1/, loopback: true}
limits:
  values: 1000
  memory: {total: 1GiB, tenant: 300 MiB, token: 1024}
  streams: {token: 7}
  open_requests: {tenant: 9, token: 8}
`,
	)
	cfg, err := Reader{}.readServe(path)
	must.Do(t, err)
	tenant := cfg.Tenants[0]
	hooks := *tenant.Notify.said["webhooks"].(*[]webhook.Settings)
	app := *tenant.Notify.said["slack"].(**slack.Settings)
	if cfg.Store != "postgres://u@h/d" || cfg.KeyFile != filepath.Join(dir, "k") || cfg.Drain != 3*time.Second ||
		tenant.Name != "acme" ||
		tenant.Policies[1] != "/q" || tenant.Agents[0] != filepath.Join(dir, "a") ||
		tenant.OIDC.GroupsClaim != "roles" ||
		!slices.Equal(tenant.CaseSensitive, []string{"tool grep", "mcp_tool files/grep"}) ||
		len(hooks[0].SecretFiles) != 2 || hooks[0].URLFile != filepath.Join(dir, "u") ||
		app.Channels["risk"] != "C1" ||
		!app.Arguments ||
		app.API != "http://127.0.0.1:1/" ||
		!app.Loopback {
		t.Errorf("%+v\n%+v", cfg, tenant)
	}

	want := Limits{
		Values:  1000,
		Memory:  Parts{Total: 1 << 30, Tenant: 300 << 20, Token: 1024},
		Streams: Parts{Token: 7},
		Open:    Parts{Tenant: 9, Token: 8},
	}
	if cfg.Limits != want {
		t.Errorf("%+v", cfg.Limits)
	}
}

// TestConfigRefuses wrong types with their place.
func TestConfigRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[]":              "1:1",
		"dev: 1":          "1:6",
		"drain: -1s":      "1:8",
		"agents: {}":      "1:9",
		"retention: 0d":   "1:12",
		"retention: 23h":  "1:12",
		"retention: soon": "1:12",
		"retention: -90d": "1:12",
		"retention: 90":   "1:12",
		"case_sensitive_arguments: [tool a, grep]": "1:36",
		"people: ''":                               "1:9",
		"permits: [{audience: a}]":                 "1:11",
		"permits: [{audience: a, targets: [b]}]":   "1:35",
		"notify: 3":                                "1:9",
		"notify: {slack: {team: T}}":               "1:17",
		"tenants: [{agents: x}]":                   "1:11",
		"limits: {memory: {total: 1MB}}":           "1:26",
		"limits: {memory: {total: 0}}":             "1:26",
		"limits: {memory: {total: 9999999GiB}}":    "1:26",
		"limits: {memory: 1}":                      "1:18",
		"limits: {streams: {token: 1KiB}}":         "1:27",
		"limits: {streams: {tenant: 1, token: 2}}": "1:19",
		"limits: {polls: {total: 1, tenant: 2}}":   "1:17",
		"limits: {open_requests: {total: 1}}":      "1:26",
		"limits: {values: -1}":                     "1:18",
		"limits: {stream: {token: 1}}":             "1:10",
		"a: &x [*x]":                               "1:",
		"store: [":                                 "1:",
	} {
		var errOut bytes.Buffer
		path := testfiles.Write(t, filepath.Join(t.TempDir(), "c.yaml"), text+"\n")
		if _, err := (Reader{Streams: term.Streams{Err: &errOut}}).readServe(path); err == nil ||
			!strings.Contains(errOut.String(), "c.yaml:"+want) {
			t.Errorf("%q: %v\n%s", text, err, errOut.String())
		}
	}
}
