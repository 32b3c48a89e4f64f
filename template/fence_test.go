package template

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cbroglie/mustache"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/internal/safetext/safetexttest"
	"github.com/assent-dev/assent/value"
)

// These tests check hazards of templates, with one test for each that was found in a library. A
// template that mustache renders, with generated names, is the same message.

// byMustache renders a template with mustache, as the standard defines it.
func byMustache(t *Template, ctx Context, f *Facts) (string, error) {
	var source strings.Builder
	values := map[string]string{}
	for i, p := range t.parts {
		name, text := "t"+strconv.Itoa(i), p.text
		if p.vari >= 0 {
			shown, _ := f.text(ctx, t.vars[p.vari].ref)
			text, _ = shown.Show(t.limit)
		}
		values[name] = text
		source.WriteString("{{{" + name + "}}}")
	}

	return mustache.RenderRaw(source.String(), true, values)
}

// templates generates texts full of tags, including broken ones.
func templates() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"{{agent_id}}",
		"{{ tool_name }}",
		"{{tool_args.v}}",
		"{{tool_args}}",
		"{{{tool_args.v}}}",
		"{{&tool_args.v}}",
		"{{tool_args.gone}}",
		"{{v0}}",
		"{{t0}}",
		"{{#tool_args}}",
		"{{/tool_args}}",
		"{{^x}}",
		"{{>/etc/hostname}}",
		"{{! c }}",
		"{{=<% %>=}}",
		"<%agent_id%>",
		"{{",
		"}}",
		"{",
		"}",
		"{{}}",
		"{{.}}",
		"{{String}}",
		" ",
		"\n",
		"\t",
		"\r\n",
		"\r",
		"$",
		"Pay ",
		"⚠\ufe0f",
		"\u202e",
		"\u05d0",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(s []string) string { return strings.Join(s, "") })
}

func TestFenceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkTemplate(t, templates().Draw(t, "text"), deceiver().Draw(t, "value"))
	})
}

// The message is the author's text with each value inserted. The test computes it without a
// template.
func TestRenderIsConcatenation(t *testing.T) {
	literal := rapid.SampledFrom([]string{"Pay ", "$", "\n", "{ ", " }", "a\tb", ".", "é "})
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		args := value.Value{Kind: value.Object}
		for i := range rapid.IntRange(1, 8).Draw(t, "parts") {
			s := literal.Draw(t, "literal")
			text.WriteString(s)
			want.WriteString(s)
			key, v := "k"+string(rune('a'+i)), deceiver().Draw(t, "value")
			args.Members = append(
				args.Members,
				value.Member{Key: key, Value: value.Value{Kind: value.String, Text: v}},
			)
			text.WriteString("{{tool_args." + key + "}}")
			shown, _ := safetext.Value{Text: v}.Show(maxValue)
			want.WriteString(shown)
		}

		tmpl, _ := Parse(text.String())
		m := tmpl.Render(LocalTool, &Facts{Args: args})
		if m.Truncated == nil && m.Text != want.String() {
			t.Fatalf("%q\ngot  %q\nwant %q", text.String(), m.Text, want.String())
		}
	})
}

// `{{>/path}}` must not read a file, whether the author or the agent writes it.
func TestFencePartialsReadNoFiles(t *testing.T) {
	path := t.TempDir() + "/secret"
	if err := os.WriteFile(path, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	partial := "{{>" + path + "}}"
	tmpl, _ := Parse(partial + " {{agent_id}}")
	got := tmpl.Render(LocalTool, &Facts{AgentID: partial}).Text
	if got != partial+" "+partial {
		t.Errorf("rendered %q", got)
	}
}

// Names that are methods of the values' types must not call anything.
func TestFenceMethodsAreNotCalled(t *testing.T) {
	tmpl, _ := Parse("{{tool_args.amount.String}}{{tool_args.amount.Int64}}{{tool_args.amount.IsInt}}" +
		"{{tool_args.Lookup}}{{String}}|{{tool_args.String}}")
	m := tmpl.Render(LocalTool, &Facts{Args: parseJSON(t, `{"amount":7,"String":"a key"}`)})
	if m.Text != "|a key" || len(m.Missing) != 5 {
		t.Errorf("%q, missing %q", m.Text, m.Missing)
	}
}

// Numbers keep the digits of the source: no 1.2345678e+07, no rounding.
func TestFenceNumbersKeepTheirLexeme(t *testing.T) {
	for _, lexeme := range []string{
		"12345678",
		"1.2345678e7",
		"9007199254740993",
		"123456789012345678901234567890",
		"500.00",
		"0.10",
		"-0",
		"1E+2",
	} {
		tmpl, _ := Parse("{{tool_args.n}} {{tool_args.o}}")
		got := tmpl.Render(LocalTool, &Facts{Args: parseJSON(t, `{"n":`+lexeme+`,"o":{"n":[`+lexeme+`]}}`)}).Text
		if want := lexeme + ` {"n":[` + lexeme + `]}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestMissingVariablesAreEmpty(t *testing.T) {
	tmpl, _ := Parse("a{{tool_args.x}}b{{nope}}c{{agent_id}}")
	m := tmpl.Render(LocalTool, &Facts{AgentID: "id"})
	if m.Text != "abcid" || strings.Join(m.Missing, " ") != "tool_args.x nope" {
		t.Errorf("%q, missing %q", m.Text, m.Missing)
	}
}

// Mustache escapes for HTML unless told otherwise; the message is plain text.
func TestFenceNoHTMLEscaping(t *testing.T) {
	tmpl, _ := Parse("{{tool_args.a}} {{{tool_args.a}}} {{&tool_args.a}}")
	if got := tmpl.Render(LocalTool, &Facts{Args: parseJSON(t, `{"a":"<&'\">"}`)}).Text; got != `<&'"> <&'"> <&'">` {
		t.Errorf("rendered %s", got)
	}
}

// Nothing is printed to standard output, which a stdio protocol may use.
func TestFenceNothingOnStandardOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	tmpl, _ := Parse("{{tool_args.a}}{{tool_args.a.b.c}}{{nope}}{{#x}}{{.}}")
	tmpl.Render(LocalTool, &Facts{Args: parseJSON(t, `{"a":null}`)})
	tmpl.Render(Skill, nil)
	os.Stdout = stdout
	w.Close()
	if out, err := io.ReadAll(r); err != nil || len(out) != 0 {
		t.Errorf("standard output got %q, %v", out, err)
	}
}

// deceiver generates texts made of hostile pieces.
func deceiver() *rapid.Generator[string] {
	pieces := rapid.SampledFrom(safetexttest.Pieces())
	any := rapid.StringOfN(rapid.Rune(), 0, 4, -1)
	texts := rapid.SliceOfN(rapid.OneOf(pieces, pieces, any), 0, 24)
	return rapid.Map(texts, func(s []string) string { return strings.Join(s, "") })
}
