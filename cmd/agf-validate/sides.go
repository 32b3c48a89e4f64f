package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
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
		f := sideFile{
			name: in.path,
			src:  in.src,
			kind: in.kind,
		}
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
}

// compiled are the agents of a side, by the path of their file.
type compiled struct {
	sides map[string]*posture.Side
	ids   map[string][]string // paths by metadata.id
}

// compile reads the agents of a side and their policies. What can't be
// read or decided on is an error: a side that is half understood proves
// nothing.
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
	out := &compiled{sides: map[string]*posture.Side{}, ids: map[string][]string{}}
	linter := lint.New(rules.All(), lint.Options{})
	for _, file := range t.files {
		if file.kind == agentKind {
			if err := v.compileAgent(out, file, registry, chosen.Options(), linter); err != nil {
				return nil, err
			}
		}
	}

	return out, nil
}

func (v program) compileAgent(
	out *compiled, file sideFile, registry *policy.Set, opt resolve.Options, linter *lint.Linter,
) error {
	agent, findings := schema.Parse(file.name, file.src)
	if agent == nil {
		v.report(findings, map[string][]byte{file.name: file.src})
		return fmt.Errorf("the agent %s can't be compared", file.name)
	}
	plan, err := resolve.Compile(agent, registry, opt)
	var unresolved *resolve.UnresolvedError
	if errors.As(err, &unresolved) {
		return fmt.Errorf(
			"%s: %w: every call would be denied, which compares nothing; name their directory with --policies-old and "+
				"--policies-new, or let it be part of the side",
			file.name,
			err,
		)
	}

	if err != nil {
		return fmt.Errorf("%s: %w", file.name, err)
	}
	side := &posture.Side{Plan: plan}
	side.Suppressed = append(
		side.Suppressed,
		suppressed(linter, "the agent's file", agent.Doc)...,
	)
	for _, p := range plan.Policies() {
		side.Suppressed = append(side.Suppressed, suppressed(linter, p.Ref, p.Doc)...)
	}
	out.sides[file.rel] = side
	out.ids[agent.Metadata.ID] = append(out.ids[agent.Metadata.ID], file.rel)

	return nil
}

// report prints the findings that stop a side, and no others.
func (v program) report(findings []diag.Finding, texts map[string][]byte) {
	term.PrintFindings(
		v.Err,
		slices.DeleteFunc(findings, func(f diag.Finding) bool { return !f.Stops }),
		texts,
	)
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

	set, findings := policy.LoadFiles(files, t.what, unread...)
	if set.Err() != nil {
		texts := map[string][]byte{}
		for _, f := range files {
			texts[f.Name] = f.Text
		}
		v.report(findings, texts)
		return nil, fmt.Errorf("the policies of %s can't be used", t.what)
	}

	return set, nil
}

// pairs are the agents of two sides: those of one path, then those that
// alone have an id, then those that one side alone has.
func pairs(old, new *compiled) []struct{ old, new *posture.Side } {
	var out []struct{ old, new *posture.Side }
	put := func(a, b *posture.Side) {
		out = append(
			out,
			struct{ old, new *posture.Side }{a, b},
		)
	}
	if len(old.sides) == 1 && len(new.sides) == 1 {
		for _, a := range old.sides {
			for _, b := range new.sides {
				put(a, b)
			}
		}
		return out
	}

	taken := map[string]bool{}
	moved := func(rel string) (string, bool) {
		id := old.sides[rel].Plan.Agent().Metadata.ID
		there := new.ids[id]
		if len(old.ids[id]) != 1 || len(there) != 1 || old.sides[there[0]] != nil {
			return "", false
		}
		return there[0], true
	}
	for _, rel := range slices.Sorted(maps.Keys(old.sides)) {
		to := rel
		if new.sides[rel] == nil {
			to, _ = moved(rel)
		}
		taken[to] = true
		put(old.sides[rel], new.sides[to])
	}

	for _, rel := range slices.Sorted(maps.Keys(new.sides)) {
		if !taken[rel] {
			put(nil, new.sides[rel])
		}
	}

	return out
}

// revisions reads "A..B"; ok is false when it is none.
func revisions(text string) (old, new string, err error) {
	old, new, ok := strings.Cut(text, "..")
	switch {
	case !ok:
		err = fmt.Errorf("%q is no range of revisions, expected A..B before --", text)
	case strings.HasPrefix(new, "."):
		err = fmt.Errorf(
			"%q has three dots, expected A..B: both revisions are compared as they are",
			text,
		)
	case old == "":
		err = fmt.Errorf("%q names no old revision, expected A..B", text)
	case strings.HasPrefix(old, "-"), strings.HasPrefix(new, "-"):
		err = fmt.Errorf("%q: a revision does not begin with a dash", text)
	case new == "":
		new = "HEAD"
	}

	return old, new, err
}

// suppressed lists the findings that a document silences.
func suppressed(l *lint.Linter, file string, doc *yamldoc.Document) []posture.Suppression {
	var out []posture.Suppression
	for _, s := range l.Silenced(doc) {
		out = append(out, posture.Suppression{
			File: file,
			Rule: s.Rule,
			At:   positionOf(doc.File, s.At.Start),
		})
	}

	return out
}

// positionOf is a place in a file, as reports have it.
func positionOf(file string, at diag.Position) posture.Position {
	return posture.Position{
		File:   file,
		Line:   at.Line,
		Column: at.Column,
	}
}
