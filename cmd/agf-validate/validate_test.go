package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

// TestHugeFileIsRefused: a 100 MB agent file gives a finding, and is
// not read to its end.
func TestHugeFileIsRefused(t *testing.T) {
	path := testfiles.Write(t, filepath.Join(t.TempDir(), "huge.agf.yaml"), testfiles.Agent)
	must.Do(t, os.Truncate(path, 100<<20))
	if out, errOut, code := validated(t, path); code != term.ExitFindings ||
		!strings.Contains(out, "huge.agf.yaml:1:1") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// TestOrderOfReportsIsTheOrderOfTheWalk: the output is the same for any number of workers.
func TestOrderOfReportsIsTheOrderOfTheWalk(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		testfiles.Write(
			t,
			filepath.Join(dir, fmt.Sprintf("d%d", i%7), fmt.Sprintf("a%03d.agf.yaml", i)),
			testfiles.Agent+strings.Repeat(fmt.Sprintf("x%d: 1\n", i), i%2),
		)
	}

	var want string
	for _, workers := range []int{1, 8, 3} {
		var out bytes.Buffer
		code := program{
			Streams: term.Streams{Out: &out, Err: io.Discard},
			Workers: workers,
		}.Run([]string{"--strict", dir})
		if code != term.ExitFindings {
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

// TestProgress: progress is printed only on terminals and for long walks, and is removed at the
// end.
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

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	agent := testfiles.Write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), testfiles.Agent+"x: 1\n")
	var errOut bytes.Buffer
	code := program{Streams: term.Streams{Out: brokenPipe{}, Err: &errOut}}.Run([]string{agent})
	if code != term.ExitFailure || !strings.Contains(errOut.String(), "broken pipe") {
		t.Errorf("exit %d, %s", code, errOut.String())
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	agent := testfiles.Write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), testfiles.Agent+"x: 1\n")
	for name, c := range map[string]struct {
		v    program
		args []string
		want bool
	}{
		"terminal":   {program{Streams: term.Streams{OutTerminal: true}}, nil, true},
		"pipe":       {program{}, nil, false},
		"--no-color": {program{Streams: term.Streams{OutTerminal: true}}, []string{"--no-color"}, false},
		"NO_COLOR": {program{Streams: term.Streams{
			OutTerminal: true,
			Env: func(string) string {
				return "1"
			},
		}}, nil, false},
	} {
		var out bytes.Buffer
		c.v.Out, c.v.Err = &out, io.Discard
		c.v.Run(append(c.args, "--fail-on", "info", agent))
		if got := strings.Contains(out.String(), "\x1b["); got != c.want || out.Len() == 0 {
			t.Errorf("%s: colour %v\n%s", name, got, out.String())
		}
	}
}

// TestAFileIsCheckedOnce: this holds if several arguments lead to the same file.
func TestAFileIsCheckedOnce(t *testing.T) {
	dir := t.TempDir()
	agent := testfiles.Write(t, filepath.Join(dir, "sub", "a.agf.yaml"), testfiles.Agent)
	out, _, code := validated(t, dir, agent, filepath.Join(dir, "sub", ".", "a.agf.yaml"), filepath.Join(dir, "sub"))
	if code != term.ExitOK || !strings.Contains(out, "1 file") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestCompletion: shells complete the values of flags and the ids of rules.
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
		out, _, code := validated(t, append([]string{"__complete"}, c.args...)...)
		if code != term.ExitOK || !strings.Contains("\n"+out, "\n"+c.want+"\n") {
			t.Errorf("%v: exit %d\n%s", c.args, code, out)
		}
	}
}

// tree writes files below a new directory and makes it the working
// directory, so that findings name them as people would.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	t.Chdir(dir)
}

// validated runs agf-validate.
func validated(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = program{Streams: term.Streams{In: strings.NewReader(""), Out: &o, Err: &e}}.Run(args)
	return o.String(), e.String(), code
}

const (
	deskNames = testfiles.Agent + "constraints: {governance_policies: [{policy_ref: acme.broken}, {policy_ref: " +
		"acme.sound}]}\n"
	brokenPolicy = "schema_version: \"1.0.0\"\npolicy_ref: acme.broken\nrules:\n  - {id: r, aproval: true}\n"
	soundPolicy  = "schema_version: \"1.0.0\"\npolicy_ref: acme.sound\nrules: [{id: r, match: {targets: [trade]}, " +
		"approval: true}]\n"
)

