package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

func configOf(t *testing.T, text string) *resolve.Config {
	t.Helper()
	c, findings := resolve.ParseConfig("decisions.yaml", []byte(text))
	if c == nil {
		t.Fatal(findings)
	}

	return c
}

// TestLoosenedNamesWhatLetsMoreThrough checks every field that can loosen, and that the reverse
// change is not listed. All other fields are declared to have no direction.
func TestLoosenedNamesWhatLetsMoreThrough(t *testing.T) {
	const registry = "registry: {url: \"https://a.example/p\", keep: "
	loose := map[string][2]string{
		"approve_on_timeout":         {"{}", "approve_on_timeout: true"},
		"replace_permissions":        {"{}", "replace_permissions: true"},
		"undeclared":                 {"undeclared: deny", "undeclared: ask"},
		"permit_age":                 {"{}", "permit_age: 16m"},
		"trusted_servers":            {"trusted_servers: [b]", "trusted_servers: [a, b]"},
		"case_sensitive_arguments":   {"{}", "case_sensitive_arguments: [tool grep]"},
		"derived":                    {"{}", "derived: [{target: tool sh, from: command, as: shell}]"},
		"grants":                     {"{}", "grants: [{target: tool sh, ignored: [note]}]"},
		"registry.keep":              {registry + "1h}", registry + "2h}"},
		"semantics.on_missing":       {"{}", "semantics: {on_missing: no_match}"},
		"semantics.on_mismatch":      {"{}", "semantics: {on_mismatch: no_match}"},
		"semantics.anchor":           {"{}", "semantics: {anchor: full}"},
		"semantics.trim":             {"{}", "semantics: {trim: raw_only}"},
		"semantics.empty_allow_list": {"{}", "semantics: {empty_allow_list: as_absent}"},
		"semantics.remote_approval":  {"{}", "semantics: {remote_approval: skill_replaces}"},
	}
	for field, texts := range loose {
		before, now := configOf(t, texts[0]), configOf(t, texts[1])
		if got := now.Loosened(before); !slices.Equal(got, []string{field}) {
			t.Errorf("%s: got %q", field, got)
		}
		if got := before.Loosened(now); len(got) > 0 {
			t.Errorf("%s on the way back: got %q", field, got)
		}
		if got := now.Loosened(now); len(got) > 0 {
			t.Errorf("%s unchanged: got %q", field, got)
		}
	}

	undirected := []string{"policies", "registry", "rules", "semantics"}
	for _, field := range resolve.ConfigFields() {
		_, directed := loose[field]
		if directed == slices.Contains(undirected, field) {
			t.Errorf("%s: say whether it can loosen", field)
		}
	}

	all := configOf(t, "undeclared: ask\npermit_age: 1h\nsemantics: {trim: raw_only}").Loosened(configOf(t, "{}"))
	if got := strings.Join(all, " "); got != "permit_age semantics.trim undeclared" {
		t.Errorf("together: %q", got)
	}
}
