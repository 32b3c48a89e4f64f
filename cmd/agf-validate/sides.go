package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/lint/sides"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/posture"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// sideFile is one file of a side of a comparison. rel is its path
// within the side, by which the files of two sides are paired.
type sideFile struct {
	rel, name string
	src       []byte
	kind      fileKind
}

// sideTree is what a side is made of.
type sideTree struct {
	what  string // as it was named
	files []sideFile
}

// readTree reads a file, or a directory as a check walks it.
func (v program) readTree(path string) (*sideTree, error) {
	out := &sideTree{what: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, in := range walk([]string{path}, v.In) {
		if in.err == nil && in.src == nil {
			in.src, in.err = term.ReadFile(in.path, v.In)
		}
		if in.err != nil {
			return nil, in.err
		}
		f := sideFile{name: in.path, src: in.src, kind: in.kind}
		if rel, err := filepath.Rel(path, in.path); err == nil && info.IsDir() {
			f.rel = filepath.ToSlash(rel)
		}
		out.files = append(out.files, f)
	}

	return out, nil
}

// sideFlags say what a side is compiled under.
type sideFlags struct {
	policies []string
	config   string
	people   string
}

// compiled are the agents of a side, by the path of their file.
type compiled struct {
	sides map[string]*posture.Side
}

// compile reads the agents of a side, their policies and people. What
// can't be read or decided on is an error: a side that is half
// understood proves nothing.
func (v program) compile(t *sideTree, f sideFlags) (*compiled, error) {
	chosen := &term.Decisions{Config: &resolve.Config{PermitAge: resolve.DefaultPermitAge}}
	if f.config != "" {
		var err error
		if chosen, err = term.ReadDecisions(f.config, v.In, v.Err); err != nil {
			return nil, err
		}
	}

	if len(f.policies) > 0 {
		chosen.Instead(f.policies)
	}
	if chosen.Registry != nil {
		return nil, fmt.Errorf(
			"%s: the policies of a registry are not fetched here: name directories with --policies-old and --policies-new",
			f.config,
		)
	}

	registry, err := v.registry(t, chosen.PolicyDirs())
	if err != nil {
		return nil, err
	}
	directories, err := v.directories(t, f.people)
	if err != nil {
		return nil, err
	}
	agents, err := v.agents(t)
	if err != nil {
		return nil, err
	}
	read := sides.Files{
		Agents:    agents,
		Registry:  registry,
		Options:   chosen.Options(),
		PermitAge: chosen.PermitAge,
		People:    directories,
		Linter:    lint.New(rules.All(), lint.Options{}),
	}
	all, err := read.Compile()
	return &compiled{sides: all}, err
}

// agents parses the agents of a side, by their paths within it.
func (v program) agents(t *sideTree) (map[string]*schema.Agent, error) {
	out := map[string]*schema.Agent{}
	for _, file := range t.files {
		if file.kind != agentKind {
			continue
		}
		agent, findings := schema.Parse(file.name, file.src)
		if agent == nil {
			v.report(findings, map[string][]byte{file.name: file.src})
			return nil, fmt.Errorf("the agent %s can't be compared", file.name)
		}
		out[file.rel] = agent
	}

	return out, nil
}

// directories reads who may answer: the file that is named, or those of
// the side.
func (v program) directories(t *sideTree, named string) ([]sides.Directory, error) {
	if named != "" {
		d, err := v.readPeople(named)
		return []sides.Directory{{Name: named, People: d}}, err
	}
	var out []sides.Directory
	for _, f := range t.files {
		if f.kind != peopleKind {
			continue
		}
		d, findings := people.Parse(f.name, f.src)
		if d == nil {
			v.report(findings, map[string][]byte{f.name: f.src})
			return nil, fmt.Errorf("the people of %s can't be compared", f.name)
		}
		out = append(out, sides.Directory{Path: f.rel, Name: f.name, People: d})
	}

	return out, nil
}

// report prints the findings that stop a side, and no others.
func (v program) report(findings []diag.Finding, texts map[string][]byte) {
	term.PrintFindings(v.Err, slices.DeleteFunc(findings, func(f diag.Finding) bool { return !f.Stops }), texts)
}

// registry holds the policies of directories, or those of the side when
// none are named.
func (v program) registry(t *sideTree, dirs []string) (*policy.Set, error) {
	files, unread := readDirs(dirs)
	for _, f := range t.files {
		if f.kind == policyKind && len(dirs) == 0 {
			files = append(files, policy.File{Name: f.name, Text: f.src})
		}
	}
	if len(files) == 0 && len(unread) == 0 {
		set, _ := policy.NewSet()
		return set, nil
	}

	set, findings, texts := loadPolicies(files, t.what, unread)
	if set.Err() != nil {
		v.report(findings, texts)
		return nil, fmt.Errorf("the policies of %s can't be used", t.what)
	}

	return set, nil
}

// revisions reads "A..B"; ok is false when it is none.
func revisions(text string) (old, new string, err error) {
	old, new, ok := strings.Cut(text, "..")
	switch {
	case !ok:
		err = fmt.Errorf("%q is no range of revisions, expected A..B before --", text)
	case strings.HasPrefix(new, "."):
		err = fmt.Errorf("%q has three dots, expected A..B: both revisions are compared as they are", text)
	case old == "":
		err = fmt.Errorf("%q names no old revision, expected A..B", text)
	case strings.HasPrefix(old, "-"), strings.HasPrefix(new, "-"):
		err = fmt.Errorf("%q: a revision does not begin with a dash", text)
	case new == "":
		new = "HEAD"
	}

	return old, new, err
}
