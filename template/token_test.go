package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// Problems are written as "rule 'text they point at'".
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		refs       string // names, separated by blanks
		problems   []string
	}{
		{"text only", "Approve?", "", nil},
		{"variable", "Pay {{tool_args.amount}}!", "tool_args.amount", nil},
		{"inner spaces", "{{ tool_name }}{{\ttool_name}}", "tool_name tool_name", nil},
		{"dollar", "${{tool_args.amount}}", "tool_args.amount", nil},
		{"neighbours", "{{a}}{{b}}", "a b", nil},
		{
			"keys with marks of their own",
			"{{tool_args.user-id}} {{tool_args.@type}} {{tool_args.größe}} {{tool_args.0.$x}}",
			"tool_args.user-id tool_args.@type tool_args.größe tool_args.0.$x",
			nil,
		},
		{"single braces are text", "{a} } { {", "", nil},
		{"JSON around a variable", `{"a": {{x}}}`, "x", nil},

		{"section", "{{#a}}x{{/a}}", "", []string{"template-logic '{{#a}}'", "template-logic '{{/a}}'"}},
		{"inverted section", "{{^a}}", "", []string{"template-logic '{{^a}}'"}},
		{"partial", "{{>/etc/hostname}}", "", []string{"template-logic '{{>/etc/hostname}}'"}},
		{"comment", "{{! no }}", "", []string{"template-logic '{{! no }}'"}},
		{"comment over two lines", "{{! a\nb }}", "", []string{"template-logic '{{! a\nb }}'"}},
		{"delimiters", "{{=<% %>=}}<%a%>", "", []string{"template-logic '{{=<% %>=}}'"}},
		{"delimiters, malformed", "{{= | =}}", "", []string{"template-logic '{{= | =}}'"}},
		{"inheritance", "{{<p}}{{$b}}", "", []string{"template-logic '{{<p}}'", "template-logic '{{$b}}'"}},
		{"pragma", "{{%x}}", "", []string{"template-logic '{{%x}}'"}},
		{"spaces before the sign", "{{ # a}}", "", []string{"template-logic '{{ # a}}'"}},

		{"triple", "{{{a}}}", "a", []string{"template-raw-variable '{{{a}}}'"}},
		{"triple with spaces", "{{{ a }}}", "a", []string{"template-raw-variable '{{{ a }}}'"}},
		{"triple inside braces", "{{{{a}}}}", "", []string{"template-unbalanced '{{{{a}}}}'"}},
		{"triple then a brace", "{{{a}}}}", "a", []string{"template-raw-variable '{{{a}}}'"}},
		{
			"ampersand",
			"{{&a}}{{& b }}",
			"a b",
			[]string{"template-raw-variable '{{&a}}'", "template-raw-variable '{{& b }}'"},
		},
		{"triple with a section", "{{{#a}}}", "", []string{"template-name '{{{#a}}}'"}},

		{"never closed", "a {{b", "", []string{"template-unbalanced '{{'"}},
		{"never closed, triple", "a {{{b", "", []string{"template-unbalanced '{{{'"}},
		{"closed by one", "{{a} and", "", []string{"template-unbalanced '{{'"}},
		{"closed after the next is opened", "{{a {{b}}", "b", []string{"template-unbalanced '{{'"}},
		{"three and two", "{{{a}} b", "", []string{"template-unbalanced '{{{a}}'"}},
		{"closing only", "a }} b }}}", "", []string{"template-unbalanced '}}'", "template-unbalanced '}}}'"}},
		{"over two lines", "{{ a\n}}", "", []string{"template-unbalanced '{{ a\n}}'"}},

		{"empty tag", "{{}}", "", []string{"template-empty-tag '{{}}'"}},
		{"blank tag", "{{ \t}}", "", []string{"template-empty-tag '{{ \t}}'"}},
		{"empty triple", "{{{}}}", "", []string{"template-empty-tag '{{{}}}'"}},
		{"empty ampersand", "{{&}}", "", []string{"template-empty-tag '{{&}}'"}},

		{"two words", "{{a b}}", "", []string{"template-name '{{a b}}'"}},
		{"filter", "{{a|upper}}", "", []string{"template-name '{{a|upper}}'"}},
		{
			"empty segment",
			"{{a..b}} {{.a}} {{a.}} {{.}}",
			"",
			[]string{
				"template-name '{{a..b}}'",
				"template-name '{{.a}}'",
				"template-name '{{a.}}'",
				"template-name '{{.}}'",
			},
		},
		{"starts with a digit", "{{1a}}", "", []string{"template-name '{{1a}}'"}},
		{"brace in a name", "{{a}b}}", "", []string{"template-name '{{a}b}}'"}},
		{"brace in a key", "{{a.b}c}}", "", []string{"template-name '{{a.b}c}}'"}},
		{"invisible character in a key", "{{a.b\u200b}}", "",
			[]string{"template-name '{{a.b\u200b}}'", "template-invisible-character '\u200b'"}},
		{
			"not UTF-8 in a key",
			"{{a.b\xff}}",
			"",
			[]string{"template-name '{{a.b\xff}}'", "template-invisible-character '\xff'"},
		},

		{"bidi control in the text", "a\u202e{{b}}", "b", []string{"template-invisible-character '\u202e'"}},
		{"escape character in the text", "a\x1b[0m", "", []string{"template-invisible-character '\x1b'"}},
		{"return without line feed", "a\rb\r\nc", "", []string{"template-invisible-character '\r'"}},
		{"emoji and breaks are fine", "⚠\ufe0f 👩\u200d💻\u00a0!\n\tnow", "", nil},

		{"empty", "", "", []string{"template-empty ''"}},
		{"white space", " \n\t\u00a0", "", []string{"template-empty ' \n\t\u00a0'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, problems := Parse(tt.text)
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%s '%s'", p.Code, tt.text[p.Offset:p.Offset+p.Length]))
				if p.Message == "" || p.Expected == "" {
					t.Errorf("%s: message %q, expected %q", p.Code, p.Message, p.Expected)
				}
			}

			if !slices.Equal(got, tt.problems) {
				t.Errorf("problems\ngot  %q\nwant %q", got, tt.problems)
			}
			var names []string
			for _, r := range tmpl.Refs() {
				names = append(names, r.Name)
				if at := tt.text[r.Offset : r.Offset+r.Length]; at != r.Name {
					t.Errorf("%s points at %q", r.Name, at)
				}
			}

			if s := strings.Join(names, " "); s != tt.refs {
				t.Errorf("refs %q, want %q", s, tt.refs)
			}
		})
	}
}

