package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// TestAnAdminTokenIsNoApprover checks that the holder of an admin token can't make a token
// that answers or one that both asks and administers, and can't make any token without two
// administrators.
func TestAnAdminTokenIsNoApprover(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	for _, body := range []string{
		`{"name":"m","scopes":["vote"],"person":"mara"}`,
		`{"name":"m","scopes":["read","vote"],"person":"mara"}`,
		`{"name":"m","scopes":["vote","admin"],"person":"ada"}`,
		`{"name":"m","scopes":["admin","request"],"agents":["desk"]}`,
		`{"name":"m","scopes":["admin","decide"],"agents":["*"]}`,
		`{"name":"m","scopes":["request"]}`,
	} {
		if a := h.do("POST", "/v1/tokens", admin, body); a.status != 422 || a.str("code") != "invalid" {
			t.Errorf("%s: got %d %s", body, a.status, a.text)
		}
	}

	body := `{"name":"bot","scopes":["request"],"agents":["desk"]}`
	asked := h.do("POST", "/v1/tokens", admin, body).must(202)
	id := asked.str("request", "id")
	if again := h.do("POST", "/v1/tokens", admin, body).must(202); again.str("request", "id") != id {
		t.Errorf("asking again asks anew: %s", again.text)
	}
	h.approve(id, "ada")
	h.do("POST", "/v1/tokens", admin, body).must(202)
	h.approve(id, "abe")
	made := h.do("POST", "/v1/tokens", admin, body).must(201)
	if made.str("token", "name") != "bot" {
		t.Errorf("got %s", made.text)
	}
	if a := h.do("POST", "/v1/tokens", admin, body); a.status != 422 || a.str("field") != "name" {
		t.Errorf("one approval makes one token: %d %s", a.status, a.text)
	}
}

// TestATokenThatAsksDoesNotAdminister covers a token from an older version that has both
// scopes: it may not administer.
func TestATokenThatAsksDoesNotAdminister(t *testing.T) {
	h := newHarness(t)
	both := h.token(store.Token{Name: "both", Scopes: []string{"request", "admin", "read"}})
	for _, path := range []string{"/v1/tokens", "/v1/freezes/lift"} {
		if a := h.do("POST", path, both, `{"name":"x","scopes":["read"]}`); a.str("code") != "missing_scope" {
			t.Errorf("%s: got %d %s", path, a.status, a.text)
		}
	}
}

// TestAnAdministratorNeedsAnother checks that the person of an admin token can't approve
// what the token asks for.
func TestAnAdministratorNeedsAnother(t *testing.T) {
	h := newHarness(t)
	must(t, h.svc.Freeze(t.Context(), "acme", "desk", "mara", "odd"))
	root := h.token(store.Token{Name: "root", Person: "ada", Scopes: []string{"admin", "read"}})
	id := h.do("POST", "/v1/freezes/lift", root, `{"agent":"desk","reason":"done"}`).
		must(202).
		str("request", "id")

	h.vote(h.voter("ada"), h.request(id), "approve").must(200)
	if a := h.vote(h.voter("mara"), h.request(id), "approve").must(200); a.str("outcome") != "not_eligible" {
		t.Errorf("somebody who is no administrator: %s", a.text)
	}
	if r := h.request(id); r.State != approval.Pending || len(r.Votes) != 0 {
		t.Errorf("got %s with %+v", r.State, r.Votes)
	}
	h.approve(id, "abe")
	h.do("POST", "/v1/freezes/lift", root, `{"agent":"desk","reason":"done"}`).must(200)
}

