package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

func TestTheWayOfACall(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")

	quote := h.opens(rt, `{"call":{"kind":"tool","tool":"quote"}}`).must(200)
	if quote.str("outcome") != "allow" || !strings.HasPrefix(quote.str("binding"), "sha256:") {
		t.Errorf("a call that nobody gates: %s", quote.text)
	}
	drop := h.opens(rt, `{"call":{"kind":"tool","tool":"drop"}}`).must(200)
	if drop.str("outcome") != "deny" || drop.str("denied") != "policy" {
		t.Errorf("a call that policy denies: %s", drop.text)
	}

	const args = `{"note":"a<b & \u00e9",  "amount":1.50}` // spaces, escapes and zeros stay
	opened := h.opens(rt, `{"call":{"kind":"tool","tool":"trade","args":`+args+`}}`).
		must(201)
	r := opened.request("request")
	if opened.header.Get("ETag") != `"1"` || opened.header.Get("Location") != "/v1/requests/"+r.ID ||
		string(r.Current().Call.Args) != args ||
		r.Requester.Runtime != "rt" {
		t.Errorf("got %s, %v", opened.text, opened.header)
	}
	if again := h.do(
		"POST",
		"/v1/agents/desk/requests",
		rt,
		`{"call":{"kind":"tool","tool":"trade","args":`+args+`}}`,
	).must(200); again.request("request").ID != r.ID || again.get("shared") != true {
		t.Errorf("an identical call is not shared: %s", again.text)
	}

	if p := h.consume(rt, r, "k"); p.status != 409 || p.str("code") != "pending" || p.str("next_action") != "retry" ||
		p.str("outcome") != "deny" ||
		p.header.Get("Retry-After") != "5" ||
		p.str("request") != r.ID {
		t.Errorf("consume before anybody decided: %s", p.text)
	}

	voted := h.vote(mara, r, "approve").must(200)
	if voted.str("outcome") != "approved" {
		t.Fatalf("vote: %s", voted.text)
	}
	ran := h.do(
		"POST",
		"/v1/requests/"+r.ID+"/consume",
		rt,
		`{"call":{"kind":"tool","tool":"trade","args":`+args+`},"key":"k1"}`,
	).
		must(200)
	if got := ran.request(); got.State != approval.Consumed || string(got.Current().Call.Args) != args ||
		ran.header.Get("ETag") == "" {
		t.Errorf("consumed: %s", ran.text)
	}
	if same := h.consume(rt, r, "k1").must(200); same.request().State != approval.Consumed {
		t.Errorf("the same key does not get the same answer: %s", same.text)
	}
	if other := h.consume(rt, r, "k2"); other.status != 409 || other.str("code") != "consumed" ||
		other.str("state") != "consumed" {
		t.Errorf("another key: %s", other.text)
	}

	testwait.Until(t, "the history is sealed", func() bool {
		var all openapi.Entries
		a := h.do("GET", "/v1/requests/"+r.ID+"/history", rt, "").must(200)
		must(t, json.Unmarshal([]byte(a.text), &all))
		return len(all.Entries) >= 5 && strings.Contains(a.text, `"type":"permit_consumed"`) &&
			strings.Contains(a.text, `a<b & \\u00e9`)
	})
}

