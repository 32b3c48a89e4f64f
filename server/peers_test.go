package server_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// refuses reports whether a schema of openapi.yaml refuses a JSON text.
func refuses(t *testing.T, schema any, text string) bool {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return len(theContract().schema(t, schema).Validate(v)) > 0
}

// bodySchema returns the schema of the body of an operation.
func bodySchema(t *testing.T, operation string) any {
	t.Helper()
	c := theContract()
	media, ok := c.at(c.byName[operation].def, "requestBody", "content", "application/json").(map[string]any)
	if !ok {
		t.Fatalf("%s takes no body", operation)
	}
	return media["schema"]
}

// parameterSchema returns the schema of a parameter of an operation.
func parameterSchema(t *testing.T, operation, name string) map[string]any {
	t.Helper()
	c := theContract()
	o := c.byName[operation]
	own, _ := o.def["parameters"].([]any)
	ofPath, _ := c.at(c.doc, "paths", o.path, "parameters").([]any)
	for _, p := range append(own, ofPath...) {
		p, _ := c.resolve(p).(map[string]any)
		if p["name"] == name {
			return p["schema"].(map[string]any)
		}
	}

	t.Fatalf("%s has no parameter %s", operation, name)
	return nil
}

// alike checks that the server and openapi.yaml agree: the server must accept what the
// document accepts and refuse what it refuses.
func alike(t *testing.T, what string, refused bool, a *answer) {
	t.Helper()
	switch {
	case refused && a.status < 400:
		t.Errorf("%s: the document refuses it, the server answers %d", what, a.status)
	case !refused && a.status >= 400 && a.str("code") == string(openapi.CodeBadRequest):
		t.Errorf("%s: the document takes it, the server answers %s", what, a.text)
	}
}

