package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/golden"
)

func TestMain(m *testing.M) {
	testscript.Main(ownConfig{m}, map[string]func(){
		"assent":              main,
		"files-server":        filesServer,
		"env-server":          envServer,
		testfiles.PeakCommand: testfiles.PeakMain,
	})
}

// ownConfig gives the tests a configuration directory of their own, for keys and tokens of hooks.
type ownConfig struct{ *testing.M }

func (c ownConfig) Run() int {
	dir, err := os.MkdirTemp("", "assent-config")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_CONFIG_HOME", dir); err != nil {
		panic(err)
	}

	return c.M.Run()
}

// TestScripts drives the real main through the scripts in testdata.
func TestScripts(t *testing.T) { testscript.Run(t, scripts("testdata")) }

func scripts(dir string) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Values[served{}] = new(*served) // of the script
			return nil
		},
		Dir: dir, UpdateScripts: golden.Update(), RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":   serveScript,
			"sigterm": sigterm,
			"exits":   exits,
			"capture": capture,
			"plain":   plain,
			"tells":   tells,
			"asks":    asks,
		},
	}
}

// served is a service that a script started.
type served struct {
	cmd  *exec.Cmd
	out  *lines
	err  *lines
	done chan error
}

// lines keeps what a process writes, and wakes who waits for a line.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	found chan string
	want  *regexp.Regexp
}

func newLines(want string) *lines {
	return &lines{found: make(chan string, 1), want: regexp.MustCompile(want)}
}

func (l *lines) follow(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		l.mu.Lock()
		l.text.WriteString(in.Text() + "\n")
		l.mu.Unlock()
		if l.want.MatchString(in.Text()) {
			select {
			case l.found <- in.Text():
			default:
			}
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serveScript starts `assent serve ARGS` and waits until it answers.
// ASSENT_SERVER then says where.
func serveScript(ts *testscript.TestScript, _ bool, args []string) {
	bin, err := exec.LookPath("assent")
	ts.Check(err)
	s := &served{
		cmd:  exec.Command(bin, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...),
		out:  newLines(`serves at |"url"`),
		err:  newLines(`^$`),
		done: make(chan error, 1),
	}
	s.cmd.Dir, s.cmd.Env = ts.MkAbs("."), append(os.Environ(), "ASSENT_STORE="+ts.Getenv("ASSENT_STORE"))
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	errOut, err := s.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	var reading sync.WaitGroup
	reading.Go(func() { s.out.follow(out) })
	reading.Go(func() { s.err.follow(errOut) })
	go func() {
		reading.Wait()
		s.done <- s.cmd.Wait()
	}()
	*ts.Value(served{}).(**served) = s
	ts.Defer(func() {
		_ = s.cmd.Process.Kill() // it may have ended
	})
	select {
	case line := <-s.out.found:
		ts.Setenv("ASSENT_SERVER", regexp.MustCompile(`http://[^\s"]+`).FindString(line))
	case err := <-s.done:
		ts.Fatalf("assent serve ended: %v\n%s%s", err, s.out, s.err)
	}
}

// sigterm asks the service to stop, waits for its end, and leaves what
// it wrote in serve.out and serve.err.
func sigterm(ts *testscript.TestScript, _ bool, _ []string) {
	s := *ts.Value(served{}).(**served)
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	err := <-s.done
	for name, text := range map[string]string{"serve.out": s.out.String(), "serve.err": s.err.String()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
	if err != nil {
		ts.Fatalf("assent serve: %v\n%s", err, s.err)
	}
}

// exits runs a command and wants its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// capture puts what the first group of a pattern matches in the last
// output into a variable.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("the output has nothing like %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// asks has a tool ask the question in a file about the call in another,
// as the runtime of ASSENT_TOKEN.
func asks(ts *testscript.TestScript, _ bool, args []string) {
	c, err := client.New(ts.Getenv("ASSENT_SERVER"), ts.Getenv("ASSENT_TOKEN"), client.Options{})
	ts.Check(err)
	var q approval.Question
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &q))
	opt := client.AskOptions{}
	var call []byte
	if args[0] == "-" {
		opt.Principal = "mara"
	} else {
		call = []byte(strings.TrimSpace(ts.ReadFile(args[0])))
	}
	if len(args) > 2 {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[2])), &opt.Context))
	}
	opened, err := c.Ask(context.Background(), "desk", call, q, opt)
	ts.Check(err)
	ts.Setenv("ID", opened.Request.ID)
}

// tells fails unless the last command's standard output or error matches a pattern.
func tells(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile("stdout") + ts.ReadFile("stderr"); !regexp.MustCompile(args[0]).MatchString(text) {
		ts.Fatalf("nothing like %s in\n%s", args[0], text)
	}
}

// plain writes the last command's output to a file, and replaces ids, times, digests and other text
// that differs from run to run with placeholders.
func plain(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile("stdout")
	for _, r := range [][2]string{
		{
			`\b(apr|qst|grt|tok)_[0-9a-z]+`,
			"${1}_ID",
		}, {`sha256:[0-9a-f]{64}`, "sha256:DIGEST"}, {`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z)`, "TIME"},
		{`\b(\d+[dhms] )?\d+[dhms] ago`, "AGO"}, {
			`in (\d+[dhms] )?\d+[dhms]\b`,
			"in SPAN",
		}, {`assent_[\w-]{43}`, "assent_SECRET"}, {`127\.0\.0\.1:\d+`, "ADDRESS"},
		{
			`root \S+, signed by \S+`,
			"root HASH, signed by KEY",
		}, {`[0-9a-f]{64}`, "DIGEST"}, {`\b[0-9a-f]{24}\b`, "RULES"}, {` +\n`, "\n"},
		{`(\S) {2,}`, "$1  "}, // a column is as wide as its content
	} {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}

	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
