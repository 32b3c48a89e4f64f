package approval_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

// leaves returns what the service has recorded, in a form that a test can change.
func (h *harness) leaves() []entry {
	h.t.Helper()
	h.history()
	stored, err := h.store.Entries(context.Background(), "t", 0, 1000)
	must(h.t, err)
	out := make([]entry, len(stored))
	for i, s := range stored {
		must(h.t, json.Unmarshal(s.Leaf, &out[i]))
	}
	return out
}

// enquiries returns the entries of a question to a group that was answered, one to the user that
// was dismissed, and one that expired.
func enquiries(t *testing.T) []entry {
	h := newHarness(t)
	first := h.put("1", groups("support"))
	h.vote(first, "cy", approval.Choose, approval.VoteAnswered, index(1))
	h.vote(h.put("2"), "pat", approval.Dismiss, approval.VoteAnswered)
	third := h.put("3")
	h.pass(third.Within)
	h.tick(1)
	h.vote(third, "pat", approval.Choose, approval.VoteLate, index(0))
	return h.leaves()
}

func TestAuditOfQuestions(t *testing.T) {
	a := audit(t, enquiries(t))
	if got := a.Summary(); got.Problems != 0 || got.Requests != 3 || got.Votes != 2 ||
		got.States[approval.Answered] != 2 ||
		got.States[approval.Expired] != 1 {
		t.Errorf("got %+v, %v", got, a.Problems())
	}
}

// filledIn returns the entries of a form that one person filled in and of one that another person
// dismissed.
func filledIn(t *testing.T) []entry {
	h := newHarness(t)
	first := h.put("1", fills(seatForm), groups("support"))
	h.vote(first, "cy", approval.Submit, approval.VoteAnswered, data(`{"seat":"12a"}`))
	h.vote(h.put("2", fills(seatForm)), "pat", approval.Dismiss, approval.VoteAnswered)

	return h.leaves()
}

func TestAuditOfForms(t *testing.T) {
	if got := audit(t, filledIn(t)).Summary(); got.Problems != 0 || got.States[approval.Answered] != 2 {
		t.Errorf("got %+v", got)
	}
	for name, tt := range map[string]struct {
		kind string
		n    int
		fact string
		v    any
		want string
	}{
		"no fields":            {"request_opened", 0, "fields", 0, "a form has fields"},
		"a choice":             {"vote_counted", 0, "chosen", 0, "nothing is chosen"},
		"a chosen vote":        {"vote_counted", 0, "verdict", "choose", "nothing is chosen"},
		"not shown":            {"vote_counted", 0, "shown_fully", false, "not shown fully"},
		"a dismissal":          {"request_answered", 0, "dismissed", true, "no counted answer"},
		"a submission":         {"request_answered", 1, "dismissed", false, "no counted answer"},
		"the cause of choices": {"request_answered", 0, "cause", "choice", "is not the cause"},
		"an approval":          {"vote_counted", 0, "verdict", "approve", "is no answer"},
	} {
		all := filledIn(t)
		seen := 0
		for _, e := range all {
			if e["type"] == tt.kind {
				if seen == tt.n {
					facts(e)[tt.fact] = tt.v
				}
				seen++
			}
		}

		found := ""
		for _, p := range audit(t, all).Problems() {
			found += p.String() + "\n"
		}
		if !strings.Contains(found, tt.want) {
			t.Errorf("%s: got %s", name, found)
		}
	}

	forged := enquiries(t)
	for _, e := range forged {
		if e["type"] == "vote_counted" {
			facts(e)["verdict"] = "submit"
		}
	}
	if got := audit(t, forged).Summary(); got.Problems == 0 {
		t.Error("a choice was submitted, and nothing was found")
	}
}

