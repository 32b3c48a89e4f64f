package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

func TestEveryOperationIsServedAndTheOtherWayRound(t *testing.T) {
	served := map[string][]string{}
	for pattern, scopes := range server.Routes() {
		served[pattern] = scopes
	}
	for _, o := range theContract().operations() {
		scopes, ok := served[o.pattern()]
		if !ok {
			t.Errorf("openapi.yaml promises %s, which nobody serves", o.pattern())
			continue
		}
		delete(served, o.pattern())
		if want := scopesOf(o); !slices.Equal(scopes, want) {
			t.Errorf("%s needs scope %v, openapi.yaml says %v", o.pattern(), scopes, want)
		}
	}

	for pattern := range served {
		t.Errorf("%s is served, and not in openapi.yaml", pattern)
	}
}

// scopesOf returns the scopes of which openapi.yaml requires one.
func scopesOf(o operation) []string {
	var out []string
	for _, alternative := range o.def["security"].([]any) {
		for _, s := range alternative.(map[string]any) {
			for _, name := range s.([]any) {
				out = append(out, name.(string))
			}
		}
	}

	return out
}

func TestQueriesAndHeadersAreThoseOfTheContract(t *testing.T) {
	for pattern, query := range server.Queries() {
		var want []string
		for _, o := range theContract().operations() {
			if o.pattern() != pattern {
				continue
			}
			params, _ := o.def["parameters"].([]any)
			for _, p := range params {
				if m := theContract().resolve(p).(map[string]any); m["in"] == "query" {
					want = append(want, m["name"].(string))
				}
			}
		}

		slices.Sort(want)
		slices.Sort(query)
		if !slices.Equal(query, want) {
			t.Errorf("%s takes %v, openapi.yaml says %v", pattern, query, want)
		}
	}
}

// concrete fills a pattern with names of existing things.
func concrete(h *harness, pattern, request, grant string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	if strings.Contains(path, "/grants/") {
		request = grant
	}
	return method, strings.NewReplacer("{agent}", "desk", "{id}", request, "{index}", "0", "{number}", "1").
		Replace(path)
}

// TestScopes tries every operation with a token of each single scope: access must be
// granted exactly if the contract allows it.
func TestScopes(t *testing.T) {
	h := newHarness(t)
	r := h.ask(h.runtime(), `{"amount":1}`)
	bare := h.token(store.Token{Name: "bare"})
	secrets := map[string]string{}
	for _, s := range everyScope(t) {
		secrets[s] = h.token(store.Token{Name: "only-" + s, Person: "mara", Scopes: []string{s}})
	}
	for pattern, scopes := range server.Routes() {
		if strings.HasSuffix(pattern, "/v1/events") || len(scopes) == 0 || pattern == "GET /metrics" {
			continue
		}
		method, path := concrete(h, pattern, r.ID, "grt_none")
		for s, secret := range secrets {
			a := h.do(method, path, secret, "")
			if refused := strings.Contains(a.text, `"missing_scope"`); refused == slices.Contains(scopes, s) {
				t.Errorf("%s with scope %s: %d %s", pattern, s, a.status, a.text)
			}
		}

		if a := h.do(method, path, bare, ""); a.status != 403 || a.str("code") != "missing_scope" {
			t.Errorf("%s without any scope: %d %s", pattern, a.status, a.text)
		}
	}
}

// everyScope returns the scopes of the contract.
func everyScope(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range theContract().at(theContract().doc, "components", "schemas", "Scope", "enum").([]any) {
		all = append(all, s.(string))
	}
	return all
}

