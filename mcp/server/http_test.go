package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
)

// site is an endpoint over real HTTP, with two callers.
type site struct {
	t    *testing.T
	url  string
	srv  *server.Server
	http *http.Client
}

func newSite(t *testing.T, h server.Handler, change func(*server.HTTPConfig)) *site {
	t.Helper()
	srv := server.New(server.Config{Handler: h})
	cfg := server.HTTPConfig{
		Origins: []string{"https://desk.example"},
		Authenticate: func(r *http.Request) (string, *server.Refusal) {
			switch r.Header.Get("Authorization") {
			case "Bearer desk":
				return "desk", nil
			case "Bearer other":
				return "other", nil
			}

			return "", &server.Refusal{Status: 401, Challenge: "Bearer", Reason: "expected a token"}
		},
	}
	if change != nil {
		change(&cfg)
	}
	endpoint := srv.HTTP(cfg)
	at := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		endpoint.Close()
		at.Close()
	})
	return &site{t: t, url: at.URL, srv: srv, http: at.Client()}
}

// ask sends a request; headers come in pairs.
func (s *site) ask(method, body string, headers ...string) *http.Response {
	s.t.Helper()
	return mcptest.Ask(s.t.Context(), s.t, s.http, method, s.url, body, headers...)
}

// expect sends a request, and checks the status and a text of the answer.
func (s *site) expect(status int, text string, resp *http.Response) {
	s.t.Helper()
	got := must.Get(io.ReadAll(resp.Body))(s.t)
	if resp.StatusCode != status || !strings.Contains(string(got), text) {
		s.t.Errorf("got %d %s, expected %d %s", resp.StatusCode, got, status, text)
	}
}

// open initializes a legacy session, and returns its id.
func (s *site) open(version string) string {
	s.t.Helper()
	resp := s.ask(http.MethodPost, strings.Replace(opening, "2025-11-25", version, 1))
	id := resp.Header.Get("Mcp-Session-Id")
	s.expect(200, `"protocolVersion":"`+version+`"`, resp)
	if id == "" {
		s.t.Fatal("no session was given")
	}
	return id
}

