package main

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/resolve"
)

// TestARegistryIsNotFetched: what it holds is read from the copy that
// assent keeps. Without one that is said, and nothing about references
// to policies that it may hold; --policies stands instead of it.
func TestARegistryIsNotFetched(t *testing.T) {
	const registry = "registry: {url: \"https://policies.invalid/p.json\", cache: cache.json}\n"
	tree(t, map[string]string{
		"ci/decisions.yaml":       registry,
		"ci/none.yaml":            "policies: [rules]\nregistry: {url: \"https://policies.invalid/p.json\"}\n",
		"ci/rules/s.policy.yaml":  soundPolicy,
		"ci/broken.yaml":          strings.Replace(registry, "cache.json", "broken.json", 1),
		"ci/broken.json":          "{}",
		"desk.agf.yaml":           deskNames,
		"elsewhere/b.policy.yaml": strings.Replace(soundPolicy, "acme.sound", "acme.other", 1),
	})
	for _, file := range []string{"ci/decisions.yaml", "ci/none.yaml"} {
		out, errOut, code := validated(t, "--config", file, "desk.agf.yaml")
		if code != term.ExitOK || strings.Contains(out, "not in the registry") ||
			!strings.Contains(errOut, file+": the policies of the registry are not checked") ||
			!strings.Contains(errOut, "--policies") {
			t.Errorf("%s: exit %d\n%s%s", file, code, out, errOut)
		}
	}

	testfiles.Write(t, "ci/cache.json", `{"schema_version":"1.0.0","policies":[{"name":"s.policy.yaml","text":`+
		`"schema_version: \"1.0.0\"\npolicy_ref: acme.sound\nrules: [{id: r, approval: true}]\n"}]}`)
	out, errOut, code := validated(t, "--config", "ci/decisions.yaml", "desk.agf.yaml")
	if code != term.ExitFindings || errOut != "" || !strings.Contains(out, `"acme.broken" is not in the registry`) ||
		strings.Contains(out, `"acme.sound" is not`) {
		t.Errorf("with a copy: exit %d\n%s%s", code, out, errOut)
	}
	out, errOut, code = validated(t, "--config", "ci/decisions.yaml", "--policies", "elsewhere", "desk.agf.yaml")
	if code != term.ExitFindings || errOut != "" || !strings.Contains(out, `"acme.sound" is not in the registry`) {
		t.Errorf("with --policies: exit %d\n%s%s", code, out, errOut)
	}
	out, _, code = validated(t, "--config", "ci/broken.yaml", "desk.agf.yaml")
	if code != term.ExitFailure || !strings.Contains(out, "policy-bundle") {
		t.Errorf("with a copy that is none: exit %d\n%s", code, out)
	}
}

// TestTheSchemaOfDecisionsIsPublished, byte for byte what is read by.
func TestTheSchemaOfDecisionsIsPublished(t *testing.T) {
	out, _, code := validated(t, "schema", "decisions")
	if code != term.ExitOK || out != string(resolve.ConfigJSON()) {
		t.Errorf("exit %d\n%s", code, out)
	}
}
