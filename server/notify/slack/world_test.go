package slack_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const (
	tenant  = "acme"
	team    = "T0HOME"
	signing = "8f742231b10e8888abcd99yyyzzz85a5"
	agentID = "trader"
)

const agentFile = `schema_version: "1.0.0"
metadata: {id: trader, name: Trader, version: "1.0.0", description: Trades., namespace: acme}
interface:
  input: {type: object, properties: {q: {type: string}}}
  output: {type: object, properties: {a: {type: string}}}
constraints: {governance_policies: [{policy_ref: acme.rules}]}
execution_policy: {id: agf.react, config: {model: m, instructions: trade}}
action_space:
  local_tools:
    - {alias: trade, approval: {message_template: "Trade {{tool_args.amount}} of {{tool_args.what}}?"}}
    - {alias: pay}
    - {alias: pair}
    - {alias: stuck}
    - {alias: vault}
    - {alias: nine}
    - {alias: large}
`

const policyFile = `schema_version: "1.0.0"
policy_ref: acme.rules
description: What people must see.
rules:
  - {id: trades, match: {targets: [trade]}, approval: true, require: {stages: [{group: risk, people: 1}], within: 1h}}
  - {id: payments, match: {targets: [pay]}, approval: true, require: {stages: [{group: risk, people: 1}], arguments: {redact: [card, to.name]}}}
  - {id: pairs, match: {targets: [pair]}, approval: true, require: {stages: [{group: risk, people: 2}]}}
  - id: ladder
    match: {targets: [stuck]}
    approval: true
    require: {stages: [{group: risk, people: 1}], within: 1h, on_timeout: escalate, escalate: [{after: 10m, to: leads}]}
  - {id: vaults, match: {targets: [vault]}, approval: true, require: {arguments: {redact: ["**.secret"], approve_hidden: false}}}
  - {id: nines, match: {targets: [nine]}, approval: true, require: {stages: [{group: risk, people: 9}]}}
  - {id: larges, description: Large ones are looked at., match: {targets: [large]}, approval: {condition: {args_match: {amount: {gt: 10000}}}}}
`

const peopleFile = `schema_version: "1.0.0"
people:
  - {id: alice@acme.example, also: ["slack:T0HOME:U0ALICE"], groups: [risk, leads]}
  - {id: bob@acme.example, also: ["slack:U0BOB"], groups: [risk]}
  - {id: rita@acme.example, also: ["slack:T0HOME:U0RITA", rita], groups: [risk]}
  - {id: carl@acme.example, also: ["slack:T0PARTNER:U0CARL"], groups: [risk]}
groups: {risk: {}, leads: {}}
`

// world contains the real components except Slack: the service on SQLite, people.yaml, routes,
// and a worker.
type world struct {
	t       *testing.T
	slack   *fakeSlack
	file    string // of the store
	store   store.Store
	service *approval.Service
	app     *slack.App
	inbound *httptest.Server
	worker  *notify.Worker
	people  *book

	mu     sync.Mutex
	now    time.Time
	clicks int
	report []string
}

func newWorld(t *testing.T, change ...func(*slack.Config)) *world {
	return worldOn(t, filepath.Join(t.TempDir(), "assent.db"), noon, change...)
}

// noon is the time at which a world begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// worldOn returns the world on a database that another process may share.
func worldOn(t *testing.T, database string, now time.Time, change ...func(*slack.Config)) *world {
	w := &world{t: t, slack: newFakeSlack(t), people: &book{}, file: database, now: now}
	w.knows(peopleFile)
	var err error
	if w.store, err = sqlite.Open(t.Context(), database, sqlite.Options{Now: w.clock}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = w.store.Close() })
	router, err := notify.NewRouter(
		[]notify.Route{{Target: "slack"}},
		[]string{"slack"},
		"https://assent.example",
		w.clock,
	)
	must.Do(t, err)
	w.service = approval.New(
		w.store,
		planner(t),
		w.people,
		w.clock,
		rand.Reader,
		approval.Config{Route: router.Deliveries},
	)
	cfg := slack.Config{
		Tenant:        tenant,
		Team:          team,
		Token:         botToken,
		SigningSecret: signing,
		Channels:      map[string]string{"": "C0RISK", "leads": "C0LEADS"},
		Arguments:     true,
		Inbox:         "https://assent.example",
		API:           w.slack.URL + "/api/",
		Guard:         trusting(w.slack.Server),
		Now:           w.clock,
		Report: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.report = append(w.report, err.Error())
		},
		Voter:    w.service,
		Requests: w.service,
		People:   w.people,
		Values:   w.store,
	}
	for _, c := range change {
		c(&cfg)
	}
	if w.app, err = slack.New(cfg); err != nil {
		t.Fatal(err)
	}
	w.inbound = httptest.NewServer(w.app)
	t.Cleanup(w.inbound.Close)
	w.worker = w.newWorker()
	return w
}