func modern(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + modernMeta + `}}`
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestPagesAndHostsOfOthersMayNotConnect(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	s.expect(403, "origin", s.ask(http.MethodPost, opening, "Origin", "https://evil.example"))
	s.expect(403, "origin", s.ask(http.MethodPost, opening, "Origin", "null"))
	s.expect(200, "result", s.ask(http.MethodPost, opening, "Origin", "https://desk.example"))
	s.expect(403, "host", s.ask(http.MethodPost, opening, "Host", "evil.example"))
	s.expect(200, "result", s.ask(http.MethodPost, opening, "Host", "localhost:8080"))
	s.expect(401, "token", s.ask(http.MethodPost, opening, "Authorization", "Bearer wrong"))
	s.expect(415, "application/json", s.ask(http.MethodPost, opening, "Content-Type", "text/plain"))
}

func TestOneEndpointServesBothErasInterleaved(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	id := s.open("2025-11-25")
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "x"}
	for range 3 {
		s.expect(200, `"version":"2025-11-25","modern":false`,
			s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"x"}`, "Mcp-Session-Id", id))
		s.expect(200, `"version":"2026-07-28","modern":true`, s.ask(http.MethodPost, modern("x", ""), headers...))
	}
}

func TestModernHeadersSayWhatTheBodySays(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	call := modern("tools/call", `"name":"ü",`)
	for _, c := range []struct {
		status                int
		version, method, name string
	}{
		{200, "2026-07-28", "tools/call", "=?base64?w7w=?="},
		{400, "2026-07-28", "tools/call", ""},
		{400, "2026-07-28", "tools/call", "=?base64?%%?="},
		{400, "2026-07-28", "tools/list", "=?base64?w7w=?="},
		{400, "", "tools/call", "=?base64?w7w=?="},
		{400, "2025-11-25", "tools/call", "=?base64?w7w=?="},
		{400, "2026-07-28", "", "=?base64?w7w=?="},
	} {
		want := "-32020"
		if c.status == 200 {
			want = "modern"
		}
		s.expect(c.status, want, s.ask(http.MethodPost, call,
			"Mcp-Protocol-Version", c.version, "Mcp-Method", c.method, "Mcp-Name", c.name))
	}
}

func TestModernErrorsHaveTheStatusOfTheirCode(t *testing.T) {
	t.Parallel()
	h := newEcho()
	s := newSite(t, h, nil)
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "x"}
	s.expect(400, "-32602", s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"x"}`, headers...))
	unknown := strings.Replace(modern("x", ""), "2026-07-28", "2099-01-01", 1)
	s.expect(400, "-32022", s.ask(http.MethodPost, unknown, "Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "x"))
	s.expect(404, "-32601", s.ask(http.MethodPost, modern("missing", ""), "Mcp-Protocol-Version", "2026-07-28",
		"Mcp-Method", "missing"))
	s.expect(405, "", s.ask(http.MethodGet, "", "Mcp-Protocol-Version", "2026-07-28"))
	s.expect(405, "", s.ask(http.MethodDelete, "", "Mcp-Protocol-Version", "2026-07-28"))
	s.expect(405, "", s.ask(http.MethodPut, "{}"))
}

func TestALegacySessionIsItsCallersAndEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	id := s.open("2025-11-25")
	s.expect(400, "Mcp-Session-Id", s.ask(http.MethodPost, ping))
	s.expect(404, "ended", s.ask(http.MethodPost, ping, "Mcp-Session-Id", "guess"))
	s.expect(403, "another", s.ask(http.MethodPost, ping, "Mcp-Session-Id", id, "Authorization", "Bearer other"))
	s.expect(400, "version", s.ask(http.MethodPost, ping, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "1999-01-01"))
	s.expect(200, `"result":{}`, s.ask(http.MethodPost, ping, "Mcp-Session-Id", id))
	s.expect(204, "", s.ask(http.MethodDelete, "", "Mcp-Session-Id", id))
	s.expect(404, "ended", s.ask(http.MethodPost, ping, "Mcp-Session-Id", id))
}

func TestNotificationsAndResponsesAreTakenWithoutABody(t *testing.T) {
	t.Parallel()
	h := newEcho()
	s := newSite(t, h, nil)
	id := s.open("2025-11-25")
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`,
	} {
		resp := s.ask(http.MethodPost, body, "Mcp-Session-Id", id)
		got, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusAccepted || len(got) != 0 {
			t.Errorf("%s: %d %q", body, resp.StatusCode, got)
		}
	}

	if len(h.notes) != 1 {
		t.Errorf("heard %q", h.notes)
	}
}

// event reads one event of a stream: its id and its data.
func event(t *testing.T, in *bufio.Reader) (id, data string) {
	t.Helper()
	for {
		line := must.Get(in.ReadString('\n'))(t)
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data:"):
			data = strings.TrimSpace(line[5:])
		case line == "" && id+data != "":
			return id, data
		}
	}
}

func TestABrokenLegacyStreamIsTakenUpWhereItBroke(t *testing.T) {
	t.Parallel()
	h := newEcho()
	s := newSite(t, h, nil)
	id := s.open("2025-11-25")
	resp := s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"wait"}`, "Mcp-Session-Id", id)
	<-h.began
	place, _ := event(t, bufio.NewReader(resp.Body))
	resp.Body.Close() // which cancels nothing
	close(h.finish)

	again := s.ask(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-Id", place)
	if _, data := event(t, bufio.NewReader(again.Body)); data != `{"jsonrpc":"2.0","id":9,"result":{"waited":true}}` {
		t.Errorf("got %s", data)
	}
	if rest, err := io.ReadAll(again.Body); err != nil || len(rest) > 0 {
		t.Errorf("more came: %q, %v", rest, err)
	}
	testwait.Until(t, "the stream is forgotten", func() bool {
		gone := s.ask(http.MethodGet, "", "Mcp-Session-Id", id, "Last-Event-Id", place)
		return gone.StatusCode == http.StatusNotFound
	})
}

