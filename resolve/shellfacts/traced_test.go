//go:build traced

package shellfacts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
)

// stage is a directory with harmless programs, in which lines run in
// real shells under strace.
type stage struct{ dir, bin string }

// These are the programs on a stage. Those that run others are the real ones; all others do
// nothing, whatever their name.
var (
	realPrograms = strings.Fields("env xargs find timeout nohup nice setsid sh bash dash sort")
	idlePrograms = strings.Fields("rm ls cat git make p1 p2 p3 grep tee time evil sudo")
)

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{dir: t.TempDir()}
	s.bin = filepath.Join(s.dir, "bin")
	check(t, os.Mkdir(s.bin, 0o755))
	for _, name := range realPrograms {
		at, err := exec.LookPath(name)
		check(t, err)
		check(t, os.Symlink(at, filepath.Join(s.bin, name)))
	}
	at, err := exec.LookPath("true")
	check(t, err)
	idle, err := os.ReadFile(at)
	check(t, err)
	for _, name := range idlePrograms {
		check(t, os.WriteFile(filepath.Join(s.bin, name), idle, 0o755))
	}

	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	must.Do(t, err)
}

// trace records what a shell did with a line.
type trace struct {
	ran   [][]string // the words of each program that was started, the first the file
	wrote []string   // files opened for writing, as they were named
}

var (
	execLine  = regexp.MustCompile(`execve\("((?:[^"\\]|\\.)*)", \[(.*?)\](?:,| <unf)`)
	openLine  = regexp.MustCompile(`openat\(AT_FDCWD, "((?:[^"\\]|\\.)*)", ([A-Z_|]+)`)
	quotedOne = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// run runs a line in a shell, in a new directory with two files.
func (s stage) run(t *testing.T, shell, line string) trace {
	t.Helper()
	in, err := os.MkdirTemp(s.dir, "in")
	check(t, err)
	defer os.RemoveAll(in)
	check(t, os.WriteFile(filepath.Join(in, "a"), []byte("evil\n"), 0o600))
	check(t, os.WriteFile(filepath.Join(in, "b"), nil, 0o600))
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	log := filepath.Join(s.dir, filepath.Base(in)+".log")
	defer os.Remove(log)
	c := exec.CommandContext(ctx, "strace", "-f", "-qq", "-xx", "-s", "4096", "-e", "trace=execve,openat", "-e",
		"signal=none",
		"-o", log, shell, "-c", line)
	c.Dir, c.Env = in, []string{"PATH=" + s.bin, "HOME=" + in, "X=evil p1", "LC_ALL=C.UTF-8"}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader("evil\n"), io.Discard, io.Discard
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var ended *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatalf("%q: %v", line, err)
	}
	text, err := os.ReadFile(log)
	check(t, err)

	return readTrace(text)
}

func readTrace(text []byte) trace {
	var out trace
	first := true
	for l := range bytes.Lines(text) {
		if m := execLine.FindSubmatch(l); m != nil {
			if first {
				first = false
				continue
			}
			words := []string{unquoted(m[1])}
			for _, q := range quotedOne.FindAllSubmatch(m[2], -1) {
				words = append(words, unquoted(q[1]))
			}
			out.ran = append(out.ran, words)
		}
		if m := openLine.FindSubmatch(l); m != nil && (bytes.Contains(m[2],
			[]byte("O_WRONLY")) || bytes.Contains(m[2], []byte("O_RDWR"))) {
			if name := unquoted(m[1]); !path.IsAbs(name) {
				out.wrote = append(out.wrote, name)
			}
		}
	}

	return out
}

// unquoted reads a text as strace -xx writes it.
func unquoted(hex []byte) string {
	text, err := strconv.Unquote(`"` + string(hex) + `"`)
	if err != nil {
		panic(err)
	}
	return text
}

// missed describes an action of the shell that contradicts the facts. It returns an empty string if
// there is none.
func missed(f Facts, tr trace) string {
	programs, unlisted := strings.Fields(f.Programs.Text), strings.Fields(f.Unlisted.Text)
	for _, words := range tr.ran {
		name := shown(path.Base(words[0]))
		if f.Programs.Known && !slices.Contains(programs, name) {
			return "programs " + f.Programs.Text + " ran " + name
		}
		// The facts don't cover what an unlisted program starts.
		if f.Unlisted.Known && len(unlisted) == 0 {
			return "unlisted is empty, ran " + name
		}
		if f.Programs.Known && f.Unlisted.Known && !slices.Contains(unlisted, name) {
			return "unlisted " + f.Unlisted.Text + " ran " + name
		}
		var shownWords []string
		for _, w := range words[1:] {
			shownWords = append(shownWords, shown(w))
		}
		if c := strings.Join(shownWords, " "); f.Commands.Known &&
			!slices.Contains(strings.Split(f.Commands.Text, "\n"), c) {
			return "commands " + f.Commands.Text + " ran " + c
		}
	}
	for _, file := range tr.wrote {
		// The file of sort -o is not a redirection.
		if f.Writes.Known && !slices.Contains(programs, "sort") && !slices.Contains(strings.Split(f.Writes.Text,
			"\n"), file) && file != "nohup.out" {
			return "writes " + f.Writes.Text + " wrote " + file
		}
	}

	return ""
}

