package wire_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

func page(t *testing.T) string {
	t.Helper()
	src := must.Get(os.ReadFile("../../docs/contracts/rap.md"))(t)
	_, rest, ok := strings.Cut(string(src), "\n## Messages\n")
	if !ok {
		t.Fatal("no section")
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// Each example of the page is parsed, and encoded to the same text.
func TestContract(t *testing.T) {
	names := map[string]string{
		"toolset":    "toolset/",
		"invocation": "invocation/",
		"callback":   "callback/",
		"answer":     "answer/",
		"close":      "notice/close",
		"cancel":     "notice/cancel",
	}
	blocks := regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	if len(blocks) != len(names) {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		for line := range strings.Lines(block[2]) {
			line = strings.TrimSpace(line)
			got, err := parse(names[block[1]], []byte(line))
			if err != nil {
				t.Errorf("%v\n%s", err, line)
			} else if again := string(written(got)); again != line {
				t.Errorf("%s\nis written as\n%s", line, again)
			}
		}
	}
}

// The table lists the members of every message in the order in which they are written, and
// marks optional ones.
func TestContractTable(t *testing.T) {
	rows := map[string]string{
		"toolset/":      "manifest",
		"invocation/":   "invocation",
		"answer/":       "answer",
		"notice/close":  "closure",
		"notice/cancel": "cancellation",
		"notice/status": "status check (proposed)",
	}
	text := page(t)
	for _, in := range forms() {
		row, ok := rows[in.name]
		if !ok {
			row = "`" + strings.TrimPrefix(in.name, "callback/") + "`"
		}
		var all []string
		for _, m := range in.members {
			mark := "`" + m.name + "`"
			if m.optional && m.name != "arguments" { // a tolerance of the reader
				mark += "?"
			}
			all = append(all, mark)
		}

		want := regexp.MustCompile(
			`(?m)^\| ` + regexp.QuoteMeta(row) + ` \|.*\| ` + regexp.QuoteMeta(strings.Join(all, " ")) + ` \|$`,
		)
		if !want.MatchString(text) {
			t.Errorf("no row for %s: %s", row, strings.Join(all, " "))
		}
		got := must.Get(in.parse(in.body("", "")))(t)
		out, from := string(written(got)), 0
		for _, m := range in.members {
			at := strings.Index(out[from:], `"`+m.name+`":`)
			if at < 0 {
				t.Fatalf("%s is not in its place: %s", m.name, out)
			}
			from += at + 1
		}
	}
}
