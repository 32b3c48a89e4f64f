package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mustRun runs a command in this process, and wants it to go well.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := ran("", args...)
	if code != 0 {
		t.Fatalf("assent %q ended with %d\n%s%s", args, code, out, errOut)
	}

	return out
}

// askedAndApproved makes a call of a gateway that asks, and approves it as a person. The call is
// not made again.
func askedAndApproved(t *testing.T, file string) (request string) {
	t.Run("asked and approved", func(t *testing.T) {
		c := startMCP(t, "--config", file)
		pending := c.call("write_file", `{"path":"/a"}`, "Not run yet.")
		approveIn(t, inboxOf(t, "--config", file), pending)
		c.end(c.in.Close)
		request = regexp.MustCompile(`apr_[0-9a-z]+`).FindString(pending)
	})
	return request
}

// TestMCPRestoreRunsNothingTwice: what was approved in a backup may have
// run since.
func TestMCPRestoreRunsNothingTwice(t *testing.T) {
	dir, file := mcpDir(t)
	store := filepath.Join(dir, "mcp.db")
	backup := filepath.Join(dir, "approved.backup")
	before := askedAndApproved(t, file)
	mustRun(t, "backup", "--store", store, "--to", backup)
	t.Run("it runs", func(t *testing.T) {
		c := startMCP(t, "--config", file)
		c.call("write_file", `{"path":"/a"}`, "done")
		c.end(c.in.Close)
	})

	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(store + end); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	out := mustRun(t, "restore", "--store", store, "--from", backup)
	if !strings.Contains(out, "1 calls of RAP and MCP on their way ended") {
		t.Errorf("restore says\n%s", out)
	}

	t.Run("it asks anew", func(t *testing.T) {
		c := startMCP(t, "--config", file)
		if again := c.call("write_file", `{"path":"/a"}`, "Not run yet."); strings.Contains(again, before) {
			t.Errorf("the approval of the backup is still there: %s", again)
		}

		c.end(c.in.Close)
	})
	if n := callsIn(t, dir, "write_file"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// TestMCPCallsOutliveAnotherKey: who rotates the key loses no call.
func TestMCPCallsOutliveAnotherKey(t *testing.T) {
	dir, file := mcpDir(t)
	askedAndApproved(t, file)
	key := filepath.Join(dir, "next.key")
	mustRun(t, "key", "rotate", "--store", filepath.Join(dir, "mcp.db"), "--new-key", key)
	writeFiles(t, dir, map[string]string{"gateway.yaml": filesConfig + "key: next.key\n"})
	c := startMCP(t, "--config", file)
	c.call("write_file", `{"path":"/a"}`, "done")
	c.end(c.in.Close)
	if n := callsIn(t, dir, "write_file"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