func TestCredentials(t *testing.T) {
	h := newHarness(t)
	good := h.admin()
	expired := h.token(store.Token{Scopes: []string{"admin"}, Expires: time.Now().Add(-time.Second)})
	revoked := h.token(store.Token{Scopes: []string{"admin"}})
	var id string
	all, err := h.store.Tokens(t.Context(), "acme")
	must(t, err)
	for _, tok := range all {
		if tok.Hash == tokens.Hash(revoked) {
			id = tok.ID
		}
	}
	if a := h.do("POST", "/v1/tokens/"+id+"/revoke", good, ""); a.status != 204 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	for _, c := range []struct{ name, header, code string }{
		{"none", "", "unauthenticated"},
		{"another scheme", "Basic " + good, "unauthenticated"},
		{"no scheme", good, "unauthenticated"},
		{"nothing after it", "Bearer ", "unauthenticated"},
		{"unknown", "Bearer assent_" + strings.Repeat("A", 43), "unauthenticated"},
		{"one letter off", "Bearer " + good[:len(good)-1] + "_", "unauthenticated"},
		{"its hash", "Bearer " + tokens.Hash(good), "unauthenticated"},
		{"expired", "Bearer " + expired, "token_expired"},
		{"revoked", "Bearer " + revoked, "token_revoked"},
	} {
		a := h.do("GET", "/v1/tokens", "", "", "Authorization", c.header)
		if a.status != 401 || a.str("code") != c.code ||
			!strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: got %d %s", c.name, a.status, a.text)
		}
	}

	if a := h.do("GET", "/v1/tokens", "", "", "Cookie", "token="+good+"; session="+good); a.status != 401 {
		t.Errorf("a cookie let in: %s", a.text)
	}
	if a := h.do("GET", "/v1/tokens?access_token="+good, "", ""); a.status != 401 {
		t.Errorf("a query let in: %s", a.text)
	}
	h.do("GET", "/v1/tokens", "", "", "Authorization", "bearer "+good).must(200)
	for _, secret := range []string{good, expired, revoked} {
		if strings.Contains(h.log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

func TestTokens(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	for _, c := range []struct{ name, body, code string }{
		{"no name", `{"scopes":["read"]}`, "bad_request"},
		{"odd name", `{"name":"a b","scopes":["read"]}`, "invalid"},
		{"no scopes", `{"name":"a","scopes":[]}`, "invalid"},
		{"unknown scope", `{"name":"a","scopes":["root"]}`, "invalid"},
		{"vote for nobody", `{"name":"a","scopes":["vote"]}`, "invalid"},
		{"vote for a stranger", `{"name":"a","scopes":["vote"],"person":"eve"}`, "invalid"},
		{"ask and answer", `{"name":"a","scopes":["vote","request"],"person":"mara"}`, "invalid"},
		{"read of one agent", `{"name":"a","scopes":["read"],"agents":["desk"]}`, "invalid"},
		{"for ever", `{"name":"a","scopes":["read"],"expires_in":"9000h"}`, "invalid"},
		{"no duration", `{"name":"a","scopes":["read"],"expires_in":"soon"}`, "bad_request"},
		{"another tenant", `{"name":"a","scopes":["read"],"tenant":"globex"}`, "bad_request"},
		{"scopes that are no list", `{"name":"a","scopes":"read"}`, "bad_request"},
		{"scopes that are no texts", `{"name":"a","scopes":[1]}`, "bad_request"},
	} {
		if a := h.do("POST", "/v1/tokens", admin, c.body); a.str("code") != c.code {
			t.Errorf("%s: got %d %s", c.name, a.status, a.text)
		}
	}

	made := h.administer(
		"/v1/tokens",
		admin,
		`{"name":"auditor","scopes":["read","read"],"person":"mara@example.com"}`,
	).
		must(201)
	if made.str("token", "person") != "mara" || len(made.str("secret")) != len("assent_")+43 ||
		strings.Contains(made.text, "hash") {
		t.Errorf("got %s", made.text)
	}
	secret, id := made.str("secret"), made.str("token", "id")
	h.do("GET", "/v1/requests", secret, "").must(200)
	list := h.do("GET", "/v1/tokens", admin, "").must(200)
	if !strings.Contains(list.text, id) || strings.Contains(list.text, secret) ||
		strings.Contains(list.text, tokens.Hash(secret)) {
		t.Errorf("got %s", list.text)
	}
	h.do("POST", "/v1/tokens/"+id+"/revoke", admin, "").must(204)
	h.do("GET", "/v1/requests", secret, "").must(401)
	h.do("POST", "/v1/tokens/tok_none/revoke", admin, "").must(404)
	n := h.size()
	entries, err := h.store.Entries(t.Context(), "acme", int64(n-2), 2)
	must(t, err)
	for i, want := range []string{`"type":"token_created"`, `"type":"token_revoked"`} {
		if leaf := string(entries[i].Leaf); !strings.Contains(leaf, want) || !strings.Contains(leaf, id) ||
			!strings.Contains(leaf, `"actor":"root"`) ||
			strings.Contains(leaf, secret) {
			t.Errorf("got %s", leaf)
		}
	}
}

// TestTenants checks that no operation shows one tenant's data to another.
func TestTenants(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	offer := `{"verdict":"approve","shown_fully":true,"binding":"` + r.Binding() + `","grant":{"max_uses":5}}`
	grant := h.do("POST", "/v1/requests/"+r.ID+"/votes", mara, offer, "If-Match", version(r)).
		must(200).
		str("grant", "id")
	h.size()
	all := h.token(store.Token{
		Tenant: "globex",
		Name:   "rt",
		Person: "mara",
		Scopes: []string{"decide", "request", "read", "vote"},
	})
	root := h.token(store.Token{
		Tenant: "globex",
		Name:   "root",
		Scopes: []string{"read", "admin"},
	})
	body := map[string]string{
		"votes":   offer,
		"edits":   `{"arguments":"{}","binding":"` + r.Binding() + `"}`,
		"consume": `{"binding":"` + r.Binding() + `","key":"k"}`,
	}
	for pattern := range server.Routes() {
		method, path := concrete(h, pattern, r.ID, grant)
		if !strings.Contains(path, r.ID) && !strings.Contains(path, grant) {
			continue
		}
		for _, theirs := range []string{all, root} {
			a := h.do(method, path, theirs, body[path[strings.LastIndex(path, "/")+1:]], "If-Match", version(r))
			if a.status != 404 && a.str("code") != "missing_scope" || strings.Contains(a.text, "desk") {
				t.Errorf("%s: got %d %s", pattern, a.status, a.text)
			}
		}
	}

	for _, path := range []string{
		"/v1/requests",
		"/v1/grants?all=true",
		"/v1/freezes",
		"/v1/stats",
		"/v1/deliveries",
		"/v1/audit/checkpoint",
	} {
		if a := h.do("GET", path, root, "").must(200); strings.Contains(a.text, "desk") ||
			strings.Contains(a.text, r.ID) {
			t.Errorf("%s: got %s", path, a.text)
		}
	}

	h.do("GET", "/v1/audit/proof/0", all, "").must(404)
	h.do("GET", "/v1/audit/export", all, "").must(404)
	if a := h.do("GET", "/v1/tokens", root, "").must(200); strings.Contains(a.text, "acme") {
		t.Errorf("got %s", a.text)
	}
	if a := h.do(
		"POST",
		"/v1/agents/desk/requests",
		all,
		`{"call":{"kind":"tool","tool":"trade","args":{"amount":1}}}`,
	).must(201); a.str("request", "id") == r.ID ||
		a.str("request", "tenant") != "globex" {
		t.Errorf("got %s", a.text)
	}

	if a := h.do(
		"POST",
		"/v1/agents/desk/requests",
		all,
		`{"call":{"kind":"tool","tool":"quote"},"tenant":"acme"}`,
	); a.status != 400 {
		t.Errorf("got %s", a.text)
	}
}

// TestRuntimesSeeTheirOwn checks that a token that may only ask sees only what was asked
// under its own name.
func TestRuntimesSeeTheirOwn(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	r := h.ask(rt, `{"amount":1}`)
	h.vote(h.voter("mara"), r, "approve").must(200)
	other := h.token(store.Token{Name: "rt2", Scopes: []string{"request"}})
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"GET", "/history", ""},
		{"POST", "/consume", `{"binding":"` + r.Binding() + `","key":"k"}`},
		{"POST", "/cancel", ""},
	} {
		if a := h.do(c.method, "/v1/requests/"+r.ID+c.path, other, c.body); a.status != 404 {
			t.Errorf("%s %s: got %d %s", c.method, c.path, a.status, a.text)
		}
	}

	if a := h.do(
		"POST",
		"/v1/agents/desk/requests",
		other,
		`{"call":{"kind":"tool","tool":"trade","args":{"amount":9}},"replaces":"`+r.ID+`"}`,
	); a.status != 422 ||
		a.str("field") != "replaces" {
		t.Errorf("got %s", a.text)
	}

	renewed := h.token(store.Token{Name: "rt", Scopes: []string{"request"}})
	h.look(renewed, r).must(200)
	h.consume(renewed, r, "k").must(200)
}

