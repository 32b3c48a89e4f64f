package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

func TestAServerThatReadsNothingHoldsUpNobody(t *testing.T) {
	s := connect(t, "legacy", func(c *upstream.Config) { c.Era = upstream.Legacy })
	large := json.RawMessage(`{"name":"write","arguments":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)
	for _, one := range []struct {
		params json.RawMessage
		what   error
	}{
		{json.RawMessage(`{"name":"stuck","arguments":{}}`), upstream.ErrUnknown},
		{large, upstream.ErrUnknown}, // a part of it was written
		{large, upstream.ErrNotSent},
	} {
		ctx, done := context.WithTimeout(t.Context(), 300*time.Millisecond)
		ended := make(chan error, 1)
		go func() {
			_, err := s.Do(ctx, upstream.Request{Method: wire.MethodCall, Params: one.params})
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, one.what) {
				t.Errorf("it says %v, expected %v", err, one.what)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the call doesn't end")
		}

		done()
	}
}

func TestAServerThatAsksWithoutEndTakesNoMemory(t *testing.T) {
	s := connect(t, "legacy", func(c *upstream.Config) { c.Era = upstream.Legacy })
	ctx, done := context.WithTimeout(t.Context(), time.Second)
	defer done()
	before := runtime.NumGoroutine()
	_, err := call(ctx, s, "asks", nil)
	if more := runtime.NumGoroutine() - before; !errors.Is(err, upstream.ErrUnknown) || more > 200 {
		t.Errorf("it says %v, and %d goroutines more are there", err, more)
	}
}

func TestAServerThatAsksWithoutEndByHTTPTakesNoMemory(t *testing.T) {
	legacy := &site{era: "legacy", called: func(w http.ResponseWriter, id string, _ int) {
		for n := range 5000 {
			events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", n+1))
		}
		events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`+"\n\n")
	}}
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
