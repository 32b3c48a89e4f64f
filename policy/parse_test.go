package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// render writes findings as people read them, one block each.
func render(findings []diag.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(
			&b,
			"%s:%d:%d-%d:%d %s %s",
			f.File,
			f.Range.Start.Line,
			f.Range.Start.Column,
			f.Range.End.Line,
			f.Range.End.Column,
			f.Severity,
			f.Rule,
		)
		if f.Stops {
			b.WriteString(" (stops)")
		}
		fmt.Fprintf(&b, "\n    %s\n", f.Message)
		if f.Expected != "" {
			fmt.Fprintf(&b, "    expected: %s\n", f.Expected)
		}
		if f.Nearest != "" {
			fmt.Fprintf(&b, "    nearest: %s\n", f.Nearest)
		}
		for _, r := range f.Related {
			fmt.Fprintf(&b, "    see %s:%d:%d %s\n", r.File, r.Range.Start.Line, r.Range.Start.Column, r.Message)
		}
	}

	return b.String()
}

// TestGoldenFindings shows every finding of the documents in testdata: good ones have none, odd
// ones have some but load, bad ones don't load.
func TestGoldenFindings(t *testing.T) {
	for _, dir := range []string{"good", "odd", "bad"} {
		t.Run(dir, func(t *testing.T) {
			var all strings.Builder
			for _, file := range policyFiles(t, dir) {
				src, err := os.ReadFile(file)
				must.Do(t, err)
				p, findings := policy.Parse(filepath.Base(file), src)
				if (p == nil) != (dir == "bad") {
					t.Errorf("%s: loaded is %t", file, p != nil)
				}
				if (len(findings) == 0) != (dir == "good") {
					t.Errorf("%s has %d findings:\n%s", file, len(findings), render(findings))
				}
				all.WriteString(render(findings))
			}

			if dir != "good" {
				golden.Equal(t, dir+".golden", all.String())
			}
		})
	}
}

func policyFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*"+policy.Suffix))
	if err != nil || len(files) == 0 {
		t.Fatalf("no policies in testdata/%s: %v", dir, err)
	}
	return files
}

// parse reads a document that has no findings.
func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, findings := policy.Parse("p.policy.yaml", []byte(text))
	if p == nil || len(findings) > 0 {
		t.Fatalf("%s%s", text, render(findings))
	}
	return p
}

func parseFile(t testing.TB, name string) *policy.Policy {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	must.Do(t, err)
	return parse(t, string(src))
}

// TestParseReadsEveryField reads the example of docs/contracts/policy.md.
func TestParseReadsEveryField(t *testing.T) {
	p := parseFile(t, "good/trade-controls.policy.yaml")
	if p.Ref != "acme.finance.trade-controls-v2" || p.SchemaVersion != "1.0.0" || p.Applies != policy.Referenced ||
		p.Description != "Large trades need two people from risk." ||
		p.Range.Start != (diag.Position{Line: 3, Column: 13}) {
		t.Errorf("head: %+v", p)
	}

	if want := (&policy.Selector{
		Namespaces: []string{"acme.finance.*"},
		Labels:     map[string]string{"tier": "prod"},
	}); !reflect.DeepEqual(p.Agents, want) {
		t.Errorf("agents: %+v", p.Agents)
	}

	trades, drop := p.Rules[0], p.Rules[1]
	if want := (policy.Match{
		Kinds:       []policy.Kind{policy.Tool, policy.MCPTool},
		Targets:     []string{"execute_*"},
		Annotations: map[string]bool{"destructiveHint": true},
	}); !reflect.DeepEqual(trades.Match, want) {
		t.Errorf("match: %+v", trades.Match)
	}

	if trades.ID != "large-trades" || trades.Denies || trades.Range.Start.Line != 10 ||
		trades.Approval.Form != schema.Conditional ||
		trades.Approval.Template.Text != "Trade {{tool_args.quantity}} {{tool_args.symbol}}?" ||
		len(trades.Approval.Condition.Groups) != 1 {
		t.Errorf("large-trades: %+v", trades)
	}

	leads := []policy.StandIn{{Group: "risk-leads", After: 10 * time.Minute}}
	if want := (policy.Require{
		Stages: []policy.Stage{
			{Group: "desk-heads", People: 1, StandIns: leads}, {Group: "risk", People: 2, StandIns: leads},
		},
		Within:    30 * time.Minute,
		OnTimeout: policy.TimeoutDeny,
		Escalate:  []policy.Escalation{{After: 10 * time.Minute, To: "risk-leads", May: policy.MayApprove}},
		Grants:    policy.Grants{Forbid: true},
	}); !reflect.DeepEqual(trades.Require, want) {
		t.Errorf("require: %+v", trades.Require)
	}

	if want := (policy.Match{Targets: []string{"drop_*"}, Servers: []string{"broker*"}}); !reflect.DeepEqual(
		drop.Match,
		want,
	) {
		t.Errorf("match: %+v", drop.Match)
	}

	if drop.Approval != nil || !drop.Denies || drop.Deny != "Dropping tables is not delegated to agents." ||
		!drop.Require.IsZero() {
		t.Errorf("never-drop: %+v", drop)
	}
}

