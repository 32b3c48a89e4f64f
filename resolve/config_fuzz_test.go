package resolve

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/diag"
)

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("schema_version: \"1.0.0\"\nsemantics: {on_missing: ask}\nundeclared: ask\n"))
	f.Add([]byte("schema_version: \"1.0.0\"\nregistry: {url: https://x/, every: 1m}\npermit_age: 15\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		config, findings := ParseConfig("decisions.yaml", src)
		stopped := slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Stops })
		if stopped == (config != nil) {
			t.Fatalf("a finding stops: %t, configuration read: %t", stopped, config != nil)
		}
	})
}
