package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

func last(id string) string { return id[len(id)-6:] }

// TestApproveAsksForTheID: nothing but the last characters of this id
// approves (threat 13).
func TestApproveAsksForTheID(t *testing.T) {
	h := start(t, "")
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	for _, typed := range []string{"", "\n", "y\n", "yes\n", last(r.ID), "\n" + last(r.ID) + "\n"} {
		if typed == last(r.ID) {
			typed = strings.ToUpper(typed) + "\n"
		}
		holds(t, h.types(t, typed, "alice", term.ExitNo, "approve", r.ID), "stopped: nothing was done")
	}

	approved := h.types(t, last(r.ID)+"\n", "alice", term.ExitOK, "approve", r.ID)
	holds(t, approved, "approved: it may run now, once")
	now := h.request(t, r.ID)
	if now.State != approval.Approved || len(now.Votes) != 1 || !now.Votes[0].Full || now.GrantID != "" {
		t.Errorf("%+v", now)
	}
}

// TestLongCallIsNotShownFully: what was left out can't be approved;
// with --all it is shown and can. More than a megabyte never can.
func TestLongCallIsNotShownFully(t *testing.T) {
	h := start(t, "")
	many := h.ask(t, `{"kind":"tool","tool":"trade","args":{"list":[`+strings.Repeat("1,", 5000)+`1]}}`)
	wide := h.ask(t, `{"kind":"tool","tool":"trade","args":{"text":"`+strings.Repeat("a b ", 5000)+`"}}`)
	huge := h.ask(t, `{"kind":"tool","tool":"trade","args":{"text":"`+strings.Repeat("x", 1<<20)+`"}}`)
	for _, r := range []*approval.Request{many, wide} {
		typed := last(r.ID) + "\n"
		holds(t, h.types(t, typed, "alice", term.ExitNo, "approve", r.ID), "left out here: --all shows them")
		h.types(t, typed, "alice", term.ExitOK, "approve", "--all", r.ID)
	}

	refused := h.types(t, last(huge.ID)+"\n", "alice", term.ExitNo, "approve", "--all", huge.ID)
	if !strings.Contains(refused, "can't be approved, only denied") {
		t.Error("more than a megabyte is refused for another reason")
	}
}

// TestBrokenTerminalApprovesNothing: what could not be printed was not shown.
func TestBrokenTerminalApprovesNothing(t *testing.T) {
	h := start(t, "")
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	h.breaks(t, last(r.ID)+"\n", "approve", r.ID, "--yes", "--binding", r.Binding())
	if now := h.request(t, r.ID); now.State != approval.Pending || len(now.Votes) != 0 {
		t.Errorf("%+v", now)
	}
}

// TestEditInEditor: the arguments go through a file that only its owner
// reads, and the change is shown before it is asked for.
func TestEditInEditor(t *testing.T) {
	h := start(t, "")
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"amount":20000}}`)
	editor := filepath.Join(h.dir, "editor.sh")
	script := "#!/bin/sh\nstat -c 'mode %a' \"$2\" >\"$1\"\nsed -i s/20000/9000/ \"$2\"\n"
	must.Do(t, os.WriteFile(editor, []byte(script), 0o700))
	modes := filepath.Join(h.dir, "modes")
	in, typed, err := os.Pipe() // as a terminal: the editor gets it as it is, and leaves what it does not read
	must.Do(t, err)
	defer in.Close()
	if _, err := typed.WriteString(last(r.ID) + "\n"); err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	screen := &terminal{in: in, env: map[string]string{"EDITOR": editor + " " + modes}}
	if code := h.run(t, screen, "alice", "edit", r.ID, "--reason", "limit"); code != term.ExitOK {
		t.Fatalf("exit %d\n%s", code, screen.out.String())
	}
	if mode, err := os.ReadFile(modes); err != nil || string(mode) != "mode 600\n" {
		t.Errorf("%q, %v", mode, err)
	}
	now := h.request(t, r.ID)
	if now.State != approval.Approved || !strings.Contains(string(now.Current().Call.Args), "9000") {
		t.Errorf("%+v", now)
	}
	r = h.ask(t, `{"kind":"tool","tool":"trade","args":{"amount":1}}`)
	for editor, want := range map[string]string{"true": "were not changed", "false": "the editor false"} {
		screen = &terminal{env: map[string]string{"VISUAL": editor}}
		if code := h.run(t, screen, "alice", "edit", r.ID); code == term.ExitOK ||
			!strings.Contains(screen.out.String(), want) {
			t.Errorf("%s: exit %d\n%s", editor, code, screen.out.String())
		}
	}
}

// TestHiddenValues: what a policy hides, the terminal hides, and says
// so; an editor is not opened on it.
func TestHiddenValues(t *testing.T) {
	h := start(
		t,
		`schema_version: "1.0.0"
