package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

// TestHookBlocksToolsByOtherNames than the file has: separators, control
// characters and other letters make no tool of a name.
func TestHookBlocksToolsByOtherNames(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s")
		for _, name := range []string{
			"mcp__github__get_issue__x", "mcp__github__x__get_issue", "mcp__github__", "mcp____get_issue", "mcp__",
			"mcp__git__hub__get_issue", "github/get_issue", "Bash/../Read", "..", "/", ".", "read", "Read ", " Read",
			`Read\u0000`, `\u0000Read`, `Read\n`, `Read\u202e`, `Re\u200bad`, `R\u0435ad`, `Read,Bash`, `*`, "",
		} {
			h := hookRuns(t, product, strings.Replace(doc(callOf("Read", `{}`)), `"Read"`, `"`+name+`"`, 1), flags...)
			blocks(t, product, h)
			if !strings.Contains(h.out+h.err, "Not run") {
				t.Errorf("%q is answered without a reason: %+v", name, h)
			}
		}
	})
}

// TestHookReadsLargeInputs of megabytes, and refuses larger ones with
// the limit.
func TestHookReadsLargeInputs(t *testing.T) {
	const mostMemory = 256 << 20
	flags := append(hookDir(t), "--wait", "0s")
	call := func(megabytes int) string {
		args := `{"command":"` + strings.Repeat("x", megabytes<<20) + `"}`
		return hookDocs()["claude-code"](toolCall{"Bash", args, strconv.Itoa(megabytes)})
	}
	for _, c := range []struct {
		megabytes int
		says      string
	}{
		{1, "Not run yet. People are still asked"},
		{10, "10485774 bytes, at most 2097152 are read"},
		{17, "the hook document is larger than 16 MiB"},
	} {
		cmd, peak := testfiles.Peak(t, "assent", append([]string{"hook", "claude-code"}, flags...)...)
		cmd.Stdin = strings.NewReader(call(c.megabytes))
		h := ends(t, cmd)
		if memory := peak(); !strings.Contains(h.out+h.err, c.says) || memory > mostMemory {
			t.Errorf("%d MB, with %d bytes: exit %d, %.300s%.300s", c.megabytes, memory, h.code, h.out, h.err)
		}
	}
}

// TestHookBlocksOnAFullDisk: a store that can't be written blocks what
// would be recorded there, and says so.
func TestHookBlocksOnAFullDisk(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := strings.Join(hookDir(t), " ")
		for _, blocksOf := range []string{"0", "8", "64"} { // of 512 bytes, beyond which no file grows
			cmd := exec.Command("sh", "-c", "ulimit -f "+blocksOf+"; exec assent hook "+product+" "+flags+" --wait 0s")
			cmd.Stdin = strings.NewReader(doc(callOf("Bash", `{"text":"`+strings.Repeat("x", 1<<16)+`"}`)))
			h := ends(t, cmd)
			blocks(t, product, h)
			if !strings.Contains(h.err, "see that its disk has room") {
				t.Errorf("at %s blocks: %+v", blocksOf, h)
			}
		}
	})
}

// TestHookReadsCopilotsArgumentsAsAnObject, too, as newer versions of
// Copilot CLI send them.
func TestHookReadsCopilotsArgumentsAsAnObject(t *testing.T) {
	args := `{"path":"/a","n":9007199254740993,"b":1.0}`
	doc := `{"sessionId":"s","timestamp":1,"cwd":"/w","toolName":"Read","toolArgs":` + args + `}`
	if got := answers(t, "copilot", doc, hookDir(t)...); got != noOpinion() {
		t.Errorf("%+v", got)
	}
	doc = strings.Replace(doc, `"b":1.0`, `"n":1`, 1)
	blocks(t, "copilot", hookRuns(t, "copilot", doc, hookDir(t)...))
}
