package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// The files that init writes in addition to the lists of tools.
const (
	agentFile    = "agent.agf.yaml"
	policyFile   = "policies/approvals.policy.yaml"
	peopleFile   = "people.yaml"
	testFile     = "agent.test.yaml"
	workflowFile = ".github/workflows/approvals.yml"
	toolsFolder  = "tools/"
)

// starter generates the initial files.
type starter struct {
	id       string
	catalogs lint.Catalogs
}

// files returns all files that will be written.
func (s *starter) files() []written {
	workflow := strings.NewReplacer("FLAGS", s.flags(), "VERSION", term.Version).Replace(startWorkflow)
	all := []written{
		{agentFile, []byte(s.agent())},
		{policyFile, []byte(s.policy())},
		{peopleFile, []byte(startPeople)},
		{testFile, []byte(s.tests())},
		{workflowFile, []byte(workflow)},
	}
	for i, list := range s.catalogs {
		all = append(all, written{s.listFile(i), list.Text})
	}
	return all
}

// listFile returns the path of the i-th list of tools.
func (s *starter) listFile(i int) string {
	name := cmp.Or(s.catalogs[i].Server, "model")
	if twin := s.twin(i); twin > 1 {
		name += fmt.Sprintf("-%d", twin)
	}
	return toolsFolder + name + ".json"
}

// twin counts the lists of the same server up to and including the i-th.
func (s *starter) twin(i int) int {
	n := 1
	for _, before := range s.catalogs[:i] {
		if before.Server == s.catalogs[i].Server {
			n++
		}
	}

	return n
}

// flags returns the flags for checking the files.
func (s *starter) flags() string {
	flags := "--policies policies --people people.yaml"
	for i, list := range s.catalogs {
		flags += " --tools "
		if list.Server != "" {
			flags += list.Server + "="
		}
		flags += s.listFile(i)
	}

	return flags
}

// agent returns the text of the agent, with every tool of the lists.
func (s *starter) agent() string {
	text := strings.ReplaceAll(startAgent, "ID", s.id)
	local, servers := "", ""
	var aliases []string
	for _, list := range s.catalogs {
		if list.Server != "" && !slices.Contains(aliases, list.Server) {
			aliases = append(aliases, list.Server)
			servers += s.server(list.Server)
		}
		if list.Server == "" {
			for _, t := range list.Tools {
				local += localEntry(&t)
			}
		}
	}

	if len(s.catalogs) == 0 {
		local = startTool
	}
	if local != "" {
		text += "  # Functions of your program. Without an approval field a local tool runs unasked.\n  local_tools:\n" + local
	}
	if servers != "" {
		text += "  mcp_servers:\n" + servers
	}
	return text
}

// server returns the text of a server with the tools of all its lists.
func (s *starter) server(alias string) string {
	text := strings.ReplaceAll(startServer, "ALIAS", alias)
	if tools := s.entries(alias); tools != "" {
		return text + "      allowed_tools:\n" + tools
	}
	return text + "      allowed_tools: []\n"
}

// entries returns the lines for a server's tools.
func (s *starter) entries(alias string) (text string) {
	for _, list := range s.catalogs {
		if list.Server != alias {
			continue
		}
		for i := range list.Tools {
			text += entry(&list.Tools[i])
		}
	}

	return text
}

// entry returns the lines for a tool of a server. A read-only tool gets a comment with the setting
// that lets it run without asking, and a tool with a number gets one with a condition.
func entry(t *catalog.Tool) string {
	text := about(t, "        ") + "        - name: " + scalar(t.Name) + "\n"
	switch amount := measure(t); {
	case t.Hints.ReadOnly != nil && *t.Hints.ReadOnly:
		text += "          # Says that it only reads. To let it run unasked, where trusted_servers (decisions.yaml) has the\n" +
			"          # server:\n          # approval: false\n"
	case amount != "":
		text += "          # To ask only above a bound, give the policy's rule the same condition:\n" +
			"          # approval: {condition: {args_match: {" + amount + ": {gt: 100}}}}\n"
	}

	return text
}

// localEntry returns the lines for a local tool.
func localEntry(t *catalog.Tool) string {
	text := about(t, "    ") + "    - alias: " + aliasOf(t.Name) + "\n"
	if t.Name != aliasOf(t.Name) {
		text += "      name: " + scalar(t.Name) + "\n"
	}
	return text + "      approval: true\n"
}

// about returns a comment with the tool's own description, escaped so that it can't end the
// comment.
func about(t *catalog.Tool, indent string) string {
	const most = 80
	words := term.ScrubLine(strings.Join(strings.Fields(t.Description), " "))
	if words == "" {
		return ""
	}
	return indent + "# It says: " + term.Shorten(words, most) + "\n"
}

// plainName matches names that every YAML reader treats as strings.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)+$`)

// scalar returns a text as a YAML scalar.
func scalar(text string) string {
	if plainName.MatchString(text) {
		return text
	}
	quoted, _ := json.Marshal(text) // a string that was read from JSON
	return string(quoted)
}

// measure returns the name of a number that every call of the tool has, and that a condition can
// use without quoting. It returns an empty string if there is none.
func measure(t *catalog.Tool) string {
	for _, f := range t.Args.Fields {
		if f.Required && f.Type.Enum == nil && strings.HasPrefix(f.Type.String(), "a number") &&
			f.Name == aliasOf(f.Name) {
			return f.Name
		}
	}

	return ""
}

// policy returns the text of the policy: who answers, and how many people are needed.
func (s *starter) policy() string {
	var destructive []string
	for _, name := range s.destructive() {
		destructive = append(destructive, "        - "+scalar(name))
	}
	remote := func(list *catalog.Catalog) bool { return list.Server != "" }
	local := func(list *catalog.Catalog) bool { return list.Server == "" }
	kind := "tool, mcp_tool"
	switch {
	case !slices.ContainsFunc(s.catalogs, remote):
		kind = "tool"
	case !slices.ContainsFunc(s.catalogs, local):
		kind = "mcp_tool"
	}

	text := strings.NewReplacer("ID", s.id, "KINDS", kind).Replace(startPolicy)
	if len(destructive) > 0 {
		text += strings.NewReplacer("KINDS", kind, "TARGETS", strings.Join(destructive, "\n")).Replace(startDestructive)
	}
	return text
}

// destructive returns the tools that declare themselves destructive.
func (s *starter) destructive() []string {
	var out []string
	for _, t := range s.offered() {
		if t.destroys {
			out = append(out, t.name)
		}
	}
	return out
}