func TestAModernClientThatGoesHasCancelled(t *testing.T) {
	t.Parallel()
	h := newEcho()
	s := newSite(t, h, nil)
	resp := s.ask(http.MethodPost, modern("wait", ""), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "wait")
	<-h.began
	resp.Body.Close()
	testwait.Until(t, "the request ends", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.ended) == 1 && errors.Is(h.ended[0], server.ErrCancelled)
	})
}

func TestALongAnswerBeginsAsAStreamBeforeItIsThere(t *testing.T) {
	t.Parallel()
	h := newEcho()
	s := newSite(t, h, nil)
	resp := s.ask(http.MethodPost, modern("wait", ""), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "wait")
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the answer has the type %q", got)
	}
	close(h.finish)
	s.expect(200, `data: {"jsonrpc":"2.0","id":1,"result":{"waited":true}}`, resp)
}

func TestALegacyClientIsAskedOnTheStreamOfItsCall(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	id := s.open("2025-11-25")
	resp := s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ask"}`, "Mcp-Session-Id", id)
	in := bufio.NewReader(resp.Body)
	event(t, in) // the place to come back to
	if _, data := event(t, in); !strings.Contains(data, `"method":"elicitation/create"`) {
		t.Fatalf("asked %s", data)
	}
	s.expect(202, "", s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, "Mcp-Session-Id", id))
	if _, data := event(t, in); !strings.Contains(data, `"result":{"action":"accept"}`) {
		t.Errorf("answered %s", data)
	}
}

func TestChangedListsAreAnnouncedToThoseWhoListen(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	id := s.open("2025-11-25")
	ready := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	s.expect(202, "", s.ask(http.MethodPost, ready, "Mcp-Session-Id", id))
	general := bufio.NewReader(s.ask(http.MethodGet, "", "Mcp-Session-Id", id).Body)
	listen := modern("subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true},`)
	resp := s.ask(http.MethodPost, listen, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	own := bufio.NewReader(resp.Body)
	_, agreed := event(t, own)
	want := `"params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`
	if !strings.Contains(agreed, want) {
		t.Errorf("agreed on %s", agreed)
	}

	s.srv.Announce(t.Context(), server.PromptsChanged)
	s.srv.Announce(t.Context(), server.ToolsChanged)
	if _, data := event(t, general); !strings.Contains(data, server.PromptsChanged) {
		t.Errorf("heard %s", data)
	}
	_, data := event(t, own)
	if !strings.Contains(data, server.ToolsChanged) || !strings.Contains(data, "subscriptionId") {
		t.Errorf("heard %s", data)
	}
}

func TestABatchOfTheOneVersionIsAnsweredEachByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t, newEcho(), nil)
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0"}]`
	id := s.open("2025-03-26")
	resp := s.ask(http.MethodPost, batch, "Mcp-Session-Id", id)
	text, err := io.ReadAll(resp.Body)
	if err != nil || strings.Count(string(text), "data: ") != 3 || !bytes.Contains(text, []byte(`"id":2,"result":{}`)) {
		t.Errorf("got %s, %v", text, err)
	}
	s.expect(202, "", s.ask(http.MethodPost, `[{"jsonrpc":"2.0","method":"notifications/x"}]`, "Mcp-Session-Id", id))
	newer := s.open("2025-11-25")
	s.expect(400, "found a batch", s.ask(http.MethodPost, batch, "Mcp-Session-Id", newer))
}

func TestSessionsAreBoundedAndForgottenWhenNobodyUsesThem(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newSite(t, newEcho(), func(cfg *server.HTTPConfig) {
		cfg.MaxSessions = 1
		cfg.Now = func() time.Time { return now }
	})
	id := s.open("2025-11-25")
	s.expect(429, "too many", s.ask(http.MethodPost, opening))
	now = now.Add(2 * time.Hour)
	s.expect(404, "ended", s.ask(http.MethodPost, ping, "Mcp-Session-Id", id))
	s.open("2025-11-25")
}
