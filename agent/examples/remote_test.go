package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// remoteWorld has two agents in separate processes, and a server with people who approve the
// actions of the remote agent.
type remoteWorld struct {
	t         *testing.T
	bin, home string
	desk      *assenttest.Assent
	env       []string
	address   string
}

func newRemoteWorld(t *testing.T) *remoteWorld {
	t.Helper()
	files := fstest.MapFS{"agents/rental.agf.yaml": &fstest.MapFile{
		Data: must.Get(os.ReadFile("remote/rental.agf.yaml"))(t),
		Mode: 0o600,
	}}
	for _, name := range []string{"people.yaml", "policies/controls.policy.yaml"} {
		text := must.Get(fs.ReadFile(assenttest.Files(t), name))(t)
		files[name] = &fstest.MapFile{Data: text, Mode: 0o600}
	}
	w := &remoteWorld{
		t:    t,
		bin:  testbin.Path(t, "agent/examples/remote"),
		home: t.TempDir(),
		desk: assenttest.New(t, assenttest.Config{Files: files}),
	}
	secret := w.desk.Token(store.Token{
		Name:   "rental-runtime",
		Scopes: []string{"request"},
		Agents: []string{"rental"},
	})
	w.env = append(os.Environ(), "PARTNER_TOKEN=between-the-two", "ASSENT_TOKEN="+secret)
	w.address = "127.0.0.1:0"
	return w
}

// partner starts the remote agent at the same address as before.
func (w *remoteWorld) partner() *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(w.bin, "-dir", w.home, "-desk", w.desk.URL, "-listen", w.address, "partner")
	cmd.Env = w.env
	out := must.Get(cmd.StdoutPipe())(w.t)
	must.Do(w.t, cmd.Start())
	w.t.Cleanup(func() { kill(cmd) })
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(w.t)
	w.address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "http://"), "/")
	return cmd
}

// kill ends a process in the same way as kill -9.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // the error only says that it was killed
}

// planner returns a command of the local agent.
func (w *remoteWorld) planner(args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, append([]string{"-dir", w.home, "-partner", "http://" + w.address + "/"}, args...)...)
	cmd.Env = w.env
	return cmd
}

func (w *remoteWorld) run(args ...string) string {
	w.t.Helper()
	out, err := w.planner(args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// asked returns the requests that wait for people at the desk.
func (w *remoteWorld) asked() []approval.Summary {
	w.t.Helper()
	reader := w.desk.Client(store.Token{Name: "reader", Scopes: []string{"read"}})
	return must.Get(reader.Requests(w.t.Context(), client.Query{}))(w.t).Requests
}

// approve lets people approve through the server's API.
func (w *remoteWorld) approve(id string) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	for _, name := range []string{"mara", "ben"} {
		person := w.desk.Client(store.Token{
			Name:   name,
			Person: name,
			Scopes: []string{"read", "vote"},
		})
		r := must.Get(person.Request(ctx, id))(w.t)
		voted := must.Get(person.Vote(ctx, id, r.Version, openapi.VoteBody{
			Verdict:    openapi.Verdict(approval.Approve),
			Binding:    r.Binding(),
			ShownFully: true,
		}))(w.t)
		if voted.Outcome == approval.VoteApproved {
			return
		}
	}

	w.t.Fatal("nobody has approved")
}

// killed starts a command of the local agent and kills it as soon as a condition holds.
func (w *remoteWorld) killed(what string, holds func() bool, args ...string) {
	w.t.Helper()
	cmd := w.planner(append([]string{"-wait", "1m"}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(w.t, cmd.Start())
	testwait.Until(w.t, what, holds)
	kill(cmd)
	if strings.Contains(said.String(), "asks") || strings.Contains(said.String(), "gave") {
		w.t.Fatalf("the local process had ended:\n%s", &said)
	}
}

// revision returns how often the local thread was saved.
func (w *remoteWorld) revision() int64 {
	w.t.Helper()
	threads := must.Get(filestore.New(filepath.Join(w.home, "threads")))(w.t)
	return must.Get(threads.Load(w.t.Context(), "move"))(w.t).Revision
}

// TestRemoteKilled tests the remote scenario: the local agent asks the remote agent, whose
// approver uses an inbox. The local process is killed in its first run and in a later run, and
// the remote process is killed too. The task is resumed by its id, so there is only one task,
// one request and one van.
func TestRemoteKilled(t *testing.T) {
	w := newRemoteWorld(t)
	first := w.partner()
	wish := []string{"ask", "We need a van on Friday."}
	w.killed("the people of the desk are asked", func() bool { return len(w.asked()) == 1 }, wish...)
	told := w.run(append([]string{"-wait", "1ms"}, wish...)...)
	if !strings.Contains(told, "Wait on?") || !strings.Contains(told, "task-") {
		t.Fatalf("the next process says\n%s", told)
	}
	before := w.revision()
	w.killed("a later run begins", func() bool { return w.revision() > before }, "look")

	kill(first)
	w.partner()
	told = w.run("-wait", "1ms", "look")
	if strings.Contains(told, "gave") {
		t.Fatalf("it went on without an approval:\n%s", told)
	}
	w.approve(w.asked()[0].ID)
	if told = w.run("look"); !strings.Contains(told, `"state":"completed"`) {
		t.Errorf("after the approval:\n%s", told)
	}
	w.run("look")
	rented := must.Get(os.ReadFile(filepath.Join(w.home, "partner", "rented.jsonl")))(t)
	tasks := must.Get(os.ReadDir(filepath.Join(w.home, "partner", "tasks")))(t)
	if strings.Count(string(rented), "\n") != 1 || len(tasks) != 1 || len(w.asked()) != 1 {
		t.Errorf("rented %q in %d tasks after %d requests", rented, len(tasks), len(w.asked()))
	}
}