// TestOneAdministratorIsNotTwo checks that an administrator can't get a token of another
// one, and that such a token from an older version may ask for nothing.
func TestOneAdministratorIsNotTwo(t *testing.T) {
	h := newHarness(t)
	ada := h.token(store.Token{Name: "adas", Person: "ada", Scopes: []string{"admin", "read"}})
	nobodys := h.admin()
	for name, body := range map[string]string{
		"admin":              `{"name":"laptop","scopes":["admin"],"person":"abe"}`,
		"admin beside read":  `{"name":"laptop","scopes":["read","admin"],"person":"abe"}`,
		"another's approver": `{"name":"laptop","scopes":["admin"],"person":"mara"}`,
	} {
		for _, by := range []string{ada, nobodys} {
			if a := h.do("POST", "/v1/tokens", by, body); a.status != 422 || a.str("field") != "person" {
				t.Errorf("%s: got %d %s", name, a.status, a.text)
			}
		}
	}
	asked := h.do("POST", "/v1/tokens", ada, `{"name":"laptop","scopes":["admin"],"person":"ada"}`)
	if asked.status == 422 && asked.str("field") == "person" {
		t.Errorf("ada can't make a token of her own: %s", asked.text)
	}

	all, err := h.store.Tokens(t.Context(), "acme")
	must(t, err)
	maker := ""
	for _, tok := range all {
		if tok.Person == "ada" {
			maker = tok.ID
		}
	}
	old := h.token(store.Token{Name: "old", Person: "abe", Maker: maker, Scopes: []string{"admin", "read"}})
	must(t, h.svc.Freeze(t.Context(), "acme", "desk", "mara", "odd"))
	for path, body := range map[string]string{
		"/v1/tokens":       `{"name":"bot","scopes":["request"],"agents":["desk"]}`,
		"/v1/freezes/lift": `{"agent":"desk","reason":"done"}`,
	} {
		if a := h.do("POST", path, old, body); a.status != 403 || a.str("code") != "no_person" {
			t.Errorf("%s: got %d %s", path, a.status, a.text)
		}
	}
	if a := h.do("POST", "/v1/freezes/lift", ada, `{"agent":"desk","reason":"done"}`); a.status != 202 {
		t.Errorf("ada's own token: %d %s", a.status, a.text)
	}
}

// TestALiftIsForOneFreeze checks that an approval to lift a freeze does not lift a later
// one of the same agent.
func TestALiftIsForOneFreeze(t *testing.T) {
	h := newHarness(t)
	body := `{"agent":"desk","reason":"done"}`
	root := h.admin()
	h.do("POST", "/v1/freezes/lift", root, body).must(404)
	must(t, h.svc.Freeze(t.Context(), "acme", "desk", "mara", "odd"))
	first := h.do("POST", "/v1/freezes/lift", root, body).must(202).str("request", "id")
	h.approve(first, "ada", "abe")
	must(t, h.svc.Thaw(t.Context(), "acme", "desk", "mara", "done"))
	h.clock.Add(time.Minute)
	must(t, h.svc.Freeze(t.Context(), "acme", "desk", "mara", "an incident"))
	second := h.do("POST", "/v1/freezes/lift", root, body).must(202).str("request", "id")
	if second == first {
		t.Error("the approval for the first freeze is taken for the second")
	}
	if freezes, _ := h.store.Freezes(t.Context(), "acme"); len(freezes) != 1 {
		t.Errorf("got %+v", freezes)
	}
}

