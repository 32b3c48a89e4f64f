package filestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// The test binary, run with the directory in this variable, is another process that saves.
const (
	childDir   = "FILESTORE_TEST_DIR"
	childSaves = 15
)

var errNoChild = errors.New("this is the parent")

func TestMain(m *testing.M) {
	run := func() error { return errNoChild }
	if dir := os.Getenv(childDir); dir != "" {
		run = func() error { return child(dir) }
	}
	if text := os.Getenv(childLife); text != "" {
		run = func() error { return live(text) }
	}
	switch err := run(); {
	case errors.Is(err, errNoChild):
		os.Exit(runIn(m))
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child increments the counter and prints each revision that it saved, until it is done or
// killed.
func child(dir string) error {
	s, err := New(dir)
	if err != nil {
		return err
	}
	for range childSaves {
		n, err := countUp(context.Background(), s)
		if err != nil {
			return err
		}
		fmt.Println(n)
	}

	return nil
}

// childFolder is the environment variable with the directory in which the children's binary is
// built.
const childFolder = "FILESTORE_TEST_BIN"

// runIn runs the tests with a folder for the children's binary.
func runIn(m *testing.M) int {
	dir, err := os.MkdirTemp("", "filestore-children")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv(childFolder, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// childBinary builds this test again without the race detector. The children are killed
// hundreds of times, and the test looks for races between processes, not inside of them.
// Starting them takes most of the time.
var childBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv(childFolder), "child.test")
	if out, err := exec.Command("go", "test", "-c", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the children: %w\n%s", err, out)
	}
	return path, nil
})

func start(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner, *strings.Builder) {
	t.Helper()
	child := must.Get(childBinary())(t)
	cmd := exec.Command(child)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	problems := &strings.Builder{}
	cmd.Stderr = problems
	must.Do(t, cmd.Start())
	return cmd, bufio.NewScanner(out), problems
}

func TestManyProcesses(t *testing.T) {
	s := newStore(t)
	const savers = 4
	wins := make(chan int64, savers*childSaves)
	done := make(chan string, savers)
	for range savers {
		cmd, lines, problems := start(t, s.dir)
		go func() {
			for lines.Scan() {
				var n int64
				if _, err := fmt.Sscan(lines.Text(), &n); err == nil {
					wins <- n
				}
			}

			if err := cmd.Wait(); err != nil {
				done <- err.Error() + ": " + problems.String()
				return
			}
			done <- ""
		}()
	}

	for range savers {
		if problem := <-done; problem != "" {
			t.Error(problem)
		}
	}
	close(wins)
	checkWins(t, s, wins, savers*childSaves)
}

// TestKilled kills a saving process repeatedly, each time a little later in its work. Every
// save that it reported must exist, and saving must still work.
func TestKilled(t *testing.T) {
	s := newStore(t)
	var last int64
	for i := range 20 {
		cmd, lines, _ := start(t, s.dir)
		for range i%3 + 1 {
			if !lines.Scan() {
				t.Fatal("the saver ended early")
			}
			must.Get(fmt.Sscan(lines.Text(), &last))(t)
		}

		must.Do(t, cmd.Process.Kill())
		for lines.Scan() { // its output before it died
			must.Get(fmt.Sscan(lines.Text(), &last))(t)
		}
		_ = cmd.Wait() // returns an error because the process was killed
		th := mustLoad(t, s, "a")
		if th.Revision < last || string(th.State["count"]) != fmt.Sprint(th.Revision) {
			t.Fatalf("revision %d with count %s after %d was saved", th.Revision, th.State["count"], last)
		}
	}

	mustSave(t, s, mustLoad(t, s, "a"))
	if got := files(t, s, "a"); len(got) > 4 {
		t.Errorf("files pile up: %v", got)
	}
}
