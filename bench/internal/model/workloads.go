package model

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// CallsPerWorkload is the number of different calls in a workload. Half of them match a rule.
const CallsPerWorkload = 64

// Tool is the tool of all calls in (b), (c) and (d).
const Tool = "tool_042"

// A has one tool with two matchers, both of which must match, and arguments of 80 bytes.
func A() *Workload {
	r := random(1)
	w := &Workload{
		Name:  "a",
		Title: "1 tool, 2 matchers ANDed",
		Agent: agent([]string{"transfer_funds"}),
		Rules: []Rule{{
			ID:    "transfer_funds",
			Tool:  "transfer_funds",
			Agent: true,
			Groups: []Group{{
				{
					Key: "amount",
					Op:  Gt,
					Num: 10_000,
				},
				{
					Key:  "currency",
					Op:   Eq,
					Text: "USD",
				},
			}},
		}},
	}
	w.Calls = chooseCalls(w, "transfer_funds", func() string {
		return fmt.Sprintf(`{"amount":%d,"currency":%q,"account":"acct_%05d","memo":"invoice %06d"}`,
			r.IntN(40_000), pick(r, "USD", "USD", "USD", "EUR", "GBP"), r.IntN(99_999), r.IntN(999_999))
	})
	return w
}

// B has three alternative groups with a regular expression, a list, and a nested argument.
func B() *Workload {
	r := random(2)
	w := &Workload{
		Name:  "b",
		Title: "OR of 3 groups, regexp and list",
		Agent: agent([]string{Tool}),
		Rules: []Rule{{
			ID:    Tool,
			Tool:  Tool,
			Agent: true,
			Groups: []Group{
				{
					{
						Key:    "account",
						Op:     Pattern,
						Regexp: prodAccount(),
					},
					{
						Key: "amount",
						Op:  Gte,
						Num: 30_000,
					},
				},
				{
					{
						Key:  "country",
						Op:   In,
						List: countries()[:8],
					},
					{
						Key: "order.amount",
						Op:  Gt,
						Num: 40_000,
					},
				},
				{
					{
						Key:  "channel",
						Op:   NotIn,
						List: []string{"web", "api", "batch"},
					},
					{
						Key:  "env",
						Op:   Ne,
						Text: "test",
					},
				},
			},
		}},
	}
	w.Calls = chooseCalls(w, Tool, func() string { return arguments(r) })
	return w
}

// C has an agent of 100 tools with a rule each, and 20 policies, of which 4 apply to the call.
func C() *Workload {
	return fleet("c", "100 tools, 20 policies", 20, 4)
}

// D has an agent of 100 tools with a rule each, and n policies, of which 5 apply to the call.
func D(n int) *Workload {
	name, title := "d", "100 tools, 1,000 policies"
	if n != 1_000 {
		name, title = fmt.Sprintf("d%dk", n/1_000), fmt.Sprintf("100 tools, %d policies", n)
	}
	return fleet(name, title, n, 5)
}

// fleet builds (c) and (d). It makes the calls and the rules that apply to them first, from a
// generator of their own, so that they do not change with the number of policies.
func fleet(name, title string, policies, concerning int) *Workload {
	r := random(3)
	w := &Workload{Name: name, Title: title, Agent: agent(toolNames(100))}
	own := Rule{ID: Tool, Tool: Tool, Agent: true, Groups: selective(r)}
	relevant := make([]Rule, concerning)
	for i := range relevant {
		relevant[i] = concerningRule(r, i)
	}
	w.Rules = append([]Rule{own}, relevant...)
	w.Calls = chooseCalls(w, Tool, func() string { return arguments(r) })

	w.Rules = agentRules(random(4), own, w.Agent.Tools)
	w.Rules = append(w.Rules, spread(relevant, otherPolicies(random(5), policies-concerning))...)
	return w
}

func agentRules(r *rand.Rand, own Rule, tools []string) []Rule {
	rules := make([]Rule, len(tools))
	for i, tool := range tools {
		rules[i] = Rule{ID: tool, Tool: tool, Agent: true, Groups: groups(r)}
		if tool == own.Tool {
			rules[i] = own
		}
	}

	return rules
}

// concerningRule returns a policy that admits the agent and the tool. Each i does so in a
// different way.
func concerningRule(r *rand.Rand, i int) Rule {
	selectors := []Rule{
		{Tool: Tool, Labels: []Label{{"team", "payments"}}},
		{Labels: []Label{{"team", "payments"}}},
		{Tool: Tool},
		{Labels: []Label{{"team", "payments"}, {"tier", "prod"}}},
		{Tool: Tool, Labels: []Label{{"tier", "prod"}}},
	}
	rule := selectors[i%len(selectors)]
	rule.ID = fmt.Sprintf("acme.payments.p%02d", i)
	rule.Groups = selective(r)
	return rule
}

