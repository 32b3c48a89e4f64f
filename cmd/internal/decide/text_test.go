package decide

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

const textAgent = `schema_version: "1.0.0"
metadata: {id: d, name: D, version: "1.0.0", description: d}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - {alias: quote}
    - alias: pay
      approval:
        message_template: "Pay {{tool_args.note}}?"
        condition: {args_match: {amount: {gt: 100}}}
execution_policy: {id: agf.react, config: {instructions: x, model: any}}
`

// TestTextContractExample runs the example of the page.
func TestTextContractExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```console\n\\$ echo '([^\n]*)' \\| assent decide ([^\n]*)\n(.*?)```").
		FindStringSubmatch(testfiles.Contract(t, "decide.md"))
	if m == nil {
		t.Fatal("the page has no example")
	}
	t.Chdir(testfiles.Root(t))
	var out, errOut bytes.Buffer
	code := run(term.Streams{In: strings.NewReader(m[1] + "\n"), Out: &out, Err: &errOut}, strings.Fields(m[2])...)
	if code != term.ExitOK || out.String() != m[3] || errOut.Len() > 0 {
		t.Errorf("exit %d\n%s\nthe page says\n%s%s", code, out.String(), m[3], errOut.String())
	}
}

// TestTextTellsEveryAnswer, and nothing in it acts on a terminal.
func TestTextTellsEveryAnswer(t *testing.T) {
	for line, want := range map[string][]string{
		`{"kind":"tool","tool":"quote"}`: {
			"allow tool quote", "no rule asks about it or denies it", "no rule looks at",
		},
		`{"kind":"tool","tool":"pay","args":{"amount":5}}`: {"allow tool pay", "it would ask with amount 101 instead of 5"},
		`{"kind":"tool","tool":"pay","args":{"note":"\u001b[2J\u202e","amount":500}}`: {
			`message   Pay \u{1b}[2J\u{202e}?`, "a.agf.yaml:9:9", "requires  one approver",
			"it would be allowed with amount 100 instead of 500",
		},
		`{"kind":"tool","tool":"pay"}`: {"can't be told: missing argument", "amount 100, which is not there"},
		`{"kind":"tool","tool":"p\u0007"}`: {
			`deny tool p\u{7}`, "action space: ", "no other arguments would change that",
		},
		`nonsense`: {"deny no valid call", "because   arguments: "},
	} {
		out, code := decided(t, textAgent, line, "--format", "text")
		if want := line == "nonsense"; (code == term.ExitFailure) != want {
			t.Errorf("%s: exit %d", line, code)
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: expected %q\n%s", line, text, out)
			}
		}
		if testfiles.Hidden(out) {
			t.Errorf("%s: %q", line, out)
		}
	}

	twice := strings.Repeat("{\"kind\":\"tool\",\"tool\":\"quote\"}\n", 2)
	out, _ := decided(t, textAgent, twice, "--format", "text")
	if strings.Count(out, "\n\nallow tool quote") != 1 {
		t.Errorf("no line parts two decisions\n%s", out)
	}
}

func TestFormatsOfDecide(t *testing.T) {
	for want, flags := range map[string][]string{
		`unknown format "yaml", expected json or text`: {"--format", "yaml"},
		"--indent is for --format json":                {"--format", "text", "--indent"},
	} {
		if out, code := decided(t, textAgent, "", flags...); code != term.ExitFailure || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d\n%s", flags, code, out)
		}
	}

	in := io.LimitReader(strings.NewReader(`{"kind":"tool","tool":"pay"}`), 99)
	var errOut bytes.Buffer
	if code := run(term.Streams{
		In:  in,
		Out: brokenPipe{},
		Err: &errOut,
	}, "--agent", agentFile(t, textAgent), "--format", "text"); code != term.ExitFailure ||
		!strings.Contains(errOut.String(), "broken pipe") {
		t.Errorf("exit %d, %s", code, errOut.String())
	}
}

// TestDecidePromptsAtATerminal: a prompt is printed before each call only at a terminal.
func TestDecidePromptsAtATerminal(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out, errOut bytes.Buffer
		run(term.Streams{
			In:         strings.NewReader("{\"kind\":\"tool\",\"tool\":\"quote\"}\n\n{\"kind\":\"tool\",\"tool\":\"pay\"}\n"),
			Out:        &out,
			Err:        &errOut,
			InTerminal: terminal,
		}, "--agent", agentFile(t, textAgent), "--format", "text")
		want := 0
		if terminal {
			want = 3 // the last is answered by the end of the input
		}
		if got := strings.Count(errOut.String(), "call> "); got != want || strings.Contains(out.String(), "call>") {
			t.Errorf("terminal %v: %d prompts\n%s", terminal, got, errOut.String())
		}
	}
}
