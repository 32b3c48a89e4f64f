package rules

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const agent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - alias: fetch
      approval:
        condition:
          args_match:
            url: {pattern: '%s'}
`

// TestTheSpellingOfTheFindingIsLetThrough: the spelling in the finding is let through, and the
// original address asks.
func TestTheSpellingOfTheFindingIsLetThrough(t *testing.T) {
	quoted := regexp.MustCompile(`^"(.*)" does not match, leads to the same host as "(.*)", and is let through$`)
	for pattern, want := range map[string]string{
		`evil\.com$`:                  "evil.com/",
		`evil\.com\z`:                 "evil.com/",
		`^https://(www\.)?evil\.com$`: "https://evil.com/",
		`(evil|bad)\.(com|org)$`:      "evil.com/",
		`(?i)evil\.com$`:              "EVIL.COM/",
		`evil\.com(/.*)?$`:            "evil.com:443",
		`evil\.com(:\d+)?(/.*)?$`:     "evil.com.",
		`evil\.com\.?(:\d+)?(/.*)?$`:  "evil%2Ecom",
		`evil\.com`:                   "",
		`^https://evil\.com/`:         "",
		`\.exe$`:                      "",
		`\.com$`:                      "",
		`evil$`:                       "",
		`evil\.com\$`:                 "",
		`report\.pdf$`:                "",
	} {
		text := fmt.Appendf(nil, agent, pattern)
		rule := lint.Rule{RuleInfo: diag.RuleInfo{ID: "host-dodged"}, Agent: hostDodged}
		found := lint.New([]lint.Rule{rule}, lint.Options{}).Worker().Agent("a.agf.yaml", text, nil).Findings
		var shown []string
		for _, f := range found {
			if f.Rule == "host-dodged" {
				shown = quoted.FindStringSubmatch(f.Message)
			}
		}
		if want == "" || len(shown) != 3 || shown[1] != want {
			if want != "" || shown != nil {
				t.Errorf("%s: %q, want %q", pattern, shown, want)
			}
			continue
		}

		parsed, findings := schema.Parse("a.agf.yaml", text)
		if parsed == nil {
			t.Fatal(findings)
		}
		plan, err := resolve.Compile(parsed, nil, resolve.Options{})
		must.Do(t, err)
		for i, outcome := range map[int]resolve.Outcome{1: resolve.Allow, 2: resolve.Ask} {
			call := &resolve.Call{Kind: resolve.Tool, Tool: "fetch", Values: map[string]any{"url": shown[i]}}
			if got := plan.Decide(call).Outcome; got != outcome {
				t.Errorf("%s: %q: %v", pattern, shown[i], got)
			}
		}
	}
}

func TestWordsOfNames(t *testing.T) {
	for key, want := range map[string]bool{
		"url":          true,
		"URL":          true,
		"base_url":     true,
		"baseURL":      true,
		"BaseUrl":      true,
		"URLs":         true,
		"target.host":  true,
		"hostName":     true,
		"api-endpoint": true,
		"hostel":       false,
		"curl":         false,
		"recipient":    false,
		"url.path":     false,
		"":             false,
		"ghost":        false,
		"to":           false,
	} {
		if got := speaksOfHosts(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