// otherPolicies returns policies that do not apply to the call. There are four kinds, a quarter
// of each: any tool with another team, this tool with another team, another tool with our team,
// and another tool with another team.
func otherPolicies(r *rand.Rand, n int) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		ours := Label{"team", "payments"}
		other := Label{"team", fmt.Sprintf("team-%02d", r.IntN(50))}
		otherTool := fmt.Sprintf("tool_%03d", 43+r.IntN(57))
		rule := Rule{ID: fmt.Sprintf("acme.fleet.p%05d", i), Groups: groups(r)}
		switch i % 4 {
		case 0:
			rule.Labels = []Label{other}
		case 1:
			rule.Tool, rule.Labels = Tool, []Label{other}
		case 2:
			rule.Tool, rule.Labels = otherTool, []Label{ours}
		case 3:
			rule.Tool, rule.Labels = otherTool, []Label{other}
		}

		rules[i] = rule
	}

	return rules
}

// spread inserts the few into the many, at even distances.
func spread(few, many []Rule) []Rule {
	out := slices.Clone(many)
	for i, rule := range few {
		out = slices.Insert(out, (i+1)*len(many)/(len(few)+1)+i, rule)
	}
	return out
}

// Random returns a small fleet for property tests: a few tools with or without a rule, policies
// with every kind of selector, and calls to all tools, some of which lack arguments.
func Random(seed uint64, policies int) *Workload {
	r := random(seed)
	w := &Workload{
		Name:  fmt.Sprintf("random-%d-%d", seed, policies),
		Agent: agent([]string{"t0", "t1", "t2", "t3"}),
	}
	for i, tool := range w.Agent.Tools {
		if i == 0 || r.IntN(2) == 0 {
			w.Rules = append(w.Rules, Rule{
				ID:     tool,
				Tool:   tool,
				Agent:  true,
				Groups: groups(r),
			})
		}
	}

	for i := range policies {
		w.Rules = append(w.Rules, Rule{
			ID:     fmt.Sprintf("acme.p%04d", i),
			Tool:   pick(r, "", "t0", "t1", "t2", "t3", "elsewhere"),
			Labels: someLabels(r),
			Groups: groups(r),
		})
	}

	for i := range 16 {
		c := NewCall(w.Agent.Tools[i%len(w.Agent.Tools)], arguments(r))
		w.Calls = append(w.Calls, c)
	}
	w.Calls = append(w.Calls, w.Ragged().Calls...)
	return w
}

func someLabels(r *rand.Rand) []Label {
	var out []Label
	if team := pick(r, "", "payments", "payments", "other"); team != "" {
		out = append(out, Label{"team", team})
	}
	if tier := pick(r, "", "", "prod", "stage"); tier != "" {
		out = append(out, Label{"tier", tier})
	}
	return out
}

// chooseCalls generates different calls until half of them match a rule and half do not.
func chooseCalls(w *Workload, tool string, draw func() string) []Call {
	var calls []Call
	quota := map[bool]int{true: CallsPerWorkload / 2, false: CallsPerWorkload / 2}
	seen := map[string]bool{}
	for len(calls) < CallsPerWorkload {
		c := NewCall(tool, draw())
		matched := len(w.Reference(&c)) > 0
		if seen[string(c.Raw)] || quota[matched] == 0 {
			continue
		}
		seen[string(c.Raw)] = true
		quota[matched]--
		calls = append(calls, c)
	}

	return calls
}

// NewCall decodes the arguments as a host would. The arguments come from the generator, so an
// error is a bug.
func NewCall(tool, raw string) Call {
	c := Call{Tool: tool, Raw: []byte(raw)}
	if err := json.Unmarshal(c.Raw, &c.Args); err != nil {
		panic(fmt.Sprintf("generated arguments do not parse: %v: %s", err, raw))
	}
	return c
}

