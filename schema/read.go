package schema

import (
	"math"
	"math/big"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// agent converts a document that satisfies the JSON Schema to an Agent. A node of an unexpected
// kind is nevertheless handled: it reads as absent.
func (r *reader) agent(file string, doc *yamldoc.Document) *Agent {
	root := doc.Root
	version := root.Get("schema_version")
	return &Agent{
		File:          file,
		Doc:           doc,
		SchemaVersion: text(version),
		SchemaRange:   rangeOf(version),
		Metadata:      readMetadata(root.Get("metadata")),
		Interface:     readInterface(root.Get("interface")),
		Memory:        Memory{Required: boolean(root.Get("memory").Get("required"), false)},
		Constraints:   readConstraints(root.Get("constraints")),
		ActionSpace:   r.actionSpace(root.Get("action_space")),
		Policy:        r.executionPolicy(root.Get("execution_policy")),
		Strays:        r.strays,
	}
}

func readMetadata(n *yamldoc.Node) Metadata {
	m := Metadata{
		ID:                 text(n.Get("id")),
		Name:               text(n.Get("name")),
		Version:            text(n.Get("version")),
		Description:        text(n.Get("description")),
		Namespace:          text(n.Get("namespace")),
		DataClassification: text(n.Get("data_classification")),
		Range:              rangeOf(n),
	}
	if labels := n.Get("labels"); labels != nil {
		m.Labels = make(map[string]string, len(labels.Fields))
		for _, f := range labels.Fields {
			m.Labels[f.Key.Text] = f.Value.Text
		}
	}

	return m
}

func readInterface(n *yamldoc.Node) Interface {
	return Interface{Input: n.Get("input"), Output: n.Get("output"), Range: rangeOf(n)}
}

func readConstraints(n *yamldoc.Node) Constraints {
	tighten := n.Get("tighten_only_invariant")
	budget := n.Get("budget")
	limits := n.Get("limits")
	c := Constraints{
		TightenOnly:      boolean(tighten, true),
		TightenOnlyRange: rangeOf(tighten),
		Budget: Budget{
			MaxTokenUsage:      count(budget.Get("max_token_usage")),
			MaxDurationSeconds: count(budget.Get("max_duration_seconds")),
		},
		Limits: Limits{
			MaxLLMCalls:        count(limits.Get("max_llm_calls")),
			MaxToolCalls:       count(limits.Get("max_tool_calls")),
			MaxDelegationDepth: count(limits.Get("max_delegation_depth")),
		},
	}
	for _, item := range items(n.Get("governance_policies")) {
		ref := item.Get("policy_ref")
		c.Policies = append(c.Policies, PolicyRef{
			Ref:      text(ref),
			Required: boolean(item.Get("required"), true),
			RefRange: rangeOf(ref),
			Range:    item.Range,
		})
	}

	return c
}

func (r *reader) actionSpace(n *yamldoc.Node) ActionSpace {
	return ActionSpace{
		LocalTools:   each(n.Get("local_tools"), r.localTool),
		MCPServers:   each(n.Get("mcp_servers"), r.mcpServer),
		LocalAgents:  each(n.Get("local_agents"), r.localAgent),
		RemoteAgents: each(n.Get("remote_agents"), r.remoteAgent),
	}
}

// entry reads the fields that all entries of the action space have.
func (r *reader) entry(n *yamldoc.Node) Entry {
	alias := n.Get("alias")
	return Entry{
		Alias:      text(alias),
		Approval:   r.approval(n),
		Misspelt:   r.gates[n],
		AliasRange: rangeOf(alias),
		Range:      n.Range,
	}
}

func (r *reader) localTool(n *yamldoc.Node) LocalTool {
	return LocalTool{Entry: r.entry(n), Name: text(n.Get("name"))}
}

func (r *reader) mcpServer(n *yamldoc.Node) MCPServer {
	allowed := n.Get("allowed_tools")
	return MCPServer{
		Entry:         r.entry(n),
		AllowedTools:  r.allowList(allowed, "name"),
		ServerRef:     text(n.Get("server_ref")),
		AllowedRange:  rangeOf(allowed),
		MisspeltAllow: n.Get(oldAllowTools),
		MisspeltLists: r.lists[n],
	}
}

func (r *reader) localAgent(n *yamldoc.Node) LocalAgent {
	source := n.Get("source")
	return LocalAgent{
		Entry:               r.entry(n),
		Source:              text(source),
		SourceType:          textOr(n.Get("source_type"), sourceFile),
		MemoryScopeStrategy: textOr(n.Get("memory_scope_strategy"), "inherit"),
		SourceRange:         rangeOf(source),
	}
}

func (r *reader) remoteAgent(n *yamldoc.Node) RemoteAgent {
	allowed := n.Get("allowed_skills")
	return RemoteAgent{
		Entry:         r.entry(n),
		AllowedSkills: r.allowList(allowed, "id"),
		AllowedRange:  rangeOf(allowed),
		MisspeltAllow: n.Get(oldAllowSkills),
		MisspeltLists: r.lists[n],
	}
}

// allowList reads allowed_tools or allowed_skills. It returns nil if the list is absent, which
// differs from an empty list.
func (r *reader) allowList(n *yamldoc.Node, key string) *[]ToolRef {
	if n == nil {
		return nil
	}
	refs := make([]ToolRef, 0, len(n.Items))
	for _, item := range n.Items {
		name := item
		if item.Kind == yamldoc.Mapping {
			name = item.Get(key)
		}
		refs = append(refs, ToolRef{
			Name:      text(name),
			Approval:  r.approval(item),
			Misspelt:  r.gates[item],
			NameRange: rangeOf(name),
			Range:     item.Range,
		})
	}

	return &refs
}

// approval reads the approval field of an entry.
func (r *reader) approval(entry *yamldoc.Node) *Approval {
	a, findings := ParseApproval(entry.Get("approval"), condition.AgentFormat)
	r.add(findings...)
	return a
}

func (r *reader) executionPolicy(n *yamldoc.Node) ExecutionPolicy {
	id, config := n.Get("id"), n.Get("config")
	p := ExecutionPolicy{
		ID:      text(id),
		IDRange: rangeOf(id),
		Config:  config,
		Range:   rangeOf(n),
	}
	switch p.ID {
	case PolicyReact:
		p.React = readReact(config)
	case PolicySequential:
		p.Steps, p.Output = readSteps(config.Get("steps")), readOutput(config.Get("output_from"), "last")
	case PolicyParallel:
		p.Steps, p.Output = readSteps(config.Get("agents")), readOutput(config.Get("output_from"), "merge")
	case PolicyLoop:
		p.Steps, p.Output = readSteps(config.Get("steps")), readOutput(config.Get("output_from"), "last")
		p.MaxIterations = countOr(config.Get("max_iterations"), 10)
		p.ExitCondition = r.condition(config.Get("exit_condition"))
	case PolicyBatch:
		p.Batch = &Batch{
			Agent:    readAgentRef(config.Get("agent")),
			Input:    readMappings(config.Get("input_mapping")),
			MaxCount: countOr(config.Get("max_batch_count"), 0),
		}
	case PolicyConditional:
		p.Routes = each(config.Get("routes"), r.route)
		if fallback := config.Get("default_agent"); fallback != nil {
			ref := readAgentRef(fallback)
			p.DefaultAgent = &ref
		}
	}

	return p
}

func readReact(n *yamldoc.Node) *React {
	react := &React{
		Model:      text(n.Get("model")),
		Provider:   text(n.Get("provider")),
		ToolChoice: text(n.Get("tool_choice")),
		MaxSteps:   countOr(n.Get("max_steps"), 10),
	}
	// The findings of this template are left to lint: the prompt is no approval message, and the
	// names in it are the agent's inputs.
	if prompt := n.Get("user_prompt_template"); isText(prompt) {
		parsed, _ := template.Parse(prompt.Text)
		react.UserPromptTemplate = &Template{Text: prompt.Text, Parsed: parsed, Node: prompt}
	}

	return react
}

func readSteps(n *yamldoc.Node) []Step {
	return each(n, func(item *yamldoc.Node) Step {
		return Step{
			Agent: readAgentRef(item.Get("agent")),
			Input: readMappings(item.Get("input_mapping")),
			Range: item.Range,
		}
	})
}

func (r *reader) route(n *yamldoc.Node) Route {
	return Route{
		When:  r.condition(n.Get("when")),
		Agent: readAgentRef(n.Get("agent")),
		Input: readMappings(n.Get("input_mapping")),
		Range: n.Range,
	}
}

func (r *reader) condition(n *yamldoc.Node) *condition.Expr {
	if n == nil {
		return nil
	}
	expr, findings := condition.Parse(n, condition.AgentFormat)
	r.add(findings...)
	return expr
}

func readAgentRef(n *yamldoc.Node) AgentRef { return AgentRef{Alias: text(n), Range: rangeOf(n)} }

func readMappings(n *yamldoc.Node) []Mapping {
	if n == nil {
		return nil
	}
	mappings := make([]Mapping, 0, len(n.Fields))
	for _, f := range n.Fields {
		path, _ := parsePath(text(f.Value)) // the flaw is reported by check
		mappings = append(mappings, Mapping{Field: f.Key.Text, Path: path, Node: f.Value})
	}

	return mappings
}

// readOutput reads output_from. A bare text is a strategy if it is one
// of their keywords, else an alias.
func readOutput(n *yamldoc.Node, absent string) Output {
	if n == nil {
		return Output{Strategy: absent}
	}
	out := Output{Range: n.Range}
	switch agent := n.Get("agent"); {
	case isText(n) && isStrategy(n.Text):
		out.Strategy = n.Text
	case isText(n):
		out.Agent = &AgentRef{Alias: n.Text, Range: n.Range}
	case agent != nil:
		ref := readAgentRef(agent)
		out.Agent = &ref
	default:
		out.Strategy, out.Transform = text(n.Get("strategy")), text(n.Get("custom_transform"))
	}

	return out
}

// isStrategy reports whether a bare output_from is a keyword.
func isStrategy(s string) bool { return s == "last" || s == "first" || s == "merge" }

func isText(n *yamldoc.Node) bool { return n != nil && n.Kind == yamldoc.String }

func text(n *yamldoc.Node) string { return textOr(n, "") }

func textOr(n *yamldoc.Node, absent string) string {
	if !isText(n) {
		return absent
	}
	return n.Text
}

func boolean(n *yamldoc.Node, absent bool) bool {
	if n == nil || n.Kind != yamldoc.Bool {
		return absent
	}
	return n.Bool
}

// count reads a whole number. It returns nil if the number is absent. A number beyond the range of
// int64 is reduced to the largest one, which is as good as no limit.
func count(n *yamldoc.Node) *int64 {
	if n == nil || n.Kind != yamldoc.Number || !n.Finite {
		return nil
	}
	i := int64(math.MaxInt64)
	if n.Num.Cmp(value.IntNum(i)) < 0 {
		if exact, ok := new(big.Rat).SetString(n.Num.String()); ok && exact.IsInt() {
			i = exact.Num().Int64()
		}
	}
	return &i
}

func countOr(n *yamldoc.Node, absent int64) int64 {
	if c := count(n); c != nil {
		return *c
	}
	return absent
}

func rangeOf(n *yamldoc.Node) diag.Range {
	if n == nil {
		return diag.Range{}
	}
	return n.Range
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// each reads every item of a list. It returns nil if the list is empty or absent.
func each[T any](n *yamldoc.Node, read func(*yamldoc.Node) T) []T {
	var all []T
	for _, item := range items(n) {
		all = append(all, read(item))
	}
	return all
}
