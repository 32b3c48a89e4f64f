package inbox_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

const order = `{"side":"buy","quantity":100,"symbol":"ACME"}`
const trade = `{"amount":20000,"currency":"USD"}`

// TestEveryOutcomeIsSaidInWords answers without JavaScript and reads the text of the next page.
func TestEveryOutcomeIsSaidInWords(t *testing.T) {
	h := open(t)
	alice := h.browser("alice")
	bob := h.browser("bob")
	carol := h.browser("carol")
	dave := h.browser("dave")

	big := h.ask(tool("execute_trade", trade))
	again := alice.ballot(big.ID, "approve")
	counted := alice.answer(big.ID, "approve", nil)
	counted.says(
		t,
		"Your approval is counted. It takes more people",
		"1 of 2 approved",
		"by Alice Doe",
		"You have approved this. Still missing: 1 of desk-heads (Bob Roe, Carol Poe may), 1 of risk (Bob Roe, Dave "+
			"Moe may).",
	)
	counted.lacks(t, `value="approve"`)
	again.Set("version", strconv.FormatInt(h.request(big.ID).Version, 10))
	alice.cast(big.ID, again).says(t, "Nothing was decided.")
	dave.answer(big.ID, "approve", nil).says(t, "Your approval is counted.")
	late := alice.ballot(big.ID, "deny")
	carol.answer(big.ID, "approve", nil).says(t, "Approved. It may now run once, exactly as shown.")
	if got := h.request(big.ID); got.State != approval.Approved || len(got.Votes) != 3 || !got.Votes[0].Full ||
		got.Votes[0].Channel != "inbox" {
		t.Fatalf("%s %+v", got.State, got.Votes)
	}
	late.Set("reason", "Not today")
	late.Set("preset", "")
	alice.cast(big.ID, late).says(
		t,
		"Stopped: it had been approved, and your answer voided that before it ran.",
		"Expired: it was approved, then denied before it ran",
	)

	small := h.ask(tool("place_order", order))
	yes := bob.ballot(small.ID, "approve")
	carol.answer(
		small.ID,
		"deny",
		url.Values{"preset": {"Wrong target or values"}, "reason": {"ten, not a hundred"}},
	).says(t, "Denied. It will not run.", "Wrong target or values: ten, not a hundred")
	bob.cast(small.ID, yes).says(t, "Too late, and it ended the other way: denied.", "kept in the ledger")

	other := h.ask(tool("place_order", `{"side":"sell","quantity":1,"symbol":"ACME"}`))
	bob.answer(other.ID, "respond", url.Values{"response": {"Ask the desk head first."}}).says(
		t,
		"The agent is told your answer instead.",
		"Told the agent: Ask the desk head first.",
	)

	gone := h.ask(tool("place_order", `{"side":"sell","quantity":2,"symbol":"ACME"}`))
	yes = bob.ballot(gone.ID, "approve")
	h.pass(2 * time.Hour)
	if _, err := h.service.Cancel(t.Context(), tenant, gone.ID, "desk-runtime", "not needed any more"); err != nil {
		t.Fatal(err)
	}
	bob.cast(gone.ID, yes).says(t, "Too late, nothing changed: cancelled: whoever asked took it back.")
}

func principal(name string) *resolve.Call {
	c := tool("place_order", order)
	c.Principal = name
	return c
}

func TestWhoHasNoSay(t *testing.T) {
	h := open(t)
	big := h.ask(tool("execute_trade", trade))
	owner := h.browser("olga").request(big.ID)
	owner.says(t, "You may not answer this: you own the agent.")
	owner.lacks(t, `name="verdict"`)
	mine := h.ask(principal("carol"))
	carol := h.browser("carol").request(mine.ID)
	carol.says(t, "the agent acts for you")
	carol.lacks(t, `name="verdict"`)

	shared := h.ask(tool("place_order", `{"side":"buy","quantity":9,"symbol":"ACME"}`))
	if _, err := h.service.Open(t.Context(), approval.OpenInput{
		Tenant: tenant,
		Asker:  approval.Asker{Token: "second", Person: "bob"},
		Agent:  "trading-desk",
		Call:   &shared.Current().Call,
	}); err != nil {
		t.Fatal(err)
	}

	bobs := h.browser("bob").request(shared.ID)
	bobs.says(t, "the token that asks is yours", "second")
	bobs.lacks(t, `name="verdict"`)

	// The form from bob's page is refused if carol posts it.
	fields := h.browser("bob").ballot(mine.ID, "approve")
	h.browser("carol").cast(mine.ID, fields).says(t, "Nothing was decided.", "not from a page of yours")
	if got := h.request(mine.ID); got.State != approval.Pending || len(got.Votes) != 0 {
		t.Errorf("%s %v", got.State, got.Votes)
	}
}

