//go:build peers

package mcp_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/upstream"
)

var scenario = regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9-]+): `)

// failing returns the scenarios of a run of a suite that fail.
func failing(t *testing.T, least int, args ...string) []string {
	t.Helper()
	text, err := try(t, "node_modules/node/bin/node", args...)
	failed := map[string]bool{}
	all := scenario.FindAllStringSubmatch(string(text), -1)
	for _, m := range all {
		if m[1] == "✗" && !strings.HasPrefix(m[2], "tasks-") { // not scored, and the server has no tasks
			failed[m[2]] = true
		}
	}
	if len(all) < least {
		t.Fatalf("%d scenarios ran, expected %d: %v\n%s", len(all), least, err, text)
	}
	return slices.Sorted(maps.Keys(failed))
}

// notRelayed returns the scenarios that fail through the gateway and pass
// without it: it tells servers the roots of its configuration, and
// never those of clients.
func notRelayed() (legacy, modern []string) {
	return nil, []string{"input-required-result-basic-list-roots", "input-required-result-multiple-input-requests"}
}

func TestConformanceThroughTheGateway(t *testing.T) {
	t.Parallel()
	dir := installed(t)
	legacy, modern := notRelayed()
	got := failing(t, 30, dir+"/node_modules/conformance-first/dist/index.js", "server", "--url", askable(t, upstream.Legacy))
	if !slices.Equal(got, legacy) {
		t.Errorf("2025-11-25: these fail:\n%s\nexpected:\n%s", got, legacy)
	}
	got = failing(t, 37, dir+"/node_modules/@modelcontextprotocol/conformance/dist/index.js",
		"server", "--url", askable(t, upstream.Modern), "--requirements", "2026-07-28")
	if !slices.Equal(got, modern) {
		t.Errorf("2026-07-28: these fail:\n%s\nexpected:\n%s", got, modern)
	}
}

// askable returns the address of a gateway that relays what the suite's
// server asks. In each era the server asks by other tools.
func askable(t *testing.T, era string) string {
	t.Helper()
	asks := mcp.Questions{Elicitation: true, Sampling: true}
	up := connectAs(t, asks, era, filepath.Join(os.Getenv("ASSENT_MCP_GO"), "everything-server"))
	w := newWorld(t, allAgent, up, func(cfg *mcp.Config) {
		cfg.Naming.Page = 0 // all tools at once: the suite looks for tools with headers of their own on the first page
		cfg.Servers[0].Questions = asks
	})
	return w.front.URL + "/short"
}