// TestBoundToAgents covers tokens that are bound to agents.
func TestBoundToAgents(t *testing.T) {
	h := newHarness(t)
	r := h.ask(h.token(store.Token{Name: "rt", Scopes: []string{"request"}}), `{"amount":1}`)
	bound := h.token(store.Token{
		Name:   "rt",
		Person: "mara",
		Scopes: []string{"decide", "request", "read", "vote", "admin"},
		Agents: []string{"other"},
	})
	for _, path := range []string{"/v1/agents/desk/decide", "/v1/agents/desk/requests"} {
		if a := h.do("POST", path, bound, `{"call":{"kind":"tool","tool":"trade"}}`); a.str(
			"code",
		) != "agent_not_allowed" {
			t.Errorf("%s: got %s", path, a.text)
		}
	}

	h.look(bound, r).must(404)
	h.vote(bound, r, "approve").must(404)
	h.do("POST", "/v1/requests/"+r.ID+"/cancel", bound, "").must(404)
	for _, path := range []string{"/v1/requests", "/v1/tokens", "/v1/audit/checkpoint", "/v1/events"} {
		if a := h.do("GET", path, bound, ""); a.str("code") != "missing_scope" ||
			!strings.Contains(a.text, "bound to agents") {
			t.Errorf("%s: got %s", path, a.text)
		}
	}

	if a := h.do("POST", "/v1/freezes", bound, `{}`); a.str("code") != "agent_not_allowed" {
		t.Errorf("a bound token froze the tenant: %s", a.text)
	}
	h.do("POST", "/v1/freezes", bound, `{"agent":"other"}`).must(200)
}

