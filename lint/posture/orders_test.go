package posture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// requires draws requirements of policy rules. They always have an opinion on timeouts and on the
// arguments that may vary.
func requires() *rapid.Generator[policy.Require] {
	return rapid.Custom(func(t *rapid.T) policy.Require {
		of := func(what string, list ...string) string { return rapid.SampledFrom(list).Draw(t, what) }
		r := policy.Require{
			OnTimeout: policy.Timeout(of("timeout", "deny", "escalate", "approve")),
			Within:    rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "within"),
			Grants:    policy.Grants{Bounds: []policy.Bound{}},
		}
		for _, group := range []string{"g", "h"} {
			if n := rapid.IntRange(0, 2).Draw(t, group); n > 0 {
				s := policy.Stage{Group: group, People: n}
				if rapid.Bool().Draw(t, "stand-in") {
					s.StandIns = []policy.StandIn{{Group: of("who", "e", "f"), After: time.Minute}}
				}
				r.Stages = append(r.Stages, s)
			}
		}

		for range rapid.IntRange(0, 2).Draw(t, "any_of") {
			one := func(name string) []policy.Stage {
				return []policy.Stage{{Group: of(name, "g", "h", "i"), People: rapid.IntRange(1, 2).Draw(t, name)}}
			}
			r.AnyOf = append(r.AnyOf, policy.AnyOf{one("alternative"), one("other")})
		}
		if rapid.Bool().Draw(t, "reason") {
			r.Reason = policy.Reason{Required: true, Patterns: []string{of("pattern", "a", "b")}}
		}

		if rapid.Bool().Draw(t, "escalates") {
			r.Escalate = []policy.Escalation{{
				After: rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "after"),
				To:    of("to", "e", "f"),
				May:   policy.May(of("may", "approve", "look")),
			}}
		}

		switch rapid.IntRange(0, 3).Draw(t, "grants") {
		case 0:
			r.Grants = policy.Grants{Forbid: true}
		case 1:
			r.Grants.Session = true
		case 2:
			r.Grants.MaxUses = rapid.IntRange(1, 3).Draw(t, "uses")
			r.Grants.Bounds = append(r.Grants.Bounds, policy.Bound{
				Path: of("path", "k", "l"),
				Kind: policy.BoundKind(of("kind", "at_most", "below", "words")),
			})
		}

		if rapid.Bool().Draw(t, "redacts") {
			r.Arguments.Redact = []string{of("redact", "k", "l")}
			r.Arguments.ForbidHidden = rapid.Bool().Draw(t, "hidden")
		}
		if rapid.IntRange(0, 5).Draw(t, "nothing") == 0 {
			return policy.Require{}
		}
		return r.Join(policy.Require{})
	})
}

func protections() *rapid.Generator[Protection] {
	return rapid.Custom(func(t *rapid.T) Protection {
		p := Protection{
			Require: requires().Draw(t, "require"),
			All:     rapid.IntRange(0, 4).Draw(t, "all") == 0,
			Names: rapid.SliceOfDistinct(
				rapid.SampledFrom([]string{"a", "b", "c"}),
				rapid.ID[string],
			).Draw(t, "names"),
			Word: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "word"),
			Step: rapid.IntRange(0, 2).Draw(t, "step"),
		}
		if n := rapid.Int64Range(0, 3).Draw(t, "limit"); n > 0 {
			p.Limit = &n
		}
		return p
	})
}

// TestOrdersAreOrders checks that every aspect's order is reflexive, antisymmetric and transitive.
func TestOrdersAreOrders(t *testing.T) {
	mirror := map[Order]Order{
		Same:         Same,
		Tighter:      Looser,
		Looser:       Tighter,
		Incomparable: Incomparable,
	}
	for _, a := range Aspects() {
		seen := map[Order]int{}
		rapid.Check(t, func(t *rapid.T) {
			x, y := protections().Draw(t, "x"), protections().Draw(t, "y")
			z := protections().Draw(t, "z")
			if got := a.Compare(x, x); got != Same {
				t.Fatalf("%s of one: %v", a.Name, got)
			}
			xy, yz := a.Compare(x, y), a.Compare(y, z)
			xz := a.Compare(x, z)
			seen[xy]++
			if back := a.Compare(y, x); back != mirror[xy] {
				t.Fatalf("%s: %v there, %v back", a.Name, xy, back)
			}
			for _, way := range []Order{Tighter, Looser, Same} {
				along := func(o Order) bool { return o == Same || o == way }
				if along(xy) && along(yz) && (!along(xz) || (xy == way || yz == way) && xz != way) {
					t.Fatalf("%s: %v, %v, but %v", a.Name, xy, yz, xz)
				}
			}
		})
		for _, o := range []Order{Same, Tighter, Looser} {
			if unordered := strings.HasPrefix(a.Tighter, "none: "); unordered && o != Same {
				if seen[o] > 0 || seen[Incomparable] == 0 {
					t.Errorf("%s orders nothing: %v", a.Name, seen)
				}
			} else if seen[o] == 0 {
				t.Errorf("%s: nothing drawn is %v", a.Name, o)
			}
		}
	}
}

