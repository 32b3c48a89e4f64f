package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mostOfStart is how much more processor time an allowed call may take
// than to start and print the help: what else a call takes was more
// than twice that before it was cut.
const mostOfStart = 2.4

// TestHookTakesNotMuchMoreThanItsStart: it runs before every tool. Time
// of the processor is measured, and each call compared with the start
// right after it: what else the machine does, and how fast it is just
// then, changes both.
func TestHookTakesNotMuchMoreThanItsStart(t *testing.T) {
	flags := append([]string{"hook", "claude-code"}, hookDir(t)...)
	doc := hookDocs()["claude-code"](callOf("Read", `{"path":"/a"}`))
	const rounds = 21
	var ratios []float64
	for range rounds {
		call := hookTime(t, doc, flags...)
		ratios = append(ratios, float64(call)/float64(hookTime(t, "", "hook", "--help")))
	}

	slices.Sort(ratios)
	if median := ratios[rounds/2]; median > mostOfStart {
		t.Errorf("an allowed call takes %.2f times the processor of its start: expected %.1f", median, mostOfStart)
	}
}

// hookTime is what a command that ends well takes of the processor.
func hookTime(t *testing.T, in string, args ...string) time.Duration {
	t.Helper()
	cmd := exec.Command("assent", args...)
	cmd.Stdin = strings.NewReader(in)
	if out, err := cmd.Output(); err != nil || len(out) == 0 {
		t.Fatalf("%v: %v", args, err)
	}

	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// TestHookLeavesAShortLogBesideItsStore: to fold it into the store would
// hold up each call. A long one is folded.
func TestHookLeavesAShortLogBesideItsStore(t *testing.T) {
	flags := append(hookDir(t), "--wait", "0s")
	log := filepath.Join(filepath.Dir(flags[1]), "hook.db-wal")
	call := func(tool string, bytes int) {
		t.Helper()
		args := `{"text":"` + strings.Repeat("x", bytes) + `"}`
		h := hookRuns(t, "claude-code", hookDocs()["claude-code"](callOf(tool, args)), flags...)
		if h.code != 0 {
			t.Fatalf("%+v", h)
		}
	}

	call("Read", 1)
	if info, err := os.Stat(log); err != nil || info.Size() > shortLog {
		t.Errorf("after a short call: %v, %v", info, err)
	}
	call("Bash", 2*shortLog)
	if info, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a call that makes it long: %v, %v", info, err)
	}
}
