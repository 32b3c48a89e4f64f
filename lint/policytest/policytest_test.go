package policytest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

// memory is files in memory.
type memory fstest.MapFS

func (m memory) Read(path string) ([]byte, error) { return fs.ReadFile(fstest.MapFS(m), path) }

func (m memory) Policies(dir string) ([]policy.File, []diag.Finding) {
	sub, err := fs.Sub(fstest.MapFS(m), dir)
	if err != nil {
		return nil, []diag.Finding{{File: dir, Message: err.Error()}}
	}

	return policy.ReadFS(sub, dir)
}

func (m memory) Agents(path string) ([]policy.File, error) {
	var out []policy.File
	err := fs.WalkDir(fstest.MapFS(m), path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".agf.yaml") {
			out = append(out, policy.File{Name: name, Text: m[name].Data})
		}
		return err
	})
	return out, err
}

// testWorld returns the files that tests of testdata name, with others in
// the place of some.
func testWorld(t testing.TB, others ...string) memory {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "world.txtar"))
	must.Do(t, err)
	m := memory{}
	for _, f := range a.Files {
		m[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	for i := 0; i+1 < len(others); i += 2 {
		m[others[i]] = &fstest.MapFile{Data: []byte(others[i+1])}
	}

	return m
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	must.Do(t, err)

	return src
}

// prepared reads a test file and builds what it names.
func prepared(t testing.TB, name string, src []byte, files Files) (*File, *Built) {
	t.Helper()
	f, findings := Parse(name, src)
	if f == nil {
		t.Fatal(findings)
	}
	w, err := Load(f, files)
	must.Do(t, err)
	b, err := w.Build()
	must.Do(t, err)

	return f, b
}

func every(string) bool { return true }

// ran returns the printed result of a run.
func ran(t testing.TB, o *Outcome, format string) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, o.Write(&b, format))

	return b.String()
}

// TestRuns checks the output for passing and failing tests in every format.
func TestRuns(t *testing.T) {
	files := testWorld(t)
	for _, name := range []string{"passing", "failing"} {
		f, b := prepared(t, name+Suffix, read(t, name+Suffix), files)
		o := &Outcome{Reports: []Report{{File: f.Path, Results: f.Run(b, every)}}}
		for _, format := range Formats() {
			golden.Equal(t, name+"."+format+".golden", ran(t, o, format))
		}
		tests, failed := o.Count()
		if name == "passing" && failed > 0 || name == "failing" && failed != tests {
			t.Errorf("%s: %d of %d failed", name, failed, tests)
		}
	}
}

// TestUpdate checks that an update rewrites only the expectations, and that a second update changes
// nothing.
func TestUpdate(t *testing.T) {
	files := testWorld(t)
	src := read(t, "failing"+Suffix)
	f, b := prepared(t, "failing"+Suffix, src, files)
	updated, left, err := f.Update(b, f.Run(b, every))
	must.Do(t, err)
	golden.Equal(t, "failing.updated.golden", fmt.Sprintf("# left: %d\n%s", left, updated))

	again, b := prepared(t, "failing"+Suffix, updated, files)
	twice, stillLeft, err := again.Update(b, again.Run(b, every))
	if err != nil || string(twice) != string(updated) || stillLeft != left {
		t.Errorf("left %d, %v\n%s", stillLeft, err, twice)
	}
	src = read(t, "passing"+Suffix)
	f, b = prepared(t, "passing"+Suffix, src, files)
	if same, left, err := f.Update(b, f.Run(b, every)); err != nil || left > 0 || string(same) != string(src) {
		t.Errorf("a passing file is changed: left %d, %v\n%s", left, err, same)
	}
}