func TestTheDocumentIsAsStrictAsTheServerAboutBodies(t *testing.T) {
	h := newHarness(t)
	runtime := h.runtime()
	mara := h.voter("mara")
	admin := h.admin()
	call := h.ask(runtime, `{"amount":20000}`)
	tool := func(more string) string { return `{"kind":"tool","tool":"trade"` + more + `}` }
	question := func(more string) string {
		return `{"call":` + tool("") + `,"question":{"asker":"a","prompt":"","choices":["x"],"default":0}` + more + `}`
	}
	vote := func(more string) string {
		return `{"verdict":"deny","binding":"000000000000"` + more + `}`
	}
	token := func(more string) string { return `{"name":"x","scopes":["decide"]` + more + `}` }
	many := strings.Repeat("ü", 2500)
	both, refusals := 0, 0
	for _, c := range []struct {
		operation, path, token string
		bodies                 []string
	}{
		{
			"POST /v1/agents/{agent}/decide",
			"/v1/agents/desk/decide",
			runtime,
			[]string{
				tool(""),
				`{}`,
				`{"kind":"tool"}`,
				`{"kind":"tools","tool":"trade"}`,
				tool(`,"server":"x"`),
				tool(`,"agent":"x"`),
				tool(`,"skill":"x"`),
				tool(`,"parent":{"input":1}`),
				tool(`,"remote":true`),
				tool(`,"annotations":{"a":1}`),
				tool(`,"annotations":null`),
				tool(`,"annotations":[]`),
				tool(`,"args":{}`),
				tool(`,"principal":""`),
				tool(`,"principal":"m"`),
				tool(`,"principal":"m\u0000"`),
				tool(`,"session":""`),
				tool(`,"session":"a\nb"`),
				tool(`,"session":null`),
				tool(`,"tool_definition":""`),
				tool(`,"tool_definition":"\u009b"`),
				tool(`,"session":"` + strings.Repeat("s", 1025) + `"`),
				tool(`,"Session":"s"`),
				`{"kind":"tool","tool":""}`,
				`{"kind":"mcp_tool","tool":"x"}`,
				`{"kind":"mcp_tool","tool":"x","server":"y"}`,
				`{"kind":"mcp_tool","tool":"x","server":"y","parent":{"input":1}}`,
				`{"kind":"skill","agent":"x"}`,
				`{"kind":"skill","agent":"x","skill":"y"}`,
				`{"kind":"skill","agent":"x","skill":"y","parent":{}}`,
				`{"kind":"skill","agent":"x","skill":"y","tool":"z"}`,
				`{"kind":"skill","agent":"x","skill":"y","parent":{"input":{},"more":1}}`,
				`{"kind":"delegation","agent":"x","remote":true,"parent":{"input":null}}`,
				`{"kind":"delegation"}`,
				`{"kind":"delegation","agent":"x","remote":"yes"}`,
				`{"kind":"delegation","agent":"x","skill":"y"}`,
			},
		},
		{
			"POST /v1/agents/{agent}/requests",
			"/v1/agents/desk/requests",
			runtime,
			[]string{
				`{}`,
				`{"call":` + tool(`,"parent":{}`) + `}`,
				`{"call":` + tool("") + `,"replaces":""}`,
				`{"call":` + tool("") + `,"replaces":"apr_\u0001"}`,
				`{"call":` + tool("") + `,"replace":"x"}`,
			},
		},
		{
			"POST /v1/agents/{agent}/questions",
			"/v1/agents/desk/questions",
			runtime,
			[]string{
				question(""),
				question(`,"within":""`),
				question(`,"within":"5m"`),
				question(`,"within":"1h30m"`),
				question(`,"within":"1.5h"`),
				question(`,"within":"5"`),
				question(`,"within":"-5m"`),
				question(`,"within":"+5m"`),
				question(`,"within":"0s"`),
				question(`,"within":"99999999999h"`),
				question(`,"within":".5h"`),
				question(`,"within":" 5m"`),
				question(`,"within":5`),
				strings.Replace(question(""), `"asker":"a"`, `"asker":""`, 1),
				strings.Replace(question(""), `"asker":"a"`, `"asker":"a\t"`, 1),
				strings.Replace(question(""), `"default":0`, `"default":10000`, 1),
				strings.Replace(question(""), `"prompt":""`, `"prompt":"\u0000"`, 1),
				strings.Replace(question(""), `["x"]`, `["\u0000"]`, 1),
				strings.Replace(question(""), `["x"]`, `[]`, 1),
				strings.Replace(question(""), `"default":0`, `"default":0,"groups":[""]`, 1),
			},
		},
		{
			"POST /v1/requests/{id}/votes",
			"/v1/requests/" + call.ID + "/votes",
			mara,
			[]string{
				vote(""),
				vote(`,"channel":""`),
				vote(`,"channel":"slack"`),
				vote(`,"channel":"cli"`),
				vote(`,"channel":"a b"`),
				vote(`,"reason":"\u0000"`),
				vote(`,"reason":"` + many + `"`),
				vote(`,"reason":"` + many + many + `"`),
				vote(`,"choice":-1`),
				vote(`,"choice":10000`),
				vote(`,"grant":{}`),
				vote(`,"grant":{"session":false}`),
				vote(`,"grant":{"session":true}`),
				vote(`,"grant":{"max_age":""}`),
				vote(`,"grant":{"max_age":"8h"}`),
				vote(`,"grant":{"max_age":"8h","max_uses":0}`),
				vote(`,"grant":{"max_uses":1}`),
				vote(`,"grant":{"max_uses":2147483649}`),
				vote(`,"grant":{"session":true,"bounds":[{"path":"a"}]}`),
				vote(`,"grant":{"session":true,"bounds":[{"path":"a","kind":"at_most"}]}`),
				`{"verdict":"deny","binding":""}`,
				`{"verdict":"no","binding":"000000000000"}`,
			},
		},
		{
			"POST /v1/requests/{id}/edits",
			"/v1/requests/" + call.ID + "/edits",
			mara,
			[]string{
				`{"arguments":"{}","binding":"000000000000","reason":"\u0000"}`,
				`{"arguments":"{}","binding":"000000000000","channel":"inbox"}`,
				`{"arguments":{},"binding":"000000000000"}`,
			},
		},
		{
			"POST /v1/requests/{id}/consume",
			"/v1/requests/" + call.ID + "/consume",
			runtime,
			[]string{
				`{"key":"k"}`,
				`{"key":"k","binding":""}`,
				`{"key":"k","binding":"x"}`,
				`{"key":"k","binding":"x","call":` + tool("") + `}`,
				`{"key":"k","binding":"","call":` + tool("") + `}`,
				`{"key":"k","call":` + tool("") + `}`,
				`{"key":"","binding":"x"}`,
				`{"key":"a\nb","binding":"x"}`,
				`{"key":"` + strings.Repeat("ü", 150) + `","binding":"x"}`,
				`{"key":"` + strings.Repeat("ü", 201) + `","binding":"x"}`,
				`{"key":"k","binding":"\u0005"}`,
			},
		},
		{
			"POST /v1/freezes",
			"/v1/freezes",
			admin,
			[]string{
				`{"agent":"nobody"}`,
				`{"agent":"\u0007"}`,
				`{"agent":"nobody","reason":"` + many + `"}`,
				`{"agent":"nobody","reason":"` + many + many + `"}`,
				`{"agents":"desk"}`,
			},
		},
		{
			"POST /v1/tokens",
			"/v1/tokens",
			admin,
			[]string{
				token(""),
				token(`,"agents":[""]`),
				token(`,"agents":[]`),
				token(`,"person":""`),
				token(`,"expires_in":""`),
				token(`,"expires_in":"1h"`),
				token(`,"expires_in":"90d"`),
				token(`,"expires_in":"9000000h"`),
				`{"name":"","scopes":["decide"]}`,
				`{"name":"-x","scopes":["decide"]}`,
				`{"name":"x y","scopes":["decide"]}`,
				`{"name":"x","scopes":[]}`,
				`{"name":"x","scopes":["all"]}`,
			},
		},
	} {
		for i, body := range c.bodies {
			refused := refuses(t, bodySchema(t, c.operation), body)
			a := h.do(
				"POST",
				c.path,
				c.token,
				body,
				"If-Match",
				version(call),
				"Idempotency-Key",
				"key-"+strings.Repeat("i", i),
			)
			alike(t, c.operation+" "+body, refused, a)
			if both++; refused {
				refusals++
			}
		}
	}

	if refusals < 30 || both-refusals < 30 {
		t.Errorf("%d of %d bodies are refused: both sides want cases", refusals, both)
	}
}

