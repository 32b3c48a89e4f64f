package decide

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// run runs assent decide and returns its exit code.
func run(s term.Streams, args ...string) int { return term.Run(Decider{Streams: s}.Command(), s, args) }

// TestOneBrokenPolicyAmongAHundred refuses the whole directory and says
// which file.
func TestOneBrokenPolicyAmongAHundred(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		testfiles.Write(
			t,
			filepath.Join(dir, "p", fmt.Sprintf("p%02d.policy.yaml", i)),
			fmt.Sprintf("schema_version: \"1.0.0\"\npolicy_ref: acme.p%d\nrules: [{id: r, approval: true}]\n", i),
		)
	}

	testfiles.Write(
		t,
		filepath.Join(dir, "p", "p50.policy.yaml"),
		"schema_version: \"1.0.0\"\npolicy_ref: acme.p50\nrules: [{id: r, aproval: true}]\n",
	)
	call := strings.NewReader(`{"kind":"tool","tool":"quote"}`)
	out, errOut, code := answered(t, testfiles.Agent, call, "--policies", filepath.Join(dir, "p"))
	if code != term.ExitFailure || out != "" || !strings.Contains(errOut, "p50.policy.yaml:3:17") {
		t.Errorf("exit %d, out %q\n%s", code, out, errOut)
	}
}

// decided runs assent decide on one agent. It returns the decisions, one per line, the error
// output, and the exit code.
func decided(t *testing.T, agent, calls string, flags ...string) (string, int) {
	t.Helper()
	out, errOut, code := answered(t, agent, strings.NewReader(calls), flags...)

	return out + errOut, code
}

// answered is decided with any input, and both streams.
func answered(t *testing.T, agent string, in io.Reader, flags ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(term.Streams{In: in, Out: &o, Err: &e}, append([]string{"--agent", agentFile(t, agent)}, flags...)...)

	return o.String(), e.String(), code
}

// agentFile writes the file of an agent.
func agentFile(t *testing.T, agent string) string {
	t.Helper()

	return testfiles.Write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agent)
}

// TestDecideTakesKeysThatFoldAlikeWhereItIsTold: by target, and not
// otherwise.
func TestDecideTakesKeysThatFoldAlikeWhereItIsTold(t *testing.T) {
	const call = `{"kind":"tool","tool":"quote","args":{"i":1,"I":2}}`
	for _, tt := range []struct {
		flags []string
		want  string
		code  int
	}{
		{nil, `"unreadable_arguments"`, term.ExitOK},
		{[]string{"--case-sensitive-arguments", "tool trade"}, `"unreadable_arguments"`, term.ExitOK},
		{
			[]string{"--case-sensitive-arguments", "tool trade", "--case-sensitive-arguments", "tool quote"},
			`"outcome":"allow"`,
			term.ExitOK,
		},
		{
			[]string{"--case-sensitive-arguments", "quote"},
			`"quote" is no target, expected one such as "tool pay"`,
			term.ExitFailure,
		},
	} {
		if out, code := decided(t, testfiles.Agent, call, tt.flags...); code != tt.code ||
			!strings.Contains(out, tt.want) {
			t.Errorf("%q: exit %d\n%s", tt.flags, code, out)
		}
	}
}

