package repotest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// apart says which packages a command must not link: an operator's
// binary holds no agent framework, and nothing that is shipped holds
// helpers of tests.
func apart() map[string][]string {
	helpers := []string{"internal/assenttest", "internal/testwait", "internal/must"}

	return map[string][]string{
		"cmd/assent":       append([]string{"agent", "agent/content"}, helpers...),
		"cmd/agf-validate": append([]string{"agent", "agent/content"}, helpers...),
	}
}

// checkReach complains about commands that link a package which they
// must not.
func checkReach(apart map[string][]string, packages []pkg) []string {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.path] = p.imports
	}
	var out []string
	for command, barred := range apart {
		if _, ok := imports[command]; !ok {
			out = append(out, "there is no command "+command)
		}
		for path, by := range reached(command, imports) {
			if slices.Contains(barred, path) {
				out = append(out, fmt.Sprintf("%s links %s, which %s imports", command, path, by))
			}
		}
	}

	return out
}

// reached returns the packages that one package links, each with a
// package that imports it.
func reached(from string, imports map[string][]string) map[string]string {
	out := map[string]string{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range imports[queue[0]] {
			path, ours := strings.CutPrefix(imported, modulePath+"/")
			if _, seen := out[path]; ours && !seen {
				out[path] = queue[0]
				queue = append(queue, path)
			}
		}
	}

	return out
}

func TestReach(t *testing.T) { report(t, checkReach(apart(), must(t, repository))) }

func TestReachCheckFails(t *testing.T) {
	command := sample(t, "cmd/x", `package main; import _ "github.com/assent-dev/assent/rap"`)
	between := sample(t, "rap", `package rap; import _ "github.com/assent-dev/assent/agent"`)
	agent := sample(t, "agent", `package agent`)
	barred := map[string][]string{"cmd/x": {"agent"}}
	catches(t, checkReach(barred, []pkg{command, between, agent}), "cmd/x links agent, which rap imports")
	catches(t, checkReach(barred, []pkg{agent}), "there is no command cmd/x")
}
