package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint/replay"
)

// inRoot runs agf-validate in the root of the repository.
func inRoot(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	t.Chdir(testfiles.Root(t))
	var o, e bytes.Buffer
	code = program{Streams: term.Streams{In: strings.NewReader(""), Out: &o, Err: &e}}.Run(args)

	return o.String(), e.String(), code
}

func TestReplayContractNamesEveryFlag(t *testing.T) {
	testfiles.CheckFlags(t, "replay.md", planning{}.replayCommand().Flags().FlagUsages())
}

// TestReplayContractNamesEveryField: the page documents every field of the JSON format, and every
// form.
func TestReplayContractNamesEveryField(t *testing.T) {
	page := testfiles.Contract(t, "replay.md")
	out, errOut, code := inRoot(
		t,
		"replay", "--format", "json",
		"--agent", "docs/testdata/replay/new.agf.yaml",
		"--against-agent", "docs/testdata/replay/old.agf.yaml",
		"docs/testdata/replay/calls.jsonl",
	)
	if code != term.ExitOK {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(out, -1) {
		if !strings.Contains(page, "`"+m[1]+"`") && !strings.Contains(`kind tool args amount currency`, m[1]) {
			t.Errorf("the field %s is not in docs/contracts/replay.md", m[1])
		}
	}
	for _, word := range append(replay.Forms(), replay.Formats()...) {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("%s is not in docs/contracts/replay.md", word)
		}
	}
}

// TestReplayContractExample runs the example of the page.
func TestReplayContractExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```console\n\\$ agf-validate ([^\n]*)\n(.*?)```").
		FindStringSubmatch(testfiles.Contract(t, "replay.md"))
	if m == nil {
		t.Fatal("the page has no example")
	}
	out, errOut, code := inRoot(t, strings.Fields(m[1])...)
	if code != term.ExitOK || errOut != "" || out != m[2] {
		t.Errorf("exit %d\n%s\nthe page says\n%s%s", code, out, m[2], errOut)
	}
}

// TestReplayReadsWhatTheServiceWrites: the types of entries equal those of package approval, which
// agf-validate does not link.
func TestReplayReadsWhatTheServiceWrites(t *testing.T) {
	text, err := os.ReadFile("../../lint/replay/ledger.go")
	must.Do(t, err)
	for _, name := range []string{
		approval.EventAllowed, approval.EventDenied, approval.EventOpened, approval.EventEdited,
		approval.EventRequestDenied, approval.EventExpired, approval.EventCancelled, approval.EventAnswered,
		approval.EventConsumed, approval.EventPermitExpired, approval.EventGrantUsed, string(approval.ByLateDeny),
		string(approval.CodeCoolingDown),
	} {
		if !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("%s means nothing to a replay", name)
		}
	}
}
