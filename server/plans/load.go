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
	"github.com/assent-dev/assent/schema"
)

// errIrregular prevents the loader from blocking on a pipe or a device.
var errIrregular = errors.New("it is no regular file")

// root is a file to serve, and the directory that its sub-agents must be in.
type root struct{ dir, file string }

func (r root) path() string { return filepath.Join(r.dir, filepath.FromSlash(r.file)) }

// member is one file of an agent.
type member struct {
	root   root
	id     string         // in the file, even if it can't be used; may be empty
	agent  *schema.Agent  // the one that decides, from the current file or its last good copy; may be nil
	digest sum            // of the text that agent was read from
	edges  []string       // the files that agent delegates to
	broken []string       // why the current file can't be used
	errors []diag.Finding // of agent, that leave it usable
	kept   bool           // agent is the last good copy
	doubts []string       // the files, other than edges, that the broken text seems to delegate to
}

// ruleset is a registry of policies that can be used, and its origin.
type ruleset struct {
	registry policy.Registry
	digest   string // "" when it was not read from directories
	count    int
	errors   []diag.Finding // that leave the policies usable
}

// loader makes a generation from the current files and the previous generation.
type loader struct {
	cfg    Config
	before *generation
	agents *reader
	rules  *reader // of policies

	files    map[string]bool    // paths of the configuration that are files, and no directories
	members  map[string]*member // by path
	unread   []string           // directories that can't be read, so their files are unknown now
	choice   *choice
	watched  []watched // registries, in the state in which they were read
	policies ruleset
	problems []Problem
}

// keeps reports whether the last good copy is used if a file can't be used.
func (l *loader) keeps() bool { return !l.cfg.DenyBroken }

func (l *loader) load() *generation {
	l.files, l.members = map[string]bool{}, map[string]*member{}
	for _, r := range l.findRoots() {
		l.read(r)
	}
	l.keepUnread()
	l.refuseDuplicates()
	l.choose()
	l.loadPolicies()
	return l.compile()
}

// findRoots lists the agent files of the configuration, each once, in order.
func (l *loader) findRoots() []root {
	var out []root
	for _, p := range l.cfg.Agents {
		a := l.agents.ask(askStat, p)
		switch {
		case a.err == nil && a.info.IsDir():
			out = append(out, l.agentsIn(p)...)
			continue
		case a.err != nil && !l.before.files[p]:
			l.cantRead(p, a.err)
			continue
		case a.err != nil && l.deleted(p):
			l.problem(Problem{
				Part: Agents,
				File: p,
				Why:  []string{unreadable(p, a.err)},
			})
		default:
			out = append(out, root{filepath.Dir(p), filepath.Base(p)}) // reading it gives the error
		}

		l.files[p] = true
	}

	if len(l.unread) > 0 && !l.keeps() {
		return nil // an agent in there may restrict any other
	}
	slices.SortStableFunc(out, func(a, b root) int { return cmp.Compare(a.path(), b.path()) })
	return slices.CompactFunc(out, func(a, b root) bool { return a.path() == b.path() })
}

func (l *loader) agentsIn(dir string) []root {
	var out []root
	visit := func(file string, d fs.DirEntry, err error) error { // it never stops with an error
		switch {
		case err != nil:
			l.cantRead(filepath.Join(dir, filepath.FromSlash(file)), err)
			return fs.SkipDir
		case !d.IsDir() && isAgent(d.Name()):
			out = append(out, root{dir, file})
		}

		return nil
	}
	_ = fs.WalkDir(l.agents.below(dir), ".", visit)
	return out
}

func isAgent(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".agf.yaml") || strings.HasSuffix(name, ".agf.yml") ||
		strings.HasSuffix(name, ".agf.json")
}

// deleted reports whether nothing exists at a path, not even a dangling link.
func (l *loader) deleted(path string) bool {
	return errors.Is(l.agents.ask(askLstat, path).err, fs.ErrNotExist)
}

func (l *loader) problem(p Problem) { l.problems = append(l.problems, p) }

func (l *loader) cantRead(dir string, err error) {
	l.unread = append(l.unread, dir)
	kept := l.keeps() && len(l.before.members) > 0
	l.problem(Problem{
		Part: Agents,
		File: dir,
		Why:  []string{unreadable(dir, err)},
		Kept: kept,
	})
}

// unreadable returns the file's name and what is wrong with it, each once.
func unreadable(file string, err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return file + ": " + err.Error()
}

