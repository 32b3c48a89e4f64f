package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

// onStores returns the commands of operators that work on a store itself,
// with the arguments that each must have.
func onStores() map[string][]string {
	return map[string][]string{
		"assent migrate":      nil,
		"assent backup":       {"--to", "b"},
		"assent restore":      {"--in-place"},
		"assent prune":        {"--older-than", "24h"},
		"assent key rotate":   {"--new-key", "n"},
		"assent thaw":         {"--reason", "r"},
		"assent token create": {"--name", "n", "--scopes", "read"},
		"assent token list":   nil,
		"assent token revoke": {"tok_1"},
	}
}

// notOnStores returns the other commands of operators, and why.
func notOnStores() map[string]string {
	const service, reads = "asks a running service", "reads the configuration of serve itself"
	return map[string]string{
		"assent serve": reads, "assent oidc check": reads,
		"assent demo": "serves a store of its own", "assent schema": "prints what is embedded",
		"assent freeze": service, "assent deliveries": service,
		"assent candidate": service, "assent policies fetch": service,
		"assent key new": "makes a file, before there is a store",
	}
}

// TestEveryMaintenanceCommandTakesTheConfiguration: it works on the store
// that the configuration of the service names. A new command of operators
// must be in one of the two tables.
func TestEveryMaintenanceCommandTakesTheConfiguration(t *testing.T) {
	t.Setenv("ASSENT_STORE", "")
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	file := testfiles.Write(t, filepath.Join(dir, "serve.yaml"), "listen: 127.0.0.1:0\nstore: "+gone+
		"/there.db\nkey: "+gone+"/there.key\ntenants: [{name: acme, agents: a, people: p}]\n")
	var found []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Runnable() && !c.HasSubCommands() {
			found = append(found, c.CommandPath())
		}
	}
	for _, c := range (program{Backend: backend()}).command().Commands() {
		if c.GroupID == "operate" {
			walk(c)
		}
	}
	for _, name := range found {
		args, works := onStores()[name]
		if !works {
			if notOnStores()[name] == "" {
				t.Errorf("%s is in no table", name)
			}
			continue
		}
		line := slices.Concat(strings.Fields(name)[1:], args, []string{"--config", file})
		out, errOut, code := ran("", line...)
		if code == 0 || !strings.Contains(out+errOut, gone) {
			t.Errorf("%s: exit %d, and not about %s:\n%s%s", strings.Join(line, " "), code, gone, out, errOut)
		}
	}
	for name := range onStores() {
		if !slices.Contains(found, name) {
			t.Errorf("there is no %s", name)
		}
	}
}
