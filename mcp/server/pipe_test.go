package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// echo is a handler whose methods are named after their behaviour.
type echo struct {
	mu     sync.Mutex
	ended  []error // causes for which waiting requests ended
	notes  []string
	began  chan string
	finish chan struct{}
}

func newEcho() *echo {
	return &echo{began: make(chan string, 10), finish: make(chan struct{})}
}

func (h *echo) Describe(context.Context, string) server.Description {
	return server.Description{
		Capabilities:       json.RawMessage(`{"tools":{}}`),
		ModernCapabilities: json.RawMessage(`{"tools":{"listChanged":true}}`),
	}
}

func (h *echo) Handle(ctx context.Context, r *server.Request, with *server.Exchange) (json.RawMessage, *wire.Error) {
	switch r.Method {
	case "wait":
		return h.wait(ctx)
	case "missing":
		return nil, wire.Fail(wire.CodeMethodNotFound, "no such method")
	case "panic":
		panic("as asked")
	case "progress":
		for _, n := range []float64{1, 5, 3} {
			_ = with.Progress(wire.Progress{Progress: n})
		}
	case "ask":
		result, failed := with.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"well?"}`))
		return result, failed
	}

	return fmt.Appendf(nil, `{"version":%q,"modern":%v,"form":%v}`, r.Version, r.Modern, r.Capabilities.Form), nil
}

func (h *echo) wait(ctx context.Context) (json.RawMessage, *wire.Error) {
	h.began <- "wait"
	select {
	case <-ctx.Done():
	case <-h.finish:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, context.Cause(ctx))
	return json.RawMessage(`{"waited":true}`), nil
}

// Listen immediately sends a notification for every topic except secrets.
func (h *echo) Listen(
	ctx context.Context, _ *server.Request, t server.Topics, tell server.Tell,
) (agreed server.Topics, bad *wire.Error) {
	for _, uri := range t.Resources {
		if uri == "file:///secret" {
			continue
		}
		agreed.Resources = append(agreed.Resources, uri)
		go func() {
			_ = tell("notifications/resources/updated", func(w *jsonmsg.Writer) { w.Member("uri", uri) })
			<-ctx.Done()
			h.began <- "unheard " + uri
		}()
	}

	return agreed, nil
}

func (h *echo) Notified(_ context.Context, r *server.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, r.Method)
}

// desk is a client at the other end of a pipe.
type desk struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	ended chan error
}

func connect(t *testing.T, h server.Handler, cfg server.Config) *desk {
	t.Helper()
	cfg.Handler = h
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	d := &desk{t: t, in: in, lines: bufio.NewScanner(out), ended: make(chan error, 1)}
	go func() {
		err := server.New(cfg).Pipe(t.Context(), "desk", theirs, ours)
		_ = ours.Close()
		d.ended <- err
	}()
	t.Cleanup(func() { _ = in.Close(); _, _ = io.Copy(io.Discard, out) })
	return d
}

func (d *desk) send(text string) {
	d.t.Helper()
	must.Get(io.WriteString(d.in, text+"\n"))(d.t)
}

func (d *desk) receive() string {
	d.t.Helper()
	if !d.lines.Scan() {
		d.t.Fatalf("the pipe ended: %v", d.lines.Err())
	}
	return d.lines.Text()
}

func (d *desk) expect(sent, want string) {
	d.t.Helper()
	d.send(sent)
	if got := d.receive(); !strings.Contains(got, want) {
		d.t.Errorf("%s\ngot      %s\nexpected %s", sent, got, want)
	}
}

const (
	opening = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"desk","version":"1"}}}`
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
)

func TestInitializeAgreesOnEachLegacyVersion(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05",
		"2025-03-26": "2025-03-26",
		"2025-06-18": "2025-06-18",
		"2025-11-25": "2025-11-25",
		"1999-01-01": "2025-11-25",
		"2026-07-28": "2025-11-25",
	} {
		d := connect(t, newEcho(), server.Config{})
		d.expect(strings.Replace(opening, "2025-11-25", asked, 1), `"protocolVersion":"`+want+`"`)
		d.expect(`{"jsonrpc":"2.0","id":"a","method":"x"}`, `{"version":"`+want+`","modern":false,"form":true}`)
	}
}

func TestDiscoverSaysWhatIsOfferedAndLeavesInitializeOpen(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{Name: "assent", Version: "7"})
	d.expect(`{"jsonrpc":"2.0","id":"d1","method":"server/discover","params":{`+modernMeta+`}}`,
		`{"jsonrpc":"2.0","id":"d1","result":{"resultType":"complete","supportedVersions":["2026-07-28"],`+
			`"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"assent","version":"7"}}}}`)
	d.expect(opening, `"protocolVersion":"2025-11-25"`)
}

