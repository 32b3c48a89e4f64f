// Package permissions converts the permission lists of coding agents to an agent's file and a policy. The
// result never allows a call that the list would ask about or deny, and never asks about one that the list
// denies. What is lost is listed.
package permissions

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Import is a converted list.
type Import struct {
	Agent, Policy string
	Losses        []string // sentences about what is stricter than the list
}

// list is the outcome of calls that a rule of a permission list matches.
type list string

const (
	allow list = "allow"
	ask   list = "ask"
	deny  list = "deny"
)

// rule is one rule of Claude Code: Bash, Bash(npm run test:*), mcp__github__get_issue.
type rule struct {
	list      list
	text      string
	tool      string
	specifier string // empty: all calls of the tool
}

// ClaudeCode converts the permissions of a settings.json.
func ClaudeCode(src []byte) (*Import, error) {
	c := &claude{tools: map[string]*claudeTool{}, servers: map[string]*claudeServer{}}
	for _, name := range builtin {
		c.tools[name] = &claudeTool{}
	}
	rules, err := c.read(src)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if err := c.add(r); err != nil {
			return nil, err
		}
	}
	c.finish()
	return &Import{Agent: c.agent(), Policy: c.policy(), Losses: c.losses}, nil
}

// builtin are the tools of Claude Code that can read, change, run or reach something.
var builtin = []string{
	"Bash", "BashOutput", "Edit", "Glob", "Grep", "KillShell", "LS", "MultiEdit", "NotebookEdit",
	"NotebookRead", "Read",
	"Skill", "SlashCommand", "Task", "TodoWrite", "WebFetch", "WebSearch", "Write",
}

// readers and editors are the tools to which rules for Read and Edit apply.
var (
	readers = []string{"Read", "Grep", "Glob", "LS", "NotebookRead"}
	editors = []string{"Edit", "MultiEdit", "Write", "NotebookEdit"}
)

// pathOf returns the argument of a tool that has its path.
func pathOf(tool string) string {
	switch tool {
	case "NotebookEdit", "NotebookRead":
		return "notebook_path"
	case "Grep", "Glob", "LS":
		return "path"
	}
	return "file_path"
}

type claude struct {
	tools   map[string]*claudeTool
	servers map[string]*claudeServer
	rules   []string // of the policy
	losses  []string
}

type claudeTool struct {
	all     bool     // calls run, unless a rule asks or denies
	command []string // of Bash: expressions for lines that run
	hosts   []string // of WebFetch: hosts that may be read
}

type claudeServer struct {
	all     bool
	allowed []string // globs of tools that run
}

func (c *claude) lose(format string, args ...any) {
	c.losses = append(c.losses, fmt.Sprintf(format, args...))
}

// read returns the rules of the settings, denials first.
func (c *claude) read(src []byte) ([]rule, error) {
	doc, err := value.Parse(src, value.Limits{})
	if err != nil {
		return nil, fmt.Errorf("the settings can't be read: %w", err)
	}
	permissions, given := doc.Get("permissions")
	if !given || permissions.Kind != value.Object {
		return nil, errors.New("the settings have no object permissions")
	}
	var all []rule
	for _, m := range permissions.Members {
		switch of := list(m.Key); {
		case of == allow || of == ask || of == deny:
			if m.Value.Kind != value.Array {
				return nil, fmt.Errorf("permissions.%s: expected a list", of)
			}
			for i, item := range m.Value.Items {
				r, ok := parseRule(of, item)
				switch {
				case ok:
					all = append(all, r)
				case of == allow:
					c.lose("allow %q can't be read, so its calls ask", item.Text)
				default:
					return nil, fmt.Errorf("permissions.%s[%d]: %q can't be read, expected Tool or Tool(specifier)", of, i, item.Text)
				}
			}
		case m.Key == "defaultMode" && m.Value.Text == "default":
		default:
			c.lose("permissions.%s is not imported: calls that no rule allows ask", m.Key)
		}
	}
	order := []list{deny, ask, allow}
	slices.SortStableFunc(all, func(a, b rule) int { return slices.Index(order, a.list) - slices.Index(order, b.list) })
	return all, nil
}

var ruleForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*(?:\*)?)(?:\((.+)\))?$`)

func parseRule(of list, item value.Value) (rule, bool) {
	m := ruleForm.FindStringSubmatch(item.Text)
	if item.Kind != value.String || m == nil || strings.Contains(m[1], "*") && !strings.HasPrefix(m[1], "mcp__") {
		return rule{}, false
	}
	r := rule{list: of, text: item.Text, tool: m[1], specifier: m[2]}
	if r.specifier == "*" || r.specifier == ":*" {
		r.specifier = ""
	}
	return r, true
}

func (c *claude) add(r rule) error {
	if rest, isMCP := strings.CutPrefix(r.tool, "mcp__"); isMCP {
		return c.addMCP(r, rest)
	}
	if c.tools[r.tool] == nil {
		if !aliasForm.MatchString(r.tool) {
			return c.unusable(r)
		}
		c.tools[r.tool] = &claudeTool{}
	}
	if r.list == allow {
		c.allowed(r)
		return nil
	}
	targets := []string{r.tool}
	switch {
	case slices.Contains(readers, r.tool) && r.tool == "Read":
		targets = readers
	case r.tool == "Edit" || r.tool == "Write":
		targets = editors
	}
	for _, target := range targets {
		c.restricts(r, target)
	}
	return nil
}

var aliasForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// unusable handles a rule with a name that an agent's file can't have.
func (c *claude) unusable(r rule) error {
	c.lose("%s %q: no alias can be called so, so its calls are denied as undeclared", r.list, r.text)
	return nil
}

// allowed adds what a rule of `allow` lets run, if a policy can say it.
func (c *claude) allowed(r rule) {
	t := c.tools[r.tool]
	host, isHost := strings.CutPrefix(r.specifier, "domain:")
	switch {
	case r.specifier == "":
		t.all = true
		return
	case r.tool == "Bash":
		if e, ok := commandForm(r.specifier); ok {
			t.command = append(t.command, e)
			return
		}
	case r.tool == "WebFetch" && isHost && hostForm.MatchString(host):
		t.hosts = append(t.hosts, host)
		return
	}
	c.lose("allow %q: a policy can't say exactly which calls these are, so they ask", r.text)
}

var hostForm = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$`)

// plainText are the characters of words that no shell expands or splits into commands.
const plainText = `[A-Za-z0-9_@%+=:,./ -]`

var plainForm = regexp.MustCompile(`^` + plainText + `+$`)

// commandForm returns an expression for command lines of one simple command that a rule allows.
func commandForm(specifier string) (string, bool) {
	prefix, open := strings.CutSuffix(specifier, ":*")
	if open {
		return regexp.QuoteMeta(prefix) + `( ` + plainText + `*)?`, plainForm.MatchString(prefix)
	}
	var parts []string
	for _, part := range strings.Split(specifier, "*") {
		if part != "" && !plainForm.MatchString(part) {
			return "", false
		}
		parts = append(parts, regexp.QuoteMeta(part))
	}
	// A line that begins with a wildcard could set variables.
	return strings.Join(parts, plainText+`*`), parts[0] != ""
}

