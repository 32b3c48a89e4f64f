package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
)

// Config is the owner's configuration file:
//
//	rules:
//	  condition-vacuous: off
//	  template-hides-tested: error
//
// It may switch off or re-grade rules, except findings that stop the
// load. The file may also contain the other fields of a decision
// configuration, which resolve.ParseConfig reads.
type Config struct {
	severities map[string]setting
}

type setting struct {
	off      bool
	severity diag.Severity
}

const configForm = "rules: {RULE: off | info | warning | error}"

// ParseConfig reads a configuration that may name the known rules. Any
// Error among the findings means that it must not be used.
func ParseConfig(file string, src []byte, known []diag.RuleInfo) (*Config, []diag.Finding) {
	doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
	if doc == nil {
		return nil, findings
	}
	// YAML 1.2 reads `off` without quotes as text, so it is accepted as a word.
	findings = slices.DeleteFunc(findings, func(f diag.Finding) bool { return f.Rule == "yaml-11-bool" })
	r := configReader{
		file:     file,
		findings: findings,
		config:   &Config{severities: map[string]setting{}},
	}
	for _, info := range known {
		r.known = append(r.known, info.ID)
	}
	r.top(doc.Root)
	return r.config, r.findings
}

type configReader struct {
	file     string
	known    []string
	findings []diag.Finding
	config   *Config
}

func (r *configReader) fail(at diag.Range, message, expected, near string) {
	r.findings = append(r.findings, diag.Finding{
		Rule:     configInvalid,
		Severity: diag.Error,
		File:     r.file,
		Range:    at,
		Message:  message,
		Expected: expected,
		Nearest:  near,
		Stops:    true,
	})
}

func (r *configReader) top(n *yamldoc.Node) {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Range, "the configuration is no mapping", configForm, "")
		return
	}
	fields := resolve.ConfigFields()
	for _, f := range n.Fields {
		switch {
		case f.Key.Text != "rules" && slices.Contains(fields, f.Key.Text):
		case f.Key.Text != "rules":
			r.fail(
				f.Key.Range,
				fmt.Sprintf("unknown field %q", f.Key.Text),
				configForm+"; or one of "+strings.Join(fields, ", "),
				diag.Nearest(f.Key.Text, fields),
			)
		case f.Value.Kind != yamldoc.Mapping:
			r.fail(f.Value.Range, "rules is no mapping", configForm, "")
		}

		if f.Key.Text == "rules" {
			for _, rule := range f.Value.Fields {
				r.rule(rule)
			}
		}
	}
}

func (r *configReader) rule(f yamldoc.Field) {
	id := f.Key.Text
	if !slices.Contains(r.known, id) {
		r.fail(
			f.Key.Range,
			fmt.Sprintf("no rule is called %q", id),
			"a rule id; `agf-validate rules` lists them",
			diag.Nearest(id, r.known),
		)
		return
	}

	severity, err := diag.ParseSeverity(f.Value.Text)
	switch {
	case f.Value.Kind == yamldoc.String && f.Value.Text == "off":
		r.config.severities[id] = setting{off: true}
	case f.Value.Kind == yamldoc.String && err == nil:
		r.config.severities[id] = setting{severity: severity}
	default:
		r.fail(f.Value.Range, fmt.Sprintf("%q is no severity", f.Value.Text), "off, info, warning or error", "")
	}
}

// off reports whether the rule is switched off. A nil Config switches
// nothing off.
func (c *Config) off(id string) bool { return c != nil && c.severities[id].off }

// apply re-grades findings. A nil Config changes nothing.
func (c *Config) apply(findings []diag.Finding) []diag.Finding {
	if c == nil {
		return findings
	}
	kept := findings[:0]
	for _, f := range findings {
		s, ok := c.severities[f.Rule]
		if ok && !f.Stops {
			if s.off {
				continue
			}
			f.Severity = s.severity
		}

		kept = append(kept, f)
	}

	return kept
}
