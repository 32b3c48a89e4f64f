package info_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/must"
)

const diff = "--- a/motd\n+++ b/motd\n@@ -1,2 +1,3 @@ func x\n same\n-old\n+new\n+more\n" +
	"\\ No newline at end of file\n@@ -9 +10 @@\n-x\n+y\n"

func TestAcceptsTextsLinksAndDiffs(t *testing.T) {
	err := info.Check([]info.Item{
		{Label: "Why", Text: "The customer asked twice.\nSee the ticket."},
		{Label: "Ticket", Link: "https://tickets.example.com/4711?tab=%C3%A9#top"},
		{Label: "Change", Diff: diff},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRefusesWithAPlaceAndARemedy(t *testing.T) {
	many := make([]info.Item, info.MaxItems+1)
	for i := range many {
		many[i] = info.Item{Label: "x", Text: "y"}
	}

	text := func(label, text string) []info.Item { return []info.Item{{Label: label, Text: text}} }
	link := func(link string) []info.Item { return []info.Item{{Label: "x", Link: link}} }
	for _, bad := range []struct {
		items      []info.Item
		path, want string
	}{
		{many, "context", "at most 20 items"},
		{text("x", strings.Repeat("y", info.MaxBytes)), "context", "65536 bytes"},
		{text("", "y"), "context.0.label", "1 to 100 visible"},
		{text(strings.Repeat("x", 101), "y"), "context.0.label", "1 to 100 visible"},
		{text("Approved by \u202eboss", "y"), "context.0.label", "visible"},
		{text("a\nb", "y"), "context.0.label", "visible"},
		{text("x", "a\x00b"), "context.0", "without NUL"},
		{text("x", "\xff"), "context.0", "UTF-8"},
		{text("x", ""), "context.0", "one of text, link and diff"},
		{[]info.Item{{Label: "x", Text: "y", Link: "https://x.org"}}, "context.0", "one of"},
		{link("http://x.org"), "context.0.link", "https"},
		{link("javascript:alert(1)"), "context.0.link", "https"},
		{link("data:text/html,x"), "context.0.link", "https"},
		{link("https://mara:pw@x.org/"), "context.0.link", "without a user name"},
		{link("https://x.org@evil.org/"), "context.0.link", "without a user name"},
		{link("https:///x"), "context.0.link", "https"},
		{link("https://x.org/\u202e"), "context.0.link", "%xx"},
		{link("https://b\u00fccher.example/"), "context.0.link", "ASCII"},
		{link("https://x.org\\@evil.org"), "context.0.link", "https"},
		{link("https://x.org/" + strings.Repeat("a", 2000)), "context.0.link", "2000 bytes"},
		{[]info.Item{{Label: "x", Diff: "no diff"}}, "context.0.diff", "no hunk"},
	} {
		err := info.Check(bad.items)
		var refused *info.Error
		if !errors.As(err, &refused) || refused.Path != bad.path || !strings.Contains(refused.Want, bad.want) {
			t.Errorf("%.80v: got %v", bad.items, err)
		}
	}
}

func TestLinesOfADiffAreWhatTheirHunkSays(t *testing.T) {
	lines, err := info.ParseDiff(diff)
	must.Do(t, err)
	var kinds []string
	for _, l := range lines {
		kinds = append(kinds, string(l.Kind))
	}
	want := "header header hunk same removed added added remark hunk removed added"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got %s", got)
	}

	for name, bad := range map[string]string{
		"too few lines":     "@@ -1,3 +1,1 @@\n a\n",
		"too many lines":    "@@ -1 +1 @@\n a\n b\n",
		"a line of no kind": "@@ -1,2 +1,2 @@\n a\nb\n",
		"after the hunk":    "@@ -1 +1 @@\n-a\n+b\n+c\n",
		"a huge count":      "@@ -1,99999999999999999999 +1 @@\n a\n",
		"nothing":           "",
	} {
		if got, err := info.ParseDiff(bad); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestHostIsWhereTheLinkLeads(t *testing.T) {
	it := info.Item{Link: "https://tickets.example.com:8443/x"}
	if got := it.Host(); got != "tickets.example.com:8443" {
		t.Errorf("got %s", got)
	}
}

func TestTextIsEmptyWithoutItems(t *testing.T) {
	if got := info.Text(nil); got != "" {
		t.Errorf("got %q", got)
	}
	if got := info.Text([]info.Item{{Label: "a", Text: "b"}}); got != `[{"label":"a","text":"b"}]` {
		t.Errorf("got %q", got)
	}
}

func FuzzParseDiff(f *testing.F) {
	f.Add(diff)
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := info.ParseDiff(text)
		if err != nil {
			return
		}
		var all []string
		for _, l := range lines {
			all = append(all, l.Text)
		}
		if strings.Join(all, "\n") != strings.TrimSuffix(text, "\n") {
			t.Errorf("lines differ from the text: %q", lines)
		}
	})
}