// TestReadingChangesNothing (threat 11) checks that no GET and no HEAD of any operation
// changes anything, even with the strongest tokens. Only an export adds an entry to the
// ledger.
func TestReadingChangesNothing(t *testing.T) {
	h := newHarness(t)
	strong := h.token(store.Token{
		Name:   "rt",
		Person: "mara",
		Scopes: []string{"decide", "request", "read", "vote"},
	})
	admin := h.admin()
	r := h.ask(strong, `{"amount":1}`)
	before, doc := h.size(), h.look(strong, r).text
	for pattern := range server.Routes() {
		_, path := concrete(h, pattern, r.ID, "grt_none")
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if method == http.MethodGet && (path == "/v1/events" || path == "/v1/audit/export") {
				continue // a stream, which TestEvents reads; and operations that write an entry
			}
			for _, token := range []string{strong, admin} {
				a := h.do(method, path, token, "")
				if posts := strings.HasPrefix(pattern, "POST "); posts && a.status < 400 &&
					path != "/v1/tokens" &&
					path != "/v1/freezes" {
					t.Errorf("%s %s answers %d", method, path, a.status)
				}
				h.do(method, path+"?verdict=approve&binding="+r.Binding()+"&shown_fully=true", token, "")
			}
		}
	}

	if after := h.size(); after != before {
		t.Errorf("reading wrote %d entries", after-before)
	}
	if now := h.look(strong, r).text; now != doc {
		t.Errorf("reading changed the request:\n%s\n%s", doc, now)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "not_found", ""},
		{"GET", "/v1", 404, "not_found", ""},
		{"GET", "/v1/nothing", 404, "not_found", ""},
		{"GET", "/v1/requests/", 404, "not_found", ""},
		{"DELETE", "/v1/requests", 405, "method_not_allowed", "GET, HEAD"},
		{"PUT", "/v1/requests/x/votes", 405, "method_not_allowed", "POST"},
		{"OPTIONS", "/v1/tokens", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"POST", "/healthz", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/v1/requests/apr_none", 404, "not_found", ""},
		{"POST", "/v1/agents/nobody/decide", 404, "unknown_agent", ""},
	} {
		body := ""
		if c.code == "unknown_agent" {
			body = `{"kind":"tool","tool":"x"}`
		}
		a := h.do(c.method, c.path, rt, body)
		if a.status != c.status || a.str("code") != c.code || a.header.Get("Allow") != c.allow ||
			a.str("request_id") == "" ||
			a.str("request_id") != a.header.Get("Request-Id") {
			t.Errorf("%s %s: got %d %v %s", c.method, c.path, a.status, a.header, a.text)
		}
	}
}

