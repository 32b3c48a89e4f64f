package rap_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// confRuntime is a runtime written to the protocol's field tables, independent of the code
// under test. It has its own messages, follows a row's script, and records everything it
// receives.
type confRuntime struct {
	t      testing.TB
	name   string
	token  string // sent to the tool server
	shown  string // expected from the tool server at callbacks; may be empty
	server *httptest.Server
	client *http.Client

	base, endpoint string // of the tool server, once discovered

	mu      sync.Mutex
	calls   int
	got     []*confCallback
	arrived chan struct{} // closed when something arrives
	faults  []string
	closing chan struct{}
	// script answers the nth delivery of a message with a status or a constant below. If it is
	// nil, the answer is 200.
	script func(cb *confCallback, nth int) int
	to     string // target of redirects
}

// Answers of a script other than a status.
const (
	confHang = -iota - 1 // until the sender gives up
	confCut              // closes the connection
)

// confInvocation is the message, with null members as the reference implementation writes them.
type confInvocation struct {
	Operation   string          `json:"operation"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	ID          string          `json:"id"`
	CallID      *string         `json:"call_id"`
	CallbackURL string          `json:"callback_url"`
	GroupID     string          `json:"group_id"`
	Ancestors   []string        `json:"thread_ancestors"`
	UserID      string          `json:"user_id,omitempty"`
}

// confCallback is any message from a tool, as received.
type confCallback struct {
	Type        string   `json:"type"`
	GroupID     string   `json:"group_id"`
	ID          string   `json:"id"`
	CallID      *string  `json:"call_id"`
	Text        *string  `json:"text"`
	Prompt      string   `json:"prompt"`
	Choices     []string `json:"choices"`
	Default     *int     `json:"default"`
	ResponseURL string   `json:"response_url"`

	ToolCallID   string `json:"tool_call_id"`
	Subscription bool   `json:"subscription"`
	Associative  bool   `json:"associative"`
	Final        bool   `json:"final"`

	uri    string // requested path and query
	body   []byte
	status int // of our response; 0 if there is none yet, or the connection was cut
}

func newConfRuntime(t testing.TB, name string) *confRuntime {
	t.Helper()
	r := &confRuntime{
		t:       t,
		name:    name,
		token:   "bearer-of-" + name,
		arrived: make(chan struct{}),
		closing: make(chan struct{}),
		client:  &http.Client{Transport: &http.Transport{}},
	}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		close(r.closing)
		r.client.CloseIdleConnections()
		r.server.Close()
		for _, fault := range r.faults {
			t.Errorf("%s was sent what the protocol forbids: %s", r.name, fault)
		}
	})
	return r
}

func (r *confRuntime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	cb := &confCallback{uri: req.RequestURI, body: body}
	fault := cb.read(req)
	if err != nil {
		fault = err.Error()
	}
	if want := "Bearer " + r.shown; r.shown != "" && req.Header.Get("Authorization") != want {
		fault = "a callback without our token"
	}
	status := r.keep(cb, fault)
	switch status {
	case confHang:
		select {
		case <-req.Context().Done():
		case <-r.closing:
		}
		panic(http.ErrAbortHandler)
	case confCut:
		panic(http.ErrAbortHandler)
	}

	if status/100 == 3 {
		w.Header().Set("Location", r.to)
	}
	w.WriteHeader(status)
}

// keep records a callback and runs the script. The callback is visible to await once its status
// is known.
func (r *confRuntime) keep(cb *confCallback, fault string) int {
	r.mu.Lock()
	script, nth := r.script, 1
	for _, other := range r.got {
		if other.uri == cb.uri && other.Type == cb.Type && other.ID == cb.ID {
			nth++
		}
	}
	r.mu.Unlock()
	cb.status = http.StatusOK
	if script != nil {
		cb.status = script(cb, nth)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if fault != "" {
		r.faults = append(r.faults, fault+": "+string(cb.body[:min(len(cb.body), 300)]))
	}
	r.got = append(r.got, cb)
	close(r.arrived)
	r.arrived = make(chan struct{})
	return cb.status
}

// answers sets the script.
func (r *confRuntime) answers(script func(cb *confCallback, nth int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = script
}

// confFields returns the fields of the messages that a tool without sign-ins and views sends.
// True means required.
func confFields() map[string]map[string]bool {
	return map[string]map[string]bool{
		"tool_result": {
			"type":         true,
			"group_id":     true,
			"id":           true,
			"call_id":      false,
			"text":         false,
			"content":      false,
			"display_as":   false,
			"subscription": false,
		},
		"user_choice": {
			"type":         true,
			"group_id":     true,
			"id":           true,
			"call_id":      false,
			"prompt":       true,
			"choices":      true,
			"default":      true,
			"response_url": true,
		},
		"subscription_event": {
			"type":         true,
			"group_id":     true,
			"tool_call_id": true,
			"text":         true,
			"associative":  false,
			"final":        false,
		},
	}
}

// read decodes a callback and returns what is wrong with it.
func (c *confCallback) read(req *http.Request) string {
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	var fields map[string]json.RawMessage
	switch {
	case req.Method != http.MethodPost:
		return "method " + req.Method
	case kind != "application/json":
		return "content type " + kind
	case !utf8.Valid(c.body):
		return "no UTF-8"
	case json.Unmarshal(c.body, &fields) != nil:
		return "no JSON object"
	}

	if err := json.Unmarshal(c.body, c); err != nil {
		return err.Error()
	}
	table, known := confFields()[c.Type]
	if !known {
		return "type " + c.Type
	}
	for name, required := range table {
		if value, there := fields[name]; required && (!there || string(value) == "null") {
			return name + " is missing"
		}
	}
	for name := range fields {
		if _, named := table[name]; !named {
			return name + " is no field of it"
		}
	}
	return c.content(fields)
}

func (c *confCallback) content(fields map[string]json.RawMessage) string {
	if c.Type == "subscription_event" {
		return ""
	}
	if c.Type == "tool_result" {
		if c.Text == nil && fields["content"] == nil {
			return "a result without text and content"
		}
		return ""
	}

	to, err := url.Parse(c.ResponseURL)
	switch {
	case c.Prompt == "":
		return "an empty prompt"
	case len(c.Choices) == 0 || slices.Contains(c.Choices, ""):
		return "no choices, or an empty one"
	case *c.Default < 0 || *c.Default >= len(c.Choices):
		return "a default out of range"
	case err != nil || !to.IsAbs() || to.Host == "":
		return "a response_url that is not absolute"
	}

	return ""
}

// await waits for the nth callback that matches.
func (r *confRuntime) await(what string, nth int, match func(*confCallback) bool) *confCallback {
	r.t.Helper()
	ctx, stop := raptest.Patience(r.t)
	defer stop()
	for {
		found, arrived := r.found(match)
		if len(found) >= nth {
			return found[nth-1]
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			r.t.Fatalf("%s never got %s (%d of %d)\n%s", r.name, what, len(found), nth, r.heard())
		}
	}
}

func (r *confRuntime) found(match func(*confCallback) bool) ([]*confCallback, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*confCallback
	for _, cb := range r.got {
		if match(cb) {
			out = append(out, cb)
		}
	}
	return out, r.arrived
}

// heard returns a summary of the callbacks for failure messages.
func (r *confRuntime) heard() string {
	var b strings.Builder
	all, _ := r.found(func(*confCallback) bool { return true })
	for _, cb := range all[:min(len(all), 20)] {
		fmt.Fprintf(&b, "%s -> %d %.300s\n", cb.uri, cb.status, cb.body)
	}
	return b.String()
}

// send makes a request as this runtime and returns status and body. The status is 0 if there
// was no response.
func (r *confRuntime) send(method, to string, body []byte, change ...func(*http.Request)) (int, string) {
	r.t.Helper()
	req := must.Get(http.NewRequestWithContext(r.t.Context(), method, to, bytes.NewReader(body)))(r.t)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for _, f := range change {
		f(req)
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// meet discovers a tool server and stores the endpoint in its manifest.
func (r *confRuntime) meet(base string) {
	r.t.Helper()
	var manifest struct {
		Endpoint string `json:"endpoint"`
	}
	r.base = strings.TrimRight(base, "/")
	status, body := r.send(http.MethodGet, r.base+"/.well-known/rap-toolset", nil)
	if err := json.Unmarshal([]byte(body), &manifest); status != http.StatusOK || err != nil ||
		manifest.Endpoint == "" {
		r.t.Fatalf("discovery: %d %v %s", status, err, body)
	}
	r.endpoint = manifest.Endpoint
}

// tell posts a message about a thread or a call.
func (r *confRuntime) tell(path string, fields map[string]any) (int, string) {
	r.t.Helper()
	return r.send(http.MethodPost, r.base+path, confJSON(r.t, fields))
}

func (r *confRuntime) cancel(thread, id string) (int, string) {
	return r.tell("/cancel_tool_call", map[string]any{"thread_id": thread, "tool_call_id": id})
}

func (r *confRuntime) closeThread(thread string) (int, string) {
	return r.tell("/close_thread", map[string]any{"thread_id": thread})
}

// alive returns a call's status.
func (r *confRuntime) alive(thread, id string) bool {
	r.t.Helper()
	status, body := r.tell("/tool_call_status", map[string]any{"thread_id": thread, "tool_call_id": id})
	var says struct {
		Alive *bool `json:"alive"`
	}
	if err := json.Unmarshal([]byte(body), &says); status != http.StatusOK || err != nil || says.Alive == nil {
		r.t.Fatalf("status: %d %v %q", status, err, body)
	}
	return *says.Alive
}

// over waits until the tool server no longer works on a call.
func (r *confRuntime) over(thread, id string) {
	r.t.Helper()
	testwait.Until(r.t, "the end of "+id+" in "+thread, func() bool { return !r.alive(thread, id) })
}

// confCall is one call with a callback URL of its own.
type confCall struct {
	*confRuntime
	in  confInvocation
	uri string // path and query of the callback URL
	raw string // sent instead of in, if a row needs exact bytes
}

// call prepares a call without sending it.
func (r *confRuntime) call(operation, arguments string) *confCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	uri := fmt.Sprintf("/cb/%s-secret%d/%%2e%%2F~a;b?k=%d&k=%%26", r.name, r.calls, r.calls)
	return &confCall{
		confRuntime: r,
		uri:         uri,
		in: confInvocation{
			Operation:   operation,
			Arguments:   json.RawMessage(arguments),
			ID:          fmt.Sprintf("call_%d", r.calls),
			GroupID:     "thread-1",
			CallbackURL: r.server.URL + uri,
		},
	}
}

func (c *confCall) with(change func(*confInvocation)) *confCall {
	change(&c.in)
	return c
}

// post sends the invocation and returns the status.
func (c *confCall) post(change ...func(*http.Request)) int {
	c.t.Helper()
	body := []byte(c.raw)
	if c.raw == "" {
		body = confJSON(c.t, c.in)
	}
	status, _ := c.send(http.MethodPost, c.endpoint, body, change...)
	return status
}

// invoke sends the invocation, which has to be acknowledged.
func (c *confCall) invoke() *confCall {
	c.t.Helper()
	if status := c.post(); status != http.StatusOK {
		c.t.Fatalf("invocation of %s: %d", c.in.Operation, status)
	}
	return c
}

// of matches the messages of a type for this call. An empty kind matches all types.
func (c *confCall) of(kind string) func(*confCallback) bool {
	return func(cb *confCallback) bool {
		return cb.uri == c.uri && (kind == "" || cb.Type == kind)
	}
}

func (c *confCall) count(kind string) int {
	found, _ := c.found(c.of(kind))
	return len(found)
}

// choice waits for the question.
func (c *confCall) choice() *confCallback {
	c.t.Helper()
	return c.await("a user_choice of "+c.in.ID, 1, c.of("user_choice"))
}

// result waits for a delivered result, and returns its text.
func (c *confCall) result() string {
	c.t.Helper()
	cb := c.await("a tool_result of "+c.in.ID, 1, func(cb *confCallback) bool {
		return c.of("tool_result")(cb) && cb.status/100 == 2
	})
	if cb.GroupID != c.in.GroupID || cb.ID != c.in.ID {
		c.t.Fatalf("the result of %s in %s came as %s in %s", c.in.ID, c.in.GroupID, cb.ID, cb.GroupID)
	}
	if cb.Text == nil {
		c.t.Fatalf("the result has no text: %s", cb.body)
	}
	return *cb.Text
}

// fails waits for a result, which has to be an error.
func (c *confCall) fails() string {
	c.t.Helper()
	text := c.result()
	if !strings.HasPrefix(text, "Error: ") || len(text) < len("Error: x") {
		c.t.Fatalf("%s ended with %q, want an error", c.in.ID, text)
	}
	return text
}

// answer posts a selection to the response URL of a question.
func (c *confCall) answer(q *confCallback, selected int) int {
	c.t.Helper()
	return c.answerRaw(q, string(confJSON(c.t, map[string]any{"id": q.ID, "selected": selected})))
}

func (c *confCall) answerRaw(q *confCallback, body string) int {
	c.t.Helper()
	status, _ := c.send(http.MethodPost, q.ResponseURL, []byte(body))
	return status
}

// index finds the one choice whose label contains a word.
func (c *confCallback) index(t testing.TB, word string) int {
	t.Helper()
	at := -1
	for i, label := range c.Choices {
		if strings.Contains(strings.ToLower(label), word) && i != *c.Default {
			if at >= 0 {
				t.Fatalf("two choices speak of %q: %q", word, c.Choices)
			}
			at = i
		}
	}

	if at < 0 {
		t.Fatalf("no choice speaks of %q: %q", word, c.Choices)
	}
	return at
}

// secret returns the last part of the response URL.
func (c *confCallback) secret() string {
	return c.ResponseURL[strings.LastIndex(c.ResponseURL, "/")+1:]
}

func confJSON(t testing.TB, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}
