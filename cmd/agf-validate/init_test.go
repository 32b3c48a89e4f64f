package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestInitGatesWhateverIsOffered: for any names and descriptions of tools, init either writes
// nothing, or files without a finding in which every call of every tool asks.
func TestInitGatesWhateverIsOffered(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,6}(_[a-z0-9]{1,4}){0,2}`),
		rapid.SampledFrom(strings.Split("null|~|on|1e3|0x1|a: b|- x|#x|get-it|Ä|a\tb|x*| y|'|\"", "|")),
		rapid.String(),
	)
	written, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfNDistinct(name, 1, 5, rapid.ID[string]).Draw(r, "names")
		var tools []map[string]any
		for _, n := range names {
			tool := map[string]any{
				"name":        n,
				"description": rapid.String().Draw(r, "description"),
				"inputSchema": map[string]any{"type": "object"},
			}
			if rapid.Bool().Draw(r, "hinted") {
				tool["annotations"] = map[string]any{
					"readOnlyHint":    rapid.Bool().Draw(r, "read-only"),
					"destructiveHint": rapid.Bool().Draw(r, "destructive"),
				}
			}

			tools = append(tools, tool)
		}

		text, err := json.Marshal(map[string]any{"tools": tools})
		if err != nil {
			r.Fatal(err)
		}
		dir := t.TempDir()
		list, desk := filepath.Join(dir, "bank.json"), filepath.Join(dir, "desk")
		if err := os.WriteFile(list, text, 0o600); err != nil {
			r.Fatal(err)
		}
		if _, errOut, code := validated(t, "init", "--tools", list, desk); code != term.ExitOK {
			if _, err := os.Stat(desk); err == nil || code != term.ExitFailure || errOut == "" {
				r.Fatalf("exit %d, %v: %s", code, err, errOut)
			}
			refused++
			return
		}

		written++
		if out, errOut, code := validated(
			t,
			"--fail-on", "info",
			"--policies", filepath.Join(desk, "policies"),
			"--people", filepath.Join(desk, "people.yaml"),
			"--tools", "bank="+filepath.Join(desk, "tools", "bank.json"),
			desk,
		); code != term.ExitOK {
			r.Fatalf("exit %d\n%s%s", code, out, errOut)
		}

		if out, errOut, code := validated(t, "test", desk); code != term.ExitOK {
			r.Fatalf("its tests: exit %d\n%s%s", code, out, errOut)
		}
		plan := planOf(r, desk)
		for _, n := range names {
			call := &resolve.Call{Kind: resolve.MCPTool, Server: "bank", Tool: n}
			if got := plan.Decide(call).Outcome; got != resolve.Ask {
				r.Fatalf("a call of %q: %v", n, got)
			}
		}
	})
	if written == 0 || refused == 0 {
		t.Errorf("%d were written, %d refused", written, refused)
	}
}

func planOf(t *rapid.T, dir string) *resolve.Plan {
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		must.Do(t, err)
		return text
	}
	agent, findings := schema.Parse(agentFile, read(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	pol, findings := policy.Parse(policyFile, read(policyFile))
	if pol == nil {
		t.Fatal(findings)
	}
	set, _ := policy.NewSet(pol)
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	must.Do(t, err)

	return plan
}
