package repotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
)

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	jsonBlock    = regexp.MustCompile("(?s)```json\n(.*?)```")
	goBlock      = regexp.MustCompile("(?s)```go\n(.*?)```")
	setUpBlock   = regexp.MustCompile("(?s)```sh\n(.*?)```")
)

// TestReadmeCommands runs every command of the README and of the tours in docs/guides, and compares
// its output with the page.
func TestReadmeCommands(t *testing.T) {
	bin := binaries(t)
	for page, least := range map[string]int{"README.md": 2, "docs/guides/tour.md": 6, "docs/guides/go.md": 1} {
		runsAsShown(t, page, least, func(command string) string {
			return shell(t, strings.ReplaceAll(command, "bin/", bin+"/"))
		})
	}
}

// TestReadmeGuideOfTools does the same for the guide from a list of
// tools to gates, in an empty directory that holds the list alone.
func TestReadmeGuideOfTools(t *testing.T) {
	const page = "docs/guides/tools.md"
	bin := binaries(t)
	dir := t.TempDir()
	list := jsonBlock.FindStringSubmatch(readText(t, filepath.Join(top, page)))
	if list == nil {
		t.Fatal("the guide shows no list of tools")
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "github.json"), []byte(list[1]), 0o644); err != nil {
		t.Fatal(err)
	}

	runsAsShown(t, page, 10, func(command string) string {
		return shell(t, "cd "+work+" && export PATH="+bin+":$PATH && "+command)
	})
}

// runsAsShown runs the commands of a page's console blocks, at least so
// many, and compares what they print with what the page shows.
func runsAsShown(t *testing.T, page string, least int, run func(command string) string) {
	t.Helper()
	text := readText(t, filepath.Join(top, page))
	ran := 0
	fresh := consoleBlock.ReplaceAllStringFunc(text, func(block string) string {
		var out strings.Builder
		for _, line := range strings.Split(consoleBlock.FindStringSubmatch(block)[1], "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				ran++
				out.WriteString(line + "\n" + golden.WholeLines(run(command)))
			}
		}

		return "```console\n" + out.String() + "```"
	})
	if ran < least {
		t.Fatalf("%s shows only %d commands", page, ran)
	}
	if fresh == text {
		return
	}
	if !golden.Update() {
		t.Fatalf(
			"%s shows other output than its commands print; go test ./internal/repotest -run Readme -update "+
				"mends it:\n%s",
			page,
			fresh,
		)
	}

	if err := os.WriteFile(filepath.Join(top, page), []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadmeFlags checks that the commands which pages show without
// running them (services, mostly) have the flags that are shown.
func TestReadmeFlags(t *testing.T) {
	bin := binaries(t)
	for _, page := range []string{"README.md", "docs/guides/tour.md", "docs/guides/go.md"} {
		checked := 0
		for _, block := range setUpBlock.FindAllStringSubmatch(readText(t, filepath.Join(top, page)), -1) {
			for line := range strings.SplitSeq(block[1], "\n") {
				if command, ok := strings.CutPrefix(line, "bin/"); ok {
					checkFlags(t, bin, page, command)
					checked++
				}
			}
		}
		if checked == 0 {
			t.Errorf("%s shows no command of ours in a block of type sh", page)
		}
	}
}

// checkFlags fails for each flag of a command that its help does not list.
func checkFlags(t *testing.T, bin, page, command string) {
	t.Helper()
	words := strings.Fields(strings.Split(command, " #")[0])
	flags := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	if flags < 0 {
		flags = len(words)
	}
	help := shell(t, bin+"/"+strings.Join(words[:flags], " ")+" --help")
	for _, w := range words[flags:] {
		if strings.HasPrefix(w, "--") && !regexp.MustCompile(`(?m)^ +(-\w, )?`+w+`\b`).MatchString(help) {
			t.Errorf("%s: %s: there is no flag %s", page, command, w)
		}
	}
}

// shell executes a command line as a reader would. A command may exit
// 1: agf-validate does when it finds something.
func shell(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeCode checks that the Go code of the guide is the body of an
// example that is compiled and run.
func TestReadmeCode(t *testing.T) {
	const file = "examples/embedding_test.go"
	example := squeeze(readText(t, filepath.Join(top, file)) + readText(t, filepath.Join(top, "agent", file)))
	blocks := goBlock.FindAllStringSubmatch(readText(t, filepath.Join(top, "docs/guides/go.md")), -1)
	if len(blocks) == 0 {
		t.Fatal("the guide shows no Go")
	}
	for _, b := range blocks {
		if !strings.Contains(example, squeeze(b[1])) {
			t.Errorf("this is in no %s:\n%s", file, b[1])
		}
	}
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestReadmeRun runs the first command of the README to its end, which
// its demo has when it answers by itself.
func TestReadmeRun(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "bin")
	out := shell(t, "make run DEMO='--once --auto-approve' BIN="+bin)
	for _, want := range []string{
		"no findings",
		"allow  ",
		"ask  Rebalance core",
		"deny  ",
		"It sends money away.",
		"with the public key alone: assent audit verify\n",
		"verified: all",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("make run does not print %q:\n%s", want, out)
		}
	}
}

// TestReadmeSetUp: the two set-up commands are targets of the Makefile.
func TestReadmeSetUp(t *testing.T) {
	targets := readText(t, filepath.Join(top, "Makefile"))
	commands := 0
	for _, line := range strings.Split(
		setUpBlock.FindStringSubmatch(readText(t, filepath.Join(top, "README.md")))[1],
		"\n",
	) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "make" {
			commands++
			if !strings.Contains(targets, "\n"+words[1]+":") {
				t.Errorf("README: make %s is no target", words[1])
			}
		}
	}

	if commands != 2 {
		t.Errorf("the README sets up with %d commands, want 2", commands)
	}
}
