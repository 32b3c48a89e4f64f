package lint_test

import (
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

func TestConfig(t *testing.T) {
	const body = "action_space:\n  mcp_servers: [{alias: crm, allowed_tools: []}]\n  local_tools: [{alias: pay, " +
		"approval: false}]\nmetdata: {}\n"
	expectBody := func(config string, want ...string) {
		t.Helper()
		c, findings := lint.ParseConfig("c.yaml", []byte(config), lint.Infos(rules.All()))
		if len(findings) > 0 {
			t.Fatalf("%s: %v", config, findings)
		}
		expect(t, config, said(agent(t, body, lint.Options{Config: c}).Findings), want...)
	}
	expectBody("{}", "6 warning empty-allow-list", "7 info idle-exemption", "8 warning unknown-field")
	expectBody("rules: {}", "6 warning empty-allow-list", "7 info idle-exemption", "8 warning unknown-field")
	expectBody(
		"rules: {idle-exemption: error, empty-allow-list: off, unknown-field: info}",
		"7 error idle-exemption",
		"8 info unknown-field",
	)
}

func TestConfigLeavesWhatStopsTheLoad(t *testing.T) {
	c, _ := lint.ParseConfig("c.yaml", []byte("rules: {duplicate-alias: off}"), lint.Infos(nil))
	r := agent(t, "action_space: {local_tools: [{alias: pay}, {alias: pay}]}\n", lint.Options{Config: c})
	expect(t, "duplicate", said(r.Findings), "5 error duplicate-alias")
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct{ config, message, nearest string }{
		{"[]", "the configuration is no mapping", ""},
		{"rule: {}", `unknown field "rule"`, "rules"},
		{"rules: [dotted-key]", "rules is no mapping", ""},
		{"rules: {doted-key: off}", `no rule is called "doted-key"`, "dotted-key"},
		{"rules: {dotted-key: fatal}", `"fatal" is no severity`, ""},
		{"rules: {dotted-key: true}", `"true" is no severity`, ""},
	} {
		_, findings := lint.ParseConfig("c.yaml", []byte(c.config), lint.Infos(rules.All()))
		if len(findings) != 1 || findings[0].Message != c.message || findings[0].Nearest != c.nearest ||
			findings[0].Severity != diag.Error {
			t.Errorf("%s: got %+v", c.config, findings)
		}
	}

	if c, findings := lint.ParseConfig("c.yaml", []byte("rules: {"), nil); c != nil || len(findings) == 0 {
		t.Errorf("broken YAML: got %v, %v", c, findings)
	}
}
