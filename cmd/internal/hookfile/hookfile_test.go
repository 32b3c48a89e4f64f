package hookfile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/settings"
)

// world is the home directory of a user whose current directory is in a project.
type world struct {
	t    *testing.T
	home string
	in   string // what a person types; empty: there is no terminal
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, home: t.TempDir()}
	w.write(w.path("dev.agf.yaml"), "# an agent\n")

	return w
}

// enter goes to the project.
func (w *world) enter() {
	w.write(w.path("work", "README"), "")
	w.t.Chdir(w.path("work"))
}

func (w *world) getenv(name string) string {
	return map[string]string{"HOME": w.home}[name]
}

// wants runs a command and fails the test unless it exits with the code and its output contains
// says.
func (w *world) wants(code int, says string, args ...string) string {
	w.t.Helper()
	got, out := w.run(args)
	if got != code || !strings.Contains(out, says) {
		w.t.Fatalf("%v: code %d, want %d with %q:\n%s", args, got, code, says, out)
	}
	if strings.Contains(out, "hushhush") {
		w.t.Errorf("%v shows a secret:\n%s", args, out)
	}

	return out
}

// run runs a command, and returns how it ended and all that it printed.
func (w *world) run(args []string) (int, string) {
	var out bytes.Buffer
	streams := term.Streams{
		In:          strings.NewReader(w.in),
		Out:         &out,
		Err:         &out,
		Env:         w.getenv,
		InTerminal:  w.in != "",
		OutTerminal: w.in != "",
	}
	all := Commands{config.Reader{Streams: streams}, func(config.MCP) ([]diag.Finding, error) { return nil, nil }}
	code := term.Run(term.Parent("hook", "", "", all.All()...), streams, args)

	return code, out.String()
}

// install installs the hook of a product that asks without a server.
func (w *world) install(product string, args ...string) string {
	w.t.Helper()

	return w.wants(0, "", w.installing(product, args...)...)
}

func (w *world) installing(product string, args ...string) []string {
	return append([]string{
		"install", product, "--yes", "--command", "/opt/bin/assent", "--agent-file", w.path("dev.agf.yaml"),
	}, args...)
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.home}, parts...)...)
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}

	return string(text)
}

// file returns the path of a product's settings file in a scope.
func (w *world) file(product, scope string) string {
	w.t.Helper()
	p, err := find(product)
	if err != nil {
		w.t.Fatal(err)
	}

	return p.file(edits.Place{OS: "linux", Getenv: w.getenv, Project: w.path("work")}, scope)
}

// same fails unless a file has a text.
func (w *world) same(path, want string) {
	w.t.Helper()
	if got := w.read(path); got != want {
		w.t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}

// everyProduct runs a test with each product in a world of its own.
func everyProduct(t *testing.T, test func(t *testing.T, w *world, product string)) {
	for _, p := range all() {
		t.Run(p.name, func(t *testing.T) { test(t, newWorld(t), p.name) })
	}
}

// TestInstallWritesSettings installs the hook of each product with and without existing settings.
// Uninstall must restore the file byte for byte.
func TestInstallWritesSettings(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		file := w.file(product, edits.User)
		w.install(product)
		shown := strings.ReplaceAll(w.read(file), w.home, "/home/you")
		golden.Equal(t, product+".new.json", shown)
		w.wants(0, "the file was made by install, and is gone", "uninstall", product, "--yes")
		left, err := filepath.Glob(w.path(".*"))
		if err != nil || len(left) != 1 || left[0] != w.path(".config") {
			t.Errorf("uninstall left %v (%v)", left, err)
		}

		before := w.read(testdata(product + ".before.json"))
		w.write(file, before)
		text := w.install(product)
		if !strings.Contains(text, "1 other hooks of") || !strings.Contains(text, `+`) {
			t.Errorf("no word of the hook beside it, or no change:\n%s", text)
		}
		golden.Equal(t, product+".after.json", strings.ReplaceAll(w.read(file), w.home, "/home/you"))
		w.wants(0, "byte for byte as it was", "uninstall", product, "--yes")
		w.same(file, before)
	})
}

func testdata(name string) string { return filepath.Join("testdata", name) }