func TestTheVersionMoved(t *testing.T) {
	h := open(t)
	big := h.ask(tool("execute_trade", trade))
	alice, dave := h.browser("alice"), h.browser("dave")
	old := alice.ballot(big.ID, "approve")
	h.pass(time.Second)
	dave.answer(big.ID, "approve", nil)
	alice.cast(big.ID, old).says(
		t,
		"Nothing was decided: the request changed after your page was made.",
		"What changed meanwhile",
		"Dave Moe (dave@example.com): approve.",
	)
	if got := h.request(big.ID); len(got.Votes) != 1 {
		t.Errorf("%d votes", len(got.Votes))
	}
}

// TestFormsCanNotBeForged: a vote needs a page that the same person opened for the same version of
// the same request.
func TestFormsCanNotBeForged(t *testing.T) {
	h := open(t)
	r, other := h.ask(tool("place_order", order)), h.ask(tool("place_order", `{"quantity":7}`))
	long := h.ask(tool("big", `{"text":"`+strings.Repeat("x", 5000)+`"}`))
	alice := h.browser("alice")
	path := "/requests/" + r.ID + "/vote"
	good := func() url.Values {
		return alice.request(r.ID).form(t, path, `value="approve"`)
	}
	for name, change := range map[string]func(url.Values){
		"no seal":        func(f url.Values) { f.Del("seen") },
		"broken seal":    func(f url.Values) { f.Set("seen", f.Get("seen")+"A") },
		"rewritten seal": func(f url.Values) { f.Set("seen", rewrite(t, f.Get("seen"))) },
		"another request": func(f url.Values) {
			f.Set("seen", alice.request(other.ID).form(t, "/requests/"+other.ID+"/vote", "approve").Get("seen"))
		},
		"another person": func(f url.Values) {
			f.Set("seen", h.browser("bob").request(r.ID).form(t, path, "approve").Get("seen"))
		},
		"form of administration": func(f url.Values) {
			f.Set("seen", alice.get("/freeze").form(t, "/auth/sign-out", "").Get("seen"))
		},
		"another version": func(f url.Values) { f.Set("version", "99") },
		"no version":      func(f url.Values) { f.Del("version") },
		"another binding": func(f url.Values) { f.Set("binding", other.Binding()) },
		"another id":      func(f url.Values) { f.Set("request", other.ID) },
		"too old":         func(f url.Values) { h.pass(13 * time.Hour) },
	} {
		fields := good()
		h.pass(time.Second)
		change(fields)
		alice.post(path, fields).says(t, "Nothing was decided.")
		if got := h.request(r.ID); len(got.Votes) != 0 {
			t.Fatalf("%s: voted", name)
		}
	}

	alice.post(path, good()).says(t, "Nothing was decided.", "right after the page opened")
	cut := alice.ballot(long.ID, "deny")
	cut.Set("verdict", "approve")
	alice.cast(long.ID, cut).says(t, "Your page did not show the whole call.")
	if h.request(r.ID).State != approval.Pending || h.request(long.ID).State != approval.Pending {
		t.Error("decided")
	}
}

// rewrite changes a seal so that it claims that everything was shown.
func rewrite(t *testing.T, sealed string) string {
	t.Helper()
	text, tag, _ := strings.Cut(sealed, ".")
	body, err := base64.RawURLEncoding.DecodeString(text)
	must.Do(t, err)
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), `"v":`, `"v":1`, 1))) + "." + tag
}

// TestReadingDecidesNothing: GET and HEAD on every address, with all fields of a form in the query,
// change nothing.
func TestReadingDecidesNothing(t *testing.T) {
	ctx := t.Context()
	h := open(t)
	h.fill()
	r := h.ask(tool("place_order", `{"side":"sell","quantity":77}`))
	grants, err := h.store.Grants(ctx, tenant, false, h.now())
	if err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	bob := h.browser("carol")
	fields := bob.ballot(r.ID, "approve")
	general := bob.get("/grants").form(t, "/grants/"+grants[0].ID+"/revoke", "")
	h.seal()
	before, _, err := h.store.Checkpoint(ctx, tenant)
	must.Do(t, err)
	h.pass(time.Second)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, path := range []string{
			"/",
			"/queue",
			"/requests/" + r.ID,
			"/requests/" + r.ID + "/vote",
			"/requests/" + r.ID + "/edit",
			"/batch",
			"/batch?id=" + r.ID,
			"/grants",
			"/grants/" + grants[0].ID + "/revoke",
			"/ledger",
			"/ledger/export",
			"/activity",
			"/agents",
			"/deliveries",
			"/deliveries/1/redeliver",
			"/freeze",
			"/thaw",
			"/nothing",
			"/events",
		} {
			for _, f := range []url.Values{fields, general} {
				u, _ := url.Parse(h.url + path)
				q := u.Query()
				for k, v := range f {
					q[k] = append(q[k], v...)
				}
				u.RawQuery = q.Encode()
				if path == "/events" && method == http.MethodGet {
					continue // it doesn't end by itself; another test reads it
				}
				req, _ := http.NewRequestWithContext(ctx, method, u.String(), nil)
				bob.read(bob.client.Do(req))
			}
		}
	}

	h.seal()
	if after, _, _ := h.store.Checkpoint(ctx, tenant); after != before {
		t.Errorf("%d ledger entries came from reading", after-before)
	}
}

