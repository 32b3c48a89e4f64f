package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testbin"
)

// The maximum size of the validator, because every job that checks a file downloads it.
const (
	mostPackages = 195
	mostBytes    = 13_700_000 // a megabyte of it is the time zones and the tables of international host names
)

// static runs the go command as make build does.
func static(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}

	return string(out)
}

// TestLinksOnlyWhatChecksFiles: the validator links no server, client, store or protocol. It runs
// another program for one purpose: `diff` runs git to read revisions.
func TestLinksOnlyWhatChecksFiles(t *testing.T) {
	const ours = "github.com/assent-dev/assent/"
	linked := strings.Fields(static(t, "list", "-deps", "."))
	if len(linked) >= mostPackages {
		t.Errorf("agf-validate links %d packages, expected fewer than %d", len(linked), mostPackages)
	}
	for _, path := range linked {
		for _, forbidden := range []string{
			"net/http", "crypto/tls", "database/sql", "log/slog",
			ours + "store", ours + "client", ours + "server", ours + "rap", ours + "agent",
			ours + "approval/ledger", ours + "approval/hold",
		} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				t.Errorf("agf-validate links %s", path)
			}
		}

		if path == ours+"approval" {
			t.Errorf("agf-validate links %s: people.yaml is read without it", path)
		}
	}
}

func TestBinaryIsSmall(t *testing.T) {
	info, err := os.Stat(testbin.Path(t, "cmd/agf-validate"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= mostBytes {
		t.Errorf("agf-validate has %d bytes, expected fewer than %d", info.Size(), mostBytes)
	}
}
