package durabletest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// life describes one process, which works until it ends or is killed.
type life struct {
	Dir    string   // of the database and the journal
	Calls  []string // to be made; a peer repeats a call until it is acknowledged
	KillAt int64    // the process kills itself at this write; 0: never
	After  bool     // after the write was made; otherwise before it
	Lease  time.Duration
}

const lifeVariable = "ASSENT_DURABLETEST_LIFE"

// Main runs the tests of a package, or the life of a process that a test started. Call it from
// TestMain.
func Main(m *testing.M, make Transport) int {
	text := os.Getenv(lifeVariable)
	if text == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		return m.Run()
	}
	var l life
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := l.live(make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// run runs a life in a process of its own, and reports whether it was killed.
func (l life) run(t *testing.T) (killed bool) {
	t.Helper()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe() // kept open: the process ends when this one does
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()

	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return true
	}
	if err != nil {
		t.Fatalf("%v of %s, killed at %d, after it %t\n%s", err, l.Calls, l.KillAt, l.After, stderr.String())
	}
	return false
}

// live makes the calls, and works until the ending of each was reported.
func (l life) live(make Transport) error {
	ctx := context.Background() // the process lives as long as the test that started it
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	db, err := sqlite.Open(ctx, filepath.Join(l.Dir, "records.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	records := &shaky{Records: db}
	records.before = func(n int64) error {
		l.die(n, false)
		return nil
	}
	records.after = func(n int64) { l.die(n, true) }

	j := &journal{file: filepath.Join(l.Dir, "journal")}
	return peer{journal: j, calls: l.Calls}.work(ctx, make, World{Sealing: sealing(records), Lease: l.Lease})
}

func sealing(records store.Records) durable.Sealing {
	return durable.Sealing{
		Records:   records,
		Namespace: "durabletest",
		Key:       bytes.Repeat([]byte{7}, 32),
		Purpose:   "durabletest ",
	}
}

func (l life) die(n int64, after bool) {
	if n == l.KillAt && after == l.After {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// peer makes calls, answers each question twice, and records how the calls end.
type peer struct {
	journal *journal
	calls   []string
}

// work runs a transport in a world until all calls have ended.
func (p peer) work(ctx context.Context, make Transport, w World) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var door Door
	var answers sync.WaitGroup
	w.People = &people{records: w.Records}
	w.Poll = 5 * time.Millisecond
	orElse(&w.Lease, time.Minute)
	if w.Now == nil {
		w.Now = time.Now
	}
	w.Run = func(_ context.Context, id string) string {
		p.journal.write("run " + id)
		return "done " + id
	}
	w.Tell = func(id, ending string) error {
		p.journal.write("end " + id + " " + ending)
		return nil
	}
	answer := func(id string) {
		for range 2 {
			answers.Go(func() {
				p.insist(ctx, func() error { return door.Answer(ctx, id, true) })
			})
		}
	}
	w.AskPeer = func(id string) error {
		p.journal.write("ask " + id)
		answer(id)
		return nil
	}

	door, err := make(w)
	if err != nil {
		return err
	}
	before, err := p.journal.facts()
	if err != nil {
		return err
	}
	for id, f := range before {
		if f.asked && len(f.endings) == 0 { // the peer doesn't know whether its answer was stored
			answer(id)
		}
	}
	running := start(func() error { return door.Run(ctx) })
	for _, id := range p.calls {
		p.insist(ctx, func() error { return door.Call(ctx, id) })
	}
	p.insist(ctx, func() error { return p.journal.missing(p.calls) })
	err = ctx.Err()
	answers.Wait()
	stop()
	return errors.Join(err, <-running)
}

func orElse(d *time.Duration, other time.Duration) {
	if *d == 0 {
		*d = other
	}
}

func start(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

// insist repeats do until it succeeds, as peers do.
func (p peer) insist(ctx context.Context, do func() error) {
	for do() != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// journal is a file that records external effects, such as that an operation ran.
type journal struct{ file string }

func (j *journal) write(line string) {
	f, err := os.OpenFile(j.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		panic(err)
	}
}

// facts are the recorded effects of a call.
type facts struct {
	asked   bool // the peer was asked
	runs    int
	endings []string // that were reported to the peer
}

func (j *journal) facts() (map[string]facts, error) {
	out := map[string]facts{}
	f, err := os.Open(j.file)
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		id, ending, _ := strings.Cut(rest, " ")
		now := out[id]
		switch what {
		case "ask":
			now.asked = true
		case "run":
			now.runs++
		case "end":
			now.endings = append(now.endings, ending)
		}

		out[id] = now
	}

	return out, nil
}

// missing returns an error if a call has no ending yet.
func (j *journal) missing(calls []string) error {
	all, err := j.facts()
	for _, id := range calls {
		if len(all[id].endings) == 0 {
			err = errors.Join(err, fmt.Errorf("%s has no ending", id))
		}
	}
	return err
}

// check reports calls that ran twice, have no ending or different ones, or an ending that is
// not true.
func (j *journal) check(t *testing.T, calls []string, when string) {
	t.Helper()
	all, err := j.facts()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range calls {
		f := all[id]
		if f.runs > 1 {
			t.Errorf("%s: %s ran %d times", when, id, f.runs)
		}
		if len(f.endings) == 0 {
			t.Errorf("%s: %s has no ending", when, id)
		}
		for _, ending := range f.endings {
			if ending != f.endings[0] {
				t.Errorf("%s: %s ended as %q and as %q", when, id, f.endings[0], ending)
			}
			if wrong := f.untrue(id, ending); wrong != "" {
				t.Errorf("%s: %s was told %q, %s", when, id, ending, wrong)
			}
		}
	}
}

// untrue returns what is wrong with an ending, or an empty string.
func (f facts) untrue(id, ending string) string {
	refused := strings.HasPrefix(id, Refused)
	switch {
	case ending == Ran+"done "+id && f.runs == 0:
		return "and never ran"
	case ending == Ran+"done "+id && !refused:
		return ""
	case ending == Unknown && !refused:
		return ""
	case refused && f.runs == 0 && !strings.HasPrefix(ending, Ran) && ending != Unknown:
		return ""
	}

	return fmt.Sprintf("and ran %d times", f.runs)
}
