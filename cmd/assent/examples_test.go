package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

// TestExamplesAreDecidedAsRecorded runs what examples/README.md says.
func TestExamplesAreDecidedAsRecorded(t *testing.T) {
	t.Chdir(testfiles.Root(t))
	for name, trusted := range map[string][]string{
		"trading-desk":      nil,
		"platform-operator": {"metrics", "database"},
		"customer-support":  nil,
	} {
		folder := "examples/" + name
		args := []string{
			"decide",
			"--agent",
			folder + "/agent.agf.yaml",
			"--policies",
			folder + "/policies",
			"--call",
			folder + "/calls.jsonl",
		}
		for _, server := range trusted {
			args = append(args, "--trust-server", server)
		}
		want, err := os.ReadFile(folder + "/decisions.jsonl")
		must.Do(t, err)
		var out, errs bytes.Buffer
		code := program{Streams: term.Streams{Out: &out, Err: &errs}}.Run(args)
		if code != term.ExitOK || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("assent decide on %s: exit %d, and not the recorded decisions\n%s", name, code, &errs)
		}
	}
}
