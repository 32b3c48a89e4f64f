package approval_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/value"
)

// entry is a leaf that a test can change.
type entry = map[string]any

func facts(e entry) map[string]any { return e["facts"].(map[string]any) }

// story returns the entries of a real service: a trade that two people approve after an edit, a
// standing approval that is used twice and then revoked, one run, and a late vote.
func story(t *testing.T) []entry {
	h := newHarness(t)
	h.people.set(func(d *directory) { d.groups["fay"] = []string{"risk"} })
	r := h.asked(tool("trade", `{"n":1}`))
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	h.vote(r, "cy", approval.Approve, approval.VoteNotEligible)
	works(h.edit(h.request(r.ID), "bob", `{"n":2}`))(t)
	h.pass(time.Minute)
	h.vote(h.request(r.ID), "fay", approval.Approve, approval.VoteApproved)
	works(h.consume(r, tool("trade", `{"n":2}`), "k"))(t)
	_, g := h.approved(tool("pay", `{}`), &approval.GrantOffer{MaxUses: 2, MaxAge: time.Hour, Session: true})
	h.covers(tool("pay", `{}`))
	h.covers(tool("pay", `{}`))
	_, last := h.approved(tool("pay", `{"n":3}`), &approval.GrantOffer{})
	if _, err := h.s.Revoke(context.Background(), "t", last.ID, "ann", ""); err != nil || g == nil {
		t.Fatal(err)
	}
	h.vote(r, "dee", approval.Deny, approval.VoteNotEligible)
	h.vote(r, "ann", approval.Deny, approval.VoteConflicting)
	drift := h.asked(tool("drift", `{}`))
	h.pass(10 * time.Minute)
	h.tick(1)
	h.pass(15 * time.Minute)
	if h.tick(3); drift == nil {
		t.Fatal()
	}
	return h.leaves()
}

func audit(t *testing.T, entries []entry) *approval.Auditor {
	t.Helper()
	var a approval.Auditor
	for i, e := range entries {
		v, err := value.FromGo(e, value.DefaultLimits())
		must(t, err)
		leaf, err := ledger.ParseLeaf(v.AppendCanonical(nil))
		must(t, err)
		a.Add(int64(i), leaf)
	}

	return &a
}

