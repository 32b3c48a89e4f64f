package repotest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// findingsPage lists what others found wrong, and the tests that hold
// what was mended.
const findingsPage = "docs/reference/findings.md"

// findingIDs are the findings that the page answers.
func findingIDs() []string {
	var out []string
	for _, group := range []struct {
		letter string
		last   int
	}{{"C", 1}, {"H", 7}, {"M", 11}, {"L", 16}, {"D", 25}, {"E", 8}} {
		for n := range group.last {
			out = append(out, fmt.Sprintf("%s%d", group.letter, n+1))
		}
	}

	users := []string{
		"1.5",
		"1.7",
		"1.8",
		"2.4",
		"2.8",
		"2.10",
		"2.12",
		"2.13",
		"2.14",
		"3.1",
		"3.2",
		"3.3",
		"3.4",
		"3.7",
		"3.9",
		"3.10",
		"3.13",
		"4.1",
		"4.2",
		"4.3",
		"4.5",
		"4.16",
	}

	return append(out, users...)
}

// finding is one row of the page.
type finding struct {
	id, wrong, done string
	tests           []string
}

var testName = regexp.MustCompile("`(?:[a-z0-9_/-]+\\.)?(Test[A-Za-z0-9_]+)`")

// readFindings reads the rows of the page, by id.
func readFindings(text string) map[string]finding {
	out := map[string]finding{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 {
			continue
		}
		f := finding{
			id:    strings.TrimSpace(cells[0]),
			wrong: cells[1],
			done:  cells[2],
		}
		for _, m := range testName.FindAllStringSubmatch(cells[3], -1) {
			f.tests = append(f.tests, m[1])
		}
		out[f.id] = f
	}

	return out
}

// testsOf lists the names of all tests.
func testsOf(sources map[string]string) map[string]bool {
	out := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	for path, text := range sources {
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			out[m[1]] = out[m[1]] || strings.HasSuffix(path, "_test.go")
		}
	}

	return out
}

// checkFindings says which findings are missing, which have no test of
// their name, and which tests there are not.
func checkFindings(rows map[string]finding, tests map[string]bool) []string {
	var out []string
	for _, id := range findingIDs() {
		f, ok := rows[id]
		if !ok {
			out = append(out, id+" is not on the page")
			continue
		}
		out = append(out, f.problems(tests)...)
	}

	for id := range rows {
		if id != "id" && !slices.Contains(findingIDs(), id) && !strings.HasPrefix(id, "-") {
			out = append(out, rows[id].problems(tests)...)
		}
	}

	return out
}

func (f finding) problems(tests map[string]bool) []string {
	var out []string
	for _, name := range f.tests {
		if !tests[name] {
			out = append(out, fmt.Sprintf("%s names %s, and there is no such test", f.id, name))
		}
	}
	open := strings.HasPrefix(f.done, "Won't do") || strings.HasPrefix(f.done, "Not yet")
	tag := strings.ReplaceAll(f.id, ".", "_") + "_"
	if !open && !slices.ContainsFunc(f.tests, func(name string) bool { return strings.Contains(name, tag) }) {
		out = append(out, fmt.Sprintf("%s has no test with %s in its name", f.id, tag))
	}
	if open && len(f.done) < 40 {
		out = append(out, f.id+" gives no reason why it is left")
	}

	return out
}

func TestFindingsAreHeldByTests(t *testing.T) {
	sources, err := texts(".go", findingsPage)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkFindings(readFindings(sources[findingsPage]), testsOf(sources)))
}

func TestFindingsThatNothingHoldsAreReported(t *testing.T) {
	rows := readFindings(
		"| id | wrong | done | test |\n| C1 | w | Mended. | `TestC1_X` |\n| H1 | w | Mended. | `TestOther` |\n| H2 " +
			"| w | Won't do: no | |\n",
	)
	got := strings.Join(checkFindings(rows, map[string]bool{"TestOther": true}), "\n")
	for _, want := range []string{
		"C1 names TestC1_X, and there is no such test",
		"H1 has no test with H1_ in its name",
		"H2 gives no reason",
		"H3 is not on the page",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not reported in\n%s", want, got)
		}
	}
}

// TestThreatsAreOnThePage: what comments and tests call a threat by its
// number stands on the page.
func TestThreatsAreOnThePage(t *testing.T) {
	const page = "docs/reference/threats.md"
	sources, err := texts(".go", ".md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?i)(?:\bthreats? (?:[0-9]+ and )?|TestThreat)([0-9]+)`)
	for path, text := range sources {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			number := strings.TrimLeft(m[1], "0")
			if !strings.Contains(sources[page], "\n| "+number+" | ") {
				t.Errorf("%s names threat %s, which is not on the page", path, number)
			}
		}
	}
}