func (w *world) newWorker() *notify.Worker {
	worker, err := notify.NewWorker(notify.WorkerConfig{
		Outbox:  w.store,
		Targets: []notify.Target{{Name: "slack", Sender: w.app, Concurrency: 2}},
		Now:     w.clock,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return worker
}

func trusting(s *httptest.Server) guard.Guard {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return guard.Guard{Loopback: true, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}

// book is a directory whose file may change.
type book struct {
	file atomic.Pointer[people.Directory]
}

func (b *book) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	return b.file.Load().Person(ctx, tenant, name)
}

func (b *book) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	return b.file.Load().Members(ctx, tenant, group)
}

func (b *book) Reading(ctx context.Context, tenant string, p approval.Person) (people.Reading, error) {
	return b.file.Load().Reading(ctx, tenant, p)
}

func (b *book) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	return b.file.Load().Owners(ctx, tenant, agent)
}

// knows makes a file the directory.
func (w *world) knows(file string) {
	w.t.Helper()
	d, findings := people.Parse("people.yaml", []byte(file))
	if d == nil {
		w.t.Fatal(findings)
	}
	w.people.file.Store(d)
}

type plans struct{ compiled *approval.Compiled }

func (p plans) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	if agent != agentID {
		return nil, approval.ErrUnknownAgent
	}
	return p.compiled, nil
}

func (p plans) Past(string) *approval.PastRules { return nil }

