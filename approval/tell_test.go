package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// TestEscalationIsSaidAsItIs: the texts contain who is called in, when, if they may approve, and
// what happens at the deadline.
func TestEscalationIsSaidAsItIs(t *testing.T) {
	h := newHarness(t)
	may := h.asked(tool("nudge", `{}`))
	look := h.asked(tool("glance", `{}`))
	says := func(r *approval.Request, words ...string) {
		t.Helper()
		var all []string
		for _, c := range r.CallsIn() {
			all = append(all, c.String())
		}
		text := strings.Join(append(all, r.AtDeadline()), " | ")
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%q does not say %q", text, w)
			}
		}
	}
	says(
		may,
		"leads will be called in at 4 Mar 05:16 UTC and may approve in place of support",
		"as much time again, until 4 Mar 06:26 UTC, also for leads",
		"does not run",
	)
	says(
		look,
		"leads will be called in at 4 Mar 05:16 UTC to look: they may deny it or answer, but not approve",
		"If nobody decides by then, it expires and does not run.",
	)

	h.pass(11 * time.Minute)
	h.tick(2)
	says(h.request(may.ID), "leads is called in and may approve in place of support")
	says(h.request(look.ID), "leads is called in to look")

	says(h.asked(tool("drift", `{}`)), "it RUNS")
	says(h.asked(tool("pay", `{}`)), "If nobody decides by then, it expires and does not run.")
}

// TestGroundsSayWhatMadeARuleAsk: the texts contain the values, the tests and the author's
// description.
func TestGroundsSayWhatMadeARuleAsk(t *testing.T) {
	call := resolve.Call{
		Kind: resolve.Tool,
		Tool: "wire",
		Args: resolve.Raw(
			`{"amount":25000,"currency":"EUR","note":"a","pin":7,"to":{"iban":"DE1"},"to.iban":"DE2","on":true,` +
				`"list":[1]}`,
		),
		ParentInput: resolve.Raw(`{"risk":"high"}`),
	}
	m := func(key, test, truth, why string) resolve.Matcher {
		return resolve.Matcher{Key: key, Test: test, Truth: truth, Why: why, Seen: "string of 1 character"}
	}
	for _, c := range []struct {
		matchers []resolve.Matcher
		want     string
	}{
		{nil, "approval is always required"},
		{[]resolve.Matcher{m("amount", "gt 10000", "true", "matched")}, "amount is 25,000, above 10,000"},
		{
			[]resolve.Matcher{m("amount", "gte 10000 and lt 1e6", "true", "matched")},
			"amount is 25,000, at least 10,000 and below 1e6",
		},
		{[]resolve.Matcher{m("currency", `equals "EUR"`, "true", "matched")}, `currency is "EUR"`},
		{
			[]resolve.Matcher{{
				Key: "history", Test: "sum of n over ran in 24h gt 20000", Truth: "true",
				History: &condition.Figures{Used: "18400", This: "2500", Bound: "gt 20000", Currency: "EUR"},
			}},
			"sum of n over ran in 24h: 18,400 EUR; this call 2500; it must not be above 20,000",
		},
		{
			[]resolve.Matcher{{
				Key: "history", Test: "no call over ran in 24h", Truth: "unknown",
				History: &condition.Figures{Used: "0"},
			}},
			"no call over ran in 24h: 0; some values are not known",
		},
		{
			[]resolve.Matcher{m("history", "call over ran in 24h", "unknown", "missing_history")},
			"history (call over ran in 24h) can't be tested: missing history",
		},
		{
			[]resolve.Matcher{m("currency", `in ["EUR", "USD and GBP"]`, "true", "matched")},
			`currency is "EUR", one of ["EUR", "USD and GBP"]`,
		},
		{[]resolve.Matcher{m("currency", `ne "USD"`, "true", "matched")}, `currency is "EUR", not "USD"`},
		{[]resolve.Matcher{m("on", "equals true", "true", "matched")}, "on is true"},
		{
			[]resolve.Matcher{m("gone", "gt 5", "unknown", "missing_argument")},
			"gone is missing, so nobody can tell whether it is above 5",
		},
		{
			[]resolve.Matcher{m("note", "gt 5", "unknown", "type_mismatch")},
			"note is of another type (string of 1 character), so nobody can tell whether it is above 5",
		},
		{
			[]resolve.Matcher{m("note", "gt 5", "unknown", "rounded_number")},
			"note has more digits than many tools read, so nobody can tell whether it is above 5",
		},
		// a hidden value
		{[]resolve.Matcher{m("pin", "gt 5", "true", "matched")}, "pin is above 5"},
		// a key that refers to two values
		{[]resolve.Matcher{m("to.iban", `pattern "^DE"`, "true", "matched")}, `to.iban is a match of "^DE"`},
		// a value of the parent's input
		{[]resolve.Matcher{m("parent.input.risk", `equals "high"`, "true", "matched")}, `parent.input.risk is "high"`},
		{[]resolve.Matcher{m("list", "", "true", "always")}, "list is there"},
		{
			[]resolve.Matcher{
				m("amount", "gt 10000", "true", "matched"),
				m("currency", `equals "EUR"`, "true", "matched"),
			},
			`amount is 25,000, above 10,000; and currency is "EUR"`,
		},
	} {
		r := approval.Request{Redact: []string{"pin"}, Revisions: []approval.Revision{{Call: call}}}
		r.Revisions[0].Decision.Reasons = []resolve.Reason{{
			Source:      resolve.FromPolicy,
			Policy:      "acme.p",
			Rule:        "large",
			Description: "Large ones.",
			Detail:      "approval is always required",
			File:        "p.yaml",
			Line:        3,
			Matchers:    c.matchers,
		}}
		got := r.Grounds()[0]
		if strings.Join(got.Words, " / ") != c.want {
			t.Errorf("got  %s\nwant %s", strings.Join(got.Words, " / "), c.want)
		}
		if got.About != "Large ones." || got.Rule != "policy acme.p, rule large" || got.Where != "p.yaml:3" {
			t.Errorf("%+v", got)
		}
	}
}