func TestAuditFindsWhatCannotHappenToQuestions(t *testing.T) {
	// instead replaces the answer to the first question by another event.
	instead := func(kind, state string, more map[string]any) func([]entry) []entry {
		return change("request_answered", 0, func(e entry) {
			e["type"], facts(e)["state"] = kind, state
			maps.Copy(facts(e), more)
		})
	}
	auditFinds(t, func() []entry { return enquiries(t) }, map[string]forged{
		"answered by nobody":  {drop("vote_counted", 0), "no counted answer"},
		"answered by another": {actor("request_answered", 0, "bob"), "no counted answer"},
		"another choice":      {fact("request_answered", 0, "chosen", 0), "no counted answer"},
		"a choice beyond":     {fact("request_answered", 0, "chosen", 3), "there is no choice 3"},
		"a choice for a dismissal": {
			fact("request_answered", 0, "dismissed", true), "a dismissal picks the default",
		},
		"a dismissal for a choice":       {fact("request_answered", 1, "dismissed", false), "no counted answer"},
		"a dismissal of another default": {fact("request_answered", 1, "chosen", 0), "a dismissal picks the default"},
		"another cause":                  {fact("request_answered", 0, "cause", "votes"), "is not the cause"},
		"answered twice":                 {again("request_answered", 0), "is answered by then"},
		"answered in silence":            {fact("request_expired", 0, "cause", "timeout"), "there was time left"},
		"an outsider":                    {fact("vote_counted", 0, "groups", []any{"risk"}), "in no group"},
		"the runtime itself":             {actor("vote_counted", 1, "runner"), "none of them has a vote"},
		"an owner for a group":           {actor("vote_counted", 0, "olga"), "none of them has a vote"},
		"the user for a group":           {actor("vote_counted", 0, "pat@acme"), "none of them has a vote"},
		"not shown":                      {fact("vote_counted", 0, "shown_fully", false), "not shown fully"},
		"an approval":                    {fact("vote_counted", 0, "verdict", "approve"), "is no answer"},
		"a vote for another choice":      {fact("vote_counted", 0, "chosen", 2), "no counted answer"},
		"a vote for nothing": {change("vote_counted", 0, func(e entry) {
			delete(facts(e), "chosen")
		}), `the fact "chosen" is missing`},
		"too late":   {late("vote_counted", 0), "the deadline was over"},
		"no choices": {fact("request_opened", 0, "choices", 0), "a question has choices"},
		"no default": {fact("request_opened", 0, "default", 3), "one of them is its default"},
		"approved": {
			instead(
				"request_approved",
				"approved",
				map[string]any{"expires": "2027-01-01T00:00:00.000000Z", "by": []any{}},
			),
			"can't happen to a question",
		},
		"denied":   {instead("request_denied", "denied", nil), "can't happen to a question"},
		"consumed": {instead("permit_consumed", "consumed", nil), "can't happen to a question"},
		"shared":   {instead("request_shared", "pending", nil), "can't happen to a question"},
		"escalated": {
			instead(
				"request_escalated",
				"pending",
				map[string]any{"to": "leads", "deadline": "2026-03-04T05:06:08.000000Z"},
			),
			"can't happen to a question",
		},
		"no question": {fact("request_opened", 0, "question", false), "no question that could be answered"},
	})
}

// TestToolsWordsAreSealed: the tool's texts are sealed so that they can be redacted, and do not
// appear in public facts.
func TestToolsWordsAreSealed(t *testing.T) {
	h := newHarness(t)
	h.vote(h.put("k"), "pat", approval.Choose, approval.VoteAnswered, index(0), func(in *approval.VoteInput) {
		in.Reason = "fine by me"
	})
	h.history()
	stored, err := h.store.Entries(context.Background(), "t", 0, 10)
	must(t, err)
	var openings string
	for _, e := range stored {
		if text := string(e.Leaf); strings.Contains(text, "Write") || strings.Contains(text, "Yes") ||
			strings.Contains(text, "motd") ||
			strings.Contains(text, "fine") {
			t.Errorf("public: %s", text)
		}
		openings += string(e.Openings)
	}

	for _, word := range []string{forSession.Prompt, "Yes for session", "motd", "fine by me"} {
		if !strings.Contains(openings, word) {
			t.Errorf("%q is nowhere in %s", word, openings)
		}
	}
	if leaf, err := ledger.ParseLeaf(stored[0].Leaf); err != nil || leaf.Sealed["prompt"] == leaf.Sealed["labels"] {
		t.Errorf("got %+v, %v", leaf, err)
	}
}