// TestABrokenPolicyIsAFindingInEveryFormat: a broken policy in a directory of --policies is reported
// with its line, whether or not it is also named as a path. The other files are checked, and
// references to a policy that is only broken are not reported as missing.
func TestABrokenPolicyIsAFindingInEveryFormat(t *testing.T) {
	tree(t, map[string]string{
		"agents/desk.agf.yaml":        deskNames + "x: 1\n",
		"policies/broken.policy.yaml": brokenPolicy,
		"policies/sound.policy.yaml":  soundPolicy,
	})
	shows := map[string]func(t *testing.T, out string){
		"text": func(t *testing.T, out string) {
			if !strings.Contains(out, "    4 |   - {id: r, aproval: true}\n      |             ^~~~~~~\n") {
				t.Errorf("no source excerpt:\n%s", out)
			}
		},
		"json": func(t *testing.T, out string) {
			var doc struct {
				Findings []struct{ Rule, File string }
				Files    int
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Findings) < 2 {
				t.Errorf("%v: %s", err, out)
			}
		},
		"sarif": func(t *testing.T, out string) {
			var doc struct{ Runs []struct{ Results []any } }
			if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Runs) != 1 ||
				len(doc.Runs[0].Results) < 2 {
				t.Errorf("%v: %s", err, out)
			}
		},
		"github": func(t *testing.T, out string) {
			if !strings.Contains(out, "policies/broken.policy.yaml,line=4,col=13") {
				t.Error(out)
			}
		},
		"junit": func(t *testing.T, out string) {
			var doc struct{ XMLName xml.Name }
			if err := xml.Unmarshal([]byte(out), &doc); err != nil || doc.XMLName.Local != "testsuites" {
				t.Errorf("%v: %s", err, out)
			}
		},
	}
	for _, paths := range [][]string{
		{"agents"},
		{"."},
		{"agents", "policies"},
		{"./policies/broken.policy.yaml", "agents/desk.agf.yaml"},
	} {
		for format, check := range shows {
			out, errOut, code := validated(
				t,
				append([]string{"--policies", "policies", "--format", format}, paths...)...)
			if code != term.ExitFindings || errOut != "" {
				t.Errorf("%v as %s: exit %d\n%s", paths, format, code, errOut)
			}
			if n := strings.Count(out, "aproval"); n == 0 || format == "github" && n != 1 {
				t.Errorf("%v as %s: the broken policy is told %d times\n%s", paths, format, n, out)
			}
			if !strings.Contains(out, "desk.agf.yaml") || !strings.Contains(out, `unknown-field`) {
				t.Errorf("%v as %s: the agent is not checked\n%s", paths, format, out)
			}
			if strings.Contains(out, `policy \"acme.`) || strings.Contains(out, `policy "acme.`) ||
				strings.Contains(out, "policy &#34;acme.") {
				t.Errorf("%v as %s: a reference is reported\n%s", paths, format, out)
			}
			check(t, out)
		}
	}
}

