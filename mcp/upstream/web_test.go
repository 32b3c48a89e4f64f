package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// site is a server by HTTP that records what it gets.
type site struct {
	era    string
	called func(w http.ResponseWriter, id string, n int) // answers the n-th call, from 1
	resume func(w http.ResponseWriter)

	mu       sync.Mutex
	sessions int
	calls    int
	got      []string // method and body of each request
	heads    []http.Header
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.got = append(s.got, r.Method+" "+string(body))
	s.heads = append(s.heads, r.Header)
	s.mu.Unlock()
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") != "" {
		s.resume(w)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m, bad := wire.Parse(body, wire.Limits())
	if bad != nil || m.Kind() != wire.Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.answer(w, &m)
}

func (s *site) answer(w http.ResponseWriter, m *wire.Message) {
	id := m.ID.Text()
	switch {
	case m.Method == wire.MethodCall:
		s.mu.Lock()
		s.calls++
		n := s.calls
		s.mu.Unlock()
		s.called(w, id, n)
	case m.Method == "server/discover" && s.era == "modern":
		say(w, 200, id, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
	case m.Method == "server/discover" && s.era == "legacy, discoverable":
		say(w, 200, id, `"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}`)
	case m.Method == "initialize" && strings.HasPrefix(s.era, "legacy"):
		s.mu.Lock()
		s.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", s.sessions))
		s.mu.Unlock()
		say(w, 200, id, `"result":{"protocolVersion":"2025-11-25","capabilities":{}}`)
	default:
		say(w, 400, id, `"error":{"code":-32600,"message":"what?"}`)
	}
}

// count is how many requests had a text.
func (s *site) count(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, got := range s.got {
		if strings.Contains(got, text) {
			n++
		}
	}
	return n
}

// last is a header of the last call.
func (s *site) last(name string) (value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, got := range s.got {
		if strings.Contains(got, wire.MethodCall) {
			value = s.heads[i].Get(name)
		}
	}
	return value
}

func say(w http.ResponseWriter, status int, id, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,`+what+`}`)
}

// events answers with a stream.
func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func visit(t *testing.T, s *site, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return reach(t, h.URL+"/mcp", change)
}

func done(w http.ResponseWriter, id string, _ int) { say(w, 200, id, `"result":{"content":[]}`) }

func TestEachEraIsFoundOutByHTTP(t *testing.T) {
	t.Parallel()
	for era, version := range map[string]string{
		"legacy":               wire.V20251125,
		"legacy, discoverable": wire.V20251125,
		"modern":               wire.V20260728,
	} {
		s := &site{era: era, called: done}
		server := visit(t, s, nil)
		if _, err := call(t.Context(), server, "größe", nil); err != nil || server.Peer().Version != version {
			t.Fatalf("%s: version %q, %v", era, server.Peer().Version, err)
		}
		if s.count(`"arguments":{ "a" : 1.0 }`) != 1 || s.count(wire.MethodCall) != 1 {
			t.Errorf("%s: the server saw %q", era, s.got)
		}
	}
}

func TestModernHeadersRepeatTheBody(t *testing.T) {
	t.Parallel()
	s := &site{era: "modern", called: done}
	if _, err := call(t.Context(), visit(t, s, nil), "größe", nil); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, got := range s.got {
		h := s.heads[i]
		if !strings.Contains(got, wire.MethodCall) {
			continue
		}
		if h.Get("Mcp-Method") != wire.MethodCall || h.Get("Mcp-Name") != "=?base64?Z3LDtsOfZQ==?=" ||
			h.Get("Mcp-Protocol-Version") != wire.V20260728 {
			t.Errorf("headers %v", h)
		}
	}
}

func TestABrokenAnswerIsFetchedAndTheCallNeverMadeAgain(t *testing.T) {
	t.Parallel()
	id := "0"
	s := &site{era: "legacy"}
	s.called = func(w http.ResponseWriter, of string, _ int) {
		id = of
		events(w, "id: e1\ndata:\n\n")
	}
	s.resume = func(w http.ResponseWriter) {
		events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[1]}}`+"\n\n")
	}
	out, err := call(t.Context(), visit(t, s, nil), "a", nil)
	if err != nil || string(out.Result) != `{"content":[1]}` || s.count(wire.MethodCall) != 1 {
		t.Errorf("got %s, %v after %q", out.Result, err, s.got)
	}
}

func TestASessionThatHasEndedIsOpenedAnew(t *testing.T) {
	t.Parallel()
	s := &site{era: "legacy"}
	s.called = func(w http.ResponseWriter, id string, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		done(w, id, n)
	}
	_, err := call(t.Context(), visit(t, s, nil), "a", nil)
	if err != nil || s.sessions != 2 || s.calls != 2 {
		t.Errorf("%d sessions, %d calls, %v", s.sessions, s.calls, err)
	}
}

