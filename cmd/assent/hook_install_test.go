package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
)

// hookSettings returns the file in which a product has its hooks.
func hookSettings(home, product string) string {
	return filepath.Join(home, map[string]string{
		"claude-code": ".claude/settings.json",
		"codex":       ".codex/hooks.json",
		"copilot":     ".copilot/hooks/assent.json",
		"cursor":      ".cursor/hooks.json",
		"gemini":      ".gemini/settings.json",
	}[product])
}

// inHome returns a command of a person with a home directory of their own.
func inHome(ctx context.Context, home string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "assent", args...)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Dir = home

	return cmd
}

// settingsCommand returns the command that a product starts according to its settings: a program
// with arguments, or a line for a shell.
func settingsCommand(t *testing.T, text string) []string {
	t.Helper()
	var doc struct {
		Hooks map[string][]map[string]any `json:"hooks"`
	}
	must.Do(t, json.Unmarshal([]byte(text), &doc))
	for _, list := range doc.Hooks {
		handler := list[0]
		if group, ok := handler["hooks"].([]any); ok {
			handler = group[0].(map[string]any)
		}
		args, apart := handler["args"].([]any)
		if line, ok := handler["bash"].(string); ok {
			return []string{"bash", "-c", line}
		}
		if !apart {
			return []string{"sh", "-c", handler["command"].(string)}
		}
		out := []string{handler["command"].(string)}
		for _, arg := range args {
			out = append(out, arg.(string))
		}
		return out
	}

	t.Fatalf("no hook in %s", text)

	return nil
}

// TestHookInstallWritesLinesThatAnswer: what the settings say is started
// as the product starts it, from another directory, with a path that a
// shell would cut.
func TestHookInstallWritesLinesThatAnswer(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		home := filepath.Join(t.TempDir(), "it's a $HOME")
		must.Do(t, os.Mkdir(home, 0o755))
		writeFiles(t, home, map[string]string{"dev.agf.yaml": devAgent})
		h := ends(t, inHome(t.Context(), home, "hook", "install", product, "--agent-file", "dev.agf.yaml", "--yes"))
		if h.code != 0 {
			t.Fatal(h)
		}
		if h = ends(t, inHome(t.Context(), home, "hook", "status", product)); h.code != 0 {
			t.Errorf("status: %+v", h)
		}

		text, err := os.ReadFile(hookSettings(home, product))
		must.Do(t, err)
		line := settingsCommand(t, string(text))
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = t.TempDir()
		cmd.Stdin = strings.NewReader(doc(callOf("Read", `{"path":"/a"}`)))
		h = ends(t, cmd)
		if h.code != 0 || hookSays(t, product, h.out) != noOpinion() {
			t.Errorf("%v: %+v", line, h)
		}
	})
}

// TestHookInstallGently: the settings have the event in the place of a
// dialog, and their line answers it.
func TestHookInstallGently(t *testing.T) {
	home := t.TempDir()
	writeFiles(t, home, map[string]string{"dev.agf.yaml": devAgent})
	for _, product := range []string{"claude-code", "codex", "copilot"} {
		h := ends(t, inHome(t.Context(), home,
			"hook", "install", product, "--gentle", "--agent-file", "dev.agf.yaml", "--yes"))
		if h.code != 0 {
			t.Fatal(h)
		}
		h = ends(t, inHome(t.Context(), home, "hook", "status", product))
		if h.code != 0 || !strings.Contains(h.out, "allow run without the hook") {
			t.Errorf("status: %+v", h)
		}

		text, err := os.ReadFile(hookSettings(home, product))
		if err != nil || !strings.Contains(string(text), `"PermissionRequest": [`) ||
			strings.Contains(string(text), `reToolUse": [`) {
			t.Errorf("%s (%v)", text, err)
		}
		line := settingsCommand(t, string(text))
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Stdin = strings.NewReader(`{"session_id":"s","cwd":"/w","hook_event_name":"PermissionRequest",` +
			`"tool_name":"Delete","tool_input":{"path":"/a"}}`)
		if h = ends(t, cmd); h.code != 0 || !strings.Contains(h.out, `"behavior":"deny"`) {
			t.Errorf("%v: %+v", line, h)
		}
	}
}

