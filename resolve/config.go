package resolve

import (
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

//go:embed decisions.schema.json
var configSchema string

// compiledConfig is our JSON Schema, compiled on first use.
var compiledConfig = jsonschema.Embedded("decisions.schema.json", configSchema)

// ConfigJSON returns our JSON Schema (2020-12) of a decision
// configuration, for editors and other validators.
func ConfigJSON() []byte { return []byte(configSchema) }

// ConfigFields lists the fields of a decision configuration, in order.
func ConfigFields() []string {
	doc, _ := value.Parse(ConfigJSON(), value.Limits{}) // it is compiled in, and read by tests
	properties, _ := doc.Get("properties")
	var out []string
	for _, m := range properties.Members {
		out = append(out, m.Key)
	}
	slices.Sort(out)

	return out
}

// The bounds of Config.PermitAge, and what it is unless the file says
// otherwise.
const (
	DefaultPermitAge = 15 * time.Minute
	MaxPermitAge     = 24 * time.Hour
)

// Config is a decision configuration, decisions.yaml: what the
// runtime's owner chooses about decisions (docs/contracts/decisions.md).
// Its paths are as the file writes them.
type Config struct {
	Policies       []string   `doc:"policies"`
	Registry       *Registry  `doc:"registry"`
	TrustedServers []string   `doc:"trusted_servers"`
	CaseSensitive  []string   `doc:"case_sensitive_arguments"`
	Derived        []Derived  `doc:"derived"`
	Grants         []Standing `doc:"grants"`
	Undeclared     string     `doc:"undeclared"`
	Semantics      Readings   `doc:"semantics"`
	// ApproveOnTimeout is Options.AllowTimeoutApprove.
	ApproveOnTimeout bool `doc:"approve_on_timeout"`
	// ReplacePermissions is Options.ReplacePermissions.
	ReplacePermissions bool          `doc:"replace_permissions"`
	PermitAge          time.Duration `doc:"permit_age"`
}

// Registry is where a policy registry is fetched from. Nothing in this
// package fetches it.
type Registry struct {
	URL       string        `doc:"url"`
	Every     time.Duration `doc:"every"` // how often it is asked for changes
	Keep      time.Duration `doc:"keep"`  // how long the last good copy decides while it can't be fetched
	TokenFile string        `doc:"token_file"`
	Cache     string        `doc:"cache"` // file that each good copy is written to; "" none
}

// Readings are the words that a configuration uses for the points of Semantics. An empty word
// selects the default.
type Readings struct {
	OnMissing      string `doc:"on_missing"`
	OnMismatch     string `doc:"on_mismatch"`
	Anchor         string `doc:"anchor"`
	Trim           string `doc:"trim"`
	EmptyAllowList string `doc:"empty_allow_list"`
	RemoteApproval string `doc:"remote_approval"`
}

// These are the defaults of a Registry.
const (
	defaultEvery = time.Minute
	defaultKeep  = time.Hour
)

// ParseConfig reads a decision configuration. It is nil exactly when
// some finding stops the load: a choice that is half understood could
// loosen. Findings come in source order.
func ParseConfig(file string, src []byte) (*Config, []diag.Finding) {
	doc, findings := yamldoc.ReadDocument(file, src)
	// YAML 1.2 reads `off` without quotes as text, so it is accepted as a word.
	findings = slices.DeleteFunc(findings, func(f diag.Finding) bool { return f.Rule == "yaml-11-bool" })
	if doc == nil || yamldoc.Stops(findings) {
		return nil, yamldoc.Finish(file, findings)
	}
	findings = append(findings, schema.Violations(doc.Root, compiledConfig())...)
	c := &Config{PermitAge: DefaultPermitAge}
	if !yamldoc.Stops(findings) {
		yamldoc.Fill(doc.Root, c)
		if c.Registry != nil {
			c.Registry = &Registry{Every: defaultEvery, Keep: defaultKeep}
			yamldoc.Fill(doc.Root.Get("registry"), c.Registry)
		}
		for i := range c.Derived {
			if doc.Root.Get("derived").Items[i].Get("beside") != nil && c.Derived[i].Beside == nil {
				c.Derived[i].Beside = []string{} // none, which is not the same as any
			}
		}
		findings = append(findings, checkConfig(doc.Root)...)
	}

	if yamldoc.Stops(findings) {
		c = nil
	}

	return c, yamldoc.Finish(file, findings)
}

const ruleConfig = "config-invalid"

// checkConfig checks what the JSON Schema can't express.
func checkConfig(root *yamldoc.Node) []diag.Finding {
	var out []diag.Finding
	within := func(n *yamldoc.Node, least, most time.Duration, expected string) {
		if n == nil {
			return
		}
		if d, err := time.ParseDuration(n.Text); err != nil || d < least || d > most {
			out = append(out, yamldoc.Stop(ruleConfig, n.Range, fmt.Sprintf("%q is out of bounds", n.Text), expected))
		}
	}
	const year = 8760 * time.Hour
	within(root.Get("permit_age"), time.Second, MaxPermitAge, "a time from 1s to 24h: an approval is for what runs next")
	within(root.Get("registry").Get("every"), time.Second, 24*time.Hour, "a time from 1s to 24h")
	within(root.Get("registry").Get("keep"), time.Second, year, "a time from 1s to 8760h")
	if targets := root.Get("case_sensitive_arguments"); targets != nil {
		for _, n := range targets.Items {
			if err := CheckTarget(n.Text); err != nil {
				out = append(out, yamldoc.Stop(ruleConfig, n.Range, err.Error(), `such as "tool grep" or "mcp_tool files/grep"`))
			}
		}
	}

	return slices.Concat(out, checkDerived(root), checkStandings(root))
}

// checkDerived checks the entries of Derived.
func checkDerived(root *yamldoc.Node) []diag.Finding {
	entries := root.Get("derived")
	if entries == nil {
		return nil
	}
	var out []diag.Finding
	seen := map[string]bool{}
	for _, n := range entries.Items {
		var d Derived
		yamldoc.Fill(n, &d)
		field, i, err := CheckDerived(d)
		if err == nil && seen[d.Target] {
			field, err = "target", fmt.Errorf("%q stands twice", d.Target)
		}
		seen[d.Target] = true
		if err == nil {
			continue
		}
		at := n.Get(field)
		if field == "listed" && len(at.Items) > i {
			at = at.Items[i]
		}
		out = append(out, yamldoc.Stop(ruleConfig, at.Range, err.Error(), expectedDerived(field)))
	}

	for _, name := range []string{"on_missing", "on_mismatch"} {
		if at := root.Get("semantics").Get(name); at != nil && at.Text == condition.NoMatch.String() {
			out = append(out, yamldoc.Stop(
				ruleConfig, at.Range, "facts that are not known would not ask", "ask, where derived has entries",
			))
		}
	}

	return out
}

// checkStandings checks the entries of Grants.
func checkStandings(root *yamldoc.Node) []diag.Finding {
	entries := root.Get("grants")
	if entries == nil {
		return nil
	}
	var c Config
	yamldoc.Fill(root, &c)
	var out []diag.Finding
	seen := map[string]bool{}
	for i, n := range entries.Items {
		field, j, err := CheckStanding(c.Grants[i], c.Derived)
		if err == nil && seen[c.Grants[i].Target] {
			field, err = "target", fmt.Errorf("%q stands twice", c.Grants[i].Target)
		}
		seen[c.Grants[i].Target] = true
		if err == nil {
			continue
		}
		at := n.Get(field)
		expected := "one entry for each target, such as \"tool Bash\" or \"mcp_tool files/run\""
		if len(at.Items) > j {
			at, expected = at.Items[j], "an argument that does not change what a call does, such as description"
		}
		out = append(out, yamldoc.Stop(ruleConfig, at.Range, err.Error(), expected))
	}

	return out
}

func expectedDerived(field string) string {
	switch field {
	case "target":
		return `one entry for each tool, such as "tool Bash" or "mcp_tool files/run"`
	case "as":
		return "from or paths, and a name without dots that the tool has no argument of, such as shell"
	default:
		return "a program and, if need be, the words that follow it, such as ls or git status"
	}
}

// Options returns the settings in the form that Compile takes, including the digest.
func (c *Config) Options() Options {
	s := Semantics{Conditions: condition.Semantics{
		OnMissing:  chosen(c.Semantics.OnMissing, condition.NoMatch),
		OnMismatch: chosen(c.Semantics.OnMismatch, condition.NoMatch),
		Anchor:     chosen(c.Semantics.Anchor, condition.Full),
		Trim:       chosen(c.Semantics.Trim, condition.RawOnly),
	}}
	if c.Undeclared == wordAsk {
		s.Undeclared = UndeclaredAsk
	}
	if c.Semantics.EmptyAllowList == wordAsAbsent {
		s.EmptyAllowList = EmptyIsAbsent
	}
	if c.Semantics.RemoteApproval == wordSkillReplaces {
		s.RemoteApproval = SkillReplaces
	}

	return Options{
		Semantics:           s,
		CaseSensitive:       c.CaseSensitive,
		Derived:             c.Derived,
		Grants:              c.Grants,
		AllowTimeoutApprove: c.ApproveOnTimeout,
		ReplacePermissions:  c.ReplacePermissions,
		TrustedServers:      c.TrustedServers,
		Configuration:       c.Digest(),
	}
}

// These are the words that select the other reading of a point.
const (
	wordAsk           = "ask"
	wordAsAbsent      = "as_absent"
	wordSkillReplaces = "skill_replaces"
)

// chosen returns the other reading of a point if the configuration has its word, and otherwise the
// default.
func chosen[T fmt.Stringer](word string, other T) T {
	var standard T
	if word == other.String() {
		return other
	}

	return standard
}

// Digest returns "sha256:…" over the canonical form (RFC 8785) of every setting that differs from
// its default. Comments, the order of fields and lists, and explicit defaults don't change it. The
// severities of agf-validate's rules are not included, because they affect no decision.
func (c *Config) Digest() string {
	out := map[string]any{}
	put := func(to map[string]any, key, word, standard string) {
		if word != "" && word != standard {
			to[key] = word
		}
	}
	putAll := func(key string, words []string) {
		if len(words) > 0 {
			out[key] = sortedAny(words)
		}
	}
	putAll("policies", c.Policies)
	putAll("trusted_servers", c.TrustedServers)
	putAll("case_sensitive_arguments", c.CaseSensitive)
	if len(c.Derived) > 0 {
		out["derived"] = c.derivedTexts()
	}
	if len(c.Grants) > 0 {
		out["grants"] = c.standingTexts()
	}
	put(out, "undeclared", c.Undeclared, "deny")
	put(out, "permit_age", c.PermitAge.String(), DefaultPermitAge.String())
	if c.ApproveOnTimeout {
		out["approve_on_timeout"] = true
	}
	if c.ReplacePermissions {
		out["replace_permissions"] = true
	}
	readings := map[string]any{}
	put(readings, "on_missing", c.Semantics.OnMissing, condition.Ask.String())
	put(readings, "on_mismatch", c.Semantics.OnMismatch, condition.Ask.String())
	put(readings, "anchor", c.Semantics.Anchor, condition.Unanchored.String())
	put(readings, "trim", c.Semantics.Trim, condition.RawAndTrimmed.String())
	put(readings, "empty_allow_list", c.Semantics.EmptyAllowList, "allows_none")
	put(readings, "remote_approval", c.Semantics.RemoteApproval, "two_gates")
	if len(readings) > 0 {
		out["semantics"] = readings
	}
	if r := c.Registry; r != nil {
		from := map[string]any{}
		put(from, "url", r.URL, "")
		put(from, "every", r.Every.String(), defaultEvery.String())
		put(from, "keep", r.Keep.String(), defaultKeep.String())
		put(from, "token_file", r.TokenFile, "")
		put(from, "cache", r.Cache, "")
		out["registry"] = from
	}

	return digestOf(out)
}

// derivedTexts returns the entries of Derived by their targets, in the form that is digested.
func (c *Config) derivedTexts() map[string]any {
	out := map[string]any{}
	for i := range c.Derived {
		out[c.Derived[i].Target] = c.Derived[i].text()
	}

	return out
}

// standingTexts returns the entries of Grants by their targets, in the form that is digested.
func (c *Config) standingTexts() map[string]any {
	out := map[string]any{}
	for i := range c.Grants {
		out[c.Grants[i].Target] = c.Grants[i].text()
	}

	return out
}

// digestOf returns the digest of texts in objects and lists. Broken UTF-8,
// which no document holds, has one digest of its own.
func digestOf(content map[string]any) string {
	v, err := value.FromGo(content, value.Limits{MaxBytes: 1 << 30})
	if err != nil {
		return value.SumCanonical([]byte("unreadable")).String()
	}

	return v.Digest().String()
}

// sortedAny sorts words and drops repetitions.
func sortedAny(words []string) []any {
	var out []any
	for _, w := range slices.Compact(slices.Sorted(slices.Values(words))) {
		out = append(out, w)
	}

	return out
}
