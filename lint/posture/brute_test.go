package posture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// These tests draw small agents and policies, and compare the result of Compare with the decisions
// of both plans for every call of a small domain.

// dice draws random agents and policies. The same seed draws the same ones.
type dice struct{ *rand.Rand }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func (d dice) matcher() string {
	return pick(d, "1", `"x"`, "true", "{gt: 1}", "{gte: 1, lt: 2}", `{ne: "x"}`, `{in: ["x", 2]}`, `{not_in: ["x"]}`,
		"{pattern: '^x'}", "{pattern: 'y$'}", "{}", "{lte: 1}", "{gte: 2}")
}

func (d dice) groups(keys []string) string {
	var groups []string
	for range 1 + d.IntN(2) {
		var tests []string
		for _, i := range d.Perm(len(keys))[:d.IntN(3)] {
			tests = append(tests, keys[i]+": "+d.matcher())
		}
		groups = append(groups, "{args_match: {"+strings.Join(tests, ", ")+"}}")
	}

	return "[" + strings.Join(groups, ", ") + "]"
}

func (d dice) condition(keys []string) string {
	return "{condition: " + d.groups(keys) + pick(
		d,
		"",
		"",
		", message_template: m1",
		", message_template: 'm {{tool_args.k}}'",
		", message_template: 'm {{ tool_args.k }}'",
	) + "}"
}

func (d dice) approval(keys []string) string {
	switch d.IntN(5) {
	case 0:
		return "true"
	case 1:
		return "false"
	}

	return d.condition(keys)
}

func (d dice) maybe(field string, text func() string) string {
	if d.one(3) {
		return ""
	}
	return ", " + field + ": " + text()
}

var (
	argKeys  = []string{"k", "l", "parent.input.k"}
	pathKeys = []string{"parent.input.k", "parent.input.l", "k"}
)