// keepUnread keeps the agents of directories that can't be read.
func (l *loader) keepUnread() {
	if !l.keeps() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.before.members)) {
		good := l.before.members[name]
		inside := func(dir string) bool {
			return strings.HasPrefix(name, filepath.Clean(dir)+string(os.PathSeparator))
		}
		if l.members[name] != nil || good.agent == nil || !slices.ContainsFunc(l.unread, inside) {
			continue
		}
		m := &member{root: good.root, id: good.id, kept: true}
		m.agent = good.agent
		m.digest = good.digest
		m.edges = good.edges
		m.errors = good.errors
		l.members[name] = m
		l.readChildren(m)
	}
}

// read reads a file, and those that it delegates to. A file that does not exist is no
// member; the files that mention it get an error.
func (l *loader) read(r root) {
	name := r.path()
	if l.members[name] != nil || l.deleted(name) {
		return
	}
	m := &member{root: r}
	l.members[name] = m
	src, digest, err := l.agents.text(name)
	if err != nil {
		l.refuse(m, []string{unreadable(name, err)}, nil)
	} else {
		l.parse(m, src, digest)
	}
	l.readChildren(m)
}

// readChildren reads the files that a file delegates to. It skips files outside of its
// directory.
func (l *loader) readChildren(m *member) {
	for _, child := range slices.Concat(m.edges, m.doubts) {
		file, err := filepath.Rel(m.root.dir, child)
		if file = filepath.ToSlash(file); err == nil && fs.ValidPath(file) {
			l.read(root{m.root.dir, file})
		}
	}
}

// parse makes the agent of a file. Only errors in this file refuse it: a broken sub-agent
// refuses itself.
func (l *loader) parse(m *member, src []byte, digest sum) {
	agent, findings := schema.Parse(m.root.path(), src)
	if agent == nil {
		id, children := guess(m.root, src)
		m.id = id
		l.refuse(m, stopping(findings), children)
		return
	}

	m.id = agent.Metadata.ID
	edges := l.mentions(m.root, agent)
	if m.id == approval.AdministrationAgent {
		l.refuse(m, []string{reserved(m.root, agent)}, edges)
		return
	}
	if why := stopping(linked(agent, l.agents.below(m.root.dir), m.root)); len(why) > 0 {
		l.refuse(m, why, edges)
		return
	}
	m.agent = agent
	m.digest = digest
	m.edges = edges
	m.errors = usableErrors(findings)
}

// usableErrors returns the findings that are errors and don't prevent the use of a file.
func usableErrors(findings []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool {
		return f.Severity != diag.Error || f.Stops
	})
}

// reserved returns an error if an agent has the id under which administrators are asked.
func reserved(r root, agent *schema.Agent) string {
	line, column := 1, 1
	if n := agent.Doc.Root.Get("metadata").Get("id"); n != nil {
		line, column = n.Range.Start.Line, n.Range.Start.Column
	}

	return fmt.Sprintf(
		"%s:%d:%d: metadata.id: %q is what acts of administrators are asked under: expected another id",
		r.path(),
		line,
		column,
		approval.AdministrationAgent,
	)
}

// refuse records why a file can't be used, and uses its last good copy instead. If the
// broken text does not show the files that it delegates to, those of the last readable
// version are used.
func (l *loader) refuse(m *member, why, mentions []string) {
	m.broken = append(m.broken, why...)
	m.agent = nil
	m.edges = nil
	m.doubts = mentions
	before := l.before.members[m.root.path()]
	if before == nil {
		return
	}
	if mentions == nil {
		m.doubts = slices.Concat(before.edges, before.doubts)
	}
	if l.keeps() && before.agent != nil {
		m.id = before.id
		m.agent = before.agent
		m.digest = before.digest
		m.edges = before.edges
		m.errors = before.errors
		m.kept = true
	}
}

// mentions lists the files that an agent delegates to.
func (l *loader) mentions(r root, agent *schema.Agent) []string {
	out := []string{}
	for _, local := range agent.ActionSpace.LocalAgents {
		if local.SourceType == "" || local.SourceType == "file" {
			out = append(out, sourcePath(r, local.Source))
		}
	}
	return out
}

// linked returns the findings about an agent's mentions of other files, without findings
// about those files.
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

// guess reads the id and the delegations from a file that is not a valid agent, so that the
// affected agents are known. children is nil if the file does not show them.
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
		if source := item.Get("source"); source != nil && source.Kind == yamldoc.String &&
			fs.ValidPath(path.Join(path.Dir(r.file), source.Text)) {
			children = append(children, sourcePath(r, source.Text))
		}
	}

	return id, children
}

// stopping lists the findings that refuse a file, with their positions.
func stopping(findings []diag.Finding) []string {
	var out []string
	for _, f := range findings {
		if f.Stops {
			out = append(
				out,
				fmt.Sprintf(
					"%s:%d:%d: %s",
					f.File,
					max(f.Range.Start.Line, 1),
					max(f.Range.Start.Column, 1),
					f.Message,
				),
			)
		}
	}

	return out
}