// TestUpdateOfWhatIsShared checks an expectation that two tests share and that can't be right for
// both. The update must be refused as a whole.
func TestUpdateOfWhatIsShared(t *testing.T) {
	src := []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
policies: [policies]
calls:
  - {name: a, call: {kind: tool, tool: quote}, expect: &same {outcome: deny}}
  - {name: b, call: {kind: tool, tool: purge}, expect: *same}
`)
	f, b := prepared(t, "shared.test.yaml", src, testWorld(t))
	if _, _, err := f.Update(b, f.Run(b, every)); err == nil || !strings.Contains(err.Error(), "anchor") {
		t.Errorf("got %v", err)
	}
}

// TestUpdateOfOthersText checks that any actual text is written such that it is read back
// unchanged.
func TestUpdateOfOthersText(t *testing.T) {
	const src = "schema_version: \"1.0.0\"\r\nagent: desk.agf.yaml\r\npolicies: [policies]\r\ncalls:\r\n" +
		"  - name: émile\r\n    call: {kind: tool, tool: trade, args: {amount: \"a: #\\n\\u202e'x'\\\"\", " +
		"urgent: false}}\r\n" +
		"    expect: {outcome: ask, message: é} # kept\r\n"
	files := testWorld(t)
	f, b := prepared(t, "odd.test.yaml", []byte(src), files)
	updated, left, err := f.Update(b, f.Run(b, every))
	if err != nil || left > 0 || !strings.HasSuffix(string(updated), "} # kept\r\n") {
		t.Fatalf("left %d, %v\n%s", left, err, updated)
	}
	f, b = prepared(t, "odd.test.yaml", updated, files)
	if r := f.Run(b, every); !r[0].Passed() {
		t.Errorf("%+v\n%s", r, updated)
	}
}

// TestCoverage checks the output about parts that were exercised and parts that were not.
func TestCoverage(t *testing.T) {
	f, b := prepared(t, "passing"+Suffix, read(t, "passing"+Suffix), testWorld(t))
	c := &Coverage{}
	c.Observe(b, f, every)
	o := &Outcome{
		Reports:    []Report{{File: f.Path, Results: f.Run(b, every)}},
		Coverage:   c,
		OnlyFailed: true,
	}
	golden.Equal(t, "coverage.text.golden", ran(t, o, "text"))
	golden.Equal(t, "coverage.json.golden", ran(t, o, "json"))
}

// TestFilesThatCannotBeUsed checks the message and position of each error.
func TestFilesThatCannotBeUsed(t *testing.T) {
	const head = "schema_version: \"1.0.0\"\nagent: desk.agf.yaml\n"
	const one = "  - {name: a, call: {kind: tool, tool: quote}, expect: {outcome: allow}}\n"
	const call = "calls:\n  - {name: a, call: "
	const allow = ", expect: {outcome: allow}}\n"
	const votes = "{person: x, vote: deny, after: 5m}, {person: x, vote: deny, after: 4m}"
	for name, c := range map[string]struct{ src, want string }{
		"empty":         {"", "the file holds no document"},
		"cut short":     {head + call + "{kind: tool", "4:6: "},
		"no test file":  {"rules: []\n", "tests-not-a-test-file"},
		"other version": {"schema_version: \"2.0.0\"\nagent: a\ncalls: []\n", "tests-unsupported-version"},
		"no agent":      {"schema_version: \"1.0.0\"\ncalls: []\n", "agent"},
		"unknown key":   {head + call + "{kind: tool, tool: q}, expct: {outcome: allow}}\n", "expct"},
		"key of never":  {head + "never:\n  - {tool: q, wher: a=1, outcome: ask}\n", "4:15: "},
		"no outcome":    {head + "always:\n  - {tool: q}\n", "outcome"},
		"no target":     {head + "never:\n  - {where: a=1, outcome: ask}\n", "4:6: this names no target, or several"},
		"two targets":   {head + "never:\n  - {tool: q, agent: a, outcome: ask}\n", "4:6: this names no target, or several"},
		"half a target": {head + "never:\n  - {server: s, outcome: ask}\n", "4:6: this names no target, or several"},
		"where":         {head + "never:\n  - {tool: q, where: amount, outcome: ask}\n", "4:22: where can't be read: column 7"},
		"a bound":       {head + "always:\n  - {tool: q, where: 'a=1,b>x', outcome: ask}\n", `"x" is not a number`},
		"an expression": {head + "never:\n  - {tool: q, where: a~(, outcome: ask}\n", "4:22: where can't be read"},
		"hints":         {head + "never:\n  - {tool: q, annotations: {a: 1}, outcome: ask}\n", "4:32: "},
		"one invariant": {
			head + "never:\n  - {tool: q, outcome: ask}\n  - {outcome: ask, tool: q}\n",
			`5:6: two tests are called "never ask: tool q"`,
		},
		"cut in never": {head + "never:\n  - {tool: q, outcome: as", "4:6: "},
		"outcome":      {head + call + "{kind: tool, tool: q}, expect: {outcome: alow}}\n", "alow"},
		"kind":         {head + call + "{kind: tol}" + allow, "the call can't be read"},
		"call":         {head + call + "'{\"kind\":\"tool'" + allow, "the call can't be read"},
		"no arguments": {head + call + "{kind: tool, tool: q, args: [1]}" + allow, "args"},
		"infinity":     {head + call + "{kind: tool, tool: q, args: {a: .inf}}" + allow, ".inf"},
		"one name":     {head + "calls:\n" + one + one, `two tests are called "a"`},
		"nobody": {
			head + "people_cases:\n" + strings.Replace(one, "allow", "denied", 1),
			"people_cases need people",
		},
		"time": {
			head + "people: p\npeople_cases:\n  - {name: a, call: {kind: tool, tool: q}, votes: [" + votes +
				"], expect: {outcome: denied}}\n",
			`"4m" is no time of this vote`,
		},
		"until": {
			head + "people: p\npeople_cases:\n  - {name: a, call: {kind: tool, tool: q}, votes: [{person: x, vote: deny, " +
				"after: 5m}], until: 4m, expect: {outcome: denied}}\n",
			`"4m" is no time until which to wait`,
		},
		"reason": {head + call + "{kind: tool, tool: q}, expect: {outcome: ask, reasons: [{}]}}\n", "4:77: "},
	} {
		f, findings := Parse("x.test.yaml", []byte(c.src))
		var all strings.Builder
		for _, x := range findings {
			fmt.Fprintf(&all, "%d:%d: %s [%s]\n", x.Range.Start.Line, x.Range.Start.Column, x.Message, x.Rule)
		}
		if f != nil || !strings.Contains(all.String(), c.want) {
			t.Errorf("%s: got %v, expected %q in\n%s", name, f, c.want, all.String())
		}
	}
}

// TestWorldsThatCannotBeUsed checks that missing and broken files that a test names are reported
// with their position.
func TestWorldsThatCannotBeUsed(t *testing.T) {
	const calls = "calls:\n  - {name: a, call: {kind: tool, tool: quote}, expect: {outcome: allow}}\n"
	for name, c := range map[string]struct {
		src, want string
		others    []string
	}{
		"agent":    {"agent: gone.agf.yaml\n", "x.test.yaml:2:8: agent: open gone.agf.yaml", nil},
		"broken":   {"agent: b.agf.yaml\n", "b.agf.yaml:1:", []string{"b.agf.yaml", "metadata: {}\n"}},
		"policies": {"agent: desk.agf.yaml\npolicies: [gone]\n", "x.test.yaml:3:11: policies: gone: ", nil},
		"policy": {
			"agent: desk.agf.yaml\npolicies: [policies]\n",
			"policies/b.policy.yaml:1:",
			[]string{"policies/b.policy.yaml", "policy_ref: b\n"},
		},
		"two policies": {
			"agent: desk.agf.yaml\npolicies: [policies]\n",
			"acme.trades",
			[]string{
				"policies/b.policy.yaml",
				"schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules: [{id: r, deny: d}]\n",
			},
		},
		"people":    {"agent: desk.agf.yaml\npeople: p.yaml\n", "p.yaml:1:", []string{"p.yaml", "people: 1\n"}},
		"decisions": {"agent: desk.agf.yaml\ndecisions: d.yaml\n", "d.yaml:1:", []string{"d.yaml", "semantcs: {}\n"}},
		"registry": {
			"agent: desk.agf.yaml\ndecisions: d.yaml\n",
			"which tests don't fetch",
			[]string{"d.yaml", "registry: {url: \"https://policies.example\"}\n"},
		},
	} {
		f, findings := Parse("x.test.yaml", []byte("schema_version: \"1.0.0\"\n"+c.src+calls))
		if f == nil {
			t.Fatalf("%s: %v", name, findings)
		}
		w, err := Load(f, testWorld(t, c.others...))
		if err == nil {
			_, err = w.Build()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected %q", name, err, c.want)
		}
	}
}

// TestDecisionsOfTheOwner checks that decisions.yaml applies to tests, including its policies if
// the test names none.
func TestDecisionsOfTheOwner(t *testing.T) {
	files := testWorld(t, "conf/decisions.yaml", "policies: [../policies]\nsemantics: {on_missing: no_match}\n")
	_, b := prepared(t, "x.test.yaml", []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
decisions: conf/decisions.yaml
calls: []
`), files)
	if len(b.Policies) != 1 || b.Semantics.OnMissing.String() != "no_match" {
		t.Errorf("%d policies, %+v", len(b.Policies), b.Semantics)
	}
}

