package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

// TestHookGuide runs the commands of the page for a user without any files. Between install and
// uninstall it does what the product and the user do.
func TestHookGuide(t *testing.T) {
	const page = "../../docs/guides/coding-agents.md"
	text, err := os.ReadFile(page)
	must.Do(t, err)
	home := t.TempDir()
	block := regexp.MustCompile("(?s)```console\n(.*?)```")
	worked := false
	fresh := block.ReplaceAllStringFunc(string(text), func(all string) string {
		out := guideBlock(t, home, block.FindStringSubmatch(all)[1])
		if strings.Contains(out, "hook install") && !worked {
			worked = true
			guideWork(t, home)
		}
		return "```console\n" + out + "```"
	})
	switch {
	case fresh == string(text):
	case !golden.Update():
		t.Errorf("the guide shows other output than its commands print, -update mends it:\n%s", fresh)
	default:
		must.Do(t, os.WriteFile(page, []byte(fresh), 0o644))
	}
}

// guideBlock runs the commands of a block, and returns it with what they
// print.
func guideBlock(t *testing.T, home, block string) string {
	t.Helper()
	program, err := exec.LookPath("assent")
	must.Do(t, err)
	top, err := filepath.Abs("../..")
	must.Do(t, err)
	places := strings.NewReplacer(program, "/usr/local/bin/assent", home, "/home/you", top, "/home/you/assent")
	var out strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		cmd := exec.Command("bash", "-c", command)
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.Dir = top
		cmd.Stderr = t.Output()
		said, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, said)
		}
		out.WriteString(line + golden.WholeLines(places.Replace(string(said))))
	}

	return out.String()
}

// guideWork starts what the settings say as the product does: reading
// runs, writing outside runs when the person has approved it.
func guideWork(t *testing.T, home string) {
	t.Helper()
	text, err := os.ReadFile(hookSettings(home, "claude-code"))
	must.Do(t, err)
	line := settingsCommand(t, strings.ReplaceAll(string(text), "9m0s", "0s"))
	work := t.TempDir()
	does := func(tool, args string) said {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Stdin = strings.NewReader(strings.Replace(hookDocs()["claude-code"](callOf(tool, args)), `"/w"`,
			strconv.Quote(work), 1))
		h := ends(t, cmd)
		if h.code != 0 {
			t.Fatal(h)
		}
		return hookSays(t, "claude-code", h.out)
	}

	if got := does("Read", `{"file_path":"a"}`); got != noOpinion() {
		t.Errorf("reading: %+v", got)
	}
	asked := does("Write", `{"file_path":"/a","content":"x"}`)
	if asked.word != "deny" || !strings.HasPrefix(asked.why, "Not run yet.") {
		t.Errorf("writing: %+v", asked)
	}
	agents := filepath.Join(home, "agents")
	approveIn(t, inboxOn(t, "hook", "--agent-file", filepath.Join(agents, "claude-code.agf.yaml"),
		"--decisions", filepath.Join(agents, "decisions.yaml")), asked.why)
	if got := does("Write", `{"file_path":"/a","content":"x"}`); got.word != "allow" {
		t.Errorf("writing, once it was approved: %+v", got)
	}
}
