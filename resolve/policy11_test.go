package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

const space11 = `action_space:
  local_tools: [{alias: pay}, {alias: read_file}]
  mcp_servers: [{alias: desk, server_ref: mcp.stripe.com}, {alias: bare}]
  local_agents: [{source: x.agf.yaml, alias: clerk}]
  remote_agents: [{alias: clerk, allowed_skills: [{id: audit}]}]
`

// Each row is a rule of a policy 1.1 without its id, a call, and the outcome with the code and a
// part of the detail of the first reason.
func TestRulesOfVersion11(t *testing.T) {
	const (
		limit   = `when: {args_match: {amount: {gt: 100}}}`
		pay     = `{"kind":"tool","tool":"pay"`
		desk    = `{"kind":"mcp_tool","server":"desk","tool":"buy"`
		clerk   = `{"kind":"delegation","agent":"clerk"`
		skill   = `{"kind":"skill","agent":"clerk","skill":"audit"`
		trusted = "trusted "
		office  = `approval: true, when: {time: {outside: {days: [mon-fri], hours: ["08:00-18:00"], zone: Europe/Berlin}}}`
		night   = `deny: "no", when: {time: {during: {days: [fri], hours: ["22:00-06:00"], zone: UTC}}}`
	)
	for _, test := range []struct{ rule, call, want string }{
		// A denial with a condition.
		{`deny: too much, ` + limit, pay + `,"args":{"amount":101}}`, "deny denied too much"},
		{`deny: too much, ` + limit, pay + `,"args":{"amount":100}}`, "allow"},
		{`deny: too much, ` + limit,
			pay + `,"args":{}}`, "deny denied too much (amount gt 100 can't be told: missing argument)"},
		{`deny: too much, unknown: deny, ` + limit,
			pay + `,"args":{"amount":"x"}}`, "deny denied too much (amount gt 100 can't"},
		{`deny: too much, unknown: ask, ` + limit,
			pay + `,"args":{"amount":"x"}}`, "ask condition_unknown too much (amount"},
		{`deny: too much, unknown: ask, ` + limit, pay + `,"args":{"amount":101}}`, "deny denied too much"},
		{`deny: too much, unknown: ask, ` + limit, pay + `,"args":{"amount":1}}`, "allow"},
		{`deny: too much, when: {}`, pay + `}`, "deny denied too much"},
		{`deny: too much, when: {args_match: {}}`, pay + `}`, "deny denied too much"},
		// Groups of a list are alternatives, and the approval's condition must hold too.
		{`approval: true, when: [{args_match: {a: 1}}, {args_match: {b: 1}}]`,
			pay + `,"args":{"a":2,"b":1}}`, "ask condition_true b"},
		{`approval: true, when: [{args_match: {a: 1}}, {args_match: {b: 1}}]`,
			pay + `,"args":{"a":2,"b":2}}`, "allow"},
		{`approval: true, when: {args_match: {a: 1}}`, pay + `}`, "ask condition_unknown a"},
		{`approval: {condition: {args_match: {b: 1}}}, when: {args_match: {a: 1}}`,
			pay + `,"args":{"a":1,"b":1}}`,
			"ask condition_true a equals 1 is true (number); b"},
		{`approval: {condition: {args_match: {b: 1}}}, when: {args_match: {a: 1}}`,
			pay + `,"args":{"a":1,"b":2}}`, "allow"},
		{`approval: {condition: {args_match: {b: 1}}}, when: {args_match: {a: 1}}`,
			pay + `,"args":{"a":1}}`, "ask condition_unknown a"},
		{`approval: {message_template: "Pay?"}, when: {}`, pay + `}`, "ask condition_true"},
		// Both: the denial depends on when alone.
		{`deny: "no", approval: true, unknown: ask, ` + limit,
			pay + `,"args":{"amount":101}}`, "deny denied no"},
		{`deny: "no", approval: true, unknown: ask, ` + limit, pay + `}`, "ask condition_unknown no"},
		// What the server is.
		{`deny: "no", match: {server_refs: ["mcp.stripe.*"]}`, desk + `}`, "deny denied"},
		{`deny: "no", match: {server_refs: ["mcp.paypal.com"]}`, desk + `}`, "allow"},
		{`deny: "no", match: {server_refs: ["*"]}`,
			`{"kind":"mcp_tool","server":"bare","tool":"buy"}`, "deny denied"},
		{`deny: "no", match: {server_refs: ["?*", "a*"]}`,
			`{"kind":"mcp_tool","server":"bare","tool":"buy"}`, "allow"},
		{`deny: "no", match: {server_refs: ["*"]}`, pay + `}`, "allow"},
		{`deny: "no", match: {server_refs: ["*"], kinds: [tool]}`, pay + `}`, "allow"},
		{`deny: "no", match: {server_refs: ["*"]}`, skill + `}`, "allow"},
		// Arguments that the call has.
		{`deny: "no", match: {takes: [amount]}`, pay + `,"args":{"amount":1}}`, "deny denied no"},
		{`deny: "no", match: {takes: [amount]}`, pay + `,"args":{"amount":null}}`, "allow"},
		{`deny: "no", match: {takes: [amount, to]}`, pay + `,"args":{"amount":1}}`, "allow"},
		{`deny: "no", match: {takes: [amount, to]}`, pay + `,"args":{"amount":1},"declared":["to"]}`, "deny denied"},
		{`deny: "no", match: {takes: [amount, to]}`, pay + `,"declared":["to","amount"]}`, "deny denied"},
		{`deny: "no", match: {takes: [amount, to]}`, desk + `,"args":{"amount":1},"declared":["Amount"]}`, "allow"},
		{`deny: "no", match: {takes: [amount]}`, pay + `,"args":{"amount":null},"declared":["amount"]}`, "deny denied"},
		{`deny: "no", match: {except: {takes: [amount]}}`, pay + `,"declared":["amount"]}`, "deny denied"},
		{`deny: "no", match: {takes: [Amount]}`, pay + `,"args":{"amount":1}}`, "allow"},
		{`deny: "no", match: {takes: [a.b]}`, pay + `,"args":{"a":{"b":1}}}`, "allow"},
		{`deny: "no", match: {takes: [a.b]}`, pay + `,"args":{"a.b":1}}`, "deny denied"},
		{`deny: "no", match: {takes: [parent.x]}`, pay + `,"args":{"parent.x":[]}}`, "deny denied"},
		{`deny: "no", match: {takes: [amount]}`, clerk + `,"args":{"amount":1}}`, "allow"},
		{`deny: "no", match: {takes: [amount], kinds: [delegation]}`,
			skill + `,"args":{"amount":1}}`, "deny denied"},
		{`approval: true, match: {takes: [amount]}`,
			pay + `,"args":{"amount":1}}`, "ask always approval is always required"},
		{`approval: true, when: {}, match: {takes: [amount]}`,
			pay + `,"args":{"amount":1}}`, "ask condition_true a group without tests"},
		// Exceptions.
		{`deny: "no", match: {except: {targets: ["read_*"]}}`, `{"kind":"tool","tool":"read_file"}`, "allow"},
		{`deny: "no", match: {except: {targets: ["read_*"], kinds: [mcp_tool]}}`,
			`{"kind":"tool","tool":"read_file"}`, "deny denied"},
		{`deny: "no", match: {except: {agents: {ids: ["de*"]}}}`, pay + `}`, "allow"},
		{`deny: "no", match: {except: {agents: {ids: ["de*"]}, targets: [x]}}`, pay + `}`, "deny denied"},
		{`deny: "no", match: {except: {agents: {ids: ["other"]}}}`, pay + `}`, "deny denied"},
		{`deny: "no", match: {except: {server_refs: ["mcp.stripe.com"]}}`, desk + `}`, "allow"},
		{`deny: "no", match: {except: {servers: [desk]}}`, desk + `}`, "allow"},
		{`deny: "no", match: {except: {takes: [safe]}}`, pay + `,"args":{"safe":true}}`, "deny denied"},
		{`deny: "no", match: {except: {kinds: [delegation]}}`, skill + `}`, "allow"},
		{`deny: "no", match: {except: {kinds: [skill]}}`, skill + `}`, "allow"},
		{`deny: "no", match: {except: {servers: [clerk]}}`, clerk + `}`, "deny denied"},
		{`deny: "no", match: {except: {servers: [clerk]}}`, clerk + `,"remote":true}`, "allow"},
		{`deny: "no", match: {except: {targets: [clerk]}}`, clerk + `}`, "allow"},
		// Time.
		{`approval: true, when: {time: {outside: {days: [mon-fri], hours: ["08:00-18:00"], zone: Europe/Berlin}}}`,
			pay + `}`,
			"ask condition_unknown time outside mon,tue,wed,thu,fri 08:00-18:00 Europe/Berlin can't be told: missing time"},
		{office, pay + `,"at":"2026-11-27T07:00:00Z"}`, "allow"}, // 08:00 in winter
		{office, pay + `,"at":"2026-11-27T06:59:59.9Z"}`, "ask condition_true"},
		{office, pay + `,"at":"2026-11-27T17:00:00+00:00"}`, "ask condition_true"},
		{office, pay + `,"at":"2026-07-03T06:00:00Z"}`, "allow"}, // 08:00 in summer
		{office, pay + `,"at":"2026-11-28T12:00:00Z"}`,
			"ask condition_true time outside mon,tue,wed,thu,fri 08:00-18:00 Europe/Berlin is true (Sat"},
		{night, pay + `,"at":"2026-11-27T22:00:00Z"}`, "deny denied"},
		{night, pay + `,"at":"2026-11-28T05:59:59Z"}`, "deny denied"}, // of Friday's night
		{night, pay + `,"at":"2026-11-28T06:00:00Z"}`, "allow"},
		{night, pay + `,"at":"2026-11-28T23:00:00Z"}`, "allow"},
		{night, pay + `,"at":"2026-11-27T05:00:00Z"}`, "allow"}, // of Thursday's night
		{night, pay + `}`, "deny denied no (time during fri 22:00-06:00 UTC can't be told: missing time)"},
		{`deny: "no", when: {time: {during: {hours: ["08:00-08:00"], days: [fri], zone: UTC}}}`,
			pay + `,"at":"2026-11-28T07:59:59Z"}`, "deny denied"},
		{`deny: "no", when: {time: {during: {hours: ["08:00-08:00"], days: [fri], zone: UTC}}}`,
			pay + `,"at":"2026-11-27T07:59:59Z"}`, "allow"},
		{`deny: "no", when: {time: {during: {hours: ["02:15-02:45"], zone: Europe/Berlin}}}`,
			pay + `,"at":"2026-10-25T00:30:00Z"}`, "deny denied"},
		{`deny: "no", when: {time: {during: {hours: ["02:15-02:45"], zone: Europe/Berlin}}}`,
			pay + `,"at":"2026-10-25T01:30:00Z"}`, "deny denied"},
		{`deny: "no", when: {time: {during: {dates: ["2026-12-24..2026-12-26"], not_dates: ["2026-12-25"], zone: UTC}}}`,
			pay + `,"at":"2026-12-26T23:59:59Z"}`, "deny denied"},
		{`deny: "no", when: {time: {during: {dates: ["2026-12-24..2026-12-26"], not_dates: ["2026-12-25"], zone: UTC}}}`,
			pay + `,"at":"2026-12-25T12:00:00Z"}`, "allow"},
		{`deny: "no", when: {time: {during: {dates: ["2026-12-24"], hours: ["22:00-02:00"], zone: UTC}}}`,
			pay + `,"at":"2026-12-25T01:59:00Z"}`, "deny denied"},
		{`deny: "no", when: {time: {during: {zone: UTC}}}`,
			pay + `,"at":"0001-01-01T00:00:00Z"}`, "deny denied no"},
		{`deny: "no", when: {time: {outside: {zone: UTC}}}`, pay + `,"at":"2026-12-25T12:00:00Z"}`, "allow"},
		{`approval: true, when: {args_match: {a: 1}, time: {during: {zone: UTC, days: [fri]}}}`,
			pay + `,"args":{"a":2}}`, "allow"},
		// Annotations take a call out only if the server is trusted; local tools are believed.
		{`deny: "no", match: {except: {annotations: {readOnlyHint: true}}}`,
			desk + `,"annotations":{"readOnlyHint":true}}`, "deny denied"},
		{trusted + `deny: "no", match: {except: {annotations: {readOnlyHint: true}}}`,
			desk + `,"annotations":{"readOnlyHint":true}}`, "allow"},
		{trusted + `deny: "no", match: {except: {annotations: {readOnlyHint: true}}}`, desk + `}`, "deny denied"},
		{trusted + `deny: "no", match: {except: {annotations: {readOnlyHint: false}}}`, desk + `}`, "allow"},
		{`deny: "no", match: {except: {annotations: {readOnlyHint: false}}}`, desk + `}`, "deny denied"},
		{`deny: "no", match: {except: {annotations: {readOnlyHint: true}}}`,
			pay + `,"annotations":{"readOnlyHint":true}}`, "allow"},
		// A misspelt one exempts no call that lacks it.
		{`deny: "no", match: {except: {annotations: {readonlyHint: true}}}`, pay + `}`, "deny denied"},
		{trusted + `deny: "no", match: {except: {annotations: {readOnly: false, readOnlyHint: false}}}`, desk + `}`, "deny denied"},
		{trusted + `deny: "no", match: {except: {annotations: {title: true}}}`, desk + `,"annotations":{"title":true}}`, "allow"},
	} {
		opt := resolve.Options{}
		rule, trust := strings.CutPrefix(test.rule, trusted)
		if trust {
			opt.TrustedServers = []string{"desk"}
		}
		p := plan(t, opt, space11, "schema_version: \"1.1.0\"\npolicy_ref: p\napplies: implicit\nrules:\n  - {id: a, "+rule+"}\n")
		d := decide(t, p, test.call)
		got := d.Outcome.String()
		if len(d.Reasons) > 0 {
			got += " " + string(d.Reasons[0].Code) + " " + d.Reasons[0].Detail
		}
		if got != test.want && (test.want == "allow" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s\n%s: %s, want %s", test.rule, test.call, got, test.want)
		}
	}
}

