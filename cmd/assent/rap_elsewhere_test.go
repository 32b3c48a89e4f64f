package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// nearby is assent rap runtime as a process of its own, which asks the
// people of another server.
type nearby struct {
	t      *testing.T
	dir    string
	args   []string
	cmd    *exec.Cmd
	client *client.Client
}

// newNearby prepares the files and the token of a runtime that asks at
// a server, which knows it as rt2.
func newNearby(t *testing.T, far *testServer, tools string) *nearby {
	t.Helper()
	n := &nearby{t: t, dir: t.TempDir()}
	writeFiles(t, n.dir, map[string]string{
		"desk.agf.yaml":   opsAgent,
		"ops.policy.yaml": opsPolicy,
		"people.yaml":     opsPeople,
		"far.token":       far.token["rt2"],
	})
	at := func(name string) string { return filepath.Join(n.dir, name) }
	out, errOut, code := ran("", "token", "create", "--store", at("near.db"), "--name", "here", "--scopes", "request",
		"--agents", "desk", "--json")
	var made openapi.CreatedToken
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 {
		t.Fatalf("%v %d %s%s", err, code, out, errOut)
	}
	listen := freeAddress(t)
	n.args = []string{
		"rap", "runtime", "--agent", "desk", "--tools", "machines=" + tools, "--server", far.ready.API,
		"--token-file", "here=" + at("far.token"), "--agents", at("desk.agf.yaml"), "--policies", n.dir,
		"--people", at("people.yaml"), "--store", at("near.db"), "--listen", listen,
	}
	var err error
	if n.client, err = client.New("http://"+listen, made.Secret, client.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)

	return n
}

func (n *nearby) start() {
	n.t.Helper()
	bin, err := exec.LookPath("assent")
	must.Do(n.t, err)
	log, err := os.Create(filepath.Join(n.dir, "log"))
	must.Do(n.t, err)
	defer log.Close()
	n.cmd = exec.Command(bin, n.args...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	must.Do(n.t, n.cmd.Start())
	n.t.Cleanup(func() {
		if text, err := os.ReadFile(log.Name()); err == nil && n.t.Failed() {
			n.t.Logf("%s", text)
		}
	})
	testwait.Until(n.t, "the runtime answers", func() bool {
		health, err := n.client.Ready(n.t.Context())
		return err == nil && health != nil
	})
}

// ticketContext returns the agent's context for each of its calls.
func ticketContext() []info.Item { return []info.Item{{Label: "Why", Text: "the ticket wants it"}} }

// kill ends the process with SIGKILL.
func (n *nearby) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill() // it may have ended
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

func (n *nearby) calls(id, operation string) {
	n.t.Helper()
	if _, err := n.client.RAPInvoke(n.t.Context(), "desk", client.RAPCall{
		Thread:    "t",
		ID:        id,
		User:      "zoe",
		Operation: operation,
		Context:   ticketContext(),
	}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nearby) ends(id string) *openapi.RAPCall {
	n.t.Helper()
	return rapDone(n.t, n.client, "t", id)
}

// TestARuntimeAsksPeopleElsewhere: what a runtime's calls need is asked
// at another server in the name of its token there. The runtime is
// killed while people are asked, and answered while it is dead.
func TestARuntimeAsksPeopleElsewhere(t *testing.T) {
	m, far := newMachines(t), opsFiles(t)
	startWith(t, far, func(c *config.Serve) { c.Tenants[0].Policies = []string{far.dir} })
	n := newNearby(t, far, m.URL)
	n.start()
	n.calls("a", "restart")
	asked := far.awaitRequest(t)
	if q := asked.Requester; q.Runtime != "rt2" || q.Principal != "zoe" {
		t.Errorf("asked by %+v", q)
	}
	if !slices.Equal(asked.Context, ticketContext()) {
		t.Errorf("people are told %v", asked.Context)
	}
	n.kill()
	if got := far.votes(t, "ben-cli", asked, nil); got != approval.VoteApproved {
		t.Fatalf("ben: %s", got)
	}
	n.start()
	if call := n.ends("a"); call.Failed {
		t.Errorf("%+v", call)
	}
	if got := len(m.calls("restart")); got != 1 {
		t.Errorf("it ran %d times", got)
	}

	m.says(m.question)
	n.calls("b", "look")
	question := far.awaitRequest(t)
	if !slices.Equal(question.Context, ticketContext()) {
		t.Errorf("people are told %v", question.Context)
	}
	n.kill()
	if got := far.votes(t, "zoe-cli", question, nil); got != approval.VoteAnswered {
		t.Fatalf("zoe: %s", got)
	}
	n.start()
	m.answered(t, "the question")
	m.says(nil)
	c := m.calls("look")[0]
	if status := m.post(c.URL, c.result("looked", "")); status != http.StatusOK {
		t.Fatalf("the result: %d", status)
	}
	if call := n.ends("b"); call.Failed {
		t.Errorf("%+v", call)
	}
}

func TestARuntimeElsewhereNeedsATokenThere(t *testing.T) {
	for flags, want := range map[string]string{
		"--server http://127.0.0.1:1":                                         "expected --token-file NAME=FILE",
		"--token-file here=x":                                                 "expected --server",
		"--server http://127.0.0.1:1 --token-file x":                          "expected NAME=FILE",
		"--server http://127.0.0.1:1 --token-file here=x --token-file here=y": "each NAME once",
	} {
		args := append(strings.Fields("rap runtime --agent desk --tools x=http://127.0.0.1:2"), strings.Fields(flags)...)
		if _, errOut, code := ran("", args...); code != 2 || !strings.Contains(errOut, want) {
			t.Errorf("%s: %d %s", flags, code, errOut)
		}
	}
}
