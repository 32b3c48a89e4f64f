package policytest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// Report is the result of the tests of one file.
type Report struct {
	File    string
	Results []Result
	Error   string // why nothing could be run; empty if it was
}

// Formats lists the formats of Write.
func Formats() []string { return []string{"text", "json", "junit"} }

// Outcome is the result of a whole run.
type Outcome struct {
	Reports    []Report
	Coverage   *Coverage // nil: not requested
	OnlyFailed bool
}

// Count counts the tests, and those that failed.
func (o *Outcome) Count() (tests, failed int) {
	for _, r := range o.Reports {
		for i := range r.Results {
			tests++
			if !r.Results[i].Passed() {
				failed++
			}
		}
	}

	return tests, failed
}

// Write prints a run in a format of Formats.
func (o *Outcome) Write(w io.Writer, format string) error {
	switch format {
	case "text":
		return o.text(w)
	case "json":
		return o.json(w)
	case "junit":
		return o.junit(w)
	}

	return fmt.Errorf("%q is no format, expected one of %s", format, strings.Join(Formats(), ", "))
}

// text prints a run for people. Text from files is escaped by diag.Printable.
func (o *Outcome) text(w io.Writer) error {
	var b strings.Builder
	files := 0
	for _, r := range o.Reports {
		if r.Error != "" {
			continue // told on the stream of errors
		}
		files++
		for i := range r.Results {
			o.result(&b, r.File, &r.Results[i])
		}
	}

	tests, failed := o.Count()
	in := count(tests, "test") + " in " + count(files, "file")
	fmt.Fprintf(&b, "%s: %d passed, %d failed\n", in, tests-failed, failed)
	if o.Coverage != nil {
		o.Coverage.text(&b)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}

	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return fmt.Sprintf("%d %ss", n, what)
}

func (o *Outcome) result(b *strings.Builder, file string, r *Result) {
	if r.Passed() {
		if !o.OnlyFailed {
			fmt.Fprintf(b, "ok    %s: %s\n", at(file, r.Range), diag.Printable(r.Name))
		}
		return
	}

	fmt.Fprintf(b, "FAIL  %s: %s\n", at(file, r.Range), diag.Printable(r.Name))
	for _, f := range r.Failures {
		fmt.Fprintf(b, "      %s: %s: expected %s\n", at(file, f.Range), f.What, diag.Printable(f.Expected))
		fmt.Fprintf(b, "        came %s\n", diag.Printable(f.Got))
		for _, rule := range f.Rules {
			fmt.Fprintf(b, "        - %s\n", diag.Printable(rule))
		}
	}
}

func at(file string, r diag.Range) string {
	return fmt.Sprintf("%s:%d:%d", diag.Printable(file), r.Start.Line, r.Start.Column)
}

// text prints which parts of the rules were exercised, and which were not.
func (c *Coverage) text(b *strings.Builder) {
	met, all := c.Finish()
	for _, p := range c.Parts {
		if len(p.Missing) > 0 {
			name := diag.Printable(p.Name)
			fmt.Fprintf(b, "%s: %s: never %s\n", at(p.File, p.Range), name, strings.Join(p.Missing, ", "))
		}
	}

	fmt.Fprintf(b, "coverage: %d%% (%d of %d)\n", Percent(met, all), met, all)
}

type jsonRun struct {
	Tests    []jsonTest    `json:"tests"`
	Summary  jsonSummary   `json:"summary"`
	Coverage *jsonCoverage `json:"coverage,omitempty"`
	Errors   []jsonError   `json:"errors,omitempty"`
}

type jsonTest struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Name     string        `json:"name"`
	Passed   bool          `json:"passed"`
	Failures []jsonFailure `json:"failures,omitempty"`
}

type jsonFailure struct {
	What     string          `json:"what"`
	Line     int             `json:"line"`
	Column   int             `json:"column"`
	Expected string          `json:"expected"`
	Got      string          `json:"got"`
	Witness  json.RawMessage `json:"witness,omitempty"`
	Rules    []string        `json:"rules,omitempty"`
}

type jsonSummary struct {
	Files  int `json:"files"`
	Tests  int `json:"tests"`
	Failed int `json:"failed"`
}

type jsonCoverage struct {
	Percent int        `json:"percent"`
	Met     int        `json:"met"`
	Goals   int        `json:"goals"`
	Parts   []jsonPart `json:"parts"`
}

type jsonPart struct {
	*Part
	Line   int `json:"line"`
	Column int `json:"column"`
}

type jsonError struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func (o *Outcome) json(w io.Writer) error {
	out := jsonRun{Tests: []jsonTest{}}
	for _, r := range o.Reports {
		if r.Error != "" {
			out.Errors = append(out.Errors, jsonError{r.File, r.Error})
			continue
		}
		out.Summary.Files++
		for i := range r.Results {
			if t := &r.Results[i]; !o.OnlyFailed || !t.Passed() {
				out.Tests = append(out.Tests, jsonOf(r.File, t))
			}
		}
	}

	out.Summary.Tests, out.Summary.Failed = o.Count()
	if c := o.Coverage; c != nil {
		met, all := c.Finish()
		out.Coverage = &jsonCoverage{Percent(met, all), met, all, []jsonPart{}}
		for _, p := range c.Parts {
			out.Coverage.Parts = append(
				out.Coverage.Parts,
				jsonPart{p, p.Range.Start.Line, p.Range.Start.Column},
			)
		}
	}

	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}

	return nil
}

func jsonOf(file string, r *Result) jsonTest {
	t := jsonTest{
		File:   file,
		Line:   r.Range.Start.Line,
		Column: r.Range.Start.Column,
		Name:   r.Name,
		Passed: r.Passed(),
	}
	for _, f := range r.Failures {
		t.Failures = append(t.Failures, jsonFailure{
			What:     f.What,
			Line:     f.Range.Start.Line,
			Column:   f.Range.Start.Column,
			Expected: f.Expected,
			Got:      f.Got,
			Witness:  json.RawMessage(f.Witness),
			Rules:    f.Rules,
		})
	}

	return t
}

// junit prints a testsuite for each file and a testcase for each test,
// by its name. A file that can't be run is a case that fails.
func (o *Outcome) junit(w io.Writer) error {
	out := diag.NewJUnit(w, diag.Options{FailOn: diag.Error})
	for _, r := range o.Reports {
		report := diag.Report{File: r.File}
		if r.Error != "" {
			report.Findings = append(report.Findings, diag.Finding{
				Rule:     "unreadable",
				Severity: diag.Error,
				File:     r.File,
				Message:  r.Error,
			})
		}

		for i := range r.Results {
			if t := &r.Results[i]; !o.OnlyFailed || !t.Passed() {
				report.Findings = append(report.Findings, findingOf(r.File, t))
			}
		}
		if err := out.File(report); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}

	if err := out.Close(diag.Summary{}); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}

	return nil
}

// findingOf returns a test as a case of JUnit: one without a place, which
// would become a part of its name.
func findingOf(file string, r *Result) diag.Finding {
	f := diag.Finding{Rule: r.Name, File: file, Message: "passed"}
	if r.Passed() {
		return f
	}
	f.Severity = diag.Error
	var all []string
	for _, x := range r.Failures {
		all = append(
			all,
			fmt.Sprintf("%s: %s: expected %s, came %s", at(file, x.Range), x.What, x.Expected, x.Got),
		)
		all = append(all, x.Rules...)
	}

	f.Message = strings.Join(all, "; ")

	return f
}
