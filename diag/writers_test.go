package diag_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
)

// The sample files: ordinary text, wide characters and tabs, and a file that tries to forge
// output.
var files = map[string]string{
	"agents/trade.agf.yaml": "metadata:\n  id: trade\naction_space:\n  local_tools:\n    - alias: execute\n      " +
		"aproval: true\n    - alias: execute\n",
	"wide.agf.yaml": "name: 日本語 [x\n\t\ttabbed: yes\nletters: e\u0301e\u0301 no\nlong: " + strings.Repeat(
		"ab ",
		60,
	) + "HERE" + strings.Repeat(" cd", 60) + "\n",
	"evil\x1b[2J.agf.yaml": "name: \u202eevil \x1b[31mred\x1b[0m\u200b\xff end\n",
}

func fileText(file string) []byte {
	if text, ok := files[file]; ok {
		return []byte(text)
	}
	return nil
}

func at(line, column, endLine, endColumn int) diag.Range {
	return diag.Range{diag.Position{line, column}, diag.Position{endLine, endColumn}}
}

// reports returns findings of every shape.
func reports() []diag.Report {
	return []diag.Report{
		{
			File: "agents/trade.agf.yaml",
			Findings: []diag.Finding{
				{
					Rule:     "duplicate-alias",
					Severity: diag.Error,
					Stops:    true,
					Range:    at(7, 14, 7, 21),
					Message:  `alias "execute" is taken (line 5)`,
					Related:  []diag.Related{{Range: at(5, 14, 5, 21), Message: "first here"}},
				},
				{
					Rule:     "unknown-field",
					Severity: diag.Warning,
					Range:    at(6, 7, 6, 14),
					Message:  `unknown field "aproval"`,
					Expected: "alias, approval, description or name",
					Nearest:  "approval",
				},
				{
					Rule:     "whole-block",
					Severity: diag.Info,
					Range:    at(5, 7, 7, 21),
					Message:  "a block",
				},
			},
			Suppressed: []diag.Suppressed{
				{diag.Finding{
					Rule:     "unknown-field",
					Severity: diag.Warning,
					Range:    at(2, 3, 2, 5),
					Message:  "silenced",
				}, "agreed with <ops> & \"risk\""},
			},
		},
		{File: "clean.agf.yaml"},
		{
			File: "wide.agf.yaml",
			Findings: []diag.Finding{
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(1, 11, 1, 13),
					Message:  "after wide characters",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(1, 8, 1, 9),
					Message:  "on a wide character",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(2, 11, 2, 14),
					Message:  "after tabs",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(3, 15, 3, 17),
					Message:  "after combining marks",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(4, 187, 4, 191),
					Message:  "far to the right",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(4, 371, 4, 371),
					Message:  "at the end of the line",
				},
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(99, 1, 99, 2),
					Message:  "no such line",
				},
			},
		},
		{
			File: "evil\x1b[2J.agf.yaml",
			Findings: []diag.Finding{
				{
					Rule:     "r",
					Severity: diag.Error,
					Range:    at(1, 25, 1, 28),
					Message:  "forged\n::error::\x1b[2J \u202e,:%",
					Expected: "no\rtricks",
				},
			},
		},
		{
			File: "-",
			Findings: []diag.Finding{
				{
					Rule:     "yaml-empty",
					Severity: diag.Error,
					Stops:    true,
					Message:  "the file holds no document",
				},
				{
					Rule:     "other-file",
					Severity: diag.Error,
					File:     "sub/a b:c.agf.yaml",
					Range:    at(1, 1, 1, 1),
					Message:  "elsewhere",
				},
			},
		},
	}
}

var summary = diag.Summary{
	Files:      5,
	Errors:     11,
	Warnings:   1,
	Infos:      1,
	Suppressed: 1,
}

func options() diag.Options {
	return diag.Options{
		Source:  fileText,
		FailOn:  diag.Warning,
		Tool:    "agf-validate",
		Version: "1.2.3",
		HelpURL: "https://assent.example/rules/",
		Rules: []diag.RuleInfo{
			{
				ID:       "unknown-field",
				Title:    "a field that nobody reads",
				Severity: diag.Warning,
				Why:      "Typos **vanish**.",
				Bad:      "aproval: true\n",
				Good:     "approval: true\n",
			},
			{
				ID:       "duplicate-alias",
				Title:    "an alias that stands twice",
				Severity: diag.Error,
				Why:      "One wins.",
			},
			{ID: "unknown-field", Title: "the same again"},
			{
				ID:       "bare",
				Title:    "no page",
				Severity: diag.Info,
			},
		},
	}
}

