package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	command "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// victimFile names the database of a process that writes records until
// it is killed.
const victimFile = "ASSENT_TEST_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		fmt.Println("failed:", write(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const victims = 16

// write puts each of its records again and again, and prints each one after it is stored.
func write(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for w := range victims {
		go func() {
			r := store.Record{Namespace: "calls", Key: strconv.Itoa(w)}
			old, err := s.Record(ctx, r.Namespace, r.Key)
			for r.Version = old.Version; err == nil ||
				errors.Is(err, approval.ErrNotFound); fmt.Printf("%s %d\n", r.Key, r.Version) {
				r.Value = []byte(strings.Repeat(strconv.FormatInt(r.Version+1, 10)+" ", 200))
				if r.Version, err = s.PutRecord(ctx, r); err != nil {
					break
				}
			}

			errs <- err
		}()
	}

	return <-errs
}

// TestKilled kills a process in the middle of its writes, several times. Everything that
// was reported as stored must be there, complete, plus at most one unreported change of
// each writer.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	told := map[string]int64{}
	for round := range 5 {
		for key, version := range killed(t, path, 200+100*round) {
			told[key] = version
		}
		s := must.Get(open(t, path)())(t)
		for key, version := range told {
			r, err := s.Record(t.Context(), "calls", key)
			if err != nil || r.Version != version && r.Version != version+1 {
				t.Fatalf("version %d of %s was stored, and now there is %d (%v)", version, key, r.Version, err)
			}
			if want := strings.Repeat(strconv.FormatInt(r.Version, 10)+" ", 200); string(r.Value) != want {
				t.Fatalf("version %d of %s holds %.30q", r.Version, key, r.Value)
			}
		}

		must.Do(t, s.Close())
	}
}

// killed runs a process that writes, kills it after some changes, and returns the versions
// that it reported.
func killed(t *testing.T, path string, after int) map[string]int64 {
	t.Helper()
	cmd := command.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimFile+"="+path)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	told := map[string]int64{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		key, number, _ := strings.Cut(lines.Text(), " ")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			break // the line was cut off, or is an error
		}
		told[key] = version
		if n == after {
			must.Do(t, cmd.Process.Kill())
		}
	}

	if err := cmd.Wait(); err == nil || len(told) == 0 || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("it should have been killed: %v, %q", err, lines.Text())
	}
	return told
}
