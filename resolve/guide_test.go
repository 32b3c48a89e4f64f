package resolve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestTheShellGuideIsTrue checks the lines in docs/guides/shell.md: with the guide's files, they
// run or ask as its table says.
func TestTheShellGuideIsTrue(t *testing.T) {
	text, err := os.ReadFile("../docs/guides/shell.md")
	must.Do(t, err)
	blocks := strings.Split(string(text), "```")
	config, agent := strings.TrimPrefix(blocks[1], "yaml\n"), strings.TrimPrefix(blocks[3], "yaml\n")
	p := plan(t, configOf(t, config).Options(), agent)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(strings.ReplaceAll(line, `\|`, "\x00")), "|")
		if len(cells) != 4 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		rows++
		command := strings.ReplaceAll(strings.Trim(cells[1], " `"), "\x00", "|")
		want := resolve.Ask
		if strings.HasPrefix(strings.TrimSpace(cells[2]), "runs") {
			want = resolve.Allow
		}
		if d := decideIn(t, p, command); d.Outcome != want {
			t.Errorf("%s: %+v", command, d)
		}
	}

	if rows != 10 {
		t.Errorf("%d rows", rows)
	}
}

func decideIn(t *testing.T, p *resolve.Plan, command string) resolve.Decision {
	t.Helper()
	c := shellCall(t, command)
	c.Workspace = &resolve.Workspace{Root: "/work/app"}

	return p.Decide(c)
}
