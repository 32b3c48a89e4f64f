package diag

import (
	"strings"
	"testing"
	"testing/fstest"
)

const page = `---
id: a-rule
title: A title: with a colon
severity: warning
spec: A section
---

Why it matters,
in two lines.

## Reported

` + "```yaml\nbad: 1\n```" + `

## Not reported

` + "```yaml\ngood: 1\n```\n"

func TestPagesAreReadInTheOrderOfTheirIDs(t *testing.T) {
	bare, _, _ := strings.Cut(strings.Replace(page, "a-rule", "bare", 1), "\n## Reported")
	fsys := fstest.MapFS{"rules/a-rule.md": {Data: []byte(page)}, "rules/bare.md": {Data: []byte(bare)}}
	got := Pages(fsys, "bare", "a-rule")

	want := RuleInfo{
		ID:       "a-rule",
		Title:    "A title: with a colon",
		Severity: Warning,
		Why:      "Why it matters, in two lines.",
		Bad:      "bad: 1\n",
		Good:     "good: 1\n",
		Spec:     "A section",
	}
	if len(got) != 2 || got[1] != want {
		t.Errorf("got %+v", got)
	}
	want.ID = "bare"
	want.Bad = ""
	want.Good = ""
	if got[0] != want {
		t.Errorf("got %+v", got[0])
	}
}

func TestMalformedPagesPanic(t *testing.T) {
	for name, c := range map[string]struct{ old, now, want string }{
		"no fields":           {"---\n", "", "does not begin with fields"},
		"an unknown field":    {"spec:", "section:", `the line "section: A section"`},
		"an empty field":      {"spec: A section", "spec: ", `the line "spec: "`},
		"an unknown severity": {"warning", "fatal", "a-rule"},
		"a field is missing":  {"title: A title: with a colon\n", "", "not complete"},
		"no reason":           {"Why it matters,\nin two lines.", "", "not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if message, _ := recover().(string); !strings.Contains(message, c.want) {
					t.Errorf("got %q", message)
				}
			}()
			Page(strings.ReplaceAll(page, c.old, c.now))
		})
	}

	defer func() {
		if message, _ := recover().(string); !strings.Contains(message, "rule b is not described") {
			t.Errorf("got %q", message)
		}
	}()
	Pages(fstest.MapFS{}, "b")
}
