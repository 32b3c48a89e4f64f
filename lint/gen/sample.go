package main

import (
	"bytes"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

// sample is the example of a rule, completed to a file that can be linted.
type sample struct {
	file, text string
	whole      bool // shown as it is linted: places in findings are right
	tools      string
}

// exampleOf completes an example of a rule, with the tools that it is
// checked with.
func exampleOf(area string, r diag.RuleInfo, text string) sample {
	s := complete(area, text)
	s.tools = r.Tools
	return s
}

// offered are the tools that a sample is checked with.
func (s sample) offered() lint.Catalogs {
	list, err := catalog.Parse("tools.json", []byte(s.tools))
	if err != nil {
		return nil
	}
	return lint.Catalogs{list}
}

// The fields of a small agent, by key, for what an example leaves out.
func parts() [][2]string {
	return [][2]string{
		{"schema_version", "schema_version: \"1.0.0\"\n"},
		{"metadata", "metadata: {id: clerk, name: Clerk, version: \"1.0.0\", description: Files invoices.}\n"},
		{"interface", "interface: {input: {type: object}, output: {type: object}}\n"},
		{
			"execution_policy",
			"execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}\n",
		},
	}
}

// Where the keys of the Agent Format stand, for examples that show a
// piece only. The lines lead to the place, the piece is indented below
// them.
func homes() map[string]string {
	const (
		space  = "action_space:\n"
		tool   = space + "  local_tools:\n    - alias: pay\n"
		cond   = tool + "      approval:\n        condition:\n"
		agents = "action_space: {local_agents: [{alias: researcher, source: a, source_type: db}, {alias: writer, " +
			"source: b, source_type: db}, {alias: last, source: c, source_type: db}]}\n"
		config  = agents + "execution_policy:\n  id: agf.sequential\n  config:\n"
		routes  = agents + "execution_policy:\n  id: agf.conditional\n  config:\n    routes:\n      - agent: writer\n"
		batch   = agents + "execution_policy:\n  id: agf.batch\n  config:\n    agent: writer\n"
		outputs = config + "    steps: [{agent: researcher}]\n"
	)
	return map[string]string{
		"local_tools":   space,
		"mcp_servers":   space,
		"local_agents":  space,
		"remote_agents": space,
		"approval":      tool,
		"condition":     tool + "      approval:\n",
		"args_match":    cond,
		"steps":         config,
		"when":          routes,
		"input_mapping": batch,
		"output_from":   outputs,
		"name":          "metadata:\n  id: clerk\n  version: \"1.0.0\"\n  description: Files invoices.\n",
	}
}

// complete makes a file of an example: a policy, a configuration, or an
// agent that lacks nothing.
func complete(area, text string) sample {
	first := firstKey(text)
	switch {
	case area == peopleArea, hasKey(text, "people"):
		return sample{file: "people.yaml", text: text, whole: true}
	case area == testArea:
		return sample{file: "desk.test.yaml", text: text, whole: true}
	case first == "trusted_servers":
		return sample{file: "decisions.yaml", text: text, whole: true}
	case area == configArea && first == "rules":
		return sample{file: "agf-validate.yaml", text: text, whole: true}
	case hasKey(text, "policy_ref") || area == policyArea && hasKey(text, "name"):
		return sample{file: "acme.policy.yaml", text: text, whole: true}
	case first == "rules":
		return sample{file: "acme.policy.yaml", text: "schema_version: \"1.0.0\"\npolicy_ref: acme.trades\n" + text, whole: false}
	case hasKey(text, "schema_version") && hasKey(text, "metadata") && hasKey(text, "interface"):
		return sample{file: "clerk.agf.yaml", text: text, whole: true}
	}

	if lead, ok := homes()[first]; ok && area != "YAML" {
		text = lead + indent(text, depth(lead))
	}
	if first == "execution_policy" && !strings.Contains(text, "config:") {
		text += "  config: {instructions: Be careful., model: any}\n"
	}
	for _, p := range parts() {
		if !hasKey(text, p[0]) {
			text += p[1]
		}
	}
	return sample{file: "clerk.agf.yaml", text: text, whole: false}
}

// lint runs everything over a sample and returns what one rule says.
func (s sample) lint(id string) []diag.Finding {
	all := rules.All()
	l := lint.New(all, lint.Options{
		Registry: shelf(),
		Fleet:    fleet(),
		People:   staff(),
		Catalogs: s.offered(),
	})
	w := l.Worker()
	var found []diag.Finding
	switch {
	case strings.HasSuffix(s.file, ".policy.yaml"):
		found = w.Policy(s.file, []byte(s.text)).Findings
	case strings.HasSuffix(s.file, ".agf.yaml"):
		found = w.Agent(s.file, []byte(s.text), &lint.Files{FS: folder(s), Path: s.file}).Findings
	case s.file == "people.yaml":
		found = w.People(s.file, []byte(s.text)).Findings
	case s.file == "decisions.yaml":
		found = l.Owner(s.file, []byte(s.text)).Findings
	case strings.HasSuffix(s.file, policytest.Suffix):
		_, found = policytest.Parse(s.file, []byte(s.text))
	default:
		_, found = lint.ParseConfig(s.file, []byte(s.text), lint.Infos(all))
	}

	return slices.DeleteFunc(found, func(f diag.Finding) bool { return f.Rule != id })
}

// shelf returns the registry of the examples: it holds one policy.
func shelf() policy.Registry {
	const text = `schema_version: "1.0.0"
policy_ref: acme.finance.trade-controls-v2
rules:
  - {id: all, match: {targets: [trade]}, approval: true}
  - {id: never-drop, match: {targets: ["drop_*"]}, deny: Dropping tables is not delegated to agents.}
`
	p, _ := policy.Parse("p.policy.yaml", []byte(text))
	set, _ := policy.NewSet(p)
	return set
}

// fleet returns the agents that the policies of the examples are checked
// with: one, that names them.
func fleet() *lint.Fleet {
	var b strings.Builder
	for _, p := range parts() {
		b.WriteString(p[1])
	}
	b.WriteString(
		"constraints: {governance_policies: [{policy_ref: acme.gates, required: false}, {policy_ref: acme.good, " +
			"required: false}]}\n" +
			"action_space: {local_tools: [{alias: deploy_service}, {alias: rollback_service}], mcp_servers: " +
			"[{alias: db, allowed_tools: [drop_table]}]}\n",
	)
	return lint.NewFleet([]*lint.Subject{lint.NewSubject("clerk.agf.yaml", []byte(b.String()), nil, nil)})
}

// staff are the people of the examples: those of people.yaml in the
// folders of the rules that need them.
func staff() *people.Directory {
	d, _ := people.Parse(
		"people.yaml",
		[]byte(
			"schema_version: \"1.0.0\"\npeople:\n  - {id: mara@example.com, groups: [sre, leads, finance, heads]}\n"+
				"  - {id: omar@example.com, groups: [sre, finance, heads]}\n  - {id: ines@example.com, groups: "+
				"[leads]}\n",
		),
	)
	return d
}

// folder returns the files of an example: the sample, and the agents that
// samples name as sub-agents.
func folder(s sample) fstest.MapFS {
	fsys := fstest.MapFS{s.file: {Data: []byte(s.text)}}
	var plain, bare bytes.Buffer
	for _, p := range parts() {
		plain.WriteString(p[1])
	}
	bare.Write(plain.Bytes())
	bare.WriteString(
		"action_space:\n  mcp_servers:\n    - alias: database\n      server_ref: acme.database\n      " +
			"allowed_tools: [drop_table]\n",
	)
	careful := strings.Replace(bare.String(), "      allowed", "      approval: true\n      allowed", 1)
	fsys["writer.agf.yaml"] = &fstest.MapFile{Data: plain.Bytes()}
	fsys["agents/writer.agf.yaml"] = &fstest.MapFile{Data: plain.Bytes()}
	fsys["cleaner.agf.yaml"] = &fstest.MapFile{Data: bare.Bytes()}
	fsys["careful.agf.yaml"] = &fstest.MapFile{Data: []byte(careful)}
	return fsys
}

// firstKey returns the first key of an example that starts a line.
func firstKey(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if key, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, " ") {
			return key
		}
	}

	return ""
}

func hasKey(text, key string) bool {
	return strings.HasPrefix(text, key+":") || strings.Contains(text, "\n"+key+":")
}

// depth is how far what follows a lead is indented: below its last line.
func depth(lead string) int {
	lines := strings.Split(strings.TrimRight(lead, "\n"), "\n")
	last := lines[len(lines)-1]
	in := len(last) - len(strings.TrimLeft(last, " "))
	switch {
	case strings.HasPrefix(strings.TrimSpace(last), "- "), strings.HasSuffix(last, ":"):
		return in + 2
	}
	return in
}

func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = pad + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
