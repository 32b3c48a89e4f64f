package repotest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var cookbookRule = regexp.MustCompile(`(?m)^  - id: (\S+)`)

// TestDocsCookbook checks the rules of docs/cookbook, runs their tests, and requires of each rule a call that it
// stops, a call that it does not stop, and a row in the README. A test's name begins with the rule's id.
func TestDocsCookbook(t *testing.T) {
	bin := binaries(t)
	cookbook := filepath.Join(top, "docs", "cookbook")
	files, err := filepath.Glob(filepath.Join(cookbook, "*", "policies", "*.policy.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d policies, %v", len(files), err)
	}
	readme := readText(t, filepath.Join(cookbook, "README.md"))
	for _, file := range files {
		dir := filepath.Dir(filepath.Dir(file))
		for _, args := range [][]string{{dir}, {"test", dir}} {
			if out, err := exec.Command(filepath.Join(bin, "agf-validate"), args...).CombinedOutput(); err != nil {
				t.Errorf("agf-validate %s: %v\n%s", args, err, out)
			}
		}
		tests := strings.Split(readText(t, filepath.Join(dir, filepath.Base(dir)+".test.yaml")), "  - name: \"")
		for _, rule := range cookbookRule.FindAllStringSubmatch(readText(t, file), -1) {
			stops, passes := false, false
			for _, test := range tests {
				if strings.HasPrefix(test, rule[1]+": ") {
					stopped := strings.Contains(test, "{rule: "+rule[1]+"}")
					stops = stops || stopped
					passes = passes || !stopped && strings.Contains(test, "outcome: allow") ||
						!stopped && strings.Contains(test, "all_reasons")
				}
			}
			if !stops || !passes || !strings.Contains(readme, "| `"+rule[1]+"` |") {
				t.Errorf("%s: rule %s lacks a call that it stops (%t), one that it does not (%t), or its row in the README",
					file, rule[1], stops, passes)
			}
		}
	}
}
