package info_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/info"
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

func TestAcceptsUpToTheBounds(t *testing.T) {
	many := make([]info.Item, info.MaxItems)
	for i := range many {
		many[i] = info.Item{Label: "x", Text: "y"}
	}
	for name, items := range map[string][]info.Item{
		"nothing":            nil,
		"20 items":           many,
		"64 KiB":             {{Label: "x", Text: strings.Repeat("y", info.MaxBytes-1)}},
		"a label of 100":     {{Label: strings.Repeat("\u00e9", 100), Text: "y"}},
		"a link of 2000":     {{Label: "x", Link: "https://x.org/" + strings.Repeat("a", 2000-14)}},
		"all visible ASCII":  {{Label: "x", Link: "https://x.org/!~?a=[b]#{c}"}},
		"an address of IPv6": {{Label: "x", Link: "https://[::1]:8443/"}},
	} {
		if err := info.Check(items); err != nil {
			t.Errorf("%s: %v", name, err)
		}
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
		{append(text("x", "y"), info.Item{Label: "x", Link: "http://x.org"}), "context.1.link", "https"},
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
		{link("https://x.org/a\\b"), "context.0.link", "%xx"},
		{link("https://x.org/a b"), "context.0.link", "%xx"},
		{link("https://x.org/" + strings.Repeat("a", 2001-14)), "context.0.link", "2000 bytes"},
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
	for text, want := range map[string]string{
		diff:                      "header header hunk same removed added added remark hunk removed added",
		"@@ -1 +0,0 @@\n-x\n":     "hunk removed",
		"@@ -0,0 +1 @@\n+x\n":     "hunk added",
		"@@ -1,2 +1,2 @@\n\n a\n": "hunk same same",
		"@@ -1 +1 @@\n a\n\nnote": "hunk same header header",
		"- a note\n+ another\n\\ more\n@@ odd\n@@ -1 +1 @@\n a": "header header header header hunk same",
		"--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n--- c\n+++ d\n@@ -1 +1 @@\n-x\n+y\n": "header header hunk removed added " +
			"header header hunk removed added",
	} {
		lines, err := info.ParseDiff(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var kinds []string
		for _, l := range lines {
			kinds = append(kinds, string(l.Kind))
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%q: got %s", text, got)
		}
	}

	for bad, want := range map[string]string{
		"@@ -1,3 +1,1 @@\n a\n":                  "fewer lines",
		"@@ -1,2 +1 @@\n a\n":                    "fewer lines",
		"@@ -1 +1,2 @@\n a\n":                    "fewer lines",
		"@@ -1 +1 @@\n a\n b\n":                  "line 3 is in no hunk",
		"@@ -1,2 +1 @@\n a\n b\n":                "line 3 is more than",
		"@@ -1 +1,2 @@\n a\n-b\n":                "line 3 is more than",
		"@@ -1,2 +1,2 @@\n a\nb\n":               "line 3 begins with none",
		"@@ -1 +1 @@\n-a\n+b\n+c\n":              "line 4 is in no hunk",
		"@@ -1 +1 @@\n a\n@@ odd\n":              "line 3 is in no hunk",
		"@@ -1,99999999999999999999 +1 @@\n a\n": "line 1 is more than",
		"":                                       "no hunk",
	} {
		if got, err := info.ParseDiff(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, expected %q", bad, got, err, want)
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