// What is no plain variable is printed as it was written, and values
// beside it still are.
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

// Each rule: the bad example is reported by that rule and no other, the
// good one not at all.
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

// checkTemplate holds for every template, whatever is in it and
// whatever the value is.
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
	m := tmpl.Render(LocalTool, &Facts{
		AgentID:  hostile,
		ToolName: hostile,
		Args:     args,
	})
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
	byHand := &Template{
		parts: tmpl.parts,
		vars:  tmpl.vars,
		limit: tmpl.limit,
	}
	if got := byHand.Render(LocalTool, &Facts{
		AgentID:  hostile,
		ToolName: hostile,
		Args:     args,
	}).Text; got != m.Text {
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

// forbidden reports whether no message may show a character of a value.
// Line feed, tab and our own isolates are judged by each test.
func forbidden(r rune) bool {
	return safetext.Hidden(r) && r != '\n' && r != '\t' &&
		!strings.ContainsRune(safetext.Isolate+safetext.PopIsolate, r)
}

// deceiver generates texts that are dense in what matters here.
func deceiver() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		"\n",
		"\r\n",
		"\t",
		" ",
		"          ",
		"\x1b[2K",
		"\u202e",
		"\u2066",
		"\u2069",
		"\u200b",
		"\u200b\u200b\u200b",
		"\U000e0041",
		"\ufe0f",
		"\u0301",
		"\u0338",
		"\u05d0",
		"\u0661",
		"é",
		"e",
		"1",
		"\\",
		"\\u{a}",
		"\\x{",
		"u{202e}",
		"…(",
		"\"",
		"{{",
		"}}",
		"{{agent_id}}",
		"{",
		"}",
		"{{{v0}}}",
		"{{{t0}}}",
		"<b>",
		"\xff",
		"\xe2\x80",
		"\u00a0",
		"\u3164",
		"$",
		"東",
	})
	any := rapid.StringOfN(rapid.Rune(), 0, 4, -1)
	return rapid.Map(rapid.SliceOfN(rapid.OneOf(pieces, pieces, any), 0, 24), func(s []string) string {
		return strings.Join(s, "")
	})
}
