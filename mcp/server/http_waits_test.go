package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/internal/must"
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

func (s slow) Listen(
	context.Context, *server.Request, server.Topics, server.Tell,
) (server.Topics, *wire.Error) {
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

// TestALongWaitIsHeardOf: a stream begins after half a second, and is never
// silent for longer than 15 seconds.
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