// TestDecideTakesAnObjectOfArguments: a line with anything
// else is no valid call, and the others are still answered.
func TestDecideTakesAnObjectOfArguments(t *testing.T) {
	calls := `{"kind":"tool","tool":"quote","args":"{\"symbol\":\"ACME\"}"}
{"kind":"tool","tool":"quote","args":{"symbol":"ACME"}}
`
	out, code := decided(t, testfiles.Agent, calls)
	lines := strings.Split(out, "\n")
	if code != term.ExitFailure ||
		!strings.Contains(
			lines[0],
			`"code":"unreadable_call","detail":"args: expected an object; args is JSON text: send the object itself"`,
		) ||
		!strings.Contains(lines[1], `"outcome":"allow"`) ||
		!strings.Contains(lines[2], "1 of the lines were no valid call") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestDecideDoesWhatItsContractSays, line by line: what is no valid
// call, which hints count, what an answer leaves out.
func TestDecideDoesWhatItsContractSays(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(
		t,
		filepath.Join(dir, "g.policy.yaml"),
		`schema_version: "1.0.0"
policy_ref: g
applies: implicit
agents: {labels: {tier: prod}}
rules:
  - {id: deletes, match: {kinds: [mcp_tool], annotations: {destructiveHint: true}}, deny: Not on files.}
  - {id: is-asked, match: {servers: [files], annotations: {destructiveHint: true}}, approval: true, require: {within: 5m}}
  - {id: goes-out, match: {kinds: [delegation]}, approval: true}
`,
	)
	const agent = `schema_version: "1.0.0"
metadata: {id: d, name: D, version: "1.0.0", description: d, labels: {tier: prod}}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools: [{alias: pay, approval: true}]
  mcp_servers: [{alias: files}]
  remote_agents: [{alias: bank, protocol: a2a, url: "https://bank.example"}]
execution_policy: {id: agf.react, config: {instructions: x, model: any}}
`
	for line, want := range map[string]string{
		`{"kind":"tool","tool":"pay","session":""}`:                                                  "deny unreadable_call",
		`{"kind":"tool","tool":"pay","principal":""}`:                                                "deny unreadable_call",
		`{"kind":"tool","tool":"pay","tool_definition":""}`:                                          "deny unreadable_call",
		`{"kind":"mcp_tool","server":"files","tool":"rm","annotations":null}`:                        "deny unreadable_call",
		`{"kind":"mcp_tool","server":"files","tool":"rm"}`:                                           "deny denied always",
		`{"kind":"mcp_tool","server":"files","tool":"rm","annotations":{"destructiveHint":false}}`:   "allow",
		`{"kind":"mcp_tool","server":"files","tool":"rm","annotations":{"destructiveHint":"false"}}`: "deny denied always",
		`{"kind":"tool","tool":"pay","args":{"a":1,"a":2}}`:                                          "deny unreadable_arguments",
		`{"kind":"tool","tool":"pay"}`:                                                               "ask always",
		`{"kind":"skill","agent":"bank","skill":"pay"}`:                                              "ask always",
	} {
		out, _ := decided(t, agent, line, "--policies", dir, "--trust-server", "files")
		var d struct {
			Outcome string
			Reasons []struct{ Code string }
			Require *struct{} `json:"require"`
		}
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&d); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		got := d.Outcome
		for _, reason := range d.Reasons {
			got += " " + reason.Code
		}
		if got != want || d.Outcome == "deny" && d.Require != nil {
			t.Errorf("%s: expected %s\n%s", line, want, out)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	agent := testfiles.Write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), testfiles.Agent+"x: 1\n")
	var errOut bytes.Buffer
	in := strings.NewReader(`{"kind":"tool","tool":"quote"}`)
	if code := run(term.Streams{
		In:  in,
		Out: brokenPipe{},
		Err: &errOut,
	}, "--agent", agent); code != term.ExitFailure || !strings.Contains(errOut.String(), "broken pipe") {
		t.Errorf("assent: exit %d, %s", code, errOut.String())
	}
}

// TestLongLines: a line over the bound is one denied line, the next one
// is answered.
func TestLongLines(t *testing.T) {
	long := `{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", maxLine) + `"}}`
	fifty := `{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`
	for name, in := range map[string]string{
		"in the middle": long + "\n" + fifty + "\r\n{\"kind\":\"tool\",\"tool\":\"quote\"}\n",
		"at the end":    "{\"kind\":\"tool\",\"tool\":\"quote\"}\n" + fifty + "\n" + long,
	} {
		got, _, code := answered(t, testfiles.Agent, strings.NewReader(in))
		if code != term.ExitFailure || strings.Count(got, "\n") != 3 || strings.Count(got, "unreadable_call") != 1 ||
			strings.Count(got, "unreadable_arguments") != 1 ||
			strings.Count(got, `"allow"`) != 1 {
			t.Errorf("%s: exit %d\n%.2000s", name, code, got)
		}
	}
}

