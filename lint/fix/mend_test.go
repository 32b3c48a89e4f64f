package fix_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint/fix"
)

// misspelt returns an agent with a number of tools, each with a mistake and a
// comment.
func misspelt(tools int) string {
	var b strings.Builder
	b.WriteString("  local_tools:\n")
	for i := range tools {
		fmt.Fprintf(&b, "    - alias: pay%d # tool %d\n      aproval: true # ask %d\n", i, i, i)
	}
	return agent(b.String())
}

// TestOneCheckARound checks that the number of checks does not grow with the number of mistakes.
func TestOneCheckARound(t *testing.T) {
	checks, compared := 0, 0
	count := func(src []byte) []diag.Finding {
		checks++
		return check(src)
	}
	got := fix.Mend([]byte(misspelt(300)), count, func(_, _ []byte) string {
		compared++
		return ""
	})
	if string(got.Text) != strings.ReplaceAll(misspelt(300), "aproval", "approval") || len(got.Made) != 300 {
		t.Errorf("%d made:\n%s", len(got.Made), got.Text)
	}
	if checks != 2 || compared != 1 {
		t.Errorf("checked %d times, compared %d times", checks, compared)
	}
}

// TestEachIsJudgedByItself checks fixes with the same title, of which only some are allowed.
func TestEachIsJudgedByItself(t *testing.T) {
	before := misspelt(20)
	spared := func(_, after []byte) string {
		if strings.Contains(string(after), "approval: true # ask 7\n") {
			return "it asks more"
		}
		return ""
	}
	got := fix.Mend([]byte(before), check, spared)
	want := strings.Replace(strings.ReplaceAll(before, "aproval", "approval"), "approval: true # ask 7\n",
		"aproval: true # ask 7\n", 1)
	if string(got.Text) != want || len(got.Made) != 19 || len(got.Refused) != 1 {
		t.Fatalf("%d made, refused %v:\n%s", len(got.Made), got.Refused, got.Text)
	}
	at := got.Refused[0].Finding.Range.Start
	if line := strings.Split(want, "\n")[at.Line-1]; !strings.HasSuffix(line, "# ask 7") {
		t.Errorf("refused at line %d: %s", at.Line, line)
	}
}

// TestPlacesOfRefusals are those of the mended text, though lines above
// them went.
func TestPlacesOfRefusals(t *testing.T) {
	before := agent("  local_tools:\n    - alias: look\n      approval: false\n    - alias: pay\n      aproval: true\n")
	got := fix.Mend([]byte(before), check, func(_, after []byte) string {
		if strings.Contains(string(after), "approval: true") {
			return "it asks more"
		}
		return ""
	})
	if len(got.Refused) != 1 || got.Refused[0].Finding.Range.Start.Line != 9 {
		t.Errorf("refused %v:\n%s", got.Refused, got.Text)
	}
}

// TestAListKeepsAPart checks that fixes that each remove a part of a list don't remove all of them.
func TestAListKeepsAPart(t *testing.T) {
	before := agent("  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n" +
		"      allowed_tools: [get, get, get, get]\n")
	got := fix.Mend([]byte(before), check, always)
	if want := strings.Replace(before, ", get, get, get", "", 1); string(got.Text) != want {
		t.Errorf("mended:\n%s", got.Text)
	}
}

// TestMendingKeepsComments checks that every comment is preserved, in the same order, and that
// fixing again changes nothing.
func TestMendingKeepsComments(t *testing.T) {
	all := rows()
	names := slices.Sorted(maps.Keys(all))
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(all[name].before, "  local_tools:\n    -") || strings.Contains(all[name].before, "#")
	})
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		b.WriteString("  local_tools:\n")
		notes := 0
		note := func(form string) {
			if rapid.Bool().Draw(rt, "comment") {
				fmt.Fprintf(&b, form, notes)
				notes++
			}
		}
		for i := range rapid.IntRange(1, 6).Draw(rt, "tools") {
			row := all[rapid.SampledFrom(names).Draw(rt, "mistake")].before
			tool := strings.TrimPrefix(row, "  local_tools:\n")
			tool = strings.ReplaceAll(tool, "alias: pay", fmt.Sprintf("alias: pay%d", i))
			note("    # above %d.\n")
			b.WriteString(strings.TrimSuffix(tool, "\n"))
			note(" # beside %d.")
			b.WriteString("\n")
		}

		src := []byte(agent(b.String()))
		refuse := rapid.SampledFrom([]string{"none", "approval: true", `"yes"`}).Draw(rt, "refused")
		got := fix.Mend(src, check, func(_, after []byte) string {
			if strings.Contains(string(after), refuse) {
				return "not that"
			}
			return ""
		})
		if again := fix.Mend(got.Text, check, always); refuse == "none" && len(again.Made) > 0 {
			rt.Fatalf("mended again: %v\n%s", again.Made, got.Text)
		}
		last := 0
		for i := range notes {
			at := strings.Index(string(got.Text), fmt.Sprintf(" %d.", i))
			above := strings.Contains(string(src), fmt.Sprintf("above %d.", i))
			if at < 0 && above || at >= 0 && at < last {
				rt.Fatalf("comment %d is lost:\n%s\nbecomes\n%s", i, src, got.Text)
			}
			last = max(last, at)
		}
	})
}