// TestRuntimesCantSpeakForAdministration checks that the reserved agent is not found for
// runtimes.
func TestRuntimesCantSpeakForAdministration(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	for path, body := range map[string]string{
		"requests": `{"call":{"kind":"tool","tool":"create_token","args":{"name":"x"}}}`,
		"decide":   `{"kind":"tool","tool":"create_token","args":{"name":"x"}}`,
		"questions": `{"call":{"kind":"tool","tool":"create_token","args":{}},"asker":"files","prompt":"?",` +
			`"choices":["a","b"],"default":0}`,
	} {
		a := h.do("POST", "/v1/agents/"+administration.Agent+"/"+path, rt, body)
		if a.status != 404 && a.str("denied") != "unknown_agent" && a.str("outcome") != "deny" {
			t.Errorf("%s: got %d %s", path, a.status, a.text)
		}
	}

	if found, err := h.store.Requests(t.Context(), "acme", approval.Filter{Agent: administration.Agent}); err != nil ||
		found.Total != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// TestWhoLeftCanDoNothing checks that the token of a person whom the directory no longer
// knows can neither freeze nor revoke.
func TestWhoLeftCanDoNothing(t *testing.T) {
	h := newHarness(t)
	mara, gone := h.voter("mara"), h.voter("eve")
	r := h.ask(h.runtime(), `{"amount":1}`)
	grant := h.do(
		"POST",
		"/v1/requests/"+r.ID+"/votes",
		mara,
		`{"verdict":"approve","shown_fully":true,"binding":"`+r.Binding()+`","grant":{"max_uses":5}}`,
		"If-Match",
		version(r),
	).must(200).str("grant", "id")
	for path, body := range map[string]string{
		"/v1/freezes":                     `{"agent":"desk"}`,
		"/v1/grants/" + grant + "/revoke": `{}`,
	} {
		if a := h.do("POST", path, gone, body); a.status != 403 || a.str("code") != "unknown_person" {
			t.Errorf("%s: got %d %s", path, a.status, a.text)
		}
	}

	if freezes, _ := h.store.Freezes(t.Context(), "acme"); len(freezes) != 0 {
		t.Errorf("got %+v", freezes)
	}
}

// TestWhoLeftReadsAndRulesNothing checks the same for every operation with a token that
// reads, answers, administers or keeps checkpoints, and while the directory fails.
func TestWhoLeftReadsAndRulesNothing(t *testing.T) {
	var people lostDirectory
	h := newHarness(t, func(c *server.Config) {
		people.Directory = c.Directory
		c.Directory = &people
		c.Loaded = func(string) []openapi.Loaded { return []openapi.Loaded{{Part: "agents", Digest: "sha256:aa"}} }
	})
	r := h.ask(h.runtime(), `{"amount":1}`)
	scopes := []string{"read", "vote", "admin", "witness"}
	gone := h.token(store.Token{Name: "gone", Person: "eve", Scopes: scopes})
	mixed := h.token(store.Token{Name: "mixed", Person: "eve", Scopes: []string{"request", "read"}})
	mara := h.token(store.Token{Name: "maras", Person: "mara", Scopes: scopes})
	ops := []struct{ method, path, body string }{
		{"GET", "/v1/requests", ""},
		{"GET", "/v1/requests/" + r.ID, ""},
		{"GET", "/v1/requests/" + r.ID + "?wait=1s", ""},
		{"GET", "/v1/events", ""},
		{"GET", "/v1/grants", ""},
		{"GET", "/v1/freezes", ""},
		{"GET", "/v1/stats", ""},
		{"GET", "/v1/agents", ""},
		{"GET", "/v1/audit/export", ""},
		{"GET", "/v1/tokens", ""},
		{"GET", "/v1/deliveries", ""},
		{"POST", "/v1/freezes", `{"agent":"desk"}`},
		{"POST", "/v1/freezes/lift", `{"agent":"desk"}`},
		{"POST", "/v1/tokens", `{"name":"x","scopes":["read"]}`},
		{"POST", "/v1/tokens/tok_1/revoke", ""},
		{"POST", "/v1/deliveries/1/redeliver", ""},
		{"POST", "/v1/requests/" + r.ID + "/cancel", `{"reason":"x"}`},
	}
	for _, op := range ops {
		if a := h.do(op.method, op.path, gone, op.body); a.status != 403 || a.str("code") != "unknown_person" {
			t.Errorf("%s %s by who left: %d %.200s", op.method, op.path, a.status, a.text)
		}
	}
	for _, op := range ops[:3] {
		if a := h.do(op.method, op.path, mixed, op.body); a.status != 403 {
			t.Errorf("%s %s by a token that asks and reads: %d %.200s", op.method, op.path, a.status, a.text)
		}
	}
	h.do("GET", "/v1/whoami", gone, "").must(200)
	h.do("GET", "/v1/requests", mara, "").must(200)
	for token, sees := range map[string]bool{gone: false, mara: true} {
		if a := h.do("GET", "/readyz?verbose", token, "").must(200); strings.Contains(a.text, "sha256:aa") != sees {
			t.Errorf("what is loaded, seen %t: %s", !sees, a.text)
		}
	}

	people.lost.Store(true)
	for _, op := range ops {
		if a := h.do(op.method, op.path, mara, op.body); a.status != 503 || !strings.Contains(a.text, "directory") {
			t.Errorf("%s %s without a directory: %d %.200s", op.method, op.path, a.status, a.text)
		}
	}
}

// lostDirectory is a directory that fails after it is lost.
type lostDirectory struct {
	approval.Directory

	lost atomic.Bool
}

func (d *lostDirectory) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	if d.lost.Load() {
		return approval.Person{}, false, errors.New("the directory is out of reach")
	}

	return d.Directory.Person(ctx, tenant, name)
}

