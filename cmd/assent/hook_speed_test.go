package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookLeavesAShortLogBesideItsStore: a hook leaves a short write-ahead log next to its database,
// because checkpointing it would delay each call. A long log is checkpointed and removed.
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
	call("Bash", shortLog)
	if info, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a call that makes it long: %v, %v", info, err)
	}
}
