package rap_test

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

// toolPeer is a tool server that does what a test tells it to. It knows
// RAP from the protocol's field tables alone, and shares no code with
// what it tests.
type toolPeer struct {
	t    testing.TB
	URL  string
	quit chan struct{} // closed at the end, to let go of requests that hang

	mu       sync.Mutex
	got      []toolRequest
	changed  chan struct{}        // closed and made anew with every request
	own      map[string][2]string // thread and id by the names that they are sent as
	manifest func(w http.ResponseWriter)
	scripts  map[string]func(w http.ResponseWriter, r *http.Request, nth int)
}

// toolRequest is what came in: Route is "discovery", "invoke", "close",
// "cancel", "status" or "answer" for every other address.
type toolRequest struct {
	Route, Method, URI, ContentType, Body string
	Header                                http.Header
}

const toolEndpoint = "/invoke"

// toolManifest is a valid manifest of these tools, which take anything.
func toolManifest(endpoint string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(
			list,
			fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":{"type":"object"}}`, name, name),
		)
	}

	return fmt.Sprintf(`{"name":"scripted","endpoint":%q,"tools":[%s]}`, endpoint, strings.Join(list, ","))
}

// newToolPeer starts a tool server that offers some tools, accepts
// everything and does nothing.
func newToolPeer(t testing.TB, tools ...string) *toolPeer {
	p := &toolPeer{
		t:       t,
		quit:    make(chan struct{}),
		changed: make(chan struct{}),
		own:     map[string][2]string{},
		scripts: map[string]func(http.ResponseWriter, *http.Request, int){},
	}
	server := httptest.NewServer(p)
	p.URL = server.URL
	p.offers(toolManifest(p.URL+toolEndpoint, tools...))
	t.Cleanup(func() {
		close(p.quit)
		server.Close()
	})
	return p
}

// offers sets the manifest.
func (p *toolPeer) offers(manifest string) {
	p.manifests(func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, manifest)
	})
}

func (p *toolPeer) manifests(answer func(w http.ResponseWriter)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.manifest = answer
}

// on scripts what is answered at a path (query and escapes as they are
// sent); nth counts from 1.
func (p *toolPeer) on(uri string, answer func(w http.ResponseWriter, r *http.Request, nth int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[uri] = answer
}

// answers has a path always answer with a status.
func (p *toolPeer) answers(uri string, status int) {
	p.on(uri, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(status) })
}

// hangs has a path answer nothing until the end.
func (p *toolPeer) hangs(uri string) {
	p.on(uri, func(_ http.ResponseWriter, _ *http.Request, _ int) { <-p.quit })
}

// drops has a path cut the connection.
func (p *toolPeer) drops(uri string) {
	p.on(uri, func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) })
}

func (p *toolPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := toolRequest{
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
		toolEndpoint:               "invoke",
		"/close_thread":            "close",
		"/cancel_tool_call":        "cancel",
		"/tool_call_status":        "status",
	}
	if name := known[path]; name != "" {
		return name
	}
	return "answer"
}

// requests are those to a route ("invoke") or an address
// ("/answers/1"), so far.
func (p *toolPeer) requests(at string) []toolRequest {
	got, _ := p.look(at)
	return got
}

func (p *toolPeer) look(at string) ([]toolRequest, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []toolRequest
	for _, r := range p.got {
		if r.Route == at || r.URI == at {
			out = append(out, r)
		}
	}
	return out, p.changed
}

// waits returns the requests to a route or address once there are n.
func (p *toolPeer) waits(at string, n int) []toolRequest {
	p.t.Helper()
	ctx, stop := patience(p.t)
	defer stop()
	for {
		got, changed := p.look(at)
		if len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.t.Fatalf("%d of %d requests came to %s", len(got), n, at)
		}
	}
}

// exactly wants n requests to a route or address, no more and no fewer.
func (p *toolPeer) exactly(at string, n int) {
	p.t.Helper()
	if got := p.requests(at); len(got) != n {
		p.t.Errorf("%d requests came to %s, want %d: %+v", len(got), at, n, got)
	}
}

// patience returns a context for waits: it ends with the time of the
// test (go test -timeout), early enough for a message.
func patience(t testing.TB) (context.Context, context.CancelFunc) {
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := timed.Deadline(); ok {
			return context.WithDeadline(t.Context(), end.Add(-20*time.Second))
		}
	}
	return context.WithCancel(t.Context())
}

// toolCall is an invocation as the tool server read it.
type toolCall struct {
	t testing.TB
	p *toolPeer

	Operation   string          `json:"operation"`
	Arguments   json.RawMessage `json:"arguments"`
	SentID      string          `json:"id"`
	CallID      *string         `json:"call_id"`
	CallbackURL string          `json:"callback_url"`
	SentGroup   string          `json:"group_id"`
	Ancestors   []string        `json:"thread_ancestors"`
	UserID      *string         `json:"user_id"`

	ID, GroupID string // as whoever made the call named them; as they were sent where that is not known
}

// confKey and confRoom are those of every runtime under test, and
// confAsker is who calls.
func confKey() []byte { return bytes.Repeat([]byte{7}, 32) }

const confRoom = "clerk"

