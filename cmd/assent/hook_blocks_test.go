package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// blocks fails unless a product doesn't run the call: exit code 2 with
// the reason on standard error, or a document that denies.
func blocks(t *testing.T, product string, h hooked) {
	t.Helper()
	switch {
	case h.code == 2 && h.out == "" && strings.HasPrefix(h.err, "assent: Not run. ") && strings.Count(h.err, "\n") == 1:
	case h.code == 0 && hookSays(t, product, h.out).word == "deny":
	default:
		t.Errorf("%s: exit %d\n%.300s%.300s", product, h.code, h.out, h.err)
	}
}

// TestHookBlocksWhatItCannotRead: documents that are cut, unknown, or of
// another kind.
func TestHookBlocksWhatItCannotRead(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := hookDir(t)
		whole := doc(callOf("Read", `{"path":"/a"}`))
		for _, bad := range []string{
			"", " ", "null", "[]", "{}", "nonsense", whole[:len(whole)-1], whole + whole,
			strings.Replace(whole, `"s"`, `""`, 1),
			strings.Replace(whole, `"Read"`, `7`, 1),
			strings.Replace(whole, `"Read"`, `""`, 1),
			strings.Replace(whole, `{"path`, `["path`, 1),
			doc(callOf("Read", `{"path":"/a","path":"/b"}`)),
			doc(callOf("Read", `{"path":NaN}`)),
			doc(callOf("Read", `{"path":"\ud800"}`)),
			doc(callOf("Read", `[]`)),
			doc(callOf("Read", strings.Repeat(`{"a":`, 500)+"1"+strings.Repeat("}", 500))),
			doc(callOf("Read", `{"path":"`+strings.Repeat("x", 17<<20)+`"}`)),
		} {
			if bad != whole { // another form of document has nothing there to break
				blocks(t, product, hookRuns(t, product, bad, flags...))
			}
		}

		for _, event := range []string{"PreToolUse", "preToolUse", "BeforeTool"} {
			if strings.Contains(whole, event) {
				blocks(t, product, hookRuns(t, product, strings.Replace(whole, event, "Sometime", 1), flags...))
			}
		}
	})
}

// TestHookBlocksWithoutASettingThatWorks: command lines, files and
// stores that can't be used.
func TestHookBlocksWithoutASettingThatWorks(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := hookDir(t)
		chosen := testfiles.Write(t, filepath.Join(t.TempDir(), "decisions.yaml"), "undeclared: ask\n")
		for _, args := range [][]string{
			{}, {"--bad"}, {"more"}, {"--agent-file", "/nowhere.agf.yaml"}, {"--agent-file", "/dev/null"},
			append(flags, "--agent", "dev"), append(flags, "--wait", "-1s"), append(flags, "--wait", "never"),
			append(flags, "--undeclared", "allow"), append(flags, "--store", "/proc/none/s.db"),
			append(flags, "--policies", "/nowhere"), append(flags, "--people", "/nowhere"),
			append(flags, "--person", "me"),
			{"--agent", "dev", "--server", "http://127.0.0.1:1", "--token-file", "/nowhere"},
			{"--agent", "dev", "--undeclared", "ask"}, {"--agent", "dev", "--store", "s.db"},
			{"--agent", "dev", "--decisions", "d.yaml"}, append(flags, "--decisions", "/nowhere"),
			append(flags, "--decisions", chosen, "--undeclared", "deny"),
			append(flags, "--decisions", chosen, "--policies", "/"),
		} {
			blocks(t, product, hookRuns(t, product, doc(callOf("Read", `{}`)), args...))
		}
	})

	for _, args := range [][]string{{"hook"}, {"hook", "claude"}, {"hook", "--agent", "dev"}} {
		if h := ends(t, exec.Command("assent", args...)); h.code != 2 || h.err == "" {
			t.Errorf("%s: %+v", args, h)
		}
	}
}

