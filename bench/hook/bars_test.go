//go:build bars

package hook

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bar limits the time of an allowed hook call, from the start of its process to its end, at the
// median. The hook runs before every tool call.
const bar = 20 * time.Millisecond

// mostOfStart limits the ratio of processor time: an allowed call to a process that prints only
// the help. The help runs right after each call, so that both have the same load.
const mostOfStart = 2.4

const agent = `schema_version: "1.0.0"
metadata: {id: dev, name: Dev, version: "1.0.0", description: Codes.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Code., model: any}}
action_space:
  local_tools: [{alias: Read}, {alias: Bash, approval: true}]
`

const document = `{"session_id":"s","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse",` +
	`"tool_name":"Read","tool_input":{"path":"/a"},"tool_use_id":"toolu_1"}`

// TestHookIsNotFelt runs real processes one after the other, on a store of their own.
func TestHookIsNotFelt(t *testing.T) {
	const runs = 200
	dir := t.TempDir()
	bin, file := filepath.Join(dir, "assent"), filepath.Join(dir, "dev.agf.yaml")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", bin, "./cmd/assent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(agent), 0o600); err != nil {
		t.Fatal(err)
	}
	var took, worked []time.Duration
	var ratios []float64
	for range runs + 1 {
		cmd := exec.Command(bin, "hook", "claude-code", "--agent-file", file)
		cmd.Stdin = strings.NewReader(document)
		began := time.Now()
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"allow"`) {
			t.Fatalf("%v\n%s", err, out)
		}
		took = append(took, time.Since(began))
		worked = append(worked, processorTime(cmd))
		start := exec.Command(bin, "hook", "--help")
		if out, err := start.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		ratios = append(ratios, float64(processorTime(cmd))/float64(processorTime(start)))
	}

	took, worked, ratios = took[1:], worked[1:], ratios[1:] // the first run makes the store
	slices.Sort(ratios)
	slices.Sort(took)
	slices.Sort(worked)
	t.Logf("RESULT an allowed call of a hook: p50 %v, p99 %v; processor: p50 %v, p99 %v, p50 %.2f of a start",
		took[runs/2], took[runs*99/100], worked[runs/2], worked[runs*99/100], ratios[runs/2])
	if median := took[runs/2]; median > bar {
		t.Errorf("p50 %v, expected %v at most", median, bar)
	}
	if ratio := ratios[runs/2]; ratio > mostOfStart {
		t.Errorf("an allowed call takes %.2f times the processor time of a start, expected %.1f at most", ratio, mostOfStart)
	}
}

func processorTime(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