// TestWhatIsWrongWithAShelfIsAFinding: duplicate names, misspelt names, and an empty or missing
// directory.
func TestWhatIsWrongWithAShelfIsAFinding(t *testing.T) {
	tree(t, map[string]string{
		"desk.agf.yaml":        testfiles.Agent,
		"twice/a.policy.yaml":  soundPolicy,
		"twice/b.policy.yaml":  soundPolicy,
		"near/a.policy.yml":    soundPolicy,
		"empty/readme.md":      "none",
		"syntax/a.policy.yaml": "rules: [",
		"needs.agf.yaml":       deskNames,
	})
	for _, tt := range []struct {
		args []string
		want string
		code int
	}{
		{
			[]string{"--policies", "twice", "desk.agf.yaml"},
			"twice/b.policy.yaml:2:13: error: policy_ref \"acme.sound\" stands twice",
			term.ExitFindings,
		},
		{
			[]string{"--policies", "twice", "twice", "desk.agf.yaml"},
			"twice/b.policy.yaml:2:13: error: policy_ref \"acme.sound\" stands twice",
			term.ExitFindings,
		},
		{
			[]string{"--policies", "near", "desk.agf.yaml"},
			"near/a.policy.yml: error: is named like a policy but would not be read",
			term.ExitFindings,
		},
		{[]string{"--policies", "empty", "desk.agf.yaml"}, "empty: error: no policy is here", term.ExitFailure},
		{
			[]string{"--policies", "gone", "desk.agf.yaml"},
			"gone: error: can't be read: no such file or directory",
			term.ExitFailure,
		},
		{[]string{"--policies", "syntax", "needs.agf.yaml"}, "syntax/a.policy.yaml:1:", term.ExitFindings},
	} {
		out, _, code := validated(t, tt.args...)
		if code != tt.code || strings.Count(out, tt.want) != 1 || strings.Contains(out, "policy-unresolved") {
			t.Errorf("%v: exit %d\n%s", tt.args, code, out)
		}
		if out, _, code := validated(t, append([]string{"--format", "json"}, tt.args...)...); code != tt.code ||
			!json.Valid([]byte(out)) {
			t.Errorf("%v as json: exit %d\n%s", tt.args, code, out)
		}
	}

	out, _, code := validated(t, "--policies", "twice", "needs.agf.yaml")
	if code != term.ExitFindings || !strings.Contains(out, `required policy "acme.broken" is not in the registry`) ||
		strings.Contains(out, `policy "acme.sound" is not`) {
		t.Errorf("a policy that nobody gave: exit %d\n%s", code, out)
	}
	if out, _, _ := validated(
		t,
		"--policies",
		"near",
		"--decisions",
		testfiles.Write(t, "off.yaml", "rules: {policy-none-found: off}\n"),
		"desk.agf.yaml",
	); !strings.Contains(out, "policy-file-name") {
		t.Errorf("a configuration silenced what stops the load: %s", out)
	}
}

const (
	soundPeople  = "schema_version: \"1.0.0\"\npeople: [{id: mara, name: Mara, groups: [risk]}]\n"
	brokenPeople = "schema_version: \"1.0.0\"\npeople: [{id: mara, nmae: Mara}]\n"
)

// TestPeopleAreCheckedAsPeople: named files are recognised by their content, and files in
// directories by the name people.yaml.
func TestPeopleAreCheckedAsPeople(t *testing.T) {
	tree(t, map[string]string{
		"good/people.yaml":     soundPeople,
		"bad/people.yaml":      brokenPeople,
		"named/staff.yaml":     brokenPeople,
		"syntax/people.yaml":   "people: [\n",
		"theirs/people.yaml":   "people: 3\nmetadata: {}\n",
		"theirs/desk.agf.yaml": testfiles.Agent,
		"bad/desk.agf.yaml":    testfiles.Agent,
	})
	for _, tt := range []struct {
		path, want string
		code       int
	}{
		{"good/people.yaml", "no findings in 1 file", term.ExitOK},
		{"good", "no findings in 1 file", term.ExitOK},
		{"bad/people.yaml", `bad/people.yaml:2:21: error: people[0]: unknown field "nmae"`, term.ExitFindings},
		{"bad", `bad/people.yaml:2:21: error: people[0]: unknown field "nmae"`, term.ExitFindings},
		{"named/staff.yaml", `named/staff.yaml:2:21: error: people[0]: unknown field "nmae"`, term.ExitFindings},
		{"syntax/people.yaml", "[yaml-syntax]", term.ExitFindings},
		{"theirs", "no findings in 1 file", term.ExitOK}, // somebody else's people.yaml
	} {
		out, errOut, code := validated(t, tt.path)
		if code != tt.code || !strings.Contains(out, tt.want) || strings.Contains(out, `"metadata"`) {
			t.Errorf("%s: exit %d\n%s%s", tt.path, code, out, errOut)
		}
	}

	if out, _, code := validated(t, "--format", "sarif", "bad/people.yaml"); code != term.ExitFindings ||
		!strings.Contains(out, `"ruleIndex"`) {
		t.Errorf("sarif: exit %d\n%s", code, out)
	}
	if out, _, code := validated(
		t,
		"--decisions",
		testfiles.Write(t, "c.yaml", "rules: {people-newer-version: error}\n"),
		testfiles.Write(t, "newer/people.yaml", strings.Replace(soundPeople, "1.0.0", "1.7.0", 1)),
	); code != term.ExitFindings || !strings.Contains(out, "error: ") {
		t.Errorf("a configuration: exit %d\n%s", code, out)
	}

	var out bytes.Buffer
	if code := (program{Streams: term.Streams{
		In:  strings.NewReader(brokenPeople),
		Out: &out,
		Err: os.Stderr,
	}}).Run([]string{"-"}); code != term.ExitFindings || !strings.Contains(out.String(), "<stdin>:2:21") {
		t.Errorf("standard input: exit %d\n%s", code, out.String())
	}
}

