package examples_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
)

// fragment is one form from the Agent Format page on human-in-the-loop approval, with its
// equivalent in an example: the place, the text at the place, and a recorded call that proves
// its effect.
type fragment struct {
	name    string
	example string
	at      string // path in the agent's file; list items by alias, name, id or policy_ref
	says    string // as compact JSON, or "" if the field is missing
	call    string // a line of calls.jsonl
	outcome resolve.Outcome
	because string // "source code rule" of a reason, or ""
}

// fragments follows the page from top to bottom, and then the pages on matchers and template
// variables that it refers to.
func fragments() []fragment {
	const (
		desk     = "trading-desk"
		operator = "platform-operator"
		support  = "customer-support"
	)
	return []fragment{
		// The three forms.
		{"true: always", desk, "local_tools/cancel_all_orders/approval", `true`,
			`{"kind":"tool","tool":"cancel_all_orders"}`, resolve.Ask, "agent always local_tools.cancel_all_orders"},
		{"left out: nobody is asked", desk, "local_tools/get_quote/approval", ``,
			`{"kind":"tool","tool":"get_quote","args":{"symbol":"ACME"}}`, resolve.Allow, ""},
		{
			"empty object: as true",
			desk,
			"local_tools/override_risk_limit/approval",
			`{}`,
			`{"kind":"tool","tool":"override_risk_limit","args":{"limit":"gross","days":1}}`,
			resolve.Ask,
			"agent always local_tools.override_risk_limit",
		},
		{
			"false: exempt from the blanket",
			operator,
			"mcp_servers/external_api/allowed_tools/list_resources/approval",
			`false`,
			`{"kind":"mcp_tool","server":"external_api","tool":"list_resources","args":{"environment":"production"}}`,
			resolve.Allow,
			"",
		},
		{
			"template alone: always, with the author's message",
			desk,
			"local_tools/place_order/approval",
			`{"message_template":"Send a {{tool_args.order_type}} order, {{tool_args.side}} {{tool_args.quantity}} ` +
				`{{tool_args.symbol}} at ${{tool_args.limit_price}}?"}`,
			`{"kind":"tool","tool":"place_order","args":{"order_type":"limit","side":"buy","quantity":200,` +
				`"symbol":"ACME","limit_price":150.25}}`,
			resolve.Ask,
			"agent always local_tools.place_order",
		},

		// Conditions.
		{
			"one group: all must match",
			desk,
			"local_tools/execute_trade/approval/condition",
			`{"args_match":{"amount":{"gt":10000},"currency":"USD"}}`,
			`{"kind":"tool","tool":"execute_trade","args":{"amount":20000,"currency":"USD"}}`,
			resolve.Ask,
			"agent condition_true local_tools.execute_trade",
		},
		{
			"one group: one does not match",
			desk,
			"local_tools/execute_trade/approval/condition",
			`{"args_match":{"amount":{"gt":10000},"currency":"USD"}}`,
			`{"kind":"tool","tool":"execute_trade","args":{"amount":9000,"currency":"USD"}}`,
			resolve.Allow,
			"",
		},
		{
			"several groups: first",
			desk,
			"local_tools/rebalance_portfolio/approval/condition/0",
			`{"args_match":{"strategy":{"in":["momentum","leveraged","short"]},"turnover":{"gte":0.25}}}`,
			`{"kind":"tool","tool":"rebalance_portfolio","args":{"portfolio":"core","strategy":"momentum",` +
				`"turnover":0.25,"leverage":1,"uses_margin":false,"lots":10}}`,
			resolve.Ask,
			"agent condition_true local_tools.rebalance_portfolio",
		},
		{
			"several groups: second, a range",
			desk,
			"local_tools/rebalance_portfolio/approval/condition/1",
			`{"args_match":{"leverage":{"gt":1,"lte":4}}}`,
			`{"kind":"tool","tool":"rebalance_portfolio","args":{"portfolio":"core","strategy":"index",` +
				`"turnover":0.1,"leverage":2.5,"uses_margin":false,"lots":10}}`,
			resolve.Ask,
			"agent condition_true local_tools.rebalance_portfolio",
		},
		{
			"several groups: none",
			desk,
			"local_tools/rebalance_portfolio/approval/condition/0",
			`{"args_match":{"strategy":{"in":["momentum","leveraged","short"]},"turnover":{"gte":0.25}}}`,
			`{"kind":"tool","tool":"rebalance_portfolio","args":{"portfolio":"core","strategy":"index",` +
				`"turnover":0.1,"leverage":1,"uses_margin":false,"lots":10}}`,
			resolve.Allow,
			"",
		},
		{
			"literal boolean",
			desk,
			"local_tools/rebalance_portfolio/approval/condition/2",
			`{"args_match":{"uses_margin":true}}`,
			`{"kind":"tool","tool":"rebalance_portfolio","args":{"portfolio":"core","strategy":"index",` +
				`"turnover":0.1,"leverage":1,"uses_margin":true,"lots":10}}`,
			resolve.Ask,
			"agent condition_true local_tools.rebalance_portfolio",
		},
		{
			"literal number",
			desk,
			"local_tools/rebalance_portfolio/approval/condition/3",
			`{"args_match":{"lots":100}}`,
			`{"kind":"tool","tool":"rebalance_portfolio","args":{"portfolio":"core","strategy":"index",` +
				`"turnover":0.1,"leverage":1,"uses_margin":false,"lots":100.0}}`,
			resolve.Ask,
			"agent condition_true local_tools.rebalance_portfolio",
		},
		{
			"pattern on a recipient",
			support,
			"local_tools/send_email/approval/condition/0",
			`{"args_match":{"recipient":{"pattern":".*@external\\.com$"}}}`,
			`{"kind":"tool","tool":"send_email","args":{"recipient":"ann@external.com","subject":"your ` +
				`parcel","has_attachment":false}}`,
			resolve.Ask,
			"agent condition_true local_tools.send_email",
		},
		{
			"in: a list of values",
			support,
			"local_tools/send_email/approval/condition/2",
			`{"args_match":{"subject":{"in":["legal","press","regulator"]}}}`,
			`{"kind":"tool","tool":"send_email","args":{"recipient":"ann@acme.example","subject":"press",` +
				`"has_attachment":false}}`,
			resolve.Ask,
			"agent condition_true local_tools.send_email",
		},
		{
			"not_in, in a blanket",
			operator,
			"mcp_servers/kubernetes/approval/condition",
			`{"args_match":{"namespace":{"not_in":["sandbox","preview"]}}}`,
			`{"kind":"mcp_tool","server":"kubernetes","tool":"scale_deployment","args":{"namespace":"sandbox",` +
				`"deployment":"web","replicas":12}}`,
			resolve.Allow,
			"",
		},
		{
			"ne",
			operator,
			"mcp_servers/external_api/allowed_tools/update_resource/approval/condition",
			`{"args_match":{"environment":{"ne":"development"}}}`,
			`{"kind":"mcp_tool","server":"external_api","tool":"update_resource","args":{"resource":"db-1",` +
				`"environment":"development","settings":{"replicas":1}}}`,
			resolve.Allow,
			"",
		},
		{
			"lt",
			operator,
			"mcp_servers/database/allowed_tools/vacuum/approval/condition/0",
			`{"args_match":{"free_percent":{"lt":20}}}`,
			`{"kind":"mcp_tool","server":"database","tool":"vacuum","args":{"table":"jobs","free_percent":12,` +
				`"load":0.1},"annotations":{"destructiveHint":false}}`,
			resolve.Ask,
			"agent condition_true mcp_servers.database.vacuum",
		},

		// MCP servers: blanket, inheritance, exemption, override.
		{
			"blanket: a tool listed by name",
			operator,
			"mcp_servers/external_api/approval",
			`true`,
			`{"kind":"mcp_tool","server":"external_api","tool":"create_resource","args":{},` +
				`"annotations":{"destructiveHint":true}}`,
			resolve.Ask,
			"server always mcp_servers.external_api",
		},
		{
			"blanket: a tool listed without an approval",
			operator,
			"mcp_servers/external_api/allowed_tools/resize_resource/approval",
			``,
			`{"kind":"mcp_tool","server":"external_api","tool":"resize_resource","args":{"resource":"db-1",` +
				`"size":"xl"}}`,
			resolve.Ask,
			"server always mcp_servers.external_api",
		},
		{
			"a tool's condition instead of the blanket",
			operator,
			"mcp_servers/external_api/allowed_tools/update_resource/approval/condition",
			`{"args_match":{"environment":{"ne":"development"}}}`,
			`{"kind":"mcp_tool","server":"external_api","tool":"update_resource","args":{"resource":"db-1",` +
				`"environment":"production","settings":{"replicas":3,"class":"m5.large"}}}`,
			resolve.Ask,
			"agent condition_true mcp_servers.external_api.update_resource",
		},
		{
			"a blanket with template and condition, inherited whole",
			operator,
			"mcp_servers/kubernetes/approval/message_template",
			`"{{tool_name}} on {{mcp_server_alias}} for {{agent_id}}, namespace {{tool_args.namespace}}: {{tool_args}}"`,
			`{"kind":"mcp_tool","server":"kubernetes","tool":"scale_deployment","args":{"namespace":"staging",` +
				`"deployment":"web","replicas":12}}`,
			resolve.Ask,
			"server condition_true mcp_servers.kubernetes",
		},
		{
			"a tool stricter than its blanket",
			operator,
			"mcp_servers/kubernetes/allowed_tools/delete_namespace/approval",
			`true`,
			`{"kind":"mcp_tool","server":"kubernetes","tool":"delete_namespace","args":{"namespace":"sandbox"}}`,
			resolve.Ask,
			"agent always mcp_servers.kubernetes.delete_namespace",
		},

		// Remote agents and skills.
		{
			"a skill's condition: below",
			support,
			"remote_agents/payments/allowed_skills/process-payment/approval/condition",
			`{"args_match":{"amount":{"gt":100}}}`,
			`{"kind":"skill","agent":"payments","skill":"process-payment","args":{"amount":5},` +
				`"parent":{"input":{"risk_level":"low"}}}`,
			resolve.Allow,
			"",
		},
		{
			"a skill's condition: above",
			support,
			"remote_agents/payments/allowed_skills/process-payment/approval/condition",
			`{"args_match":{"amount":{"gt":100}}}`,
			`{"kind":"skill","agent":"payments","skill":"process-payment","args":{"amount":250,"currency":"EUR"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"low"}}}`,
			resolve.Ask,
			"agent condition_true remote_agents.payments.process-payment",
		},
		{
			"a skill listed by name",
			support,
			"remote_agents/payments/allowed_skills/payment-status",
			`"payment-status"`,
			`{"kind":"skill","agent":"payments","skill":"payment-status","args":{"payment":"p-8"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"low"}}}`,
			resolve.Allow,
			"",
		},
		{
			"a skill that always asks",
			support,
			"remote_agents/payments/allowed_skills/refund/approval",
			`{"message_template":"Refund {{skill_args.amount}} {{skill_args.currency}}: {{skill_args}}"}`,
			`{"kind":"skill","agent":"payments","skill":"refund","args":{"amount":20,"currency":"EUR"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"low"}}}`,
			resolve.Ask,
			"agent always remote_agents.payments.refund",
		},

		// Delegation.
		{
			"delegation: the parent's input decides",
			desk,
			"local_agents/financial_executor/approval/condition/0",
			`{"args_match":{"parent.input.risk_level":{"in":["high","critical"]}}}`,
			`{"kind":"delegation","agent":"financial_executor","parent":{"input":{"risk_level":"high"}}}`,
			resolve.Ask,
			"agent condition_true local_agents.financial_executor",
		},
		{
			"delegation: let through",
			desk,
			"local_agents/financial_executor/approval/condition/1",
			`{"args_match":{"parent.input.exposure_usd":{"gte":1000000}}}`,
			`{"kind":"delegation","agent":"financial_executor","parent":{"input":{"request":"work 10k ` +
				`ACME","client_id":"c-9","risk_level":"low","exposure_usd":12000}}}`,
			resolve.Allow,
			"",
		},
		{
			"delegation: always",
			support,
			"local_agents/complaint_writer/approval",
			`true`,
			`{"kind":"delegation","agent":"complaint_writer","parent":{"input":{"customer_id":"c-31",` +
				`"risk_level":"low"}}}`,
			resolve.Ask,
			"agent always local_agents.complaint_writer",
		},
		{
			"delegation to a remote agent, literal string",
			support,
			"remote_agents/payments/approval/condition",
			`{"args_match":{"parent.input.risk_level":"high"}}`,
			`{"kind":"delegation","agent":"payments","parent":{"input":{"customer_id":"c-31","risk_level":"high"}}}`,
			resolve.Ask,
			"agent condition_true remote_agents.payments",
		},

		// Governance: if any source asks, the call asks.
		{
			"agent and policy both ask",
			desk,
			"/constraints/governance_policies/acme.finance.trade-controls-v2/policy_ref",
			`"acme.finance.trade-controls-v2"`,
			`{"kind":"tool","tool":"execute_trade","args":{"amount":20000,"currency":"USD"}}`,
			resolve.Ask,
			"policy condition_true large-trades",
		},
		{
			"the agent lets through, the policy asks",
			desk,
			"local_tools/execute_trade/approval/condition",
			`{"args_match":{"amount":{"gt":10000},"currency":"USD"}}`,
			`{"kind":"tool","tool":"execute_trade","args":{"amount":20000,"currency":"EUR"}}`,
			resolve.Ask,
			"policy condition_true large-trades",
		},
		{
			"the agent says false, the policy asks",
			operator,
			"mcp_servers/external_api/allowed_tools/purge_cache/approval",
			`false`,
			`{"kind":"mcp_tool","server":"external_api","tool":"purge_cache","args":{"scope":"shop"}}`,
			resolve.Ask,
			"policy always cache",
		},
		{
			"an implicit policy asks of an agent that says nothing",
			operator,
			"mcp_servers/metrics/approval",
			``,
			`{"kind":"mcp_tool","server":"metrics","tool":"silence_alert","args":{"alert":"disk"}}`,
			resolve.Ask,
			"policy always destructive",
		},
	}
}

