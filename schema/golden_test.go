package schema

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// TestGood reads every file of testdata/good. Each must load without a finding, and its .golden
// file shows everything that was read, with positions and the standard's defaults.
func TestGood(t *testing.T) {
	for _, file := range agents(t, "good") {
		agent, findings := Parse(file, readFile(t, file))
		if agent == nil || len(findings) > 0 {
			t.Errorf("%s: agent read: %v\n%s", file, agent != nil, render(findings))
			continue
		}
		got := strings.Join(show("", reflect.ValueOf(*agent)), "\n") + "\n"
		golden.Equal(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".agf.yaml")+".golden", got)
	}
}

// show lists the non-zero parts of a value, one per line.
func show(at string, v reflect.Value) []string {
	switch x := v.Interface().(type) {
	case diag.Range:
		return []string{at + " " + span(x)}
	case *yamldoc.Node:
		return []string{at + " " + span(x.Range)}
	case *template.Template, *yamldoc.Document, value.Num:
		return nil // held by their packages
	}

	var lines []string
	switch {
	case v.Kind() == reflect.Pointer:
		return append([]string{at + " is there"}, show(at, v.Elem())...)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			lines = append(lines, show(fmt.Sprintf("%s[%d]", at, i), v.Index(i))...)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				lines = append(lines, show(strings.TrimPrefix(at+"."+v.Type().Field(i).Name, "."), f)...)
			}
		}
	default:
		return []string{fmt.Sprintf("%s %v", at, v)}
	}

	return lines
}

// TestBad reads every file of testdata/bad and compares the findings with its .golden file. For
// findings of other packages, only line and rule are compared.
func TestBad(t *testing.T) {
	own := map[string]bool{}
	for _, r := range Rules() {
		own[r.ID] = true
	}
	for _, file := range agents(t, "bad") {
		agent, findings := Parse(filepath.Base(file), readFile(t, file))
		got := fmt.Sprintf("loads: %v\n\n", agent != nil)
		for _, f := range findings {
			if own[f.Rule] {
				got += render([]diag.Finding{f})
			} else { // the words belong to the package that found it
				got += fmt.Sprintf("line %d %s %s\n", f.Range.Start.Line, f.Severity, f.Rule)
			}
		}

		golden.Equal(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".agf.yaml")+".golden", got)
		if stopped := slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Stops
		}); stopped == (agent != nil) {
			t.Errorf("%s: a finding stops: %v, agent read: %v", file, stopped, agent != nil)
		}
	}
}

// TestEveryRuleIsReported makes sure that all rule ids are described,
// and that testdata shows each of ours.
func TestEveryRuleIsReported(t *testing.T) {
	described := map[string]bool{}
	for _, rules := range [][]diag.RuleInfo{Rules(), yamldoc.Rules(), condition.Rules(), template.Rules()} {
		for _, r := range rules {
			described[r.ID] = true
		}
	}
	reported := map[string]bool{}
	for _, file := range agents(t, "bad") {
		_, findings := Parse(file, readFile(t, file))
		for _, f := range findings {
			reported[f.Rule] = true
		}
	}

	for _, findings := range graphFindings(t) {
		for _, f := range findings {
			reported[f.Rule] = true
		}
	}
	for id := range reported {
		if !described[id] {
			t.Errorf("rule %s is reported but not described", id)
		}
	}
	for _, r := range Rules() {
		if !reported[r.ID] {
			t.Errorf("no test reports rule %s", r.ID)
		}
		if r.Title == "" || r.Why == "" || r.Spec == "" || (r.Bad == "") != (r.Good == "") {
			t.Errorf("rule %s lacks a part of its description", r.ID)
		}
	}
}

func agents(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.agf.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/%s: %v", folder, err)
	}
	return files
}

// render writes findings for people who read golden files.
func render(findings []diag.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s", span(f.Range), f.Severity, f.Rule)
		if f.Stops {
			b.WriteString(" (stops)")
		}
		fmt.Fprintf(&b, "\n    %s\n", f.Message)
		if f.Expected != "" {
			fmt.Fprintf(&b, "    expected %s\n", f.Expected)
		}
		if f.Nearest != "" {
			fmt.Fprintf(&b, "    nearest %s\n", f.Nearest)
		}
		for _, r := range f.Related {
			fmt.Fprintf(&b, "    %s %s\n", span(r.Range), r.Message)
		}
	}

	return b.String()
}

func span(r diag.Range) string {
	return fmt.Sprintf("%d:%d-%d:%d", r.Start.Line, r.Start.Column, r.End.Line, r.End.Column)
}

// TestPublishedAgents reads public agent files that exist outside of the repository on some
// machines. testdata has equivalents of our own. The names of the files that the official schema
// rejects say so.
func TestPublishedAgents(t *testing.T) {
	files, err := filepath.Glob("../../shared/corpus/*/*.agf.yaml")
	must.Do(t, err)
	for _, file := range files {
		agent, findings := Parse(file, readFile(t, file))
		if invalid := strings.Contains(file, ".INVALID."); (agent == nil) != invalid {
			t.Errorf("%s: agent read: %v\n%s", file, agent != nil, render(findings))
		}
	}

	t.Logf("%d published files beside the repository", len(files))
}
