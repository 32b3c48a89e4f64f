package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/clients/playground/engine"
)

// largest is the size limit for the program with gzip, in megabytes. Every visitor of the page
// downloads the program.
const largest = 5

// TestRun writes the folder and checks the size of the program.
func TestRun(t *testing.T) {
	t.Parallel()
	if _, zipped, err := sizes(made); err != nil || zipped > largest {
		t.Errorf("assent.wasm has %.1f MB with gzip, expected at most %d: %v", zipped, largest, err)
	}
	if err := run(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a folder without examples made a page")
	}
}

// TestPageBringsNothingFromElsewhere: the policy of the page allows only its own files, and no
// text in the page names another origin.
func TestPageBringsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	unsafe := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|style=|onclick=`,
	)
	page := strings.Replace(index, "{{examples}}", "", 1)
	for name, text := range map[string]string{
		"index.html":     page,
		"playground.css": string(style),
		"playground.js":  string(script),
	} {
		if found := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`).FindAllString(text, -1); len(found) > 0 {
			t.Errorf("%s names %q", name, found)
		}
		if found := unsafe.FindAllString(text, -1); len(found) > 0 {
			t.Errorf("%s has %q", name, found)
		}
	}

	for _, want := range []string{
		"default-src 'none'",
		"script-src 'self' 'wasm-unsafe-eval';",
		"require-trusted-types-for 'script'",
		"form-action 'none'",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
}

// TestColoursAreTheInboxs: the two style sheets have the same colours.
func TestColoursAreTheInboxs(t *testing.T) {
	t.Parallel()
	inbox, err := os.ReadFile("../../../server/inbox/assets/inbox.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := func(css string) string {
		from := strings.Index(css, ":root")
		return css[from:strings.Index(css, "*, *::before")]
	}
	if colours(string(inbox)) != colours(string(style)) {
		t.Error("the colours of playground.css differ from those of inbox.css")
	}
}

// TestExamplesAnswer: each example has agents that decide its calls and a second version that
// differs. Its JSON has no HTML.
func TestExamplesAnswer(t *testing.T) {
	t.Parallel()
	all, err := examples("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		files, second := engine.Files{}, engine.Files{}
		for name, text := range e.Files {
			files[name], second[name] = []byte(text), []byte(text)
		}
		for name, text := range e.Second {
			second[name] = []byte(text)
		}
		r := engine.Request{Kind: engine.Decide, Files: files, Agent: "agent.agf.yaml", Calls: e.Call}
		if a := r.Answer(); a.Exit != engine.ExitOK || len(a.Output) == 0 {
			t.Errorf("%s: the call %s: %s", e.Title, e.Call, a.Error)
		}
		d := engine.Request{Kind: engine.Diff, Files: files, New: second}
		var report struct{ Verdict string }
		a := d.Answer()
		if err := json.Unmarshal(a.Output, &report); err != nil || report.Verdict == "equivalent" {
			t.Errorf("%s: the second version: %q %s", e.Title, report.Verdict, a.Error)
		}
	}

	page, err := render("../../..")
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(page), `type="application/json">`)
	data, _, _ = strings.Cut(data, "</script>")
	if strings.ContainsAny(data, "<>") || !json.Valid([]byte(data)) {
		t.Error("the examples of the page hold HTML, or are no JSON")
	}
}