func planner(t *testing.T) plans {
	t.Helper()
	agent, findings := schema.Parse("trader.agf.yaml", []byte(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	rules, findings := policy.Parse("acme.policy.yaml", []byte(policyFile))
	if rules == nil {
		t.Fatal(findings)
	}
	set, findings := policy.NewSet(rules)
	if set == nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	must.Do(t, err)
	return plans{&approval.Compiled{Agent: approval.Agent{ID: agentID, Version: "1.0.0"}, Plan: plan}}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// pass advances the clock, and handles what became due.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	if _, err := w.service.Tick(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// ask opens a request.
func (w *world) ask(tool, args string) *approval.Request {
	w.t.Helper()
	return w.open(&resolve.Call{
		Kind:      resolve.Tool,
		Tool:      tool,
		Args:      []byte(args),
		Principal: "rita@acme.example",
	})
}

// open opens a request for a call.
func (w *world) open(call *resolve.Call) *approval.Request {
	w.t.Helper()
	out, err := w.service.Open(w.t.Context(), approval.OpenInput{
		Tenant: tenant,
		Asker:  approval.Asker{Token: "ci"},
		Agent:  agentID,
		Call:   call,
	})
	if err != nil || out.Outcome != resolve.Ask {
		w.t.Fatalf("open: %+v, %v", out, err)
	}
	return out.Request
}

// asked returns a world in which a request for a call was opened and shown.
func asked(t *testing.T, tool, args string, change ...func(*slack.Config)) (*world, *approval.Request) {
	t.Helper()
	w := newWorld(t, change...)
	r := w.ask(tool, args)
	w.deliver()
	return w, r
}

// byBob approves a request elsewhere.
func (w *world) byBob(r *approval.Request) error {
	_, err := w.service.Vote(w.t.Context(), approval.VoteInput{
		Tenant:  tenant,
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  "bob@acme.example",
		Verdict: approval.Approve,
		Full:    true,
		Channel: "cli",
	})
	return err
}

// shows checks that the only message contains all parts.
func (w *world) shows(parts ...string) {
	w.t.Helper()
	w.only().shows(w.t, parts...)
}

func (p posted) shows(t *testing.T, parts ...string) {
	t.Helper()
	holds(t, texts(p.blocks), parts...)
}

// hears checks that the messages to people since the last call contain all parts.
func (w *world) hears(parts ...string) {
	w.t.Helper()
	holds(w.t, w.slack.heard(), parts...)
}

// button returns a button of the only message, and the message.
func (w *world) button(action string) (posted, element) {
	w.t.Helper()
	p := w.only()
	b, _ := p.button(action)
	return p, b
}

// deliver sends due deliveries until none is left.
func (w *world) deliver() {
	w.t.Helper()
	for range 50 {
		if w.worker.Once(w.t.Context()) == 0 {
			return
		}
	}
	w.t.Fatal("deliveries don't end")
}

func (w *world) request(id string) *approval.Request {
	w.t.Helper()
	r, err := w.service.Request(w.t.Context(), tenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// only returns the only message.
func (w *world) only() posted {
	w.t.Helper()
	all := w.slack.now()
	if len(all) != 1 {
		w.t.Fatalf("%d messages, want one", len(all))
	}
	return all[0]
}

func (p posted) button(action string) (element, bool) {
	for _, b := range p.blocks {
		for _, e := range b.Elements {
			if e.ActionID == action {
				return e, true
			}
		}
	}

	return element{}, false
}

// payload returns the payload that Slack sends for a click.
func (w *world) payload(p posted, action, value, user string) map[string]any {
	w.mu.Lock()
	w.clicks++
	trigger := "trigger." + strconv.Itoa(w.clicks)
	response := w.slack.URL + "/response/" + strconv.Itoa(w.clicks)
	w.mu.Unlock()
	w.slack.mu.Lock()
	w.slack.triggers[trigger] = freshTrigger
	w.slack.mu.Unlock()
	return map[string]any{
		"type":         "block_actions",
		"api_app_id":   "A1",
		"token":        "legacy",
		"trigger_id":   trigger,
		"response_url": response,
		"user":         map[string]any{"id": user, "username": "alice", "name": "alice", "team_id": team},
		"team":         map[string]any{"id": team, "domain": "acme"},
		"container": map[string]any{
			"type":         "message",
			"message_ts":   p.ts,
			"channel_id":   p.channel,
			"is_ephemeral": false,
		},
		"channel": map[string]any{"id": p.channel, "name": "risk"},
		"message": map[string]any{"type": "message", "ts": p.ts, "text": p.text},
		"actions": []any{map[string]any{
			"type":      "button",
			"action_id": action,
			"block_id":  "b1",
			"value":     value,
			"action_ts": "1.1",
		}},
	}
}

// click presses a button of a message and confirms.
func (w *world) click(p posted, action, user string) {
	w.t.Helper()
	b, ok := p.button(action)
	if !ok {
		w.t.Fatalf("no %s button in\n%s", action, texts(p.blocks))
	}
	w.send(w.payload(p, action, b.Value, user))
}

// send posts a signed interaction and waits for its work to end.
func (w *world) send(payload map[string]any) {
	w.t.Helper()
	if status := w.post(w.signed(encode(w.t, payload))); status != http.StatusOK {
		w.t.Fatalf("the interaction was answered %d", status)
	}
	w.app.Wait()
}

func encode(t *testing.T, payload map[string]any) string {
	t.Helper()
	text, err := json.Marshal(payload)
	must.Do(t, err)
	return url.Values{"payload": {string(text)}}.Encode()
}

func (w *world) signed(body string) *http.Request {
	return sign(w.t, w.inbound.URL, body, signing, w.clock())
}

func sign(t *testing.T, to, body, secret string, at time.Time) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	must.Do(t, err)
	timestamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":" + body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", timestamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

func (w *world) post(r *http.Request) int {
	w.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusOK && len(body) > 0 {
		w.t.Errorf("the acknowledgement has a body: %q", body)
	}
	return answer.StatusCode
}

// submit sends the form that was opened last.
func (w *world) submit(user, reason string) {
	w.t.Helper()
	w.slack.mu.Lock()
	if len(w.slack.views) == 0 {
		w.slack.mu.Unlock()
		w.t.Fatal("no form was opened")
	}
	raw := w.slack.views[len(w.slack.views)-1]
	w.slack.mu.Unlock()
	var view map[string]any
	if err := json.Unmarshal(raw, &view); err != nil {
		w.t.Fatal(err)
	}
	view["state"] = map[string]any{
		"values": map[string]any{
			"reason": map[string]any{"reason": map[string]any{"type": "plain_text_input", "value": reason}},
		},
	}
	w.send(map[string]any{
		"type":          "view_submission",
		"team":          map[string]any{"id": team},
		"user":          map[string]any{"id": user, "team_id": team},
		"view":          view,
		"response_urls": []any{},
	})
}

// holds fails unless a text contains all parts.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

// lacks fails if a text contains one of the parts.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in\n%s", p, text)
		}
	}
}
