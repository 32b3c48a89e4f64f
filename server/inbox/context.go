package inbox

import (
	"strings"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/safetext"
)

// contextItem is one thing that the agent says, ready to be looked at.
type contextItem struct {
	Label safetext.Shown
	Text  safetext.Shown // of a text; the address of a link
	Link  string
	Host  string // where the link leads
	Lines []contextLine
}

type contextLine struct {
	Kind info.LineKind
	Text safetext.Shown
}

// contextOf shows what the agent says. It stands below the facts, in a
// frame of its own.
func contextOf(items []info.Item) []contextItem {
	var out []contextItem
	for i := range items {
		it := &items[i]
		one := contextItem{
			Label: safetext.Inspect(it.Label, safetext.Form{}),
			Text:  safetext.Inspect(it.Text+it.Link, safetext.Form{Lines: true}),
			Link:  it.Link,
		}
		if it.Link != "" {
			one.Host = it.Host()
		}
		one.Lines = diffLines(it.Diff)
		out = append(out, one)
	}

	return out
}

// diffLines are the lines of a unified diff. One that can't be read any
// more is shown as it is.
func diffLines(diff string) []contextLine {
	if diff == "" {
		return nil
	}
	lines, err := info.ParseDiff(diff)
	if err != nil {
		lines = nil
		for text := range strings.SplitSeq(diff, "\n") {
			lines = append(lines, info.Line{Kind: info.Same, Text: text})
		}
	}

	out := make([]contextLine, len(lines))
	for i, l := range lines {
		out[i] = contextLine{l.Kind, safetext.Inspect(l.Text, safetext.Form{})}
	}

	return out
}
