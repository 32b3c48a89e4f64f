package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// shelf holds what a check read from --policies: the valid policies, and the problems of the
// others. A broken policy is reported like any file that is checked, and doesn't prevent the rest
// from being checked.
type shelf struct {
	set    *policy.Set // of the sound ones; nil without --policies
	unread []string    // see lint.Options.Unread
	// those with findings, in the order of reading; without text if they can't be read
	flawed  []policy.File
	found   map[string][]diag.Finding // by key of the file; of a document that does not load the linter tells them
	missing bool                      // a file or directory could not be read
}

// shelf reads the policies that a configuration names. It fetches nothing: for a registry it reads
// the copy, which may be at most this old unless the limit is 0.
func (v program) shelf(chosen *term.Decisions, most time.Duration) *shelf {
	s := readShelf(chosen.PolicyDirs(), nil)
	if chosen.Registry == nil {
		return s
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(v.Err, "agf-validate: %s: the registry is not asked here, ", chosen.File)
		fmt.Fprintf(v.Err, format+"\n", args...)
	}
	remedy := "`assent policies fetch --decisions " + chosen.File + "` brings what it holds now"
	cache := chosen.Beside(chosen.Registry.Cache)
	body, written, err := readCache(cache)
	if err != nil {
		say("and there is no copy of it (%v): its policies are not checked, and references to them neither, "+
			"whatever the exit code; %s, or give --policies", err, remedy)
		s.unread = append(s.unread, "")
		if most > 0 {
			say("and --registry-age wants a copy: exit code 2")
			s.missing = true
		}

		return s
	}

	files, findings := policy.ReadBundle(body, cache, len(body))
	s = readShelf(chosen.PolicyDirs(), files)
	if len(findings) > 0 {
		s.note(policy.File{Name: cache, Text: body}, findings...)
		s.unread = append(s.unread, "")
		s.missing = true
	}
	age := time.Since(written)
	say("its policies are those of the copy %s, which it confirmed %s; %s", cache, agoWords(age, written), remedy)
	if most > 0 && (age < 0 || age > most) {
		say("and its copy is not of the last %s, as --registry-age wants: exit code 2", most)
		s.missing = true
	}

	return s
}

// agoWords describes the age of a copy by the time stamp of its file.
func agoWords(age time.Duration, written time.Time) string {
	at := "at " + written.UTC().Format(time.RFC3339)
	if age < 0 {
		return at + ", which is yet to come"
	}

	return age.Round(time.Second).String() + " ago, " + at
}

// mostCached bounds the copy of a registry, in bytes.
const mostCached = 32 << 20

// readCache reads the copy of a registry and the time at which it was confirmed.
func readCache(file string) (body []byte, confirmed time.Time, err error) {
	if file == "" {
		return nil, confirmed, errors.New("registry.cache is not given")
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, confirmed, err
	case !info.Mode().IsRegular() || info.Size() > mostCached:
		return nil, confirmed, fmt.Errorf("%s is no file of at most %d bytes", file, mostCached)
	}

	body, err = os.ReadFile(file)

	return body, info.ModTime(), err
}

// readShelf reads directories of policies and additional files.
func readShelf(dirs []string, more []policy.File) *shelf {
	s := &shelf{found: map[string][]diag.Finding{}}
	if len(dirs) == 0 && len(more) == 0 {
		return s
	}
	var sound []*policy.Policy
	texts := map[string][]byte{}
	take := func(files []policy.File) {
		for _, f := range files {
			texts[f.Name] = f.Text
			if p, _ := policy.Parse(f.Name, f.Text); p != nil {
				sound = append(sound, p)
				continue
			}
			s.unread = append(s.unread, policy.RefOf(f.Text))
			s.note(f)
		}
	}
	take(more)
	files, unread := readDirs(dirs)
	for _, f := range unread { // it is unknown which policies they contain
		s.note(policy.File{Name: f.File}, f)
		s.unread = append(s.unread, "")
		s.missing = s.missing || f.Rule != "policy-file-name"
	}
	take(files)
	s.keep(sound, texts)
	return s
}

// note adds a file with findings.
func (s *shelf) note(f policy.File, found ...diag.Finding) {
	if _, known := s.found[key(f.Name)]; !known {
		s.flawed = append(s.flawed, f)
	}
	s.found[key(f.Name)] = append(s.found[key(f.Name)], found...)
}

