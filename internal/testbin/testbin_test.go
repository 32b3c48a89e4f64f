package testbin

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// childDir makes a process of this test build the program of a module.
const childDir = "TESTBIN_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		p, err := build(dir, "sample/prog", nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.path)
		return
	}
	os.Exit(m.Run())
}

// sample is a module with a program that prints three words, from its own
// source, from another package and from an embedded file.
type sample struct {
	t   *testing.T
	dir string
	log string // gets a line for every link
}

// newSample writes the module. Each link writes a line to a log. If there is a pipe named gate, the
// link then waits until it is written to.
func newSample(t *testing.T) *sample {
	t.Helper()
	cache := must.Get(exec.Command("go", "env", "GOCACHE").Output())(t)
	s := &sample{t: t, dir: t.TempDir()}
	tool := s.write("tool", `#!/bin/sh
case "$1 $2" in
*"/link -V=full") ;;
*/link\ *)
	echo link >>`+s.dir+`/links
	if [ -e `+s.dir+`/gate ]; then read -r _ <`+s.dir+`/gate; fi
	;;
esac
exec "$@"
`)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("GOFLAGS", "-toolexec="+tool)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
	s.log = filepath.Join(s.dir, "links")
	s.write("links", "")
	s.write("go.mod", "module "+module+"sample\n\ngo 1.26\n")
	s.write("word/word.go", "package word\n\nconst Second = \"two\"\n")
	s.write("prog/texts/third.txt", "three")
	// The name of the folder makes the program unlike those of earlier runs.
	s.write("prog/main.go", `package main

import (
	_ "embed"
	"os"

	"`+module+`sample/word"
)

//go:embed texts/third.txt
var third string

var fourth = "four"

func main() { os.Stdout.WriteString("one " + word.Second + " " + third + " " + fourth) }

// `+s.dir+"\n")
	return s
}

