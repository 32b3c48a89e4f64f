package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assent-dev/assent/internal/must"
)

// TestContract runs the example of docs/contracts/assent.md against a
// service with the configuration that the page shows.
func TestContract(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "contracts", "assent.md"))
	must.Do(t, err)
	desk, err := txtar.ParseFile(filepath.Join("testdata", "approve.txtar"))
	must.Do(t, err)
	desk.Comment = []byte(script(block(t, string(page), "console")))
	desk.Files = append(desk.Files, txtar.File{Name: "serve.yaml", Data: []byte(block(t, string(page), "yaml"))})
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "contract.txtar"), txtar.Format(desk), 0o600))
	testscript.Run(t, scripts(dir))
}

// block returns the first block of code in that language.
func block(t *testing.T, page, language string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "```"+language+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatalf("docs/contracts/assent.md shows no %s", language)
	}
	return text
}

// script converts the example to a test: lines below a command must be in its output or error
// output.
func script(example string) string {
	var out strings.Builder
	for _, step := range strings.Split("\n"+example, "\n$ ")[1:] {
		lines := strings.Split(strings.TrimRight(step, "\n"), "\n")
		command, expected := lines[0], lines[1:]
		code := "0"
		if n := len(expected); n > 0 && strings.HasPrefix(expected[n-1], "exit ") {
			code, expected = strings.TrimPrefix(expected[n-1], "exit "), expected[:n-1]
		}
		if set, ok := strings.CutPrefix(command, "export "); ok {
			out.WriteString("env " + set + "\n")
			continue
		}
		if serve, ok := strings.CutPrefix(command, "assent serve "); ok {
			out.WriteString("serve " + strings.TrimSuffix(serve, " &") + "\n")
			continue
		}
		out.WriteString("exits " + code + " " + command + "\n")
		for _, line := range expected {
			out.WriteString(check(line) + "\n")
		}
	}

	return out.String()
}

// check returns the command that searches for a line of the example.
func check(line string) string {
	name := regexp.MustCompile(`\{([A-Z]+)\}`)
	pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
	pattern = regexp.MustCompile(`\\\{([A-Z]+)\\\}`).ReplaceAllString(pattern, `([0-9a-z][0-9A-Za-z_-]+)`)
	pattern = "'" + strings.ReplaceAll(strings.ReplaceAll(pattern, "'", "''"), "  ", " +") + "'"
	if found := name.FindStringSubmatch(line); found != nil {
		return "capture " + found[1] + " " + pattern
	}
	return "tells " + pattern
}
