package inbox_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const tenant = "acme"

const agentFile = `schema_version: "1.0.0"
metadata: {id: trading-desk, name: Trading Desk, version: "2.3.0", namespace: acme.finance.trading, description: Trades for the desk.}
interface:
  input: {type: object, properties: {request: {type: string}}}
  output: {type: object, properties: {summary: {type: string}}}
constraints:
  budget: {max_token_usage: 1000, max_duration_seconds: 60}
  governance_policies:
    - {policy_ref: acme.trade-controls}
action_space:
  local_tools:
    - alias: place_order
      approval: {message_template: "Send an order, {{tool_args.side}} {{tool_args.quantity}} {{tool_args.symbol}}?"}
    - alias: execute_trade
      approval:
        message_template: "Execute a trade of {{tool_args.amount}} {{tool_args.currency}}?"
        condition: {args_match: {amount: {gt: 1000}}}
    - {alias: pay, approval: {message_template: "Pay somebody"}}
    - {alias: big, approval: true}
    - alias: wire
    - alias: refund
    - alias: vault
    - alias: purge
  mcp_servers:
    - {alias: git, server_ref: acme.git, approval: {message_template: "Commit {{tool_args.path}}?"}, allowed_tools: [commit_file, push]}
  local_agents:
    - {alias: settler, source: ./settler.agf.yaml, approval: {condition: {args_match: {"parent.input.amount": {gt: 10}}}}}
execution_policy: {id: agf.react, config: {model: any-capable-model, instructions: "Trade well."}}
`

const policyFile = `schema_version: "1.0.0"
policy_ref: acme.trade-controls
description: Large trades need two people from risk.
rules:
  - id: large-trades
    match: {kinds: [tool], targets: [execute_trade]}
    approval: {condition: {args_match: {amount: {gt: 15000}}}}
    require: {stages: [{group: risk, people: 2}, {group: desk-heads, people: 1}], within: 30m, grants: forbid, escalate: [{after: 10m, to: risk-leads}]}
  - id: hide-iban
    match: {kinds: [tool], targets: [pay]}
    approval: true
    require: {arguments: {redact: [iban, to.name]}}
  - id: wires
    description: Wires above 10,000 need two of risk and a head.
    match: {kinds: [tool], targets: [wire]}
    approval:
      message_template: "Wire {{tool_args.amount}} {{tool_args.currency}} to {{tool_args.to}}?"
      condition: {args_match: {amount: {gt: 10000}}}
    require: {stages: [{group: risk, people: 2}, {group: desk-heads, people: 1}], within: 2h, on_timeout: escalate, escalate: [{after: 30m, to: admins}, {after: 20m, to: auditors, may: look}]}
  - id: refunds
    match: {kinds: [tool], targets: [refund]}
    approval: {message_template: "Refund {{tool_args.amount}} {{tool_args.currency}}?"}
    require: {grants: {max_uses: 50, bounds: [{path: amount, kind: at_most}]}}
  - id: vault
    match: {kinds: [tool], targets: [vault]}
    approval: true
    require: {arguments: {redact: ["**.secret"], approve_hidden: false}}
  - id: nine
    match: {kinds: [tool], targets: [purge]}
    approval: true
    require: {stages: [{group: desk-heads, people: 9}]}
`

const peopleFile = `schema_version: "1.0.0"
readers: everybody
people:
  - {id: alice@example.com, name: Alice Doe, also: [alice], groups: [risk]}
  - {id: bob@example.com, name: Bob Roe, also: [bob], groups: [risk, desk-heads]}
  - {id: carol@example.com, name: Carol Poe, also: [carol], groups: [desk-heads, admins]}
  - {id: erin@example.com, name: Erin Coe, also: [erin], groups: [admins]}
  - {id: dave@example.com, name: Dave Moe, also: [dave], groups: [risk]}
  - {id: client-7, name: Client Seven}
  - {id: owner@example.com, name: Olga Owner, also: [olga], groups: [risk], owns: [trading-desk]}
`

// site is an inbox with everything that it needs, all of it real: a store in a file, the service, a
// directory, a plan, and the headers of sign-in.
type site struct {
	t       testing.TB
	store   store.Store
	service *approval.Service
	people  approval.Directory
	plan    *resolve.Plan
	signer  ledger.Signer
	skew    atomic.Int64
	url     string
	handler http.Handler
	arm     time.Duration
	admins  func(tenant string) string // the group that may freeze; nil for the default
	change  func(*inbox.Config)
}

func (h *site) now() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) }

func (h *site) pass(d time.Duration) { h.skew.Add(int64(d)) }