// TestUninstallTakesOutTheHookAlone changes the file after the install.
func TestUninstallTakesOutTheHookAlone(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		file := w.file(product, edits.User)
		before := w.read(testdata(product + ".before.json"))
		w.write(file, before)
		w.install(product)
		w.write(file, strings.Replace(w.read(file), `"mine"`, `"changed"`, 1))
		w.wants(0, "the hook alone was taken out", "uninstall", product, "--yes")
		w.same(file, strings.Replace(before, `"mine"`, `"changed"`, 1))
		w.wants(1, "has no hook of assent: nothing is changed", "uninstall", product, "--yes")
	})
}

// TestInstallTakesThePlaceOfAnOlderHook replaces a hook written by install or by hand, repeatedly.
func TestInstallTakesThePlaceOfAnOlderHook(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		file := w.file(product, edits.User)
		before := w.read(testdata(product + ".before.json"))
		w.write(file, before)
		w.install(product)
		after := w.read(file)
		if text := w.install(product); !strings.Contains(text, "as it should be: nothing is changed") {
			t.Errorf("a second install says\n%s", text)
		}
		w.same(file, after)

		text := w.install(product, "--command", "/usr/local/bin/assent")
		if !strings.Contains(text, "takes the place of the hook of line") {
			t.Errorf("no word of the older hook:\n%s", text)
		}
		w.same(file, strings.ReplaceAll(after, "/opt/bin/", "/usr/local/bin/"))
		w.wants(0, "byte for byte as it was", "uninstall", product, "--yes")
		w.same(file, before)

		w.write(file, after) // there is no record of this one
		w.install(product, "--wait", "1m")
		w.wants(0, "byte for byte as it was", "uninstall", product, "--yes")
		w.same(file, before)
		w.write(file, after)
		w.wants(0, "the hook alone was taken out", "uninstall", product, "--yes")
		w.same(file, before)
	})
}

// TestInstallWritesFurtherEvents installs over an older install, which had a hook at the first
// event only. Uninstall must remove all of them, or the single one.
func TestInstallWritesFurtherEvents(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		file := w.file(product, edits.User)
		w.install(product)
		older := w.older(product)
		w.write(file, older)
		w.wants(1, "run install again, which writes it there", "status", product)
		w.install(product)
		w.wants(0, "as it should be: nothing is changed", w.installing(product)...)
		w.wants(0, "byte for byte as it was", "uninstall", product, "--yes")
		w.without(file)

		w.write(file, older)
		w.wants(0, "the hook alone was taken out", "uninstall", product, "--yes")
		w.without(file)
	})
}

// TestInstallGently replaces the hook before each call with one at the product's own question, and
// the other way round.
func TestInstallGently(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		p, err := find(product)
		must(t, err)
		if p.dialog == "" {
			w.wants(2, "has no event in the place of its own question", w.installing(product, "--gentle")...)
			return
		}
		file := w.file(product, edits.User)
		before := w.read(testdata(product + ".before.json"))
		w.write(file, before)
		lines := func() (first, dialog int) {
			t.Helper()
			text := w.wants(1, "", "status", product) // /opt/bin/assent is not there
			gentle := strings.Contains(text, "allow run without the hook")
			if gentle != (len(w.ours(p, p.dialog)) > 0) || strings.Contains(text, "is not at") ||
				strings.Contains(text, "twice") {
				t.Errorf("status says\n%s", text)
			}
			return len(w.ours(p, p.events[0])), len(w.ours(p, p.dialog))
		}

		if text := w.install(product, "--gentle"); !strings.Contains(text, "allow run without the hook") {
			t.Errorf("no word of what runs without the hook:\n%s", text)
		}
		if first, dialog := lines(); first != 0 || dialog != 1 {
			t.Errorf("%d hooks before calls and %d in the place of dialogs", first, dialog)
		}
		w.wants(0, "as it should be: nothing is changed", w.installing(product, "--gentle")...)
		w.install(product)
		if first, dialog := lines(); first != 1 || dialog != 0 {
			t.Errorf("then %d hooks before calls and %d in the place of dialogs", first, dialog)
		}

		w.wants(0, "byte for byte as it was", "uninstall", product, "--yes")
		w.same(file, before)

		w.install(product)
		items, err := p.items("/opt/bin/assent", hook.Line{Args: []string{"hook", product}}, true)
		must(t, err)
		table, err := settings.Parse(settings.JSON, product, []byte(w.read(file)), "hooks")
		must(t, err)
		list, err := table.List(p.dialog, items[p.dialog])
		must(t, err)
		text, err := table.Change(nil, list)
		must(t, err)
		w.write(file, string(text))
		w.wants(1, "so that people are asked about one call twice", "status", product)

		w.install(product, "--gentle")
		if first, dialog := lines(); first != 0 || dialog != 1 {
			t.Errorf("at last %d hooks before calls and %d in the place of dialogs", first, dialog)
		}
	})
}

