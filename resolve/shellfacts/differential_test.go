package shellfacts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestAShellStartsNothingElse runs random lines in a real shell, with programs that record that
// they ran. The facts must name each of them or be unknown. ASSENT_SHELL_LINES sets the number of
// lines.
func TestAShellStartsNothingElse(t *testing.T) {
	lines := 400
	if n, err := strconv.Atoi(os.Getenv("ASSENT_SHELL_LINES")); err == nil {
		lines = n
	}
	s := newSandbox(t)
	r := rand.New(rand.NewPCG(7, uint64(lines)))
	known, ran := 0, 0
	for range lines {
		line := drawLine(r, 3)
		f := Of(line, Options{Listed: []string{"alpha", "git status"}})
		if !f.Programs.Known && f.Unlisted.Known && f.Unlisted.Text != "" {
			continue // nothing is claimed but that it is not listed
		}
		if !f.Programs.Known {
			continue
		}
		known++
		started := s.run(line)
		ran += len(started)
		for _, program := range started {
			if !slices.Contains(strings.Fields(f.Programs.Text), program) {
				t.Errorf("%q started %s, the facts name %q", line, program, f.Programs.Text)
			}
			if f.Unlisted.Known && f.Unlisted.Text == "" && program != "alpha" && program != "git" {
				t.Errorf("%q started %s, and all is said to be listed", line, program)
			}
		}
	}

	if known < lines/20 || ran < known/3 {
		t.Errorf("of %d lines %d are known, and they started %d programs: too few to tell", lines, known, ran)
	}
}

// sandbox is a directory with programs that do nothing but write down
// their names.
type sandbox struct {
	t         *testing.T
	dir, bash string
}

// names returns programs that the facts know, wrappers that are run for real, and an unknown
// program.
func names() []string { return []string{"ls", "cat", "rm", "head", "alpha", "git", "mystery"} }

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	bash, err := exec.LookPath("bash")
	must.Do(t, err)
	s := &sandbox{t: t, dir: t.TempDir(), bash: bash}
	for _, name := range names() {
		s.write(name, "#!"+bash+"\necho "+name+" >> \"$LEDGER\"\n")
	}
	for _, name := range []string{"env", "xargs", "find", "timeout", "nice", "nohup", "sort", "bash", "sh"} {
		real, err := exec.LookPath(name)
		must.Do(t, err)
		must.Do(t, os.Symlink(real, filepath.Join(s.dir, name)))
	}

	return s
}

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	must.Do(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755))
}

// run runs a line in an empty directory, and returns what it started.
func (s *sandbox) run(line string) []string {
	s.t.Helper()
	work := s.t.TempDir()
	ledger := filepath.Join(s.t.TempDir(), "ledger")
	cmd := exec.CommandContext(s.t.Context(), s.bash, "-c", line)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + s.dir, "LEDGER=" + ledger, "HOME=" + work, "X=rm", "P=" + s.dir}
	_, _ = cmd.CombinedOutput() // waits for background programs too; many lines fail after they have started programs
	text, err := os.ReadFile(ledger)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}

	return strings.Fields(string(text))
}

// drawLine draws a line with commands within commands.
func drawLine(r *rand.Rand, depth int) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	if depth == 0 || r.IntN(3) == 0 {
		return drawCommand(r, depth)
	}
	one, two := drawLine(r, depth-1), drawLine(r, depth-1)
	return fmt.Sprintf(pick(
		"%s; %s", "%s && %s", "%s || %s", "%s | %s", "( %s; %s )", "{ %s; %s; }", "! %s; %s", "if %s; then %s; fi",
		"if ! %s; then :; else %s; fi", "case a in a) %s;; b) %s;; esac", "%s & %s", "%s\n%s", "%s |& %s",
		"until %s; do %s; break; done", "time %s; %s", "ls $(%s); %s", "cat <(%s); %s", "echo \"`%s`\"; %s",
		"bash -c '%s'; %s", "cat <<E; %s\n$(%s)\nE\n", "cat <<'E'; %s\n$(%s)\nE\n", "x=$(%s) %s",
		"f() { %s; }; %s", "eval '%s'; %s",
		"trap '%s' EXIT; %s", "for i in a b; do %s; done; %s", "alias ls='%s'; %s", "echo \"${q:-$(%s)}\"; %s",
	), one, two)
}

// drawCommand draws a command, with the ways to write its name.
func drawCommand(r *rand.Rand, depth int) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	name := pick(names()...)
	written := fmt.Sprintf(pick("%s", "%s", "%s", "'%s'", "\"%s\"", `\%s`, "$X%.0s", "''%s", "$P/%s", "$'%s'",
		"%s*", "{%s,b}"), name)
	wrapper := pick("", "", "", "", "", "env ", "env A=1 ", "nohup ", "timeout 5 ", "nice ", "nice -n 1 ",
		"command ", "exec ",
		"xargs ", "xargs -n 1 ", "find . -exec ", "echo a | xargs ", "A=1 ", "builtin command ",
		"env -i PATH=$PATH LEDGER=$LEDGER ")
	end := ""
	if strings.HasPrefix(wrapper, "find") {
		end = pick(` \;`, " {} +", ` {} ';'`)
	}
	args := pick("", " -l", " a 'b c'", " $X", " *", " > out", " 2>&1", " < /dev/null", " a=b", " # mystery", " <<< x")
	if end != "" {
		args = ""
	}

	return wrapper + written + args + end
}