func (h *site) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	if agent != "trading-desk" && agent != "other-agent" && !strings.Contains(agent, hostile) {
		return nil, approval.ErrUnknownAgent
	}
	return &approval.Compiled{
		Agent: approval.Agent{ID: agent, Version: "2.3.0", Name: "Trading Desk"},
		Plan:  h.plan,
	}, nil
}

func (h *site) Past(string) *approval.PastRules { return nil }

func open(t testing.TB) *site { return openArmed(t, 0) }

// openArmed makes a site with another waiting time for its forms; 0 means the default.
func openArmed(t testing.TB, arm time.Duration) *site {
	return openWith(t, func(c *inbox.Config) { c.Arm = arm })
}

// openWith makes a site with another configuration of the inbox.
func openWith(t testing.TB, change func(*inbox.Config)) *site {
	t.Helper()
	h := &site{t: t, change: change}
	agent, findings := schema.Parse("agents/trading-desk.agf.yaml", []byte(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	rules, findings := policy.Parse("policies/trade-controls.policy.yaml", []byte(policyFile))
	if rules == nil {
		t.Fatal(findings)
	}
	set, findings := policy.NewSet(rules)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	directory, findings := people.Parse("people.yaml", []byte(peopleFile))
	if directory == nil {
		t.Fatal(findings)
	}
	h.people = directory
	var err error
	if h.plan, err = resolve.Compile(agent, set, resolve.Options{}); err != nil {
		t.Fatal(err)
	}
	if h.store, err = sqlite.Open(
		t.Context(),
		filepath.Join(t.TempDir(), "assent.db"),
		sqlite.Options{Now: h.now},
	); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { h.store.Close() })
	if h.signer, _, err = ledger.GenerateKey("test", rand.Reader); err != nil {
		t.Fatal(err)
	}
	plans := &administration.Planner{Next: h, Admins: admins}
	h.service = approval.New(
		h.store,
		plans,
		h.people,
		h.now,
		rand.Reader,
		approval.Config{Route: func(event string, r *approval.Request) []approval.Delivery {
			if event != approval.EventOpened {
				return nil
			}
			return []approval.Delivery{{Target: "webhook:ops", Event: event, Subject: r.ID, Payload: "{}"}}
		}},
	)
	h.handler = h.newHandler()
	server := httptest.NewServer(h.handler)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *site) newHandler() http.Handler {
	cfg := inbox.Config{
		Service:        h.service,
		Store:          h.store,
		Directory:      h.people,
		Now:            h.now,
		Logger:         slog.New(slog.NewTextHandler(h.t.Output(), nil)),
		Who:            h.who,
		Administration: &administration.Desk{Service: h.service, Directory: h.people, Admins: admins},
		Arm:            h.arm,
		Admins:         h.admins,
		SignOut:        "/auth/sign-out",
		PublicKey:      h.signer.PublicKey(),
	}
	h.change(&cfg)
	pages := inbox.New(cfg)
	base, err := url.Parse("http://127.0.0.1")
	if err != nil {
		h.t.Fatal(err)
	}
	return auth.Secure(pages, base)
}

func admins(string) string { return "admins" }

// who reads the name from a cookie, because signing in is the task of another package.
func (h *site) who(r *http.Request) (string, approval.Person, bool, bool) {
	c, err := r.Cookie("who")
	if err != nil {
		return "", approval.Person{}, false, false
	}
	p, ok, err := h.people.Person(r.Context(), tenant, c.Value)
	dev := c.Value == "dave"
	return tenant, p, dev, ok && err == nil
}

func tool(name, args string) *resolve.Call {
	return &resolve.Call{
		Kind:      resolve.Tool,
		Tool:      name,
		Args:      []byte(args),
		Principal: "client-7",
		Session:   "s-1",
	}
}

// ask opens a request.
func (h *site) ask(call *resolve.Call) *approval.Request {
	h.t.Helper()
	out, err := h.service.Open(h.t.Context(), approval.OpenInput{
		Tenant: tenant,
		Asker:  approval.Asker{Token: "desk-runtime"},
		Agent:  "trading-desk",
		Call:   call,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if out.Request == nil {
		h.t.Fatalf("the call was not asked about: %+v", out)
	}
	return out.Request
}

func (h *site) seal() {
	h.t.Helper()
	if _, err := h.store.Seal(h.t.Context(), 1000, h.signer.Sign); err != nil {
		h.t.Fatal(err)
	}
}

func (h *site) request(id string) *approval.Request {
	h.t.Helper()
	r, err := h.store.Request(h.t.Context(), tenant, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// browser is a person with a browser without JavaScript.
type browser struct {
	h      *site
	client *http.Client
}

func (h *site) browser(who string) *browser {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	at, err := url.Parse(h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	jar.SetCookies(at, []*http.Cookie{{Name: "who", Value: who}})
	return &browser{h, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// page is a received page.
type page struct {
	status int
	path   string
	body   string
}

func (b *browser) read(resp *http.Response, err error) page {
	b.h.t.Helper()
	if err != nil {
		b.h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.h.t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Request.URL.RequestURI(), string(body)}
}

func (b *browser) get(path string) page {
	b.h.t.Helper()
	return b.read(b.client.Get(b.h.url + path))
}

func (b *browser) post(path string, fields url.Values) page {
	b.h.t.Helper()
	return b.read(b.client.PostForm(b.h.url+path, fields))
}

var (
	formPattern   = regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	hiddenPattern = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	areaPattern   = regexp.MustCompile(`(?s)<textarea name="([^"]*)"[^>]*>\n?(.*?)</textarea>`)
	textPattern   = regexp.MustCompile(`<[^>]*>`)
)

// form returns the fields of the form that posts to the action and contains the text.
func (p page) form(t testing.TB, action, holds string) url.Values {
	t.Helper()
	for _, m := range formPattern.FindAllStringSubmatch(p.body, -1) {
		if html.UnescapeString(m[1]) != action || !strings.Contains(m[2], holds) {
			continue
		}
		fields := url.Values{}
		for _, f := range hiddenPattern.FindAllStringSubmatch(m[2], -1) {
			fields.Add(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
		}
		for _, f := range areaPattern.FindAllStringSubmatch(m[2], -1) {
			fields.Set(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
		}
		return fields
	}

	t.Fatalf("no form to %s with %q on the page:\n%s", action, holds, p.text())
	return nil
}

// text returns the text of the page, without tags.
func (p page) text() string {
	return strings.Join(strings.Fields(html.UnescapeString(textPattern.ReplaceAllString(p.body, ""))), " ")
}

func (p page) says(t testing.TB, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(p.text(), w) {
			t.Errorf("%s (%d) does not say %q:\n%s", p.path, p.status, w, p.text())
		}
	}
}

func (p page) lacks(t testing.TB, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(p.body, w) || strings.Contains(p.text(), w) {
			t.Errorf("%s holds %q", p.path, w)
		}
	}
}

// later posts a second after the page was opened, so that its forms are accepted.
func (b *browser) later(path string, fields url.Values) page {
	b.h.t.Helper()
	b.h.pass(time.Second)
	return b.post(path, fields)
}

func (b *browser) request(id string) page {
	b.h.t.Helper()
	return b.get("/requests/" + id)
}

// ballot returns the form on a request's page that gives a verdict.
func (b *browser) ballot(id, verdict string) url.Values {
	b.h.t.Helper()
	return b.request(id).form(b.h.t, "/requests/"+id+"/vote", `value="`+verdict+`"`)
}

func (b *browser) cast(id string, fields url.Values) page {
	b.h.t.Helper()
	return b.later("/requests/"+id+"/vote", fields)
}

// answer votes through the page, like a person without JavaScript.
func (b *browser) answer(id, verdict string, more url.Values) page {
	b.h.t.Helper()
	fields := b.ballot(id, verdict)
	if verdict == "deny" {
		fields.Set("preset", "Not needed")
	}
	maps.Copy(fields, more)
	return b.cast(id, fields)
}

// fill creates some requests and votes in a site.
func (h *site) fill() (pending *approval.Request) {
	h.t.Helper()
	for i := range 3 {
		r := h.ask(tool("place_order", fmt.Sprintf(`{"side":"buy","quantity":%d,"symbol":"ACME"}`, 100+i)))
		h.browser([]string{"alice", "bob"}[i%2]).answer(
			r.ID,
			[]string{"approve", "deny", "approve"}[i],
			url.Values{"reason": {"as discussed " + strconv.Itoa(i)}},
		)
	}

	granted := h.ask(tool("refund", `{"amount":340.00,"currency":"USD","order":"R-1"}`))
	h.browser("bob").answer(granted.ID, "approve", url.Values{
		"grant": {"on"},
		"uses":  {"20"},
		"hours": {"8"},
		"bound": {"at_most:amount"},
	})
	h.ask(tool("place_order", `{"side":"buy","quantity":1000,"symbol":"INIT"}`))
	h.ask(tool("place_order", `{"side":"buy","quantity":2000,"symbol":"INIT"}`))
	h.ask(tool("pay", `{"iban":"DE02120300000000202051","amount":1200,"to":{"name":"Erika","note":"rent"}}`))
	r := h.ask(tool(
		"execute_trade",
		`{"amount":20000,"currency":"USD","note":"Rebalance for client.\nCheck with `+
			`p\u0430ypal\u202egnp","legs":[{"symbol":"ACME","quantity":120},{"symbol":"INIT","quantity":-40}]}`,
	))
	h.browser("alice").answer(r.ID, "approve", nil)
	h.seal()
	return h.request(r.ID)
}