// TestTheWriterOfAMessageIsRecorded: the writer is the agent's author, a policy's author, or assent
// itself.
func TestTheWriterOfAMessageIsRecorded(t *testing.T) {
	h := newHarness(t)
	h.plans.set(
		t,
		strings.Replace(
			policyFile,
			"{id: vault, match: {targets: [vault]}, approval: true,",
			`{id: vault, description: Nothing stays open., match: {targets: [vault]}, approval: {message_template: `+
				`"Open it?"},`,
			1,
		),
	)
	r := h.asked(tool("vault", `{}`))
	if got := h.request(r.ID).Current(); got.MessageFrom != resolve.FromPolicy ||
		got.Decision.Reasons[0].Description != "Nothing stays open." {
		t.Errorf("%q %+v", got.MessageFrom, got.Decision.Reasons)
	}
	if got := h.request(h.asked(tool("pay", `{}`)).ID).Current(); got.MessageFrom != resolve.FromDefault {
		t.Errorf("%q: %s", got.MessageFrom, got.Decision.Message)
	}
}

// TestExposureIsWhatAllUsesComeTo: the total is exact, in the format of the number, and with the
// currency next to it.
func TestExposureIsWhatAllUsesComeTo(t *testing.T) {
	exposures := func(args string, redact []string, bounds ...string) string {
		r := approval.Request{
			Redact:    redact,
			Revisions: []approval.Revision{{Call: resolve.Call{Args: resolve.Raw(args)}}},
		}
		for _, path := range bounds {
			r.Grants.Bounds = append(r.Grants.Bounds, policy.Bound{Path: path, Kind: policy.AtMost})
		}
		var out []string
		for _, e := range r.Exposures() {
			out = append(out, e.Path+": "+e.Words(20))
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct {
		args   string
		redact []string
		bounds []string
		want   string
	}{
		{`{"amount":340.00,"currency":"USD"}`, nil, nil, "amount: 20 × 340.00 = 6,800.00 USD"},
		{`{"amount":340.00,"currency":"USD"}`, nil, []string{"amount"}, "amount: 20 × 340.00 = 6,800.00 USD"},
		{`{"amount":0.1}`, nil, nil, "amount: 20 × 0.1 = 2.0"},
		{`{"loss":-50,"amount":1}`, nil, []string{"loss"}, "loss: 20 × 50 = 1,000; amount: 20 × 1 = 20"},
		{
			`{"lines":[{"price":12500,"currency":"EUR"}]}`,
			nil,
			[]string{"lines.0.price"},
			"lines.0.price: 20 × 12,500 = 250,000 EUR",
		},
		{`{"amount":"340","n":5}`, nil, []string{"x"}, ""},
		{`{"amount":340,"currency":"USD"}`, []string{"amount"}, nil, ""},
		{`{"amount":340,"currency":"USD"}`, []string{"currency"}, nil, "amount: 20 × 340 = 6,800"},
		{`{"amount":1e400}`, nil, nil, ""},
		{`{"amount":0}`, nil, nil, ""},
	} {
		if got := exposures(c.args, c.redact, c.bounds...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
}

// TestHiddenValuesAreListedByTheirPaths covers the arguments and the parent's input, at any depth.
// No other value is listed.
func TestHiddenValuesAreListedByTheirPaths(t *testing.T) {
	r := approval.Request{
		Redact: []string{"**.password", "to.name", "parent.input.plan"},
		Revisions: []approval.Revision{{Call: resolve.Call{
			Args: resolve.Raw(
				`{"password":"p1","nested":[{"password":{"old":1}}],"to":{"name":"E","note":"n"},"plan":"shown"}`,
			),
			ParentInput: resolve.Raw(`{"plan":"secret","a":{"password":"p2"},"note":"n"}`),
		}}},
	}
	want := []string{"password", "nested.0.password", "to.name", "parent.input.plan", "parent.input.a.password"}
	if got := r.Hidden(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if r.Unapprovable() != nil {
		t.Error("no policy forbids it")
	}
	r.ForbidHidden = true
	if !slices.Equal(r.Unapprovable(), want) {
		t.Error(r.Unapprovable())
	}

	shown, hidden := approval.Redact(string(r.Current().Call.Args), r.Arguments().Redaction())
	if len(hidden) != 3 ||
		shown != `{"password":"(hidden by policy)","nested":[{"password":"(hidden by `+
			`policy)"}],"to":{"name":"(hidden by policy)","note":"n"},"plan":"shown"}` {
		t.Error(shown, hidden)
	}
	const exact = `{ "plan" : 1.0 }`
	if shown, hidden := approval.Redact(exact, r.Arguments().Redaction()); shown != exact || hidden != nil {
		t.Error(shown, hidden)
	}
	if shown, hidden := approval.Redact(`{"password":`, r.Arguments().Redaction()); strings.Contains(
		shown,
		"password",
	) ||
		len(hidden) != 1 {
		t.Error(shown, hidden)
	}

	for path, c := range map[string]struct {
		old    string
		hidden bool
		shown  string
	}{
		"to.name": {`"E"`, true, ""},
		"to":      {`{"name":"E","note":"n"}`, false, `{"name":"(hidden by policy)","note":"n"}`},
		"":        {`{"password":1}`, false, `{"password":"(hidden by policy)"}`},
		"plan":    {`"shown"`, false, `"shown"`},
	} {
		got, hidden := approval.Change{Path: path, Old: c.old}.Redact(r.Arguments())
		if hidden != c.hidden || got.Old != c.shown {
			t.Errorf("%q: %+v, hidden %v", path, got, hidden)
		}
	}
}

// TestARequestThatNobodyCanFillIsSaidAtOnce: the answer to Open already contains the missing
// people, with how many are needed and available.
func TestARequestThatNobodyCanFillIsSaidAtOnce(t *testing.T) {
	h := newHarness(t)
	h.people.members = true
	opened := h.open(tool("trade", `{"n":1}`))
	if len(opened.Unfillable) != 0 {
		t.Errorf("ann and bob are there: %+v", opened.Unfillable)
	}
	h.people.set(func(d *directory) { d.groups["bob"] = []string{"support"} })
	opened = h.open(tool("trade", `{"n":2}`))
	if words := approval.ShortageWords(opened.Unfillable); words != "2 of risk: only 1 of them may answer this" {
		t.Errorf("%q", words)
	}
	var doc map[string]any
	text, err := json.Marshal(opened)
	if err != nil || json.Unmarshal(text, &doc) != nil || doc["unfillable"] == nil {
		t.Fatal(string(text), err)
	}
	if shared := h.open(tool("trade", `{"n":2}`)); !shared.Shared {
		t.Error(shared.Outcome)
	}
}

// TestWhatOneHasAnsweredIsAListOfItsOwn: an answered request moves from Waiting to AnsweredBy, and
// back after an edit.
func TestWhatOneHasAnsweredIsAListOfItsOwn(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{"n":1}`))
	type lister func(context.Context, string, string, approval.Filter) (approval.Page, error)
	ids := func(list lister, person string) []string {
		t.Helper()
		page, err := list(context.Background(), "t", person, approval.Filter{})
		must(t, err)
		out := make([]string, 0, len(page.Requests))
		for _, s := range page.Requests {
			out = append(out, s.ID)
		}
		return out
	}
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	if len(ids(h.s.Waiting, "ann")) != 0 || !slices.Equal(ids(h.s.AnsweredBy, "ann"), []string{r.ID}) {
		t.Error("ann has answered it, and others must")
	}
	if !slices.Equal(ids(h.s.Waiting, "bob"), []string{r.ID}) || len(ids(h.s.AnsweredBy, "bob")) != 0 {
		t.Error("it waits for bob")
	}
	works(h.edit(h.request(r.ID), "bob", `{"n":0}`))(t)
	if !slices.Equal(ids(h.s.Waiting, "ann"), []string{r.ID}) || len(ids(h.s.AnsweredBy, "ann")) != 0 {
		t.Error("the edit is another call, which ann has not answered")
	}
	if _, err := h.s.AnsweredBy(context.Background(), "t", "nobody", approval.Filter{}); err == nil {
		t.Error("nobody is known by that name")
	}
}

// TestACallThatCoolsDownIsToldWhatAPersonSaid: the message of the denial is a statement with the
// person's reason.
func TestACallThatCoolsDownIsToldWhatAPersonSaid(t *testing.T) {
	h := newHarness(t)
	h.vote(h.asked(tool("pay", `{"n":1}`)), "cy", approval.Deny, approval.VoteDenied)
	again := h.open(tool("pay", `{"n":1}`))
	const want = "cy denied this very call: not like this. It is not asked again before 4 Mar 05:11 UTC"
	if d := again.Decision; again.Denied != "cooling_down" || d.Outcome != resolve.Deny || d.Message != want ||
		len(d.Reasons) != 1 ||
		d.Reasons[0].Code != approval.CodeCoolingDown {
		t.Errorf("%s %+v", again.Denied, d)
	}

	h.vote(h.asked(tool("pay", `{"n":2}`)), "cy", approval.Respond, approval.VoteDenied)
	if d := h.open(tool("pay", `{"n":2}`)).Decision; !strings.Contains(
		d.Message,
		"cy answered this very call instead of letting it run: do it by hand.",
	) {
		t.Error(d.Message)
	}
}

// TestWhatIsHiddenIsNowhere: a hidden value is in no shown text, and all other values are shown.
func TestWhatIsHiddenIsNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := fmt.Sprintf(`{"x":{"y":[0,{"z":"SECRET%d"}]},"k":1}`, rapid.Int().Draw(t, "n"))
		path := rapid.SampledFrom([]string{"x", "x.y", "x.y.1", "x.y.1.z", "**.z", "x.**", "**"}).Draw(t, "path")
		at := policy.Arguments{Redact: []string{path}}.Redaction()
		got, hidden := approval.Redact(args, at)
		if _, err := value.Parse([]byte(got), value.DefaultLimits()); err != nil || len(hidden) == 0 ||
			strings.Contains(got, "SECRET") {
			t.Fatalf("%s: %v", got, err)
		}
		if path != "**" && !strings.Contains(got, `"k":1`) {
			t.Fatal(got)
		}
	})
}
