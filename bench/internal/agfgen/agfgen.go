// Package agfgen writes varied agent files that are valid and free of
// findings: local tools, MCP servers, sub-agents, conditions with every
// operator, regular expressions, and message templates, in the block
// and flow styles of YAML.
package agfgen

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// File returns an agent file of about size bytes, at least about 3,000.
// The same seed gives the same file.
func File(seed uint64, size int) []byte {
	g := &generator{r: rand.New(rand.NewPCG(seed, 2026))}
	g.header(seed)
	g.write("action_space:\n  local_tools:\n")
	for i := 0; i == 0 || g.b.Len() < size-tail; i++ {
		g.tool(i)
	}
	g.servers()
	g.agents()
	g.constraints()
	return []byte(g.b.String())
}

// tail is about what follows the tools, and half a tool.
const tail = 1_300

type generator struct {
	r *rand.Rand
	b strings.Builder
}

func (g *generator) write(format string, args ...any) { fmt.Fprintf(&g.b, format, args...) }

func (g *generator) pick(from ...string) string { return from[g.r.IntN(len(from))] }

func (g *generator) header(seed uint64) {
	team := g.pick("payments", "support", "research", "platform", "sales")
	g.write(
		`# Generated for benchmarks.
schema_version: "1.0.0"
metadata:
  id: %s-agent-%d
  name: "%s agent %d"
  version: "%d.%d.0"
  description: >-
    Works for the %s team: reads its queue, prepares what is asked for,
    and asks a person before anything that can not be undone.
  labels: {team: %s, tier: %s, region: "%s"}
  namespace: acme.%s
  data_classification: %s
`,
		team,
		seed,
		strings.ToUpper(team[:1])+team[1:],
		seed,
		1+g.r.IntN(4),
		g.r.IntN(20),
		team,
		team,
		g.pick("prod", "stage"),
		g.pick("eu-1", "us-2", "ap-3"),
		team,
		g.pick("public", "internal", "confidential", "restricted"),
	)
	g.write(
		`interface:
  input:
    type: object
    properties:
      request: {type: string, description: "What is wanted, in plain words"}
      risk_level: {type: string, enum: [low, medium, high, critical]}
    required: [request]
  output:
    type: object
    properties:
      answer: {type: string}
    required: [answer]
execution_policy:
  id: agf.react
  config:
    instructions: |
      You are the %s team's agent. Read the request twice.
      Prefer %s over %s. Say what you did, and what you left out.
    model: %s
    max_steps: %d
`,
		team,
		g.pick("a small change", "a question"),
		g.pick("a large one", "a guess"),
		g.pick("large-1", "small-2"),
		5+g.r.IntN(30),
	)
}

// tool writes one local tool; the kinds take turns so that every file
// has several.
func (g *generator) tool(i int) {
	switch (i + g.r.IntN(2)) % 5 {
	case 0:
		g.transfer(i)
	case 1:
		g.mail(i)
	case 2:
		g.write(
			"    - alias: search_%d\n      description: \"Search the %s, newest first\"\n",
			i,
			g.pick("tickets", "wiki", "ledger"),
		)
	case 3:
		g.deletion(i)
	case 4:
		g.query(i)
	}
}

func (g *generator) transfer(i int) {
	g.write(
		`    - alias: transfer_%d
      description: "Move money between two accounts"
      approval:
        message_template: "Move {{tool_args.amount}} {{tool_args.currency}} to {{tool_args.account}}?"
        condition:
          - args_match:
              amount: {gte: %d}
              currency: {in: [USD, EUR, %s]}
          - args_match:
              account: {pattern: "^ext-[0-9]{%d,}$"}
              currency: {not_in: [%s]}
              amount: {gt: %d, lt: %d}
`,
		i,
		1_000+g.r.IntN(90_000),
		g.pick("GBP", "CHF", "JPY"),
		2+g.r.IntN(6),
		g.pick("SEK", "DKK"),
		g.r.IntN(500),
		600+g.r.IntN(400),
	)
}

func (g *generator) mail(i int) {
	g.write(`    - alias: send_mail_%d
      description: "Send a message"
      approval:
        message_template: |
          Send "{{tool_args.subject}}" to {{tool_args.to}}?
        condition:
          args_match:
            to:
              pattern: '@(%s|%s)\.(com|org)$'
            subject: {ne: "daily report %d"}
`, i, g.pick("gmail", "yahoo", "mail"), g.pick("partner", "vendor", "press"), g.r.IntN(99))
}

func (g *generator) deletion(i int) {
	g.write(
		"    - alias: delete_%s_%d\n      description: \"Delete for good\"\n      approval: true\n",
		g.pick("record", "file", "user"),
		i,
	)
}

func (g *generator) query(i int) {
	g.write(`    - alias: run_query_%d
      approval:
        message_template: "Run {{tool_args.operation}} on {{tool_args.table}} ({{tool_args.rows}} rows)?"
        condition:
          - args_match:
              operation: {pattern: "^(DROP|DELETE|%s)$"}
          - args_match:
              table: %s
              rows: {gt: %d}
`, i, g.pick("UPDATE", "TRUNCATE", "ALTER"), g.pick("accounts", "orders", "people"), 10+g.r.IntN(5_000))
}

func (g *generator) servers() {
	g.write(`  mcp_servers:
    - alias: %s
      server_ref: acme.%s-api
      description: "The team's service"
      allowed_tools:
        - list_items
        - name: get_item
          approval: false
        - name: update_item
          approval:
            message_template: "Change {{tool_args.id}} to {{tool_args.state}}?"
            condition: {args_match: {id: {pattern: "^%s-"}, state: %s}}
      approval: true
`, g.pick("tracker", "crm", "warehouse"), g.pick("core", "edge"), g.pick("P", "Q", "R"), g.pick("closed", "archived"))
}

func (g *generator) agents() {
	g.write(`  remote_agents:
    - alias: %s
      description: "Another team's agent"
      allowed_skills:
        - summarize
        - id: decide
          approval: {message_template: "Let {{remote_agent_alias}} run {{skill_id}}?"}
      approval:
        message_template: "Delegate to {{agent_alias}}?"
        condition:
          args_match:
            parent.input.risk_level: {in: [high, %s]}
`, g.pick("reviewer", "planner", "analyst"), g.pick("medium", "critical"))
}

func (g *generator) constraints() {
	g.write(`constraints:
  tighten_only_invariant: true
  budget: {max_token_usage: %d, max_duration_seconds: %d}
  limits: {max_llm_calls: %d, max_tool_calls: %d, max_delegation_depth: %d}
  governance_policies:
    - policy_ref: acme.base-v%d
      required: true
      description: "What holds for every agent"
`, 1_000*(50+g.r.IntN(900)), 60*(1+g.r.IntN(30)), 20+g.r.IntN(80), 20+g.r.IntN(180), 1+g.r.IntN(4), 1+g.r.IntN(3))
}
