package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestARegistryIsNotFetched: the policies of a registry are read from the copy that assent keeps.
// Without a copy a message says so, and references to policies that the registry may have are not
// reported. --policies replaces the registry.
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
		out, errOut, code := validated(t, "--decisions", file, "desk.agf.yaml")
		if code != term.ExitOK || strings.Contains(out, "not in the registry") ||
			!strings.Contains(errOut, file+": the registry is not asked here, and there is no copy of it") ||
			!strings.Contains(errOut, "its policies are not checked") || !strings.Contains(errOut, "--policies") ||
			!strings.Contains(errOut, "`assent policies fetch --decisions "+file+"`") {
			t.Errorf("%s: exit %d\n%s%s", file, code, out, errOut)
		}

		if _, errOut, code := validated(t, "--decisions", file, "--registry-age", "1h", "desk.agf.yaml"); code !=
			term.ExitFailure || !strings.Contains(errOut, "--registry-age wants a copy") {
			t.Errorf("%s, with an age: exit %d\n%s", file, code, errOut)
		}
	}

	testfiles.Write(t, "ci/cache.json", `{"schema_version":"1.0.0","policies":[{"name":"s.policy.yaml","text":`+
		`"schema_version: \"1.0.0\"\npolicy_ref: acme.sound\nrules: [{id: r, approval: true}]\n"}]}`)
	out, errOut, code := validated(t, "--decisions", "ci/decisions.yaml", "desk.agf.yaml")
	if code != term.ExitFindings || !strings.Contains(out, `"acme.broken" is not in the registry`) ||
		strings.Contains(out, `"acme.sound" is not`) {
		t.Errorf("with a copy: exit %d\n%s%s", code, out, errOut)
	}
	testTheAgeOfACopy(t)
	out, errOut, code = validated(t, "--decisions", "ci/decisions.yaml", "--policies", "elsewhere", "desk.agf.yaml")
	if code != term.ExitFindings || errOut != "" || !strings.Contains(out, `"acme.sound" is not in the registry`) {
		t.Errorf("with --policies: exit %d\n%s%s", code, out, errOut)
	}
	out, _, code = validated(t, "--decisions", "ci/broken.yaml", "desk.agf.yaml")
	if code != term.ExitFailure || !strings.Contains(out, "policy-bundle") {
		t.Errorf("with a copy that is none: exit %d\n%s", code, out)
	}
}

// testTheAgeOfACopy: every check prints the path and the age of the copy by its time stamp. A copy
// that is older than --registry-age, or has a time stamp in the future, fails the check only if the
// flag is given.
func testTheAgeOfACopy(t *testing.T) {
	t.Helper()
	for age, says := range map[time.Duration]string{
		3 * time.Hour: "the copy ci/cache.json, which it confirmed 3h0m",
		-time.Hour:    "which is yet to come",
		time.Minute:   "the copy ci/cache.json, which it confirmed 1m",
	} {
		at := time.Now().Add(-age)
		must.Do(t, os.Chtimes("ci/cache.json", at, at))
		for _, flags := range [][]string{nil, {"--registry-age", "10m"}} {
			want := term.ExitOK
			if len(flags) > 0 && (age > 10*time.Minute || age < 0) {
				want = term.ExitFailure
			}
			args := append([]string{"--decisions", "ci/decisions.yaml", "ci/rules"}, flags...)
			out, errOut, code := validated(t, args...)
			if code != want || !strings.Contains(errOut, says) || !strings.Contains(errOut, "Z") ||
				strings.Contains(errOut, "exit code 2") != (want == term.ExitFailure) {
				t.Errorf("%s old, %q: exit %d, want %d\n%s%s", age, flags, code, want, out, errOut)
			}
		}
	}

	for _, args := range [][]string{
		{"--registry-age", "10m", "ci/rules"},
		{"--registry-age", "-1s", "--decisions", "ci/decisions.yaml", "ci/rules"},
		{"--registry-age", "10m", "--decisions", "ci/decisions.yaml", "--policies", "ci/rules", "ci/rules"},
	} {
		if _, errOut, code := validated(t, args...); code != term.ExitFailure ||
			!strings.Contains(errOut, "--registry-age is about the registry") {
			t.Errorf("%q: exit %d\n%s", args, code, errOut)
		}
	}
}

// TestTheSchemaOfDecisionsIsPublished: it is byte for byte the schema that is used for reading.
func TestTheSchemaOfDecisionsIsPublished(t *testing.T) {
	out, _, code := validated(t, "schema", "decisions")
	if code != term.ExitOK || out != string(resolve.ConfigJSON()) {
		t.Errorf("exit %d\n%s", code, out)
	}
}