// TestAspectsAreTheLattice checks that a requirement is at least as tight as another in every
// aspect exactly if the lattice of policies says so. Two cases are not in the lattice: bounds
// without an opinion, and an unspecified timeout, which is tighter than approval by timeout.
func TestAspectsAreTheLattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := requires().Draw(t, "x"), requires().Draw(t, "y")
		if x.OnTimeout == "" || y.OnTimeout == "" {
			return
		}
		if effective(x).OnTimeout == "" || effective(y).OnTimeout == "" {
			return
		}
		tighter := true
		for _, a := range demandAspects() {
			if o := a.Compare(Protection{Require: x}, Protection{Require: y}); o != Same && o != Tighter {
				tighter = false
			}
		}

		if want := policy.Tighter(y, x); tighter != want {
			t.Fatalf("%+v\n%+v\ntighter in every aspect: %v, in the lattice: %v", x, y, tighter, want)
		}
	})
}

// TestJoiningNeverLoosens excludes only requirements that approve by timeout.
func TestJoiningNeverLoosens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := requires().Draw(t, "x"), requires().Draw(t, "y")
		for _, a := range demandAspects() {
			joined := x.Join(y)
			if x.Grants.Bounds == nil && len(joined.Grants.Bounds) > 0 {
				joined.Grants.Bounds = []policy.Bound{} // as plans join a rule of an agent's file with a policy's
			}
			o := a.Compare(Protection{Require: x}, Protection{Require: joined})
			if approves := a.Name == "on_timeout" && y.OnTimeout == policy.TimeoutApprove; o != Same &&
				o != Tighter && !approves {
				t.Fatalf("%s: %+v joined with %+v is %v", a.Name, x, y, o)
			}
		}
	})
}

// TestMorePoliciesNeverLoosen checks that adding a policy is never reported as loosening.
func TestMorePoliciesNeverLoosen(t *testing.T) {
	for seed := range uint64(30) {
		d := dice{rand.New(rand.NewPCG(seed, 17))}
		opt := d.options(t)
		opt.AllowTimeoutApprove = false
		space, policies := d.space(), d.policies()
		more := append(slices.Clone(policies), policyText("more", d.rule(0), d.rule(1)))
		report := NewReport(Compare(
			&Side{Plan: planOf(t, opt, space, policies...)},
			&Side{Plan: planOf(t, opt, space, more...)},
		))
		if !report.Verdict.Safe() {
			t.Fatalf(
				"seed %d: %s\n%s\n%s\n%+v",
				seed,
				report.Verdict,
				space,
				strings.Join(more, "\n"),
				report.Changes,
			)
		}

		back := NewReport(Compare(
			&Side{Plan: planOf(t, opt, space, more...)},
			&Side{Plan: planOf(t, opt, space, policies...)},
		))
		if back.Verdict == VerdictTightens || back.Verdict == Mixed {
			t.Fatalf("seed %d: back it %s\n%+v", seed, back.Verdict, back.Changes)
		}
	}
}

// TestEverySideIsEquivalentToItself also checks that there are no changes.
func TestEverySideIsEquivalentToItself(t *testing.T) {
	for seed := range uint64(30) {
		d := dice{rand.New(rand.NewPCG(seed, 19))}
		opt := d.options(t)
		space, policies := d.space(), d.policies()
		one, other := &Side{Plan: planOf(t, opt, space, policies...)}, &Side{Plan: planOf(t, opt, space, policies...)}
		if report := NewReport(Compare(one, other)); report.Verdict != Equivalent || len(report.Changes) > 0 {
			t.Fatalf("seed %d: %+v", seed, report)
		}
	}
}

// told returns the changes as text, one per line.
func told(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		target := strings.TrimSpace(strings.Join([]string{c.Kind, c.Server, c.Agent, c.Tool, c.Skill}, " "))
		fmt.Fprintf(
			&b,
			"%s: %s %s: %s → %s",
			strings.Join(strings.Fields(target), " "),
			c.Aspect,
			c.Effect,
			c.From,
			c.To,
		)
		if c.Region != "" {
			fmt.Fprintf(&b, ": %s", c.Region)
		}
		if c.Why != "" {
			fmt.Fprintf(&b, " [%s]", c.Why)
		}
		b.WriteString("\n")
	}

	return b.String()
}

func tools(list string) string { return "{local_tools: [" + list + "]}" }