func TestAuditOfWhatHappened(t *testing.T) {
	a := audit(t, story(t))
	if p := a.Problems(); len(p) != 0 {
		t.Error(p)
	}
	got := a.Summary()
	if got.Requests != 4 || got.Votes != 5 || got.Grants != 2 || got.GrantUses != 2 ||
		got.States[approval.Consumed] != 1 ||
		got.States[approval.Expired] != 3 ||
		got.Problems != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAuditFindsWhatCannotHappen(t *testing.T) {
	whole := story(t)
	joined := func(runtime, person string) func([]entry) []entry {
		return func(all []entry) []entry {
			i := nth(all, "vote_counted", 0)
			e := maps.Clone(all[i])
			e["type"] = "request_shared"
			e["actor"] = runtime
			e["facts"] = maps.Clone(facts(all[i]))
			facts(e)["joined"], facts(e)["person"] = true, person
			return slices.Insert(all, i, e)
		}
	}
	auditFinds(t, func() []entry { return copied(t, whole) }, map[string]forged{
		"consumed without an approval": {drop("request_approved", 0), "the request is pending by then"},
		"consumed twice":               {again("permit_consumed", 0), "the request is consumed by then"},
		"consumed another call":        {fact("permit_consumed", 0, "binding", "sha256:00"), "another call"},
		"consumed under other rules":   {fact("permit_consumed", 0, "plan", "x"), "under other rules"},
		"consumed too late":            {late("permit_consumed", 0), "the permit ended"},
		"a vote is missing":            {drop("vote_counted", 2), "there is no counted approval of this revision"},
		"too few people":               {fact("request_approved", 0, "by", []any{}), "not enough different people"},
		"the wrong group": {
			fact(
				"request_approved",
				0,
				"by",
				[]any{
					map[string]any{"person": "bob", "groups": []any{"risk"}},
					map[string]any{"person": "fay", "groups": []any{"support"}},
				},
			),
			"not enough different people",
		},
		"one person twice": {
			fact(
				"request_approved",
				0,
				"by",
				[]any{
					map[string]any{"person": "bob", "groups": []any{"risk"}},
					map[string]any{"person": "bob", "groups": []any{"risk"}},
				},
			),
			"not enough different people",
		},
		"votes of an older revision": {
			fact(
				"request_approved",
				0,
				"by",
				[]any{
					map[string]any{"person": "ann", "groups": []any{"risk"}},
					map[string]any{"person": "bob", "groups": []any{"risk"}},
				},
			),
			`approval of this revision by "ann"`,
		},
		"approved by silence": {fact("request_approved", 0, "cause", "timeout"), "nobody's silence"},
		"silence was too short": {change("request_approved", 3, func(e entry) {
			e["time"] = "2026-03-04T05:07:08.000000Z"
		}), "nobody's silence"},
		"the vote of one who asks too": {joined("bob", ""), "none of them has a vote"},
		"the vote of their person":     {joined("second", "bob"), "none of them has a vote"},
		"an owner's vote":              {actor("vote_counted", 0, "olga"), "none of them has a vote"},
		"the runtime's vote":           {actor("vote_counted", 0, "runner"), "none of them has a vote"},
		"the token's person votes":     {fact("request_opened", 0, "person", "bob"), "none of them has a vote"},
		"the principal's vote":         {actor("vote_counted", 0, "pat@acme"), "none of them has a vote"},
		"nobody's vote":                {actor("vote_counted", 0, ""), "none of them has a vote"},
		"an outsider's vote": {
			fact("vote_counted", 0, "groups", []any{"support"}), "in no group that is asked",
		},
		"a vote on what was hidden": {fact("vote_counted", 0, "shown_fully", false), "not shown fully"},
		"a vote on another call": {
			fact("vote_counted", 0, "seen", "sha256:0000000000000000"), "saw another call",
		},
		"a vote after the deadline": {late("vote_counted", 0), "the deadline was over"},
		"a vote twice": {func(all []entry) []entry {
			i := nth(all, "vote_counted", 0)
			return slices.Insert(all, i, all[i])
		}, "said so before"},
		"a vote after the end": {again("vote_counted", 2), "the request is consumed by then"},
		"no such answer":       {fact("vote_counted", 0, "verdict", "maybe"), "is no answer"},
		"a vote before the opening": {func(all []entry) []entry {
			all[0], all[1] = all[1], all[0]
			return all
		}, "no such request before"},
		"never opened":                  {drop("request_opened", 0), "no such request before"},
		"opened twice":                  {again("request_opened", 0), "opened before"},
		"opened without anybody to ask": {fact("request_opened", 0, "stages", []any{}), "nobody need agree"},
		"opened approved":               {fact("request_opened", 0, "state", "approved"), "begins pending"},
		"an edit that asks fewer": {
			fact("request_edited", 0, "stages", []any{map[string]any{"group": "risk", "people": 1}}),
			"only ask more people",
		},
		"an edit that takes longer": {
			fact("request_edited", 0, "deadline", "2027-01-01T00:00:00.000000Z"),
			"only ask more people, sooner",
		},
		"an edit of something else": {
			fact("request_edited", 0, "from", "sha256:00"),
			"not an edit of the revision before",
		},
		"an owner's edit":         {actor("request_edited", 0, "olga"), "none of them may edit"},
		"expired before its time": {again("permit_expired", 0), "the request is expired by then"},
		"a permit that ended early": {
			fact("request_approved", 1, "expires", "2027-01-01T00:00:00.000000Z"),
			"the permit held until",
		},
		"a grant out of nothing":     {fact("grant_created", 0, "request", "apr_x"), "out of no request"},
		"a grant for another call":   {fact("grant_created", 0, "binding", "sha256:00"), "for another call"},
		"a grant under other rules":  {fact("grant_created", 0, "plan", "x"), "other rules"},
		"a grant twice":              {again("grant_created", 0), "made before"},
		"an unknown grant":           {drop("grant_created", 0), "no such standing approval"},
		"a grant used too often":     {fact("grant_created", 0, "max_uses", 1), "used more than 1 times"},
		"a use that is left out":     {drop("grant_used", 0), "miscounted"},
		"used after the end":         {late("grant_used", 1), "used after its end"},
		"used in another session":    {fact("grant_used", 0, "session", "s9"), "in another session"},
		"used under other rules":     {fact("grant_used", 0, "plan", "x"), "used under other rules"},
		"used for another principal": {fact("grant_used", 0, "principal", "x"), "another agent, target or principal"},
		"used for another tool": {
			fact("grant_used", 0, "target", "tool trade"),
			"another agent, target or principal",
		},
		"revoked twice": {again("grant_revoked", 0), "revoked before"},
		"a fact is missing": {change("grant_used", 0, func(e entry) {
			delete(facts(e), "uses")
		}), `the fact "uses" is missing`},
		"a fact of another kind": {
			fact("vote_counted", 0, "shown_fully", "true"),
			`the fact "shown_fully" is missing`,
		},
		"a state that is not its": {fact("vote_counted", 0, "state", "approved"), "it says that the request is"},
	})
}

func copied(t *testing.T, all []entry) (own []entry) {
	doc, err := json.Marshal(all)
	must(t, err)
	must(t, json.Unmarshal(doc, &own))
	return own
}

// forged is a manipulation of a ledger and the expected problem.
type forged struct {
	forge func([]entry) []entry
	want  string
}

// auditFinds checks that the audit finds each manipulation.
func auditFinds(t *testing.T, happened func() []entry, all map[string]forged) {
	t.Helper()
	for name, tt := range all {
		t.Run(name, func(t *testing.T) {
			a := audit(t, tt.forge(happened()))
			found := slices.ContainsFunc(a.Problems(), func(p approval.Problem) bool {
				return strings.Contains(p.String(), tt.want)
			})
			if !found || a.Summary().Problems != len(a.Problems()) {
				t.Errorf("got %v, want %s", a.Problems(), tt.want)
			}
		})
	}
}

// nth returns the index of the nth entry of a type.
func nth(all []entry, kind string, n int) int {
	for i, e := range all {
		if e["type"] == kind {
			if n == 0 {
				return i
			}
			n--
		}
	}

	panic("nothing of the kind happened: " + kind)
}

func drop(kind string, n int) func([]entry) []entry {
	return func(all []entry) []entry {
		i := nth(all, kind, n)
		return slices.Delete(all, i, i+1)
	}
}

func change(kind string, n int, do func(e entry)) func([]entry) []entry {
	return func(all []entry) []entry {
		do(all[nth(all, kind, n)])
		return all
	}
}

func again(kind string, n int) func([]entry) []entry {
	return func(all []entry) []entry { return append(all, all[nth(all, kind, n)]) }
}

func fact(kind string, n int, name string, v any) func([]entry) []entry {
	return change(kind, n, func(e entry) { facts(e)[name] = v })
}

func actor(kind string, n int, who string) func([]entry) []entry {
	return change(kind, n, func(e entry) { e["actor"] = who })
}

func late(kind string, n int) func([]entry) []entry {
	return change(kind, n, func(e entry) { e["time"] = "2027-01-01T00:00:00.000000Z" })
}

func TestAuditRevokedGrant(t *testing.T) {
	all := story(t)
	for i, e := range all {
		if e["type"] == "grant_revoked" { // revokes the first grant before its uses
			first := slices.IndexFunc(all, func(e entry) bool { return e["type"] == "grant_used" })
			e["subject"] = all[first]["subject"]
			all = slices.Insert(slices.Delete(all, i, i+1), first, e)
			break
		}
	}

	if p := audit(t, all).Problems(); len(p) != 2 || !strings.Contains(p[0].Text, "after it was revoked") {
		t.Errorf("got %v", p)
	}
}
