package plans_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/server/plans"
)

// TestBrokenFilesDecideAsBefore checks that, whatever files change and break in whatever
// order, every agent decides as if each broken file were its last good copy. So a mistake
// permits nothing more, and does not affect another agent.
func TestBrokenFilesDecideAsBefore(t *testing.T) {
	good := func(t *rapid.T, id string) string {
		gate := rapid.SampledFrom([]string{"", ", approval: true"}).Draw(t, "gate of "+id)
		children := map[string][]string{"a": {"b.agf.yaml", "c.agf.yaml"}, "b": {"c.agf.yaml"}}[id]
		return agent(id, gate, children[:rapid.IntRange(0, len(children)).Draw(t, "children of "+id)]...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		dirs := map[string]string{"as they stand": t.TempDir(), "last good": t.TempDir()}
		set := func(dir, name, text string) {
			path := filepath.Join(dirs[dir], name)
			must(rt, os.MkdirAll(filepath.Dir(path), 0o700))
			must(rt, os.WriteFile(path, []byte(text), 0o600))
		}
		change := func(name, text string, broken bool) {
			if !broken {
				set("last good", name, text)
			} else {
				text = strings.Replace(text, "schema_version:", "schema_version: [", 1)
			}
			set("as they stand", name, text)
		}
		config := func(dir string) plans.Config {
			return plans.Config{
				Agents:   []string{filepath.Join(dirs[dir], "agents")},
				Policies: []string{filepath.Join(dirs[dir], "policies")},
			}
		}
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			change("agents/"+id+".agf.yaml", good(rt, id), false)
		}
		change("policies/p.policy.yaml", strings.Replace(policyText, "[act]", "[other]", 1), false)
		p := load(t, config("as they stand"))
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			broken := rapid.Bool().Draw(rt, "broken")
			if which := rapid.SampledFrom([]string{"a", "b", "c", "policy"}).Draw(rt, "file"); which == "policy" {
				target := rapid.SampledFrom([]string{"[act]", "[other]"}).Draw(rt, "target")
				change("policies/p.policy.yaml", strings.Replace(policyText, "[act]", target, 1), broken)
			} else {
				change("agents/"+which+".agf.yaml", good(rt, which), broken)
			}

			p.Reload()
			fresh := load(t, config("last good"))
			for _, id := range ids {
				if got, want := outcome(p, id), outcome(fresh, id); got != want {
					rt.Fatalf("%s: %s, and by the last good files %s\n%v", id, got, want, p.Problems())
				}
			}
		}
	})
}