func TestBodies(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	const open = "/v1/agents/desk/requests"
	big := `{"call":{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 2<<20) + `"}}}`
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		code, field      string
	}{
		{"nothing", open, "", nil, 400, "bad_request", ""},
		{"no object", open, `[]`, nil, 400, "bad_request", ""},
		{"text after it", open, `{"call":{"kind":"tool","tool":"quote"}} {}`, nil, 400, "bad_request", ""},
		{
			"a field twice",
			open,
			`{"call":{"kind":"tool","tool":"quote"},"call":{"kind":"tool","tool":"drop"}}`,
			nil,
			400,
			"bad_request",
			"call",
		},
		{
			"a field twice, spelt differently",
			open,
			`{"call":{"kind":"tool","tool":"quote"},"c\u0061ll":{"kind":"tool","tool":"drop"}}`,
			nil,
			400,
			"bad_request",
			"call",
		},
		{
			"a field twice inside",
			open,
			`{"call":{"kind":"tool","tool":"quote","tool":"drop"}}`,
			nil,
			400,
			"bad_request",
			"call.tool",
		},
		{"wrong case", open, `{"Call":{"kind":"tool","tool":"quote"}}`, nil, 400, "bad_request", "Call"},
		{"wrong case inside", open, `{"call":{"kind":"tool","Tool":"quote"}}`, nil, 400, "bad_request", "call.Tool"},
		{"unknown", open, `{"call":{"kind":"tool","tool":"quote"},"replace":"x"}`, nil, 400, "bad_request", "replace"},
		{"no call", open, `{"replaces":"x"}`, nil, 400, "bad_request", "call"},
		{"null", open, `{"call":null}`, nil, 400, "bad_request", "call"},
		{"not UTF-8", open, "{\"call\":{\"kind\":\"tool\",\"tool\":\"q\xff\"}}", nil, 400, "bad_request", "call.tool"},
		{
			"no type",
			open,
			`{"call":{"kind":"tool","tool":"quote"}}`,
			[]string{"Content-Type", ""},
			415,
			"unsupported_media_type",
			"",
		},
		{
			"a form",
			open,
			`call=1`,
			[]string{"Content-Type", "application/x-www-form-urlencoded"},
			415,
			"unsupported_media_type",
			"",
		},
		{
			"plain text",
			open,
			`{"call":{"kind":"tool","tool":"quote"}}`,
			[]string{"Content-Type", "text/plain"},
			415,
			"unsupported_media_type",
			"",
		},
		{
			"Latin-1",
			open,
			`{"call":{"kind":"tool","tool":"quote"}}`,
			[]string{"Content-Type", "application/json; charset=latin1"},
			415,
			"unsupported_media_type",
			"",
		},
		{
			"compressed",
			open,
			`{"call":{"kind":"tool","tool":"quote"}}`,
			[]string{"Content-Encoding", "gzip"},
			415,
			"unsupported_media_type",
			"",
		},
		{"over the arguments' limit", open, big + strings.Repeat(" ", 3<<20), nil, 413, "too_large", ""},
		{
			"over the limit of others",
			"/v1/requests/x/votes",
			`{"reason":"` + strings.Repeat("x", 1<<20) + `"}`,
			nil,
			413,
			"too_large",
			"",
		},
		{
			"both forms",
			"/v1/requests/ID/consume",
			`{"call":{"kind":"tool","tool":"trade"},"binding":"sha256:0","key":"k"}`,
			nil,
			400,
			"bad_request",
			"",
		},
		{"neither form", "/v1/requests/ID/consume", `{"key":"k"}`, nil, 400, "bad_request", ""},
		{"no key", "/v1/requests/ID/consume", `{"binding":"sha256:0"}`, nil, 400, "bad_request", "key"},
		{"an empty key", "/v1/requests/ID/consume", `{"binding":"sha256:0","key":""}`, nil, 400, "bad_request", "key"},
		{
			"a long reason",
			"/v1/requests/ID/cancel",
			`{"reason":"` + strings.Repeat("x", 4001) + `"}`,
			nil,
			400,
			"bad_request",
			"reason",
		},
		{"an empty object", "/v1/requests/ID/cancel", `{"resaon":"x"}`, nil, 400, "bad_request", "resaon"},
	} {
		token := rt
		if strings.HasSuffix(c.path, "votes") {
			token = mara
		}
		path := strings.Replace(c.path, "ID", r.ID, 1)
		a := h.do("POST", path, token, c.body, c.headers...)
		if a.status != c.status || a.str("code") != c.code || a.str("field") != c.field {
			t.Errorf("%s: got %d %s", c.name, a.status, a.text)
		}
	}

	h.do("POST", open, rt, big).must(200)
	h.do(
		"POST",
		open,
		rt,
		`{"call":{"kind":"tool","tool":"quote"}}`,
		"Content-Type",
		"application/json; charset=UTF-8",
	).
		must(200)
	if a := h.do("POST", "/v1/tokens/x/revoke", h.admin(), `{}`); a.str("code") != "bad_request" {
		t.Errorf("a body where none is expected: %s", a.text)
	}
}