// restricts adds a rule for the calls of a tool that a rule asks about or denies, or for more of them.
func (c *claude) restricts(r rule, tool string) {
	argument, operator, expression := "", "pattern", ""
	host, isHost := strings.CutPrefix(r.specifier, "domain:")
	switch {
	case r.specifier == "":
	case tool == "Bash":
		argument, expression = "command", quoted(mentions(r.specifier))
	case tool == "WebFetch" && isHost && hostForm.MatchString(host):
		argument, operator, expression = "url", "host", quoted(host, "*."+host)
	case slices.Contains(readers, tool) || slices.Contains(editors, tool):
		argument, expression = pathOf(tool), quoted(pathForm(r.specifier))
	}
	when := ""
	if argument != "" {
		when = fmt.Sprintf("when: {args_match: {%s: {%s: %s}}}, ", argument, operator, expression)
	} else if r.specifier != "" {
		c.lose("%s %q holds for every call of %s", r.list, r.text, tool)
	}
	searches := slices.Contains([]string{"Grep", "Glob", "LS"}, tool) && argument != "" && r.list == deny
	if searches {
		when += "unknown: ask, " // without a path, the working directory is searched
	}
	c.emit(r, tool, toolMatch(tool), when)
	if searches { // the files may be below what is searched
		c.emit(rule{list: ask, text: r.text}, tool, toolMatch(tool), "")
	}
}

// emit adds a rule of the policy.
func (c *claude) emit(r rule, about, match, when string) {
	effect := "approval: true"
	if r.list == deny {
		effect = "deny: " + quoted("The settings deny "+r.text+".")
	}
	about = idForm.ReplaceAllString(strings.ToLower(about), "-")
	c.rules = append(c.rules, fmt.Sprintf("{id: %s-%d-%s, description: %s, match: %s, %s%s}",
		r.list, len(c.rules)+1, about, quoted(r.text), match, when, effect))
}

func toolMatch(tool string) string { return "{kinds: [tool], targets: [" + quoted(tool) + "]}" }

func serverMatch(server, more string) string {
	return "{kinds: [mcp_tool], servers: [" + quoted(server) + "]" + more + "}"
}

var idForm = regexp.MustCompile(`[^a-z0-9]+`)

// mentions returns an expression for command lines in which a part may begin with what a rule says.
func mentions(specifier string) string {
	specifier = strings.TrimSpace(strings.TrimSuffix(specifier, ":*"))
	var b strings.Builder
	if specifier == "" {
		return b.String()
	}
	if first := specifier[0]; first == '_' || first >= '0' && first <= '9' || first|0x20 >= 'a' && first|0x20 <= 'z' {
		b.WriteString(`(^|[^A-Za-z0-9_])`)
	}
	for i, part := range strings.Split(specifier, "*") {
		if i > 0 {
			b.WriteString(anyText)
		}
		b.WriteString(spaces.ReplaceAllString(regexp.QuoteMeta(part), anySpace))
	}
	// The space in front of a wildcard may be missing at the end of a line.
	return strings.ReplaceAll(b.String(), anySpace+anyText, anyText)
}

// anyText and anySpace are expressions that JavaScript reads alike.
const (
	anyText  = `(.|\n)*`
	anySpace = `[^!-~]+`
)

var spaces = regexp.MustCompile(`\s+`)