// ours returns the hooks of assent at an event of a product.
func (w *world) ours(p *product, event string) (out []any) {
	w.t.Helper()
	s, err := p.spotOf(edits.Place{OS: "linux", Getenv: w.getenv, Project: w.path("work")}, edits.User)
	must(w.t, err)
	c, err := s.look()
	must(w.t, err)
	for _, e := range c.at(event) {
		out = append(out, e.item)
	}

	return out
}

// without fails if anything of assent is in a file.
func (w *world) without(file string) {
	w.t.Helper()
	if left := w.read(file); strings.Contains(left, "assent") {
		w.t.Errorf("uninstall left\n%s", left)
	}
}

// older returns the text of a file written by an install that supported only one event.
func (w *world) older(product string) string {
	w.t.Helper()
	p, err := find(product)
	must(w.t, err)
	text := []byte(w.read(w.file(product, edits.User)))
	table, err := settings.Parse(settings.JSON, product, text, "hooks")
	must(w.t, err)
	text, err = table.Change(slices.Concat(p.events[1:], p.reports))
	must(w.t, err)

	return string(text)
}

// TestInstallRefusesWhatItCannotChange checks that the file stays unchanged and that the message
// says what to do.
func TestInstallRefusesWhatItCannotChange(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"cut":        {`{"hooks": {`, "this is no JSON"},
		"a list":     {`[]`, "expected an object, {…}"},
		"twice":      {`{"hooks": {}, "hooks": {}}`, `"hooks" stands here twice: remove one of them`},
		"no object":  {`{"hooks": []}`, "hooks: expected an object"},
		"no list":    {`{"hooks": {"PreToolUse": {}}}`, "hooks.PreToolUse: expected a list"},
		"not UTF-8":  {"{\"a\": \"\xff\"}", "save the file as UTF-8"},
		"in a group": {groupWithOthers, "give it a group of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := w.file("claude-code", edits.User)
			w.write(file, c.text)
			w.wants(2, c.says, "install", "claude-code", "--yes", "--agent", "dev")
			w.same(file, c.text)
			if !strings.HasPrefix(name, "in a") {
				w.wants(1, c.says, "status", "claude-code")
			}
		})
	}
}

const groupWithOthers = `{"hooks": {"PreToolUse": [{"hooks": [
  {"type": "command", "command": "assent hook claude-code --agent dev"},
  {"type": "command", "command": "other"}]}]}}`

