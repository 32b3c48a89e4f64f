package repotest

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// requirementsPage lists the requirements of the designs, with the tests for each row.
const requirementsPage = "docs/reference/requirements.md"

var (
	requirementID = regexp.MustCompile(`^([ARUP])([0-9]+)$`)
	heldBy        = regexp.MustCompile("`([a-z0-9_/-]+)\\.(Test[A-Za-z0-9_]+)`")
	partly        = regexp.MustCompile(`(?i)\b(partial|partly|in part|mostly)\b`)
)

// testsByPackage lists the tests of each folder.
func testsByPackage(sources map[string]string) map[string]bool {
	out := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
	for file, text := range sources {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			out[path.Dir(file)+"."+m[1]] = true
		}
	}

	return out
}

// checkRequirements complains about rows without a test, about tests that don't exist, and about
// rows that are missing from the count of their design.
func checkRequirements(text string, tests map[string]bool) []string {
	var out []string
	last := map[string]int{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		id := requirementID.FindStringSubmatch(strings.TrimSpace(cells[0]))
		if !strings.HasPrefix(line, "| ") || id == nil {
			continue
		}
		if n, _ := strconv.Atoi(id[2]); n != last[id[1]]+1 {
			out = append(out, fmt.Sprintf("%s does not follow %s%d", id[0], id[1], last[id[1]]))
		}
		last[id[1]]++
		if len(cells) != 3 {
			out = append(out, id[0]+" has not three cells")
			continue
		}
		out = append(out, rowProblems(id[0], cells[1], cells[2], tests)...)
	}

	for design, least := range map[string]int{"A": 33, "U": 27, "R": 19, "P": 6} {
		if last[design] < least {
			out = append(out, fmt.Sprintf("%s has %d rows, and had %d", design, last[design], least))
		}
	}
	return out
}

func rowProblems(id, asked, held string, tests map[string]bool) []string {
	var out []string
	named := heldBy.FindAllStringSubmatch(held, -1)
	if len(named) == 0 {
		out = append(out, id+" names no test")
	}
	if n := strings.Count(held, "`"); n != 2*len(named) {
		out = append(out, id+" names what is no test of a package")
	}
	for _, m := range named {
		if !tests[m[1]+"."+m[2]] {
			out = append(out, fmt.Sprintf("%s names %s.%s, and there is no such test", id, m[1], m[2]))
		}
	}

	if partly.MatchString(asked) {
		out = append(out, id+" holds in part only")
	}
	return out
}

func TestRequirementsAreHeldByTests(t *testing.T) {
	sources, err := texts(".go", requirementsPage)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkRequirements(sources[requirementsPage], testsByPackage(sources)))
}

func TestRequirementsThatNothingHoldsAreReported(t *testing.T) {
	got := strings.Join(checkRequirements(
		"| A1 | x | `agent.TestThere` |\n| A2 | x | |\n| A3 | x | `agent.TestGone` |\n| A4 | x | `TestThere` |\n"+
			"| A6 | works in part | `agent.TestThere` |\n| U1 | x | y | `agent.TestThere` |\n",
		map[string]bool{"agent.TestThere": true},
	), "\n")
	for _, want := range []string{
		"A2 names no test",
		"A3 names agent.TestGone, and there is no such test",
		"A4 names what is no test of a package",
		"A6 does not follow A4",
		"A6 holds in part only",
		"U1 has not three cells",
		"P has 0 rows, and had 6",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not reported in\n%s", want, got)
		}
	}

	if strings.Contains(got, "A1 ") {
		t.Errorf("a sound row is reported:\n%s", got)
	}
}