func TestFragments(t *testing.T) {
	examples := map[string]example{}
	for _, name := range names() {
		examples[name] = load(t, name)
	}
	for _, f := range fragments() {
		t.Run(f.name, func(t *testing.T) {
			e := examples[f.example]
			if got := said(e.graph.Root.Agent.Doc.Root, f.at); got != f.says {
				t.Errorf("%s says %s, want %s", f.at, got, f.says)
			}
			if !recorded(t, f) {
				t.Errorf("the call is not in %s/calls.jsonl: %s", f.example, f.call)
			}
			d := decide(t, e.plan, []byte(f.call))
			if d.Outcome != f.outcome {
				t.Errorf("got %s, want %s", d.Outcome, f.outcome)
			}
			if because := reasons(d); !strings.Contains(because+"\n", f.because+"\n") ||
				f.because == "" && because != "" {
				t.Errorf("got the reasons %q, want %q", because, f.because)
			}
		})
	}
}

func recorded(t *testing.T, f fragment) bool {
	t.Helper()
	for _, line := range lines(t, f.example+"/calls.jsonl") {
		if bytes.Equal(line, []byte(f.call)) {
			return true
		}
	}
	return false
}

func reasons(d resolve.Decision) string {
	var all []string
	for _, r := range d.Reasons {
		all = append(all, strings.Join([]string{string(r.Source), string(r.Code), r.Rule}, " "))
	}
	return strings.Join(all, "\n")
}