// TestInstallRefusesFilesOfOtherKinds tries directories, links that are broken or lead out of the
// project, and files without write permission.
func TestInstallRefusesFilesOfOtherKinds(t *testing.T) {
	w := newWorld(t)
	w.enter()
	install := []string{"install", "gemini", "--yes", "--agent", "dev", "--command", "assent"}
	file := w.file("gemini", edits.User)
	if err := os.MkdirAll(file, 0o755); err != nil {
		t.Fatal(err)
	}
	w.wants(2, "expected a regular file, and this is a directory", install...)

	must(t, os.Remove(file))
	must(t, os.Symlink(w.path("nowhere"), file))
	w.wants(2, "this symbolic link leads to no file", install...)

	must(t, os.Remove(file))
	w.write(file, "{}\n")
	must(t, os.Chmod(file, 0o444))
	w.wants(2, "this file is read-only: make it writable first", install...)

	must(t, os.RemoveAll(filepath.Dir(file)))
	w.write(filepath.Dir(file), "no directory")
	w.wants(2, "not a directory", install...)

	other := w.path("dotfiles", "gemini.json")
	w.write(other, "{}\n")
	must(t, os.Remove(filepath.Dir(file)))
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.Symlink(other, file))
	w.wants(0, "this is a link: what changes is "+other, install...)
	w.wants(0, "byte for byte", "uninstall", "gemini", "--yes")
	w.same(other, "{}\n")

	project := w.file("gemini", edits.Project)
	must(t, os.MkdirAll(filepath.Dir(project), 0o755))
	must(t, os.Symlink(other, project))
	w.wants(2, "this is a link out of the project", append(install, "--scope", "project")...)
	w.same(other, "{}\n")

	must(t, os.RemoveAll(filepath.Dir(project)))
	must(t, os.Symlink(t.TempDir(), filepath.Dir(project)))
	w.wants(2, "this is a link out of the project", append(install, "--scope", "project")...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstallAsksBeforeItChanges also checks that install requires --yes if there is no terminal.
func TestInstallAsksBeforeItChanges(t *testing.T) {
	w := newWorld(t)
	install := []string{"install", "cursor", "--agent", "dev", "--command", "assent"}
	w.wants(2, "give --yes to change the file", install...)
	w.wants(0, "this was a dry run", append(install, "--dry-run")...)
	w.in = "no\n"
	w.wants(1, "stopped: nothing was changed", install...)
	if _, err := os.Stat(w.file("cursor", edits.User)); err == nil {
		t.Error("there is a file")
	}
	w.in = "yes\n"
	w.wants(0, "installed: start Cursor anew", install...)
	w.in = ""
	w.wants(2, "give --yes to change the file", "uninstall", "cursor")
	w.wants(0, `"exact": true`, "uninstall", "cursor", "--yes", "--json")
}

// TestInstallRefusesLinesThatTheHookWould tries flags that the hook would refuse, and a second hook
// for the same calls.
func TestInstallRefusesLinesThatTheHookWould(t *testing.T) {
	w := newWorld(t)
	for says, args := range map[string]string{
		"expected --agent ID, of a server, or --agent-file FILE": "codex",
		"there is no such file":                                  "codex --agent-file gone.yaml",
		"expected a time from 0s":                                "codex --agent dev --wait 25h",
		"knows no calls that are put off":                        "codex --agent dev --defer",
		"expected a program called assent":                       "codex --agent dev --command rm",
		"has no such file: expected user or p":                   "codex --agent dev --scope local",
		`invalid argument "emacs"`:                               "emacs --agent dev",
		"accepts 1 arg(s), received 0":                           "--agent dev",
	} {
		w.wants(2, says, append([]string{"install", "--yes"}, strings.Fields(args)...)...)
	}

	w.enter()
	w.install("codex")
	w.wants(2, "would run both for each call: run assent hook uninstall codex first",
		"install", "codex", "--yes", "--agent", "dev", "--scope", "project")
}

// TestStatusTellsWhatFailsOpen checks that status reports problems of a hook and the calls that run
// without it.
func TestStatusTellsWhatFailsOpen(t *testing.T) {
	for name, c := range map[string]struct{ product, from, to, says string }{
		"limit": {
			product: "claude-code",
			from:    `"timeout": 600`,
			to:      `"timeout": 60`,
			says:    "timeout gives the hook 1m0s, and it may need 9m30s",
		},
		"none": {
			product: "gemini",
			from:    `"timeout": 580000`,
			to:      `"timeout": null`,
			says:    "timeout gives the hook 0s",
		},
		"closed": {
			product: "claude-code",
			from:    `"block"`,
			to:      `"continue"`,
			says:    "onFailure is not block: calls run when the hook is killed",
		},
		"event": {
			product: "claude-code",
			from:    `"PreToolUse"`,
			to:      `"Stop"`,
			says:    "the hook is not at PreToolUse, so that every call runs: run install again",
		},
		"cursor": {product: "cursor", from: `true`, to: `false`, says: "failClosed is not true"},
		"async": {
			product: "claude-code",
			from:    `"onFailure"`,
			to:      `"async": true, "onFailure"`,
			says:    "calls don't wait for the hook",
		},
		"matcher": {
			product: "claude-code",
			from:    `"*"`,
			to:      `"Bash"`,
			says:    `matcher is "Bash": other tools run without the hook`,
		},
		"file": {product: "codex", from: `dev.agf.yaml`, to: `gone.agf.yaml`, says: "every call is blocked: "},
		"flag": {product: "codex", from: `--wait`, to: `--wayt`, says: "every call is blocked: unknown flag: --wayt"},
		"program": {
			product: "codex",
			from:    `/opt/bin/assent`,
			to:      `/gone/assent`,
			says:    "/gone/assent can't be run, so that every call is blocked",
		},
		"line": {
			product: "gemini",
			from:    settingsText(guard),
			says:    "the line has no shell that blocks when the hook fails: calls run when the hook is killed or can't start",
		},
		"runs": {
			product: "codex",
			from:    settingsText(guard),
			says:    "/opt/bin/assent can't be run, so that every call runs",
		},
		"blocked": {
			product: "copilot",
			from:    `/opt/bin/assent`,
			to:      `/gone/assent`,
			says:    "/gone/assent can't be run, so that every call is blocked",
		},
		"off": {
			product: "claude-code",
			from:    `"hooks"`,
			to:      `"disableAllHooks": true, "hooks"`,
			says:    "runs no hooks at all: disableAllHooks is true",
		},
		"gemini": {
			product: "gemini",
			from:    `"hooks"`,
			to:      `"hooksConfig": {"enabled": false}, "hooks"`,
			says:    "hooksConfig.enabled is false in ",
		},
		"named": {
			product: "gemini",
			from:    `"hooks"`,
			to:      `"hooksConfig": {"disabled": ["assent"]}, "hooks"`,
			says:    "hooksConfig.disabled has this hook in ",
		},
		"type": {
			product: "claude-code",
			from:    `"type": "command"`,
			to:      `"type": "prompt"`,
			says:    "type is not command: Claude Code doesn't run the line",
		},
		"wakes": {
			product: "claude-code",
			from:    `"onFailure"`,
			to:      `"asyncRewake": true, "onFailure"`,
			says:    "asyncRewake is true: calls don't wait for the hook",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.install(c.product)
			file := w.file(c.product, edits.User)
			w.write(file, strings.Replace(w.read(file), c.from, c.to, 1))
			w.wants(1, c.says, "status", c.product)
			w.wants(1, `"state": "installed"`, "status", "--json")
		})
	}

	w := newWorld(t)
	w.enter()
	w.install("codex")
	w.write(w.path(".codex", "config.toml"), "[features]\nhooks = false\n")
	w.wants(1, "features.hooks is false in", "status", "codex")
	w.wants(0, "not installed, there is no file", "status", "cursor")
	w.install("cursor", "--observe")
	w.wants(1, "even so: --observe holds nothing up: every call runs", "status", "cursor")
	w.wants(1, "runs 2 hooks of assent for each call", statusOfTwo(w)...)
}

