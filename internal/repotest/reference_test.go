package repotest

import (
	"regexp"
	"strings"
	"testing"
)

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
