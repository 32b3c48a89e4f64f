package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// opsAgent may restart after one of ops agreed, wipe by its own file
// (the tool calls itself destructive), and look.
const opsAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Runs machines.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space: {local_tools: [{alias: restart}, {alias: wipe}, {alias: look}]}
`

const opsPolicy = `schema_version: "1.0.0"
policy_ref: acme.ops
applies: implicit
rules:
  - id: restarts
    match: {targets: [restart]}
    approval: true
    require: {stages: [{group: ops, people: 1}], grants: {max_uses: 20, max_age: 8h}}
`

const opsPeople = `schema_version: "1.0.0"
people: [{id: mara, groups: [ops]}, {id: ben, groups: [ops]}, {id: zoe, groups: []}, {id: alice, groups: []}]
`

// machines is a RAP tool server that does what it is asked, asks about
// nothing, and keeps what it was sent. An operation whose callback it
// has can be made to say more.
type machines struct {
	*httptest.Server
	t   *testing.T
	mu  sync.Mutex
	got []machineCall
	say func(c machineCall) string // the answer; nil or "": a result
}

type machineCall struct {
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"arguments"`
	ID        string          `json:"id"`
	GroupID   string          `json:"group_id"`
	Ancestors []string        `json:"thread_ancestors"`
	URL       string          `json:"callback_url"`
	User      string          `json:"user_id"`
	path      string
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	m := &machines{t: t}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *machines) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"name":"machines","endpoint":"%s/invoke","tools":[
			{"name":"restart","description":"Restarts.","inputSchema":{"type":"object"}},
			{"name":"wipe","description":"Wipes.","inputSchema":{"type":"object"},"annotations":{"destructive":true}},
			{"name":"look","description":"Looks.","inputSchema":{"type":"object"}}]}`, m.URL)
		return
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	c := machineCall{path: r.URL.Path}
	if err := json.Unmarshal(body, &c); err != nil {
		m.t.Errorf("%s: %v", body, err)
	}
	m.mu.Lock()
	m.got = append(m.got, c)
	say := m.say
	m.mu.Unlock()
	if c.path != "/invoke" {
		return
	}
	message := ""
	if say != nil {
		message = say(c)
	}
	if message == "" {
		message = c.result("did "+c.Operation, "")
	}

	go m.post(c.URL, message)
}

// result returns the message of a result, with more fields.
func (c machineCall) result(text, more string) string {
	return fmt.Sprintf(`{"type":"tool_result","group_id":%q,"id":%q,"text":%q%s}`, c.GroupID, c.ID, text, more)
}

// post sends a message about a call and returns the status.
func (m *machines) post(url, message string) int {
	answer, err := ownClient().Post(url, "application/json", strings.NewReader(message))
	if err != nil {
		return 0 // nobody is there
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func (m *machines) says(say func(machineCall) string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say = say
}

// question returns an answer to an invocation that asks before it goes on.
func (m *machines) question(c machineCall) string {
	return fmt.Sprintf(
		`{"type":"user_choice","group_id":%q,"id":%q,"prompt":"Really?","choices":["Yes","No"],"default":1,`+
			`"response_url":"%s/answer"}`,
		c.GroupID,
		c.ID,
		m.URL,
	)
}

// calls returns the invocations of an operation so far.
func (m *machines) calls(operation string) []machineCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.got), func(c machineCall) bool {
		return c.path != "/invoke" || c.Operation != operation
	})
}

// opsFiles returns the files of a service in front of the machines, with
// tokens of its people and of two runtimes.
func opsFiles(t *testing.T) *testServer {
	t.Helper()
	h := withFiles(t, map[string]string{
		"desk.agf.yaml":   opsAgent,
		"people.yaml":     opsPeople,
		"ops.policy.yaml": opsPolicy,
	})

	fresh := h.where()
	fresh.Create = true
	s, err := openStore(t.Context(), fresh, nil)
	must.Do(t, err)
	defer s.Close()
	asks := []openapi.Scope{openapi.ScopeRequest, openapi.ScopeDecide}
	answers := []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote}
	h.makes(
		t, s,
		openapi.TokenBody{Name: "rt-mara", Scopes: asks, Person: "mara"},
		openapi.TokenBody{Name: "rt2", Scopes: asks},
		openapi.TokenBody{Name: "mara-cli", Scopes: answers, Person: "mara"},
		openapi.TokenBody{Name: "ben-cli", Scopes: answers, Person: "ben"},
		openapi.TokenBody{Name: "zoe-cli", Scopes: answers, Person: "zoe"},
	)

	return h
}

// hosts starts the service with a RAP runtime of the agent, at an
// address that stays the same.
func (h *testServer) hosts(t *testing.T, m *machines, listen string, changes ...func(*config.RAP)) {
	t.Helper()
	startWith(t, h, func(c *config.Serve) {
		c.Listen, c.Tenants[0].Policies = listen, []string{h.dir}
		c.Tenants[0].RAP = &config.RAP{Runtimes: []config.RAPRuntime{{
			Agent:   "desk",
			Servers: []config.RAPServer{{Name: "machines", URL: m.URL, AnsweredBy: []string{"ops"}}},
		}}}
		for _, change := range changes {
			change(c.Tenants[0].RAP)
		}
	})
}

// calls makes a hosted call.
func (h *testServer) calls(t *testing.T, token string, call client.RAPCall) *openapi.RAPCall {
	t.Helper()
	out, err := h.client(t, token).RAPInvoke(t.Context(), "desk", call)
	must.Do(t, err)
	return out
}

// awaitRequest waits for the one request or question that is pending.
func (h *testServer) awaitRequest(t *testing.T) *approval.Request {
	t.Helper()

	return h.request(t, h.awaitPending(t, func(approval.Summary) bool { return true }))
}

// awaitPending waits until one request or question is pending that is
// as wanted, and returns its id.
func (h *testServer) awaitPending(t *testing.T, wanted func(approval.Summary) bool) string {
	t.Helper()

	alice := h.client(t, "alice")
	return testwait.Value(t, "one request is pending", func() (string, bool) {
		page, err := alice.Requests(t.Context(), client.Query{State: string(approval.Pending)})
		must.Do(t, err)
		if len(page.Requests) != 1 || !wanted(page.Requests[0]) {
			return "", false
		}
		return page.Requests[0].ID, true
	})
}

// votes answers a request with a person's token and returns the outcome. It answers a question with
// its first choice.
func (h *testServer) votes(
	t *testing.T, token string, r *approval.Request, grant *openapi.GrantOffer,
) approval.VoteOutcome {
	t.Helper()
	outcome, _ := h.voted(t, token, r, grant)

	return outcome
}

// voted is like votes, and also returns the message that the person gets.
func (h *testServer) voted(
	t *testing.T, token string, r *approval.Request, grant *openapi.GrantOffer,
) (approval.VoteOutcome, string) {
	t.Helper()
	body := openapi.VoteBody{Verdict: approval.Approve, Binding: r.Binding(), ShownFully: true}
	switch {
	case r.Question == nil:
	case r.Question.Form() != nil:
		body.Verdict, body.Data = approval.Submit, []byte(`"12a"`)
	default:
		first := 0
		body.Verdict, body.Choice = approval.Choose, &first
	}

	if grant != nil {
		body.Grant = *grant
	}
	voted, err := h.client(t, token).Vote(t.Context(), r.ID, r.Version, body)
	if err != nil {
		return approval.VoteOutcome(client.Code(err)), err.Error()
	}

	return voted.Outcome, voted.Detail
}

// ends waits for the end of a hosted call.
func (h *testServer) ends(t *testing.T, token, thread, id string) *openapi.RAPCall {
	t.Helper()
	return rapDone(t, h.client(t, token), thread, id)
}

// ledgerEntry holds the parts of a ledger entry about a RAP call.
type ledgerEntry struct {
	Type  string `json:"type"`
	Actor string `json:"actor"`
	Facts struct {
		Person     *string `json:"person"`
		Principal  *string `json:"principal"`
		AnsweredBy string  `json:"answered_by"`
	} `json:"facts"`
}

// rapEntries returns the entries of the ledger about RAP calls.
func (h *testServer) rapEntries(t *testing.T) []ledgerEntry {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, h.client(t, "alice").Export(t.Context(), &out))
	var found []ledgerEntry
	for line := range strings.Lines(out.String()) {
		var exported struct{ Leaf string }
		var e ledgerEntry
		must.Do(t, json.Unmarshal([]byte(line), &exported))
		if json.Unmarshal([]byte(exported.Leaf), &e) == nil && strings.HasPrefix(e.Type, "rap_") {
			found = append(found, e)
		}
	}

	return found
}

// names checks that every entry about RAP calls has the asking token, its person and the principal
// in the right fields.
func (h *testServer) names(t *testing.T, actor, person string, principals ...string) {
	t.Helper()
	var entries []ledgerEntry
	testwait.Until(t, "the entries are sealed", func() bool {
		entries = h.rapEntries(t)
		return len(entries) >= 3
	})
	for _, e := range entries {
		if e.Actor != actor || e.Facts.Person == nil || *e.Facts.Person != person || e.Facts.Principal == nil ||
			!slices.Contains(principals, *e.Facts.Principal) {
			t.Errorf("%s: by %q, %s", e.Type, e.Actor, mustJSON(t, e.Facts))
		}
		if e.Type == "rap_choice_answered" && e.Facts.AnsweredBy != "ben" {
			t.Errorf("answered by %q", e.Facts.AnsweredBy)
		}
	}
}

// TestNobodyApprovesTheHostedCallsOfTheirOwnToken: the control makes the call through /requests.
// The same call through the hosted RAP runtime has the same asker, whatever principal it names,
// before and after a restart, for an approval, a destructive tool and a question of the tool.
func TestNobodyApprovesTheHostedCallsOfTheirOwnToken(t *testing.T) {
	whole := t
	m := newMachines(t)
	h := opsFiles(t)
	listen := freeAddress(t)
	h.hosts(t, m, listen)
	opened, err := h.client(t, "rt-mara").
		Open(t.Context(), "desk", []byte(`{"kind":"tool","tool":"restart","args":{"control":1}}`), client.OpenOptions{})
	must.Do(t, err)
	if got := h.votes(t, "mara-cli", opened.Request, nil); got != approval.VoteNotEligible {
		t.Fatalf("the control: %s", got)
	}
	if _, err := h.client(t, "rt-mara").Cancel(t.Context(), opened.Request.ID, ""); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		operation, user string
		asks            func(machineCall) string
		restarts        bool
	}{
		"an approval":                   {operation: "restart"},
		"an approval, for somebody":     {operation: "restart", user: "zoe"},
		"an approval, after a restart":  {operation: "restart", restarts: true},
		"a destructive tool":            {operation: "wipe"},
		"a destructive tool, restarted": {operation: "wipe", restarts: true},
		"a question of the tool":        {operation: "look", asks: m.question},
		"a question, restarted":         {operation: "look", asks: m.question, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			m.says(c.asks)
			before := len(m.calls(c.operation))
			call := client.RAPCall{
				Thread:    name,
				ID:        "call_1",
				Operation: c.operation,
				User:      c.user,
				Arguments: json.RawMessage(fmt.Sprintf(`{"why":%q}`, name)),
				Context:   ticketContext(),
			}
			h.calls(t, "rt-mara", call)
			r := h.awaitRequest(t)
			if r.Requester.Runtime != "rt-mara" || r.Requester.Person != "mara" || r.Requester.Principal != c.user {
				t.Errorf("asked by %+v", r.Requester)
			}
			if !slices.Equal(r.Context, ticketContext()) {
				t.Errorf("people are told %v", r.Context)
			}
			if c.restarts {
				must.Do(t, h.stop())
				h.hosts(whole, m, listen)
			}

			if got := h.votes(t, "mara-cli", r, nil); got != approval.VoteNotEligible {
				t.Errorf("mara, whose token asks: %s", got)
			}
			if c.asks == nil && len(m.calls(c.operation)) != before {
				t.Fatal("it ran before anybody who may answer did")
			}
			r = h.awaitRequest(t)
			if got := h.votes(t, "ben-cli", r, nil); got != approval.VoteApproved && got != approval.VoteAnswered {
				t.Fatalf("ben, who may: %s", got)
			}
			if c.asks != nil {
				m.answered(t, name)
				sent := m.calls("look")[before]
				m.post(sent.URL, sent.result("did look", ""))
			}

			if end := h.ends(t, "rt-mara", name, "call_1"); end.Failed ||
				!strings.Contains(string(mustJSON(t, end.Outcome)), "did "+c.operation) {
				t.Errorf("ended with %s", mustJSON(t, end))
			}
			if got := m.calls(c.operation); len(got) != before+1 {
				t.Errorf("%d runs", len(got)-before)
			}
		})
	}

	m.says(nil)

	h.names(t, "rt-mara", "mara", "", "zoe")
}

// answered waits until an answer was posted to the tool.
func (m *machines) answered(t *testing.T, what string) {
	t.Helper()
	testwait.Until(t, what+": an answer comes", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()

		n := slices.IndexFunc(m.got, func(c machineCall) bool { return c.path == "/answer" })
		if n >= 0 {
			m.got = slices.Delete(m.got, n, n+1)
		}
		return n >= 0
	})
}

// TestThePersonOfAGatewaysCallerApprovesNoneOfItsCalls: a gateway's caller asks under its own name
// and for the person whom it belongs to.
func TestThePersonOfAGatewaysCallerApprovesNoneOfItsCalls(t *testing.T) {
	wrapped, h := newEndpoint(t), opsFiles(t)
	writeFiles(t, h.dir, map[string]string{
		"tool.agf.yaml": toolAgent,
		"quote.json":    quoteSchema,
		"caller.token":  "secret-of-the-caller",
	})

	back := newRuntimePeer(t)
	startWith(t, h, func(c *config.Serve) {
		c.Tenants[0].RAP = &config.RAP{Gateways: []config.RAPGateway{{
			Name:        "quotes",
			Description: "Prices.",
			Agent:       "tool",
			Callers: []config.RAPCaller{{
				Name:      "laptop",
				Person:    "mara",
				TokenFile: filepath.Join(h.dir, "caller.token"),
				Callbacks: []string{back.URL},
			}},
			Operations: []config.RAPOperation{{
				Name:        "quote",
				Description: "Last price.",
				SchemaFile:  filepath.Join(h.dir, "quote.json"),
				URL:         wrapped.URL,
			}},
		}}}
	})
	back.invoke(
		t,
		h.ready.API+"/rap/default/gateway/quotes",
		"secret-of-the-caller",
		`{"operation":"quote","arguments":{"of":"ACME"},"id":"c1","callback_url":"`+back.URL+
			`/cb","group_id":"g","user_id":"zoe"}`,
	)
	r := h.awaitRequest(t)
	if q := r.Requester; q.Runtime != "rap/default/gateway/quotes/laptop" || q.Person != "mara" ||
		q.Principal != "zoe" {
		t.Errorf("asked by %+v", q)
	}
	for _, barred := range []string{"mara-cli", "zoe-cli"} {
		if got := h.votes(t, barred, r, nil); got != approval.VoteNotEligible {
			t.Errorf("%s: %s", barred, got)
		}
	}
	if got := h.votes(t, "ben-cli", h.awaitRequest(t), nil); got != approval.VoteApproved {
		t.Fatalf("ben: %s", got)
	}
	if got := back.next(t); !strings.Contains(got, `"tool_result"`) || !strings.Contains(got, "price") {
		t.Errorf("got %s", got)
	}
	if got := wrapped.bodies(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
	h.names(t, "rap/default/gateway/quotes/laptop", "mara", "zoe")
}