// TestHookMakesNoStoreForRulesThatItCannotRead: an existing store is left alone, too.
func TestHookMakesNoStoreForRulesThatItCannotRead(t *testing.T) {
	flags := hookDir(t)
	file, store := flags[1], filepath.Join(filepath.Dir(flags[1]), "hook.db")
	doc := hookDocs()["claude-code"](callOf("Read", `{}`))
	rules := must.Get(os.ReadFile(file))(t)
	broken := func() {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte("schema_version: 7\n"), 0o600))
		if h := hookRuns(t, "claude-code", doc, flags...); h.code != 2 || !strings.Contains(h.err, "dev.agf.yaml:1:") {
			t.Errorf("with broken rules: %+v", h)
		}
	}

	broken()
	if _, err := os.Stat(store); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store was made: %v", err)
	}
	for range 2 {
		must.Do(t, os.WriteFile(file, rules, 0o600))
		if h := hookRuns(t, "claude-code", doc, flags...); h.code != 0 {
			t.Errorf("with rules: %+v", h)
		}
		broken()
	}
}

// TestHookBlocksWithoutAServer: the server is gone, answers nonsense, or doesn't know the token.
func TestHookBlocksWithoutAServer(t *testing.T) {
	w := start(t, "")
	token := t.TempDir() + "/token"
	must.Do(t, os.WriteFile(token, []byte("assent_wrong"), 0o600))
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { listening.Close() })
	go func() {
		for {
			c, err := listening.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1)) // an answer before its request is told on the error stream
			_, _ = io.WriteString(c, "nonsense\r\n\r\n")
			c.Close()
		}
	}()
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		for _, server := range []string{w.ready.API, "http://" + listening.Addr().String(), "nonsense"} {
			flags := []string{"--agent", "desk", "--server", server, "--token-file", token}
			blocks(t, product, hookRuns(t, product, doc(callOf("quote", `{}`)), flags...))
		}
	})
}

// TestHookBlocksWithoutStreams: streams that are closed, gone, or full.
func TestHookBlocksWithoutStreams(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := strings.Join(hookDir(t), " ") + " --wait 0s"
		for streams, code := range map[string]int{
			"<&-":                        2,
			">&-":                        2,
			">/dev/null":                 2,
			">/dev/full":                 2,
			">&- 2>&-":                   2,
			">/dev/full 2>/dev/full":     2,
			"</dev/null >&- 2>&-":        2,
			"</dev/null >/dev/null 2>&-": 2,
			"</dev/null 2>&-":            0,
			"</dev/null 2>/dev/full":     0,
			"</dev/null 2>/dev/null":     0,
			"</dev/null >/dev/full":      2,
			"2>&-":                       0,
			"</ 2>/dev/null":             0,
			"</ ":                        2,
			"</dev/zero >/dev/full 2>&-": 2,
		} {
			cmd := exec.Command("sh", "-c", "assent hook "+product+" "+flags+" "+streams)
			cmd.Stdin = strings.NewReader(doc(callOf("Bash", `{}`)))
			h := ends(t, cmd)
			if h.code != code {
				t.Errorf("%s: exit %d, expected %d\n%s%s", streams, h.code, code, h.out, h.err)
			}
			if code == 0 && hookSays(t, product, h.out).word != "deny" {
				t.Errorf("%s: %s", streams, h.out)
			}
		}
	})
}

// TestHookBlocksWhenItIsStopped by any signal that it can handle, while
// people are asked.
func TestHookBlocksWhenItIsStopped(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGABRT, syscall.SIGSYS, syscall.SIGTRAP, syscall.SIGXCPU,
	}
	flags := hookDir(t)
	at := inboxOn(t, "hook", flags...)
	hooks := make([]*exec.Cmd, len(signals))
	for i := range hooks {
		call := toolCall{"Bash", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprint("toolu_", i)}
		hooks[i] = exec.Command("assent", append([]string{"hook", "claude-code"}, flags...)...)
		hooks[i].Stdin = strings.NewReader(hookDocs()["claude-code"](call))
		hooks[i].Stdout, hooks[i].Stderr = &testwait.Buffer{}, &testwait.Buffer{}
		must.Do(t, hooks[i].Start())
	}
	id := regexp.MustCompile(`"id": *"apr_`)
	testwait.Value(t, "people are asked about each call", func() (int, bool) {
		listed, _, _ := ran("", append([]string{"list", "--json"}, at...)...)
		asked := len(id.FindAllString(listed, -1))
		return asked, asked == len(signals)
	})
	for i, cmd := range hooks {
		must.Do(t, cmd.Process.Signal(signals[i]))
		_ = cmd.Wait() // its code is looked at
		out, errOut := fmt.Sprint(cmd.Stdout), fmt.Sprint(cmd.Stderr)
		blocks(t, "claude-code", hooked{out: out, err: errOut, code: cmd.ProcessState.ExitCode()})
	}
}