// TestGroupsAndStagesAreHeldAgainstThePeople: --people reports a misspelt group, and a stage that
// needs more people than the group has.
func TestGroupsAndStagesAreHeldAgainstThePeople(t *testing.T) {
	tree(t, map[string]string{
		"people.yaml": "schema_version: \"1.0.0\"\npeople: [{id: mara, groups: [sre]}, {id: omar, groups: [sre]}]\n",
		"p.policy.yaml": `schema_version: "1.0.0"
policy_ref: acme.deploys
rules:
  - {id: typo, approval: true, require: {stages: [{group: sres, people: 1}], within: 1h}}
  - {id: many, approval: true, require: {stages: [{group: sre, people: 9}], within: 1h}}
`,
	})
	if out, errOut, code := validated(t, "p.policy.yaml"); code != term.ExitOK {
		t.Errorf("without people: exit %d\n%s%s", code, out, errOut)
	}
	out, errOut, code := validated(t, "--people", "people.yaml", "p.policy.yaml")
	for _, want := range []string{
		`error: rule typo asks the group "sres", which nobody is in [policy-group-unknown]`, "= did you mean: sre\n",
		"error: rule many needs 9 people of sre: only 2 can fill the stage [policy-stage-unfillable]",
	} {
		if code != term.ExitFindings || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %s in\n%s%s", code, want, out, errOut)
		}
	}
}

// TestARuleThatMeetsNothingIsAFinding: this holds if agents and policies are checked together. A
// policy alone is not judged.
func TestARuleThatMeetsNothingIsAFinding(t *testing.T) {
	const named = testfiles.Agent + "constraints: {governance_policies: [{policy_ref: acme.sound}]}\n"
	tree(t, map[string]string{
		"desk.agf.yaml":          named,
		"policies/p.policy.yaml": strings.Replace(soundPolicy, "targets: [trade]", "targets: [trdae]", 1),
	})
	const want = `policies/p.policy.yaml:3:35: warning: no call of the agents checked here meets "trdae", so rule ` +
		`"r" meets nothing [policy-meets-nothing]`
	for _, tt := range []struct {
		args []string
		told bool
	}{
		{[]string{"--policies", "policies", "."}, true},
		{[]string{"policies", "desk.agf.yaml"}, true},
		{[]string{"--fail-on", "warning", "."}, true},
		{[]string{"policies"}, false},
		{[]string{"--policies", "policies", "desk.agf.yaml"}, false},
	} {
		out, errOut, code := validated(t, tt.args...)
		if told := strings.Contains(out, want); told != tt.told ||
			code != map[bool]int{
				true:  term.ExitFindings,
				false: term.ExitOK,
			}[len(tt.args) == 3 && tt.args[0] == "--fail-on"] {
			t.Errorf("%v: exit %d\n%s%s", tt.args, code, out, errOut)
		}

		if tt.told && !strings.Contains(out, "= did you mean: trade") {
			t.Errorf("%v: no nearest name\n%s", tt.args, out)
		}
	}
}

// TestAMisspeltCommandIsNoFile.
func TestAMisspeltCommandIsNoFile(t *testing.T) {
	tree(t, map[string]string{"expain.agf.yaml": testfiles.Agent})
	for arg, want := range map[string]string{
		"expain": `expain is no file, and no command: did you mean "explain"`,
		"rule":   `did you mean "rules"`,
		"shcema": `did you mean "schema"`,
		"agents": "no such file or directory",
	} {
		if _, errOut, code := validated(t, arg, "expain.agf.yaml"); code != term.ExitFailure ||
			!strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d %s", arg, code, errOut)
		}
	}
}