// runtimePeer is a RAP runtime that keeps what comes to its callback URLs.
type runtimePeer struct {
	*httptest.Server
	came chan string
}

func newRuntimePeer(t *testing.T) *runtimePeer {
	t.Helper()
	p := &runtimePeer{came: make(chan string, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		p.came <- string(body)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *runtimePeer) invoke(t *testing.T, gateway, token, body string) {
	t.Helper()
	if status := p.post(t, gateway+"/invoke", token, body); status != http.StatusOK {
		t.Fatalf("the gateway answered %d", status)
	}
}

func (p *runtimePeer) post(t *testing.T, url, token, body string) int {
	t.Helper()
	status, _ := fetched(t, http.MethodPost, url, token, body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
	})

	return status
}

// next returns the next message that came.
func (p *runtimePeer) next(t *testing.T) string {
	t.Helper()
	return receive(t, "the next message", p.came)
}

// TestThreadsAreTheTokensOwn: of what a token does in a thread,
// another token of the same agent sees, changes and takes nothing,
// whatever it calls its own threads and calls.
func TestThreadsAreTheTokensOwn(t *testing.T) {
	m := newMachines(t)
	h := opsFiles(t)
	listen := freeAddress(t)
	h.hosts(t, m, listen)
	m.streams()
	call := client.RAPCall{Thread: "t", ID: "c", Operation: "look", Arguments: json.RawMessage(`{"whose":"rt"}`)}
	h.calls(t, "rt-mara", call)
	h.ends(t, "rt-mara", "t", "c")
	mine := m.calls("look")[0]
	for _, message := range []string{
		`{"type":"subscription_event","group_id":"GROUP","tool_call_id":"ID","text":"news"}`,
		`{"type":"view_update","group_id":"GROUP","view_type":"diff","content":{"n":1}}`,
	} {
		if status := m.post(
			mine.URL,
			strings.NewReplacer("GROUP", mine.GroupID, "ID", mine.ID).Replace(message),
		); status != http.StatusOK {
			t.Fatalf("%s: %d", message, status)
		}
	}

	other, own := h.client(t, "rt2"), h.client(t, "rt-mara")
	if got, err := other.RAPWait(t.Context(), "desk", "t", "c", 0); client.Code(err) != openapi.CodeNotFound {
		t.Errorf("reads the call: %s, %v", mustJSON(t, got), err)
	}
	if got, err := other.RAPEvents(t.Context(), "desk", "t", 0); err != nil || len(got.Events) != 0 {
		t.Errorf("reads the events: %s, %v", mustJSON(t, got), err)
	}
	if got, err := other.RAPViews(t.Context(), "desk", "t"); err != nil || len(got.Views) != 0 {
		t.Errorf("reads the views: %s, %v", mustJSON(t, got), err)
	}
	for got, err := range other.RAPFollow(t.Context(), "desk", "t", "c", "") {
		if client.Code(err) != openapi.CodeNotFound {
			t.Fatalf("follows the call: %s, %v", mustJSON(t, got), err)
		}
	}
	if got, err := other.RAPCancel(t.Context(), "desk", "t", "c", ""); client.Code(err) != openapi.CodeNotFound {
		t.Errorf("cancels the call: %s, %v", mustJSON(t, got), err)
	}
	for _, thread := range []string{"t", "later"} {
		if err := other.RAPClose(t.Context(), "desk", thread); err != nil { // its own thread of that name
			t.Error(err)
		}
	}
	if got, err := own.RAPEvents(t.Context(), "desk", "t", 0); err != nil || len(got.Events) != 1 {
		t.Errorf("the other closed it: %s, %v", mustJSON(t, got), err)
	}
	h.calls(t, "rt-mara", client.RAPCall{Thread: "later", ID: "c", Operation: "look"})
	if end := h.ends(t, "rt-mara", "later", "c"); end.Synthetic {
		t.Errorf("the other closed it before it began: %s", mustJSON(t, end))
	}

	// The names that the other took first are free, and the tool server
	// can't mistake one for the other.
	h.calls(t, "rt2", client.RAPCall{
		Thread:    "taken",
		ID:        "c",
		Operation: "look",
		Arguments: json.RawMessage(`{"whose":"rt2"}`),
	})
	h.calls(t, "rt-mara", client.RAPCall{
		Thread:    "taken",
		ID:        "c",
		Operation: "look",
		Arguments: json.RawMessage(`{"whose":"rt"}`),
	})
	h.ends(t, "rt-mara", "taken", "c")
	h.ends(t, "rt2", "taken", "c")
	groups, ids := map[string]bool{}, map[string]bool{}
	for _, c := range m.calls("look") {
		groups[c.GroupID], ids[c.ID] = true, true
		if strings.Contains(c.GroupID+c.ID, "taken") || len(c.GroupID) > 64 || len(c.ID) > 64 {
			t.Errorf("sent as %q %q", c.GroupID, c.ID)
		}
	}

	if n := len(m.calls("look")); n != 4 || len(groups) != 4 || len(ids) != 4 {
		t.Errorf("%d calls in %d groups under %d ids", n, len(groups), len(ids))
	}
}

// TestAStandingApprovalIsForTheTokenThatAsked: what one token was
// allowed for good is asked about when another one calls, in both ways
// in.
func TestAStandingApprovalIsForTheTokenThatAsked(t *testing.T) {
	m, h := newMachines(t), opsFiles(t)
	h.hosts(t, m, freeAddress(t))
	restart := client.RAPCall{
		Thread:    "t",
		ID:        "c1",
		Operation: "restart",
		Arguments: json.RawMessage(`{"machine":"db1"}`),
	}
	h.calls(t, "rt-mara", restart)
	if got := h.votes(
		t,
		"ben-cli",
		h.awaitRequest(t),
		&openapi.GrantOffer{MaxUses: 10, MaxAge: "1h"},
	); got != approval.VoteApproved {
		t.Fatal(got)
	}

	h.ends(t, "rt-mara", "t", "c1")

	restart.ID = "c2"
	h.calls(t, "rt-mara", restart)
	if end := h.ends(t, "rt-mara", "t", "c2"); end.Failed || len(m.calls("restart")) != 2 {
		t.Fatalf("its own token is asked again: %s", mustJSON(t, end))
	}
	h.calls(t, "rt2", restart)
	r := h.awaitRequest(t)
	if r.Requester.Runtime != "rt2" || len(m.calls("restart")) != 2 {
		t.Errorf("asked by %+v, %d runs", r.Requester, len(m.calls("restart")))
	}
	opened, err := h.client(t, "rt2").Open(
		t.Context(),
		"desk",
		[]byte(`{"kind":"tool","tool":"restart","args":{"machine":"db1"}}`),
		client.OpenOptions{},
	)
	if err != nil || opened.Outcome != resolve.Ask {
		t.Errorf("the control: %+v, %v", opened, err)
	}
}