func TestModernRequestsSayWhichVersionAndWhatTheClientCan(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	for params, want := range map[string]string{
		`{` + modernMeta + `}`: `"modern":true`,
		`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}`:            `-32602`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`:     `-32602`,
		strings.Replace(`{`+modernMeta+`}`, "2026-07-28", "2099-01-01", 1):       `"data":{"supported":["2026-07-28"],"requested":"2099-01-01"}`,
		strings.Replace(`{`+modernMeta+`}`, `ies":{}`, `ies":{"sampling":1}`, 1): `"modern":true`,
	} {
		d.expect(`{"jsonrpc":"2.0","id":1,"method":"x","params":`+params+`}`, want)
	}
}

func TestNothingButPingComesBeforeInitialize(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	d.expect(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `"result":{}`)
	d.expect(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `-32600`)
	d.expect(opening, `"result"`)
	d.expect(opening, `initialized before`)
	d.expect(`{"jsonrpc":"2.0","id":"ü","method":"tools/list"}`, `{"jsonrpc":"2.0","id":"ü","result"`)
}

func TestAnIDIsInUseUntilItsAnswer(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":"a","method":"wait"}`)
	<-h.began
	d.expect(`{"jsonrpc":"2.0","id":"\u0061","method":"x"}`, `a request with this id is open`)
	close(h.finish)
	if got := d.receive(); got != `{"jsonrpc":"2.0","id":"a","result":{"waited":true}}` {
		t.Errorf("got %s", got)
	}
	d.expect(`{"jsonrpc":"2.0","id":"a","method":"x"}`, `"result"`)
}

func TestACancelledRequestEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":7,"method":"wait"}`)
	<-h.began
	d.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	d.expect(`{"jsonrpc":"2.0","id":8,"method":"ping"}`, `{"jsonrpc":"2.0","id":8,"result":{}}`)
	_ = d.in.Close()
	<-d.ended
	if len(h.ended) != 1 || !errors.Is(h.ended[0], server.ErrCancelled) {
		t.Errorf("it ended with %v", h.ended)
	}
}

func TestTheEndOfThePipeLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":7,"method":"wait"}`)
	<-h.began
	_ = d.in.Close()
	close(h.finish)
	if got := d.receive(); got != `{"jsonrpc":"2.0","id":7,"result":{"waited":true}}` {
		t.Errorf("got %s", got)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
}

func TestRequestsThatOutliveTheGraceAreEnded(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{Grace: 1})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":7,"method":"wait"}`)
	<-h.began
	_ = d.in.Close()
	d.receive()
	<-d.ended
	if len(h.ended) != 1 || !errors.Is(h.ended[0], server.ErrClosed) {
		t.Errorf("it ended with %v", h.ended)
	}
}

func TestAPanicIsAnErrorOfItsRequestAlone(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	d.expect(opening, `"result"`)
	d.expect(`{"jsonrpc":"2.0","id":1,"method":"panic"}`, `-32603`)
	d.expect(`{"jsonrpc":"2.0","id":2,"method":"x"}`, `"result"`)
}

func TestProgressRisesWhoeverReports(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":1,"method":"progress","params":{"_meta":{"progressToken":"p"}}}`)
	for _, want := range []string{`{"progressToken":"p","progress":1}`, `"progress":5`, `"progress":6`, `"result"`} {
		if got := d.receive(); !strings.Contains(got, want) {
			t.Errorf("got %s, expected %s", got, want)
		}
	}

	d.expect(`{"jsonrpc":"2.0","id":2,"method":"progress"}`, `"id":2,"result"`)
}

func TestALegacyClientIsAskedOnItsOwnPipe(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	d.expect(opening, `"result"`)
	d.expect(`{"jsonrpc":"2.0","id":1,"method":"ask"}`,
		`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"well?"}}`)
	d.expect(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	d.expect(`{"jsonrpc":"2.0","id":2,"method":"ask","params":{`+modernMeta+`}}`, `a modern client takes no requests`)
}

func TestBatchesAreForTheOneVersionThatHasThem(t *testing.T) {
	t.Parallel()
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","method":"notifications/x"}]`
	d := connect(t, newEcho(), server.Config{})
	d.expect(opening, `"result"`)
	d.expect(batch, `"id":1,"error":{"code":-32600,"message":"expected one message, found a batch"`)
	d.expect(`{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}`, `"id":9007199254740993,"error"`)
	d.expect(`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, `"id":1.5,"error"`)

	d = connect(t, newEcho(), server.Config{})
	d.expect(strings.Replace(opening, "2025-11-25", "2025-03-26", 1), `"result"`)
	d.expect(batch, `{"jsonrpc":"2.0","id":1,"result"`)
	d.expect(`[]`, `-32600`)
}

func TestALongLineIsRefusedAndTheNextIsRead(t *testing.T) {
	t.Parallel()
	lim := wire.Limits()
	lim.MaxBytes = 1000
	d := connect(t, newEcho(), server.Config{Limits: lim})
	d.expect(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 2000)+`"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`)
	d.expect(`{"jsonrpc":"2.0","id":1`, `-32700`)
	d.expect(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `"result"`)
}

func TestRequestsOfOneClientAreBounded(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{MaxOpen: 1})
	d.expect(opening, `"result"`)
	d.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	<-h.began
	d.expect(`{"jsonrpc":"2.0","id":2,"method":"x"}`, `too many requests`)
	close(h.finish)
	d.receive()
}

func TestWhatFollowsTheOpeningAtOnceIsServed(t *testing.T) {
	t.Parallel()
	d := connect(t, newEcho(), server.Config{})
	d.send(opening + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	for range 3 {
		if got := d.receive(); strings.Contains(got, `"error"`) {
			t.Errorf("it got %s", got)
		}
	}
}