// refuseDuplicates refuses files that share an id, because it is ambiguous. A file that had
// the id before keeps it. A file that took it goes back to its last good copy, which may
// have the id of a third one.
func (l *loader) refuseDuplicates() {
	for again := true; again; {
		again = false
		byID := map[string][]*member{}
		for _, name := range slices.Sorted(maps.Keys(l.members)) {
			if m := l.members[name]; m.id != "" {
				byID[m.id] = append(byID[m.id], m)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			again = l.refuseShared(id, byID[id]) || again
		}
	}
}

func (l *loader) refuseShared(id string, same []*member) (refused bool) {
	for _, m := range same {
		if len(same) == 1 || m.agent == nil || l.wasInForce(m) {
			continue
		}
		var why []string
		for _, other := range same {
			if other != m {
				why = append(
					why,
					fmt.Sprintf("%s: the id %s is also that of %s", m.root.path(), id, other.root.path()),
				)
			}
		}

		withheld := m.kept // its last good copy also has the id of another one
		l.refuse(m, why, m.edges)
		if withheld {
			m.agent, m.kept = nil, false
		}
		refused = true
	}

	return refused
}

// wasInForce reports whether a member's file decided about its agent before.
func (l *loader) wasInForce(m *member) bool {
	return l.keeps() && m.id != "" && l.before.paths[m.id] == m.root.path()
}

// loadPolicies reads the policies. If the directories don't hold a valid set, it keeps the
// previous policies.
func (l *loader) loadPolicies() {
	if l.choice.refused != nil {
		l.policies = ruleset{registry: policy.Refuse(l.choice.refused)}
		return
	}
	l.fetchedProblem()
	registry := snapshot(l.choice.from.Registry)
	fetched, sound := registry.(*policy.Set)
	if registry != nil && (!sound || fetched.Err() != nil) {
		l.policies = ruleset{registry: registry}
		return
	}
	dirs := l.choice.from.Policies
	set, errs, why := l.readPolicies(dirs, fetched)
	if len(why) == 0 {
		l.policies = ruleset{registry: set, count: len(set.Policies()), errors: l.graded(errs)}
		if len(dirs) > 0 || fetched != nil {
			l.policies.digest = digestOf(l.policyTexts(dirs, fetched))
		}
		return
	}

	before := l.before.policies
	kept := l.keeps() && before.registry != nil && before.registry.Err() == nil
	if l.policies = (ruleset{registry: set}); kept {
		l.policies = before
	}
	l.problem(Problem{Part: Policies, File: strings.Join(dirs, ", "), Why: why, Kept: kept})
}

// fetchedProblem records a problem if a registry is unavailable: either nothing of it may
// be used, or its last good copy is used.
func (l *loader) fetchedProblem() {
	registry, ok := l.choice.from.Registry.(Fetched)
	if !ok {
		return
	}
	if err := registry.Err(); err != nil {
		l.problem(Problem{
			Part: Policies,
			File: "the policy registry",
			Why:  []string{err.Error()},
		})
		return
	}

	if f := stale(registry); f != nil {
		l.problem(Problem{
			Part: Policies,
			File: f.File,
			Why:  []string{f.Message},
			Kept: true,
		})
	}
}

// readPolicies makes one set of all directories and the fetched policies, and returns the
// errors that leave it usable. If that fails, it returns a set that denies every call, and
// the reasons.
func (l *loader) readPolicies(
	dirs []string, fetched *policy.Set,
) (set *policy.Set, usable []diag.Finding, why []string) {
	var all []*policy.Policy
	if fetched != nil {
		all = fetched.Policies()
	}
	for _, dir := range dirs {
		set, findings := policy.LoadFS(l.rules.below(dir), dir)
		if set.Err() != nil {
			return policy.Refuse(findings), nil, stopping(findings)
		}
		usable = append(usable, usableErrors(findings)...)
		all = append(all, set.Policies()...)
	}

	set, findings := policy.NewSet(all...)
	return set, usable, stopping(findings)
}

// graded removes the error about approval by timeout if the owner allows that.
func (l *loader) graded(findings []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(findings, func(f diag.Finding) bool {
		return l.choice.options.AllowTimeoutApprove && f.Rule == policy.RuleTimeoutApproves
	})
}

// policyTexts returns the digests of all policy files by directory, and of fetched policies
// by their refs.
func (l *loader) policyTexts(dirs []string, fetched *policy.Set) []map[string]sum {
	out := make([]map[string]sum, len(dirs))
	for i, dir := range dirs {
		out[i] = l.rules.texts(dir)
	}
	if fetched != nil {
		refs := map[string]sum{}
		for _, p := range fetched.Policies() {
			refs[p.Ref] = sum(p.Digest)
		}
		out = append(out, refs)
	}

	return out
}