func TestWhatIsKnownAfterAFailure(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, string, int) {
		return func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(code) }
	}
	text := func(text string) func(http.ResponseWriter, string, int) {
		return func(w http.ResponseWriter, id string, _ int) { say(w, 200, id, text) }
	}
	cut := func(w http.ResponseWriter, _ string, _ int) { events(w, ": x\n\n") }
	for name, c := range map[string]struct {
		called func(http.ResponseWriter, string, int)
		want   error
	}{
		"500":                {status(500), upstream.ErrUnknown},
		"202":                {status(202), upstream.ErrUnknown},
		"a redirect":         {status(307), upstream.ErrUnknown},
		"401":                {status(401), upstream.ErrNotSent},
		"403":                {status(403), upstream.ErrNotSent},
		"415":                {status(415), upstream.ErrNotSent},
		"header mismatch":    {text(`"error":{"code":-32020,"message":"header"}`), upstream.ErrNotSent},
		"two equal names":    {text(`"result":{"isError":true,"isError":false}`), upstream.ErrUnknown},
		"a stream cut short": {cut, upstream.ErrUnknown},
	} {
		s := &site{era: "modern", called: c.called}
		if _, err := call(t.Context(), visit(t, s, nil), "a", nil); !errors.Is(err, c.want) || s.calls != 1 {
			t.Errorf("%s: %d calls, %v", name, s.calls, err)
		}
	}
}

func TestATokenThatIsRefusedIsRenewedOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		next  string // what is got in place of a refused token
		good  string // what the server takes
		calls int
		works bool
	}{
		{"second", "second", 2, true},
		{"second", "third", 2, false},
		{"first", "second", 1, false},
	} {
		s := &site{era: "modern"}
		s.called = func(w http.ResponseWriter, id string, n int) {
			if s.last("Authorization") != "Bearer "+test.good {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			done(w, id, n)
		}
		server := visit(t, s, func(cfg *upstream.Config) {
			cfg.Token = func(_ context.Context, refused string) (string, error) {
				if refused != "" {
					return test.next, nil
				}
				return "first", nil
			}
		})
		_, err := call(t.Context(), server, "a", nil)
		if s.calls != test.calls || test.works != (err == nil) || err != nil && !errors.Is(err, upstream.ErrNotSent) {
			t.Errorf("%+v: %d calls, %v", test, s.calls, err)
		}
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	t.Parallel()
	s := &site{era: "modern"}
	s.called = done
	var gone atomic.Bool
	server := visit(t, s, func(cfg *upstream.Config) {
		cfg.Token = func(context.Context, string) (string, error) {
			if gone.Load() {
				return "", errors.New("the file is gone")
			}
			return "t", nil
		}
	})
	if _, err := call(t.Context(), server, "a", nil); err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrNotSent) || s.calls != 1 {
		t.Errorf("%d calls, %v", s.calls, err)
	}
}

func TestAServerThatIsNotThereGetsNothing(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	server := visit(t, &site{}, func(cfg *upstream.Config) { cfg.URL = gone.URL })
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrNotSent) {
		t.Errorf("got %v", err)
	}
}

func TestRoundsOfQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	s := &site{era: "modern"}
	s.called = func(w http.ResponseWriter, id string, n int) {
		if n == 1 {
			say(w, 200, id, `"result":{"resultType":"input_required","requestState":"s1",`+
				`"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"why"}}}}`)
			return
		}
		done(w, id, n)
	}
	out, err := visit(t, s, nil).Do(t.Context(), asking())
	if err != nil || string(out.Result) != `{"content":[]}` {
		t.Fatalf("got %s, %v", out.Result, err)
	}
	if s.count(`"inputResponses":{"q":{"action":"accept"}},"requestState":"s1"`) != 1 {
		t.Errorf("the server saw %q", s.got)
	}
}

func asking() upstream.Request {
	return upstream.Request{
		Method: wire.MethodCall,
		Params: json.RawMessage(`{"name":"a","arguments":{}}`),
		Ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
			text, _ := jsonmsg.ReadString(jsonmsg.Get(params, "message"))
			if method != "elicitation/create" || text != "why" {
				return nil, wire.Fail(wire.CodeInvalidParams, "not what the server asked")
			}
			return json.RawMessage(`{"action":"accept"}`), nil
		},
	}
}

func TestALegacyServerAsksInACall(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	s := &site{era: "legacy"}
	s.called = func(w http.ResponseWriter, id string, _ int) {
		events(w, `data: {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"why"}}`+"\n\n")
		<-answered
		events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`+"\n\n")
	}
	server, ended := visit(t, s, nil), make(chan error, 1)
	go func() {
		_, err := server.Do(t.Context(), asking())
		ended <- err
	}()
	testwait.Until(t, "the server has the answer", func() bool {
		return s.count(`"id":"q1","result":{"action":"accept"}`) > 0
	})
	close(answered)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