policy_ref: acme.hide
applies: implicit
rules: [{id: hide, match: {targets: [trade]}, approval: true, require: {arguments: {redact: [secret, deep.inner, list.1]}}}]
`,
	)
	r := h.ask(
		t,
		`{"kind":"tool","tool":"trade","args":{"n":1,"secret":"hunter2","deep":{"inner":"hunter3","outer":1},`+
			`"list":["a","hunter4"]}}`,
	)
	got := h.prints(t, "alice", term.ExitOK, "show", r.ID)
	if arguments, _, _ := strings.Cut(got, "Message"); strings.Contains(arguments, "hunter") ||
		!strings.Contains(got, "3 values are hidden by policy") ||
		!strings.Contains(got, `"outer": 1`) {
		t.Errorf("%s", got)
	}
	screen := &terminal{env: map[string]string{"EDITOR": "cat"}}
	if code := h.run(t, screen, "alice", "edit", r.ID); code != term.ExitFailure ||
		strings.Contains(screen.out.String(), "hunter") {
		t.Errorf("exit %d\n%s", code, screen.out.String())
	}
}

// TestWatchOnATerminal walks through the live inbox with keys.
func TestWatchOnATerminal(t *testing.T) {
	h := start(t, "")
	in, keys := io.Pipe()
	screen := &terminal{in: in}
	ended := make(chan int, 1)
	go func() { ended <- h.run(t, screen, "alice", "watch") }()
	screen.saw(t, "0 wait for an answer")
	first := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	screen.saw(t, "> …"+last(first.ID))
	second := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":2}}`)
	screen.saw(t, last(second.ID))
	typed := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			t.Error(err)
		}
	}
	typed("j")
	screen.saw(t, "> …"+last(second.ID))
	typed("a")
	screen.saw(t, "To approve "+second.ID)
	typed(last(first.ID) + "\n") // of the other one
	screen.saw(t, "stopped: nothing was done")
	typed("\n")
	typed("x\x1b[A") // keys that mean nothing
	typed("a")
	typed(last(second.ID) + "\n")
	screen.saw(t, "approved: it may run now, once")
	typed("\n")
	typed("d")
	screen.saw(t, "write the reason")
	typed("no need\n")
	screen.saw(t, "denied: it will not run")
	typed("\nq")
	if code := <-ended; code != term.ExitOK {
		t.Errorf("exit %d\n%s", code, screen.out.String())
	}
	for id, state := range map[string]approval.State{first.ID: approval.Denied, second.ID: approval.Approved} {
		if r := h.request(t, id); r.State != state || r.Votes[0].Channel != "watch" {
			t.Errorf("%+v", r)
		}
	}
}

// TestNoColor: colour is for terminals that want it.
func TestNoColor(t *testing.T) {
	h := start(t, "")
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{{nil, true}, {map[string]string{"NO_COLOR": "1"}, false}, {map[string]string{"TERM": "dumb"}, false}} {
		screen := &terminal{env: tt.env}
		h.run(t, screen, "alice", "show", r.ID)
		if got := strings.Contains(screen.out.String(), "\x1b["); got != tt.want {
			t.Errorf("%v: colour %t", tt.env, got)
		}
	}
}

// ours are the control sequences that the command itself writes:
// styles, and clearing the screen.
var ours = regexp.MustCompile(`\x1b\[(\d+m|H|2J)|\r\n`)