// pathForm returns an expression for paths that a pattern of files may match, wherever it is anchored, and
// for paths that are not in their shortest form.
func pathForm(specifier string) string {
	body := strings.TrimSuffix(strings.TrimSpace(specifier), "/")
	for again := true; again; {
		again = false
		for _, start := range []string{"/", "./", "../", "~/"} {
			if rest, found := strings.CutPrefix(body, start); found {
				body, again = rest, true
			}
		}
	}
	if body == "" || body[0] == '~' || noncanonical.MatchString(body) {
		return "" // every path
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		switch rest := body[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(` + anyText + `/)?`)
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(anyText)
			i++
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] >= 0x80: // its letters have several forms
			b.WriteString(anyText)
		case rest[0] == '[', rest[0] == ']', rest[0] == '!', rest[0] == '\\', rest[0] == '{', rest[0] == '}':
			return ""
		case strings.ToLower(rest[:1]) != strings.ToUpper(rest[:1]): // file systems may ignore case
			b.WriteString(`[` + strings.ToUpper(rest[:1]) + strings.ToLower(rest[:1]) + `]`)
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	return `(^|/)` + b.String() + `(/|$)|` + noncanonical.String()
}

// noncanonical matches paths that are not in their shortest form.
var noncanonical = regexp.MustCompile(`(^|/)\.{1,2}(/|$)|//`)

func (c *claude) addMCP(r rule, rest string) error {
	server, tool, _ := strings.Cut(rest, "__")
	if !aliasForm.MatchString(server) || r.specifier != "" {
		return c.unusable(r)
	}
	s := c.servers[server]
	if s == nil {
		s = &claudeServer{}
		c.servers[server] = s
	}
	all := tool == "" || tool == "*"
	switch {
	case r.list != allow && all:
		c.emit(r, server, serverMatch(server, ""), "")
	case r.list != allow:
		c.emit(r, server, serverMatch(server, ", targets: ["+quoted(tool)+"]"), "")
	case all:
		s.all = true
	default:
		s.allowed = append(s.allowed, tool)
	}
	return nil
}

// finish adds the rules that ask about calls that the list does not allow.
func (c *claude) finish() {
	only := func(tool, argument, operator, operand string) {
		when := fmt.Sprintf("when: {args_match: {%s: {%s: %s}}}, ", argument, operator, operand)
		c.emit(rule{list: ask, text: "calls of " + tool + " that no rule allows"}, tool,
			toolMatch(tool), when)
	}
	if t := c.tools["Bash"]; !t.all && len(t.command) > 0 {
		only("Bash", "command", "not_pattern", quoted("^("+strings.Join(t.command, "|")+")$"))
		c.lose("allow of Bash: lines with quotes, expansions, redirections and several commands ask")
	}
	if t := c.tools["WebFetch"]; !t.all && len(t.hosts) > 0 {
		only("WebFetch", "url", "not_host", quoted(t.hosts...))
	}
	for _, name := range slices.Sorted(maps.Keys(c.servers)) {
		s := c.servers[name]
		except := ""
		if len(s.allowed) > 0 {
			except = ", except: {targets: [" + strings.Trim(quoted(s.allowed...), "[]") + "]}"
		}
		if !s.all {
			c.emit(rule{list: ask, text: "calls of " + name + " that no rule allows"}, name,
				serverMatch(name, except), "")
		}
	}
	c.lose("built-in tools that Claude Code runs unasked, such as reading in the working directory, ask unless a rule " +
		"allows them; other tools that no rule names are denied as undeclared; rules for Read and Edit hold for all tools " +
		"that read or change files; symbolic links are not followed")
}

// quoted returns one text, or a list of several, as JSON, which YAML reads too.
func quoted(texts ...string) string {
	var v any = texts
	if len(texts) == 1 {
		v = texts[0]
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts always have JSON
	return strings.TrimSpace(b.String())
}

func (c *claude) agent() string {
	var b strings.Builder
	b.WriteString(`schema_version: "1.0.0"
metadata:
  id: claude-code
  name: Claude Code
  version: "1.0.0"
  description: Works on a repository, by the permissions of its former settings.
interface:
  input: {type: object}
  output: {type: object}
execution_policy:
  id: agf.react
  config: {instructions: The product has its own., model: any}
constraints:
  governance_policies:
    - {policy_ref: imported.claude-code, required: true}
action_space:
  local_tools:
`)
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		t := c.tools[name]
		if t.all || len(t.command)+len(t.hosts) > 0 {
			b.WriteString("    - alias: " + quoted(name) + "\n")
		} else {
			b.WriteString("    - {alias: " + quoted(name) + ", approval: true}\n")
		}
	}
	if len(c.servers) > 0 {
		b.WriteString("  mcp_servers:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(c.servers)) {
		b.WriteString("    - alias: " + quoted(name) + "\n")
	}
	return b.String()
}

func (c *claude) policy() string {
	text := "schema_version: \"1.1.0\"\npolicy_ref: imported.claude-code\nrules:\n"
	if len(c.rules) == 0 {
		return strings.TrimSuffix(text, "\n") + " []\n"
	}
	return text + "  - " + strings.Join(c.rules, "\n  - ") + "\n"
}