// TestRuntimesShareARequest checks that two runtimes that ask for the same call share the
// request and its permit, and that a runtime that never asked can't see it.
func TestRuntimesShareARequest(t *testing.T) {
	h := newHarness(t)
	first, mara := h.runtime(), h.voter("mara")
	second := h.token(store.Token{Name: "rt2", Scopes: []string{"request"}})
	stranger := h.token(store.Token{Name: "rt3", Scopes: []string{"request"}})
	r := h.ask(first, `{"amount":1}`)
	if a := h.look(second, r); a.status != 404 {
		t.Errorf("read before it asked: %s", a.text)
	}
	h.opens(second, `{"call":{"kind":"tool","tool":"trade","args":{"amount":1}}}`).
		must(200)
	r = h.look(second, r).must(200).request()
	h.vote(mara, r, "approve").must(200)
	for _, a := range []*answer{h.look(stranger, r), h.consume(stranger, r, "k")} {
		a.must(404)
	}
	if got := h.consume(second, r, "k").must(200).request(); got.State != approval.Consumed || got.Permit.By != "rt2" {
		t.Errorf("got %+v", got.Permit)
	}
	if a := h.consume(first, r, "k"); a.status != 409 || a.str("code") != "consumed" {
		t.Errorf("it ran twice: %s", a.text)
	}
}

func TestDecideRecordsNothing(t *testing.T) {
	h := newHarness(t)
	before := h.size()
	d := h.do(
		"POST",
		"/v1/agents/desk/decide",
		h.runtime(),
		`{"kind":"tool","tool":"trade","args":{"amount":1,"amount":2}}`,
	).
		must(200)
	if d.str("outcome") != "deny" || !strings.Contains(d.text, "unreadable_arguments") {
		t.Errorf("duplicate keys in arguments: %s", d.text)
	}
	if d := h.do(
		"POST",
		"/v1/agents/desk/decide",
		h.runtime(),
		`{"kind":"tool","tool":"trade","args":{"amount":1}}`,
	).must(200); d.str("outcome") != "ask" {
		t.Errorf("got %s", d.text)
	}

	if after := h.size(); after != before {
		t.Errorf("deciding wrote %d entries", after-before)
	}
}

// TestTheAPIDeniesKeysThatFoldAlike covers decisions and opened requests.
func TestTheAPIDeniesKeysThatFoldAlike(t *testing.T) {
	h := newHarness(t)
	for _, call := range []string{
		`{"kind":"tool","tool":"quote","args":{"url":"https://fine.example","URL":"https://evil.example"}}`,
		`{"kind":"tool","tool":"quote","args":{"list":[{"key":1,"\u212aey":2}]}}`,
	} {
		if d := h.do("POST", "/v1/agents/desk/decide", h.runtime(), call).must(200); d.str("outcome") != "deny" ||
			!strings.Contains(d.text, "unreadable_arguments") {
			t.Errorf("decide %s: %s", call, d.text)
		}
		if d := h.do("POST", "/v1/agents/desk/requests", h.runtime(), `{"call":`+call+`}`).must(200); d.str(
			"outcome",
		) != "deny" ||
			!strings.Contains(d.text, "unreadable_arguments") {
			t.Errorf("request %s: %s", call, d.text)
		}
	}
}

// TestAnEditTakesAnObjectOfArguments checks that a person can't edit a call into one that
// no runtime may ask for.
func TestAnEditTakesAnObjectOfArguments(t *testing.T) {
	h := newHarness(t)
	r := h.ask(h.runtime(), `{"amount":1}`)
	for _, arguments := range []string{`"[1]"`, `"null"`, `"\"{}\""`} {
		body := `{"arguments":` + arguments + `,"binding":"` + r.Binding() + `","shown_fully":true}`
		if a := h.do(
			"POST",
			"/v1/requests/"+r.ID+"/edits",
			h.voter("mara"),
			body,
			"If-Match",
			version(r),
		); a.status != 422 || !strings.Contains(a.text, "arguments: expected an object") {
			t.Errorf("%s: %d %s", arguments, a.status, a.text)
		}
	}
}