// TestRequireAsItIsPrinted shows the requirements of the good documents
// as decisions print them.
func TestRequireAsItIsPrinted(t *testing.T) {
	var all strings.Builder
	for _, name := range policyFiles(t, "good") {
		for _, rule := range parseFile(t, "good/"+filepath.Base(name)).Rules {
			text, err := json.Marshal(rule.Require)
			must.Do(t, err)
			fmt.Fprintf(&all, "%s %s %s\n", filepath.Base(name), rule.ID, text)
		}
	}

	golden.Equal(t, "require.golden", all.String())
}

// TestLeavingOnTimeoutOutMeansDeny checks the default, without which a second policy that approves
// by timeout would decide alone.
func TestLeavingOnTimeoutOutMeansDeny(t *testing.T) {
	const head = "schema_version: \"1.0.0\"\npolicy_ref: p\nrules:\n"
	silent := parse(t, head+"  - {id: a, approval: true}\n").Rules[0].Require
	if got := silent.Join(policy.Require{OnTimeout: policy.TimeoutApprove}).OnTimeout; got != policy.TimeoutDeny {
		t.Errorf("joined to %q", got)
	}
}

// A policy of any minor version from 1 on may use version 1.1, and only one that is newer than
// what assent knows is reported.
func TestVersionsOfPolicies(t *testing.T) {
	for version, want := range map[string]string{
		"1.0.0": "", "1.0.9": "", "1.1.0": "", "1.1.7": "", "1.1.23": "",
		"01.0.0": "invalid-value", "1.00.3": "invalid-value", "1.01.0": "invalid-value", "1.1.00": "invalid-value",
		"1.2.0": "policy-newer-version", "1.10.0": "policy-newer-version",
		"1.18446744073709551617.0": "policy-newer-version",
		"2.1.0":                    "policy-unsupported-version", "0.1.0": "policy-unsupported-version",
		"1.x.0": "invalid-value",
	} {
		_, findings := policy.Parse("p", []byte("schema_version: \""+version+
			"\"\npolicy_ref: p\nrules:\n  - {id: a, approval: true}\n"))
		got := ""
		for _, f := range findings {
			got += f.Rule
		}
		if got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

func TestDigestIsOfTheContent(t *testing.T) {
	const text = "schema_version: \"1.0.0\"\npolicy_ref: p\nrules:\n  - {id: a, approval: true}\n"
	p := parse(t, text)
	same := parse(t, "# reviewed\r\n"+strings.ReplaceAll(text, "\n", "\r\n"))
	other := parse(t, strings.Replace(text, "id: a", "id: b", 1))
	if p.Digest != same.Digest || p.Digest == other.Digest || p.Digest == (value.Digest{}) {
		t.Errorf("%v %v %v", p.Digest, same.Digest, other.Digest)
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "odd", "bad"} {
		for _, name := range policyFiles(f, dir) {
			src, err := os.ReadFile(name)
			must.Do(f, err)
			f.Add(src)
		}
	}

	known := knownRules()
	f.Fuzz(func(t *testing.T, src []byte) {
		p, findings := policy.Parse("f", src)
		stopped := slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Stops })
		if (p == nil) != stopped {
			t.Fatalf("loaded is %t:\n%s", p != nil, render(findings))
		}
		if parts, again := policy.ParseParts("f", src); p != nil && parts == nil || len(again) != len(findings) {
			t.Fatalf("ParseParts has %d findings, Parse %d", len(again), len(findings))
		}
		for _, f := range findings {
			if !known[f.Rule] || f.File != "f" || f.Message == "" || f.Stops && f.Severity != diag.Error {
				t.Fatalf("odd finding: %+v", f)
			}
		}
		if p != nil {
			soundPolicy(t, p)
		}
	})
}

// soundPolicy checks the properties that users of a policy rely on.
func soundPolicy(t *testing.T, p *policy.Policy) {
	t.Helper()
	if p.Ref == "" || p.Doc == nil || p.Applies != policy.Referenced && p.Applies != policy.Implicit {
		t.Fatalf("head: %+v", p)
	}
	for _, r := range p.Rules {
		if r.ID == "" || r.Approval == nil && !r.Denies ||
			r.Approval != nil && (r.Approval.Form == schema.Never || r.Require.OnTimeout == "") {
			t.Fatalf("rule: %+v", r)
		}
		if !reflect.DeepEqual(r.Require, r.Require.Join(r.Require)) {
			t.Fatalf("not in normal form: %+v", r.Require)
		}
		text, err := json.Marshal(r.Require)
		if err == nil {
			err = json.Unmarshal(text, new(policy.Require))
		}
		if err != nil {
			t.Fatalf("%+v: %v", r.Require, err)
		}
	}
}