// The owner's reading of what is missing concerns matchers, and not the arguments that a rule takes.
func TestReadingsOfVersion11(t *testing.T) {
	opt := resolve.Options{Semantics: resolve.Semantics{Conditions: condition.Semantics{OnMissing: condition.NoMatch}}}
	p := plan(t, opt, space11, `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: a, match: {targets: [pay]}, when: {args_match: {amount: {gt: 1}}}, deny: "no"}
`)
	if d := decide(t, p, `{"kind":"tool","tool":"pay"}`); d.Outcome != resolve.Allow {
		t.Errorf("%+v", d)
	}
}

func decide(t *testing.T, p *resolve.Plan, call string) resolve.Decision {
	t.Helper()
	c, err := resolve.ParseCall([]byte(call), p.Options().Limits)
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return p.Decide(c)
}

// The moment of a call is strict RFC 3339, is written back, and is neither bound nor recorded.
func TestMomentOfACall(t *testing.T) {
	const call = `{"kind":"tool","tool":"pay","at":%q}`
	for _, bad := range []string{
		"", "2026-11-28", "2026-11-28t14:30:00Z", "2026-11-28T14:30:00z", "2026-11-28T4:30:00Z",
		"2026-11-28T14:30:00",
		"2026-11-28T14:30:00,5Z", "2026-11-28T14:30:60Z",
		"2026-11-28 14:30:00Z", "2026-02-30T14:30:00Z",
		"2026-11-28T14:30:00+24:00", "2026-11-28T14:30:00-24:30", "2026-11-28T14:30:00+01:60",
	} {
		if _, err := resolve.ParseCall(fmt.Appendf(nil, call, bad), value.Limits{}); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if _, err := resolve.ParseCall(fmt.Appendf(nil, call, "2026-11-28T14:30:00.2412+23:59"),
		value.Limits{}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"1", "null", "{", `"\ud800"`} {
		line := `{"kind":"tool","tool":"pay","at":` + bad + `}`
		if _, err := resolve.ParseCall([]byte(line), value.Limits{}); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	c, err := resolve.ParseCall(fmt.Appendf(nil, call, "2026-11-28T15:30:00+01:00"), value.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.JSON()
	if err != nil || !strings.Contains(string(text), `"at":"2026-11-28T14:30:00Z"`) || !c.Recorded().At.IsZero() {
		t.Errorf("%s, %v", text, err)
	}
	p := plan(t, resolve.Options{}, space11, `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - id: a
    match: {except: {targets: ["read_*"]}}
    deny: "no"
    when: {time: {during: {days: [sat], zone: UTC}}}
  - id: b
    match: {except: {annotations: {x: true}}}
    deny: "no"
    when: {time: {during: {days: [sat], zone: UTC}}}
`)
	sunday := c.At.AddDate(0, 0, 1)
	if p.Decide(c).Outcome != resolve.Deny || p.DecideAt(c, sunday).Outcome != resolve.Allow {
		t.Error("the moment does not decide")
	}
	here, _ := p.Bind(c)
	c.At = sunday
	if there, _ := p.Bind(c); here != there {
		t.Error("the moment is bound")
	}
	targets := p.Targets()
	if !slices.ContainsFunc(targets, func(c resolve.Call) bool { return c.Tool == "read_*" }) {
		t.Errorf("the names of exceptions are missing: %v", targets)
	}
	for i := range targets {
		for _, g := range p.Target(&targets[i]).Gates {
			_, required := g.Hint("x")
			if required || targets[i].Kind == resolve.Tool && (g.Rule == "b") != g.Excepted()["x"] {
				t.Errorf("%+v", g)
			}
		}
	}
}
