package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/policy"
)

// Each row is the fields of a rule, and the finding in a policy 1.1: its rule, place and message.
// Without a finding, the same fields of a policy 1.0 are unknown.
func TestFieldsOfVersion11(t *testing.T) {
	for _, test := range []struct{ fields, want string }{
		{`deny: "no", when: {}`, ""},
		{`deny: "no", when: {args_match: {}}`, ""},
		{`deny: "no", when: [{args_match: {a: 1}}, {}], unknown: ask, require: {stages: [{group: g}]}`, ""},
		{`deny: "no", when: {}, unknown: deny`, ""},
		{`deny: "no", when: {}, approval: true, require: {within: 1h}, unknown: ask`, ""},
		{`approval: {condition: {args_match: {a: 1}}}, when: {args_match: {b: 1}}`, ""},
		{`approval: true, match: {server_refs: ["a*"], takes: [amount, a.b], except: {targets: [x]}}`, ""},
		{`approval: true, match: {except: {kinds: [tool], servers: [s], server_refs: [r], annotations: {readOnlyHint: true}, ` +
			`takes: [a], agents: {ids: [x]}}}`, ""},

		{`approval: true, require: {any_of: [[{group: a}, {group: b, people: 2}], [{group: c}]], reason: {pattern: x}}`, ""},
		{window(`zone: Europe/Berlin`), ""},
		{window(`zone: UTC, days: [mon, fri-mon], hours: ["08:00-12:00", "13:30-24:00", "22:00-06:00"]`), ""},
		{window(`zone: UTC, dates: ["2026-12-24..2026-12-31", "2027-02-28"], not_dates: ["2026-12-25"]`), ""},
		{`deny: "no", when: {time: {during: {zone: UTC}, outside: {zone: UTC, days: [sun]}}}`, ""},

		{`deny: "no", when: {time: {}}`, "invalid-value"},
		{`deny: "no", when: {time: null}`, "wrong-type"},
		{`deny: "no", when: {time: {inside: {zone: UTC}}}`, "unknown-field"},
		{`deny: "no", when: {time: {during: {days: [mon]}}}`, "missing-field"},
		{window(`zone: ""`), "policy-time-window"},
		{window(`zone: Local`), "policy-time-window"},
		{window(`zone: europe/berlin`), "policy-time-window"},
		{window(`zone: Europe/Atlantis`), "policy-time-window"},
		{window(`zone: ../UTC`), "policy-time-window"},
		{window(`zone: Europe`), "policy-time-window"},
		{window(`zone: Europe//Berlin`), "policy-time-window"},
		{window(`zone: Factory`), "policy-time-window"},
		{window(`zone: posix/UTC`), "policy-time-window"},
		{window(`zone: UTC, days: []`), "invalid-value"},
		{window(`zone: UTC, days: [Mon]`), "policy-time-window"},
		{window(`zone: UTC, days: [mon-]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["8:00-18:00"]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["24:00-06:00"]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["08:00-24:01"]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["08:00-25:00"]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["08:60-09:00"]`), "policy-time-window"},
		{window(`zone: UTC, hours: ["08:00"]`), "policy-time-window"},
		{window(`zone: UTC, hours: []`), "invalid-value"},
		{window(`zone: UTC, dates: ["2026-02-30"]`), "policy-time-window"},
		{window(`zone: UTC, dates: ["2026-12-31..2026-12-24"]`), "policy-time-window"},
		{window(`zone: UTC, dates: ["2026-1-2"]`), "policy-time-window"},
		{window(`zone: UTC, not_dates: []`), "invalid-value"},
		{past(`within: 24h, count: {gt: 5}`), ""},
		{past(`of: {kinds: [tool], targets: ["pay*"], servers: [s], server_refs: ["*"]}, state: failed, within: 30m, ` +
			`by: [agent, principal, session, target, args.a.b], where: {a: {gt: 1}}, sum: {of: a, gt: 1.5, lte: 7}, currency: c`), ""},
		{past(`of: {}, since: week, zone: Europe/Berlin, exists: false`), ""},
		{`deny: "no", when: {history: [{within: 8760h, distinct: {of: a, gte: 2}}, {since: hour, zone: UTC, exists: true}]}`, ""},
		{`deny: "no", when: {history: []}`, "invalid-value"},
		{`deny: "no", when: {history: {within: 1h, exists: true}}`, "wrong-type"},
		{`approval: {condition: {history: []}}`, "missing-field unknown-field"},
		{past(`count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, since: day, zone: UTC, count: {gt: 5}`), "policy-history"},
		{past(`within: 0s, count: {gt: 5}`), "policy-history"},
		{past(`within: -1h, count: {gt: 5}`), "policy-history"},
		{past(`within: 876000h, count: {gt: 5}`), "policy-history"},
		{past(`within: 5, count: {gt: 5}`), "wrong-type"},
		{past(`within: 1h, zone: UTC, count: {gt: 5}`), "policy-history"},
		{past(`since: day, count: {gt: 5}`), "policy-history"},
		{past(`since: year, zone: UTC, count: {gt: 5}`), "invalid-value"},
		{past(`since: day, zone: Local, count: {gt: 5}`), "policy-history"},
		{past(`within: 1h`), "policy-history"},
		{past(`within: 1h, count: {gt: 5}, exists: true`), "policy-history"},
		{past(`within: 1h, count: {}`), "invalid-value"},
		{past(`within: 1h, count: {of: a, gt: 1}`), "unknown-field"},
		{past(`within: 1h, count: {gt: x}`), "wrong-type"},
		{past(`within: 1h, sum: {gt: 1}`), "missing-field invalid-value"},
		{past(`within: 1h, sum: {of: a}`), "invalid-value"},
		{past(`within: 1h, sum: {of: "", gt: 1}`), "policy-history"},
		{past(`within: 1h, sum: {of: parent.input.a, gt: 1}`), "policy-history"},
		{past(`within: 1h, exists: 1`), "wrong-type"},
		{past(`within: 1h, currency: c, count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, state: run, count: {gt: 5}`), "invalid-value"},
		{past(`within: 1h, by: [], count: {gt: 5}`), "invalid-value"},
		{past(`within: 1h, by: [user], count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, by: [args.], count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, by: [args.parent.a], count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, of: {agents: {ids: [a]}}, count: {gt: 5}`), "unknown-field"},
		{past(`within: 1h, of: {kinds: [hammer]}, count: {gt: 5}`), "invalid-value"},
		{past(`within: 1h, of: {targets: []}, count: {gt: 5}`), "invalid-value"},
		{past(`within: 1h, where: {parent.input.a: 1}, count: {gt: 5}`), "policy-history"},
		{past(`within: 1h, where: {a: {gtt: 1}}, count: {gt: 5}`), "unknown-field"},
		{past(`within: 1h, where: {a: {pattern: "("}}, count: {gt: 5}`), "regex-invalid"},
		{past(`within: 1h, when: 1, count: {gt: 5}`), "unknown-field"},
		{`approval: true, require: {any_of: []}`, "invalid-value"},
		{`approval: true, require: {any_of: [[]]}`, "invalid-value"},
		{`approval: true, require: {any_of: [{group: a}]}`, "wrong-type"},
		{`approval: true, require: {any_of: [[{people: 2}]]}`, "missing-field"},
		{`approval: true, require: {any_of: [[{group: a}, {group: a}]]}`, "policy-duplicate-stage"},
		{`approval: true, require: {reason: other}`, "invalid-value"},
		{`approval: true, require: {reason: {pattern: "("}}`, "policy-reason-pattern"},
		{`approval: true, require: {reason: {}}`, "missing-field"},
		{`deny: "no", when: []`, "invalid-value"},
		{`deny: "no", when: null`, "wrong-type"},
		{`deny: "no", when: {args_match: null}`, "wrong-type"},
		{`deny: "no", when: {other: 1}`, "unknown-field"},
		{`deny: "no", when: {args_match: {a: {gtt: 1}}}`, "unknown-operator"},
		{`deny: "no", when: true`, "wrong-type"},
		{`deny: "no", unknown: ask`, "policy-when"},
		{`approval: true, unknown: ask, when: {}`, "policy-when"},
		{`deny: "no", when: {}, unknown: allow`, "invalid-value"},
		{`deny: "no", when: {}, unknown: true`, "invalid-value"},
		{`deny: "no", require: {within: 1h}`, "policy-idle-beside-deny"},
		{`deny: "no", when: {}, require: {within: 1h}`, "policy-idle-beside-deny"},
		{`deny: "no", when: {}, unknown: deny, require: {within: 1h}`, "policy-idle-beside-deny"},
		{`deny: "no", match: {except: {}}`, "invalid-value"},
		{`deny: "no", match: {except: null}`, "wrong-type"},
		{`deny: "no", match: {except: {agents: {}}}`, "invalid-value"},
		{`deny: "no", match: {except: {except: {targets: [x]}}}`, "unknown-field"},
		{`deny: "no", match: {agents: {ids: [x]}}`, "unknown-field"},
		{`deny: "no", match: {takes: []}`, "invalid-value"},
		{`deny: "no", match: {takes: amount}`, "wrong-type"},
		{`deny: "no", match: {takes: [""]}`, "invalid-value"},
		{`deny: "no", match: {server_refs: []}`, "invalid-value"},
		{`deny: "no", match: {except: {targets: []}}`, "invalid-value"},
		{`approval: {condition: {time: {}}}`, "missing-field unknown-field"},
		{`when: {}`, "policy-rule-without-effect"},
		{`deny: "no", unknown: ask, when: [` + groups(40) + `], approval: {condition: [` + groups(40) + `]}`,
			"policy-when"},
	} {
		p, got := loaded("1.1.0", test.fields)
		if got != test.want || (p == nil) != (test.want != "") {
			t.Errorf("%.90s: %q, want %q", test.fields, got, test.want)
		}
		if test.want != "" {
			continue
		}
		p, got = loaded("1.0.9", test.fields)
		for _, found := range strings.Fields(got) {
			if p != nil || found != "unknown-field" {
				t.Errorf("1.0: %s: %q", test.fields, got)
			}
		}
	}

	_, findings := policy.Parse("p", []byte(text11("1.0.0", `match: {takes: [a]}, deny: "no", when: {args_match: {a: 1}}`)))
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprint(f.Range.Start.Column, " ", f.Message, "; ", f.Expected))
	}
	want := `21 rules[0].match: unknown field "takes"; needs schema_version "1.1.0" | 46 rules[0]: unknown field "when"; needs schema_version "1.1.0"`
	if strings.Join(got, " | ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " | "), want)
	}
}

// past returns a rule with one test of past calls.
func past(entry string) string { return `approval: true, when: {history: [{` + entry + `}]}` }

func window(fields string) string { return `deny: "no", when: {time: {during: {` + fields + `}}}` }

func groups(n int) string {
	return strings.TrimSuffix(strings.Repeat("{args_match: {a: 1}}, ", n), ", ")
}

func text11(version, fields string) string {
	return "schema_version: \"" + version + "\"\npolicy_ref: p\nrules:\n  - {id: a, " + fields + "}\n"
}

// loaded returns the rules of the errors.
func loaded(version, fields string) (*policy.Policy, string) {
	p, findings := policy.Parse("p", []byte(text11(version, fields)))
	var rules []string
	for _, f := range findings {
		if f.Stops {
			rules = append(rules, f.Rule)
		}
	}
	return p, strings.Join(rules, " ")
}