// TestOtherNamesOfAPersonGiveNoVotes checks that a token that names its person by an alias
// may not vote, because an alias may be assigned to another person later.
func TestOtherNamesOfAPersonGiveNoVotes(t *testing.T) {
	h := newHarness(t)
	r := h.ask(h.runtime(), `{"amount":1}`)
	alias := h.token(store.Token{
		Name:   "old",
		Person: "mara@example.com",
		Scopes: []string{"read", "vote", "request"},
	})
	edit := `{"arguments":"{}","binding":"` + r.Binding() + `"}`
	for what, a := range map[string]*answer{
		"vote": h.vote(alias, r, "approve"),
		"edit": h.do("POST", "/v1/requests/"+r.ID+"/edits", alias, edit, "If-Match", version(r)),
		"mine": h.do("GET", "/v1/requests?mine=true", alias, ""),
		"ask": h.do(
			"POST",
			"/v1/agents/desk/requests",
			alias,
			`{"call":{"kind":"tool","tool":"trade","args":{"amount":2}}}`,
		),
	} {
		if a.status != 403 || a.str("code") != "no_person" ||
			!strings.Contains(a.str("detail"), "the person's id") {
			t.Errorf("%s: got %d %s", what, a.status, a.text)
		}
	}

	h.vote(h.voter("mara"), r, "approve").must(200)
}

// TestTokensOfBlockedPeopleEnd covers tokens that answer and tokens that ask.
func TestTokensOfBlockedPeopleEnd(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		d, findings := people.Parse("people.yaml", []byte(
			"schema_version: \"1.0.0\"\npeople: [{id: ada}, {id: abe}]\nblocked: [ada]\n"))
		if d == nil {
			t.Fatal(findings)
		}
		c.Directory = d
	})
	a := h.do("GET", "/v1/requests", h.voter("ada"), "").must(401)
	if a.str("code") != "token_revoked" || a.str("detail") != "its person is blocked" {
		t.Errorf("got %s", a.text)
	}
	asks := h.token(store.Token{Name: "rt-ada", Person: "ada", Scopes: []string{"decide", "request"}})
	h.opens(asks, `{"call":{"kind":"tool","tool":"quote"}}`).must(401)
	h.do("GET", "/v1/requests", h.voter("abe"), "").must(200)
}