// FuzzParse checks that any file is read or refused with a position, and that the tests of a file
// that is read can run.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"passing", "failing"} {
		f.Add(read(f, name+Suffix))
	}
	f.Add([]byte(`{"schema_version":"1.0.0","agent":"a","calls":[{"name":"x","call":"{","expect":{"outcome":"ask"}}]}`))
	world := testWorld(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		file, findings := Parse("x.test.yaml", src)
		stops := false
		for _, x := range findings {
			stops = stops || x.Stops
			if x.Message == "" || x.File != "x.test.yaml" {
				t.Fatalf("odd finding: %+v", x)
			}
		}

		if (file == nil) != stops {
			t.Fatalf("read is %t, and stops %t", file != nil, stops)
		}
		if file == nil {
			return
		}
		w, err := Load(file, world)
		if err != nil {
			return
		}
		b, err := w.Build()
		if err != nil || len(file.Cases) > 0 && b.People == nil {
			return
		}
		results := file.Run(b, every)
		if len(results) != file.Tests() {
			t.Fatalf("%d results of %d tests", len(results), file.Tests())
		}
		updated, left, err := file.Update(b, results)
		if err != nil {
			return
		}
		next, _ := Parse("x.test.yaml", updated)
		if next == nil {
			t.Fatalf("the update does not read:\n%s", updated)
		}
		failed := 0
		for _, r := range next.Run(b, every) {
			failed += len(r.Failures)
		}
		if failed != left {
			t.Fatalf("%d failures after the update, %d left:\n%s", failed, left, updated)
		}
	})
}