func render(t testing.TB, format string, o diag.Options, list []diag.Report, s diag.Summary) string {
	t.Helper()
	var b bytes.Buffer
	w, err := diag.New(format, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if err := w.File(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	color := options()
	color.Color = true
	for name, got := range map[string]string{
		"text.golden": render(t, "text", options(), reports(), summary),
		"color.golden": render(t, "text", color, reports()[:1], diag.Summary{
			Files:      1,
			Errors:     1,
			Warnings:   1,
			Infos:      1,
			Suppressed: 1,
		}),
		"gitlab.golden":     render(t, "gitlab", options(), reports(), summary),
		"json.golden":       render(t, "json", options(), reports(), summary),
		"sarif.golden":      render(t, "sarif", options(), reports(), summary),
		"github.golden":     render(t, "github", options(), reports(), summary),
		"junit.golden":      render(t, "junit", options(), reports(), summary),
		"none.text.golden":  render(t, "text", options(), reports()[1:2], diag.Summary{Files: 1}),
		"none.json.golden":  render(t, "json", options(), reports()[1:2], diag.Summary{Files: 1}),
		"none.sarif.golden": render(t, "sarif", diag.Options{}, nil, diag.Summary{}),
		"none.junit.golden": render(t, "junit", options(), nil, diag.Summary{}),
	} {
		golden.Equal(t, name, got)
	}
}

// Names are unique, and findings below FailOn pass.
func TestJUnitNamesAreUnique(t *testing.T) {
	list := []diag.Report{{
		File: "a.agf.yaml",
		Findings: []diag.Finding{
			{
				Rule:     "r",
				Severity: diag.Warning,
				Range:    at(1, 2, 1, 3),
				Message:  "one",
			}, {
				Rule:     "r",
				Severity: diag.Warning,
				Range:    at(1, 2, 1, 9),
				Message:  "two",
			},
			{
				Rule:     "r",
				Severity: diag.Error,
				Range:    at(1, 2, 1, 3),
				Message:  "three",
			}, {Rule: "r", Message: "nowhere"}, {Rule: "r", Message: "nowhere else"},
			{
				Rule:    "r",
				File:    "b.agf.yaml",
				Range:   at(1, 2, 1, 3),
				Message: "in another file",
			},
		},
	}}
	for failOn, failures := range map[diag.Severity]int{
		diag.Info:    6,
		diag.Warning: 3,
		diag.Error:   1,
	} {
		opt := options()
		opt.FailOn = failOn
		var doc struct {
			Suites []struct {
				Failures int `xml:"failures,attr"`
				Cases    []struct {
					Class   string    `xml:"classname,attr"`
					Name    string    `xml:"name,attr"`
					Failure *struct{} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal([]byte(render(t, "junit", opt, list, diag.Summary{})), &doc); err != nil {
			t.Fatal(err)
		}
		seen, failed := map[string]bool{}, 0
		for _, c := range doc.Suites[0].Cases {
			if seen[c.Class+" "+c.Name] {
				t.Errorf("two cases are called %s of %s", c.Name, c.Class)
			}
			if seen[c.Class+" "+c.Name] = true; c.Failure != nil {
				failed++
			}
		}

		if len(seen) != 6 || failed != failures || doc.Suites[0].Failures != failures {
			t.Errorf(
				"fail on %v: %d cases, %d failed, %d said",
				failOn,
				len(seen),
				failed,
				doc.Suites[0].Failures,
			)
		}
	}
}

// Azure DevOps requires these names.
func TestSARIFNamesToolRulesAndRun(t *testing.T) {
	var doc struct {
		Runs []struct {
			AutomationDetails struct{ ID string }
			Tool              struct {
				Driver struct {
					FullName string
					Rules    []struct{ ID, Name string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(render(t, "sarif", options(), nil, diag.Summary{})), &doc); err != nil {
		t.Fatal(err)
	}
	run := doc.Runs[0]
	if run.AutomationDetails.ID != "agf-validate/" || run.Tool.Driver.FullName != "agf-validate 1.2.3" {
		t.Errorf("%+v", run)
	}
	for i, want := range []string{"UnknownField", "DuplicateAlias", "Bare"} {
		if got := run.Tool.Driver.Rules[i].Name; got != want {
			t.Errorf("rule %d is called %q, want %q", i, got, want)
		}
	}
}

func TestSameBytes(t *testing.T) {
	for _, format := range diag.Formats() {
		turned := reports()
		for i := range turned {
			fs := turned[i].Findings
			for j := range len(fs) / 2 {
				fs[j], fs[len(fs)-1-j] = fs[len(fs)-1-j], fs[j]
			}
		}

		if a, b := render(
			t,
			format,
			options(),
			reports(),
			summary,
		), render(t, format, options(), turned, summary); a != b {
			t.Errorf("%s: the order of findings shows:\n%s\n%s", format, a, b)
		}
	}
}

// Except for JSON's own escapes, no output contains a byte that controls a terminal.
func TestNothingForged(t *testing.T) {
	for _, format := range []string{"text", "github", "gitlab", "junit", "sarif"} {
		out := render(t, format, options(), reports(), summary)
		if i := strings.IndexAny(out, "\x1b\r\u202e\u200b"); i >= 0 {
			t.Errorf("%s: %q", format, out[max(0, i-20):i+10])
		}
	}

	if lines := strings.Count(render(t, "github", options(), reports(), summary), "\n"); lines != 13 {
		t.Errorf("github: %d lines for 13 findings", lines)
	}
}

func TestSARIFIsValid(t *testing.T) {
	text, err := os.ReadFile("testdata/sarif-2.1.0-subset.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.Compile("sarif", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{
		render(t, "sarif", options(), reports(), summary),
		render(t, "sarif", diag.Options{}, nil, diag.Summary{}),
	} {
		for _, f := range schema.Validate(decodeJSON(t, log)) {
			t.Errorf("/%s: %s, expected %s", strings.Join(f.Path, "/"), f.Message, f.Expected)
		}
	}

	for _, broken := range []string{
		`"level":"warn"`,
		`"startLine":0`,
		`"text":5`,
		`"kind":"inFile"`,
		`"colour":1,"level":"note"`,
	} {
		key, _, _ := strings.Cut(broken, ":")
		log := render(t, "sarif", options(), reports(), summary)
		if key == `"colour"` {
			log = strings.Replace(log, `"level":`, `"colour":1,"level":`, 1)
		} else {
			i := strings.Index(log, key+":")
			end := i + strings.IndexAny(log[i:], ",}")
			log = log[:i] + broken + log[end:]
		}

		if schema.Validate(decodeJSON(t, log)) == nil {
			t.Errorf("the schema accepts %s", broken)
		}
	}
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Fatalf("more than one value: %v", err)
	}
	return v
}

func TestJSONIsOneObject(t *testing.T) {
	v := decodeJSON(t, render(t, "json", options(), reports(), summary)).(map[string]any)
	if n := len(v["findings"].([]any)); n != 14 || v["files"] != json.Number("5") || len(v) != 3 {
		t.Errorf("%d findings, files %v", n, v["files"])
	}
	decodeJSON(t, render(t, "json", options(), nil, diag.Summary{}))
}

func TestJUnitIsXML(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(render(t, "junit", options(), reports(), summary)))
	suites := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "testsuite" {
			suites++
		}
	}

	if suites != len(reports()) {
		t.Errorf("%d suites", suites)
	}
}

// A finding keeps its fingerprint if lines are added above it, and equal lines have different
// fingerprints.
func TestFingerprints(t *testing.T) {
	prints := func(text string, lines ...int) []string {
		o := diag.Options{Source: func(string) []byte { return []byte(text) }}
		var r diag.Report
		for _, l := range lines {
			r.Findings = append(r.Findings, diag.Finding{
				Rule:    "r",
				File:    "f",
				Message: fmt.Sprintf("m (line %d)", l),
				Range:   at(l, 1, l, 2),
			})
		}

		var log struct {
			Runs []struct {
				Results []struct{ PartialFingerprints map[string]string }
			}
		}
		if err := json.Unmarshal([]byte(render(t, "sarif", o, []diag.Report{r}, diag.Summary{})), &log); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range log.Runs[0].Results {
			out = append(out, r.PartialFingerprints["assentFinding/v1"])
		}
		return out
	}
	before := prints("a: 1\nb: 2\nb: 2\n", 2, 3)
	after := prints("new: 0\na: 1\n  b: 2\nb: 2\n", 3, 4)
	if strings.Join(before, " ") != strings.Join(after, " ") || before[0] == before[1] {
		t.Errorf("%v %v", before, after)
	}
	if other := prints("a: 1\nb: 3\n", 2); other[0] == before[0] {
		t.Error("another line, the same fingerprint")
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := diag.New("html", io.Discard, diag.Options{}); err == nil ||
		!strings.Contains(err.Error(), "want text, json, sarif, github, gitlab, junit") {
		t.Error(err)
	}
}

type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("disk full")

// A write error is reported, wherever in the output it happens.
func TestWriteErrors(t *testing.T) {
	for _, format := range diag.Formats() {
		size := len(render(t, format, options(), reports(), summary))
		for left := 0; left < size; left += 97 {
			w, _ := diag.New(format, &broken{left}, options())
			var err error
			for _, r := range reports() {
				err = errors.Join(err, w.File(r))
			}
			if err = errors.Join(err, w.Close(summary)); !errors.Is(err, errFull) {
				t.Fatalf("%s: full after %d of %d bytes: %v", format, left, size, err)
			}
		}
	}
}

// The memory of a writer does not grow with the number of files.
func TestFlatMemory(t *testing.T) {
	for _, format := range diag.Formats() {
		w, _ := diag.New(format, io.Discard, options())
		r := reports()[0]
		per := testing.AllocsPerRun(200, func() {
			if err := w.File(r); err != nil {
				t.Fatal(err)
			}
		})
		later := testing.AllocsPerRun(200, func() {
			if err := w.File(r); err != nil {
				t.Fatal(err)
			}
		})
		if later > per+1 {
			t.Errorf("%s: %v allocations, later %v", format, per, later)
		}
	}
}