// TestQuestionsAboutTheNextStep are answered among calls. One without an answer is exit code 2.
func TestQuestionsAboutTheNextStep(t *testing.T) {
	agent := strings.Replace(testfiles.Agent, "id: agf.react, config: {instructions: Trade., model: any}",
		"id: agf.conditional, config: {routes: [{agent: clerk, when: {args_match: {parent.input.n: {gt: 1}}}}]}", 1)
	agent = strings.Replace(agent, "action_space: {", "action_space: {local_agents: [{alias: clerk, source: c.agf.yaml}], ", 1)
	const route, call = `{"kind":"route","parent":{"input":{"n":2}}}`, `{"kind":"tool","tool":"quote"}`
	out, _, code := answered(t, agent, strings.NewReader(call+"\n"+route+"\n"+call+"\n"))
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != 4 || lines[1] != `{"kind":"route","agent":"clerk","route":0}` || lines[0] != lines[2] {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, _, code = answered(t, agent, strings.NewReader(strings.Replace(route, "2", `"2"`, 1)+"\n"+call))
	if code != term.ExitFailure || !strings.Contains(out, `"error":`) || !strings.Contains(out, `"allow"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestLineThatOnlyBeginsAsACall: the bound cuts no line short, also
// when the last one ends without a line break.
func TestLineThatOnlyBeginsAsACall(t *testing.T) {
	call := `{"kind":"tool","tool":"quote"}`
	in := call + strings.Repeat(" ", maxLine-len(call)-10) + strings.Repeat("x", 20)
	out, _, code := answered(t, testfiles.Agent, strings.NewReader(in))
	if code != term.ExitFailure || !strings.Contains(out, errLineTooLong.Error()) {
		t.Errorf("exit %d, %s", code, out)
	}
}

// TestOddLines: what looks blank but is no JSON white space is a line,
// and gets an answer.
func TestOddLines(t *testing.T) {
	call := `{"kind":"tool","tool":"quote"}`
	in := call + "\r\n\r\n \t\n\u00a0\n\x00\n\v\n" + call + "\x00\n\ufeff" + call + "\n" + call
	if got, _, code := answered(t, testfiles.Agent, strings.NewReader(in)); code != term.ExitFailure ||
		strings.Count(got, `"allow"`) != 2 ||
		strings.Count(got, "unreadable_call") != 5 ||
		strings.Count(got, "\n") != 7 {
		t.Errorf("exit %d\n%s", code, got)
	}
}

// TestStandardInputIsReadOnce: an agent from standard input leaves no
// calls there to decide.
func TestStandardInputIsReadOnce(t *testing.T) {
	agent := agentFile(t, testfiles.Agent)
	for _, args := range [][]string{
		{"--agent", "-"},
		{"--agent", agent, "--parent", "-"},
		{"--agent", "-", "--parent", "-", "--call", agent},
	} {
		var errOut bytes.Buffer
		code := run(term.Streams{In: strings.NewReader(testfiles.Agent), Out: io.Discard, Err: &errOut}, args...)
		if code != term.ExitFailure || !strings.Contains(errOut.String(), "standard input") {
			t.Errorf("%v: exit %d, %s", args, code, errOut.String())
		}
	}
}

// TestDecideAnswersEachLineAtOnce: a runtime that pipes one call at a
// time gets its answer before it sends the next.
func TestDecideAnswersEachLineAtOnce(t *testing.T) {
	agent := agentFile(t, testfiles.Agent)
	callsOut, calls := io.Pipe()
	answers, answersIn := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(term.Streams{In: callsOut, Out: answersIn, Err: io.Discard}, "--agent", agent)
	}()
	buf := make([]byte, 4096)
	for range 3 {
		if _, err := io.WriteString(calls, `{"kind":"tool","tool":"trade"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		n, err := answers.Read(buf)
		if err != nil || !strings.HasPrefix(string(buf[:n]), `{"outcome":"ask"`) {
			t.Fatalf("%s, %v", buf[:n], err)
		}
	}

	calls.Close()
	if code := <-done; code != term.ExitOK {
		t.Errorf("exit %d", code)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("unplugged") }

func TestInputThatBreaks(t *testing.T) {
	if _, errOut, code := answered(t, testfiles.Agent, failing{}); code != term.ExitFailure ||
		!strings.Contains(errOut, "unplugged") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

func TestDecideContractNamesEveryCode(t *testing.T) {
	rows := testfiles.FirstCells(testfiles.Contract(t, "decide.md"))
	for _, code := range []resolve.Code{
		resolve.Always,
		resolve.ConditionTrue,
		resolve.ConditionUnknown,
		resolve.AllowListMisspelt,
		resolve.AskedUndeclared,
		resolve.NotDeclared,
		resolve.NotAllowed,
		resolve.Denied,
		resolve.PolicyUnresolved,
		resolve.UnreadableArguments,
		resolve.UnreadableCall,
	} {
		if !slices.Contains(rows, string(code)) {
			t.Errorf("code %s is not in docs/contracts/decide.md", code)
		}
	}
}

// TestDecideContractCalls: the calls that the contract shows are calls,
// and every field of its table is read.
func TestDecideContractCalls(t *testing.T) {
	text := testfiles.Contract(t, "decide.md")
	_, after, ok := strings.Cut(text, "```json\n")
	calls, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the contract shows no calls")
	}
	for _, line := range strings.Split(strings.TrimSpace(calls), "\n") {
		if _, err := resolve.ParseCall([]byte(line), value.Limits{}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	fields, _, _ := strings.Cut(text[strings.Index(text, "## Call"):], "## Decision")
	for _, cell := range testfiles.FirstCells(fields) {
		member := `"` + cell + `":"x"`
		if group, name, nested := strings.Cut(cell, "."); nested {
			member = `"` + group + `":{"` + name + `":"x"}`
		}
		_, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":"x",`+member+`}`), value.Limits{})
		if err != nil && strings.Contains(err.Error(), "unknown field") {
			t.Errorf("the contract promises the field %s: %v", cell, err)
		}
	}
}

// TestDecideShowsTheLineOfABrokenPolicy, on standard error.
func TestDecideShowsTheLineOfABrokenPolicy(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	testfiles.Write(
		t,
		"policies/broken.policy.yaml",
		"schema_version: \"1.0.0\"\npolicy_ref: acme.broken\nrules:\n  - {id: r, aproval: true}\n",
	)
	out, code := decided(t, testfiles.Agent, `{"kind":"tool","tool":"quote"}`, "--policies", "policies")
	if code != term.ExitFailure || !strings.Contains(out, "    4 |   - {id: r, aproval: true}\n") ||
		strings.Contains(out, "outcome") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestContractNamesEveryFlag(t *testing.T) {
	testfiles.CheckFlags(t, "decide.md", Decider{}.Command().Flags().FlagUsages())
}

// TestHugeFileIsRefused: a 100 MB agent file is not read to its end.
func TestHugeFileIsRefused(t *testing.T) {
	path := testfiles.Write(t, filepath.Join(t.TempDir(), "huge.agf.yaml"), testfiles.Agent)
	must.Do(t, os.Truncate(path, 100<<20))
	if code := run(term.Streams{Out: io.Discard, Err: io.Discard}, "--agent", path); code != term.ExitFailure {
		t.Errorf("exit %d", code)
	}
}

// TestDecideNamesWhatTheOwnerChose: the digest of what decides, with
// flags in the place of fields; and none where no file was given.
func TestDecideNamesWhatTheOwnerChose(t *testing.T) {
	const call = `{"kind":"tool","tool":"nobody"}` + "\n" + `{"kind":"tool","tool":"quote"}` + "\nno call\n"
	file := testfiles.Write(t, filepath.Join(t.TempDir(), "d.yaml"), "undeclared: ask\ntrusted_servers: [a]\n")
	digest := func(text string) string {
		c, _ := resolve.ParseConfig("d.yaml", []byte(text))
		return `"configuration":"` + c.Digest() + `"`
	}
	for _, tt := range []struct {
		flags []string
		want  string
		times int
	}{
		{nil, `"configuration"`, 0},
		{[]string{"--trust-server", "b"}, `"configuration"`, 0},
		{[]string{"--decisions", file}, digest("trusted_servers: [a]\nundeclared: ask\n"), 3},
		{[]string{"--config", file, "--trust-server", "b"}, digest("trusted_servers: [b]\nundeclared: ask\n"), 3},
	} {
		out, _, code := answered(t, testfiles.Agent, strings.NewReader(call), tt.flags...)
		if code != term.ExitFailure || strings.Count(out, tt.want) != tt.times ||
			strings.Contains(out, `"code":"undeclared"`) != (tt.times > 0) {
			t.Errorf("%q: exit %d\n%s", tt.flags, code, out)
		}
	}
}