// TestTheAPITakesAnObjectOfArguments checks that arguments as JSON text, as some SDKs give
// them, are refused with a message that says what to send, that people are not asked about
// them, and that they run no tool, even one without a condition.
func TestTheAPITakesAnObjectOfArguments(t *testing.T) {
	h := newHarness(t)
	for args, want := range map[string]string{
		`"{\"amount\":20000}"`: "args: expected an object; args is JSON text: send the object itself",
		`"amount"`:             "args: expected an object, found JSON of kind string",
		`[1]`:                  "args: expected an object, found JSON of kind array",
		`null`:                 "args: expected an object, found null: leave args out where there are no arguments",
		`7`:                    "args: expected an object, found JSON of kind number",
	} {
		for _, tool := range []string{"trade", "quote"} {
			call := `{"kind":"tool","tool":"` + tool + `","args":` + args + `}`
			if d := h.do("POST", "/v1/agents/desk/decide", h.runtime(), call).must(400); d.str(
				"code",
			) != "bad_request" ||
				d.str("field") != "args" ||
				d.str("detail") != want {
				t.Errorf("decide %s: %s", call, d.text)
			}

			d := h.do("POST", "/v1/agents/desk/requests", h.runtime(), `{"call":`+call+`}`).must(400)
			if d.str("field") != "call.args" || d.str("detail") != "call."+want || d.str("outcome") != "deny" {
				t.Errorf("request %s: %s", call, d.text)
			}
		}
	}
}

