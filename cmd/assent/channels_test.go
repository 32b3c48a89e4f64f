package main

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/server/notify/slack"
)

// TestSlackPaths: names that result in the same address, or in none, are refused at the start.
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
		var cfg config.Serve
		for _, name := range c.names {
			tenant := config.Tenant{Name: name}
			tenant.Notify.Say("slack", &slack.Settings{})
			cfg.Tenants = append(cfg.Tenants, tenant)
		}

		cfg.Tenants = append(cfg.Tenants, config.Tenant{Name: "a_b"}) // has no Slack, so no address
		_, err := newDelivery(cfg, "https://assent.example")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.names, err, c.want)
		}
	}
}
