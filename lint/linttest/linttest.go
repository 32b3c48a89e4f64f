// Package linttest runs a rule over the samples in its folder.
//
// Samples are whole files: bad*.agf.yaml and bad*.policy.yaml are
// reported, good*.agf.yaml and good*.policy.yaml are not. A bad sample
// says on each line that is reported what it expects, as one regular
// expression for each finding:
//
//	amount: {gt: 10, lt: 5} # want "no value of \"amount\""
//
// Other agents of the folder may be sub-agents of samples, and are
// those that its policies are checked with; other policies are given
// together with its agents. people.yaml says who is in the groups, and
// tools.json which tools are offered.
package linttest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

// Run tests the rule whose folder fsys is. The other rules, if any, have
// nothing to say about its samples.
func Run(t *testing.T, fsys fs.FS, rule lint.Rule, others ...lint.Rule) {
	t.Helper()
	samples, err := samplesOf(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range describe(rule, samples) {
		t.Error(complaint)
	}
	// Samples are versions of one agent, so most have the id of the folder's other agents.
	all := slices.DeleteFunc(others, func(o lint.Rule) bool { return o.ID == rule.ID || o.ID == "agent-id-repeated" })
	opt := options(t, fsys)
	for _, s := range samples {
		t.Run(s.Name, func(t *testing.T) {
			found := s.Lint(fsys, lint.New(append(all, rule), opt)).Findings
			for _, complaint := range compare(rule.ID, s.Text, found) {
				t.Error(complaint)
			}
		})
	}
}

// options are what a folder's samples are linted with: the agents and
// policies in it that are no samples, and who is in the groups, where
// there is a people.yaml.
func options(t *testing.T, fsys fs.FS) lint.Options {
	t.Helper()
	var opt lint.Options
	if directory := directory(t, fsys); directory != nil { // a nil *people.Directory would be some lint.People
		opt.People = directory
	}
	opt.Catalogs = catalogs(t, fsys)
	agents, policies := others(t, fsys, ".agf.yaml"), others(t, fsys, ".policy.yaml")
	var subjects []*lint.Subject
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		files := &lint.Files{FS: fsys, Path: name}
		subjects = append(subjects, lint.NewSubject(name, agents[name], files, opt.Catalogs))
	}
	if len(subjects) > 0 {
		opt.Fleet = lint.NewFleet(subjects)
	}
	if len(policies) == 0 {
		return opt
	}
	var all []policy.File
	for name, text := range policies {
		all = append(all, policy.File{Name: name, Text: text})
	}
	set, findings := policy.LoadFiles(all, ".")
	if set.Err() != nil {
		t.Fatal(findings)
	}
	opt.Registry = set
	return opt
}

func catalogs(t *testing.T, fsys fs.FS) lint.Catalogs {
	t.Helper()
	text, err := fs.ReadFile(fsys, "tools.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := catalog.Parse("tools.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return lint.Catalogs{list}
}

func directory(t *testing.T, fsys fs.FS) *people.Directory {
	t.Helper()
	text, err := fs.ReadFile(fsys, "people.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	directory, findings := people.Parse("people.yaml", text)
	if directory == nil {
		t.Fatal(findings)
	}

	return directory
}

// others reads the files of an ending that are no samples.
func others(t *testing.T, fsys fs.FS, ending string) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(fsys, "*"+ending)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		if strings.HasPrefix(name, "bad") || strings.HasPrefix(name, "good") {
			continue
		}
		if all[name], err = fs.ReadFile(fsys, name); err != nil {
			t.Fatal(err)
		}
	}

	return all
}

// Sample is a file of a rule's folder.
type Sample struct {
	Name, Text string
	Bad        bool // the rule reports it
}

