package policytest

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Files reads what a test file names. Paths are joined with the folder
// of the test file.
type Files interface {
	Read(path string) ([]byte, error)
	// Policies lists the policies of a directory, and findings about files that can't be read.
	Policies(dir string) ([]policy.File, []diag.Finding)
	// Agents returns an agent's file, or those of a directory and below it.
	Agents(path string) ([]policy.File, error)
}

// World is the inputs that decide the calls of a test file, as texts, so that a text can be changed
// and the world built again.
type World struct {
	Agents []policy.File // outermost parent first, the agent last
	// Fleet are the agents of invariants, by the path that the test file has.
	Fleet     map[string][]policy.File
	Policies  []policy.File
	People    *policy.File // nil: none
	Decisions *policy.File // nil: none
	// Catalogs list the offered tools. They are nil if that is not known.
	Catalogs lint.Catalogs
}

// Load reads the files that a test file names. If one can't be read, the error says which path of
// the file names it.
func Load(f *File, files Files) (*World, error) {
	l := loader{file: f, files: files}
	w := &World{Fleet: map[string][]policy.File{}}
	for _, v := range slices.Concat(f.Never, f.Always) {
		for _, name := range v.Agents {
			w.Fleet[name] = l.agents(name, v.node.Get("agents"))
			if f.Agent == "" && len(w.Agents) == 0 && l.err == nil {
				w.Agents = w.Fleet[name][:1] // no test is about its calls alone
			}
		}
	}
	for _, p := range f.Parents {
		w.Agents = append(w.Agents, *l.read("agent", p))
	}
	if f.Agent != "" {
		w.Agents = append(w.Agents, *l.read("agent", f.Agent))
	}
	if f.Decisions != "" {
		w.Decisions = l.read("decisions", f.Decisions)
	}
	if f.People != "" {
		w.People = l.read("people", f.People)
	}
	var dirs []string
	for _, dir := range f.Policies {
		dirs = append(dirs, l.beside(dir))
	}
	if f.Policies == nil && w.Decisions != nil && l.err == nil {
		dirs = l.chosen(w.Decisions)
	}
	for _, dir := range dirs {
		l.policies(w, dir)
	}
	if l.err != nil {
		return nil, l.err
	}

	return w, nil
}

type loader struct {
	file  *File
	files Files
	err   error // the first
}

// fail keeps the first error, with the place that names what is missing.
func (l *loader) fail(field string, err error) {
	if l.err != nil {
		return
	}
	at := yamldoc.Head(l.file.Doc.Root)
	if n := l.file.Doc.Root.Get(field); n != nil {
		at = n.Range
	}
	l.err = fmt.Errorf("%s:%d:%d: %s: %w", l.file.Path, at.Start.Line, at.Start.Column, field, err)
}

func (l *loader) beside(name string) string {
	if path.IsAbs(name) {
		return name
	}

	return path.Join(path.Dir(l.file.Path), name)
}

func (l *loader) read(field, name string) *policy.File {
	name = l.beside(name)
	text, err := l.files.Read(name)
	if err != nil {
		l.fail(field, err)
	}

	return &policy.File{Name: name, Text: text}
}

// agents reads the agents of invariants.
func (l *loader) agents(name string, at *yamldoc.Node) []policy.File {
	files, err := l.files.Agents(l.beside(name))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no agent (*.agf.yaml)", name)
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("%s:%d:%d: agents: %w", l.file.Path, at.Range.Start.Line, at.Range.Start.Column, err)
	}
	return files
}

// chosen returns the directories of policies that decisions.yaml names.
func (l *loader) chosen(decisions *policy.File) []string {
	c, findings := resolve.ParseConfig(decisions.Name, decisions.Text)
	if c == nil {
		l.fail("decisions", refused(findings))
		return nil
	}
	if c.Registry != nil {
		l.fail("decisions", errors.New("its policies come from a registry, which tests don't fetch; "+
			"name their directories under policies"))
	}
	var out []string
	for _, dir := range c.Policies {
		if !path.IsAbs(dir) {
			dir = path.Join(path.Dir(decisions.Name), dir)
		}
		out = append(out, dir)
	}

	return out
}

func (l *loader) policies(w *World, dir string) {
	found, unread := l.files.Policies(dir)
	if len(found) == 0 && len(unread) == 0 {
		unread = []diag.Finding{policy.NoneFound(dir)}
	}
	if len(unread) > 0 {
		l.fail("policies", refused(unread))
	}
	w.Policies = append(w.Policies, found...)
}

// refused returns the first finding that stops, as an error with its place.
func refused(findings []diag.Finding) error {
	if stopping := yamldoc.Stopping(findings); len(stopping) > 0 {
		findings = stopping
	}
	if len(findings) == 0 {
		return errors.New("it can't be used")
	}
	f := findings[0]
	at := f.File
	if f.Range.Start.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", f.File, f.Range.Start.Line, f.Range.Start.Column)
	}
	text := at + ": " + f.Message
	if f.Expected != "" {
		text += " (expected " + f.Expected + ")"
	}

	return errors.New(text)
}

