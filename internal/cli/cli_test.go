package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const agentText = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: quote}, {alias: trade, approval: true}]}
`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHugeFileIsRefused: a 100 MB agent file gives a finding, and is not read to its end.
func TestHugeFileIsRefused(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "huge.agf.yaml"), agentText)
	if err := os.Truncate(path, 100<<20); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := (Validate{Streams: Streams{Out: &out, Err: &errOut}}).Run([]string{path}); code != ExitFindings || !strings.Contains(out.String(), "huge.agf.yaml:1:1") {
		t.Errorf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	if code := (Assent{Streams: Streams{Out: &out, Err: &errOut}}).Run([]string{"decide", "--agent", path}); code != ExitFailure {
		t.Errorf("decide: exit %d", code)
	}
}

// TestOneBrokenPolicyAmongAHundred refuses the whole directory and says which file.
func TestOneBrokenPolicyAmongAHundred(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(dir, "p", fmt.Sprintf("p%02d.policy.yaml", i)), fmt.Sprintf("schema_version: \"1.0.0\"\npolicy_ref: acme.p%d\nrules: [{id: r, approval: true}]\n", i))
	}
	write(t, filepath.Join(dir, "p", "p50.policy.yaml"), "schema_version: \"1.0.0\"\npolicy_ref: acme.p50\nrules: [{id: r, aproval: true}]\n")
	agent := write(t, filepath.Join(dir, "a.agf.yaml"), agentText)
	var out, errOut bytes.Buffer
	code := Assent{Streams: Streams{In: strings.NewReader(`{"kind":"tool","tool":"quote"}`), Out: &out, Err: &errOut}}.
		Run([]string{"decide", "--agent", agent, "--policies", filepath.Join(dir, "p")})
	if code != ExitFailure || out.Len() != 0 || !strings.Contains(errOut.String(), "p50.policy.yaml:3:17") {
		t.Errorf("exit %d, out %q\n%s", code, out.String(), errOut.String())
	}
}

// decided runs assent decide on one agent and returns its decisions, one a line, and its exit code.
func decided(t *testing.T, agent, calls string, flags ...string) (string, int) {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agent)
	var out, errOut bytes.Buffer
	code := Assent{Streams: Streams{In: strings.NewReader(calls), Out: &out, Err: &errOut}}.Run(append([]string{"decide", "--agent", file}, flags...))
	return out.String() + errOut.String(), code
}

// TestH7_DecideTakesKeysThatFoldAlikeWhereItIsTold: by target, and not otherwise.
func TestH7_DecideTakesKeysThatFoldAlikeWhereItIsTold(t *testing.T) {
	const call = `{"kind":"tool","tool":"quote","args":{"i":1,"I":2}}`
	for _, tt := range []struct {
		flags []string
		want  string
		code  int
	}{
		{nil, `"unreadable_arguments"`, ExitOK},
		{[]string{"--case-sensitive-arguments", "tool trade"}, `"unreadable_arguments"`, ExitOK},
		{[]string{"--case-sensitive-arguments", "tool trade", "--case-sensitive-arguments", "tool quote"}, `"outcome":"allow"`, ExitOK},
		{[]string{"--case-sensitive-arguments", "quote"}, `"quote" is no target, expected one such as "tool pay"`, ExitFailure},
	} {
		if out, code := decided(t, agentText, call, tt.flags...); code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%q: exit %d\n%s", tt.flags, code, out)
		}
	}
}

// TestUsers2_4_DecideTakesAnObjectOfArguments: a line with anything else is no valid call, and the others are still answered.
func TestUsers2_4_DecideTakesAnObjectOfArguments(t *testing.T) {
	calls := `{"kind":"tool","tool":"quote","args":"{\"symbol\":\"ACME\"}"}
{"kind":"tool","tool":"quote","args":{"symbol":"ACME"}}
`
	out, code := decided(t, agentText, calls)
	lines := strings.Split(out, "\n")
	if code != ExitFailure || !strings.Contains(lines[0], `"code":"unreadable_call","detail":"args: expected an object; args is JSON text: send the object itself"`) ||
		!strings.Contains(lines[1], `"outcome":"allow"`) || !strings.Contains(lines[2], "1 of the lines were no valid call") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestE7_DecideDoesWhatItsContractSays, line by line: what is no valid call, which hints count, what an answer leaves out.
func TestE7_DecideDoesWhatItsContractSays(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "g.policy.yaml"), `schema_version: "1.0.0"
policy_ref: g
applies: implicit
agents: {labels: {tier: prod}}
rules:
  - {id: deletes, match: {kinds: [mcp_tool], annotations: {destructiveHint: true}}, deny: Not on files.}
  - {id: is-asked, match: {servers: [files], annotations: {destructiveHint: true}}, approval: true, require: {within: 5m}}
  - {id: goes-out, match: {kinds: [delegation]}, approval: true}
