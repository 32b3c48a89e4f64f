//go:build peers

package mcp_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

const guidePage = "../../../docs/guides/mcp.md"

// guide is a reader who does what the page says.
type guide struct {
	t    *testing.T
	home string
	work string
	env  []string
	told *testwait.Buffer // of the last program that goes on
	seen string           // all output so far
	set  []string         // what was exported
}

// TestGuide runs the page: blocks of json are the client's file, blocks of console are commands
// with their output, blocks of sh are background commands, and blocks of text are the output of
// those.
func TestGuide(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(guidePage))(t)
	g := newGuide(t)
	block := regexp.MustCompile("(?s)```(json|console|sh|text)\n(.*?)```")
	fresh := block.ReplaceAllStringFunc(string(text), func(all string) string {
		m := block.FindStringSubmatch(all)
		return "```" + m[1] + "\n" + g.does(m[1], m[2]) + "```"
	})
	if fresh == string(text) {
		return
	}
	if !golden.Update() {
		t.Fatalf("the guide shows other output than its commands print; internal/peers/mcp/run -test.run Guide "+
			"-update mends it:\n%s", fresh)
	}
	must.Do(t, os.WriteFile(guidePage, []byte(fresh), 0o644))
}

func newGuide(t *testing.T) *guide {
	t.Helper()
	work := must.Get(os.MkdirTemp(installed(t), "guide"))(t)
	g := &guide{t: t, home: t.TempDir(), work: work, told: &testwait.Buffer{}}
	path := filepath.Dir(assent()) + ":" + os.Getenv("PATH")
	g.env = []string{"HOME=" + g.home, "PATH=" + path, "TMPDIR=" + t.TempDir(), "LANG=C.UTF-8"}
	return g
}

func (g *guide) does(kind, text string) string {
	g.t.Helper()
	switch kind {
	case "json":
		must.Do(g.t, os.WriteFile(filepath.Join(g.work, ".mcp.json"), []byte(text), 0o600))
	case "sh":
		g.begins(text)
	case "text":
		slowly(g.t, "it prints "+text, func() bool {
			return strings.Contains(g.masked(g.told.String()), text)
		})
	case "console":
		return g.runs(text)
	}

	return text
}

// begins starts what goes on while the page goes on.
func (g *guide) begins(command string) {
	g.t.Helper()
	g.seen += g.told.String()
	g.told = &testwait.Buffer{}
	c := g.command("exec " + command)
	c.Stdout = io.MultiWriter(g.told, g.t.Output())
	c.Stderr = c.Stdout
	must.Do(g.t, c.Start())
	g.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // the inspector says by its code that a call was denied
	})
}

// runs runs the commands of a block, and returns it with what they
// print.
func (g *guide) runs(block string) string {
	g.t.Helper()
	var out strings.Builder
	for _, line := range strings.SplitAfter(block, "\n") {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !ok {
			continue
		}
		out.WriteString(line + golden.WholeLines(g.prints(command)))
	}
	return out.String()
}

// prints returns the output of a command. The list is read until there is a request in it.
func (g *guide) prints(command string) (text string) {
	g.t.Helper()
	filled := g.filled(command)
	if strings.HasPrefix(command, "export ") {
		g.set = append(g.set, filled)
		return ""
	}
	slowly(g.t, command, func() bool {
		c := g.command(filled)
		c.Stderr = g.t.Output()
		out, err := c.Output()
		if err != nil {
			g.t.Fatalf("%s: %v\n%s", filled, err, out)
		}
		text = string(out)
		return command != "assent list" || strings.Contains(text, "apr_")
	})

	g.seen += text
	return g.masked(text)
}

func (g *guide) command(text string) *exec.Cmd {
	c := exec.Command("bash", "-c", strings.Join(append(g.set, text), "\n"))
	c.Dir = g.work
	c.Env = g.env
	return c
}

// filled puts what was printed last in the place of what a reader fills
// in.
func (g *guide) filled(command string) string {
	for mask, pattern := range map[string]string{
		"http://127.0.0.1:…": `sign in, once.*(http://127\.0\.0\.1:\d+)/auth`,
		"apr_…":              `apr_[0-9a-z]+`,
		"sha256:…":           `Binding +(sha256:[0-9a-f]+)`,
	} {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(g.seen+g.told.String(), -1)
		if len(all) > 0 {
			last := all[len(all)-1]
			command = strings.ReplaceAll(command, mask, last[len(last)-1])
		}
	}

	return command
}

// masked returns a text without what differs each time.
func (g *guide) masked(text string) string {
	text = strings.ReplaceAll(text, g.work, "/home/you/project")
	text = strings.ReplaceAll(text, g.home, "/home/you")
	for pattern, mask := range map[string]string{
		`http://127\.0\.0\.1:\d+`:          "http://127.0.0.1:…",
		`/auth/dev/\S+`:                    "/auth/dev/…",
		`apr_[0-9a-z]+`:                    "apr_…",
		`mcp/[0-9a-f]{12}`:                 "mcp/…",
		`(sha256:|vm\+|root )[\w+/=]{8,}`:  "${1}…",
		`project-[0-9a-f]{8}`:              "project-…",
		`20[-\d]{8}[ T][\d:.]{8,}( UTC|Z)`: "2026-11-24 18:00:00 UTC",
		`in (1d|23h 59m|23h 58m)`:          "in 1d",
		`all \d+ entries`:                  "all … entries",
		`(\S)  +`:                          "$1  ", // between columns
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, mask)
	}

	return text
}