// keep builds the registry of valid policies. If several have the same policy_ref, the first is
// kept and the others are reported.
func (s *shelf) keep(sound []*policy.Policy, texts map[string][]byte) {
	_, repeated := policy.NewSet(sound...)
	for _, f := range repeated {
		s.note(policy.File{Name: f.File, Text: texts[f.File]}, f)
	}
	known := map[string]bool{}
	unique := slices.DeleteFunc(sound, func(p *policy.Policy) bool {
		twice := known[p.Ref]
		known[p.Ref] = true
		return twice
	})
	s.set, _ = policy.NewSet(unique...)
}

// take adds the shelf's policies to the options of a linter.
func (s *shelf) take(opt *lint.Options) {
	if s.set != nil {
		opt.Registry, opt.Unread = s.set, s.unread
	}
}

// reports prints the problems of the shelf, except for files that are checked themselves.
func (s *shelf) reports(c *checker, checked []input) {
	own := map[string]bool{}
	for _, in := range checked {
		own[key(in.path)] = true
	}
	w := c.linter.Worker()
	for _, f := range s.flawed {
		if own[key(f.Name)] {
			continue
		}
		if found := s.found[key(f.Name)]; len(found) > 0 {
			c.show(c.linter.Other(f.Name, found), f.Text)
		} else {
			c.show(w.Policy(f.Name, f.Text), f.Text)
		}
	}

	c.unread = c.unread || s.missing
}

// fleet reads all agents of a run if there are several, or if there are policies, people,
// catalogues or an owner's configuration to compare with them. Otherwise it only keeps their ids, so
// that the memory of a run does not depend on the number of files.
func fleet(inputs []input, opt *lint.Options, owner bool, workers int) *lint.Fleet {
	is := func(k fileKind) func(input) bool {
		return func(in input) bool { return in.kind == k && in.err == nil }
	}
	compared := slices.ContainsFunc(inputs, is(policyKind)) || slices.ContainsFunc(inputs, is(peopleKind)) ||
		len(opt.Catalogs) > 0 || opt.Registry != nil || owner
	agents := 0
	for _, in := range inputs {
		if is(agentKind)(in) {
			agents++
		}
	}
	if agents == 0 || !compared && agents == 1 {
		return nil
	}
	subjects := make([]*lint.Subject, len(inputs))
	todo := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range todo {
				in := inputs[i]
				src, err := in.src, error(nil)
				if src == nil {
					src, err = term.ReadFile(in.path, strings.NewReader(""))
				}
				switch {
				case err != nil:
				case compared:
					subjects[i] = lint.NewSubject(in.name(), src, in.files(), opt.Catalogs)
				default:
					subjects[i] = lint.NewNamed(in.name(), src)
				}
			}
		})
	}

	for i := range inputs {
		if is(agentKind)(inputs[i]) {
			todo <- i
		}
	}
	close(todo)
	running.Wait()
	return lint.NewFleet(subjects)
}

// policiesOf reads the policies of a configuration. It returns all of them or an error, like the
// code that decides calls (docs/contracts/policy.md).
func (v planning) policiesOf(chosen *term.Decisions) (policy.Registry, error) {
	files, unread := readDirs(chosen.PolicyDirs())
	if chosen.Registry != nil {
		cache := chosen.Beside(chosen.Registry.Cache)
		body, _, err := readCache(cache)
		if err != nil {
			return nil, fmt.Errorf(
				"%s: the policies of the registry: %w; nothing is fetched here, so name a registry.cache that assent "+
					"wrote, or policies",
				chosen.File,
				err,
			)
		}

		more, missing := policy.ReadBundle(body, cache, len(body))
		files, unread = append(files, more...), append(unread, missing...)
	}

	if len(files) == 0 && len(unread) == 0 {
		return nil, nil
	}
	set, findings, texts := loadPolicies(files, "", unread)
	if set.Err() != nil {
		term.PrintFindings(v.Err, findings, texts)
		return nil, errors.New("the policies can't be used")
	}
	return set, nil
}

// loadPolicies builds the registry of files, and returns the findings about them.
func loadPolicies(files []policy.File, what string, unread []diag.Finding) (
	set *policy.Set, findings []diag.Finding, texts map[string][]byte,
) {
	texts = map[string][]byte{}
	for _, f := range files {
		texts[f.Name] = f.Text
	}
	set, findings = policy.LoadFiles(files, what, unread...)
	return set, findings, texts
}

// readDirs reads the policies of directories, and the findings about their files. A directory
// without policies is a finding.
func readDirs(dirs []string) (files []policy.File, unread []diag.Finding) {
	for _, dir := range dirs {
		found, broken := policy.ReadFS(os.DirFS(dir), dir)
		if len(found) == 0 && len(broken) == 0 {
			broken = []diag.Finding{policy.NoneFound(dir)}
		}
		files, unread = append(files, found...), append(unread, broken...)
	}

	return files, unread
}