func (s *sample) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	must.Do(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(s.t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// edit replaces a word of a file, and gives it its old time.
func (s *sample) edit(name, from, to string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	old := must.Get(os.Stat(path))(s.t)
	text := string(must.Get(os.ReadFile(path))(s.t))
	if !strings.Contains(text, from) {
		s.t.Fatalf("%s does not contain %q", name, from)
	}
	s.write(name, strings.Replace(text, from, to, 1))
	must.Do(s.t, os.Chtimes(path, old.ModTime(), old.ModTime()))
}

// build builds the program and checks what it prints.
func (s *sample) build(prints string, flags ...string) program {
	s.t.Helper()
	p := must.Get(build(s.dir, "sample/prog", flags))(s.t)
	s.prints(p.path, prints)
	return p
}

func (s *sample) prints(path, want string) {
	s.t.Helper()
	if got := string(must.Get(exec.Command(path).Output())(s.t)); got != want {
		s.t.Errorf("%s prints %q, want %q", path, got, want)
	}
}

// links counts the links of the program so far.
func (s *sample) links() int {
	return bytes.Count(must.Get(os.ReadFile(s.log))(s.t), []byte("\n"))
}

func (s *sample) wantLinks(want int) {
	s.t.Helper()
	if got := s.links(); got != want {
		s.t.Errorf("the program was linked %d times, want %d", got, want)
	}
}

// child is another process that builds the program.
type child struct {
	s   *sample
	cmd *exec.Cmd
	out testwait.Buffer
}

// start starts a child, in a process group of its own.
func (s *sample) start() *child {
	s.t.Helper()
	c := &child{s: s, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childDir+"="+s.dir)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(s.t, c.cmd.Start())
	s.t.Cleanup(func() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }) // may have ended
	return c
}

// end waits for the child and returns the path that it printed.
func (c *child) end() string {
	c.s.t.Helper()
	if err := c.cmd.Wait(); err != nil {
		c.s.t.Fatalf("%v\n%s", err, c.out.String())
	}
	return strings.TrimSpace(c.out.String())
}

// gate makes links wait, until the function that it returns is called
// while one waits.
func (s *sample) gate() (open func()) {
	s.t.Helper()
	path := filepath.Join(s.dir, "gate")
	must.Do(s.t, syscall.Mkfifo(path, 0o600))
	return func() {
		s.t.Helper()
		pipe := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(s.t)
		must.Do(s.t, os.Remove(path))
		must.Get(pipe.WriteString("go\n"))(s.t)
		must.Do(s.t, pipe.Close())
	}
}

func (s *sample) waitForLinks(n int) {
	s.t.Helper()
	testwait.Value(s.t, fmt.Sprintf("%d links", n), func() (int, bool) { return s.links(), s.links() >= n })
}

func TestBinaryFollowsItsInputs(t *testing.T) {
	s := newSample(t)
	first := s.build("one two three four")
	for i, c := range []struct{ file, from, to, prints string }{
		{"prog/main.go", "one", "eno", "eno two three four"},
		{"word/word.go", "two", "owt", "eno owt three four"},
		{"prog/texts/third.txt", "three", "eerht", "eno owt eerht four"},
	} {
		s.edit(c.file, c.from, c.to)
		s.build(c.prints)
		s.wantLinks(i + 2)
	}

	s.build("eno owt eerht x", "-ldflags=-X=main.fourth=x")
	s.build("eno owt eerht four")
	s.wantLinks(5)

	s.edit("prog/main.go", "eno", "one")
	s.edit("word/word.go", "owt", "two")
	s.edit("prog/texts/third.txt", "eerht", "three")
	if again := s.build("one two three four"); again.path != first.path {
		t.Errorf("the first sources gave %s, and then %s", first.path, again.path)
	}
	s.wantLinks(5)
}

// TestProgramOfAnotherModule builds a program of a module inside of the
// current one, and the other way round.
func TestProgramOfAnotherModule(t *testing.T) {
	s := newSample(t)
	s.write("inner/go.mod", "module "+module+"sample/inner\n\ngo 1.26\n\nrequire "+module+"sample v0.0.0\n\n"+
		"replace "+module+"sample => ../\n")
	s.write("inner/prog/main.go", "package main\n\nimport \""+module+"sample/word\"\n\n"+
		"func main() { print(word.Second) } // "+s.dir+"\n")
	inner := filepath.Join(s.dir, "inner")
	for _, c := range []struct{ from, folder, prints string }{
		{s.dir, "sample/inner/prog", ""},
		{inner, "sample/inner/prog", ""},
		{inner, "sample/prog", "one two three four"},
	} {
		p := must.Get(build(c.from, c.folder, nil))(t)
		s.prints(p.path, c.prints)
		if !slices.Contains(p.dirs, filepath.Join(s.dir, "word")) {
			t.Errorf("%s from %s: the folders are %q", c.folder, c.from, p.dirs)
		}
	}
	s.wantLinks(2)
}

func TestEightProcessesLinkOnce(t *testing.T) {
	s := newSample(t)
	var all []*child
	for range 8 {
		all = append(all, s.start())
	}
	paths := map[string]bool{}
	for _, c := range all {
		paths[c.end()] = true
	}
	if len(paths) != 1 {
		t.Errorf("got %d binaries", len(paths))
	}
	for path := range paths {
		s.prints(path, "one two three four")
	}
	s.wantLinks(1)
}

func TestKilledBuildIsRepeated(t *testing.T) {
	s := newSample(t)
	s.gate()
	c := s.start()
	s.waitForLinks(1)
	must.Do(t, syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL))
	_ = c.cmd.Wait() // killed

	must.Do(t, os.Remove(filepath.Join(s.dir, "gate")))
	s.build("one two three four")
	s.wantLinks(2)
}

// TestLinkOutlivesItsTest: the go command goes on when the test that
// started it is killed, and no other one may write the same files then.
func TestLinkOutlivesItsTest(t *testing.T) {
	s := newSample(t)
	open := s.gate()
	first := s.start()
	s.waitForLinks(1)
	must.Do(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait() // killed

	name := filepath.Join(must.Get(os.UserCacheDir())(t), "assent-testbin", "prog.lock")
	held := must.Get(os.Open(name))(t)
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		t.Errorf("the lock of a build whose test was killed: %v", err)
	}
	second := s.start()
	open()
	s.prints(second.end(), "one two three four")
}

// TestIncompleteFilesAreReplaced: a process was killed while it copied the
// binary, or before it renamed it.
func TestIncompleteFilesAreReplaced(t *testing.T) {
	s := newSample(t)
	p := s.build("one two three four")
	must.Do(t, os.Remove(p.path))
	partial := filepath.Join(filepath.Dir(filepath.Dir(p.path)), "prog.partial")
	must.Do(t, os.WriteFile(partial, []byte("half"), 0o700))

	if again := s.build("one two three four"); again.path != p.path {
		t.Errorf("got %s, want %s", again.path, p.path)
	}
	if _, err := os.Stat(partial); !os.IsNotExist(err) {
		t.Errorf("%s: %v", partial, err)
	}
}

