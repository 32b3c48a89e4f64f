// Package testfiles is what the tests of both command lines share:
// files to write, contracts to read, hostile texts.
package testfiles

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Agent is an agent's file that has nothing wrong with it.
const Agent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: quote}, {alias: trade, approval: true}]}
`

// Write writes a file, makes its directories, and returns its path.
func Write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// Root returns the root of the repository, seen from the directory of a test.
func Root(t *testing.T) string {
	t.Helper()
	dir := "."
	for range 5 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Join(dir, "..")
	}

	t.Fatal("there is no go.mod above this test")

	return ""
}

// Contract reads a page of docs/contracts.
func Contract(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "docs", "contracts", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FirstCells lists the first column of every table row that holds code
// in back-quotes.
func FirstCells(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\|").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// CheckFlags compares the flags of a usage text with the rows of a contract.
func CheckFlags(t *testing.T, page, usages string) {
	t.Helper()
	rows := FirstCells(Contract(t, page))
	flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(usages, -1)
	for _, f := range flags {
		if !slices.ContainsFunc(rows, func(r string) bool { return r == f || strings.HasPrefix(r, f+" ") }) {
			t.Errorf("%s is not in docs/contracts/%s", f, page)
		}
	}
	for _, row := range rows {
		if name, _, _ := strings.Cut(row, " "); strings.HasPrefix(name, "--") && !slices.Contains(flags, name) {
			t.Errorf("docs/contracts/%s promises %s, which is no flag", page, name)
		}
	}
}

// Odd contains characters that must not reach a terminal, and some other unusual ones.
const Odd = "\x1b\a\b\r\n\t\x7f\u0085\u009b\u200b\u202e\u2028\ufeff\U000e0041 \\u{}"

// Hidden reports whether a text holds a character that does not print,
// line ends aside.
func Hidden(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}