// samplesOf reads the samples of a folder, at least one good and one bad.
func samplesOf(fsys fs.FS) ([]Sample, error) {
	var all []Sample
	for _, kind := range []string{"bad", "good"} {
		found := len(all)
		for _, ending := range []string{".agf.yaml", ".policy.yaml"} {
			names, err := fs.Glob(fsys, kind+"*"+ending)
			if err != nil {
				return nil, fmt.Errorf("list the samples: %w", err)
			}
			for _, name := range names {
				text, err := fs.ReadFile(fsys, name)
				if err != nil {
					return nil, fmt.Errorf("read the sample: %w", err)
				}
				all = append(all, Sample{name, string(text), kind == "bad"})
			}
		}

		if len(all) == found {
			return nil, fmt.Errorf("the folder has no %s sample", kind)
		}
	}

	return all, nil
}

// Lint lints the sample, by the kind that its name tells. fsys holds
// its sub-agents.
func (s Sample) Lint(fsys fs.FS, l *lint.Linter) diag.Report {
	if strings.HasSuffix(s.Name, ".policy.yaml") {
		return l.Worker().Policy(s.Name, []byte(s.Text))
	}
	return l.Worker().Agent(s.Name, []byte(s.Text), &lint.Files{FS: fsys, Path: s.Name})
}

// compare holds the findings of one rule against the expectations in a
// sample and returns what differs. Nothing may stop the load.
func compare(id, src string, findings []diag.Finding) []string {
	want, err := wants(src)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, f := range findings {
		problem := ""
		switch {
		case f.Stops:
			problem = "the sample does not load"
		case f.Rule != id:
			problem = "reported by another rule too"
		case !take(want, f.Range.Start.Line, f.Message):
			problem = "unexpected finding"
		default:
			continue
		}

		out = append(out, fmt.Sprintf("line %d: %s: %s [%s]", f.Range.Start.Line, problem, f.Message, f.Rule))
	}

	for line, patterns := range want {
		for _, p := range patterns {
			out = append(out, fmt.Sprintf("line %d: no finding matches %q", line, p))
		}
	}
	slices.Sort(out)
	return out
}

// take strikes out the first expectation of the line that the message meets.
func take(want map[int][]*regexp.Regexp, line int, message string) bool {
	i := slices.IndexFunc(want[line], func(p *regexp.Regexp) bool { return p.MatchString(message) })
	if i < 0 {
		return false
	}
	want[line] = slices.Delete(want[line], i, i+1)
	return true
}

// wants reads the expectations of a sample, by line.
func wants(src string) (map[int][]*regexp.Regexp, error) {
	want := map[int][]*regexp.Regexp{}
	bounds := pattern.Bounds{Bytes: 4 << 10, Size: 10_000}
	for i, line := range strings.Split(src, "\n") {
		_, rest, _ := strings.Cut(line, " # want ")
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q is no quoted text", i+1, rest)
			}
			text, _ := strconv.Unquote(quoted)
			re, err := bounds.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			want[i+1] = append(want[i+1], re)
			rest = rest[len(quoted):]
		}
	}

	return want, nil
}

var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)

// describe returns what a rule's reader would miss: every rule tells
// all about itself, with the samples of its folder.
func describe(r lint.Rule, samples []Sample) []string {
	var out []string
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	complain(!kebab.MatchString(r.ID), "the id %q is not kebab-case", r.ID)
	complain(
		r.Title == "" || strings.HasSuffix(r.Title, "."),
		"the title %q is empty or ends in a full stop",
		r.Title,
	)
	complain(r.Why == "", "the rule does not say why")
	complain(r.Spec == "", "the rule does not say what it rests on")
	shows := func(text string, bad bool) bool {
		return slices.ContainsFunc(
			samples,
			func(s Sample) bool { return s.Bad == bad && lint.Sample(s.Text) == text },
		)
	}
	complain(!shows(r.Bad, true), "what the rule shows as bad is no bad sample of its folder")
	complain(!shows(r.Good, false), "what the rule shows as good is no good sample of its folder")
	return out
}
