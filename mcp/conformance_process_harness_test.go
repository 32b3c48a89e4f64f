package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	exported "github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// installed is an installed gateway: a directory with its files, and a server in a process of its
// own.
type installed struct {
	t   *testing.T
	bin string
	dir string
	u   *mcptest.Server
	at  []string // flags of commands that reach its inbox; nil before inbox
}

// install writes the files of a gateway. More is added to its
// configuration, and to the entry of its server.
func install(t *testing.T, s mcptest.Script, more string, upstream map[string]any) *installed {
	t.Helper()
	p := &installed{t: t, bin: testbin.Path(t, "cmd/assent"), dir: t.TempDir(), u: mcptest.New(t, s)}
	entry := p.server("files", p.u)
	for name, field := range upstream {
		entry[name] = field
	}
	p.write("clerk.agf.yaml", mcptest.Clerk)
	p.configure(more, entry)
	return p
}

// requestIn returns the request that an answer names.
func requestIn(answer string) string { return regexp.MustCompile(`apr_[0-9a-z]+`).FindString(answer) }

// server returns the entry of a recording server in the configuration.
func (p *installed) server(alias string, u *mcptest.Server) map[string]any {
	env := map[string]string{}
	for _, pair := range u.Env() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return map[string]any{
		"alias":   alias,
		"command": os.Args[0],
		"cwd":     p.dir,
		"env":     env,
		"era":     "legacy",
	}
}

// configure writes the configuration.
func (p *installed) configure(more string, upstream ...map[string]any) {
	p.t.Helper()
	all := must.Get(json.Marshal(upstream))(p.t)
	p.write("gateway.yaml", "agent: clerk.agf.yaml\n"+more+"\nupstream: "+string(all)+"\n")
}

func (p *installed) write(name, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o700))
}

// quick configures a caller that is answered soon.
const quick = "callers: {name: desk, hold: 1s}"

// running is a process of the gateway, with the client that started it.
type running struct {
	*client
	cmd *exec.Cmd
	end io.Closer // its standard input
	log *bytes.Buffer
}

// run starts the gateway with a client that has sent nothing yet.
func (p *installed) run(env ...string) *running {
	p.t.Helper()
	cmd := exec.Command(p.bin, "mcp", "gateway", "--config", filepath.Join(p.dir, "gateway.yaml"))
	cmd.Env = append(os.Environ(), env...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	r := &running{cmd: cmd, end: in, log: &bytes.Buffer{}}
	cmd.Stderr = r.log
	must.Do(p.t, errors.Join(err1, err2, cmd.Start()))
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it may have ended
		if p.t.Failed() {
			p.t.Logf("the gateway's log:\n%s", r.log.String())
		}
	})
	r.client = &client{t: p.t, in: in, lines: bufio.NewScanner(out)}
	r.lines.Buffer(nil, 4<<20)
	return r
}

// open starts the gateway with a legacy client.
func (p *installed) open(env ...string) *running {
	p.t.Helper()
	r := p.run(env...)
	r.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"desk","version":"1"}}}`)
	return r
}

// comes repeats a call until the answer contains a text, and returns the answer.
func (r *running) comes(name, args, want string) string {
	r.t.Helper()
	return testwait.Value(r.t, want, func() (string, bool) {
		text := r.call(name, args)
		return text, strings.Contains(text, want)
	})
}

// kill ends the process with SIGKILL.
func (r *running) kill() {
	r.t.Helper()
	must.Do(r.t, r.cmd.Process.Kill())
	_ = r.cmd.Wait() // it was killed
}

// leave closes the client's end, and checks that the gateway exits successfully. It returns the
// remaining lines of output.
func (r *running) leave() (rest []string) {
	r.t.Helper()
	must.Do(r.t, r.end.Close())
	for r.lines.Scan() {
		rest = append(rest, r.lines.Text())
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("the gateway ended with %v", err)
	}
	return rest
}

// inbox starts the gateway's inbox.
func (p *installed) inbox() {
	p.t.Helper()
	cmd := exec.Command(p.bin, "mcp", "inbox", "--json", "--config", filepath.Join(p.dir, "gateway.yaml"))
	out, err := cmd.StdoutPipe()
	must.Do(p.t, errors.Join(err, cmd.Start()))
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	var doc struct {
		API  string `json:"api"`
		File string `json:"token_file"`
	}
	must.Do(p.t, json.NewDecoder(out).Decode(&doc))
	p.at = []string{"--server", doc.API, "--token-file", doc.File}
}

// command runs a command of assent against the inbox.
func (p *installed) command(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(p.bin, append(args, p.at...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("assent %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// approve approves the request that an answer names.
func (p *installed) approve(answer string) {
	p.t.Helper()
	id := requestIn(answer)
	shown := p.command("show", id, "--json")
	binding := regexp.MustCompile(`"binding": *"([^"]+)"`).FindStringSubmatch(shown)
	if binding == nil {
		p.t.Fatalf("show %s: %s", id, shown)
	}
	p.command("approve", id, "--yes", "--binding", binding[1])
}

// audited exports and verifies the ledger, and returns the facts about a tool by event.
func (p *installed) audited(tool string) map[string][]map[string]any {
	p.t.Helper()
	dir := p.t.TempDir()
	file, since := filepath.Join(dir, "export.jsonl"), filepath.Join(dir, "checkpoint")
	must.Do(p.t, os.WriteFile(since, []byte(p.command("audit", "checkpoint")), 0o600))
	p.command("audit", "export", "--out", file)
	key := filepath.Join(p.dir, "assent.key.pub")
	out, err := exec.Command(p.bin, "audit", "verify", file, "--public-key", key, "--since", since).CombinedOutput()
	if err != nil {
		p.t.Fatalf("assent audit verify: %v\n%s", err, out)
	}

	text := must.Get(os.ReadFile(file))(p.t)
	events := map[string][]map[string]any{}
	must.Get(exported.Verify(bytes.NewReader(text), exported.VerifyOptions{
		Each: func(_ int64, l exported.Leaf, _ exported.Openings) error {
			if l.Subject != "mcp/files/"+tool {
				return nil
			}
			var facts map[string]any
			err := json.Unmarshal(l.Facts.AppendCanonical(nil), &facts)
			events[l.Type] = append(events[l.Type], facts)
			return err
		},
	}))(p.t)
	return events
}
