package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// slow answers after a while.
type slow struct{ after time.Duration }

func (s slow) Describe(context.Context, string) server.Description { return server.Description{} }

func (s slow) Handle(context.Context, *server.Request, *server.Exchange) (json.RawMessage, *wire.Error) {
	<-time.After(s.after)
	return json.RawMessage(`{"done":true}`), nil
}

func (s slow) Listen(context.Context, *server.Request, server.Topics, server.Tell) (server.Topics, *wire.Error) {
	return server.Topics{}, nil
}

func (s slow) Notified(context.Context, *server.Request) {}

// pipes listens without a network, so that a test has its own time.
type pipes struct{ next chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p.next
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.next <- theirs
	return ours, nil
}

// TestALongWaitIsHeardOf: a stream begins after half a second, and is never silent for longer than
// 15 seconds.
func TestALongWaitIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := server.New(server.Config{Handler: slow{2 * time.Minute}}).HTTP(server.HTTPConfig{
			Authenticate: func(*http.Request) (string, *server.Refusal) { return "desk", nil },
		})
		at := pipes{make(chan net.Conn)}
		answers := &http.Server{Handler: endpoint}
		go func() { _ = answers.Serve(at) }()
		defer answers.Close()
		defer close(at.next)
		transport := &http.Transport{DialContext: at.dial}
		defer transport.CloseIdleConnections()

		const text = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", wire.V20260728)
		r.Header.Set("Mcp-Method", "tools/list")
		began := time.Now()
		resp := must.Get(transport.RoundTrip(r))(t)
		defer resp.Body.Close()
		heard := []string{time.Since(began).String()}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if lines.Text() != "" {
				heard = append(heard, time.Since(began).String())
			}
		}

		const want = "[500ms 15.5s 30.5s 45.5s 1m0.5s 1m15.5s 1m30.5s 1m45.5s 2m0s]"
		if fmt.Sprint(heard) != want {
			t.Errorf("heard something at %v, expected %s", heard, want)
		}
	})
}

// holding is the context key of the values that a request holds.
type holding struct{}

// A client may open the stream for notifications again and again while its session lives.
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

func TestWhoListensIsTold(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{Grace: time.Hour})
	d.send(modern("subscriptions/listen", `"notifications":{"resourceSubscriptions":["file:///a","file:///secret"]},`))
	want := `"notifications":{"resourceSubscriptions":["file:///a"]}`
	if got := d.receive(); !strings.Contains(got, want) {
		t.Errorf("heard %s, expected %s first", got, want)
	}
	want = `"uri":"file:///a","_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	if got := d.receive(); !strings.Contains(got, want) {
		t.Errorf("heard %s, expected %s", got, want)
	}
	_ = d.in.Close() // the grace is for requests that work
	if got := d.receive(); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("heard %s at the end", got)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
	if got := <-h.began; got != "unheard file:///a" {
		t.Errorf("%s", got)
	}
}

func TestALegacyClientSubscribesOnceAndUntilItHasGone(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{})
	d.expect(opening, `"result"`)
	subscribe := func(method, uri string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"resources/` + method + `","params":{"uri":"` + uri + `"}}`
	}
	d.expect(subscribe("subscribe", "file:///a"), "notifications/initialized")
	d.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	d.expect(subscribe("subscribe", "file:///secret"), "-32602")
	d.expect(subscribe("subscribe", ""), "-32602")
	d.send(subscribe("subscribe", "file:///a"))
	both := d.receive() + d.receive()
	if !strings.Contains(both, `"result":{}`) || !strings.Contains(both, "resources/updated") {
		t.Errorf("heard %s", both)
	}
	d.expect(subscribe("subscribe", "file:///a"), `"result":{}`) // and is told nothing twice
	d.expect(subscribe("unsubscribe", "file:///a"), `"result":{}`)
	if got := <-h.began; got != "unheard file:///a" {
		t.Errorf("%s", got)
	}
	d.send(subscribe("subscribe", "file:///b"))
	d.receive()
	d.receive()
	_ = d.in.Close()
	if got := <-h.began; got != "unheard file:///b" {
		t.Errorf("%s", got)
	}
}
