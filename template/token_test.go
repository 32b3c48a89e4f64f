package template

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// The golden file has templates with their variables and problems, and the text that each
// refers to.
func TestParse(t *testing.T) {
	src, err := os.ReadFile("testdata/parse.golden")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(src)) {
		name, quoted, named := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if strings.HasPrefix(line, "\t") {
			continue
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || !named {
			t.Fatalf("%q is no name and quoted template: %v", line, err)
		}
		tmpl, problems := Parse(text)
		b.WriteString(line)
		for _, r := range tmpl.Refs() {
			fmt.Fprintf(&b, "\tshows %s\n", r.Name)
			if at := text[r.Offset : r.Offset+r.Length]; at != r.Name {
				t.Errorf("%s: %s points at %q", name, r.Name, at)
			}
		}

		for _, p := range problems {
			fmt.Fprintf(&b, "\t%s %q\n", p.Code, text[p.Offset:p.Offset+p.Length])
			if p.Message == "" || p.Expected == "" {
				t.Errorf("%s: %s: message %q, expected %q", name, p.Code, p.Message, p.Expected)
			}
		}
	}

	golden.Equal(t, "parse.golden", b.String())
}

// Anything but a plain variable is printed unchanged, and values next to it are still inserted.
func TestVerbatim(t *testing.T) {
	for _, text := range []string{
		"{{#a}}x{{/a}}",
		"{{^a}}",
		"{{>/etc/hostname}}",
		"{{! no }}",
		"{{=<% %>=}}<%agent_id%>",
		"{{= | =}}",
		"{{%x}}",
		"{{<p}}{{$b}}",
		"{{{{a}}}}",
		"{{b",
		"{{a {{",
		"{{{a}}",
		"a }} b",
		"{{}}",
		"{{{}}}",
		"{{a b}}",
		"{{.}}",
		"{ } {a} {",
		"  {{! alone on its line }}\n",
		"{{ a\n}}",
		"{{{{{",
		"}}}}}",
	} {
		for _, full := range []string{text, "{{agent_id}}" + text, text + "\n\t{{agent_id}}", text + " {{agent_id}}{"} {
			tmpl, _ := Parse(full)
			got := tmpl.Render(LocalTool, &Facts{AgentID: "x"}).Text
			if want := strings.ReplaceAll(full, "{{agent_id}}", "x"); got != want {
				t.Errorf("%q renders as %q", full, got)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	fits := strings.Repeat("x", MaxLength)
	if tmpl, problems := Parse(fits); tmpl.Omitted() || problems != nil {
		t.Errorf("16 KiB: %v", problems)
	}
	tmpl, problems := Parse(fits + "x")
	if len(problems) != 1 || problems[0].Code != "template-too-long" || problems[0].Severity != diag.Error {
		t.Errorf("problems %v", problems)
	}
	f := &Facts{AgentID: "a", ToolName: "t"}
	if got := tmpl.Render(LocalTool, f).Text; got != Default(LocalTool, f) {
		t.Errorf("renders as %q", got)
	}
}

// Each rule reports its bad example, no other rule does, and the good one has no problems.
func TestRules(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range Rules() {
		t.Run(r.ID, func(t *testing.T) {
			if ids[r.ID] || r.Title == "" || r.Why == "" || r.Spec == "" {
				t.Errorf("incomplete or repeated: %+v", r)
			}
			ids[r.ID] = true
			if _, problems := Parse(exampleTemplate(t, r.Good)); problems != nil {
				t.Errorf("good: %v", problems)
			}
			bad := strings.Repeat("long ", MaxLength)
			if r.Bad != "" {
				bad = exampleTemplate(t, r.Bad)
			}
			_, problems := Parse(bad)
			if problems == nil {
				t.Error("bad: nothing reported")
			}
			for _, p := range problems {
				if p.Code != r.ID || p.Severity != r.Severity {
					t.Errorf("bad: %+v", p)
				}
			}
		})
	}
}

func exampleTemplate(t *testing.T, yaml string) string {
	t.Helper()
	_, quoted, _ := strings.Cut(strings.TrimSpace(yaml), "message_template: ")
	text, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	return text
}

// checkTemplate checks properties of every template with any value.
func checkTemplate(t interface{ Fatalf(string, ...any) }, text, hostile string) {
	tmpl, problems := Parse(text)
	for _, p := range problems {
		if p.Offset < 0 || p.Length < 0 || p.Offset+p.Length > len(text) {
			t.Fatalf("%q: problem outside of the text: %+v", text, p)
		}
	}
	for _, r := range tmpl.Refs() {
		if text[r.Offset:r.Offset+r.Length] != r.Name {
			t.Fatalf("%q: %+v points elsewhere", text, r)
		}
	}
	args := value.Value{
		Kind:    value.Object,
		Members: []value.Member{{Key: "v", Value: value.Value{Kind: value.String, Text: hostile}}},
	}
	m := tmpl.Render(LocalTool, &Facts{AgentID: hostile, ToolName: hostile, Args: args})
	for _, r := range m.Text {
		if forbidden(r) && !(safetext.AuthorMay(r, 0) && strings.ContainsRune(text, r)) {
			t.Fatalf("%q, %q: %U in %q", text, hostile, r, m.Text)
		}
	}
	if tmpl.Omitted() {
		return
	}
	plainMessage := tmpl.Render(LocalTool, &Facts{AgentID: "x"})
	if got, want := strings.Count(m.Text, "\n"), strings.Count(text, "\n"); got != want ||
		strings.Count(plainMessage.Text, "\n") != want {
		t.Fatalf("%q, %q: %d line breaks, the author wrote %d", text, hostile, got, want)
	}
	if open, shut := strings.Count(m.Text, safetext.Isolate), strings.Count(m.Text, safetext.PopIsolate); open != shut {
		t.Fatalf("%q, %q: isolates are not pairs in %q", text, hostile, m.Text)
	}
	byHand := &Template{parts: tmpl.parts, vars: tmpl.vars, limit: tmpl.limit}
	if got := byHand.Render(LocalTool, &Facts{AgentID: hostile, ToolName: hostile, Args: args}).Text; got != m.Text {
		t.Fatalf("%q, %q: mustache wrote %q, by hand it is %q", text, hostile, m.Text, got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"",
		"{{a}}",
		"{{{a}}}",
		"{{#a}}{{/a}}",
		"{{tool_args.v}}\r\n{{agent_id}}",
		"{{=<% %>=}}",
		"}}{{",
		"{{\n}}",
		"\u202e{{ & tool_name }}",
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, text string) { checkTemplate(t, text, "x\n{{agent_id}}\u202e") })
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"",
		"a\nb",
		"{{agent_id}}",
		"\u202e\u05d0",
		`\u{202e}`,
		"e\u0301\u0301",
		"\xff",
		strings.Repeat(" ", 3000),
	} {
		f.Add("{{tool_args.v}} {{tool_args}} {{agent_id}}", s)
	}

	f.Fuzz(func(t *testing.T, text, hostile string) { checkTemplate(t, text, hostile) })
}

// forbidden reports whether a message must not show a character of a value. Each test decides
// on line feed, tab and our own isolates.
func forbidden(r rune) bool {
	return safetext.Hidden(r) && r != '\n' && r != '\t' &&
		!strings.ContainsRune(safetext.Isolate+safetext.PopIsolate, r)
}
