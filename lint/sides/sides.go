// Package sides compiles the agents of one side of a comparison: each
// by itself, below those that delegate to it, and with the people who
// may answer. It reads no files.
package sides

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Directory is one people.yaml of a side.
type Directory struct {
	Path   string // within the side; empty if it was named separately
	Name   string // for people
	People *people.Directory
}

// Config is what the owner of a side chose: one decisions.yaml with its
// policies.
type Config struct {
	Path      string // within the side; empty if it was named separately and applies to every agent
	Name      string // for people; empty for the defaults
	Registry  *policy.Set
	Options   resolve.Options
	PermitAge time.Duration
	// PolicyRegistry is the address of the registry that the
	// configuration names, and Keep how long its last copy decides.
	PolicyRegistry string
	Keep           time.Duration
	// Chosen names the policies if something other than the
	// configuration chose them.
	Chosen string
}

// Files are what a side is made of, read.
type Files struct {
	Agents  map[string]*schema.Agent // by their paths within the side
	Default Config                   // used if Configs is empty
	Configs []Config
	People  []Directory
	Linter  *lint.Linter // tells what documents silence
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
	config, err := f.configOf(rel)
	if err != nil {
		return nil, err
	}
	plan, err := compileAgent(agent, config.Registry, config.Options)
	if err != nil {
		return nil, err
	}
	side := &posture.Side{
		Plan:           plan,
		PermitAge:      config.PermitAge,
		PolicyRegistry: config.PolicyRegistry,
		RegistryKeep:   config.Keep,
		Sources:        map[string]string{"policies": cmp.Or(config.Chosen, "as the side names them")},
	}
	side.Files = append(side.Files, agent.File)
	if config.Name != "" {
		side.Files, side.Config = append(side.Files, config.Name), config.Name
	}
	for _, p := range config.Registry.Policies() {
		side.Files = append(side.Files, p.Doc.File)
	}
	if config.Path != "" {
		side.Sources["decisions.yaml"] = config.Path
	}
	side.Suppressed = append(side.Suppressed, suppressed(f.Linter, "the agent's file", agent.Doc)...)
	for _, p := range plan.Policies() {
		side.Suppressed = append(side.Suppressed, suppressed(f.Linter, p.Ref, p.Doc)...)
	}
	d, err := nearest("people.yaml", f.People, func(d *Directory) string { return d.Path }, rel)
	if err != nil {
		return nil, err
	}
	if d != nil {
		side.People, side.PeopleAt = d.People, &posture.Position{File: d.Name, Line: 1, Column: 1}
		side.Files = append(side.Files, d.Name)
		if d.Path != "" {
			side.Sources["people.yaml"] = d.Path
		}
	}

	return side, f.below(side, config, rel)
}

// configOf returns the configuration of an agent: the closest above its
// file, or the only one. If there are several and none is above the
// file, that is an error, because a guess would compare the wrong one.
func (f *Files) configOf(rel string) (*Config, error) {
	if len(f.Configs) == 0 {
		return &f.Default, nil
	}
	config, err := nearest("decisions.yaml", f.Configs, func(c *Config) string { return c.Path }, rel)
	if err != nil || config != nil {
		return config, err
	}
	var names []string
	for i := range f.Configs {
		names = append(names, f.Configs[i].Name)
	}

	return nil, fmt.Errorf(
		"%s: none of %s is in a directory above it, so it is not known which one decides; name one as `config` in "+
			".agf-validate.yaml, or compare fewer paths",
		f.Agents[rel].File,
		strings.Join(names, ", "),
	)
}

// below compiles the agent of a side below those that delegate to it.
func (f *Files) below(side *posture.Side, config *Config, rel string) error {
	var names []string
	opt := config.Options
	for _, above := range f.ancestors(rel, map[string]bool{rel: true}) {
		plan, err := compileAgent(f.Agents[above], config.Registry, opt)
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
	side.Below, err = compileAgent(f.Agents[rel], config.Registry, opt)

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

// nearest returns the file that belongs to an agent: the only one of the
// side, or else the one in the closest directory above the agent's file.
// It returns nil if there is none, and an error if the closest directory
// has two.
func nearest[T any](what string, list []T, pathOf func(*T) string, rel string) (*T, error) {
	if len(list) == 1 {
		return &list[0], nil
	}
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		var found *T
		for i := range list {
			if path.Dir(pathOf(&list[i])) != dir {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("%s and %s are in one directory: only one of them can be its %s",
					pathOf(found), pathOf(&list[i]), what)
			}
			found = &list[i]
		}
		if found != nil || dir == path.Dir(dir) {
			return found, nil
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
