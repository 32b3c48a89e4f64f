package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestALongWaitIsHeardOf: a stream begins within a second, and is never
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
		last := time.Now()
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if took := time.Since(last); took > time.Second {
			t.Errorf("the stream began after %v", took)
		}
		heard := 0
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); heard++ {
			if silent := time.Since(last); silent > 16*time.Second {
				t.Errorf("silent for %v", silent)
			}
			last = time.Now()
		}

		if heard < 8 {
			t.Errorf("heard %d lines", heard)
		}
	})
}