func confAsker() approval.Asker { return approval.Asker{Token: "clerk-token"} }

// confNames are the names under which a runtime under test sends the
// call of a thread.
func confNames(thread, id string) (group, call string) {
	n, err := names.New(confKey(), confRoom, false)
	if err != nil {
		panic(err)
	}
	sent := n.Sent(confAsker(), thread, id, nil)

	return sent.Group, sent.ID
}

// confGroup is the name under which a thread is sent.
func confGroup(thread string) string {
	group, _ := confNames(thread, "")
	return group
}

// confNotice is what a tool server is told of a thread, or of one of
// its calls.
func confNotice(thread string, id ...string) map[string]string {
	group, call := confNames(thread, strings.Join(id, ""))
	if len(id) == 0 {
		return map[string]string{"thread_id": group}
	}
	return map[string]string{"thread_id": group, "tool_call_id": call}
}

// call waits for the invocation of a thread's call.
func (p *toolPeer) call(thread, id string) *toolCall {
	p.t.Helper()
	p.expects(thread, id)
	for n := 1; ; n++ {
		if c := p.read(p.waits("invoke", n)[n-1].Body); c.GroupID == thread && c.ID == id {
			return c
		}
	}
}

// expects has the invocation of a thread's call recognised by the names
// that it is sent as.
func (p *toolPeer) expects(thread, id string) {
	group, call := confNames(thread, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[group+"/"+call] = [2]string{thread, id}
}

func (p *toolPeer) read(body string) *toolCall {
	c := &toolCall{t: p.t, p: p}
	if err := json.Unmarshal([]byte(body), c); err != nil {
		p.t.Errorf("an invocation that can't be read: %v: %s", err, body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.GroupID, c.ID = c.SentGroup, c.SentID
	if own, known := p.own[c.SentGroup+"/"+c.SentID]; known {
		c.GroupID, c.ID = own[0], own[1]
	}
	return c
}

// reads is read of a request that a script answers.
func (p *toolPeer) reads(r *http.Request) *toolCall {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Errorf("an invocation that can't be read: %v", err)
	}
	return p.read(string(body))
}

// toolMessage is a message that is about to be sent.
type toolMessage map[string]any

func (m toolMessage) with(field string, value any) toolMessage {
	m = maps.Clone(m)
	m[field] = value
	return m
}

func (m toolMessage) without(field string) toolMessage {
	m = maps.Clone(m)
	delete(m, field)
	return m
}

func (m toolMessage) text(t testing.TB) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any(m)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (c *toolCall) name() string { return c.GroupID + "/" + c.ID }

// choice is a question with three labels, of which the last is the
// default; its answer goes to a path of the tool server.
func (c *toolCall) choice(path string) toolMessage {
	return toolMessage{
		"type":         "user_choice",
		"group_id":     c.SentGroup,
		"id":           c.SentID,
		"prompt":       "Allow " + c.name() + " to write to /etc/motd?",
		"choices":      []string{"Yes for session", "Yes once", "No"},
		"default":      2,
		"response_url": c.p.URL + path,
	}
}

func (c *toolCall) result(text string) toolMessage {
	return toolMessage{
		"type":     "tool_result",
		"group_id": c.SentGroup,
		"id":       c.SentID,
		"text":     text,
	}
}

func (c *toolCall) oauth(url string) toolMessage {
	return toolMessage{
		"type":     "oauth",
		"group_id": c.SentGroup,
		"id":       c.SentID,
		"auth_url": url,
	}
}

func (c *toolCall) event(text string) toolMessage {
	return toolMessage{
		"type":         "subscription_event",
		"group_id":     c.SentGroup,
		"tool_call_id": c.SentID,
		"text":         text,
	}
}

func (c *toolCall) view(kind string, content any) toolMessage {
	return toolMessage{
		"type":      "view_update",
		"group_id":  c.SentGroup,
		"view_type": kind,
		"content":   content,
	}
}

// send posts a callback and returns its status.
func (c *toolCall) send(m toolMessage) int {
	c.t.Helper()
	return c.raw("application/json", m.text(c.t))
}

func (c *toolCall) raw(contentType, body string) int {
	c.t.Helper()
	return postTo(c.t, c.CallbackURL, contentType, body)
}

// sends wants the callback to be taken.
func (c *toolCall) sends(m toolMessage) {
	c.t.Helper()
	if status := c.send(m); status != http.StatusOK {
		c.t.Errorf("%v was answered with %d", m["type"], status)
	}
}

// refused wants a callback to be answered with 4xx.
func (c *toolCall) refused(what string, m toolMessage) {
	c.t.Helper()
	if status := c.send(m); status/100 != 4 {
		c.t.Errorf("%s: answered with %d, want 4xx", what, status)
	}
}

func postTo(t testing.TB, url, contentType, body string) int {
	t.Helper()
	return request(t, http.MethodPost, url, contentType, strings.NewReader(body))
}

func request(t testing.TB, method, url, contentType string, body io.Reader) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := ownClient().Do(req)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// ownClient shares no connection with other rows: whoever stops a test
// server closes the connections of http.DefaultClient, under a request
// of a row that runs beside it.
func ownClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
