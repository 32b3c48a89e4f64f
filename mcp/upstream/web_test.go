package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// site is an HTTP server with answers to calls that a test provides.
type site struct {
	*mcptest.Site
	called func(w http.ResponseWriter, id string, n int) // answers the n-th call, from 1
	resume func(w http.ResponseWriter)                   // goes on with a stream; nil: no stream can be resumed
}

// discoverable is a legacy server that answers server/discover.
const discoverable = "legacy, discoverable"

func newSite(t *testing.T, era string, called func(w http.ResponseWriter, id string, n int)) *site {
	t.Helper()
	s := &site{called: called}
	speaks, _, _ := strings.Cut(era, ",")
	s.Site = mcptest.NewSite(t, mcptest.Script{Era: speaks}, func(w http.ResponseWriter, v *mcptest.Visit) bool {
		switch {
		case s.resume != nil && v.Header.Get("Last-Event-Id") != "":
			s.resume(w)
		case v.Message.Method == wire.MethodCall:
			s.called(w, v.Message.ID.Text(), v.Times)
		case v.Message.Method == "server/discover" && era == discoverable:
			say(w, 200, v.Message.ID.Text(), `"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}`)
		default:
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", v.Times))
			return false
		}
		return true
	})
	return s
}

// calls returns the number of calls that arrived.
func (s *site) calls() int { return len(s.Visits(wire.MethodCall)) }

// answered reports whether a response with a text has arrived.
func (s *site) answered(text string) bool {
	return slices.ContainsFunc(s.Visits(""), func(v *mcptest.Visit) bool { return strings.Contains(v.Text, text) })
}

func say(w http.ResponseWriter, status int, id, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,`+what+`}`)
}

func visit(t *testing.T, s *site, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	return reach(t, s.URL+"/mcp", change)
}

func done(w http.ResponseWriter, id string, _ int) { say(w, 200, id, `"result":{"content":[]}`) }

func TestEachEraIsFoundOutByHTTP(t *testing.T) {
	t.Parallel()
	for era, version := range map[string]string{
		"legacy":     wire.V20251125,
		discoverable: wire.V20251125,
		"modern":     wire.V20260728,
	} {
		s := newSite(t, era, done)
		server := visit(t, s, nil)
		if _, err := call(t.Context(), server, "größe", nil); err != nil || server.Peer().Version != version {
			t.Fatalf("%s: version %q, %v", era, server.Peer().Version, err)
		}
		calls := s.Visits(wire.MethodCall)
		if len(calls) != 1 || !strings.Contains(calls[0].Text, `"arguments":{ "a" : 1.0 }`) {
			t.Errorf("%s: the server got %d calls", era, len(calls))
		}
	}
}

func TestModernHeadersRepeatTheBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, "modern", done)
	must.Get(call(t.Context(), visit(t, s, nil), "größe", nil))(t)
	h := s.Visits(wire.MethodCall)[0].Header
	if h.Get("Mcp-Method") != wire.MethodCall || h.Get("Mcp-Name") != "=?base64?Z3LDtsOfZQ==?=" ||
		h.Get("Mcp-Protocol-Version") != wire.V20260728 {
		t.Errorf("headers %v", h)
	}
}

func TestABrokenAnswerIsFetchedAndTheCallNeverMadeAgain(t *testing.T) {
	t.Parallel()
	id := "0"
	s := newSite(t, "legacy", func(w http.ResponseWriter, of string, _ int) {
		id = of
		mcptest.Events(w, "id: e1\ndata:\n\n")
	})
	s.resume = func(w http.ResponseWriter) {
		mcptest.Events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[1]}}`+"\n\n")
	}
	out, err := call(t.Context(), visit(t, s, nil), "a", nil)
	if err != nil || string(out.Result) != `{"content":[1]}` || s.calls() != 1 {
		t.Errorf("got %s, %v after %d calls", out.Result, err, s.calls())
	}
}

func TestASessionThatHasEndedIsOpenedAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t, "legacy", func(w http.ResponseWriter, id string, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		done(w, id, n)
	})
	_, err := call(t.Context(), visit(t, s, nil), "a", nil)
	if sessions := len(s.Visits("initialize")); err != nil || sessions != 2 || s.calls() != 2 {
		t.Errorf("%d sessions, %d calls, %v", sessions, s.calls(), err)
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
	cut := func(w http.ResponseWriter, _ string, _ int) { mcptest.Events(w, ": x\n\n") }
	for name, c := range map[string]struct {
		called func(http.ResponseWriter, string, int)
		want   error
	}{
		"500":        {status(500), upstream.ErrUnknown},
		"202":        {status(202), upstream.ErrUnknown},
		"a redirect": {status(307), upstream.ErrUnknown},
		"401":        {status(401), upstream.ErrSignIn},
		"403":        {status(403), upstream.ErrNotSent},
		"403 for a scope": {func(w http.ResponseWriter, _ string, _ int) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="a b"`)
			w.WriteHeader(http.StatusForbidden)
		}, upstream.ErrSignIn},
		"415":                {status(415), upstream.ErrNotSent},
		"header mismatch":    {text(`"error":{"code":-32020,"message":"header"}`), upstream.ErrNotSent},
		"two equal names":    {text(`"result":{"isError":true,"isError":false}`), upstream.ErrUnknown},
		"a stream cut short": {cut, upstream.ErrUnknown},
	} {
		s := newSite(t, "modern", c.called)
		if _, err := call(t.Context(), visit(t, s, nil), "a", nil); !errors.Is(err, c.want) || s.calls() != 1 {
			t.Errorf("%s: %d calls, %v", name, s.calls(), err)
		}
	}
}

// TestAnotherTokenIsTriedAtOnce: a server that refused the token is not left alone for the pause
// after failures when there is another token.
func TestAnotherTokenIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	var token atomic.Value
	token.Store("first")
	s := mcptest.NewSite(t, mcptest.Script{Era: "modern"}, func(w http.ResponseWriter, v *mcptest.Visit) bool {
		refused := v.Header.Get("Authorization") != "Bearer second"
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return refused
	})
	version := func() string { return token.Load().(string) }
	server := must.Get(upstream.New(upstream.Config{
		Alias:        "a",
		URL:          s.URL,
		Token:        func(context.Context, string) (string, error) { return version(), nil },
		TokenVersion: version,
	}))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_ = server.Run(ctx)
		close(ended)
	}()
	defer func() {
		stop()
		<-ended
	}()
	// The ninth pause is half a minute.
	testwait.Until(t, "the pauses are long", func() bool { return len(s.Visits("server/discover")) > 5 })
	refused := len(s.Visits("server/discover"))
	token.Store("second")
	testwait.Until(t, "it is connected", func() bool { return server.Peer().Version != "" })
	if n := len(s.Visits("server/discover")) - refused; n > 2 {
		t.Errorf("it was tried %d times", n)
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
		var s *site
		s = newSite(t, "modern", func(w http.ResponseWriter, id string, n int) {
			if s.Visits(wire.MethodCall)[n-1].Header.Get("Authorization") != "Bearer "+test.good {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			done(w, id, n)
		})
		server := visit(t, s, func(cfg *upstream.Config) {
			cfg.Token = func(_ context.Context, refused string) (string, error) {
				if refused != "" {
					return test.next, nil
				}
				return "first", nil
			}
		})
		_, err := call(t.Context(), server, "a", nil)
		if s.calls() != test.calls || test.works != (err == nil) || err != nil && !errors.Is(err, upstream.ErrNotSent) {
			t.Errorf("%+v: %d calls, %v", test, s.calls(), err)
		}
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, "modern", done)
	var gone atomic.Bool
	server := visit(t, s, func(cfg *upstream.Config) {
		cfg.Token = func(context.Context, string) (string, error) {
			if gone.Load() {
				return "", errors.New("the file is gone")
			}
			return "t", nil
		}
	})
	must.Get(call(t.Context(), server, "a", nil))(t)
	gone.Store(true)
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrNotSent) || s.calls() != 1 {
		t.Errorf("%d calls, %v", s.calls(), err)
	}
}

func TestAServerThatIsNotThereGetsNothing(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	server := reach(t, gone.URL, nil)
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrNotSent) {
		t.Errorf("got %v", err)
	}
}

func TestRoundsOfQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, "modern", func(w http.ResponseWriter, id string, n int) {
		if n == 1 {
			say(w, 200, id, `"result":{"resultType":"input_required","requestState":"s1",`+
				`"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"why"}}}}`)
			return
		}
		done(w, id, n)
	})
	out, err := visit(t, s, nil).Do(t.Context(), asking())
	if err != nil || string(out.Result) != `{"content":[]}` {
		t.Fatalf("got %s, %v", out.Result, err)
	}
	calls := s.Visits(wire.MethodCall)
	const answer = `"inputResponses":{"q":{"action":"accept"}},"requestState":"s1"`
	if len(calls) != 2 || !strings.Contains(calls[1].Text, answer) {
		t.Errorf("%d calls came, the last with %s", len(calls), calls[len(calls)-1].Text)
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
	s := newSite(t, "legacy", func(w http.ResponseWriter, id string, _ int) {
		mcptest.Events(w, `data: {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"why"}}`+"\n\n")
		<-answered
		mcptest.Events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`+"\n\n")
	})
	server, ended := visit(t, s, nil), make(chan error, 1)
	go func() {
		_, err := server.Do(t.Context(), asking())
		ended <- err
	}()
	testwait.Until(t, "the server has the answer", func() bool {
		return s.answered(`"id":"q1","result":{"action":"accept"}`)
	})
	close(answered)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
