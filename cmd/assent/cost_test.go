package main

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/testtier"
)

// TestOneDocumentCostsLittle: the input of a hook or of `assent decide` costs at most a second of
// CPU time and 64 MB more than a small call.
func TestOneDocumentCostsLittle(t *testing.T) {
	const n = 1000 << 10
	each := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	flags := append(hookDir(t), "--wait", "0s")
	programs := map[string]func(args string) (stdin string, line []string){
		"hook": func(args string) (string, []string) {
			return hookDocs()["claude-code"](toolCall{"Bash", args, "1"}),
				append([]string{"hook", "claude-code"}, flags...)
		},
		"decide": func(args string) (string, []string) {
			return `{"kind":"tool","tool":"trade","args":` + args + `}`, []string{
				"decide", "--agent", testfiles.Write(t, t.TempDir()+"/desk.agf.yaml", testfiles.Agent), "--call", "-",
			}
		},
	}
	for name, program := range programs {
		measured := func(args string) (time.Duration, int64) {
			stdin, line := program(args)
			cmd, peak := testfiles.Peak(t, "assent", line...)
			cmd.Stdin = strings.NewReader(stdin)
			ends(t, cmd)
			return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak()
		}
		usual, memory := measured(`{"command":"true"}`)
		for what, args := range map[string]string{
			"items":         `{"command":[` + each("0,") + "0]}",
			"objects":       `{"command":[` + each("{},") + "{}]}",
			"levels":        `{"command":` + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + "}",
			"a number":      `{"command":` + each("9") + "}",
			"escapes":       `{"command":"` + each(`\u202e`) + `"}`,
			"commands":      `{"command":"` + each("a;") + `"}`,
			"pipes":         `{"command":"` + each("a|") + `"}`,
			"substitutions": `{"command":"` + strings.Repeat("$(", n/4) + strings.Repeat(")", n/4) + `"}`,
			"backticks":     `{"command":"` + each("`") + `"}`,
			"quotes":        `{"command":"` + each("'") + `"}`,
			"documents":     `{"command":"` + each(`<<a\n`) + `"}`,
			"braces":        `{"command":"echo ` + each("{a,b}") + `"}`,
			"ranges":        `{"command":"echo {1..999999999}"}`,
			"globs":         `{"command":"ls ` + each("*?") + `"}`,
			"programs":      `{"command":"` + each("sudo env ") + `rm"}`,
			"shells":        `{"command":"` + strings.Repeat("bash -c ", n/8) + `x"}`,
			"arithmetic":    `{"command":"echo $((` + each("1+") + `1))"}`,
			"functions":     `{"command":"` + each("f(){ f;};") + `"}`,
			"paths":         `{"command":"cd ` + each("../") + `"}`,
		} {
			if !testtier.Row(name, what) {
				continue
			}
			cpu, peak := measured(args)
			if cpu > usual+time.Second || peak > memory+64<<20 {
				t.Errorf("%s, %s: %v of a CPU and %d MB, a small call %v and %d", name, what, cpu, peak>>20, usual,
					memory>>20)
			}
		}
	}
}
