package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
)

const (
	coderAgent = `schema_version: "1.0.0"
metadata: {id: coder, name: Coder, version: "1.0.0", description: Codes.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools: [{alias: Bash, approval: true}]
`
	// coderPolicy requires the approval of one person of the desk.
	coderPolicy = `schema_version: "1.0.0"
policy_ref: crash.coder
description: One person for each command.
applies: implicit
rules:
  - id: commands
    match: {targets: [Bash]}
    approval: true
    require: {stages: [{group: desk, people: 1}]}
`
)

// TestKillHook kills hooks of coding agents with SIGKILL at times spread over their run: 22 before
// people have approved and 22 after, and 220 of each in make long (ASSENT_KILLS). Half of them use a
// server and half a store of their own. Output that a hook wrote before it was killed counts as
// read by the product, although products may treat the hook as failed.
func TestKillHook(t *testing.T) {
	kills := 22
	if n, err := strconv.Atoi(os.Getenv("ASSENT_KILLS")); err == nil {
		kills = n
	}
	for name, begin := range map[string]func(*testing.T) *hooks{"a server": hooksOfServer, "alone": hooksAlone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := begin(t)
			h.life = h.whole(t)
			for n := range kills / 2 {
				h.round(t, n, h.moment(n, kills/2))
			}
			t.Logf("%d kills before and %d after an approval, of hooks that live %s: %d calls ran by what a killed hook had "+
				"printed, %d by the next hook, %d never: their run was taken, and nobody was told", kills/2, kills/2, h.life,
				h.printed, h.next, h.lost)
		})
	}
}

// hooks is a coding agent whose hooks are killed.
type hooks struct {
	bin    string
	flags  []string
	env    []string // in addition to the test's environment
	people *client.Client

	// life is the approximate time until a hook has printed that an approved call may run.
	life                time.Duration
	printed, next, lost int
}

// moment returns when the hook of a round is killed: every second one at some time during its run,
// the others close to the time when it takes the run and prints that.
func (h *hooks) moment(n, of int) time.Duration {
	if n%2 == 0 {
		return h.life * time.Duration(n) / time.Duration(of)
	}

	return h.life * time.Duration(80+10*(n/2%5)) / 100
}

// hookFiles writes the agent that codes, its policy and its people.
func hookFiles(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"agents/coder.agf.yaml":      coderAgent,
		"policies/coder.policy.yaml": coderPolicy,
		"people.yaml":                peopleFile,
	} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
}

func hooksOfServer(t *testing.T) *hooks {
	h := newHarness(t, testbin.Path(t, "cmd/assent"), "")
	hookFiles(t, h.dir)
	address := h.address()
	h.serve(address)
	token := filepath.Join(h.dir, "bot.token")
	must.Do(t, os.WriteFile(token, []byte(h.bot), 0o600))

	return &hooks{
		bin:    h.bin,
		flags:  []string{"--agent", "coder", "--server", "http://" + address, "--token-file", token},
		people: h.client(address, h.bob),
	}
}

func hooksAlone(t *testing.T) *hooks { return hooksBesideInbox(t, testbin.Path(t, "cmd/assent")) }

// hooksBesideInbox returns hooks with a store of their own. env is added to the environment of the
// inbox.
func hooksBesideInbox(t *testing.T, bin string, env ...string) *hooks {
	h := &hooks{bin: bin}
	dir := t.TempDir()
	hookFiles(t, dir)
	h.flags = []string{"--agent-file", filepath.Join(dir, "agents/coder.agf.yaml")}
	inbox := exec.Command(h.bin, append([]string{"hook", "inbox", "--json"}, h.flags...)...)
	inbox.Env = append(os.Environ(), env...)
	out, err := inbox.StdoutPipe()
	must.Do(t, errors.Join(err, inbox.Start()))
	t.Cleanup(func() {
		_ = inbox.Process.Kill() // it may be dead
		_ = inbox.Wait()         // killed
	})
	var ready struct {
		API  string `json:"api"`
		File string `json:"token_file"`
	}
	must.Do(t, json.NewDecoder(out).Decode(&ready))
	token := must.Get(os.ReadFile(ready.File))(t)
	if h.people, err = client.New(ready.API, strings.TrimSpace(string(token)), client.Options{}); err != nil {
		t.Fatal(err)
	}

	return h
}

