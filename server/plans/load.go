package plans

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// maxFile bounds one agent, in bytes, as package schema does.
const maxFile = 4 << 20

// root is a file to serve, and the directory that its sub-agents must stay in.
type root struct{ dir, file string }

func (r root) path() string { return filepath.Join(r.dir, filepath.FromSlash(r.file)) }

// findRoots lists the agent files that the arguments lead to, each once, in order.
func findRoots(paths []string) ([]root, error) {
	var out []root
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			out = append(out, root{filepath.Dir(p), filepath.Base(p)})
		default:
			found, err := agentsIn(p)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.SortStableFunc(out, func(a, b root) int { return cmp.Compare(a.path(), b.path()) })
	return slices.CompactFunc(out, func(a, b root) bool { return a.path() == b.path() }), nil
}

func agentsIn(dir string) ([]root, error) {
	var out []root
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isAgent(d.Name()) {
			out = append(out, root{dir, file})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for agents in %s: %w", dir, err)
	}
	return out, nil
}

func isAgent(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".agf.yaml") || strings.HasSuffix(name, ".agf.yml") || strings.HasSuffix(name, ".agf.json")
}

// loader makes one generation.
type loader struct {
	cfg      Config
	registry policy.Registry
	edges    map[string][]string // by path: the files that it delegates to, as far as that was ever known

	members  map[string]*member // by path
	problems []*UnusableError   // that belong to no agent
}

// member is one file.
type member struct {
	path  string
	agent *schema.Agent // nil when it can't be read
	id    string        // what it says, even when it is broken otherwise; "" unknown
	why   []string      // what stops it
}

func (l *loader) load() *generation {
	l.members = map[string]*member{}
	roots, err := findRoots(l.cfg.Agents)
	if err != nil {
		l.problems = append(l.problems, &UnusableError{File: strings.Join(l.cfg.Agents, ", "), Why: []string{err.Error()}})
	}
	before := l.edges
	l.edges = map[string][]string{}
	for _, r := range roots {
		l.read(r, before)
	}
	if l.registry == nil {
		l.registry = loadPolicies(l.cfg.Policies)
	}
	l.refuseDuplicates()
	return l.compile()
}

// read reads a file, and those that it delegates to.
func (l *loader) read(r root, before map[string][]string) {
	name := r.path()
	if l.members[name] != nil {
		return
	}
	m := &member{path: name}
	l.members[name] = m
	fsys := os.DirFS(r.dir)
	src, err := readFile(fsys, r.file)
	if err != nil {
		m.why = []string{name + ": " + err.Error()}
	}
	agent, findings := schema.Parse(name, src)
	if err == nil {
		m.why = append(m.why, stopping(findings)...)
	}
	if m.agent = agent; agent != nil {
		m.id = agent.Metadata.ID
		l.link(m, r, fsys)
	} else {
		m.id, l.edges[name] = guess(r, src)
		if l.edges[name] == nil {
			l.edges[name] = before[name]
		}
	}
	for _, child := range l.edges[name] {
		if file, err := filepath.Rel(r.dir, child); err == nil {
			l.read(root{r.dir, filepath.ToSlash(file)}, before)
		}
	}
}

// link follows what an agent delegates to. Only what is wrong with this file stops it here: a sub-agent that is broken stops itself.
func (l *loader) link(m *member, r root, fsys fs.FS) {
	m.why = append(m.why, stopping(linked(m.agent, fsys, r))...)
	for _, local := range m.agent.ActionSpace.LocalAgents {
		if local.SourceType == "" || local.SourceType == "file" {
			l.edges[m.path] = append(l.edges[m.path], sourcePath(r, local.Source))
		}
	}
}

// linked returns what is wrong with an agent's mentions of others, and leaves out what is wrong with those.
func linked(agent *schema.Agent, fsys fs.FS, r root) []diag.Finding {
	_, findings := agent.LoadGraph(fsys, r.file)
	findings = slices.DeleteFunc(findings, func(f diag.Finding) bool { return f.File != r.file })
	for i := range findings {
		findings[i].File = r.path()
	}
	return findings
}

func sourcePath(r root, source string) string {
	return filepath.Join(r.dir, filepath.FromSlash(path.Join(path.Dir(r.file), source)))
}

// guess reads what a file that is no agent says of itself: its id, and to whom it delegates, so that it can be told whom it concerns.
func guess(r root, src []byte) (id string, children []string) {
	doc, _ := yamldoc.Parse(r.path(), src, yamldoc.Limits{})
	if doc == nil || doc.Root == nil {
		return "", nil
	}
	if n := doc.Root.Get("metadata").Get("id"); n != nil && n.Kind == yamldoc.String {
		id = n.Text
	}
	agents := doc.Root.Get("action_space").Get("local_agents")
	if agents == nil {
		return id, nil
	}
	for _, item := range agents.Items {
		if source := item.Get("source"); source != nil && source.Kind == yamldoc.String && fs.ValidPath(path.Join(path.Dir(r.file), source.Text)) {
			children = append(children, sourcePath(r, source.Text))
		}
	}
	return id, children
}