// TestALineBlocksWhateverEndsTheHook runs the command lines of products that run the call if a hook
// fails. In every shell they must exit with the code that blocks.
func TestALineBlocksWhateverEndsTheHook(t *testing.T) {
	w := newWorld(t)
	program := w.path("with space", "assent")
	reporting, deciding, err := codex().handlers(program, hook.Line{Args: []string{"hook", "codex", "--agent", "it's"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range shells(t) {
		for script, want := range map[string]int{"kill -9 $$": 2, "exit 1": 2, "exit 2": 2, "exit 0": 0, "": 2} {
			_ = os.Remove(program)
			if script != "" {
				w.write(program, "#!/bin/sh\necho \"$@\"\n"+script+"\n")
				if err := os.Chmod(program, 0o755); err != nil {
					t.Fatal(err)
				}
			}

			code, out, told := ran(t, shell, deciding[1].Value)
			if code != want || (want == 2) != strings.Contains(told, "assent: Not run. The hook gave no answer.") {
				t.Errorf("%s, %q: code %d, want %d: %s", shell, script, code, want, told)
			}
			if script != "" && out != "hook codex --agent it's\n" {
				t.Errorf("%s, %q: the hook was run with %q", shell, script, out)
			}
			if code, _, _ := ran(t, shell, reporting[1].Value); script == "exit 1" && code != 1 {
				t.Errorf("%s: an event that decides nothing ended with %d", shell, code)
			}
		}
	}
}

// settingsText escapes a text for use within a string of a settings file.
func settingsText(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }

// shells returns the shells of this machine with which a product may run command lines.
func shells(t *testing.T) (out []string) {
	t.Helper()
	for _, name := range []string{"sh", "bash", "dash", "zsh", "fish"} {
		if path, err := exec.LookPath(name); err == nil {
			out = append(out, path)
		}
	}
	if len(out) < 2 {
		t.Fatalf("expected sh and bash, found %q", out)
	}

	return out
}

// ran runs a line in a shell.
func ran(t *testing.T, shell string, line any) (code int, out, told string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), shell, "-c", line.(string))
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}

	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// TestObservingBlocksNothing checks that an observing install has no field or guard that blocks
// calls if the hook fails.
func TestObservingBlocksNothing(t *testing.T) {
	everyProduct(t, func(t *testing.T, w *world, product string) {
		w.install(product, "--observe")
		text := w.read(w.file(product, edits.User))
		for _, blocks := range []string{settingsText(guard), "onFailure", "failClosed"} {
			if strings.Contains(text, blocks) {
				t.Errorf("%s is in\n%s", blocks, text)
			}
		}

		said := w.wants(1, "even so: --observe holds nothing up", "status", product)
		if strings.Contains(said, "when the hook is killed") {
			t.Errorf("status says\n%s", said)
		}
	})
}

// TestStatusTellsSwitchesInOtherFiles installs a hook for the user while a file of the project
// disables all hooks.
func TestStatusTellsSwitchesInOtherFiles(t *testing.T) {
	for product, off := range map[string]string{
		"claude-code": `{"disableAllHooks": true}`,
		"gemini":      `{"hooksConfig": {"enabled": false}}`,
	} {
		t.Run(product, func(t *testing.T) {
			w := newWorld(t)
			w.enter()
			w.install(product)
			w.write(w.file(product, edits.Project), off)
			w.wants(1, "runs no hooks at all: ", "status", product)
		})
	}
}

// statusOfTwo returns the status with a hook in two files.
func statusOfTwo(w *world) []string {
	w.write(w.file("codex", edits.Project), w.read(w.file("codex", edits.User)))

	return []string{"status", "codex"}
}

// TestProjectsHaveScopes checks the three files of Claude Code, and the notes about what other
// people of a project need.
func TestProjectsHaveScopes(t *testing.T) {
	w := newWorld(t)
	w.enter()
	text := w.install("claude-code", "--scope", "project")
	if !strings.Contains(text, "who works on this project needs /opt/bin/assent") {
		t.Errorf("no word of the others:\n%s", text)
	}
	w.wants(0, "uninstalled", "uninstall", "claude-code", "--yes", "--scope", "project")
	w.install("claude-code", "--scope", "local")
	if _, err := os.Stat(w.path("work", ".claude", "settings.local.json")); err != nil {
		t.Error(err)
	}
	w.wants(1, "has no hook of assent", "uninstall", "claude-code", "--yes")
	w.wants(0, "uninstalled", "uninstall", "claude-code", "--yes", "--scope", "local")
}

// TestRecordThatCannotBeRead checks that uninstall doesn't guess the earlier text of a file.
func TestRecordThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.install("gemini")
	w.write(w.path(".config", "assent", "hooks", "gemini.json"), "{")
	w.wants(2, "remove it, and uninstall takes out the hook alone", "uninstall", "gemini", "--yes")
	must(t, os.Remove(w.path(".config", "assent", "hooks", "gemini.json")))
	w.wants(0, "the hook alone was taken out", "uninstall", "gemini", "--yes")
	w.same(w.file("gemini", edits.User), "{\n}\n")
}

// TestInstallsMakeADirectoryAtOnce runs several installs that create the same directory. Installs
// that fail remove the directories that they created.
func TestInstallsMakeADirectoryAtOnce(t *testing.T) {
	for range 40 {
		w := newWorld(t)
		var all sync.WaitGroup
		for _, wait := range []string{"1m", "2m", "3m", "4m"} {
			all.Go(func() {
				if code, out := w.run(w.installing("gemini", "--wait", wait)); code != 0 {
					t.Errorf("code %d: %s", code, out)
				}
			})
		}

		all.Wait()
		w.wants(0, "the file was made by install, and is gone", "uninstall", "gemini", "--yes")
		if left, err := filepath.Glob(w.path(".gemini")); err != nil || len(left) > 0 {
			t.Errorf("uninstall left %v (%v)", left, err)
		}
	}
}