// unforged checks that no data controls the terminal or begins a line
// that looks like one of ours. It returns the output without our own
// control sequences.
func unforged(t *testing.T, args []string, screen *terminal, lines ...string) string {
	t.Helper()
	got := ours.ReplaceAllString(screen.out.String(), "")
	for _, c := range got {
		tab := c == '\t' && args[0] == "__complete"
		if c != '\n' && !tab &&
			(c < ' ' || c >= 0x7f && c < 0xa0 ||
				strings.ContainsRune("\u202e\u202c\u200b\u200d\u2060\ufeff\u2028\u2029\U000e0041", c)) {
			t.Errorf("%q shows %U:\n%q", args, c, got)
			break
		}
	}

	for line := range strings.Lines(got) {
		for _, forged := range lines {
			if strings.HasPrefix(line, forged) {
				t.Errorf("%q: a line was forged:\n%s", args, got)
			}
		}
	}

	return got
}

// TestHostileData: no command lets any byte of the data control the terminal or forge a line
// (threats 3 to 5).
func TestHostileData(t *testing.T) {
	h := start(t, `schema_version: "1.0.0"
policy_ref: acme.desk
applies: implicit
rules: [{id: r, match: {targets: [trade]}, approval: {message_template: "Trade {{tool_args}} now?"}}]
`)
	evil := []string{
		`\u001b[2J\u001b[31mAPPROVED`,
		`\u001b]8;;http://evil.example\u0007click\u001b]8;;\u0007`,
		`\u001b]52;c;ZXZpbA==\u0007`,
		`\u009b31m`,
		`\u202egnp.exe\u202c`,
		`\u200b\u200d\u2060\ufeff`,
		"\\udb40\\udc41",
		`line\nassent: approved\r\n\u2028\u2029\u0085x`,
		`\b\b\b\u007f`,
		strings.Repeat(" ", 200) + "tail",
		"\u202eraw\u200b\u009b2J",
		"e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
	}
	var ids []string
	for _, text := range evil {
		r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"`+text+`":"`+text+`"},"principal":"mara","session":"s"}`)
		ids = append(ids, r.ID)
	}

	runs := [][]string{
		{"list", "--state", "all"},
		{"stats"},
		{"watch", "--lines", "--after", "-1", "--until", "request_opened"},
		{"grants"},
		{"token", "list"},
		{"deliveries"},
	}
	for _, id := range ids {
		runs = append(
			runs,
			[]string{"show", id},
			[]string{"show", id, "--all"},
			[]string{"show", id, "--json"},
			[]string{"approve", id},
			[]string{"edit", id, "--args", h.file(t, "{}"), "--preview"},
		)
	}

	decoded := "\x1b[2J\u202e\u200b\u009b31m\nassent: approved\r"
	runs = append(
		runs,
		[]string{"deny", ids[0], "--reason", decoded},
		[]string{"show", ids[0]},
		[]string{"respond", ids[1], decoded},
		[]string{"show", ids[1]},
		[]string{"show", ids[1], "--json"},
		[]string{"list", "--json", "--state", "all"},
		[]string{"freeze", "--agent", "desk", "--reason", "\u202e\u009b2J"},
		[]string{"thaw", "--agent", "desk"},
		[]string{"show", decoded},
		[]string{"list", "--server", "http://" + decoded},
		[]string{"audit", "checkpoint"},
		[]string{"audit", "proof", "3"},
		[]string{"backup", "--store", decoded, "--to", "x"},
		[]string{"audit", "verify", decoded},
		[]string{"watch", "--json", "--after", "-1", "--until", "frozen"},
		[]string{"approve", ids[2], "--yes", "--binding", "sha256:" + decoded + decoded},
		[]string{"revoke", decoded},
		[]string{decoded},
		[]string{"serve", "--agents", decoded},
	)
	for _, args := range runs {
		screen := &terminal{}
		h.run(t, screen, "alice", args...)
		if got := unforged(t, args, screen, "assent: approved", "tail"); got == "" && args[0] != "edit" {
			t.Errorf("%q printed nothing", args)
		}
	}
}

// file writes a file and returns its name.
func (h *testServer) file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testfiles.Write(t, path, text)
	return path
}
