// Package sides compiles the agents of one side of a comparison: each
// by itself, below those that delegate to it, and with the people who
// may answer. It reads no files.
package sides

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/posture"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Directory is one people.yaml of a side.
type Directory struct {
	Path   string // within the side; "" of one that was named beside it
	Name   string // for people
	People *people.Directory
}

// Files are what a side is made of, read.
type Files struct {
	Agents    map[string]*schema.Agent // by their paths within the side
	Registry  *policy.Set
	Options   resolve.Options
	PermitAge time.Duration
	People    []Directory
	Linter    *lint.Linter // tells what documents silence
}

// Compile compiles all agents of a side, by their paths. What can't be
// decided on is an error: a side that is half understood proves nothing.
func (f *Files) Compile() (map[string]*posture.Side, error) {
	out := map[string]*posture.Side{}
	for _, rel := range slices.Sorted(maps.Keys(f.Agents)) {
		side, err := f.side(rel)
		if err != nil {
			return nil, err
		}
		out[rel] = side
	}

	return out, nil
}

// side compiles one agent: by itself, and below those that delegate to
// it, outermost first, as a service does.
func (f *Files) side(rel string) (*posture.Side, error) {
	agent := f.Agents[rel]
	plan, err := compileAgent(agent, f.Registry, f.Options)
	if err != nil {
		return nil, err
	}
	side := &posture.Side{Plan: plan, PermitAge: f.PermitAge}
	side.Suppressed = append(side.Suppressed, suppressed(f.Linter, "the agent's file", agent.Doc)...)
	for _, p := range plan.Policies() {
		side.Suppressed = append(side.Suppressed, suppressed(f.Linter, p.Ref, p.Doc)...)
	}
	if d := nearest(f.People, rel); d != nil {
		side.People, side.PeopleAt = d.People, &posture.Position{File: d.Name, Line: 1, Column: 1}
	}

	return side, f.below(side, rel)
}

// below compiles the agent of a side below those that delegate to it.
func (f *Files) below(side *posture.Side, rel string) error {
	var names []string
	opt := f.Options
	for _, above := range f.ancestors(rel, map[string]bool{rel: true}) {
		plan, err := compileAgent(f.Agents[above], f.Registry, opt)
		if err != nil {
			return err
		}
		opt.Parent, names = plan, append(names, f.Agents[above].Metadata.ID)
	}

	if opt.Parent == nil {
		return nil
	}
	var err error
	side.Parents = strings.Join(names, ", ")
	side.Below, err = compileAgent(f.Agents[rel], f.Registry, opt)

	return err
}

// ancestors lists who delegates to a file of the side, directly or not,
// outermost first.
func (f *Files) ancestors(rel string, seen map[string]bool) []string {
	var out []string
	for _, from := range slices.Sorted(maps.Keys(f.Agents)) {
		if seen[from] || !delegates(from, f.Agents[from], rel) {
			continue
		}
		seen[from] = true
		out = append(append(out, f.ancestors(from, seen)...), from)
	}

	return out
}

// delegates reports whether the agent of one file names another file.
func delegates(from string, agent *schema.Agent, to string) bool {
	return slices.ContainsFunc(agent.ActionSpace.LocalAgents, func(l schema.LocalAgent) bool {
		return l.SourceType == "file" && path.Join(path.Dir(from), l.Source) == to
	})
}

// compileAgent makes the plan of one agent.
func compileAgent(agent *schema.Agent, registry *policy.Set, opt resolve.Options) (*resolve.Plan, error) {
	plan, err := resolve.Compile(agent, registry, opt)
	var unresolved *resolve.UnresolvedError
	switch {
	case errors.As(err, &unresolved):
		return nil, fmt.Errorf(
			"%s: %w: every call would be denied, which compares nothing; name their directory with --policies-old and "+
				"--policies-new, or let it be part of the side",
			agent.File,
			err,
		)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", agent.File, err)
	}

	return plan, nil
}

// nearest is the people.yaml of an agent: the only one, else that of
// the closest directory above the agent's file, nil when there is none.
func nearest(list []Directory, rel string) *Directory {
	if len(list) == 1 {
		return &list[0]
	}
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		for i := range list {
			if path.Dir(list[i].Path) == dir {
				return &list[i]
			}
		}
		if dir == path.Dir(dir) {
			return nil
		}
	}
}

// suppressed lists the findings that a document silences.
func suppressed(l *lint.Linter, file string, doc *yamldoc.Document) []posture.Suppression {
	var out []posture.Suppression
	for _, s := range l.Silenced(doc) {
		out = append(out, posture.Suppression{
			File: file,
			Rule: s.Rule,
			At: posture.Position{
				File:   doc.File,
				Line:   s.At.Start.Line,
				Column: s.At.Start.Column,
			},
		})
	}

	return out
}