func TestTheDocumentIsAsStrictAsTheServerAboutParameters(t *testing.T) {
	h := newHarness(t)
	runtime := h.runtime()
	mara := h.voter("mara")
	admin := h.admin()
	call := h.ask(runtime, `{"amount":20000}`)
	for _, c := range []struct {
		operation, path, token, name string
		texts                        []string
	}{
		{"GET /v1/grants", "/v1/grants", mara, "all", []string{"", "true", "false", "1", "TRUE"}},
		{"GET /v1/requests", "/v1/requests", mara, "mine", []string{"", "true", "no"}},
		{"GET /v1/requests", "/v1/requests", mara, "order", []string{"", "newest", "due", "Due"}},
		{
			"GET /v1/requests",
			"/v1/requests",
			mara,
			"state",
			[]string{"", "open", "pending,denied", "pending,", "Pending", "granted"},
		},
		{"GET /v1/requests", "/v1/requests", mara, "limit", []string{"", "0", "1", "500", "501", "x"}},
		{
			"GET /v1/requests/{id}",
			"/v1/requests/" + call.ID,
			mara,
			"wait",
			[]string{"", "0s", "1ms", "-1ms", "1", "1e3s", "1 s", "0h0m1ms"},
		},
		{
			"GET /v1/requests/{id}",
			"/v1/requests/" + call.ID,
			mara,
			"version",
			[]string{"", "0", "7", "-1", "9007199254740991", "9007199254740992", "x"},
		},
		{"GET /v1/deliveries", "/v1/deliveries", admin, "state", []string{"", "dead", "Dead"}},
	} {
		for _, text := range c.texts {
			a := h.do("GET", c.path+"?"+url.Values{c.name: {text}}.Encode(), c.token, "")
			alike(t, c.operation+" "+c.name+"="+text, refusesText(t, parameterSchema(t, c.operation, c.name), text), a)
		}
	}

	for _, text := range []string{`"1"`, `1`, `"0"`, `"01"`, `"+1"`, `W/"1"`, `*`, `""`, `"9223372036854775808"`} {
		a := h.do(
			"POST",
			"/v1/requests/"+call.ID+"/votes",
			mara,
			`{"verdict":"deny","binding":"000000000000"}`,
			"If-Match",
			text,
		)
		alike(
			t,
			"If-Match: "+text,
			refusesText(t, parameterSchema(t, "POST /v1/requests/{id}/votes", "If-Match"), text),
			a,
		)
	}

	for _, text := range []string{"k", "a b", strings.Repeat("k", 200), strings.Repeat("k", 201)} {
		a := h.do(
			"POST",
			"/v1/agents/desk/requests",
			runtime,
			`{"call":{"kind":"tool","tool":"trade"}}`,
			"Idempotency-Key",
			text,
		)
		alike(
			t,
			"Idempotency-Key: "+text,
			refusesText(t, parameterSchema(t, "POST /v1/agents/{agent}/requests", "Idempotency-Key"), text),
			a,
		)
	}

	for _, number := range []string{"0", "1", "-1", "x", "9007199254740991", "9007199254740992"} {
		a := h.do("POST", "/v1/deliveries/"+number+"/redeliver", admin, "")
		alike(
			t,
			"delivery "+number,
			refusesText(t, parameterSchema(t, "POST /v1/deliveries/{number}/redeliver", "number"), number),
			a,
		)
	}
}

// refusesText reports whether a schema refuses the text of a parameter, converted to its
// type.
func refusesText(t *testing.T, schema map[string]any, text string) bool {
	t.Helper()
	quoted, err := json.Marshal(text)
	must(t, err)
	if kind := schema["type"]; (kind == "integer" || kind == "boolean") && json.Valid([]byte(text)) {
		quoted = []byte(text)
	}
	return refuses(t, schema, string(quoted))
}

// TestRefusesCombinationsAsInvalid covers combinations that no schema of a parameter can
// express.
func TestRefusesCombinationsAsInvalid(t *testing.T) {
	h := newHarness(t)
	if a := h.do("GET", "/v1/requests?mine=true&group=risk", h.voter("mara"), ""); a.status != 422 ||
		a.str("field") != "group" {
		t.Errorf("%d %s", a.status, a.text)
	}
	both := h.token(store.Token{Name: "both", Scopes: []string{"decide"}})
	if a := h.do(
		"POST",
		"/v1/agents/desk/decide",
		both,
		`{"kind":"tool","tool":"trade","session":"a\nb"}`,
	); a.status != 422 || a.str("field") != "call.session" {
		t.Errorf("%d %s", a.status, a.text)
	}
}
