package raptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/internal/names"
)

// Tool is a scripted tool server. It implements RAP from the protocol's field tables alone, and
// shares no code with the code under test.
type Tool struct {
	T    testing.TB
	URL  string
	Quit chan struct{} // closed at the end, to release requests that hang

	mu       sync.Mutex
	got      []Request
	changed  chan struct{}        // closed and replaced at every request
	own      map[string][2]string // thread and id by the ids that are sent
	manifest func(w http.ResponseWriter)
	scripts  map[string]func(w http.ResponseWriter, r *http.Request, nth int)
}

// Request is a received request. Route is "discovery", "invoke", "close", "cancel", "status",
// or "answer" for every other path.
type Request struct {
	Route, Method, URI, ContentType, Body string
	Header                                http.Header
}

const Endpoint = "/invoke"

// Manifest returns a valid manifest of tools that accept any arguments.
func Manifest(endpoint string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(
			list,
			fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":{"type":"object"}}`, name, name),
		)
	}

	return fmt.Sprintf(`{"name":"scripted","endpoint":%q,"tools":[%s]}`, endpoint, strings.Join(list, ","))
}

// NewTool starts a tool server that offers some tools and accepts everything.
func NewTool(t testing.TB, tools ...string) *Tool {
	p := &Tool{
		T:       t,
		Quit:    make(chan struct{}),
		changed: make(chan struct{}),
		own:     map[string][2]string{},
		scripts: map[string]func(http.ResponseWriter, *http.Request, int){},
	}
	server := httptest.NewServer(p)
	p.URL = server.URL
	p.Offers(Manifest(p.URL+Endpoint, tools...))
	t.Cleanup(func() {
		close(p.Quit)
		server.Close()
	})
	return p
}

// Offers sets the manifest.
func (p *Tool) Offers(manifest string) {
	p.Manifests(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, manifest)
	})
}

func (p *Tool) Manifests(answer func(w http.ResponseWriter)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.manifest = answer
}

// On sets the handler of a path (with query and escapes as sent); nth counts from 1.
func (p *Tool) On(uri string, answer func(w http.ResponseWriter, r *http.Request, nth int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[uri] = answer
}

// Answers makes a path respond with a status.
func (p *Tool) Answers(uri string, status int) {
	p.On(uri, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(status) })
}

// Hangs makes a path not respond until the end of the test.
func (p *Tool) Hangs(uri string) {
	p.On(uri, func(http.ResponseWriter, *http.Request, int) { <-p.Quit })
}

// Drops makes a path close the connection.
func (p *Tool) Drops(uri string) {
	p.On(uri, func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) })
}

func (p *Tool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := Request{
		route(r.URL.Path),
		r.Method,
		r.RequestURI,
		r.Header.Get("Content-Type"),
		string(body),
		r.Header.Clone(),
	}
	p.mu.Lock()
	script := p.scripts[r.RequestURI]
	manifest := p.manifest
	nth := 1
	for _, earlier := range p.got {
		if earlier.URI == got.URI {
			nth++
		}
	}
	p.got = append(p.got, got)
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case script != nil:
		script(w, r, nth)
	case got.Route == "discovery":
		manifest(w)
	}
}

func route(path string) string {
	known := map[string]string{
		"/.well-known/rap-toolset": "discovery",
		Endpoint:                   "invoke",
		"/close_thread":            "close",
		"/cancel_tool_call":        "cancel",
		"/tool_call_status":        "status",
	}
	if name := known[path]; name != "" {
		return name
	}
	return "answer"
}

// Requests returns the requests to a route ("invoke") or a path ("/answers/1") so far.
func (p *Tool) Requests(at string) []Request {
	got, _ := p.Look(at)
	return got
}

func (p *Tool) Look(at string) ([]Request, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.got {
		if r.Route == at || r.URI == at {
			out = append(out, r)
		}
	}
	return out, p.changed
}

// Waits waits for n requests to a route or path, and returns them.
func (p *Tool) Waits(at string, n int) []Request {
	p.T.Helper()
	ctx, stop := Patience(p.T)
	defer stop()
	for {
		got, changed := p.Look(at)
		if len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.T.Fatalf("%d of %d requests came to %s", len(got), n, at)
		}
	}
}

// Exactly checks the number of requests to a route or path.
func (p *Tool) Exactly(at string, n int) {
	p.T.Helper()
	if got := p.Requests(at); len(got) != n {
		p.T.Errorf("%d requests came to %s, want %d: %+v", len(got), at, n, got)
	}
}

// Patience returns a context that ends shortly before the test's own deadline (go test
// -timeout), early enough to print a message.
func Patience(t testing.TB) (context.Context, context.CancelFunc) {
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := timed.Deadline(); ok {
			return context.WithDeadline(t.Context(), end.Add(-20*time.Second))
		}
	}
	return context.WithCancel(t.Context())
}

// Call is an invocation as the tool server received it.
type Call struct {
	t testing.TB
	P *Tool

	Operation   string          `json:"operation"`
	Arguments   json.RawMessage `json:"arguments"`
	SentID      string          `json:"id"`
	CallID      *string         `json:"call_id"`
	CallbackURL string          `json:"callback_url"`
	SentGroup   string          `json:"group_id"`
	Ancestors   []string        `json:"thread_ancestors"`
	UserID      *string         `json:"user_id"`

	ID, GroupID string // the ids of the asker, or those sent if these are unknown
}

