package policy_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

// requires draws requirements in normal form with few different words, so that groups, times and
// paths often coincide.
func requires() *rapid.Generator[policy.Require] {
	group := rapid.SampledFrom([]string{"risk", "desk", "audit"})
	moment := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(1, 3).Draw(t, "minutes")) * time.Minute
	})
	perhaps := func(g *rapid.Generator[time.Duration]) *rapid.Generator[time.Duration] {
		return rapid.OneOf(rapid.Just(time.Duration(0)), g)
	}
	standIn := rapid.Custom(func(t *rapid.T) policy.StandIn {
		return policy.StandIn{Group: group.Draw(t, "stand-in"), After: moment.Draw(t, "from")}
	})
	stage := rapid.Custom(func(t *rapid.T) policy.Stage {
		return policy.Stage{
			Group:    group.Draw(t, "group"),
			People:   rapid.IntRange(1, 3).Draw(t, "people"),
			StandIns: rapid.SliceOfN(standIn, 0, 2).Draw(t, "stand-ins"),
		}
	})
	escalation := rapid.Custom(func(t *rapid.T) policy.Escalation {
		return policy.Escalation{
			After: moment.Draw(t, "after"),
			To:    group.Draw(t, "to"),
			May:   rapid.SampledFrom([]policy.May{"", policy.MayApprove, policy.MayLook}).Draw(t, "may"),
		}
	})
	bound := rapid.SampledFrom(
		[]policy.Bound{{Path: "a", Kind: "at_most"}, {Path: "a", Kind: "at_least"}, {Path: "b", Kind: "at_most"}},
	)
	grants := rapid.OneOf(rapid.Just(policy.Grants{Forbid: true}), rapid.Custom(func(t *rapid.T) policy.Grants {
		return policy.Grants{
			Session: rapid.Bool().Draw(t, "session"),
			MaxAge:  perhaps(moment).Draw(t, "age"),
			MaxUses: rapid.IntRange(0, 3).Draw(t, "uses"),
			Bounds:  rapid.OneOf(rapid.Just([]policy.Bound(nil)), rapid.SliceOfN(bound, 0, 3)).Draw(t, "bounds"),
		}
	}))
	return rapid.Custom(func(t *rapid.T) policy.Require {
		return policy.Require{
			Stages:    rapid.SliceOfN(stage, 0, 3).Draw(t, "stages"),
			Within:    perhaps(moment).Draw(t, "within"),
			OnTimeout: rapid.SampledFrom([]policy.Timeout{"", "approve", "escalate", "deny"}).Draw(t, "on_timeout"),
			Escalate:  rapid.SliceOfN(escalation, 0, 3).Draw(t, "escalate"),
			Grants:    grants.Draw(t, "grants"),
			Arguments: policy.Arguments{
				Redact:       rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c.d"}), 1, 3).Draw(t, "redact"),
				ForbidHidden: rapid.Bool().Draw(t, "forbid hidden"),
			},
			AnyOf: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.AnyOf {
				return rapid.SliceOfN(rapid.SliceOfN(stage, 1, 2), 1, 3).Draw(t, "alternatives")
			}), 0, 2).Draw(t, "any_of"),
			Reason: rapid.SampledFrom([]policy.Reason{
				{}, {Required: true},
				{Required: true, Patterns: []string{"a"}}, {Required: true, Patterns: []string{"b"}},
			}).Draw(t, "reason"),
		}.Join(policy.Require{})
	})
}

func same(t *rapid.T, law string, a, b policy.Require) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("%s:\n%+v\n%+v", law, a, b)
	}
}

func holds(t *rapid.T, law string, ok bool) {
	t.Helper()
	if !ok {
		t.Fatal(law)
	}
}

// TestJoinIsALattice proves the laws that let policies be joined in any
// order, any number of times.
func TestJoinIsALattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := requires().Draw(t, "a")
		b := requires().Draw(t, "b")
		c := requires().Draw(t, "c")
		same(t, "commutative", a.Join(b), b.Join(a))
		same(t, "associative", a.Join(b).Join(c), a.Join(b.Join(c)))
		same(t, "idempotent", a.Join(a), a)
		same(t, "the zero value is the bottom", a.Join(policy.Require{}), a)
	})
}

// TestTighterIsAPartialOrder checks the order on its own, without Join.
func TestTighterIsAPartialOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := requires().Draw(t, "a")
		b := requires().Draw(t, "b")
		c := requires().Draw(t, "c")
		holds(t, "reflexive", policy.Tighter(a, a))
		if policy.Tighter(a, b) && policy.Tighter(b, a) {
			// An alternative that contains another one is printed, and changes nothing.
			a.AnyOf, b.AnyOf = nil, nil
			same(t, "antisymmetric", a, b)
		}
		if policy.Tighter(a, b) && policy.Tighter(b, c) {
			holds(t, "transitive", policy.Tighter(a, c))
		}
		holds(t, "nothing is looser than the zero value", policy.Tighter(a, policy.Require{}))
	})
}