// said returns the value at a path as compact JSON with sorted keys, or "" if there is none. A
// path without a leading slash starts in the action space.
func said(n *yamldoc.Node, path string) string {
	path, fromTop := strings.CutPrefix(path, "/")
	if !fromTop {
		n = n.Get("action_space")
	}
	for _, step := range strings.Split(path, "/") {
		if n = child(n, step); n == nil {
			return ""
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n.Any()); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// child returns the value for a key of a mapping, or an item of a list. The step to an item is
// its position, or the field that names it.
func child(n *yamldoc.Node, step string) *yamldoc.Node {
	if n == nil || n.Kind != yamldoc.Sequence {
		return n.Get(step)
	}
	for i, item := range n.Items {
		if step == string(rune('0'+i)) || item.Kind == yamldoc.String && item.Text == step {
			return item
		}
		for _, key := range []string{"alias", "name", "id", "policy_ref"} {
			if v := item.Get(key); v != nil && v.Text == step {
				return item
			}
		}
	}

	return nil
}

// TestMessages shows the messages that approvers read: each variable of the catalog, and a text
// that tries to forge a second line.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ example, call, message string }{
		{
			"trading-desk",
			`{"kind":"tool","tool":"place_order","args":{"order_type":"limit","side":"buy","quantity":200,` +
				`"symbol":"ACME","limit_price":150.25}}`,
			`Send a limit order, buy 200 ACME at $150.25?`,
		},
		{
			"trading-desk",
			`{"kind":"tool","tool":"amend_order","args":{"order":{"id":"o-17","details":{"quantity":500}},` +
				`"quantity":500}}`,
			`trading-desk amends order o-17 to 500: {"order":{"id":"o-17","details":{"quantity":500}},"quantity":500}`,
		},
		{
			"trading-desk",
			`{"kind":"delegation","agent":"financial_executor","parent":{"input":{"request":"work 2m ` +
				`ACME","client_id":"c-9","risk_level":"critical","exposure_usd":2500000}}}`,
			`Hand client c-9 (risk critical, $2500000) to financial_executor, for trading-desk?`,
		},
		{
			"platform-operator",
			`{"kind":"mcp_tool","server":"external_api","tool":"update_resource","args":{"resource":"db-1",` +
				`"environment":"production","settings":{"replicas":3,"class":"m5.large"}}}`,
			`update_resource on external_api: set db-1 in production to {"replicas":3,"class":"m5.large"}?`,
		},
		{
			"platform-operator",
			`{"kind":"mcp_tool","server":"kubernetes","tool":"scale_deployment","args":{"namespace":"staging",` +
				`"deployment":"web","replicas":12}}`,
			`scale_deployment on kubernetes for platform-operator, namespace staging: ` +
				`{"namespace":"staging","deployment":"web","replicas":12}`,
		},
		{
			"customer-support",
			`{"kind":"skill","agent":"payments","skill":"process-payment","args":{"amount":250,"currency":"EUR"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"low"}}}`,
			`Let payments run process-payment over 250 EUR?`,
		},
		{
			"customer-support",
			`{"kind":"skill","agent":"payments","skill":"process-payment","args":{"amount":5,"currency":"EUR"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"high"}}}`,
			`Talk to payments about customer c-31, risk high?`,
		},
		{
			"customer-support",
			`{"kind":"skill","agent":"payments","skill":"refund","args":{"amount":20,"currency":"EUR"},` +
				`"parent":{"input":{"customer_id":"c-31","risk_level":"low"}}}`,
			`Refund 20 EUR: {"amount":20,"currency":"EUR"}`,
		},
		{
			"customer-support",
			`{"kind":"tool","tool":"close_account","args":{"customer":{"id":"c-31","name":"Ann\nApproved by the ` +
				`shift lead"}}}`,
			`customer-support wants to close account c-31 of Ann\u{a}Approved by the shift lead.`,
		},
	} {
		if d := decide(t, load(t, c.example).plan, []byte(c.call)); d.Message != c.message {
			t.Errorf("%s\n got %s\nwant %s", c.call, d.Message, c.message)
		}
	}
}