func TestSourceEditedDuringTheLink(t *testing.T) {
	s := newSample(t)
	open := s.gate()
	c := s.start()
	s.waitForLinks(1)
	s.edit("word/word.go", "two", "owt")
	open()
	s.prints(c.end(), "one owt three four")

	s.edit("word/word.go", "owt", "two")
	s.build("one two three four")
	s.wantLinks(3)
}

func TestErrorsOfTheCompilerAreReported(t *testing.T) {
	s := newSample(t)
	s.edit("word/word.go", "Second", "second")
	_, err := build(s.dir, "sample/prog", nil)
	if err == nil || !strings.Contains(err.Error(), "prog/main.go:15:") ||
		!strings.Contains(err.Error(), "build sample/prog for tests") {
		t.Errorf("got %v", err)
	}
	s.edit("word/word.go", "second", "Second")
	s.build("one two three four")
}

func TestOldBinariesAreRemoved(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	age := func(name string, by time.Duration) {
		dir := filepath.Join(cache, name)
		must.Do(t, os.Mkdir(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "prog"), nil, 0o700))
		must.Do(t, os.Chtimes(dir, now.Add(-by), now.Add(-by)))
	}
	var want []string
	for i := range kept + 3 {
		name := fmt.Sprintf("prog-%016x", i)
		age(name, time.Duration(i)*24*time.Hour)
		if i < kept-1 {
			want = append(want, name)
		}
	}
	for i := range kept + 3 { // in use
		name := fmt.Sprintf("busy-%016x", i)
		age(name, idle-time.Minute)
		want = append(want, name)
	}
	age("other-0000000000000000", 100*24*time.Hour)
	want = append(want, "other-0000000000000000")

	must.Do(t, prune(cache, "prog"))
	must.Do(t, prune(cache, "busy"))
	var got []string
	for _, entry := range must.Get(os.ReadDir(cache))(t) {
		got = append(got, entry.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCachedResultFollowsTheProgram runs go test in a module whose test
// runs a program that it does not import.
func TestCachedResultFollowsTheProgram(t *testing.T) {
	s := newSample(t)
	t.Setenv("GOFLAGS", "-trimpath -mod=mod")
	t.Setenv("GOPROXY", "off")
	root := filepath.Dir(filepath.Dir(must.Get(os.Getwd())(t)))
	s.write("go.mod", fmt.Sprintf("module %[1]ssample\n\ngo 1.26.0\n\nrequire %[2]s v0.0.0\n\nreplace %[2]s => %[3]s\n",
		module, strings.TrimSuffix(module, "/"), root))
	s.write("go.sum", string(must.Get(os.ReadFile(filepath.Join(root, "go.sum")))(t)))
	s.write("user/user_test.go", `package user

import (
	"os/exec"
	"testing"

	"`+module+`internal/testbin"
)

func TestProgram(t *testing.T) {
	out, err := exec.Command(testbin.Path(t, "sample/prog")).Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("prints %s", out)
}
`)

	result := regexp.MustCompile(`(?s)prints ([^\n]*)\n.*\nok\s+\S+user\s+(\(cached\)|\S+s)`)
	run := func() (prints string, cached bool) {
		t.Helper()
		cmd := exec.Command("go", "test", "-v", "./user")
		cmd.Dir = s.dir
		out, err := cmd.CombinedOutput()
		found := result.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(found[1]), string(found[2]) == "(cached)"
	}
	run()                             // writes go.mod
	old := time.Now().Add(-time.Hour) // go test caches nothing that read a file of the last seconds
	must.Do(t, os.Chtimes(filepath.Join(s.dir, "go.mod"), old, old))
	run()
	if prints, cached := run(); prints != "one two three four" || !cached {
		t.Errorf("without a change: prints %q, cached %t", prints, cached)
	}
	for _, c := range []struct{ file, from, to, prints string }{
		{"word/word.go", "two", "second", "one second three four"},
		{"prog/texts/third.txt", "three", "3", "one second 3 four"},
	} {
		s.edit(c.file, c.from, c.to) // go test looks at sizes and times only
		if prints, cached := run(); prints != c.prints || cached {
			t.Errorf("after a change of %s: prints %q, cached %t", c.file, prints, cached)
		}
	}
}
