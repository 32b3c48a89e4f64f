package inbox

import (
	"strings"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/safetext"
)

// contextItem is one item of the agent, ready to be shown.
type contextItem struct {
	Label safetext.Shown
	Text  safetext.Shown // a text, or the address of a link
	Link  string
	Host  string // host of the link
	Lines []contextLine
}

type contextLine struct {
	Kind info.LineKind
	Text safetext.Shown
}

// contextOf returns the agent's items for display. The page shows them below the facts, in a
// separate frame.
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

// diffLines returns the lines of a unified diff. A diff that can't be parsed any more is shown
// unchanged.
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
