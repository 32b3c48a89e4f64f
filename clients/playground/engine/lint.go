package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// infos returns all rules that a configuration may name.
func infos() []diag.RuleInfo {
	return slices.Concat(lint.Infos(rules.All()), people.Rules(), policytest.Rules())
}

// errNothingHere is the error for a check without files.
var errNothingHere = errors.New("no *.agf.yaml and no *.policy.yaml is here, so nothing was checked")

// lint checks all files.
func (r Request) lint() Answer {
	opt := lint.Options{Strict: r.Strict}
	dirs, findings, err := r.settle(&opt)
	if err != nil {
		return failed(err, findings...)
	}
	files := r.Files.checked()
	if len(files) == 0 {
		return failed(errNothingHere)
	}
	s := r.shelf(dirs)
	if len(dirs) > 0 {
		opt.Registry, opt.Unread = s.set, s.unread
	}
	opt.Fleet = fleet(files, r.Files, r.Config != "" || r.People != "")
	c := check{linter: lint.New(rules.All(), opt), shelf: s, files: r.Files, config: r.Config, people: r.People}

	return c.run(files)
}

// settle reads the configuration and the people, and returns the directories of policies.
func (r Request) settle(opt *lint.Options) ([]string, []diag.Finding, error) {
	owner := &resolve.Config{}
	if r.Config != "" {
		src, err := r.Files.read(r.Config)
		if err != nil {
			return nil, nil, err
		}
		var findings []diag.Finding
		if opt.Config, owner, findings = parseConfig(r.Config, src); owner == nil || stopped(findings) {
			return nil, findings, fmt.Errorf("the configuration %s can't be used", r.Config)
		}
	}

	dirs, err := r.policyDirs(owner)
	if err != nil {
		return nil, nil, err
	}
	opt.Owner = owner.Options()
	opt.Semantics = opt.Owner.Semantics
	findings, err := r.settlePeople(opt)

	return dirs, findings, err
}

func (r Request) settlePeople(opt *lint.Options) ([]diag.Finding, error) {
	if r.People == "" {
		return nil, nil
	}
	src, err := r.Files.read(r.People)
	if err != nil {
		return nil, err
	}
	return readPeople(opt, r.People, src)
}

func readPeople(opt *lint.Options, file string, src []byte) ([]diag.Finding, error) {
	directory, findings := people.Parse(file, src)
	if directory == nil {
		return findings, fmt.Errorf("the people in %s can't be used", file)
	}
	opt.People = directory
	return nil, nil
}

// parseConfig reads a configuration in the same way as the linter, and in the same way as
// plans. A finding that both make is reported once.
func parseConfig(file string, src []byte) (*lint.Config, *resolve.Config, []diag.Finding) {
	grades, findings := lint.ParseConfig(file, src, infos())
	owner, more := resolve.ParseConfig(file, src)
	for _, f := range more {
		if !slices.ContainsFunc(findings, func(known diag.Finding) bool { return known.Range.Start == f.Range.Start }) {
			findings = append(findings, f)
		}
	}

	return grades, owner, findings
}

func stopped(findings []diag.Finding) bool {
	return slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Severity >= diag.Error })
}

// shelf holds the policies of a request for a check: the valid ones, and the findings in the
// others.
type shelf struct {
	set    *policy.Set
	unread []string // see lint.Options.Unread
	found  map[string][]diag.Finding
	lost   bool // a directory could not be read
}

// shelf reads directories of policies.
func (r Request) shelf(dirs []string) *shelf {
	s := &shelf{found: map[string][]diag.Finding{}}
	var sound []*policy.Policy
	for _, dir := range dirs {
		files, unread := r.Files.policies(dir)
		for _, f := range unread {
			s.note(f)
			s.unread, s.lost = append(s.unread, ""), s.lost || f.Rule != "policy-file-name"
		}
		for _, f := range files {
			if p, _ := policy.Parse(f.Name, f.Text); p != nil {
				sound = append(sound, p)
			} else {
				s.unread = append(s.unread, policy.RefOf(f.Text))
			}
		}
	}

	s.keep(sound)

	return s
}

func (s *shelf) note(f diag.Finding) { s.found[in(f.File)] = append(s.found[in(f.File)], f) }

// keep makes the registry from valid policies. If several have the same policy_ref, the first
// one is kept and the others are reported.
func (s *shelf) keep(sound []*policy.Policy) {
	_, repeated := policy.NewSet(sound...)
	for _, f := range repeated {
		s.note(f)
	}
	known := map[string]bool{}
	unique := slices.DeleteFunc(sound, func(p *policy.Policy) bool {
		twice := known[p.Ref]
		known[p.Ref] = true
		return twice
	})
	s.set, _ = policy.NewSet(unique...)
}