func TestNobodyIsShownNothing(t *testing.T) {
	h := open(t)
	r := h.ask(tool("place_order", order))
	for _, path := range []string{"/", "/requests/" + r.ID, "/ledger", "/events"} {
		for _, who := range []string{"", "mallory"} {
			if p := h.browser(who).get(path); p.status != http.StatusUnauthorized || strings.Contains(p.body, "ACME") {
				t.Errorf("%q %s: %d", who, path, p.status)
			}
		}
	}
}

// TestOtherOriginsAreRefused: server/auth refuses them, and the seal stops requests that get past
// it.
func TestOtherOriginsAreRefused(t *testing.T) {
	h := open(t)
	r := h.ask(tool("place_order", order))
	bob := h.browser("bob")
	fields := bob.ballot(r.ID, "approve")
	h.pass(time.Second)
	req, _ := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		h.url+"/requests/"+r.ID+"/vote",
		strings.NewReader(fields.Encode()),
	)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	if p := bob.read(bob.client.Do(req)); p.status != http.StatusForbidden || len(h.request(r.ID).Votes) != 0 {
		t.Errorf("%d", p.status)
	}
}

func TestTheStoreIsGone(t *testing.T) {
	h := open(t)
	r := h.ask(tool("place_order", order))
	bob := h.browser("bob")
	fields := bob.ballot(r.ID, "approve")
	h.pass(time.Second)
	must.Do(t, h.store.Close())
	for _, p := range []page{bob.get("/"), bob.request(r.ID), bob.cast(r.ID, fields)} {
		if p.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", p.path, p.status)
		}
		p.says(t, "Nothing was decided")
	}
}

func TestStandingApprovals(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	big := h.ask(tool("execute_trade", trade))
	bob.request(big.ID).lacks(t, "Make a standing approval") // the policy forbids it
	fixed := h.ask(tool("place_order", order))
	bob.request(fixed.ID).lacks(t, `name="bound"`) // no rule allows a number to vary
	r := h.ask(tool("refund", `{"amount":340.00,"currency":"USD","order":"R-1"}`))
	bob.request(r.ID).says(
		t,
		"This lets agent trading-desk call tool refund with exactly these arguments",
		"at most 1 time within 1 hour",
		"Any other argument asks again",
		"anything from 0 up to 340.00",
		"All uses together, amount: at most 1 × 340.00 = 340.00 USD",
	)
	for _, bad := range []url.Values{
		{"uses": {"0"}},
		{"uses": {"51"}},
		{"uses": {"x"}},
		{"hours": {"9999"}},
		{"bound": {"at_most:order"}},
		{"bound": {"anything:amount"}},
	} {
		bad.Set("grant", "on")
		for k, v := range map[string]string{"uses": "5", "hours": "1"} {
			bad.Set(k, cmp.Or(bad.Get(k), v))
		}
		bob.answer(r.ID, "approve", bad).says(t, "Nothing was decided.", "expected")
	}

	bob.answer(r.ID, "approve", url.Values{
		"grant":   {"on"},
		"uses":    {"20"},
		"hours":   {"1"},
		"session": {"on"},
		"bound":   {"at_most:amount"},
	}).says(t, "A standing approval came out of it")
	list := bob.get("/grants")
	list.says(
		t,
		"amount from 0 up to the approved number",
		"0 of 20 times used",
		"only in session s-1",
		"only for client-7",
		"Approved by Bob Roe",
		"All uses together, amount: at most 20 × 340.00 = 6,800.00 USD.",
	)
	grants, err := h.store.Grants(t.Context(), tenant, false, h.now())
	if err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	path := fmt.Sprintf("/grants/%s/revoke", grants[0].ID)
	fields := list.form(t, path, "")
	h.pass(time.Second)
	fields.Set("reason", "over")
	bob.post(path, fields).says(t, "Revoked: calls under this standing approval ask again", "There are none.")
	bob.get("/grants?all=1").says(t, "Revoked by bob@example.com", "over")
}