func TestVotesNeedWhatWasSeen(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	path := "/v1/requests/" + r.ID + "/votes"
	whole := `{"verdict":"approve","shown_fully":true,"binding":"` + r.Binding() + `"}`
	for _, c := range []struct{ name, body, match, code string }{
		{"no version", whole, "", "if_match_required"},
		{"a weak version", whole, `W/"1"`, "bad_request"},
		{"any version", whole, `*`, "bad_request"},
		{"an old version", whole, `"7"`, "version_mismatch"},
		{
			"another binding",
			`{"verdict":"approve","shown_fully":true,"binding":"000000000000"}`,
			`"1"`,
			"binding_mismatch",
		},
		{
			"a prefix too short",
			`{"verdict":"approve","shown_fully":true,"binding":"` + r.Binding()[7:14] + `"}`,
			`"1"`,
			"binding_mismatch",
		},
		{"not shown", `{"verdict":"approve","binding":"` + r.Binding() + `"}`, `"1"`, "not_shown"},
		{"not a verdict", `{"verdict":"yes","binding":"` + r.Binding() + `"}`, `"1"`, "invalid"},
		{"no verdict", `{"binding":"` + r.Binding() + `"}`, `"1"`, "bad_request"},
		{
			"truth as text",
			`{"verdict":"approve","shown_fully":"true","binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"a grant beside a deny",
			`{"verdict":"deny","grant":{"max_uses":1},"binding":"` + r.Binding() + `"}`,
			`"1"`,
			"invalid",
		},
		{
			"a bad bound",
			`{"verdict":"approve","shown_fully":true,"grant":{"bounds":[{"path":"amount","kind":"about"}]},"binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"an empty grant",
			`{"verdict":"approve","shown_fully":true,"grant":{},"binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"a bad age",
			`{"verdict":"approve","shown_fully":true,"grant":{"max_age":"long"},"binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"a channel in words",
			`{"verdict":"approve","shown_fully":true,"channel":"my shell","binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"a channel of nothing",
			`{"verdict":"approve","shown_fully":true,"channel":"","binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
		{
			"another's channel",
			`{"verdict":"approve","shown_fully":true,"channel":"slack","binding":"` + r.Binding() + `"}`,
			`"1"`,
			"bad_request",
		},
	} {
		if a := h.do("POST", path, mara, c.body, "If-Match", c.match); a.str("code") != c.code {
			t.Errorf("%s: got %d %s", c.name, a.status, a.text)
		}
	}

	if now := h.look(mara, r).request(); now.State != approval.Pending || len(now.Votes) != 0 {
		t.Errorf("something counted: %+v", now)
	}
	if a := h.do(
		"POST",
		path,
		mara,
		`{"verdict":"approve","shown_fully":true,"binding":"`+r.Binding()[7:19]+`"}`,
		"If-Match",
		`"1"`,
	).must(200); a.str("outcome") != "approved" {
		t.Errorf("a prefix of 12: %s", a.text)
	}
}

func TestVotesTellTheirChannel(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	for i, c := range []struct{ field, want string }{{"", "api"}, {`,"channel":"cli"`, "cli"}} {
		r := h.ask(rt, fmt.Sprintf(`{"amount":%d}`, i))
		body := `{"verdict":"approve","shown_fully":true,"binding":"` + r.Binding() + `"` + c.field + `}`
		got := h.do("POST", "/v1/requests/"+r.ID+"/votes", mara, body, "If-Match", version(r)).
			must(200).
			request("request")
		if got.Votes[0].Channel != c.want {
			t.Errorf("got %q, want %q", got.Votes[0].Channel, c.want)
		}
		r = h.ask(rt, fmt.Sprintf(`{"amount":%d}`, 100+i))
		body = `{"arguments":"{\"amount\":20` + fmt.Sprint(
			i,
		) + `}","shown_fully":true,"binding":"` + r.Binding() + `"` + c.field + `}`
		got = h.do("POST", "/v1/requests/"+r.ID+"/edits", mara, body, "If-Match", version(r)).
			must(200).
			request("voted", "request")
		if got.Votes[0].Channel != c.want {
			t.Errorf("an edit: got %q, want %q", got.Votes[0].Channel, c.want)
		}
	}
}

func TestGrantOfferedAndUsed(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.opens(rt, `{"call":{"kind":"tool","tool":"spend","args":{"amount":100}}}`).
		must(201).
		request("request")
	body := `{"verdict":"approve","shown_fully":true,"binding":"` + r.Binding() +
		`","grant":{"max_age":"1h30m","max_uses":3,"bounds":[{"path":"amount","kind":"at_most"}]}}`
	voted := h.do("POST", "/v1/requests/"+r.ID+"/votes", mara, body, "If-Match", `"1"`).must(200)
	id := voted.str("grant", "id")
	if id == "" {
		t.Fatalf("no grant: %s", voted.text)
	}
	used := h.do(
		"POST",
		"/v1/agents/desk/requests",
		rt,
		`{"call":{"kind":"tool","tool":"spend","args":{"amount":99}}}`,
	).
		must(200)
	if used.str("outcome") != "granted" || used.str("grant", "id") != id {
		t.Errorf("got %s", used.text)
	}
	if g := h.do("GET", "/v1/grants/"+id, mara, "").must(200); g.get("uses") != 1.0 || g.get("max_uses") != 3.0 {
		t.Errorf("got %s", g.text)
	}
	if all := h.do("GET", "/v1/grants", mara, "").must(200); !strings.Contains(all.text, id) {
		t.Errorf("got %s", all.text)
	}
	if g := h.do("POST", "/v1/grants/"+id+"/revoke", mara, `{"reason":"enough"}`).must(200); g.str(
		"revoked_by",
	) != "mara" ||
		g.str("revoked_why") != "enough" {
		t.Errorf("got %s", g.text)
	}

	h.do("POST", "/v1/grants/"+id+"/revoke", mara, "").must(200)
	if all := h.do("GET", "/v1/grants", mara, "").must(200); strings.Contains(all.text, id) {
		t.Errorf("a revoked grant is listed: %s", all.text)
	}
	if all := h.do("GET", "/v1/grants?all=true", mara, "").must(200); !strings.Contains(all.text, id) {
		t.Errorf("got %s", all.text)
	}
}

func TestEdits(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":100}`)
	body := func(arguments string) string {
		quoted, _ := json.Marshal(arguments)
		return `{"arguments":` + string(
			quoted,
		) + `,"shown_fully":true,"binding":"` + r.Binding() + `","reason":"smaller"}`
	}
	path := "/v1/requests/" + r.ID + "/edits"
	preview := h.do("POST", path+"?preview=true", mara, body(`{"amount":5}`), "If-Match", `"1"`).must(200)
	if preview.get("voted") != nil || preview.str("decision", "outcome") != "ask" ||
		!strings.Contains(preview.text, `"path":"amount"`) {
		t.Errorf("preview: %s", preview.text)
	}
	if now := h.look(rt, r).request(); now.Version != 1 {
		t.Errorf("a preview changed the request: %+v", now)
	}
	if a := h.do("POST", path, mara, body(`{"amount":`), "If-Match", `"1"`); a.status != 422 ||
		a.str("code") != "invalid" ||
		a.str("field") != "arguments" {
		t.Errorf("broken arguments: %s", a.text)
	}
	edited := h.do("POST", path, mara, body(` {"amount": 5}`), "If-Match", `"1"`).must(200)
	if edited.str("voted", "outcome") != "approved" {
		t.Fatalf("edit: %s", edited.text)
	}
	now := edited.request("voted", "request")
	if a := h.do(
		"POST",
		"/v1/requests/"+r.ID+"/consume",
		rt,
		`{"call":{"kind":"tool","tool":"trade","args":{"amount":100}},"key":"k"}`,
	); a.str("code") != "binding_mismatch" {
		t.Errorf("what was asked, not what was approved, is consumed: %s", a.text)
	}

	if ran := h.consume(rt, now, "k").must(200).request(); string(ran.Current().Call.Args) != ` {"amount": 5}` {
		t.Errorf("got %q", ran.Current().Call.Args)
	}
}

func TestEditThatPolicyDenies(t *testing.T) {
	h := newHarness(t)
	r := h.ask(h.runtime(), `{"amount":100}`)
	h.rewrite("policies/controls.policy.yaml", "targets: [drop]", "targets: [drop, trade]")
	a := h.do(
		"POST",
		"/v1/requests/"+r.ID+"/edits",
		h.voter("mara"),
		`{"arguments":"{}","shown_fully":true,"binding":"`+r.Binding()+`"}`,
		"If-Match",
		`"1"`,
	)
	if a.status != 422 || a.str("code") != "edit_denied" || a.str("detail") == "" {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

// rewrite changes a file and loads the agents again.
func (h *harness) rewrite(file, old, now string) {
	h.t.Helper()
	name := filepath.Join(h.dir, file)
	src, err := os.ReadFile(name)
	must(h.t, err)
	text := strings.Replace(string(src), old, now, 1)
	if text == string(src) {
		h.t.Fatalf("%s does not hold %q", file, old)
	}
	must(h.t, os.WriteFile(name, []byte(text), 0o600))
	if !h.plans.Reload() {
		h.t.Fatal("the change went unnoticed")
	}
}

func TestRulesThatChangeVoidAnApproval(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	r := h.ask(rt, `{"amount":1}`)
	h.vote(h.voter("mara"), r, "approve").must(200)
	h.rewrite("agents/desk.agf.yaml", `version: "1.0.0"`, `version: "1.0.1"`)
	if a := h.consume(rt, r, "k"); a.status != 409 || a.str("code") != "stale" || a.str("next_action") != "request" ||
		a.str("state") != "expired" {
		t.Errorf("got %s", a.text)
	}
}

func TestEndings(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")

	denied := h.ask(rt, `{"amount":1}`)
	if a := h.vote(mara, denied, "deny").must(200); a.str("outcome") != "denied" {
		t.Errorf("got %s", a.text)
	}
	if a := h.consume(rt, denied, "k"); a.str("code") != "not_approved" || a.str("state") != "denied" ||
		a.str("next_action") != "none" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do(
		"POST",
		"/v1/agents/desk/requests",
		rt,
		`{"call":{"kind":"tool","tool":"trade","args":{"amount":1}}}`,
	).must(200); a.str("denied") != "cooling_down" || a.str("request", "id") != denied.ID {
		t.Errorf("got %s", a.text)
	}

	cancelled := h.ask(rt, `{"amount":2}`)
	if a := h.do("POST", "/v1/requests/"+cancelled.ID+"/cancel", rt, `{"reason":"the user left"}`).must(200); a.str(
		"state",
	) != "cancelled" ||
		a.str("by") != "rt" {
		t.Errorf("got %s", a.text)
	}

	if a := h.do("POST", "/v1/requests/"+cancelled.ID+"/cancel", rt, ""); a.str("code") != "closed" ||
		a.str("state") != "cancelled" {
		t.Errorf("got %s", a.text)
	}

	old := h.ask(rt, `{"amount":3}`)
	h.do(
		"POST",
		"/v1/agents/desk/requests",
		rt,
		`{"call":{"kind":"tool","tool":"trade","args":{"amount":4}},"replaces":"`+old.ID+`"}`,
	).
		must(201)
	if a := h.look(rt, old).must(200); a.str("state") != "cancelled" || a.str("cause") != "superseded" {
		t.Errorf("got %s", a.text)
	}

	late := h.ask(rt, `{"amount":5}`)
	h.clock.Add(25 * time.Hour)
	rt, mara = h.runtime(), h.voter("mara")
	testwait.Until(t, "the deadline acts by itself", func() bool {
		return h.look(rt, late).str("state") == "expired"
	})
	if a := h.vote(mara, late, "approve").must(200); a.str("outcome") != "late" && a.str("outcome") != "conflicting" {
		t.Errorf("got %s", a.text)
	}
	if a := h.consume(rt, late, "k"); a.str("code") != "not_approved" || a.str("state") != "expired" {
		t.Errorf("got %s", a.text)
	}
}

func TestFreeze(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	mara := h.voter("mara")
	admin := h.admin()
	r := h.ask(rt, `{"amount":1}`)
	h.vote(mara, r, "approve").must(200)
	if a := h.do("POST", "/v1/freezes", mara, `{"agent":"desk","reason":"odd"}`).must(200); !strings.Contains(
		a.text,
		`"by":"mara"`,
	) {
		t.Errorf("got %s", a.text)
	}

	if a := h.consume(rt, r, "k"); a.status != http.StatusLocked || a.str("code") != "frozen" ||
		a.str("outcome") != "deny" {
		t.Errorf("got %s", a.text)
	}
	if a := h.opens(rt, `{"call":{"kind":"tool","tool":"quote"}}`).must(200); a.str("denied") != "frozen" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("POST", "/v1/agents/desk/decide", rt, `{"kind":"tool","tool":"quote"}`).must(200); a.str(
		"outcome",
	) != "deny" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("POST", "/v1/freezes/lift", mara, `{"agent":"desk"}`); a.str("code") != "missing_scope" {
		t.Errorf("got %s", a.text)
	}
	h.administer("/v1/freezes/lift", admin, `{"agent":"desk"}`).must(200)
	if a := h.do("POST", "/v1/freezes/lift", admin, `{"agent":"desk"}`); a.status != 404 {
		t.Errorf("got %s", a.text)
	}
	h.consume(rt, r, "k").must(200)
}

func TestIdempotencyKeys(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	open := func(token, key, args string) *answer {
		return h.do(
			"POST",
			"/v1/agents/desk/requests",
			token,
			`{"call":{"kind":"tool","tool":"trade","args":`+args+`}}`,
			"Idempotency-Key",
			key,
		)
	}
	quote := func() *answer {
		return h.do("POST", "/v1/agents/desk/requests", rt, `{"call":{"kind":"tool","tool":"quote"}}`,
			"Idempotency-Key", "one")
	}
	if got := quote().must(200).str("outcome"); got != "allow" {
		t.Errorf("an allowed call: %s", got)
	}
	first := open(rt, "one", `{"amount":1}`).must(201)
	if got := quote(); got.status != 422 || got.str("code") != "key_reuse" {
		t.Errorf("an allowed call under the key of one that was asked about: %s", got.text)
	}
	if again := open(rt, "one", `{"amount":1}`).must(200); again.str("request", "id") != first.str("request", "id") {
		t.Errorf("got %s", again.text)
	}

	if other := open(rt, "one", `{"amount":2}`); other.status != 422 || other.str("code") != "key_reuse" ||
		other.str("outcome") != "deny" {
		t.Errorf("got %s", other.text)
	}
	if a := open(rt, strings.Repeat("k", 201), `{}`); a.str("code") != "bad_request" {
		t.Errorf("got %s", a.text)
	}
	second := h.token(store.Token{Name: "rt2", Scopes: []string{"request"}})
	if a := open(second, "one", `{"amount":3}`).must(201); a.str("request", "id") == first.str("request", "id") {
		t.Errorf("two runtimes share a key: %s", a.text)
	}
}

func TestListsAndFigures(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	one := h.ask(rt, `{"amount":1}`)
	h.opens(rt, `{"call":{"kind":"tool","tool":"wire","principal":"zed"}}`).
		must(201)
	tokens := map[string]string{"mara": mara, "ben": h.voter("ben"), "olga": h.voter("olga")}
	for person, want := range map[string]float64{"mara": 2, "ben": 2, "olga": 0} { // olga owns the agent
		if a := h.do("GET", "/v1/requests?mine=true", tokens[person], "").must(200); a.get("total") != want {
			t.Errorf("what waits for %s: %s", person, a.text)
		}
	}
	h.vote(mara, one, "approve").must(200)
	for query, want := range map[string]int{
		"":                           2,
		"state=pending":              1,
		"state=open":                 2,
		"state=approved,denied":      1,
		"agent=desk":                 2,
		"agent=other":                0,
		"target=tool%20wire":         1,
		"principal=zed":              1,
		"mine=true":                  1,
		"group=risk":                 2,
		"limit=1":                    1,
		"order=due":                  2,
		"since=2999-01-01T00:00:00Z": 0,
	} {
		if a := h.do("GET", "/v1/requests?"+query, mara, "").must(200); len(a.get("requests").([]any)) != want {
			t.Errorf("%q: got %s, want %d", query, a.text, want)
		}
	}

	page := h.do("GET", "/v1/requests?limit=1", mara, "").must(200)
	if next := h.do(
		"GET",
		"/v1/requests?limit=1&cursor="+page.str("next"),
		mara,
		"",
	).must(200); next.text == page.text || next.get("total") != 2.0 {
		t.Errorf("got %s", next.text)
	}

	for _, query := range []string{
		"stat=pending",
		"state=maybe",
		"mine=yes",
		"order=best",
		"limit=0",
		"limit=501",
		"since=now",
		"agent=a&agent=b",
		"a=%zz",
		"mine=",
		"order=",
		"state=",
		"state=pending,",
	} {
		if a := h.do("GET", "/v1/requests?"+query, mara, ""); a.status != 400 || a.str("code") != "bad_request" {
			t.Errorf("%q: got %d %s", query, a.status, a.text)
		}
	}

	if a := h.do("GET", "/v1/requests?mine=true&group=risk", mara, ""); a.str("code") != "invalid" ||
		a.str("field") != "group" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("GET", "/v1/requests?mine=true", h.admin(), ""); a.str("code") != "no_person" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("GET", "/v1/requests?mine=true", h.voter("nobody"), ""); a.str("code") != "unknown_person" {
		t.Errorf("got %s", a.text)
	}
	if a := h.do("GET", "/v1/stats", mara, "").must(200); !strings.Contains(a.text, `"person":"mara"`) {
		t.Errorf("got %s", a.text)
	}
	h.do("GET", "/v1/stats?since=2026-01-02T15:04:05Z", mara, "").must(200)
}