// TestWhatCompareTells has one row for each kind of change.
func TestWhatCompareTells(t *testing.T) {
	const trade = "{alias: trade, approval: {condition: [{args_match: {%s}}]}}"
	gated := func(matchers string) string { return tools(fmt.Sprintf(trade, matchers)) }
	rule := func(text string) string {
		return policyText("p", "{id: r, match: {targets: [trade]}, "+text+"}")
	}
	for name, c := range map[string]struct {
		old, new       string
		oldPol, newPol []string
		verdict        Verdict
		want           string
	}{
		"a higher bound": {
			old: gated("amount: {gt: 8000}"), new: gated("amount: {gt: 10000}"), verdict: VerdictLoosens,
			want: "tool trade: outcome loosens: ask → allow: 8000 < amount ≤ 10000\n",
		},
		"a lower bound": {
			old: gated("amount: {gt: 8000}"), new: gated("amount: {gte: 8000}"), verdict: VerdictTightens,
			want: "tool trade: outcome tightens: allow → ask: amount = 8000\n",
		},
		"another place": {
			old: gated("amount: {gt: 8}"), new: gated("price: {gt: 8}"), verdict: Mixed,
			want: "tool trade: outcome loosens: ask → allow: (amount > 8 or amount is no number) and price ≤ 8\n" +
				"tool trade: outcome tightens: allow → ask: (price > 8 or price is no number) and amount ≤ 8\n",
		},
		"a tool more": {
			old: tools("{alias: a}"), new: tools("{alias: a}, {alias: b, approval: true}"), verdict: VerdictLoosens,
			want: "tool b: outcome loosens: deny → ask: every call\n",
		},
		"an open server": {
			old: "{mcp_servers: [{alias: s, allowed_tools: [{name: a}]}]}", new: "{mcp_servers: [{alias: s}]}",
			verdict: VerdictLoosens,
			want: "mcp_tool s: allow_list loosens: mcp_tool s: a → mcp_tool s: every name\n" +
				"mcp_tool s *: outcome loosens: deny → allow: every call (tools that neither side names)\n",
		},
		"names that globs tell apart": {
			old: "{mcp_servers: [{alias: s}]}", new: "{mcp_servers: [{alias: s}]}",
			newPol:  []string{policyText("p", `{id: r, match: {targets: ["drop_*", "*_all"]}, approval: true}`)},
			verdict: VerdictTightens,
			want: "mcp_tool s *: outcome tightens: allow → ask: every call (tools that match \"*_all\" and that neither " +
				"side names)\n" +
				"mcp_tool s *: outcome tightens: allow → ask: every call (tools that match \"drop_*\" and that neither side " +
				"names)\n" +
				"mcp_tool s *: outcome tightens: allow → ask: every call (tools that match \"*_all\" and \"drop_*\" and that " +
				"neither side names)\n",
		},
		"an annotation": {
			old: tools("{alias: trade}"), new: tools("{alias: trade}"), verdict: VerdictTightens,
			newPol: []string{policyText("p", "{id: r, match: {annotations: {readOnlyHint: true}}, approval: true}")},
			want:   "tool trade: outcome tightens: allow → ask: every call (with readOnlyHint: true)\n",
		},
		"more people": {
			old: tools("{alias: trade}"), new: tools("{alias: trade}"), verdict: VerdictTightens,
			oldPol: []string{rule("approval: true, require: {stages: [{group: risk, people: 1}]}")},
			newPol: []string{rule("approval: true, require: {stages: [{group: risk, people: 2}], within: 30m}")},
			want: "tool trade: stages tightens: 1 of risk → 2 of risk: every call\n" +
				"tool trade: within tightens: no deadline → 30m: every call\n",
		},
		"another group": {
			old: tools("{alias: trade}"), new: tools("{alias: trade}"), verdict: VerdictUndecided,
			oldPol: []string{rule("approval: true, require: {stages: [{group: risk, people: 1}]}")},
			newPol: []string{rule("approval: true, require: {stages: [{group: legal, people: 1}]}")},
			want: "tool trade: stages undecided: 1 of risk → 1 of legal: every call " +
				"[neither side demands all that the other does]\n",
		},
		"a message": {
			old: tools("{alias: trade, approval: {message_template: one}}"), verdict: Equivalent,
			new:  tools("{alias: trade, approval: {message_template: two}}"),
			want: "tool trade: message changes: \"one\" → \"two\": every call\n",
		},
		"a sub-agent behind the alias": {
			old: "{local_agents: [{alias: a, source: x.agf.yaml}]}", verdict: VerdictUndecided,
			new: "{local_agents: [{alias: a, source: y.agf.yaml}]}",
			want: "delegation a: delegation undecided: delegation a: file x.agf.yaml → delegation a: file y.agf.yaml " +
				"[what may be done there is not known from these files]\n",
		},
		"a sub-agent more": {
			old: "{local_agents: []}", new: "{local_agents: [{alias: a, source: y.agf.yaml, approval: true}]}",
			verdict: VerdictLoosens,
			want: "delegation a: delegation loosens: delegation a: absent → delegation a: file y.agf.yaml\n" +
				"delegation a: outcome loosens: deny → ask: every call\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := &Side{Plan: planOf(t, resolve.Options{}, c.old, c.oldPol...)}
			new := &Side{Plan: planOf(t, resolve.Options{}, c.new, c.newPol...)}
			report := NewReport(Compare(old, new))
			if got := told(report.Changes); report.Verdict != c.verdict || got != c.want {
				t.Errorf("%s, want %s\ngot:\n%swant:\n%s", report.Verdict, c.verdict, got, c.want)
			}
			if back := NewReport(Compare(new, old)); len(report.Changes) > 0 && len(back.Changes) == 0 {
				t.Error("the way back has no changes")
			}
		})
	}
}
