package policytest

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// Every operator of policies 1.1 is changed, and created tests notice the changes.
func TestOperatorsOfPolicies11AreMutated(t *testing.T) {
	const (
		agent = `schema_version: "1.0.0"
metadata: {id: desk, name: D, version: "1.0.0", description: D}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {local_tools: [{alias: a}, {alias: b}, {alias: c}, {alias: d}, {alias: e}, {alias: f}, {alias: g},
{alias: h}]}
`
		policies = `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: a, match: {targets: [a]}, approval: {condition: {args_match: {x: {exists: true}}}}}
  - {id: b, match: {targets: [b]}, approval: {condition: {args_match: {x: {not_pattern: '^a$'}}}}}
  - {id: c, match: {targets: [c]}, approval: {condition: {args_match: {x: {starts_with: [a, b]}}}}}
  - {id: d, match: {targets: [d]}, approval: {condition: {args_match: {x: {length: {gt: 2}}}}}}
  - {id: e, match: {targets: [e]}, approval: {condition: {args_match: {x: {path_inside: /srv}}}}}
  - {id: f, match: {targets: [f]}, approval: {condition: {args_match: {x: {not_host: [a.com, "*.b.com"]}}}}}
  - {id: g, match: {targets: [g]}, approval: {condition: {args_match: {x: {any: {where: {n: {gt: 5}, m: y}}}}}}}
  - id: h
    match: {targets: [h]}
    approval: {condition: {args_match: {x: {money: {currency: c, gt: {EUR: 5, JPY: 500}, minor_units: true, otherwise: false}}}}}
`
	)
	files := testWorld(t, "a.agf.yaml", agent, "new/p.policy.yaml", policies)
	header := "schema_version: \"1.0.0\"\nagent: a.agf.yaml\npolicies: [new]\ncalls: []\n"
	f, b := prepared(t, "none"+Suffix, []byte(header), files)
	text, err := Create(Header{Agent: "a.agf.yaml", Policies: []string{"new"}}, b)
	must.Do(t, err)
	made, _ := Parse("created"+Suffix, text)
	w := must.Get(Load(f, files))(t)
	score := Mutate([]*Suite{{Files: []*File{made}, World: w, Built: b}})
	var out strings.Builder
	must.Do(t, score.Write(&out, "text"))
	if score.Percent() < 100 || score.Killed < 40 {
		t.Errorf("%d noticed, %d%%\n%s\n%s", score.Killed, score.Percent(), out.String(), text)
	}

	all := Mutate([]*Suite{{Files: []*File{f}, World: w, Built: b}})
	out.Reset()
	must.Do(t, all.Write(&out, "text"))
	for _, change := range []string{
		"true becomes false", "starts_with becomes ends_with", "gt becomes gte", "path_inside becomes not_path_inside",
		"not_host becomes host", "any becomes all", "any becomes none", "the matcher of n is left out",
		"500 becomes 501",
		"not_pattern becomes pattern", "a.comx is added",
	} {
		if !strings.Contains(out.String(), change) {
			t.Errorf("no change %q in\n%s", change, out.String())
		}
	}
}

// Each part of a test of past calls is changed, and created tests notice that a rule has one.
func TestTestsOfPastCallsAreMutated(t *testing.T) {
	const (
		agent = `schema_version: "1.0.0"
metadata: {id: desk, name: D, version: "1.0.0", description: D}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {local_tools: [{alias: a}, {alias: b}]}
`
		policies = `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - id: a
    match: {targets: [a]}
    when: {history: [{within: 24h, by: [session], where: {x: {gt: 1}}, sum: {of: n, gt: 20}, currency: c}]}
    approval: true
  - id: b
    match: {targets: [b]}
    when: {history: [{within: 1s, of: {targets: [a]}, exists: true},
                     {since: day, zone: UTC, count: {gte: 3, lt: 9}}]}
    deny: "no"
`
	)
	files := testWorld(t, "a.agf.yaml", agent, "new/p.policy.yaml", policies)
	header := "schema_version: \"1.0.0\"\nagent: a.agf.yaml\npolicies: [new]\ncalls: []\n"
	f, b := prepared(t, "none"+Suffix, []byte(header), files)
	w := must.Get(Load(f, files))(t)
	score := func(f *File) string {
		var out strings.Builder
		must.Do(t, Mutate([]*Suite{{Files: []*File{f}, World: w, Built: b}}).Write(&out, "text"))
		return out.String()
	}
	all := score(f)
	for _, change := range []string{
		"history is left out", "24h becomes 12h", "by is left out", "where is left out", "gt becomes gte",
		"gt becomes lt", "1 becomes 2",
		"20 becomes 21", "currency is left out", "a test of past calls is left out", "of is left out",
		"true becomes false", "gte becomes gt", "3 becomes 4", "lt becomes lte", "9 becomes 8",
	} {
		if !strings.Contains(all, change) {
			t.Errorf("no change %q in\n%s", change, all)
		}
	}
	if strings.Contains(all, "1s becomes") {
		t.Errorf("a second is made shorter:\n%s", all)
	}
	text, err := Create(Header{Agent: "a.agf.yaml", Policies: []string{"new"}}, b)
	must.Do(t, err)
	made, _ := Parse("created"+Suffix, text)
	rest := score(made)
	if strings.Contains(rest, "history is left out") || strings.Contains(rest, "true becomes false") {
		t.Errorf("%s\n%s", rest, text)
	}
}