`)
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

// TestOrderOfReportsIsTheOrderOfTheWalk: however many workers, output is the same bytes.
func TestOrderOfReportsIsTheOrderOfTheWalk(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		write(t, filepath.Join(dir, fmt.Sprintf("d%d", i%7), fmt.Sprintf("a%03d.agf.yaml", i)), agentText+strings.Repeat(fmt.Sprintf("x%d: 1\n", i), i%2))
	}
	var want string
	for _, workers := range []int{1, 8, 3} {
		var out bytes.Buffer
		code := Validate{Streams: Streams{Out: &out, Err: io.Discard}, Workers: workers}.Run([]string{"--strict", dir})
		if code != ExitFindings {
			t.Fatalf("exit %d", code)
		}
		if want == "" {
			want = out.String()
		}
		if out.String() != want {
			t.Errorf("%d workers print something else", workers)
		}
	}
	if n := strings.Count(want, "[unknown-field]"); n != 150 {
		t.Errorf("%d findings, want 150\n%.600s", n, want)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText+"x: 1\n")
	var errOut bytes.Buffer
	if code := (Validate{Streams: Streams{Out: brokenPipe{}, Err: &errOut}}).Run([]string{agent}); code != ExitFailure || !strings.Contains(errOut.String(), "broken pipe") {
		t.Errorf("agf-validate: exit %d, %s", code, errOut.String())
	}
	errOut.Reset()
	in := strings.NewReader(`{"kind":"tool","tool":"quote"}`)
	if code := (Assent{Streams: Streams{In: in, Out: brokenPipe{}, Err: &errOut}}).Run([]string{"decide", "--agent", agent}); code != ExitFailure || !strings.Contains(errOut.String(), "broken pipe") {
		t.Errorf("assent: exit %d, %s", code, errOut.String())
	}
}

// TestLongLines: a line over the bound is one denied line, the next one is answered.
func TestLongLines(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	long := `{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", maxLine) + `"}}`
	fifty := `{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`
	for name, in := range map[string]string{
		"in the middle": long + "\n" + fifty + "\r\n{\"kind\":\"tool\",\"tool\":\"quote\"}\n",
		"at the end":    "{\"kind\":\"tool\",\"tool\":\"quote\"}\n" + fifty + "\n" + long,
	} {
		var out, errOut bytes.Buffer
		code := Assent{Streams: Streams{In: strings.NewReader(in), Out: &out, Err: &errOut}}.Run([]string{"decide", "--agent", agent})
		got := out.String()
		if code != ExitFailure || strings.Count(got, "\n") != 3 || strings.Count(got, "unreadable_call") != 1 || strings.Count(got, "unreadable_arguments") != 1 || strings.Count(got, `"allow"`) != 1 {
			t.Errorf("%s: exit %d\n%.2000s", name, code, got)
		}
	}
}

// TestLineThatOnlyBeginsAsACall: the bound cuts no line short, also when the last one ends without a line break.
func TestLineThatOnlyBeginsAsACall(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	call := `{"kind":"tool","tool":"quote"}`
	in := call + strings.Repeat(" ", maxLine-len(call)-10) + strings.Repeat("x", 20)
	var out, errOut bytes.Buffer
	code := Assent{Streams: Streams{In: strings.NewReader(in), Out: &out, Err: &errOut}}.Run([]string{"decide", "--agent", agent})
	if code != ExitFailure || !strings.Contains(out.String(), errLineTooLong.Error()) {
		t.Errorf("exit %d, %s", code, out.String())
	}
}

// TestOddLines: what looks blank but is no JSON white space is a line, and gets an answer.
func TestOddLines(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	call := `{"kind":"tool","tool":"quote"}`
	var out bytes.Buffer
	in := call + "\r\n\r\n \t\n\u00a0\n\x00\n\v\n" + call + "\x00\n\ufeff" + call + "\n" + call
	code := Assent{Streams: Streams{In: strings.NewReader(in), Out: &out, Err: io.Discard}}.Run([]string{"decide", "--agent", agent})
	if got := out.String(); code != ExitFailure || strings.Count(got, `"allow"`) != 2 || strings.Count(got, "unreadable_call") != 5 || strings.Count(got, "\n") != 7 {
		t.Errorf("exit %d\n%s", code, got)
	}
}

// TestStandardInputIsReadOnce: an agent from standard input leaves no calls there to decide.
func TestStandardInputIsReadOnce(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	for _, args := range [][]string{{"--agent", "-"}, {"--agent", agent, "--parent", "-"}, {"--agent", "-", "--parent", "-", "--call", agent}} {
		var errOut bytes.Buffer
		code := Assent{Streams: Streams{In: strings.NewReader(agentText), Out: io.Discard, Err: &errOut}}.Run(append([]string{"decide"}, args...))
		if code != ExitFailure || !strings.Contains(errOut.String(), "standard input") {
			t.Errorf("%v: exit %d, %s", args, code, errOut.String())
		}
	}
}

// TestDecideAnswersEachLineAtOnce: a runtime that pipes one call at a time gets its answer before it sends the next.
func TestDecideAnswersEachLineAtOnce(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	callsOut, calls := io.Pipe()
	answers, answersIn := io.Pipe()
	done := make(chan int)
	go func() {
		done <- Assent{Streams: Streams{In: callsOut, Out: answersIn, Err: io.Discard}}.Run([]string{"decide", "--agent", agent})
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
	if code := <-done; code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("unplugged") }

func TestInputThatBreaks(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText)
	var errOut bytes.Buffer
	if code := (Assent{Streams: Streams{In: failing{}, Out: io.Discard, Err: &errOut}}).Run([]string{"decide", "--agent", agent}); code != ExitFailure || !strings.Contains(errOut.String(), "unplugged") {
		t.Errorf("exit %d, %s", code, errOut.String())
	}
}

// TestProgress is for terminals, for long walks, and leaves nothing behind.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, true)
	now := p.started
	p.now = func() time.Time { return now }
	p.file()
	if out.Len() != 0 {
		t.Errorf("a short walk shows %q", out.String())
	}
	now = now.Add(2 * time.Second)
	p.file()
	p.file()
	if got := out.String(); got != "\r\x1b[Kchecked 2 files" {
		t.Errorf("got %q", got)
	}
	p.end()
	p.end()
	if got := out.String(); !strings.HasSuffix(got, "files\r\x1b[K") {
		t.Errorf("got %q", got)
	}
	var silent bytes.Buffer
	q := newProgress(&silent, false)
	q.now = func() time.Time { return q.started.Add(time.Hour) }
	q.file()
	q.end()
	if silent.Len() != 0 {
		t.Errorf("without a terminal: %q", silent.String())
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText+"x: 1\n")
	for name, c := range map[string]struct {
		v    Validate
		args []string
		want bool
	}{
		"terminal":   {Validate{Streams: Streams{OutTerminal: true}}, nil, true},
		"pipe":       {Validate{}, nil, false},
		"--no-color": {Validate{Streams: Streams{OutTerminal: true}}, []string{"--no-color"}, false},
		"NO_COLOR":   {Validate{Streams: Streams{OutTerminal: true}, NoColor: true}, nil, false},
	} {
		var out bytes.Buffer
		c.v.Out, c.v.Err = &out, io.Discard
		c.v.Run(append(c.args, "--fail-on", "info", agent))
		if got := strings.Contains(out.String(), "\x1b["); got != c.want || out.Len() == 0 {
			t.Errorf("%s: colour %v\n%s", name, got, out.String())
		}
	}
}

// TestAFileIsCheckedOnce, however many arguments lead to it.
func TestAFileIsCheckedOnce(t *testing.T) {
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "sub", "a.agf.yaml"), agentText)
	var out bytes.Buffer
	code := Validate{Streams: Streams{Out: &out, Err: io.Discard}}.Run([]string{dir, agent, filepath.Join(dir, "sub", ".", "a.agf.yaml"), filepath.Join(dir, "sub")})
	if code != ExitOK || !strings.Contains(out.String(), "1 file") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

// TestCompletion: shells are offered the values of flags and the ids of rules.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "s"}, "sarif"},
		{[]string{"--fail-on", "w"}, "warning"},
		{[]string{"explain", "loo"}, "looser-than-blanket"},
		{[]string{"explain", "people-d"}, "people-duplicate-name"},
		{[]string{"schema", "po"}, "policy"},
		{[]string{"schema", "pe"}, "people"},
	} {
		var out bytes.Buffer
		code := Validate{Streams: Streams{Out: &out, Err: io.Discard}}.Run(append([]string{"__complete"}, c.args...))
		if code != ExitOK || !strings.Contains("\n"+out.String(), "\n"+c.want+"\n") {
			t.Errorf("%v: exit %d\n%s", c.args, code, out.String())
		}
	}
}