// TestATokenOfNobodyKnownAsksNobody checks that people are not asked if the directory does
// not know the token's person under this name: that person could not be barred from
// answering.
func TestATokenOfNobodyKnownAsksNobody(t *testing.T) {
	h := newHarness(t)
	for _, person := range []string{"eve", "mara "} {
		rt := h.token(store.Token{Name: "rt-" + person[:3], Person: person, Scopes: []string{"decide", "request"}})
		for path, body := range map[string]string{
			"requests":  `{"call":{"kind":"tool","tool":"trade","args":{"amount":1}}}`,
			"questions": `{"principal":"mara","question":{"asker":"b","prompt":"p","choices":["a","b"],"default":0}}`,
		} {
			if a := h.do("POST", "/v1/agents/desk/"+path, rt, body, "Idempotency-Key", "k"); a.status != 403 ||
				a.str("code") != "unknown_person" {
				t.Errorf("%s by a token of %q: %d %s", path, person, a.status, a.text)
			}
		}
	}
}

// TestACommandLineIsSignedInByItsPerson goes through the whole sign-in of a command line
// over HTTP.
func TestACommandLineIsSignedInByItsPerson(t *testing.T) {
	h := newHarness(t)
	begun := h.do("POST", "/v1/device", "", `{"name":"laptop"}`).must(201)
	code := begun.str("device_code")
	if url := begun.str("verification_url"); url != "https://assent.example/device" {
		t.Errorf("got %s", url)
	}
	take := `{"device_code":"` + code + `"}`
	if a := h.do("POST", "/v1/device/token", "", take); a.status != 409 || a.str("code") != "pending" {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if a := h.do("POST", "/v1/device/token", "", `{"device_code":"`+begun.str("user_code")+`"}`); a.status != 404 {
		t.Errorf("the code that people see is no secret: %d %s", a.status, a.text)
	}

	h.confirm(begun.str("user_code"), "mara")
	made := h.do("POST", "/v1/device/token", "", take).must(201)
	if made.str("token", "person") != "mara" || fmt.Sprint(made.get("token", "scopes")) != "[read vote]" {
		t.Errorf("got %s", made.text)
	}
	h.do("POST", "/v1/device/token", "", take).must(404)

	r := h.ask(h.runtime(), `{"amount":1}`)
	h.vote(made.str("secret"), r, "approve").must(200)
	h.clock.Add(tokens.VoteAge)
	h.do("GET", "/v1/requests", made.str("secret"), "").must(401)
}

// confirm does what the inbox does when a person confirms a code.
func (h *harness) confirm(code, person string) {
	h.t.Helper()
	devices := &tokens.Devices{Maker: &tokens.Maker{Store: h.store, Now: h.clock.Now}, Values: h.store}
	must(h.t, devices.Answer(h.t.Context(), code, "acme", person, true))
}

// TestTheClientSignsIn checks that a person can sign in however many strangers begin to.
func TestTheClientSignsIn(t *testing.T) {
	h := newHarness(t)
	for range 1001 {
		h.do("POST", "/v1/device", "", `{"name":"x"}`).must(201)
	}
	c, err := client.New(h.url, "", client.Options{})
	must(t, err)
	device, err := c.BeginDevice(t.Context(), "laptop")
	must(t, err)
	device.Interval = 0
	h.confirm(strings.ToLower(device.UserCode), "mara")
	made, err := c.WaitDevice(t.Context(), device)
	if err != nil || made.Token.Person != "mara" || !made.Token.Expires.After(time.Now()) {
		t.Fatalf("got %+v, %v", made, err)
	}
	if _, err := c.WaitDevice(t.Context(), device); client.Code(err) != openapi.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

// TestActsOfAdministratorsAreInTheLedger covers exports, redelivered deliveries, tokens and
// freezes.
func TestActsOfAdministratorsAreInTheLedger(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	h.do("POST", "/v1/freezes", admin, `{"agent":"desk","reason":"odd"}`).must(200)
	h.administer("/v1/freezes/lift", admin, `{"agent":"desk","reason":"done"}`).must(200)
	made := h.administer("/v1/tokens", admin, `{"name":"auditor","scopes":["read"]}`).must(201)
	h.do("POST", "/v1/tokens/"+made.str("token", "id")+"/revoke", admin, "").must(204)
	h.size()
	h.do("GET", "/v1/audit/export", admin, "").must(200)

	h.size()
	entries, err := h.store.Entries(t.Context(), "acme", 0, 1000)
	must(t, err)
	all := ""
	for _, e := range entries {
		all += string(e.Leaf) + "\n"
	}
	for _, kind := range []string{
		"frozen",
		"thawed",
		"token_created",
		"token_revoked",
		"exported",
		"request_opened",
		"permit_consumed",
	} {
		if !strings.Contains(all, `"type":"`+kind+`"`) {
			t.Errorf("%s is not in the ledger:\n%s", kind, all)
		}
	}
}