// policies reads a directory of policies, and returns findings for files that can't be read. A
// directory without policies is a finding.
func (f Files) policies(dir string) ([]policy.File, []diag.Finding) {
	sub, err := fs.Sub(f, in(dir))
	if err != nil {
		return nil, []diag.Finding{policy.NoneFound(dir)}
	}
	if _, err := fs.ReadDir(sub, "."); err != nil { // nothing is in it, so it isn't a directory here
		return nil, []diag.Finding{policy.NoneFound(dir)}
	}
	files, unread := policy.ReadFS(sub, dir)
	if len(files) == 0 && len(unread) == 0 {
		unread = []diag.Finding{policy.NoneFound(dir)}
	}

	return files, unread
}

// fleet parses all agents if there are policies or other agents to compare them with.
func fleet(files []named, all Files, owner bool) *lint.Fleet {
	compared := owner || hold(files, lint.PolicyContent) || hold(files, lint.PeopleContent)
	agents := 0
	for _, f := range files {
		if f.kind == lint.AgentContent {
			agents++
		}
	}
	if agents == 0 || !compared && agents == 1 {
		return nil
	}
	subjects := make([]*lint.Subject, len(files))
	for i, f := range files {
		if f.kind == lint.AgentContent {
			subjects[i] = lint.NewSubject(f.path, f.text, &lint.Files{FS: all, Path: f.path}, nil)
		}
	}

	return lint.NewFleet(subjects)
}

// hold reports whether one of the files is of a kind.
func hold(files []named, kind lint.Content) bool {
	return slices.ContainsFunc(files, func(f named) bool { return f.kind == kind })
}

// check checks files and writes the findings.
type check struct {
	linter *lint.Linter
	shelf  *shelf
	files  Files
	config string
	people string
}

func (c check) run(files []named) Answer {
	var b bytes.Buffer
	var sum diag.Summary
	out := diag.NewJSON(&b, diag.Options{})
	for _, report := range c.reports(files) {
		sum.Add(report)
		_ = out.File(report) // writing to a buffer never fails
	}

	_ = out.Close(sum)
	switch {
	case c.shelf.lost:
		return Answer{Exit: ExitFailure, Output: b.Bytes(), Error: "a directory of policies could not be read"}
	case sum.Errors > 0:
		return Answer{Exit: ExitFindings, Output: b.Bytes()}
	}

	return Answer{Output: b.Bytes()}
}

// reports returns the reports of policies and of the owner's files that aren't checked
// themselves, and then those of the checked files in their order.
func (c check) reports(files []named) []diag.Report {
	var out []diag.Report
	for _, name := range c.unchecked(files) {
		found := c.shelf.found[name]
		out = append(out, c.linter.Other(found[0].File, found))
	}

	w := c.linter.Worker()
	out = append(out, c.owners(w, files)...)
	for _, f := range files {
		out = append(out, c.report(w, f))
	}

	return out
}

// owners returns the reports of the owner's files that aren't checked themselves.
func (c check) owners(w *lint.Worker, files []named) []diag.Report {
	var out []diag.Report
	for _, name := range []string{c.config, c.people} {
		text, err := c.files.read(name)
		if err != nil || slices.ContainsFunc(files, func(f named) bool { return f.path == in(name) }) {
			continue
		}
		report := c.linter.Owner(name, text)
		if name == c.people {
			report = w.People(name, text)
		}
		if len(report.Findings) > 0 {
			out = append(out, report)
		}
	}

	return out
}

// unchecked lists the files of policies that aren't among the checked files.
func (c check) unchecked(files []named) []string {
	var out []string
	for name := range c.shelf.found {
		if !slices.ContainsFunc(files, func(f named) bool { return f.path == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)

	return out
}

func (c check) report(w *lint.Worker, f named) diag.Report {
	var report diag.Report
	switch f.kind {
	case lint.PolicyContent:
		report = w.Policy(f.path, f.text)
	case lint.PeopleContent:
		report = w.People(f.path, f.text)
	default:
		report = w.Agent(f.path, f.text, &lint.Files{FS: c.files, Path: f.path})
	}

	if more := c.shelf.found[f.path]; len(more) > 0 {
		report.Findings = append(report.Findings, c.linter.Other(f.path, more).Findings...)
		diag.Sort(report.Findings)
	}

	return report
}