// document returns call n of the session.
func document(n int) string {
	return fmt.Sprintf(`{"session_id":"s","hook_event_name":"PreToolUse","permission_mode":"default","tool_name":"Bash",`+
		`"tool_input":{"command":"make %d"},"tool_use_id":"toolu_%d"}`, n, n)
}

// begin starts the hook of call n.
func (h *hooks) begin(t *testing.T, n int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(h.bin, append([]string{"hook", "claude-code", "--wait", "0s"}, h.flags...)...)
	cmd.Env = append(os.Environ(), h.env...)
	cmd.Stdin = strings.NewReader(document(n))
	var out bytes.Buffer
	cmd.Stdout = &out
	must.Do(t, cmd.Start())

	return cmd, &out
}

// hook runs the hook of call n until it ends, and returns its output.
func (h *hooks) hook(t *testing.T, n int) string {
	t.Helper()
	cmd, out := h.begin(t, n)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the hook: %v", err)
	}

	return out.String()
}

// killed runs the hook of call n and kills it after a while.
func (h *hooks) killed(t *testing.T, n int, after time.Duration) string {
	t.Helper()
	cmd, out := h.begin(t, n)
	killer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // it may have ended
	_ = cmd.Wait()                                                     // killed, or not
	killer.Stop()

	return out.String()
}

// whole returns the approximate run time of a hook.
func (h *hooks) whole(t *testing.T) time.Duration {
	t.Helper()
	h.hook(t, -1) // makes the store
	began := time.Now()
	const runs = 5
	for n := range runs {
		h.hook(t, -2-n)
	}

	return time.Since(began) / runs
}

// allows reports whether a product that read this output would run the call.
func allows(said string) bool {
	var doc struct {
		Inner struct {
			Permission string `json:"permissionDecision"`
		} `json:"hookSpecificOutput"`
	}

	return json.Unmarshal([]byte(said), &doc) == nil && doc.Inner.Permission == "allow"
}

// round kills a hook of a call before and another one after people approve it.
func (h *hooks) round(t *testing.T, n int, after time.Duration) {
	t.Helper()
	if said := h.killed(t, n, after); allows(said) {
		t.Fatalf("killed after %s, before anybody approved: %s", after, said)
	}
	asked := h.hook(t, n)
	id := regexp.MustCompile(`apr_[0-9a-z]+`).FindString(asked)
	if id == "" || allows(asked) {
		t.Fatalf("the hook after a killed one: %s", asked)
	}
	h.approve(t, id)

	runs := 0
	if allows(h.killed(t, n, after)) {
		runs++
		h.printed++
		h.life -= h.life / 20
	} else if n%2 == 1 {
		h.life += h.life / 20
	}

	if allows(h.hook(t, n)) {
		runs++
		h.next++
	}
	if allows(h.hook(t, n)) {
		runs++
	}

	r, err := h.people.Request(t.Context(), id)
	switch {
	case err != nil:
		t.Fatal(err)
	case runs > 1:
		t.Errorf("killed after %s: call %d ran %d times", after, n, runs)
	case r.State != approval.Consumed:
		t.Errorf("killed after %s: the request of call %d is %s", after, n, r.State)
	case runs == 0:
		h.lost++
	}
}

// approve approves as the only person who may.
func (h *hooks) approve(t *testing.T, id string) {
	t.Helper()
	ctx := t.Context()
	if outcome, err := vote(ctx, h.people, id); err != nil || outcome != approval.VoteApproved {
		t.Fatalf("%s, %v", outcome, err)
	}
}
