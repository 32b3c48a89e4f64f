package slack_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify/slack"
)

// childLife is the environment variable that passes a life, as JSON, to the test binary when it is
// run as a child process.
const childLife = "SLACK_TEST_LIFE"

// life is one process that sends due deliveries, with the store and the Slack of the test.
type life struct {
	Database    string
	API         string
	Certificate []byte
	Now         time.Time
}

// TestALife is the body of the process that is killed. When it runs as an ordinary test, there is
// nothing to deliver.
func TestALife(t *testing.T) {
	text := os.Getenv(childLife)
	if text == "" {
		newWorld(t).deliver()
		return
	}
	var l life
	must.Do(t, json.Unmarshal([]byte(text), &l))
	certificate, err := x509.ParseCertificate(l.Certificate)
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	worldOn(t, l.Database, l.Now, func(c *slack.Config) {
		c.API = l.API
		c.Guard = guard.Guard{Loopback: true, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}).deliver()
}

// lives lets a process deliver, and kills it with SIGKILL while Slack handles a call of the
// method. With an empty method it is not killed. It reports whether the process was killed.
func (w *world) lives(method string) (killed bool) {
	w.t.Helper()
	w.pass(10 * time.Minute) // deliveries that a previous process had claimed are due again
	text, err := json.Marshal(life{
		Database:    w.file,
		API:         w.slack.URL + "/api/",
		Certificate: w.slack.Certificate().Raw,
		Now:         w.clock(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestALife$")
	child.Env = append(os.Environ(), childLife+"="+string(text))
	ended := make(chan error, 1)
	dead := make(chan struct{})
	w.slack.mu.Lock()
	w.slack.hook = func(called string) {
		if called == method {
			_ = child.Process.Kill() // it may have been killed at an earlier call
			<-dead
		}
	}
	w.slack.mu.Unlock()
	out, err := child.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		w.t.Fatal(err)
	}

	go func() {
		said, _ := io.ReadAll(out) // the error output
		err := child.Wait()
		close(dead)
		if err != nil {
			err = errors.Join(err, errors.New(string(said)))
		}
		ended <- err
	}()
	err = <-ended
	w.slack.busy.Wait() // Slack does not notice that the caller has gone
	w.slack.mu.Lock()
	w.slack.hook = nil
	w.slack.mu.Unlock()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if failed && exit.Exited() {
		w.t.Fatal(err)
	}

	return failed
}

// TestKilledWhileItAsksOnePerson checks that a process that ends between posting and storing
// leaves one extra message, and that no other end does. Both messages are answered and
// rewritten, and no channel shows the question.
func TestKilledWhileItAsksOnePerson(t *testing.T) {
	w := newWorld(t)
	out, err := w.service.Ask(t.Context(), approval.AskInput{
		Tenant:   tenant,
		Asker:    approval.Asker{Token: "ci"},
		Agent:    agentID,
		Key:      approval.NewKey(),
		Question: yesOrNo(),
		Call:     &resolve.Call{Kind: resolve.Tool, Tool: "trade", Principal: rita},
	})
	must.Do(t, err)
	for _, step := range []struct {
		method   string
		killed   bool
		messages int
	}{
		{"conversations.open", true, 0},
		{"chat.postMessage", true, 1},
		{"", false, 2},
		{"chat.postMessage", false, 2},
	} {
		if killed := w.lives(step.method); killed != step.killed || len(w.slack.now()) != step.messages {
			t.Fatalf("%q: killed %v, %d messages", step.method, killed, len(w.slack.now()))
		}
	}

	all := w.slack.now()
	w.click(all[0], choice(1), "U0RITA") // the one whose place was not stored
	if !w.lives("chat.update") {
		t.Error("it was not killed while it rewrote the other one")
	}
	w.lives("")
	w.click(all[1], choice(0), "U0RITA")
	w.hears("Your answer: Picked [1]", "too late")
	if got := w.request(out.Request.ID); got.State != approval.Answered || *got.Chosen != 1 {
		t.Errorf("got %s with %+v", got.State, got.Votes)
	}
	if all = w.slack.now(); len(all) != 2 {
		t.Errorf("%d messages", len(all))
	}
	for _, p := range all {
		p.shows(t, "Picked [1] by "+rita)
		if _, ok := p.button(choice(0)); ok || p.channel != messagesOf("U0RITA") {
			t.Errorf("a button is left, or it stands in %s", p.channel)
		}
	}
}