func (d dice) names(write func(name string) string) string {
	var list []string
	for _, n := range []string{"a", "ab"} {
		if !d.one(4) {
			list = append(list, write(n))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// space draws an action space.
func (d dice) space() string {
	args, paths := func() string { return d.approval(argKeys) }, func() string { return d.approval(pathKeys) }
	allow := func(key string) func() string {
		return func() string {
			return d.names(func(n string) string { return "{" + key + ": " + n + d.maybe("approval", args) + "}" })
		}
	}
	tool := func(n string) string { return "{alias: " + n + d.maybe("approval", args) + "}" }
	return "{local_tools: " + d.names(tool) +
		",\n  mcp_servers: [{alias: s, server_ref: one" + d.maybe("approval", args) + d.maybe(
		"allowed_tools",
		allow("name"),
	) + "}]" +
		",\n  local_agents: [{source: x.agf.yaml, alias: a" + d.maybe("approval", paths) + "}]" +
		",\n  remote_agents: [{alias: " + pick(d, "a", "r") + d.maybe("approval", paths) +
		d.maybe("allowed_skills", allow("id")) + "}]}"
}

func (d dice) rule(id int) string {
	var match []string
	if d.one(3) {
		match = append(match, "targets: ["+pick(d, "a", "a*", `"*b"`)+"]")
	}
	if d.one(4) {
		match = append(match, "kinds: ["+pick(d, "tool", "mcp_tool", "skill", "delegation")+"]")
	}
	if d.one(5) {
		match = append(match, "servers: ["+pick(d, "s", "r", `"*"`)+"]")
	}
	if d.one(4) {
		match = append(match, "annotations: {"+pick(d, "destructiveHint: true", "readOnlyHint: false", "x: true")+"}")
	}

	if d.one(8) {
		match = append(match, "takes: ["+pick(d, "k", "l", "k, l")+"]")
	}
	if d.one(8) {
		match = append(match, "server_refs: ["+pick(d, "one", `"*"`)+"]")
	}
	if d.one(6) {
		match = append(match, "except: {"+pick(d, "targets: [a]", "kinds: [mcp_tool]", "server_refs: [one]",
			"annotations: {readOnlyHint: true}", "targets: [a], annotations: {x: true}")+"}")
	}

	text := "{id: r" + strconv.Itoa(id) + ", match: {" + strings.Join(match, ", ") + "}"
	when := ""
	if d.one(3) {
		when = ", when: " + d.groups(argKeys)
	}
	if d.one(6) {
		text += ", deny: no" + when
		if when != "" && d.one(2) {
			text += ", unknown: ask, require: {" + d.require() + "}"
		}
		return text + "}"
	}
	text += when
	approval := "true"
	if !d.one(4) {
		approval = d.condition(argKeys)
	}
	text += ", approval: " + approval
	if d.one(2) {
		text += ", require: {" + d.require() + "}"
	}
	return text + "}"
}

func (d dice) require() string {
	parts := []string{"stages: [{group: " + pick(d, "g", "h") + ", people: " + strconv.Itoa(1+d.IntN(2)) + "}]"}
	if d.one(2) {
		parts = append(parts, "within: "+pick(d, "30m", "1h"), "on_timeout: "+pick(d, "deny", "escalate", "approve"),
			"escalate: [{after: "+pick(d, "5m", "10m")+", to: "+pick(d, "e", "f")+"}]")
	}

	if d.one(2) {
		parts = append(parts, "grants: "+pick(d, "forbid", "session", "{max_age: 1h}",
			"{max_uses: 3, bounds: [{path: k, kind: at_most}]}"))
	}
	if d.one(3) {
		parts = append(parts, "arguments: {redact: ["+pick(d, "k", "l")+"]}")
	}
	return strings.Join(parts, ", ")
}

func (d dice) policies() []string {
	var out []string
	for i := range d.IntN(3) {
		out = append(out, policyText("p"+strconv.Itoa(i), d.rule(0), d.rule(1)))
	}
	return out
}

func policyText(ref string, rules ...string) string {
	return "schema_version: \"1.1.0\"\npolicy_ref: " + ref + "\napplies: implicit\nrules:\n  - " + strings.Join(rules, "\n  - ") + "\n"
}

func agentText(space string) string {
	return "schema_version: \"1.0.0\"\nmetadata: {id: desk, name: D, version: \"1.0.0\", description: D}\n" +
		"interface: {input: {type: object}, output: {type: object}}\n" +
		"execution_policy: {id: agf.react, config: {instructions: T., model: any}}\naction_space:\n  " + space + "\n"
}

// decisions draws a decisions.yaml, with facts of command lines if derived
// is true.
func (d dice) decisions(derived bool) string {
	var fields, readings []string
	add := func(list *[]string, in int, field string, words ...string) {
		if d.one(in) {
			*list = append(*list, field+": "+pick(d, words...))
		}
	}
	strict := !d.one(3)
	if !strict {
		add(&readings, 2, "on_missing", "ask", "no_match")
		add(&readings, 2, "on_mismatch", "ask", "no_match")
	}
	add(&readings, 6, "anchor", "unanchored", "full")
	add(&readings, 6, "trim", "raw_and_trimmed", "raw_only")
	add(&readings, 4, "empty_allow_list", "as_absent")
	add(&readings, 4, "remote_approval", "skill_replaces")
	fields = append(fields, "semantics: {"+strings.Join(readings, ", ")+"}")
	add(&fields, 3, "approve_on_timeout", "true", "true", "false")
	add(&fields, 4, "undeclared", "ask")
	add(&fields, 4, "trusted_servers", "[s]", "[s, r]", `["*"]`)
	add(&fields, 6, "case_sensitive_arguments", "[tool a]", "[mcp_tool s/a, tool ab]")
	add(&fields, 6, "replace_permissions", "true", "false")
	add(&fields, 6, "permit_age", "1m", "1h")
	add(&fields, 6, "grants", "[{target: tool a, ignored: [n]}]",
		"[{target: tool a, ignored: [n, o], bounds: [{path: m, kind: words}]}]",
		"[{target: mcp_tool s/a, bounds: [{path: k, kind: at_most}, {path: k, kind: below}]}]")
	if strict && derived {
		add(&fields, 10, "derived", "[{target: tool a, from: k, as: shell}]",
			"[{target: mcp_tool s/a, from: l, as: shell, listed: [x]}]")
	}

	return "{" + strings.Join(fields, ", ") + "}"
}

// config reads a decisions.yaml.
func config(t testing.TB, text string) *resolve.Config {
	t.Helper()
	c, findings := resolve.ParseConfig("decisions.yaml", []byte(text))
	if c == nil {
		t.Fatalf("%s\n%v", text, findings)
	}
	return c
}

func (d dice) options(t testing.TB) resolve.Options { return config(t, d.decisions(false)).Options() }

func planOf(t testing.TB, opt resolve.Options, space string, policies ...string) *resolve.Plan {
	t.Helper()
	return sideText(t, opt, agentText(space), policies...).Plan
}

func sideText(t testing.TB, opt resolve.Options, text string, policies ...string) *Side {
	t.Helper()
	return compiled(t, opt, agentOf(t, text), setOfTexts(t, policies))
}

func agentOf(t testing.TB, text string) *schema.Agent {
	t.Helper()
	agent, findings := schema.Parse("agent.agf.yaml", []byte(text))
	if agent == nil {
		t.Fatalf("%s\n%v", text, findings)
	}
	return agent
}

func setOfTexts(t testing.TB, policies []string) *policy.Set {
	t.Helper()
	var all []*policy.Policy
	for i, text := range policies {
		p, findings := policy.Parse("p"+strconv.Itoa(i)+".policy.yaml", []byte(text))
		if p == nil {
			t.Fatalf("%s\n%v", text, findings)
		}
		all = append(all, p)
	}
	set, _ := policy.NewSet(all...)

	return set
}

func compiled(t testing.TB, opt resolve.Options, agent *schema.Agent, set *policy.Set) *Side {
	t.Helper()
	plan, err := resolve.Compile(agent, set, opt)
	if plan == nil {
		t.Fatal(err)
	}
	return &Side{Plan: plan}
}

// domain lists the documents that brute force tries.
func domain() []string {
	some := []string{"", "null", "true", "1", "1.99999999999999999999", "2", `"x"`, `"zy "`}
	var out []string
	for _, k := range some {
		for _, l := range some {
			var members []string
			for i, v := range []string{k, l} {
				if v != "" {
					members = append(members, `"`+[]string{"k", "l"}[i]+`":`+v)
				}
			}
			out = append(out, "{"+strings.Join(members, ",")+"}")
		}
	}

	return out
}

func calls() []resolve.Call {
	var out []resolve.Call
	for _, n := range []string{"a", "ab", "x"} {
		out = append(
			out,
			resolve.Call{Kind: resolve.Tool, Tool: n},
			resolve.Call{Kind: resolve.MCPTool, Server: "s", Tool: n},
			resolve.Call{Kind: resolve.Skill, Agent: "r", Skill: n},
			resolve.Call{Kind: resolve.Skill, Agent: "a", Skill: n},
			resolve.Call{Kind: resolve.Delegation, Agent: n},
			resolve.Call{Kind: resolve.Delegation, Agent: n, Remote: resolve.RemoteYes},
		)
	}

	return out
}

// brute checks one pair of plans with all calls of the domain.
type brute struct {
	t         testing.TB
	seed      uint64
	old, new  *Side
	docs      []document
	undecided int
	changed   int
	// looser describes a call that is allowed more easily on the new side. It is empty if there is
	// none.
	looser string
	// tighter and loosened report whether there are calls with a stricter or a less strict outcome
	// on the new side.
	tighter, loosened bool
}

// document is a document of the domain with its text.
type document struct {
	text  string
	value value.Value
}

func (b *brute) fail(format string, args ...any) {
	b.t.Helper()
	b.t.Fatalf("seed %d: %s", b.seed, fmt.Sprintf(format, args...))
}

// target checks one target with one set of annotations and the parent's input, which may be empty
// for none.
func (b *brute) target(call resolve.Call, parent string) {
	c := newComparer(b.old, b.new)
	old, new := b.old.Plan.Target(&call), b.new.Plan.Target(&call)
	classes, ok := classesOf(old, new)
	if !ok {
		b.fail("too many annotations")
	}
	at := slices.IndexFunc(classes, func(class map[string]bool) bool {
		return metBy(old, class) == metBy(old, call.Annotations) && metBy(new, class) == metBy(new, call.Annotations)
	})
	p := pair{
		comparer: c,
		call:     call,
		old:      sideOf(*b.old, old, classes[at]),
		new:      sideOf(*b.new, new, classes[at]),
	}
	p.call.Annotations = classes[at]
	found := p.compare()
	facts := old.Derived() != nil || new.Derived() != nil // regions are of facts, which no call brings
	for _, f := range found {
		if f.Effect == Undecided && !facts && f.Why != "neither side demands all that the other does" {
			b.undecided++
			b.t.Logf("seed %d: %s is undecided: %s %s", b.seed, call.Target(), f.Aspect, f.Why)
			return
		}
	}

	b.changed += len(found)
	if parent != "" {
		call.ParentInput = resolve.Raw(parent)
	}
	parentDoc := value.Value{}
	if parent != "" {
		parentDoc = parsed(b.t, parent)
	}
	reads := p.readsParent()
	if !facts {
		b.odd(p, call, found)
	}
	found = slices.DeleteFunc(found, func(f Change) bool { return f.odd })
	found = slices.DeleteFunc(found, func(f Change) bool { return reads && f.world.NoParent != (parent == "") })
	docs := b.docs
	if !reads && !conditional(old) && !conditional(new) { // the same for each document: a few show it
		docs = docs[b.seed%8*8:][:8]
	}
	for _, doc := range docs {
		call.Args = resolve.Raw(doc.text)
		whole := doc.value
		if parent != "" {
			whole.Members = append(slices.Clip(whole.Members), value.Member{Key: "parent.input", Value: parentDoc})
		}
		shows := b.call(call)
		if !facts {
			b.told(call, whole, found, shows)
		}
	}
}

// conditional reports whether a rule of a target reads documents.
func conditional(t *resolve.Target) bool {
	return slices.ContainsFunc(t.Gates, func(g resolve.Gate) bool { return g.When != nil || g.Template != "" })
}

// odd checks a call whose arguments are no object: a difference in its outcome must be reported as
// a change.
func (b *brute) odd(p pair, call resolve.Call, found []Change) {
	call.Args = resolve.Raw("[]")
	old, new := b.old.Plan.Decide(&call), b.new.Plan.Decide(&call)
	told := slices.ContainsFunc(found, func(f Change) bool {
		return f.Aspect == outcomeAspect && f.From == old.Outcome.String() && f.To == new.Outcome.String()
	})
	if old.Outcome != new.Outcome && !told {
		b.fail("a list for arguments: %s → %s\n%+v", old.Outcome, new.Outcome, found)
	}
	odd := slices.ContainsFunc(found, func(f Change) bool { return f.odd && f.Aspect == outcomeAspect })
	if odd && old.Outcome == new.Outcome && !p.readsParent() {
		b.fail("a list for arguments: %s as before, and\n%+v", old.Outcome, found)
	}
}

func parsed(t testing.TB, text string) value.Value {
	t.Helper()
	doc, err := value.Parse([]byte(text), value.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// call decides one call on both sides and returns the differences by aspect.
func (b *brute) call(call resolve.Call) map[string]string {
	old, new := b.old.Plan.Decide(&call), b.new.Plan.Decide(&call)
	shows := map[string]string{}
	if old.Outcome != new.Outcome {
		shows[outcomeAspect] = old.Outcome.String() + " " + new.Outcome.String()
		if new.Outcome > old.Outcome {
			b.loosens(call, outcomeAspect)
			b.loosened = true
		} else {
			b.tighter = true
		}
	}
	if old.Outcome != resolve.Ask || new.Outcome != resolve.Ask {
		return shows
	}
	was, is := Protection{Require: valueOf(old.Require)}, Protection{Require: valueOf(new.Require)}
	for _, a := range demanded {
		if order := a.Compare(was, is); order != Same {
			shows[a.Name] = a.show(was) + " " + a.show(is)
			if order != Tighter {
				b.loosens(call, a.Name)
			}
		}
	}
	if old.Message != new.Message {
		shows[messageAspect] = ""
	}

	return shows
}

var demanded = demandAspects()

func (b *brute) loosens(call resolve.Call, aspect string) {
	if b.looser == "" {
		text, _ := call.JSON()
		b.looser = aspect + " of " + string(text)
	}
}

// told checks that the changes reported for a call are exactly its differences.
func (b *brute) told(call resolve.Call, doc value.Value, found []Change, want map[string]string) {
	got := map[string]string{}
	for _, f := range found {
		sameText := strings.ReplaceAll(f.From, " ", "") == strings.ReplaceAll(f.To, " ", "")
		if _, differs := want[messageAspect]; f.Aspect == messageAspect && sameText && !differs {
			continue // of another kind of call; the argument that shows it is missing
		}
		if f.region.Has(doc) {
			if _, twice := got[f.Aspect]; twice {
				b.fail("%s: two changes of %s", call.Args, f.Aspect)
			}
			got[f.Aspect] = f.From + " " + f.To
			if f.Aspect == messageAspect {
				got[f.Aspect] = ""
			}
		}
	}

	if !maps.Equal(got, want) {
		text, _ := call.JSON()
		b.fail("%s\nCompare says %v, the plans %v\n%+v", text, got, want, found)
	}
}

// verdict compares the verdict on the pair with the decided calls, and with the list of settings
// that loosen.
func (b *brute) verdict(fields []string) {
	report := NewReport(Compare(b.old, b.new))
	switch {
	case report.Verdict.Safe() && b.looser != "":
		b.fail("%s, but looser: %s\n%+v", report.Verdict, b.looser, report.Changes)
	case report.Verdict.Safe() && len(fields) > 0:
		b.fail("%s, but decisions.yaml loosens %q\n%+v", report.Verdict, fields, report.Changes)
	case b.tighter && (report.Verdict == Equivalent || report.Verdict == VerdictLoosens):
		b.fail("%s, but a call is denied or asked about that was not\n%+v", report.Verdict, report.Changes)
	case b.loosened && report.Verdict == VerdictUndecided && len(b.derived()) == 0:
		b.fail("undecided, but looser: %s\n%+v", b.looser, report.Changes)
	}
}

func (b *brute) derived() []resolve.Derived {
	return append(slices.Clip(b.old.Plan.Options().Derived), b.new.Plan.Options().Derived...)
}

// drawn is one side of a pair as text.
type drawn struct {
	config, space string
	policies      []string
}

// brutePair draws a pair of sides. Their decisions.yaml, agents and policies are each the same or
// different, independently.
func brutePair(d dice) (old, new drawn) {
	old = drawn{d.decisions(true), d.space(), d.policies()}
	new = old
	if !d.one(3) {
		new.config = d.decisions(true)
	}
	if d.one(2) {
		new.space = d.space()
	}
	if d.one(2) {
		new.policies = d.policies()
	}

	return old, new
}

// TestCompareAgreesWithBruteForce checks that every call of a small domain is in the region of
// exactly the changes that apply to it, and that the verdict agrees with all of them. ASSENT_PAIRS
// sets the number of pairs to draw and ASSENT_PAIRS_FROM the first one (CONTRIBUTING.md).
func TestCompareAgreesWithBruteForce(t *testing.T) {
	pairs, from := testtier.Count(120), 0
	if n, err := strconv.Atoi(os.Getenv("ASSENT_PAIRS")); err == nil {
		pairs = n
	}
	if n, err := strconv.Atoi(os.Getenv("ASSENT_PAIRS_FROM")); err == nil {
		from = n
	}
	var docs []document
	for _, text := range domain() {
		docs = append(docs, document{text, parsed(t, text)})
	}
	undecided, changed, configs := 0, 0, 0
	for seed := uint64(from); seed < uint64(from+pairs); seed++ {
		d := dice{rand.New(rand.NewPCG(seed, 13))}
		was, is := brutePair(d)
		if was.config != is.config {
			configs++
		}
		b := &brute{t: t, seed: seed, docs: docs}
		oldConfig, newConfig := config(t, was.config), config(t, is.config)
		agent, set := agentOf(t, agentText(was.space)), setOfTexts(t, was.policies)
		b.old = compiled(t, oldConfig.Options(), agent, set)
		if is.space != was.space {
			agent = agentOf(t, agentText(is.space))
		}
		if !slices.Equal(is.policies, was.policies) {
			set = setOfTexts(t, is.policies)
		}
		b.new = compiled(t, newConfig.Options(), agent, set)
		b.old.PermitAge, b.new.PermitAge = oldConfig.PermitAge, newConfig.PermitAge
		all := calls()
		for range 3 {
			call := pick(d, all...)
			call.Annotations = pick(
				d,
				nil,
				nil,
				map[string]bool{"destructiveHint": false},
				map[string]bool{"readOnlyHint": true, "x": false},
			)
			b.target(call, pick(d, "", "", "{}", `{"k":1}`, `{"k":"x","l":2}`, `{"k":null,"l":true}`))
		}
		if seed%8 == 0 {
			b.verdict(newConfig.Loosened(oldConfig))
		}

		undecided += b.undecided
		if changed += b.changed; (seed+1)%10_000 == 0 {
			t.Logf("%d pairs held, %d changes found", int(seed)+1-from, changed)
		}
	}

	t.Logf("%d pairs held from %d on, %d with another decisions.yaml, %d changes found", pairs, from, configs, changed)
	if undecided*1000 > 3*pairs || changed < pairs || configs*2 < pairs {
		t.Errorf("%d of %d targets were undecided, %d changes found, %d configurations differ",
			undecided, 3*pairs, changed, configs)
	}
}
