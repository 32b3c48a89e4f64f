package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// kind is the environment variable that makes this test binary a server of a kind.
const kind = "ASSENT_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(kind) != "" {
		serve(os.Getenv(kind))
		return
	}
	os.Exit(m.Run())
}

// serve is a small server on standard input and output.
func serve(kind string) {
	lines := wire.NewLines(os.Stdin, 1<<20)
	out := wire.NewPipe(os.Stdout)
	for first := true; ; first = false {
		line, err := lines.Next()
		if err != nil {
			return
		}
		m, bad := wire.Parse(line, wire.Limits())
		if bad != nil {
			fmt.Fprintln(os.Stderr, bad)
			continue
		}
		if kind == "first initialize" && first && m.Method != "initialize" {
			os.Exit(3)
		}
		if kind == "slow start" && first {
			held, _ := lines.Next() // this one is read, and answered, when the next one is there
			answer("modern", &m, out)
			m, _ = wire.Parse(held, wire.Limits())
		}
		if m.Kind() == wire.Request {
			answer(kind, &m, out)
		}
	}
}

func answer(kind string, m *wire.Message, out *wire.Pipe) {
	say := func(result string) { _ = out.Write(wire.Answer(m.ID, json.RawMessage(result), nil)) }
	switch m.Method {
	case "server/discover":
		switch kind {
		case "modern", "slow start":
			say(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "deaf":
		default:
			_ = out.Write(wire.Answer(m.ID, nil, wire.Fail(wire.CodeMethodNotFound, "what?")))
		}
	case "initialize":
		if kind == "slow start" {
			_ = out.Write(wire.Answer(m.ID, nil, wire.Fail(wire.CodeMethodNotFound, "what?")))
			return
		}
		say(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"small"}}`)
	case "tools/list":
		listed(m, say)
	case "prompts/list":
		say(`{"prompts":[{"name":"p"}],"nextCursor":""}`)
	case "tools/call":
		called(m, out, say)
	}
}

// listed returns two pages. The second one names itself as the next page.
func listed(m *wire.Message, say func(string)) {
	if jsonmsg.Get(m.Params, "cursor") == nil {
		say(`{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}`)
		return
	}
	say(`{"tools":[{"name":"c"}],"nextCursor":"2"}`)
}

func called(m *wire.Message, out *wire.Pipe, say func(string)) {
	call, _ := wire.ReadCall(m.Params)
	switch call.Name {
	case "crash":
		os.Exit(4)
	case "hang":
		report(call, out, 1)
	case "asks":
		for n := 1; ; n++ { // it reads no answer
			_ = out.Write(&wire.Message{ID: wire.Number(int64(n)), Method: "ping"})
		}
	case "huge": // it writes no end of the line
		_, _ = io.WriteString(os.Stdout, strings.Repeat("x", 17<<20))
		<-time.After(24 * time.Hour)
	case "stuck":
		report(call, out, 1)
		<-time.After(24 * time.Hour) // it reads nothing any more
	case "twice":
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":` + m.ID.Text() + `,"result":{"isError":true,"isError":false}}` + "\n")
	case "progress":
		for n := range 3 {
			report(call, out, n+1)
		}
		say(`{"content":[]}`)
	case "env":
		text, _ := json.Marshal(os.Environ())
		say(`{"env":` + string(text) + `}`)
	default:
		say(`{"params":` + string(m.Params) + `}`)
	}
}

// report sends one progress report for a call.
func report(call *wire.Call, out *wire.Pipe, n int) {
	p, _ := wire.Progress{Token: call.Meta.Progress, Progress: float64(n)}.Params()
	_ = out.Write(&wire.Message{Method: "notifications/progress", Params: p})
}

