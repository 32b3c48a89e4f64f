package main

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/cli"
)

// TestSlackPaths: names that make the same address, or none, are refused at the start.
func TestSlackPaths(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b"}, ""},
		{[]string{"a.b", "a-b"}, `tenants "a.b" and "a-b": slack: both names make the address /slack/a-b`},
		{[]string{"Acme", "acme"}, "/slack/acme"},
		{[]string{"é"}, "makes no address under /slack/"},
	} {
		var cfg cli.ServeConfig
		for _, name := range c.names {
			cfg.Tenants = append(cfg.Tenants, cli.TenantConfig{Name: name, Slack: &cli.SlackConfig{}})
		}
		cfg.Tenants = append(cfg.Tenants, cli.TenantConfig{Name: "a_b"}) // has no Slack, so no address
		_, err := newDelivery(cfg, "https://assent.example")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.names, err, c.want)
		}
	}
}