func shells() []string {
	var out []string
	for _, s := range []string{"bash", "dash", "zsh"} {
		if at, err := exec.LookPath(s); err == nil {
			out = append(out, at)
		}
	}
	return out
}

var published = []string{
	`nice -n $(echo 5 evil) ls`, "ls \"a\\\nb\"#; evil", "ls 1&>x", "ls # \\\nevil", "ls # a\\\nevil",
	"ls #`ls` \\\nevil", "ls 'a'#; evil", "ls \"a\"#; evil", "ls \\\n#; evil", "ls a\\\n#; evil", "ls >! a p1",
	"ls $X#; evil", "ls $(ls)#; evil", "ls `ls`#; evil", "ls \"`ls \\\n`\"#; evil", "ls $'a'#; evil",
	"(ls)#; evil", "ls <(ls)#; evil", "ls >x#; evil",
	`nice -n $X ls`,
	`sh -c 'ls &>x evil y'`,
	`ls &>x evil y`,
	`ls &>>x evil y`,
	`bash -c -- 'evil'`,
	`bash -c +x 'evil'`,
	`find . -exec sort + --compress-program=evil a '{}' ';'`,
	`find . -ok sort '{}' + --compress-program=evil ';'`,
	`ls *(e:'evil':)`,
	`echo *(e:'evil':)`,
	`printf %d 'a[$(evil)]'`, `printf %d 'path[$(evil)]'`, `exit 'path[$(evil)]'`, `return 'path[$(evil)]'`,
	`shift 'path[$(evil)]'`, `break 'path[$(evil)]'`, `continue 'path[$(evil)]'`, `kill 'path[$(evil)]'`,
	`umask 'path[$(evil)]'`, `cd 'path[$(evil)]'`, `test 'path[$(evil)]' -ot 'path[$(evil)]'`,
	`which 'path[$(evil)]'`,
	`printf '%*d' 'path[$(evil)]' 1`, `printf %s 'path[$(evil)]'`, `pwd 'path[$(evil)]'`, `type 'path[$(evil)]'`,
	`printf %d 'BASH_VERSINFO[$(evil)]'`, `test -f 'BASH_VERSINFO[$(evil)]'`, `printf %n 'BASH_VERSINFO[$(evil)]'`,
	`printf %n 'path[$(evil)]'`, `printf '%(x)T' 'BASH_VERSINFO[$(evil)]'`, `exit 'BASH_VERSINFO[$(evil)]'`,
	`while ls; do break 'path[$(evil)]'; done`, `while ls; do continue 'BASH_VERSINFO[$(evil)]'; done`,
	`exit 'a[$(evil)]'`,
	`return 'a[$(evil)]'`,
	`shift 'a[$(evil)]'`,
	`umask 'a[$(evil)]'`,
	`cd 'a[$(evil)]'`,
	`break 'a[$(evil)]'`,
	`kill 'a[$(evil)]'`,
	`sleep 'a[$(evil)]'`,
	`type 'a[$(evil)]'`,
	`echo 'a[$(evil)]'`,
	`time evil`, `time -p ls`, `time ls`,
	`test -n 'a[$(evil)]'`, `test a -eq 'a[$(evil)]'`, `test 'a[$(evil)]'`, `[ 'x[$(evil)]' = 'a[$(evil)]' ]`,
	`test -o 'a[$(evil)]'`, `test -z 'a[$(evil)]'`, `test 'a[$(evil)]' -nt b`, `test -h 'a[$(evil)]'`,
	`test '(' 'a[$(evil)]' -eq 3 ')'`,
	"echo 'a' 'b' # ; evil", "echo a #\nevil", "echo a\\\n#b; evil", "echo \\\nevil", "ev\\\nil",
	"r''m a", `'r'"m" a`, `\rm a`, "`evil`", "echo `echo \\`evil\\``", "$(evil)", "cat <(evil)", "tee >(evil)",
	"cat <<EOF\n$(evil)\nEOF", "cat <<'EOF'\n$(evil)\nEOF\nevil", "cat <<-EOF\n\tx\n\tEOF\nevil",
	"cat <<E\\OF\n$(evil)\nEOF\nls",
	"cat <<\"E F\"\nx\nE F\nevil", "cat <<E\nx\\\nE\nevil\nE\nls", "cat <<A <<B\nA\nB\nevil",
	"bash <<< evil", "sh <<E\nevil\nE", "echo evil | sh", "xargs < a", "xargs env < a", "xargs -n 1 ls evil < a",
	"{evil,-x}", "ev{i,}l", "rm$IFS-x", "evi?", "e*l", "$X", "${X}", "${X%p1}", "${Y:-$(evil)}",
	"${Y:=evil}; $Y", "\"${X% p1}\"",
	"a=evil; $a", "PATH=. evil", "alias ls=evil; ls", "ls() { evil; }; ls", "trap evil EXIT", "eval evil",
	". ./a", "source ./a",
	"command evil", "exec evil", "builtin eval evil", "env evil", "env -i PATH=$PATH evil", "env -S 'evil x'",
	"nohup evil",
	"timeout 5 evil", "timeout -s KILL 5 evil", "nice evil", "nice -n 5 evil", "setsid evil", "sudo evil",
	"find . -name a -exec evil '{}' ';'", `find . -name a -exec evil {} \;`, "find . -name a -exec evil '{}' +",
	"find . -execdir evil ';'",
	"sort --compress-program=evil a", "sort --comp=evil a", "$'evil'", "$'\\x65vil'", "$\"evil\"", "ｅvil",
	"evil\u00a0x", "evil\u200b",
	"if evil; then rm a; fi", "for i in a; do evil; done", "while evil; do break; done",
	"case a in a) evil;; esac", "(evil)", "{ evil; }",
	"evil & ls", "! evil", "evil || ls", "ls && evil", "ls | evil", "ls |& evil", "coproc evil",
	"[[ a == $(evil) ]]", "((a[$(evil)]))",
	"echo $((1+$(evil)))", "echo $[$(evil)]", "ls > \"$(evil)\"", "ls >x >y 2>z", "ls >&x", "ls &>x",
	"ls 2>&1 >x", "ls <>x", "ls >|x", "ls {f}>x",
	"ls > x evil", "> x evil", ">x ls", "ls 10>x", "exec >x; ls", "ls > .bashrc", "ls > 'a b'",
	"ls > \"x\\\"y\"", "ls >x$(evil)",
	"repeat 2 evil", "if [ a ] { evil }", "foreach i (a) evil; end", "ls =(evil)", "() { evil }",
	"{ ls } always { evil }", "ls ~evil", "=evil",
	"echo \"a\\$b\"", "echo \"\\evil\"; ls", "printf '%s' 'evil;evil'", "printf -v x '%s' evil; $x",
	"git -c core.pager=evil log", "make evil",
	"bash -c 'bash -c \"evil\"'", "bash -c 'ls' evil", "bash -xc evil", "bash a", "bash -s < a",
	"/bin/sh -c evil", "bin/evil", "../bin/evil x",
	"while read x; do $x; done < a", "read x < a; $x", "mapfile -c 1 -C evil x < a", "set -- evil; \"$1\"",
	"hash -p ../bin/evil ls; ls",
	"enable -f a b", "echo ${X@P}", "echo ${!X}", "echo \"${X/e/$(evil)}\"", "select i in a; do evil; done",
	"function f { evil; }; f",
	"let 'a[$(evil)]'", "declare 'a[$(evil)]=1'", "export X=$(evil)", "local x", "printf %s `evil`",
	"echo \"`evil`\"", "echo '`evil`'",
	"evil;", "evil\n", "\nevil", "\tevil", "ls;evil", "ls\nevil", "ls&evil", "ls \\; evil", "ls ';' evil",
	"ls \\\\; evil", "ls \\\n; evil", "ls '\\'; evil",
	"echo \"\\\\\"; evil #\"", "echo 'it'\\''s'; evil", "echo \"'\"; evil; echo \"'\"",
	"cat <<'A'\n'\nA\nevil\ncat <<'A'\n'\nA",
	"echo <<A >x; evil\nA\nA\nls", "cat <<$X\na\n$X\nevil", "cat <<`x`\n`x`\nevil", "cat <<A\\\nB\nx\nAB\nevil",
	"ls \"$\\\n(evil)\"", "cat <<E\nx\n\\\nE\nevil\nE", "cat <<E\nx\nE\\\n\nevil\nE", `echo $'\'; evil #'`,
	"cat <<$'E'\n$E\nevil\nE", "ls $(cat <<E\na\nE evil)\nE\n)\n", `ls >& '$(evil)'`, "ls >&\"`evil`\"",
	`ls $X['$(evil)']`, `ls "$X[path[\$(evil)]]"`, "cat <<E\n$HOME[path[\\`evil\\`]]\nE", `ls $12['$(evil)']`,
	`ls $#X['$(evil)']`, `ls "$+X[path[\$(evil)]]"`, "ls >&1-",
}

// TestPublishedBypasses runs lines that hide what they run in real shells.
func TestPublishedBypasses(t *testing.T) {
	s := newStage(t)
	for _, line := range published {
		f := Of(line, Options{})
		for _, sh := range shells() {
			tr := s.run(t, sh, line)
			if m := missed(f, tr); m != "" {
				t.Errorf("%s: %q: %s\n  %+v", filepath.Base(sh), line, m, f)
			}
		}
	}
}

// TestDeepLinesAreNotKnown checks that deeply nested lines are not passed to the parser.
func TestDeepLinesAreNotKnown(t *testing.T) {
	for _, open := range []string{"(", "$(", "((", "{ ", "<(", "[["} {
		if f := Of(strings.Repeat(open, 501), Options{}); !strings.Contains(f.Why, "brackets") || f.Unlisted.Known {
			t.Errorf("%q: %+v", open, f)
		}
	}
}
