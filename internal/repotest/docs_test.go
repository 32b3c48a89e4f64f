package repotest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/resolve"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline  = regexp.MustCompile("`[^`\n]*`")
)

// checkLinks complains about links between our own pages that lead
// nowhere. exists reports whether a path is there.
func checkLinks(pages map[string]string, exists func(string) bool) []string {
	var out []string
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(
			inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""),
			-1,
		) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			full := page
			if target != "" {
				full = path.Join(path.Dir(page), target)
			}
			if !exists(full) {
				out = append(out, fmt.Sprintf("%s: link to %s, which is not there", page, m[1]))
			} else if other, ok := pages[full]; anchor != "" && ok && !anchors(other)[anchor] {
				out = append(out, fmt.Sprintf("%s: link to %s, but that page has no such heading", page, m[1]))
			}
		}
	}

	return out
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case strings.ContainsRune("-_", r), r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
				return r
			}

			return -1
		}, strings.ToLower(m[1]))
		names[name] = true
	}

	return names
}

func TestLinks(t *testing.T) {
	pages := must(t, func() (map[string]string, error) { return texts(".md") })
	report(t, checkLinks(pages, func(name string) bool {
		_, err := fs.Stat(os.DirFS(top), name)
		return err == nil
	}))
}

func TestLinkCheckFails(t *testing.T) {
	pages := map[string]string{
		"README.md": "# Read me\n[a](docs/a.md) [b](docs/a.md#what-it-is) [c](https://example.com/x) " +
			"`[d](nowhere)`\n```\n[e](nowhere)\n```\n[f](#read-me)",
		"docs/a.md":   "## What it is\n[up](../README.md#read-me)",
		"docs/bad.md": "[x](c.md)",
		"docs/old.md": "[x](a.md#what-it-was)",
	}
	exists := func(name string) bool { return pages[name] != "" }
	complaints := checkLinks(pages, exists)
	if len(complaints) != 2 {
		t.Errorf("want two complaints, got %q", complaints)
	}
	delete(pages, "docs/old.md")
	catches(t, checkLinks(pages, exists), "docs/bad.md: link to c.md, which is not there")
	delete(pages, "docs/bad.md")
	report(t, checkLinks(pages, exists))
}

// The table of docs/design/001-semantics.md is between these lines. It is generated from
// resolve.Points.
const (
	semanticsPage = "docs/design/001-semantics.md"
	tableBegin    = "<!-- table: made by `make update` from resolve.Points, don't edit -->\n"
	tableEnd      = "<!-- end of table -->"
)

// semanticsTable prints the silent points of the standard with our answers.
func semanticsTable(points []resolve.Point) string {
	var b strings.Builder
	b.WriteString("| point | the standard leaves open | our answer | switch | where |\n|---|---|---|---|---|\n")
	for _, p := range points {
		name, other := p.Name, "fixed"
		if p.Alternatives != "" {
			name, other = "`"+p.Name+"`", "`"+p.Switch()+"`"
		}
		cells := []string{name, p.Question, p.Default, other, p.Spec}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}

	return b.String()
}

// withTable replaces the table in the page. It returns false if the page has no place for it.
func withTable(page, table string) (string, bool) {
	before, rest, ok := strings.Cut(page, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	return before + tableBegin + table + tableEnd + after, ok && ok2
}

func TestSemanticsPage(t *testing.T) {
	page := must(t, read(semanticsPage))
	fresh, ok := withTable(page, semanticsTable(resolve.Points()))
	if !ok {
		t.Fatalf("%s has no place for the table", semanticsPage)
	}
	if golden.Update() {
		if err := os.WriteFile(filepath.Join(top, semanticsPage), []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != fresh {
		t.Errorf("%s is stale: run `make update`", semanticsPage)
	}
}

func TestSemanticsTable(t *testing.T) {
	got := semanticsTable([]resolve.Point{
		{Name: "null", Question: "Q?", Default: "A", Spec: "S"},
		{
			Name:         "Undeclared",
			Question:     "a|b?",
			Default:      "deny",
			Alternatives: "ask",
			Spec:         "S",
		},
	})
	want := "| point | the standard leaves open | our answer | switch | where |\n|---|---|---|---|---|\n" +
		"| null | Q? | A | fixed | S |\n| `Undeclared` | a\\|b? | deny | `undeclared: ask` | S |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	stale := "# Page\n" + tableBegin + "old\n" + tableEnd + "\nmore\n"
	if fresh, ok := withTable(stale, "new\n"); !ok || fresh != strings.Replace(stale, "old", "new", 1) {
		t.Errorf("got %q, %v", fresh, ok)
	}
	if _, ok := withTable("# Page\n", "new\n"); ok {
		t.Error("a page without the marks must be refused")
	}
}

// TestThreatsAreOnThePage checks that the page of threats has a row for
// each number that a comment mentions.
func TestThreatsAreOnThePage(t *testing.T) {
	const page = "docs/reference/threats.md"
	sources, err := texts(".go", ".md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?i)\bthreats? (?:[0-9]+ and )?([0-9]+)`)
	for path, text := range sources {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			number := strings.TrimLeft(m[1], "0")
			if !strings.Contains(sources[page], "\n| "+number+" | ") {
				t.Errorf("%s names threat %s, which is not on the page", path, number)
			}
		}
	}
}
