package template

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cbroglie/mustache"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/internal/safetext/safetexttest"
	"github.com/assent-dev/assent/value"
)

// These tests check the isolation of mustache, with one test for each hazard found in it (see
// the documentation of the dependency, section 4).

// Whatever the author writes, mustache gets only variables named v0, v1, t2…
func TestFenceMustacheSeesGeneratedNamesOnly(t *testing.T) {
	generated := regexp.MustCompile(`^[vt][0-9]+$`)
	rapid.Check(t, func(t *rapid.T) {
		tmpl, _ := Parse("x" + templates().Draw(t, "text"))
		for _, tag := range tmpl.engine.(*mustache.Template).Tags() {
			if tag.Type() != mustache.Variable || !generated.MatchString(tag.Name()) {
				t.Fatalf("mustache sees %s %q", tag.Type(), tag.Name())
			}
		}
		if src := strings.NewReplacer("{{{", "", "}}}", "").Replace(tmpl.source()); strings.ContainsAny(src, "{}") {
			t.Fatalf("a brace of the author reaches mustache: %q", tmpl.source())
		}
	})
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
	var b strings.Builder
	if err := compile(partial).FRender(&b); err != nil || b.Len() != 0 {
		t.Errorf("a partial that reached mustache gave %q, %v", b.String(), err)
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

// Mustache has a global variable that makes a missing name an error. It must have no effect.
func TestFenceProcessWideStrictness(t *testing.T) {
	mustache.AllowMissingVariables = false
	defer func() { mustache.AllowMissingVariables = true }()
	tmpl, _ := Parse("a{{tool_args.x}}b{{nope}}c{{agent_id}}")
	m := tmpl.Render(LocalTool, &Facts{AgentID: "id"})
	if m.Text != "abcid" || strings.Join(m.Missing, " ") != "tool_args.x nope" {
		t.Errorf("%q, missing %q", m.Text, m.Missing)
	}
}

// Mustache escapes for HTML by default; the message is plain text.
func TestFenceNoHTMLEscaping(t *testing.T) {
	tmpl, _ := Parse("{{tool_args.a}} {{{tool_args.a}}} {{&tool_args.a}}")
	if got := tmpl.Render(LocalTool, &Facts{Args: parseJSON(t, `{"a":"<&'\">"}`)}).Text; got != `<&'"> <&'"> <&'">` {
		t.Errorf("rendered %s", got)
	}
}

// Mustache prints its own panics to standard output, which a stdio protocol may use.
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

type faulty struct{ panics bool }

func (e faulty) FRender(out io.Writer, _ ...any) error {
	io.WriteString(out, "half a mess")
	if e.panics {
		panic("broken")
	}
	return errors.New("broken")
}

// If mustache fails, the approver gets the same message.
func TestFenceFailureLosesNoMessage(t *testing.T) {
	if e := compile("{{"); e != nil {
		t.Errorf("mustache accepted an open tag: %v", e)
	}
	for name, e := range map[string]engine{
		"error":   faulty{},
		"panic":   faulty{panics: true},
		"refused": nil,
	} {
		tmpl, _ := Parse("Pay { {{tool_args.n}} } as {{agent_id}}")
		tmpl.engine = e
		got := tmpl.Render(LocalTool, &Facts{AgentID: "x", Args: parseJSON(t, `{"n":5}`)}).Text
		if got != "Pay { 5 } as x" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// deceiver generates texts made of hostile pieces.
func deceiver() *rapid.Generator[string] {
	pieces := rapid.SampledFrom(safetexttest.Pieces())
	any := rapid.StringOfN(rapid.Rune(), 0, 4, -1)
	texts := rapid.SliceOfN(rapid.OneOf(pieces, pieces, any), 0, 24)
	return rapid.Map(texts, func(s []string) string { return strings.Join(s, "") })
}
