package mcptest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

// Site is an MCP server by HTTP for tests. It keeps each request that it
// gets, and misbehaves on demand.
type Site struct {
	*httptest.Server
	on func(http.ResponseWriter, *Visit) bool

	mu     sync.Mutex
	script Script
	visits []*Visit
	stream chan string // what the stream of an old server is to say
}

// Visit is one request of HTTP that a site got.
type Visit struct {
	*http.Request
	Text    string       // of its body
	Message wire.Message // in it; the zero message where there is none
	Times   int          // how many visits with this method there were, with it
}

// NewSite returns a site that speaks the era of a script: "legacy", "modern" or "old" (HTTP+SSE of
// 2024-11-05). If on isn't nil, it sees each visit first, and returns true if it answered the
// visit.
func NewSite(t testing.TB, s Script, on func(http.ResponseWriter, *Visit) bool) *Site {
	t.Helper()
	site := &Site{on: on, script: s, stream: make(chan string, 16)}
	site.Server = httptest.NewServer(site)
	t.Cleanup(func() {
		site.CloseClientConnections() // streams that are still open
		site.Close()
	})
	return site
}

// Rewrite changes the site's behaviour from its next visit on.
func (s *Site) Rewrite(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Visits returns the visits with an MCP method. With an empty method it returns those without a
// message.
func (s *Site) Visits(method string) (found []*Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.visits {
		if v.Message.Method == method {
			found = append(found, v)
		}
	}
	return found
}

// ServeHTTP answers a visit.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, script := s.enter(r)
	if s.on != nil && s.on(w, v) {
		return
	}
	switch {
	case r.Method == http.MethodGet && script.Era == "old":
		s.bring(w, r)
	case r.Method != http.MethodPost || script.Era == "old" && r.URL.Path != "/messages":
		w.WriteHeader(http.StatusMethodNotAllowed)
	case v.Message.Kind() != wire.Request:
		w.WriteHeader(http.StatusAccepted)
	case script.Era == "old":
		w.WriteHeader(http.StatusAccepted)
		s.stream <- "data: " + script.answer(&v.Message) + "\n\n"
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, script.answer(&v.Message)) // the client may have gone
	}
}

// enter keeps a visit.
func (s *Site) enter(r *http.Request) (*Visit, Script) {
	text, _ := io.ReadAll(r.Body)
	v := &Visit{Request: r, Text: string(text)}
	if len(text) > 0 {
		v.Message, _ = wire.Parse(text, wire.Limits())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits = append(s.visits, v)
	for _, other := range s.visits {
		if other.Message.Method == v.Message.Method {
			v.Times++
		}
	}
	return v, s.script
}

// bring is the one stream of an old server.
func (s *Site) bring(w http.ResponseWriter, r *http.Request) {
	Events(w, "event: endpoint\ndata: /messages?session=1\n\n")
	for {
		select {
		case text := <-s.stream:
			Events(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

// Events writes a part of a stream of events.
func Events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text) // the client may have gone
	_ = http.NewResponseController(w).Flush()
}

// Say answers a request with an error of the protocol, or a result.
func Say(w http.ResponseWriter, status int, m *wire.Message, result string, err *wire.Error) {
	answer := wire.Answer(m.ID, json.RawMessage(result), err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, written(answer)) // the client may have gone
}

// answer returns the script's answer to a request.
func (s *Script) answer(m *wire.Message) string {
	call, bad := &wire.Call{}, (*wire.Error)(nil)
	if m.Method == wire.MethodCall {
		call, bad = wire.ReadCall(m.Params)
	}
	if bad != nil {
		return written(wire.Answer(m.ID, nil, bad))
	}
	if text, has := s.Answers[call.Name]; has {
		return `{"jsonrpc":"2.0","id":` + m.ID.Text() + `,"result":` + text + `}`
	}
	tools, err := json.Marshal(s.Tools)
	results := map[string]string{"tools/list": `{"tools":` + string(tools) + `}`}
	results[wire.MethodCall] = `{"content":[{"type":"text","text":"done"}],"isError":false}`
	results[s.opening()] = `{"protocolVersion":"2025-11-25","supportedVersions":["2026-07-28"],` +
		`"capabilities":{"tools":{},"resources":{},"prompts":{}},"ttlMs":0,"cacheScope":"private"}`
	results[wire.MethodRead] = `{"contents":[]}`
	results[wire.MethodPrompt] = `{"messages":[]}`
	result, has := results[m.Method]
	if !has || err != nil {
		return written(wire.Answer(m.ID, nil, wire.Fail(wire.CodeMethodNotFound, "unknown method")))
	}

	return written(wire.Answer(m.ID, json.RawMessage(result), nil))
}

// opening returns the request that opens a conversation.
func (s *Script) opening() string {
	if s.Era == "modern" {
		return "server/discover"
	}
	return "initialize"
}

func written(m *wire.Message) string {
	text, err := m.Append(nil)
	if err != nil {
		return err.Error() // which no client can read
	}
	return string(text)
}