// arguments returns the arguments of a call, about 280 bytes. The order of the keys varies a
// little, as in the output of models.
func arguments(r *rand.Rand) string {
	fields := []string{
		fmt.Sprintf(`"account":"acct_%05d_%s"`, r.IntN(99_999), pick(r, "prod", "prod", "test")),
		fmt.Sprintf(`"amount":%d`, r.IntN(50_000)),
		fmt.Sprintf(`"country":%q`, pick(r, countries()...)),
		fmt.Sprintf(`"channel":%q`, pick(r, channels()...)),
		fmt.Sprintf(`"env":%q`, pick(r, "prod", "stage", "test")),
		fmt.Sprintf(`"email":"user%04d@%s"`, r.IntN(9_999), pick(r, domains()...)),
		fmt.Sprintf(
			`"order":{"id":"o-%06d","amount":%d,"items":%d}`,
			r.IntN(999_999),
			r.IntN(80_000),
			1+r.IntN(20),
		),
		fmt.Sprintf(`"currency":%q`, pick(r, "USD", "EUR", "GBP")),
		fmt.Sprintf(`"priority":%d`, r.IntN(5)),
		fmt.Sprintf(
			`"memo":%s`,
			pick(
				r,
				`"r\u00e9serve \"north\" 3rd quarter"`,
				`"settle the open invoices of May"`,
				`"as agreed on the phone: 2 parts"`,
			),
		),
		fmt.Sprintf(`"tags":["t%d","ledger"]`, r.IntN(9)),
	}
	if r.IntN(4) == 0 {
		i := r.IntN(len(fields))
		fields = append(fields[i:], fields[:i]...)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// selective generates groups that match between 5 % and 20 % of random calls, so that half of
// the calls match some rule.
func selective(r *rand.Rand) []Group {
	for {
		rule := Rule{Groups: groups(r)}
		hits := 0
		for range 200 {
			c := NewCall(Tool, arguments(r))
			if rule.Matches(c.Args) {
				hits++
			}
		}

		if hits >= 10 && hits <= 40 {
			return rule.Groups
		}
	}
}

// groups generates one or two groups of two or three matchers on different arguments.
func groups(r *rand.Rand) []Group {
	out := make([]Group, 1+r.IntN(2))
	for i := range out {
		kinds := r.Perm(len(matchers(r)))
		for _, kind := range kinds[:2+r.IntN(2)] {
			out[i] = append(out[i], matchers(r)[kind])
		}
	}

	return out
}

// matchers returns one random matcher for each argument.
func matchers(r *rand.Rand) []Matcher {
	list := func(from []string, n int) []string {
		shuffled := slices.Clone(from)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return shuffled[:n]
	}
	return []Matcher{
		{
			Key:    "account",
			Op:     Pattern,
			Regexp: prodAccount(),
		},
		{
			Key: "amount",
			Op:  pickOp(r, Gt, Gte),
			Num: int64(20_000 + r.IntN(25_000)),
		},
		{
			Key: "order.amount",
			Op:  pickOp(r, Gt, Lt),
			Num: int64(20_000 + r.IntN(40_000)),
		},
		{
			Key: "order.items",
			Op:  Gte,
			Num: int64(5 + r.IntN(12)),
		},
		{
			Key:  "country",
			Op:   In,
			List: list(countries(), 6),
		},
		{
			Key:  "channel",
			Op:   NotIn,
			List: list(channels(), 3),
		},
		{
			Key:  "env",
			Op:   Ne,
			Text: pick(r, "test", "stage"),
		},
		{
			Key:    "email",
			Op:     Pattern,
			Regexp: Ends("@" + pick(r, domains()...)),
		},
		{
			Key:  "currency",
			Op:   Eq,
			Text: pick(r, "USD", "EUR", "GBP"),
		},
		{
			Key: "priority",
			Op:  Lte,
			Num: int64(r.IntN(4)),
		},
	}
}

func prodAccount() Regexp {
	return Regexp{Source: "^acct_[0-9]+_prod$", Like: "acct_*_prod"}
}

func agent(tools []string) Agent {
	return Agent{Labels: []Label{{"team", "payments"}, {"tier", "prod"}}, Tools: tools}
}

func toolNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("tool_%03d", i)
	}
	return out
}

func countries() []string {
	return []string{
		"RU",
		"IR",
		"KP",
		"SY",
		"CU",
		"VE",
		"BY",
		"MM",
		"DE",
		"FR",
		"US",
		"GB",
		"JP",
		"BR",
		"IN",
		"ZA",
	}
}

func channels() []string { return []string{"web", "api", "batch", "phone", "mail"} }

func domains() []string { return []string{"acme.example", "partner.example", "gmail.com", "mail.test"} }

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2026)) }

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func pickOp(r *rand.Rand, from ...Op) Op { return from[r.IntN(len(from))] }
