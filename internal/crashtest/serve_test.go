package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// TestMain starts a PostgreSQL for the tests; the binary under test is
// built by the first test that asks for it.
func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const (
	agentFile = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Moves money.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - {alias: transfer, approval: true}
    - {alias: hurry, approval: true}
    - {alias: buy}
    - {alias: pay, approval: true}
`
	policyFile = `schema_version: "1.0.0"
policy_ref: crash.two
description: Two people for transfers; whatever is in a hurry ends after a second and a half.
applies: implicit
rules:
  - id: two
    match: {targets: [transfer]}
    approval: true
    require: {stages: [{group: risk, people: 1}, {group: desk, people: 1}]}
  - id: hurry
    match: {targets: [hurry]}
    approval: true
    require: {stages: [{group: risk, people: 1}], within: 1500ms}
`
	peopleFile = `schema_version: "1.0.0"
people:
  - {id: alice, groups: [risk]}
  - {id: bob, groups: [desk]}
`
)

// harness is a folder to serve from, a store, and the tokens of who takes part.
type harness struct {
	t          *testing.T
	bin        string
	dir        string
	store      string
	key        string // public, of the ledger
	bot        string // token of the runtime
	alice, bob string // tokens of approvers
}

func newHarness(t *testing.T, bin, store string) *harness {
	t.Helper()
	h := &harness{t: t, bin: bin, dir: t.TempDir(), store: store}
	if store == "" {
		h.store = filepath.Join(h.dir, "assent.db")
	}
	for name, text := range map[string]string{
		"agents/clerk.agf.yaml":    agentFile,
		"policies/two.policy.yaml": policyFile,
		"policies/cap.policy.yaml": capFile,
		"people.yaml":              peopleFile,
	} {
		path := filepath.Join(h.dir, name)
		must.Do(t, errors.Join(
			os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600),
		))
	}

	first := h.serve(h.address()) // makes the store and the key
	first.kill()
	public := must.Get(os.ReadFile(filepath.Join(h.dir, "assent.key.pub")))(t)
	h.key = strings.TrimSpace(string(public))
	h.bot = h.token("bot", "decide,request,read", "")
	h.alice, h.bob = h.token("alice-cli", "read,vote", "alice"), h.token("bob-cli", "read,vote", "bob")
	return h
}

func (h *harness) token(name, scopes, person string) string {
	h.t.Helper()
	args := []string{
		"token",
		"create",
		"--store",
		h.store,
		"--key",
		filepath.Join(h.dir, "assent.key"),
		"--name",
		name,
		"--scopes",
		scopes,
		"--json",
	}
	if person != "" {
		args = append(args, "--person", person)
	}
	out, err := exec.Command(h.bin, args...).Output()
	if err != nil {
		h.t.Fatalf("%v: %v", args, err)
	}
	return regexp.MustCompile(`assent_[\w-]{43}`).FindString(string(out))
}

// address finds a free port for all processes of a server.
func (h *harness) address() string {
	h.t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(h.t)
	defer l.Close()
	return l.Addr().String()
}

// process is one process of a server.
type process struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{}
}

// serve starts a server and waits until it answers.
func (h *harness) serve(address string) *process {
	h.t.Helper()
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command(
		h.bin,
		"serve",
		"--listen",
		address,
		"--store",
		h.store,
		"--key",
		filepath.Join(h.dir, "assent.key"),
		"--agents",
		filepath.Join(h.dir, "agents"),
		"--policies",
		filepath.Join(h.dir, "policies"),
		"--people",
		filepath.Join(h.dir, "people.yaml"),
	)
	p.cmd.Stderr = &p.log
	out := must.Get(p.cmd.StdoutPipe())(h.t)
	must.Do(h.t, p.cmd.Start())
	h.t.Cleanup(p.kill)
	ready := make(chan bool, 1)
	go func() {
		in := bufio.NewScanner(out)
		ready <- in.Scan()
		for in.Scan() {
			continue
		}
		_ = p.cmd.Wait() // killed
		close(p.done)
	}()
	if !await(h.t, ready, "assent serve answers or ends") {
		<-p.done
		h.t.Fatalf("assent serve ended:\n%s", p.log.String())
	}

	return p
}

// kill ends the process with SIGKILL, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be dead
	<-p.done
}

// client returns a client that retries until the next process of the server answers.
func (h *harness) client(address, token string) *client.Client {
	h.t.Helper()
	c, err := client.New("http://"+address, token, client.Options{
		Attempts: math.MaxInt32, // a busy machine is slow to start the next one
		Pause:    5 * time.Millisecond,
		MaxPause: 50 * time.Millisecond,
	})
	must.Do(h.t, err)
	return c
}

// audit exports the ledger and checks it against its key, the earlier export, and the rules. It
// returns the checkpoint to keep.
func (h *harness) audit(
	ctx context.Context, c *client.Client, since []byte,
) (checkpoint []byte, events map[string][]ledger.Leaf) {
	h.t.Helper()
	var export bytes.Buffer
	var err error
	for range 100 { // the server may be killed in the middle of an export, which an export shows
		export.Reset()
		if err = c.Export(ctx, &export); err == nil {
			break
		}
	}

	must.Do(h.t, err)
	var auditor approval.Auditor
	var older [][]byte
	if since != nil {
		older = append(older, since)
	}
	events = map[string][]ledger.Leaf{}
	_, err = ledger.Verify(&export, ledger.VerifyOptions{
		PublicKey: h.key,
		Since:     older,
		Each: func(i int64, l ledger.Leaf, _ ledger.Openings) error {
			auditor.Add(i, l)
			events[l.Subject] = append(events[l.Subject], l)
			return nil
		},
	})
	if err != nil {
		h.t.Fatalf("the ledger does not verify: %v", err)
	}
	if problems := auditor.Problems(); len(problems) > 0 {
		h.t.Fatalf("the ledger tells what must not happen: %v", problems)
	}
	cp := must.Get(c.Checkpoint(ctx))(h.t)
	return []byte(cp.Checkpoint), events
}

// sealed waits until the ledger contains an event of a request, because entries are sealed a moment
// after they are committed.
func sealed(ctx context.Context, t *testing.T, c *client.Client, id, event string) {
	t.Helper()
	testwait.Until(t, event+" of "+id+" in the ledger", func() bool {
		entries := must.Get(c.History(ctx, id))(t)
		return slices.ContainsFunc(entries, func(e openapi.Entry) bool {
			l, err := ledger.ParseLeaf(e.Leaf)
			return err == nil && l.Type == event
		})
	})
}

// vote repeats an answer until it is known to be stored. A repetition after a lost reply is a
// duplicate or late, which counts as success.
func vote(ctx context.Context, c *client.Client, id string) (approval.VoteOutcome, error) {
	return answer(ctx, c, id, openapi.VoteBody{Verdict: approval.Approve})
}

// answer is like vote with any answer. It answers the current version of the request.
func answer(ctx context.Context, c *client.Client, id string, body openapi.VoteBody) (approval.VoteOutcome, error) {
	for {
		r, err := c.Request(ctx, id)
		if err != nil {
			return "", err
		}
		body.Binding, body.ShownFully = r.Binding(), true
		v, err := c.Vote(ctx, id, r.Version, body)
		var p *client.Problem
		switch {
		case err == nil:
			return v.Outcome, nil
		case ctx.Err() != nil:
			return "", err
		case errors.As(err, &p) && p.Problem.Code != openapi.CodeVersionMismatch && p.Status < 500:
			return "", err
		}
	}
}

func call(tool string, n int) []byte {
	text, err := json.Marshal(map[string]any{
		"kind": "tool",
		"tool": tool,
		"args": map[string]any{"amount": n, "iban": "DE02120300000000202051"},
	})
	if err != nil {
		panic(fmt.Sprint("a map of numbers and texts has no JSON: ", err))
	}
	return text
}
