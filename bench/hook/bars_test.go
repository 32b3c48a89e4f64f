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

// mostWork limits the processor time of an allowed call, at the median, and mostOfLeast its ratio to
// that of leasthook, which reads the same document and one row of the same store. The two run one after
// the other, so that both have the same load.
const (
	mostWork    = 12 * time.Millisecond
	mostOfLeast = 2.5
)

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
	bin, file, least := filepath.Join(dir, "assent"), filepath.Join(dir, "dev.agf.yaml"), filepath.Join(dir, "least")
	for _, args := range [][]string{
		{"build", "-C", "../..", "-o", bin, "./cmd/assent"}, {"build", "-C", "..", "-o", least, "./cmd/leasthook"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	if err := os.WriteFile(file, []byte(agent), 0o600); err != nil {
		t.Fatal(err)
	}
	var took, worked, leasts []time.Duration
	var ratios []float64
	for range runs + 1 {
		cmd := exec.Command(bin, "hook", "claude-code", "--agent-file", file)
		cmd.Stdin = strings.NewReader(document)
		began := time.Now()
		out, err := cmd.Output()
		if err != nil || len(out) > 0 { // no opinion: the product's own permissions decide
			t.Fatalf("%v\n%s", err, out)
		}
		took = append(took, time.Since(began))
		worked = append(worked, processorTime(cmd))
		start := exec.Command(least, filepath.Join(dir, "hook.db"))
		start.Stdin = strings.NewReader(document)
		if out, err := start.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		leasts = append(leasts, processorTime(start))
		ratios = append(ratios, float64(processorTime(cmd))/float64(processorTime(start)))
	}

	took, worked, ratios = took[1:], worked[1:], ratios[1:] // the first run makes the store
	slices.Sort(ratios)
	slices.Sort(took)
	slices.Sort(worked)
	slices.Sort(leasts)
	t.Logf("RESULT an allowed call of a hook: p50 %v, p99 %v; processor: p50 %v, p99 %v, p50 %.2f of %v",
		took[runs/2], took[runs*99/100], worked[runs/2], worked[runs*99/100], ratios[runs/2], leasts[runs/2])
	if median := took[runs/2]; median > bar {
		t.Errorf("p50 %v, expected %v at most", median, bar)
	}
	if median := worked[runs/2]; median > mostWork {
		t.Errorf("an allowed call takes %v of processor time, expected %v at most", median, mostWork)
	}
	if ratio := ratios[runs/2]; ratio > mostOfLeast {
		t.Errorf("an allowed call takes %.2f times the processor time of leasthook, expected %.1f at most", ratio, mostOfLeast)
	}
}

func processorTime(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
