package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// old is a server of HTTP+SSE. on sees each visit first.
func old(
	t *testing.T, on func(http.ResponseWriter, *mcptest.Visit) bool, change func(*upstream.Config),
) (*mcptest.Site, *upstream.Server) {
	t.Helper()
	s := mcptest.NewSite(t, mcptest.Script{Era: "old"}, on)
	return s, reach(t, s.URL+"/sse", change)
}

func TestAnOldServerIsFoundAfterTheOthers(t *testing.T) {
	t.Parallel()
	for era, tries := range map[string][]int{
		upstream.Auto:   {1, 2, 1},
		upstream.Legacy: {0, 2, 1},
	} {
		s, server := old(t, nil, func(cfg *upstream.Config) {
			cfg.Era = era
			cfg.Token = func(context.Context, string) (string, error) { return "secret", nil }
		})
		if _, err := call(t.Context(), server, "a", nil); err != nil || server.Peer().Version != wire.V20251125 {
			t.Fatalf("%s: version %q, %v", era, server.Peer().Version, err)
		}
		for i, method := range []string{"server/discover", "initialize", wire.MethodCall} {
			visits := s.Visits(method)
			if len(visits) != tries[i] {
				t.Errorf("%s: %s came %d times", era, method, len(visits))
			}
			for _, v := range visits {
				if v.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s came without the token", method)
				}
			}
		}

		visit := s.Visits(wire.MethodCall)[0]
		if visit.URL.String() != "/messages?session=1" || !strings.Contains(visit.Text, `"arguments":{ "a" : 1.0 }`) {
			t.Errorf("%s: %s got %s", era, visit.URL, visit.Text)
		}
	}
}

func TestAModernServerIsNeverInitialized(t *testing.T) {
	t.Parallel()
	s := newSite(t, "legacy", done)
	server := visit(t, s, func(cfg *upstream.Config) { cfg.Era = upstream.Modern })
	_, err := call(t.Context(), server, "a", nil)
	if n := len(s.Visits("initialize")); !errors.Is(err, upstream.ErrNotSent) || n > 0 {
		t.Errorf("got %v after %d times initialize", err, n)
	}
}

func TestWhatIsKnownAfterAFailureOfAnOldServer(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusUnauthorized:        upstream.ErrNotSent,
		http.StatusForbidden:           upstream.ErrNotSent,
		http.StatusBadRequest:          upstream.ErrUnknown,
		http.StatusInternalServerError: upstream.ErrUnknown,
		http.StatusTemporaryRedirect:   upstream.ErrUnknown,
	} {
		s, server := old(t, func(w http.ResponseWriter, v *mcptest.Visit) bool {
			if v.Message.Method == wire.MethodCall {
				w.WriteHeader(status)
			}
			return v.Message.Method == wire.MethodCall
		}, nil)
		_, err := call(t.Context(), server, "a", nil)
		if !errors.Is(err, want) || len(s.Visits(wire.MethodCall)) != 1 {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestAnOldServerThatIsGoneIsOpenedAnew(t *testing.T) {
	t.Parallel()
	s, server := old(t, nil, nil)
	must.Get(call(t.Context(), server, "a", nil))(t)
	s.CloseClientConnections()
	list := testwait.Value(t, "the lists are taken for changed", func() (string, bool) {
		select {
		case list := <-server.Changed():
			return list, true
		default:
			return "", false
		}
	})
	if !strings.HasSuffix(list, "/list") {
		t.Errorf("%q has changed", list)
	}
	if _, err := call(t.Context(), server, "a", nil); err != nil {
		t.Error(err)
	}
}

// TestAMessageTakesNoLongerThanItsCall: a server that accepts a message and never responds holds
// the connection only as long as the caller waits.
func TestAMessageTakesNoLongerThanItsCall(t *testing.T) {
	t.Parallel()
	came, left := make(chan struct{}), make(chan struct{})
	_, server := old(t, func(_ http.ResponseWriter, v *mcptest.Visit) bool {
		if v.Message.Method != wire.MethodCall {
			return false
		}
		close(came)
		<-v.Context().Done()
		close(left)
		return true
	}, nil)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-came
		stop()
	}()
	if _, err := call(ctx, server, "a", nil); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	<-left // the server sees that nobody waits any more
}

func TestACallDiesWithTheStream(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	s, server := old(t, func(w http.ResponseWriter, v *mcptest.Visit) bool {
		if v.Message.Method == wire.MethodCall {
			w.WriteHeader(http.StatusAccepted)
			close(came)
		}
		return v.Message.Method == wire.MethodCall
	}, nil)
	go func() {
		<-came
		s.CloseClientConnections()
	}()
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestASilentStreamIsAskedAndThenEnds(t *testing.T) {
	t.Parallel()
	silent := func(w http.ResponseWriter, v *mcptest.Visit) bool {
		switch v.Message.Method {
		case "ping", wire.MethodCall:
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		return false
	}
	s, server := old(t, silent, func(cfg *upstream.Config) { cfg.Idle = time.Second })
	if _, err := call(t.Context(), server, "a", nil); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if len(s.Visits("ping")) == 0 {
		t.Error("the server was not asked whether it is there")
	}
}

func TestASilentStreamThatAnswersStays(t *testing.T) {
	t.Parallel()
	s, server := old(t, nil, func(cfg *upstream.Config) { cfg.Idle = 2 * time.Second })
	must.Get(call(t.Context(), server, "a", nil))(t)
	testwait.Until(t, "pings", func() bool { return len(s.Visits("ping")) > 1 })
	if n := len(s.Visits("initialize")); n != 2 { // at the server's address, and at that of messages
		t.Errorf("it was opened anew: initialize came %d times", n)
	}
}
