//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

const fleetHead = `schema_version: "1.0.0"
metadata: {id: %s, name: N, version: "1.0.0", description: D}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: T., model: any}}
action_space:
  local_tools:
`

// writeFleet writes two agents with a hundred tools, half of them gated, one below the other, and
// policies that each concern a few tools. Half of the gates and every tenth policy have the given
// bound.
func writeFleet(files map[string]string, side string, policies, bound int) {
	for _, id := range []string{"desk", "clerk"} {
		var b strings.Builder
		fmt.Fprintf(&b, fleetHead, id)
		for i := range 100 {
			fmt.Fprintf(&b, "    - alias: tool_%d\n", i)
			if i%2 == 0 {
				fmt.Fprintf(&b, "      approval: {condition: [{args_match: {amount: {gt: %d}, currency: USD}}, "+
					"{args_match: {to: {pattern: '^ext-\\d+'}}}]}\n", 1000+bound*(i%4))
			}
		}

		if id == "desk" {
			b.WriteString("  local_agents: [{alias: clerk, source: clerk.agf.yaml}]\n")
		}
		files[side+"/"+id+".agf.yaml"] = b.String()
	}

	for i := range policies {
		high := 5000
		if i%10 == 0 {
			high += bound
		}
		files[fmt.Sprintf("%s/p%04d.policy.yaml", side, i)] = fmt.Sprintf(`schema_version: "1.0.0"
policy_ref: p%04d
applies: implicit
rules:
  - id: large
    match: {targets: ["tool_%d*"]}
    approval: {condition: [{args_match: {amount: {gt: %d}}}]}
    require: {stages: [{group: g%d, people: 2}], within: 30m}
  - id: hosts
    match: {targets: ["tool_%d"]}
    approval: {condition: [{args_match: {host: {pattern: '\.c%d\.example$'}}}]}
`, i, i%100, high, i%7, (i+3)%100, i)
	}
}

// TestDiffIsQuickAndSmall: the bounds are processor time and the most
// memory of the whole program, since others use the machine. They use
// its caches too, and machines differ: what takes 6 s on one takes 14 s
// on another. With ASSENT_LOAD=full (`make long`) it compares a thousand
// policies, and otherwise 300.
func TestDiffIsQuickAndSmall(t *testing.T) {
	type fleet struct {
		policies int
		most     time.Duration
		memory   int64 // MB
	}
	fleets := []fleet{{50, time.Second, 80}, {300, 5 * time.Second, 120}}
	if os.Getenv("ASSENT_LOAD") == "full" {
		fleets[1] = fleet{1000, 30 * time.Second, 200}
	}
	for _, c := range fleets {
		t.Run(fmt.Sprint(c.policies), func(t *testing.T) {
			files := map[string]string{}
			writeFleet(files, "old", c.policies, 0)
			writeFleet(files, "new", c.policies, 500)
			tree(t, files)
			cmd, peak := testfiles.Peak(t, "agf-validate", "diff", "--allow-loosening", "old", "new")
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			spent, memory := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), peak()
			t.Logf("%s, %d MB, %d lines", spent, memory>>20, strings.Count(out.String(), "\n"))
			if spent > c.most || memory>>20 > c.memory || !strings.Contains(out.String(), "; no longer for") {
				t.Errorf("%s and %d MB, expected at most %s and %d MB\n%.2000s", spent, memory>>20, c.most, c.memory,
					out.String())
			}
		})
	}
}