// TestJoinIsTheLeastUpperBound checks that a join is as tight as both, and no tighter than
// necessary.
func TestJoinIsTheLeastUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := requires().Draw(t, "a")
		b := requires().Draw(t, "b")
		c := requires().Draw(t, "c")
		joined := a.Join(b)
		holds(t, "upper bound", policy.Tighter(joined, a) && policy.Tighter(joined, b))
		if policy.Tighter(c, a) && policy.Tighter(c, b) {
			holds(t, "least", policy.Tighter(c, joined))
		}
		ordered := policy.Tighter(a, b)
		above := a.Join(c)
		holds(t, "monotone", policy.Tighter(above.Join(b), joined))
		// The join also has the alternatives of b, which change nothing if a requires as much.
		same := policy.Tighter(a, joined)
		a.AnyOf, joined.AnyOf = nil, nil
		holds(t, "ordered exactly when the join is the tighter one", ordered == (same && reflect.DeepEqual(joined, a)))
	})
}

// TestRequireSurvivesJSON checks that a stored requirement equals the decided one, except that
// defaults become explicit.
func TestRequireSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := requires().Draw(t, "a")
		text, err := json.Marshal(a)
		must.Do(t, err)
		var back policy.Require
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		a.OnTimeout = a.Fallback()
		if a.Grants.Bounds == nil && !a.Grants.Forbid {
			a.Grants.Bounds = []policy.Bound{}
		}
		same(t, string(text), back, a)
	})
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ name, a, b, want string }{
		{
			"different groups are all required",
			`{"stages":[{"group":"risk","people":2}]}`,
			`{"stages":[{"group":"desk","people":1}]}`,
			`{"stages":[{"group":"desk","people":1},{"group":"risk","people":2}],"on_timeout":"deny",` +
				`"arguments":"full"}`,
		},
		{
			"one group joins to the larger number",
			`{"stages":[{"group":"risk","people":2}]}`, `{"stages":[{"group":"risk","people":3}]}`,
			`{"stages":[{"group":"risk","people":3}],"on_timeout":"deny","arguments":"full"}`,
		},
		{
			"the shortest deadline, and none is the longest",
			`{"within":"30m"}`, `{"on_timeout":"escalate"}`,
			`{"within":"30m","on_timeout":"escalate","arguments":"full"}`,
		},
		{
			"deny over approve",
			`{"on_timeout":"approve"}`,
			`{"on_timeout":"deny"}`,
			`{"on_timeout":"deny","arguments":"full"}`,
		},
		{
			"the earliest escalation to each group",
			`{"escalate":[{"after":"20m","to":"leads"},{"after":"5m","to":"on-call"}]}`,
			`{"escalate":[{"after":"10m","to":"leads"}]}`,
			`{"on_timeout":"deny","escalate":[{"after":"5m","to":"on-call"},{"after":"10m","to":"leads"}],` +
				`"arguments":"full"}`,
		},
		{
			"only whom both rules call in stands in for a group that both name, from the later time on",
			`{"stages":[{"group":"risk","people":2,"stand_ins":[{"after":"5m","group":"leads"},{"after":"5m",` +
				`"group":"desk"}]}]}`,
			`{"stages":[{"group":"risk","people":1,"stand_ins":[{"after":"9m","group":"leads"}]}]}`,
			`{"stages":[{"group":"risk","people":2,"stand_ins":[{"after":"9m","group":"leads"}]}],` +
				`"on_timeout":"deny","arguments":"full"}`,
		},
		{
			"stand-ins of one rule do not reach another one's stages",
			`{"stages":[{"group":"risk","people":2}]}`,
			`{"stages":[{"group":"desk","people":1,"stand_ins":[{"after":"5m","group":"leads"}]}]}`,
			`{"stages":[{"group":"desk","people":1,"stand_ins":[{"after":"5m","group":"leads"}]},{"group":"risk",` +
				`"people":2}],"on_timeout":"deny","arguments":"full"}`,
		},
		{
			"whom one rule calls in to look stands in nowhere",
			`{"stages":[{"group":"risk","people":2,"stand_ins":[{"after":"5m","group":"leads"}]}],` +
				`"escalate":[{"after":"5m","to":"leads"}]}`,
			`{"escalate":[{"after":"9m","to":"leads","may":"look"}]}`,
			`{"stages":[{"group":"risk","people":2}],"on_timeout":"deny","escalate":[{"after":"5m","to":"leads",` +
				`"may":"look"}],"arguments":"full"}`,
		},
		{
			"what one rule does not let vary must not vary",
			`{"grants":{"bounds":[{"path":"amount","kind":"at_most"},{"path":"fee","kind":"at_most"}]}}`,
			`{"grants":{"max_uses":3,"bounds":[{"path":"amount","kind":"at_most"}]}}`,
			`{"on_timeout":"deny","grants":{"max_uses":3,"bounds":[{"path":"amount","kind":"at_most"}]},` +
				`"arguments":"full"}`,
		},
		{
			"a rule that names no bound lets nothing vary",
			`{"grants":{"bounds":[{"path":"amount","kind":"at_most"}]}}`,
			`{"within":"1h"}`,
			`{"within":"1h","on_timeout":"deny","arguments":"full"}`,
		},
		{
			"one rule that forbids approving hidden values is enough",
			`{"arguments":{"redact":["a"]}}`, `{"arguments":{"redact":["b"],"approve_hidden":false}}`,
			`{"on_timeout":"deny","arguments":{"redact":["a","b"],"approve_hidden":false}}`,
		},
		{
			"a session grant that is bounded too",
			`{"grants":"session"}`, `{"grants":{"max_age":"8h","max_uses":20}}`,
			`{"on_timeout":"deny","grants":{"session":true,"max_age":"8h","max_uses":20},"arguments":"full"}`,
		},
		{
			"forbid beats every bound",
			`{"grants":{"max_uses":1}}`,
			`{"grants":"forbid"}`,
			`{"on_timeout":"deny","grants":"forbid","arguments":"full"}`,
		},
		{
			"everything that anybody hides is hidden",
			`{"arguments":{"redact":["token","a.b"]}}`, `{"arguments":{"redact":["token"]}}`,
			`{"on_timeout":"deny","arguments":{"redact":["a.b","token"]}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(parseRequire(t, c.a).Join(parseRequire(t, c.b)))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func parseRequire(t *testing.T, text string) policy.Require {
	t.Helper()
	var q policy.Require
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// TestJoinSharesNothing checks that a joined requirement stays the same if its parts are modified.
func TestJoinSharesNothing(t *testing.T) {
	a := parseRequire(t, `{"stages":[{"group":"risk","people":2}],"arguments":{"redact":["b","a"]}}`)
	joined := a.Join(policy.Require{})
	joined.Stages[0].People, joined.Arguments.Redact[0] = 1, "x"
	if a.Stages[0].People != 2 || a.Arguments.Redact[0] != "a" {
		t.Errorf("a changed: %+v", a)
	}
}

func TestUnknownTimeoutIsTheStrictest(t *testing.T) {
	joined := policy.Require{OnTimeout: "procede"}.Join(policy.Require{OnTimeout: "approve"})
	if joined.OnTimeout != policy.TimeoutDeny {
		t.Errorf("got %q", joined.OnTimeout)
	}
}

func TestRequireIsZero(t *testing.T) {
	if !(policy.Require{}).IsZero() {
		t.Error("the zero value is not zero")
	}
	for _, text := range []string{
		`{"stages":[{"group":"a","people":1}]}`, `{"within":"1m"}`, `{"on_timeout":"deny"}`,
		`{"escalate":[{"after":"1m","to":"a"}]}`, `{"grants":"forbid"}`, `{"arguments":{"redact":["a"]}}`,
	} {
		if parseRequire(t, text).IsZero() {
			t.Errorf("%s is zero", text)
		}
	}
}

// TestRequireRefusesJSON checks that a stored requirement that is not understood is not read as a
// weaker one.
func TestRequireRefusesJSON(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                                  "null says nothing",
		`[]`:                                    "array",
		`{"stage":[]}`:                          `unknown field "stage"`,
		`{"within":30}`:                         "within",
		`{"within":"30"}`:                       `"30" is no duration`,
		`{"within":"0s"}`:                       "shorter than a second",
		`{"within":"9000h"}`:                    "longer than a year",
		`{"on_timeout":"proceed"}`:              `unknown on_timeout "proceed"`,
		`{"stages":[{"group":"","people":1}]}`:  "at least one person",
		`{"stages":[{"group":"a","people":0}]}`: "at least one person",
		`{"escalate":[{"to":"a"}]}`:             "needs after and to",
		`{"escalate":[{"after":"1m","to":"a","may":"run"}]}`:                "may approve or look",
		`{"stages":[{"group":"a","people":1,"stand_ins":[{"group":"b"}]}]}`: "needs after and group",
		`{"grants":{"bounds":[{"path":"a","kind":"any"}]}}`:                 "words or any_text",
		`{"grants":{"bounds":[]}}`:                                          "with bounds",
		`{"escalate":[{"after":"1m","of":1}]}`:                              `unknown field "of"`,
		`{"grants":"never"}`:                                                "grants",
		`{"grants":{}}`:                                                     "with bounds",
		`{"grants":null}`:                                                   "with bounds",
		`{"grants":{"max_uses":-1}}`:                                        "with bounds",
		`{"grants":{"uses":1}}`:                                             `unknown field "uses"`,
		`{"arguments":"none"}`:                                              "arguments",
		`{"arguments":{"redact":[]}}`:                                       "redact",
		`{"arguments":{"show":[]}}`:                                         `unknown field "show"`,
	} {
		var q policy.Require
		err := json.Unmarshal([]byte(text), &q)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