// TestHookEndsWithWhoStartedIt: what people approve after the product, or its shell, has exited is
// kept for the next hook of the call.
func TestHookEndsWithWhoStartedIt(t *testing.T) {
	t.Parallel()
	flags := hookDir(t)
	at := inboxOn(t, "hook", flags...)
	doc := hookDocs()["codex"](callOf("Bash", `{}`))
	shell := exec.Command("sh", append([]string{"-c", `"$0" "$@" || exit 2`, "assent", "hook", "codex"}, flags...)...)
	shell.Stdin = strings.NewReader(doc)
	ends, writes := pipe(t) // the hook holds it open as long as it runs
	shell.Stdout = writes
	must.Do(t, shell.Start())
	must.Do(t, writes.Close())
	var asked string
	testwait.Until(t, "people are asked", func() bool {
		asked, _, _ = ran("", append([]string{"list", "--json"}, at...)...)
		return strings.Contains(asked, `"apr_`)
	})

	must.Do(t, shell.Process.Kill())
	_ = shell.Wait() // it was killed
	ended := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(ends) // what could be read is looked at
		ended <- string(text)
	}()
	blocks(t, "codex", hooked{out: receive(t, "the end of the hook", ended)})
	approveIn(t, at, asked)
	if got := answers(t, "codex", doc, flags...); got.word != "allow" {
		t.Errorf("the next hook of the call: %+v", got)
	}
}

func pipe(t *testing.T) (reads, writes *os.File) {
	t.Helper()
	reads, writes, err := os.Pipe()
	must.Do(t, err)
	t.Cleanup(func() {
		reads.Close()
		writes.Close()
	})

	return reads, writes
}

// TestHookEndsByItself: with a server that never answers, and with a
// product that never reads. If the hook waited for them, the test would
// not end.
func TestHookEndsByItself(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { silent.Close() })
	token := t.TempDir() + "/token"
	must.Do(t, os.WriteFile(token, []byte("assent_x"), 0o600))
	doc := hookDocs()["copilot"]
	blocks(t, "copilot", hookRuns(t, "copilot", doc(callOf("Read", `{}`)), "--agent", "dev", "--wait", "0s",
		"--server", "http://"+silent.Addr().String(), "--token-file", token))

	cmd := exec.Command("assent", append([]string{"hook", "copilot"}, hookDir(t)...)...)
	cmd.Stdin = strings.NewReader(doc(callOf("Delete", `{}`)))
	_, w := pipe(t)
	_, err = w.Write(make([]byte, 64<<10)) // the pipe is full
	must.Do(t, err)
	cmd.Stdout = w
	h := ends(t, cmd)
	w.Close()
	blocks(t, "copilot", h)
}

// TestHookAsksAServer: the same ways as with a store of its own.
func TestHookAsksAServer(t *testing.T) {
	w := start(t, "")
	token := t.TempDir() + "/token"
	must.Do(t, os.WriteFile(token, []byte(w.token["runtime"]), 0o600))
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := []string{"--agent", "desk", "--server", w.ready.API, "--token-file", token, "--wait", "0s"}
		got := answers(t, product, doc(callOf("quote", `{"n":1.0}`)), flags...)
		if got != noOpinion() {
			t.Errorf("an allowed call: %+v", got)
		}
		call := doc(toolCall{"trade", `{"for":"` + product + `"}`, "2"})
		asked := answers(t, product, call, flags...)
		if hookRequest(asked.why) == "" {
			t.Fatalf("what people are asked about: %+v", asked)
		}
		flags = append(flags, "--undeclared", "native")
		if got := hookRuns(t, product, doc(toolCall{"nothing", `{}`, "3"}), flags...); got != (hooked{}) {
			t.Errorf("a tool that no file names: %+v", got)
		}
	})
}