// connect starts a server of a kind.
func connect(t *testing.T, of string, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cfg := upstream.Config{
		Alias:   "small",
		Command: []string{self, "$(touch x); 'y z'"},
		Env:     []string{kind + "=" + of, "GOCOVERDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"},
		Grace:   200 * time.Millisecond,
		Settle:  20 * time.Millisecond,
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if of == "deaf" || of == "slow start" { // these don't answer the first probe
		cfg.Probe = time.Second
	}
	if change != nil {
		change(&cfg)
	}
	return run(t, cfg)
}

// run keeps the connection to a server until the test ends.
func run(t *testing.T, cfg upstream.Config) *upstream.Server {
	t.Helper()
	s := must.Get(upstream.New(cfg))(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return s
}

func call(ctx context.Context, s *upstream.Server, name string, progress func(wire.Progress)) (upstream.Answer, error) {
	return s.Do(ctx, upstream.Request{
		Method:   wire.MethodCall,
		Params:   json.RawMessage(`{"name":"` + name + `","arguments":{ "a" : 1.0 }}`),
		Progress: progress,
	})
}

func TestEachEraIsFoundOut(t *testing.T) {
	t.Parallel()
	for of, version := range map[string]string{
		"legacy":           wire.V20251125,
		"modern":           wire.V20260728,
		"deaf":             wire.V20251125,
		"first initialize": wire.V20251125,
		"slow start":       wire.V20260728,
	} {
		s := connect(t, of, nil)
		out, err := call(t.Context(), s, "echo", nil)
		if err != nil || s.Peer().Version != version {
			t.Errorf("%s: version %q, %v", of, s.Peer().Version, err)
			continue
		}
		if !strings.Contains(string(out.Result), `"arguments":{ "a" : 1.0 }`) {
			t.Errorf("%s: the server saw %s", of, out.Result)
		}
		if modern := strings.Contains(string(out.Result), wire.KeyVersion); modern != (version == wire.V20260728) {
			t.Errorf("%s: the server saw %s", of, out.Result)
		}
	}
}

func TestAllPagesOfAListAreRead(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	tools, err := s.List(t.Context(), "tools/list")
	if err != nil || len(tools) != 3 || string(tools[2]) != `{"name":"c"}` {
		t.Errorf("got %s, %v", tools, err)
	}
	if prompts, err := s.List(t.Context(), "prompts/list"); err != nil || len(prompts) != 1 {
		t.Errorf("got %s, %v", prompts, err)
	}
}

func TestProgressReachesWhoeverAsked(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	var got []float64
	_, err := call(t.Context(), s, "progress", func(p wire.Progress) { got = append(got, p.Progress) })
	if err != nil || fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAServerThatDiesMayHaveDoneIt(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	if _, err := call(t.Context(), s, "crash", nil); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	testwait.Until(t, "it is started anew", func() bool {
		_, err := call(t.Context(), s, "echo", nil)
		return err == nil
	})
}

func TestAnAnswerThatReadsInTwoWaysIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	if _, err := call(t.Context(), s, "twice", nil); !errors.Is(err, upstream.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if _, err := call(t.Context(), s, "echo", nil); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestAnAnswerAboveTheLimitEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	_, err := call(t.Context(), s, "huge", nil)
	if !errors.Is(err, upstream.ErrUnknown) || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
	testwait.Until(t, "the server is started again", func() bool {
		_, err := call(t.Context(), s, "echo", nil)
		return err == nil
	})
}

func TestACallThatNobodyWaitsForMayHaveRun(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", nil)
	abandoned(t, s, "hang")
}

func TestAServerThatCannotStartGetsNothing(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", func(cfg *upstream.Config) { cfg.Command = []string{"/nothing/here"} })
	if _, err := call(t.Context(), s, "echo", nil); !errors.Is(err, upstream.ErrNotSent) {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatNeverAnswersIsSaidToBeSilent(t *testing.T) {
	t.Parallel()
	s := connect(t, "legacy", func(cfg *upstream.Config) {
		cfg.Command = []string{"tail", "-f", "/dev/null"}
		cfg.Start = 200 * time.Millisecond
	})
	_, err := call(t.Context(), s, "echo", nil)
	if !errors.Is(err, upstream.ErrNotSent) || !strings.Contains(err.Error(), "did not answer within 200ms") {
		t.Errorf("got %v", err)
	}
}

func TestLastWordsOfAProgramAreInTheError(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 'npm error E404' >&2; echo >&2; echo no such package >&2; exit 3": "npm error E404 | no such package",
		"yes x | head -c 2000 >&2; exit 3":                                      "(exit status 3); its last words: x",
		"echo 'waits for a CA' >&2; exec tail -f /dev/null":                     "within 1s; its last words: waits",
	} {
		s := connect(t, "legacy", func(cfg *upstream.Config) {
			cfg.Command = []string{"sh", "-c", script}
			cfg.Env = []string{"PATH=" + os.Getenv("PATH")}
			if strings.Contains(script, "tail") {
				cfg.Start = time.Second
			}
		})
		_, err := call(t.Context(), s, "echo", nil)
		if !errors.Is(err, upstream.ErrNotSent) || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%s: got %v", script, err)
		}
	}
}

func TestTheEnvironmentHoldsWhatIsListedAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_GATEWAY", "1")
	s := connect(t, "legacy", nil)
	out := must.Get(call(t.Context(), s, "env", nil))(t)
	var got struct{ Env []string }
	if err := json.Unmarshal(out.Result, &got); err != nil || len(got.Env) != 3 {
		t.Errorf("the server's environment: %q, %v", got.Env, err)
	}
}

// The text of an error reaches logs, the ledger and the client's model.
func TestAFailureNamesNoSecretOfTheAddress(t *testing.T) {
	t.Parallel()
	h := newSite(t, "modern", func(http.ResponseWriter, string, int) {
		panic(http.ErrAbortHandler) // the connection breaks
	})
	u := reach(t, h.URL+"/mcp?key=geheim", nil)
	_, err := call(t.Context(), u, "write", nil)
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("it says %v", err)
	}
	h.Close()
	gone := reach(t, h.URL+"/mcp?key=geheim", func(c *upstream.Config) { c.Era = upstream.Modern })
	if _, err = call(t.Context(), gone, "write", nil); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("it says %v", err)
	}
}