// Key returns the key of every runtime under test.
func Key() []byte { return bytes.Repeat([]byte{7}, 32) }

const Room = "clerk"

func Asker() approval.Asker { return approval.Asker{Token: "clerk-token"} }

// Names returns the ids with which a runtime under test sends a call.
func Names(thread, id string) (group, call string) {
	n, err := names.New(Key(), Room, false)
	if err != nil {
		panic(err)
	}
	sent := n.Sent(Asker(), thread, id, nil)

	return sent.Group, sent.ID
}

// Group returns the id with which a thread is sent.
func Group(thread string) string {
	group, _ := Names(thread, "")
	return group
}

// Notice returns the expected notice about a thread or one of its calls.
func Notice(thread string, id ...string) map[string]string {
	group, call := Names(thread, strings.Join(id, ""))
	if len(id) == 0 {
		return map[string]string{"thread_id": group}
	}
	return map[string]string{"thread_id": group, "tool_call_id": call}
}

// Call waits for the invocation of a call.
func (p *Tool) Call(thread, id string) *Call {
	p.T.Helper()
	p.Expects(thread, id)
	for n := 1; ; n++ {
		if c := p.Read(p.Waits("invoke", n)[n-1].Body); c.GroupID == thread && c.ID == id {
			return c
		}
	}
}

// Expects registers the sent ids of a call, so that its invocation is recognized.
func (p *Tool) Expects(thread, id string) {
	group, call := Names(thread, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[group+"/"+call] = [2]string{thread, id}
}

func (p *Tool) Read(body string) *Call {
	c := &Call{t: p.T, P: p}
	if err := json.Unmarshal([]byte(body), c); err != nil {
		p.T.Errorf("an invocation that can't be read: %v: %s", err, body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.GroupID, c.ID = c.SentGroup, c.SentID
	if own, known := p.own[c.SentGroup+"/"+c.SentID]; known {
		c.GroupID, c.ID = own[0], own[1]
	}
	return c
}

// Reads parses the request in a script.
func (p *Tool) Reads(r *http.Request) *Call {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.T.Errorf("an invocation that can't be read: %v", err)
	}
	return p.Read(string(body))
}

// Message is a message to be sent.
type Message map[string]any

func (m Message) With(field string, value any) Message {
	m = maps.Clone(m)
	m[field] = value
	return m
}

func (m Message) Without(field string) Message {
	m = maps.Clone(m)
	delete(m, field)
	return m
}

func (m Message) Text(t testing.TB) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any(m)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Secret is part of every response URL of a Tool, so that leaks can be detected.
const Secret = "s3cr3t"

// AnswerAt returns the path for the answer to a question about the call.
func (c *Call) AnswerAt(more string) string {
	return "/answers/" + c.Name() + "/" + Secret + more
}

func (c *Call) Name() string { return c.GroupID + "/" + c.ID }

// Choice returns a question with three choices, of which the last is the default. The answer
// goes to a path of the tool server.
func (c *Call) Choice(path string) Message {
	return Message{
		"type":         "user_choice",
		"group_id":     c.SentGroup,
		"id":           c.SentID,
		"prompt":       "Allow " + c.Name() + " to write to /etc/motd?",
		"choices":      []string{"Yes for session", "Yes once", "No"},
		"default":      2,
		"response_url": c.P.URL + path,
	}
}

func (c *Call) Result(text string) Message {
	return Message{"type": "tool_result", "group_id": c.SentGroup, "id": c.SentID, "text": text}
}

func (c *Call) Oauth(url string) Message {
	return Message{"type": "oauth", "group_id": c.SentGroup, "id": c.SentID, "auth_url": url}
}

func (c *Call) Event(text string) Message {
	return Message{"type": "subscription_event", "group_id": c.SentGroup, "tool_call_id": c.SentID, "text": text}
}

func (c *Call) View(kind string, content any) Message {
	return Message{"type": "view_update", "group_id": c.SentGroup, "view_type": kind, "content": content}
}

// Send posts a callback and returns the status.
func (c *Call) Send(m Message) int {
	c.t.Helper()
	return c.Raw("application/json", m.Text(c.t))
}

func (c *Call) Raw(contentType, body string) int {
	c.t.Helper()
	return PostTo(c.t, c.CallbackURL, contentType, body)
}

// Sends posts a callback that must be accepted.
func (c *Call) Sends(m Message) {
	c.t.Helper()
	if status := c.Send(m); status != http.StatusOK {
		c.t.Errorf("%v was answered with %d", m["type"], status)
	}
}

// Refused posts a callback that must get a 4xx.
func (c *Call) Refused(what string, m Message) {
	c.t.Helper()
	if status := c.Send(m); status/100 != 4 {
		c.t.Errorf("%s: answered with %d, want 4xx", what, status)
	}
}

func PostTo(t testing.TB, url, contentType, body string) int {
	t.Helper()
	return Send(t, http.MethodPost, url, contentType, strings.NewReader(body))
}

func Send(t testing.TB, method, url, contentType string, body io.Reader) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := OwnClient().Do(req)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// OwnClient returns a client that shares no connections. Closing a test server closes the
// connections of http.DefaultClient, which could interrupt a request of a parallel test.
func OwnClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