// TestTheHintForAVersionLeadsToTheRightValue: following the hint once is enough in all three kinds
// of files.
func TestTheHintForAVersionLeadsToTheRightValue(t *testing.T) {
	tree(t, map[string]string{
		"a.agf.yaml":    strings.Replace(testfiles.Agent, `"1.0.0"`, "1.0", 1),
		"b.agf.yaml":    strings.Replace(testfiles.Agent, `"1.0.0"`, `"1.0"`, 1),
		"p.policy.yaml": strings.Replace(soundPolicy, `"1.0.0"`, "1.0", 1),
		"people.yaml":   strings.Replace(soundPeople, `"1.0.0"`, "1", 1),
	})
	for _, file := range []string{"a.agf.yaml", "b.agf.yaml", "p.policy.yaml", "people.yaml"} {
		if out, _, _ := validated(t, file); strings.Count(
			out,
			`= expected: three numbers in quotes, such as "1.0.0"`,
		) != 1 ||
			!strings.Contains(out, "1 error in 1 file") {
			t.Errorf("%s:\n%s", file, out)
		}
	}
}

// TestNearestWordsOfFieldsAndValues: suggestions for names that people write from memory.
func TestNearestWordsOfFieldsAndValues(t *testing.T) {
	tree(
		t,
		map[string]string{
			"a.agf.yaml": `schema_version: "1.0.0"
metadata: {id: a, name: A, version: "1.0.0", description: D.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: react, config: {instructions: x, model: any}}
action_space:
  local_tools: [{alias: pay, approval: {message: "Pay?", when: {amount: 1}}}]
  agents: [{alias: b, source: c}]
`,
			"p.policy.yaml": "schema_version: \"1.0.0\"\npolicy_ref: a.b\nrules:\n  - {id: r, approval: {message: " +
				"hi}, require: {on_timeout: allow}}\n",
		},
	)
	agent, _, _ := validated(t, "a.agf.yaml")
	for _, want := range []string{"agf.react", "message_template", "condition", "local_agents"} {
		if !strings.Contains(agent, "= did you mean: "+want+"\n") {
			t.Errorf("%s is not suggested:\n%s", want, agent)
		}
	}
	pol, _, _ := validated(t, "p.policy.yaml")
	for _, want := range []string{"message_template", "approve"} {
		if !strings.Contains(pol, "= did you mean: "+want+"\n") {
			t.Errorf("%s is not suggested:\n%s", want, pol)
		}
	}
}

// TestEveryHelpURILeadsToAPage: each page exists in the repository.
func TestEveryHelpURILeadsToAPage(t *testing.T) {
	docs, err := filepath.Abs(filepath.Join(testfiles.Root(t), "docs", "rules"))
	must.Do(t, err)
	tree(t, map[string]string{"a.agf.yaml": testfiles.Agent})
	out, _, _ := validated(t, "--format", "sarif", "a.agf.yaml")
	var doc struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID, HelpURI string }
				}
			}
		}
	}
	must.Do(t, json.Unmarshal([]byte(out), &doc))
	rules := doc.Runs[0].Tool.Driver.Rules
	for _, r := range rules {
		page, ok := strings.CutPrefix(r.HelpURI, term.HelpURL)
		if _, err := os.Stat(filepath.Join(docs, page)); !ok || err != nil {
			t.Errorf("%s: %s leads nowhere: %v", r.ID, r.HelpURI, err)
		}
	}

	if len(rules) < 100 {
		t.Errorf("%d rules", len(rules))
	}
}

// TestJUnitFailsWhereTheExitCodeDoes: warnings pass unless
// --fail-on says otherwise.
func TestJUnitFailsWhereTheExitCodeDoes(t *testing.T) {
	tree(t, map[string]string{"a.agf.yaml": testfiles.Agent + "x: 1\n"})
	for _, tt := range []struct {
		failOn   string
		failures string
		code     int
	}{
		{"error", `failures="0"`, term.ExitOK},
		{"warning", `failures="1"`, term.ExitFindings},
		{"info", `failures="1"`, term.ExitFindings},
	} {
		if out, _, code := validated(t, "--format", "junit", "--fail-on", tt.failOn, "a.agf.yaml"); code != tt.code ||
			!strings.Contains(out, tt.failures) {
			t.Errorf("%s: exit %d\n%s", tt.failOn, code, out)
		}
	}
}

// TestExamplesAreClean runs what examples/README.md says.
func TestExamplesAreClean(t *testing.T) {
	t.Chdir(testfiles.Root(t))
	out, errOut, code := validated(t, "--strict", "--fail-on", "warning",
		"--decisions", "examples/coding-agent/daily/decisions.yaml", "examples", "agent/examples")
	if code != term.ExitOK {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}
