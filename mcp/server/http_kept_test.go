package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/server"
)

// holding is the key of what a request holds in its context.
type holding struct{}

// A client may come for news again and again while its session lives.
func TestASessionKeepsNothingOfRequestsThatHaveEnded(t *testing.T) {
	t.Parallel()
	endpoint := server.New(server.Config{Handler: newEcho()}).HTTP(server.HTTPConfig{
		Authenticate: func(*http.Request) (string, *server.Refusal) { return "desk", nil },
	})
	defer endpoint.Close()
	serve := func(ctx context.Context, method, body, session string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		endpoint.ServeHTTP(w, r)
		return w
	}
	opened := serve(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize",`+
		`"params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, "")
	freed := make(chan struct{})
	get := func() {
		one := new(string)
		runtime.AddCleanup(one, func(done chan struct{}) { close(done) }, freed)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), holding{}, one))
		cancel()
		serve(ctx, http.MethodGet, "", opened.Header().Get("Mcp-Session-Id"))
	}
	get()
	testwait.Until(t, "the request is forgotten", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
}