func readFile(fsys fs.FS, file string) ([]byte, error) {
	info, err := fs.Stat(fsys, file) // before it is opened: a named pipe without a writer would hold us there
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return fs.ReadFile(fsys, file)
}

// stopping lists findings that stop a load, with their places.
func stopping(findings []diag.Finding) []string {
	var out []string
	for _, f := range findings {
		if f.Stops {
			out = append(out, fmt.Sprintf("%s:%d:%d: %s", f.File, max(f.Range.Start.Line, 1), max(f.Range.Start.Column, 1), f.Message))
		}
	}
	return out
}

func loadPolicies(dirs []string) policy.Registry {
	var all []*policy.Policy
	for _, dir := range dirs {
		set, findings := policy.LoadFS(os.DirFS(dir), dir)
		if set.Err() != nil {
			return policy.Refuse(findings)
		}
		all = append(all, set.Policies()...)
	}
	set, _ := policy.NewSet(all...) // what is wrong with it is its Err
	return set
}

// refuseDuplicates stops every file whose id another has too: nobody could tell which was meant.
func (l *loader) refuseDuplicates() {
	byID := map[string][]*member{}
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		if m := l.members[name]; m.id != "" {
			byID[m.id] = append(byID[m.id], m)
		}
	}
	for id, same := range byID {
		for _, m := range same {
			for _, other := range same {
				if other != m {
					m.why = append(m.why, fmt.Sprintf("%s: the id %s is also that of %s", m.path, id, other.path))
				}
			}
		}
	}
}

// compile makes the plans. An agent's plan stands on the plans of all who delegate to it, each once.
func (l *loader) compile() *generation {
	g := &generation{agents: map[string]*approval.Compiled{}, unusable: map[string]*UnusableError{}, nameless: l.problems}
	parents := l.parents()
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[name]
		compiled, why := l.compileMember(m, parents)
		switch {
		case compiled != nil:
			g.agents[m.id] = compiled
		case m.id == "":
			g.nameless = append(g.nameless, &UnusableError{File: m.path, Why: why})
		case g.unusable[m.id] == nil: // of two that share an id the first is told, and names the other
			g.unusable[m.id] = &UnusableError{Agent: m.id, File: m.path, Why: why}
		}
	}
	return g
}

func (l *loader) parents() map[string][]string {
	out := map[string][]string{}
	for _, from := range slices.Sorted(maps.Keys(l.edges)) {
		for _, to := range l.edges[from] {
			out[to] = append(out[to], from)
		}
	}
	return out
}

// ancestors lists who delegates to a file, directly or not, outermost first.
func ancestors(name string, parents map[string][]string) []string {
	var out []string
	seen := map[string]bool{name: true}
	var visit func(string)
	visit = func(n string) {
		for _, p := range parents[n] {
			if !seen[p] {
				seen[p] = true
				visit(p)
				out = append(out, p)
			}
		}
	}
	visit(name)
	return out
}

func (l *loader) compileMember(m *member, parents map[string][]string) (*approval.Compiled, []string) {
	if len(m.why) > 0 {
		return nil, m.why
	}
	var plan *resolve.Plan
	for _, name := range append(ancestors(m.path, parents), m.path) {
		a := l.members[name]
		if len(a.why) > 0 {
			return nil, []string{fmt.Sprintf("%s delegates to it and can't be used: %s", a.path, a.why[0])}
		}
		opt := l.cfg.Options
		opt.Parent, opt.AgentAlias = plan, ""
		var err error
		if plan, err = resolve.Compile(a.agent, l.registry, opt); err != nil {
			return nil, []string{a.path + ": " + err.Error()}
		}
	}
	meta := &m.agent.Metadata
	return &approval.Compiled{
		Agent: approval.Agent{ID: meta.ID, Version: meta.Version, Name: meta.Name, Description: meta.Description}, Owners: owners(meta.Labels["owner"]), Plan: plan,
	}, nil
}

// owners reads the label owner: names, separated by commas.
func owners(label string) []string {
	var out []string
	for _, name := range strings.Split(label, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// fingerprint changes when some file, or the registry, does.
func (l *loader) fingerprint() string {
	var b strings.Builder
	note := func(name string, info fs.FileInfo, err error) {
		if err != nil {
			fmt.Fprintf(&b, "%s %v\n", name, err)
			return
		}
		fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	for _, dir := range slices.Concat(l.cfg.Agents, l.cfg.Policies) {
		walk(dir, note)
	}
	for _, name := range slices.Sorted(maps.Keys(l.edges)) { // sub-agents may have other names
		for _, child := range l.edges[name] {
			info, err := os.Stat(child)
			note(child, info, err)
		}
	}
	if l.registry != nil {
		fmt.Fprintf(&b, "registry %p %v\n", l.registry, l.registry.Err())
	}
	return b.String()
}

// walk notes the state of every file that counts.
func walk(dir string, note func(string, fs.FileInfo, error)) {
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error { // note keeps the errors
		switch {
		case err != nil:
			note(name, nil, err)
		case !d.IsDir():
			info, err := os.Stat(name) // through links, as reading does
			note(name, info, err)
		}
		return nil
	})
}
