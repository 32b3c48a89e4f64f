package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

// TestOneFileCostsLittle: a YAML file of 100 kB costs at most a second of CPU time and 64 MB more
// than a small one, whatever it contains.
func TestOneFileCostsLittle(t *testing.T) {
	const n = 100_000
	each := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	lines := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	field := func(more string) string {
		return strings.Replace(testfiles.Agent, "action_space:", "x: "+more+"\naction_space:", 1)
	}
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 7), i)
	}
	head, _, _ := strings.Cut(testfiles.Agent, "action_space:")
	const condition = "{args_match: {a%d: {gt: %d}, b: {pattern: '^(a|b{1,9})*%d$'}}}"
	gates := func(tools string) string { return head + "action_space:\n  local_tools:\n" + tools }
	pattern := func(p string) string {
		return gates("    - {alias: t, approval: {condition: {args_match: {a: {pattern: '" + p + "'}}}}}\n")
	}
	measured := func(name, text string) (time.Duration, int64) {
		dir := t.TempDir()
		cmd, peak := testfiles.Peak(t, "agf-validate", testfiles.Write(t, filepath.Join(dir, name), text))
		if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 2 {
			t.Errorf("%v: %.500s", err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak()
	}
	usual, memory := measured("a.agf.yaml", testfiles.Agent)
	for what, text := range map[string]string{
		"laughs":       laughs,
		"items":        field("[" + each("0,") + "0]"),
		"objects":      field("[" + each("{},") + "{}]"),
		"levels":       field(strings.Repeat("[", n/2) + strings.Repeat("]", n/2)),
		"block levels": field("\n" + blockLevels(500)),
		"keys":         lines("k%d: 1\n"),
		"equal keys":   each("a: 1\n"),
		"anchors":      lines("k%d: &a%d 1\n"),
		"merges":       "a: &a {b: 1}\n" + lines("k%d: {<<: *a}\n"),
		"question":     each("? "),
		"dashes":       each("- "),
		"a text":       field(`"` + each(`\u202e`) + `"`),
		"a number":     field(each("9")),
		"a comment":    "#" + each("a"),
		"comments":     each("#\n"),
		"documents":    each("---\n"),
		"tags":         field("[" + each("!!str a,") + "b]"),
		"look-alikes":  field(each("аa ")),
		"tools": gates(lines("    - {alias: t%d, approval: {message_template: 'Run %d', condition: " +
			condition + "}}\n")),
		"conditions": gates("    - {alias: t, approval: {condition: [" +
			lines("{args_match: {a%d: {gt: %d}}}, ") + "{args_match: {b: 1}}]}}\n"),
		"a pattern":      pattern(strings.Repeat("(", 900) + "a" + strings.Repeat("{1,9})", 900)),
		"an alternative": pattern(lines("a%d|") + "b"),
		"a template":     gates("    - {alias: t, approval: {message_template: '" + each("{{#tool_args.a}}") + "'}}\n"),
	} {
		cpu, peak := measured("a.agf.yaml", text)
		if cpu > usual+time.Second || peak > memory+64<<20 {
			t.Errorf("%s: %v of a CPU and %d MB, a small file %v and %d", what, cpu, peak>>20, usual, memory>>20)
		}
	}
}

func blockLevels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i+2))
	}
	return b.String()
}
