package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

func TestAServerThatReadsNothingHoldsUpNobody(t *testing.T) {
	s := connect(t, "legacy", func(c *upstream.Config) { c.Era = upstream.Legacy })
	abandoned(t, s, "stuck")

	large := upstream.Request{
		Method: wire.MethodCall,
		Params: json.RawMessage(`{"name":"write","arguments":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, large)
		ended <- err
	}()
	testwait.Until(t, "a part of the call is written", s.Writing)
	stop()
	if err := <-ended; !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("a call of which a part was written says %v", err)
	}
	if _, err := s.Do(ctx, large); !errors.Is(err, upstream.ErrNotSent) {
		t.Errorf("a call of which nothing was written says %v", err)
	}
}

// abandoned makes a call that the server begins and never answers, and then stops waiting for it.
func abandoned(t *testing.T, s *upstream.Server, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := call(ctx, s, name, func(wire.Progress) { stop() }); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("a call that was abandoned says %v", err)
	}
}

// countedLines counts the lines of a log.
type countedLines struct{ atomic.Int64 }

func (c *countedLines) Write(line []byte) (int, error) {
	c.Add(1)
	return len(line), nil
}

func TestAServerThatAsksWithoutEndTakesNoMemory(t *testing.T) {
	var dropped countedLines // questions that get no answer
	s := connect(t, "legacy", func(c *upstream.Config) {
		c.Era = upstream.Legacy
		c.Log = slog.New(slog.NewTextHandler(&dropped, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := runtime.NumGoroutine()
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, s, "asks", nil)
		ended <- err
	}()
	testwait.Until(t, "10,000 questions are dropped", func() bool { return dropped.Load() >= 10_000 })
	if more := runtime.NumGoroutine() - before; more > 200 {
		t.Errorf("%d goroutines more are there", more)
	}
	stop()
	if err := <-ended; !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("it says %v", err)
	}
}

func TestAServerThatAsksWithoutEndByHTTPTakesNoMemory(t *testing.T) {
	legacy := newSite(t, "legacy", func(w http.ResponseWriter, id string, _ int) {
		for n := range 5000 {
			mcptest.Events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", n+1))
		}
		mcptest.Events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`+"\n\n")
	})
	stop := make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"result"`) {
			<-stop // it takes no answer
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		legacy.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(stop) })
	s := reach(t, h.URL+"/mcp", nil)
	before := runtime.NumGoroutine()
	_, err := call(t.Context(), s, "write", nil)
	if more := runtime.NumGoroutine() - before; err != nil || more > 1000 {
		t.Errorf("it says %v, and %d goroutines more are there", err, more)
	}
}