// Built is a world that decides.
type Built struct {
	Plan     *resolve.Plan
	Agents   []*schema.Agent            // as in World
	Fleet    map[string][]*resolve.Plan // as in World
	Policies []*policy.Policy           // those that govern one of the agents
	People   *people.Directory
	// Semantics are the readings of conditions.
	Semantics condition.Semantics
	Catalogs  lint.Catalogs // as in World
}

// unoffered explains why no call like this can be made, going by the
// catalogues. It returns an empty string for calls that are denied anyway:
// a test may show that what is not there can't be called.
func (b *Built) unoffered(plan *resolve.Plan, c *resolve.Call, where *condition.Expr, denied bool) string {
	if denied && where == nil {
		return ""
	}
	return b.Catalogs.Unoffered(plan, c, where)
}

// Build compiles the world. An agent, a policy or people that can't be
// used are an error with their place; a required policy that is missing
// is none, since it denies every call.
func (w *World) Build() (*Built, error) {
	r, err := w.read()
	if err != nil {
		return nil, err
	}

	return r.build()
}

// parts are the parsed documents of a world. Two worlds that differ in one document share the
// others.
type parts struct {
	agents   []*schema.Agent
	fleet    map[string][]*schema.Agent
	policies []*policy.Policy
	people   *people.Directory
	options  resolve.Options
	catalogs lint.Catalogs
}

// read reads the files that a test names: the agent, its policies, what
// the owner chose, and people.
func (w *World) read() (*parts, error) {
	r := &parts{catalogs: w.Catalogs}
	var err error
	if r.options, err = w.options(); err != nil {
		return nil, err
	}
	set, err := registry(w.Policies)
	if err != nil {
		return nil, err
	}
	r.policies = set.Policies()
	for _, text := range w.Agents {
		agent, findings := schema.Parse(text.Name, text.Text)
		if agent == nil {
			return nil, refused(findings)
		}
		r.agents = append(r.agents, agent)
	}

	r.fleet = map[string][]*schema.Agent{}
	for name, texts := range w.Fleet {
		for _, text := range texts {
			agent, findings := schema.Parse(text.Name, text.Text)
			if agent == nil {
				return nil, refused(findings)
			}
			r.fleet[name] = append(r.fleet[name], agent)
		}
	}

	if w.People != nil {
		d, findings := people.Parse(w.People.Name, w.People.Text)
		if d == nil {
			return nil, refused(findings)
		}
		r.people = d
	}

	return r, nil
}

func (r *parts) build() (*Built, error) {
	b := &Built{
		Agents:    r.agents,
		People:    r.people,
		Semantics: r.options.Semantics.Conditions,
		Catalogs:  r.catalogs,
	}
	set, findings := policy.NewSet(r.policies...)
	if set.Err() != nil {
		return nil, refused(findings)
	}
	opt := r.options
	for _, agent := range r.agents {
		opt.Parent = b.Plan
		var unresolved *resolve.UnresolvedError
		var err error
		if b.Plan, err = resolve.Compile(agent, set, opt); err != nil && !errors.As(err, &unresolved) {
			return nil, fmt.Errorf("%s: %w", agent.File, err)
		}
	}

	b.Fleet = map[string][]*resolve.Plan{}
	for name, agents := range r.fleet {
		for _, agent := range agents {
			plan, err := resolve.Compile(agent, set, r.options)
			var unresolved *resolve.UnresolvedError
			if err != nil && !errors.As(err, &unresolved) {
				return nil, fmt.Errorf("%s: %w", agent.File, err)
			}
			b.Fleet[name] = append(b.Fleet[name], plan)
		}
	}

	for _, p := range set.Policies() {
		if slices.ContainsFunc(b.Agents, func(a *schema.Agent) bool { return governs(p, a) }) {
			b.Policies = append(b.Policies, p)
		}
	}

	return b, nil
}

// governs reports whether a policy applies to an agent.
func governs(p *policy.Policy, a *schema.Agent) bool {
	return p.Applies == policy.Implicit && p.Agents.Match(&a.Metadata) ||
		slices.ContainsFunc(a.Constraints.Policies, func(r schema.PolicyRef) bool { return r.Ref == p.Ref })
}

func (w *World) options() (resolve.Options, error) {
	if w.Decisions == nil {
		return resolve.Options{}, nil
	}
	c, findings := resolve.ParseConfig(w.Decisions.Name, w.Decisions.Text)
	if c == nil {
		return resolve.Options{}, refused(findings)
	}

	return c.Options(), nil
}

// registry makes a registry of policies; all or nothing.
func registry(files []policy.File) (*policy.Set, error) {
	set, findings := policy.NewSet()
	if len(files) > 0 {
		set, findings = policy.LoadFiles(files, files[0].Name)
	}
	if set.Err() != nil {
		return nil, refused(findings)
	}

	return set, nil
}