// TestHookInstallReadsTheAgentsFile: an agent's file that a hook can't use is refused before
// anything is written, and reported by status if it breaks later.
func TestHookInstallReadsTheAgentsFile(t *testing.T) {
	home := t.TempDir()
	writeFiles(t, home, map[string]string{"dev.agf.yaml": strings.Replace(devAgent, "alias: Read", "name: Read", 1)})
	install := []string{"hook", "install", "codex", "--agent-file", "dev.agf.yaml", "--yes"}
	h := ends(t, inHome(t.Context(), home, install...))
	if h.code != 2 || !strings.Contains(h.err, `missing field "alias"`) {
		t.Errorf("a broken file: %+v", h)
	}
	if left, err := filepath.Glob(filepath.Join(home, ".c*")); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}

	writeFiles(t, home, map[string]string{"dev.agf.yaml": devAgent})
	if h = ends(t, inHome(t.Context(), home, install...)); h.code != 0 {
		t.Fatal(h)
	}
	writeFiles(t, home, map[string]string{"dev.agf.yaml": "{"})
	h = ends(t, inHome(t.Context(), home, "hook", "status", "codex"))
	if h.code != 1 || !strings.Contains(h.out, "problem: every call is blocked: ") {
		t.Errorf("status: %+v", h)
	}
}

// TestHookInstallsAtOnce: many processes install and uninstall different hooks in one file and in
// its directory. All succeed, and the file is valid in the end.
func TestHookInstallsAtOnce(t *testing.T) {
	home := t.TempDir()
	const before = "{\n  \"model\": \"mine\"\n}\n"
	must.Do(t, os.Mkdir(filepath.Join(home, ".claude"), 0o755))
	writeFiles(t, home, map[string]string{".claude/settings.json": before})
	var all sync.WaitGroup
	for _, wait := range []string{"1m", "2m", "3m", "4m"} {
		for _, product := range []string{"claude-code", "gemini"} {
			all.Go(func() {
				install := []string{"hook", "install", product, "--agent", "dev", "--wait", wait, "--yes"}
				h := ends(t, inHome(t.Context(), home, install...))
				if h.code != 0 {
					t.Errorf("%s: %+v", product, h)
				}
			})
		}
	}

	all.Wait()

	text, err := os.ReadFile(hookSettings(home, "claude-code"))
	if err != nil || strings.Count(string(text), `"claude-code"`) != 5 {
		t.Errorf("the file is %s (%v)", text, err)
	}
	h := ends(t, inHome(t.Context(), home, "hook", "uninstall", "claude-code", "--yes"))
	if text, err = os.ReadFile(hookSettings(home, "claude-code")); err != nil || string(text) != before {
		t.Errorf("after uninstall (%+v) the file is %s (%v)", h, text, err)
	}
}

// TestHookInstallSurvivesKills: whenever the process is killed, the file
// is the old one or the new one, whole, and the next install and
// uninstall end as ever.
func TestHookInstallSurvivesKills(t *testing.T) {
	home := t.TempDir()
	file := hookSettings(home, "claude-code")
	const before = "{\n  \"model\": \"mine\"\n}\n"
	must.Do(t, os.Mkdir(filepath.Dir(file), 0o755))
	writeFiles(t, home, map[string]string{".claude/settings.json": before})
	install := []string{"hook", "install", "claude-code", "--agent", "dev", "--yes"}
	uninstall := []string{"hook", "uninstall", "claude-code", "--yes"}
	start := time.Now()
	if h := ends(t, inHome(t.Context(), home, install...)); h.code != 0 {
		t.Fatal(h)
	}
	whole := time.Since(start)
	after, err := os.ReadFile(file)
	must.Do(t, err)

	killed := 0
	for round := range 40 {
		cmd := inHome(t.Context(), home, [][]string{uninstall, install}[round%2]...)
		must.Do(t, cmd.Start())
		// Neither tells anything but that the process has ended.
		deadly := time.AfterFunc(rand.N(whole+whole/4), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		deadly.Stop()
		if cmd.ProcessState.ExitCode() == -1 {
			killed++
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != before && string(text) != string(after) {
			t.Fatalf("round %d: the file is %q (%v)", round, text, err)
		}
	}

	t.Logf("%d of 40 were killed, of %s each", killed, whole)
	for _, step := range []struct {
		args []string
		want string
	}{{install, string(after)}, {uninstall, before}} {
		h := ends(t, inHome(t.Context(), home, step.args...))
		if text, err := os.ReadFile(file); h.code != 0 || err != nil || string(text) != step.want {
			t.Errorf("%v: %+v, the file is %q (%v)", step.args, h, text, err)
		}
	}

	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the file stand %v (%v)", left, err)
	}
}
