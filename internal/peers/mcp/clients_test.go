//go:build peers

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
)

// agentFile has ten tools more than the clerk.
var agentFile = mcptest.ClerkOf(`    - alias: files
      server_ref: files
      description: Files.
      allowed_tools: [read_file, {name: write_file, approval: true}, t0, t1, t2, t3, t4, t5, t6, t7, t8, t9]
`)

// tools is the number of tools that the agent's file allows.
const tools = 12

// files is a server that counts what it runs. A call of a path that
// ends with "kept" takes until the test releases it.
type files struct {
	mu       sync.Mutex
	runs     map[string]int           // by the path in the arguments
	released map[string]chan struct{} // likewise
}

func newFiles() *files { return &files{runs: map[string]int{}, released: map[string]chan struct{}{}} }

// release is closed when a call of a path may end.
func (f *files) release(path string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released[path] == nil {
		f.released[path] = make(chan struct{})
	}
	return f.released[path]
}

func (f *files) Changed() <-chan string { return nil }

func (f *files) List(context.Context, string) ([]json.RawMessage, error) {
	out := []json.RawMessage{
		json.RawMessage(`{"name":"read_file","description":"Reads.","inputSchema":{"type":"object"},` +
			`"outputSchema":{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}}`),
		json.RawMessage(`{"name":"write_file","description":"Writes.","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"format_disk","description":"Formats.","inputSchema":{"type":"object"}}`),
	}
	for i := range 10 {
		out = append(out, fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	return out, nil
}

func (f *files) Do(ctx context.Context, r upstream.Request) (upstream.Answer, error) {
	path, _ := jsonmsg.ReadString(jsonmsg.Get(jsonmsg.Get(r.Params, "arguments"), "path"))
	n := f.count(path)
	if strings.HasSuffix(path, "/kept") {
		select {
		case <-f.release(path):
		case <-ctx.Done():
		}
	}
	text := fmt.Sprintf(`{"content":[{"type":"text","text":"run %d"}],"structuredContent":{"size":7}}`, n)
	return upstream.Answer{Result: json.RawMessage(text)}, nil
}

func (f *files) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[path]++
	return f.runs[path]
}

func (f *files) ran(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[path]
}

// told is the part of a call's answer that a client got.
type told struct {
	IsError    bool           `json:"isError"`
	Text       string         `json:"text"`
	Structured map[string]any `json:"structured"`
	Failed     string         `json:"failed"` // the error that the application got instead of a result
}

// seen is the report of a client.
type seen struct {
	Version  string   `json:"version"`
	Tools    int      `json:"tools"`
	Allowed  told     `json:"allowed"`
	Denied   told     `json:"denied"`
	Pending  told     `json:"pending"`
	Approved told     `json:"approved"`
	Progress told     `json:"progress"`
	Messages []string `json:"messages"`
	Timeout  told     `json:"timeout"`
	After    told     `json:"after"`
	Gone     told     `json:"gone"` // given up while it ran
	Kept     told     `json:"kept"`
	Task     *told    `json:"task"`
}

// peer is a client that others wrote.
type peer struct {
	product string
	program []string
	more    []string // arguments behind those that all have
	version string   // of the protocol that it agrees on with the gateway
	task    bool     // it follows tasks
}

func peers(t *testing.T) []peer {
	t.Helper()
	python, goBin := os.Getenv("ASSENT_MCP_PYTHON"), os.Getenv("ASSENT_MCP_GO")
	return []peer{
		{
			product: "@modelcontextprotocol/sdk 1.32.2",
			program: []string{"node", "legacy.mjs"},
			version: "2025-11-25",
			task:    true,
		},
		{product: "@modelcontextprotocol/client 2.4.0", program: []string{"node", "dual.mjs"}, version: "2026-07-28"},
		{
			product: "@modelcontextprotocol/client 2.4.0, ext-tasks 0.2.2",
			program: []string{"node", "dual.mjs"},
			more:    []string{"legacy"},
			version: "2025-11-25",
			task:    true,
		},
		{
			product: "mcp 2.3.0 (Python)",
			program: []string{filepath.Join(python, "python"), "client.py"},
			version: "2026-07-28",
		},
		{product: "go-sdk 1.8.0", program: []string{filepath.Join(goBin, "goclient")}, version: "2026-07-28"},
	}
}

func TestClientsOfOthersWait(t *testing.T) {
	installed(t)
	t.Parallel()
	f := newFiles()
	w := newWorld(t, agentFile, f, func(cfg *mcp.Config) { cfg.Heartbeat = 500 * time.Millisecond })
	w.handle("release", func(path string) {
		w.untilLeft(path)
		close(f.release(path))
	})
	for i, p := range peers(t) {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(p.product+" over "+transport, func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("%s%d", transport, i)
				short, long := w.front.URL+"/short", w.front.URL+"/long"
				if transport == "stdio" {
					short, long = w.pipe(t, "short"), w.pipe(t, "long")
				}
				args := slices.Concat(p.program[1:], []string{transport, short, long, w.front.URL, name}, p.more)
				text := run(t, p.program[0], args...)
				t.Logf("%s", text)
				var s seen
				must.Do(t, json.Unmarshal(text, &s))
				s.check(t, p)
				s.checkCounts(t, w, f, name)
			})
		}
	}
}

// check holds what a client saw against what it must see.
func (s *seen) check(t *testing.T, p peer) {
	t.Helper()
	if s.Version != p.version || s.Tools != tools {
		t.Errorf("version %s, %d tools", s.Version, s.Tools)
	}
	want(t, "allowed", s.Allowed, false, "run ")
	if s.Allowed.Structured["size"] != 7.0 {
		t.Errorf("structured content: %v", s.Allowed.Structured)
	}
	want(t, "denied", s.Denied, true, "Not run. The agent's file doesn't allow this tool.")
	want(t, "pending", s.Pending, true, "Not run yet. This call waits for people to decide (apr_")
	want(t, "approved", s.Approved, false, "run 1")
	want(t, "progress", s.Progress, false, "run 1")
	if !strings.Contains(strings.Join(s.Messages, "\n"), "Not run yet: waits for people to decide (apr_") {
		t.Errorf("progress: %q", s.Messages)
	}
	if s.Timeout.Failed == "" {
		t.Errorf("timeout: %+v", s.Timeout)
	}
	want(t, "after the timeout", s.After, false, "run 1")
	if s.Gone.Failed == "" {
		t.Errorf("gone: %+v", s.Gone)
	}
	want(t, "the kept result", s.Kept, false, "run 1")
	if p.task && s.Task == nil {
		t.Fatal("no task")
	}
	if p.task {
		want(t, "task", *s.Task, false, "run 1")
	}
}

func want(t *testing.T, step string, got told, isError bool, text string) {
	t.Helper()
	if got.Failed != "" || got.IsError != isError || !strings.HasPrefix(got.Text, text) {
		t.Errorf("%s: got %+v, expected isError %t and %q", step, got, isError, text)
	}
}

// TestTheTableOfClients holds the table of the contract against the
// clients that are tried.
func TestTheTableOfClients(t *testing.T) {
	text := must.Get(os.ReadFile("../../../docs/contracts/mcp.md"))(t)
	for _, p := range peers(t) {
		calls, tasks := "3", "not tried"
		if p.version == "2025-11-25" {
			calls = "1"
		}
		if p.task {
			tasks = "followed"
		}
		row := tableRow(string(text), p.product)
		if len(row) < 5 || row[2] != p.version || !strings.HasPrefix(row[3], calls) || row[4] != tasks {
			t.Errorf("%s: docs/contracts/mcp.md says %q", p.product, row)
		}
	}
}

// tableRow returns the cells of the row of a client.
func tableRow(text, product string) []string {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) > 4 && cells[1] == product {
			return cells
		}
	}

	return nil
}

// checkCounts checks how many calls arrived and ran. A modern client is sent back twice before it
// is asked to wait.
func (s *seen) checkCounts(t *testing.T, w *world, f *files, name string) {
	t.Helper()
	at := "/" + name + "/"
	pending, more := 2, 0
	if s.Version == "2026-07-28" {
		pending = 4
		more = 2 // sent back while the approved call runs, where the machine is busy
	}
	if n := w.came(at + "pending"); n < pending || n > pending+more {
		t.Errorf("%d calls came, expected %d to %d", n, pending, pending+more)
	}
	for _, step := range []string{"pending", "slow", "late", "kept"} {
		if n := f.ran(at + step); n != 1 {
			t.Errorf("%s: it ran %d times", step, n)
		}
	}
}
