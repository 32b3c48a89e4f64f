package schema

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Graph is an agent with the local sub-agents that its files name,
// loaded and linked. It may hold cycles, which are reported.
type Graph struct {
	Root    *Member
	Members []*Member // root first, then in the order of first mention; each file once
}

// Member is one file of a graph.
type Member struct {
	Path     string // slash-separated, within the file system
	Agent    *Agent
	Children []Edge // local agents of source type file, in source order
}

// Edge is a parent's reference to a sub-agent.
type Edge struct {
	Alias string
	Range diag.Range // of the source value
	To    *Member
}

const (
	sourceFile = "file"
	maxDepth   = 16      // files below files; a longer chain is taken for a mistake
	maxFile    = 4 << 20 // bytes; as much as yamldoc reads, one more is read to see that there is more
)

var (
	errFolder    = errors.New("it is a folder")
	errIrregular = errors.New("it is no regular file")
)

// LoadGraph reads root and, file by file, the sub-agents of source type
// file that it reaches. Sources are slash-separated, relative to the
// file that names them, and can't leave fsys. A chain of more than 16
// files below the root stops the load, as do files that are missing or
// unreadable (docs/design/001-semantics.md); cycles are reported. The
// graph is nil exactly when some finding stops the load. Findings carry
// their files.
func LoadGraph(fsys fs.FS, root string) (*Graph, []diag.Finding) {
	l := loader{fsys: fsys}
	src, err := l.read(path.Clean(root))
	if err != nil {
		return nil, []diag.Finding{{
			Rule:     ruleUnreadable,
			Severity: diag.Error,
			Stops:    true,
			File:     root,
			Message:  "the agent file can't be read: " + reason(err),
			Expected: "a file that exists and is readable",
		}}
	}

	agent, findings := Parse(path.Clean(root), src)
	if agent == nil {
		return nil, findings
	}
	graph, linked := agent.LoadGraph(fsys, root)
	return graph, append(findings, linked...)
}

// LoadGraph is like the function LoadGraph, for an agent that was parsed already from the file root
// in fsys. It does not repeat the findings of that file alone.
func (a *Agent) LoadGraph(fsys fs.FS, root string) (*Graph, []diag.Finding) {
	l := loader{
		fsys:   fsys,
		graph:  &Graph{},
		byPath: map[string]*Member{},
	}
	l.graph.Root = l.link(path.Clean(root), a)
	l.depths()
	if yamldoc.Stops(l.findings) {
		return nil, l.findings
	}
	return l.graph, l.findings
}

// loader reads files depth first. chain contains the paths from the root to the current file.
type loader struct {
	fsys     fs.FS
	graph    *Graph
	byPath   map[string]*Member
	chain    []string
	findings []diag.Finding
}

func (l *loader) add(fs ...diag.Finding) { l.findings = append(l.findings, fs...) }

// load parses one file and everything below it.
func (l *loader) load(file string, src []byte) *Member {
	agent, findings := Parse(file, src)
	l.add(findings...)
	return l.link(file, agent)
}

// link makes the member of a file and follows what it mentions.
func (l *loader) link(file string, agent *Agent) *Member {
	m := &Member{Path: file, Agent: agent}
	l.byPath[file] = m
	l.graph.Members = append(l.graph.Members, m)
	if agent == nil {
		return m
	}
	l.chain = append(l.chain, file)
	for _, local := range agent.ActionSpace.LocalAgents {
		l.child(m, local)
	}
	l.chain = l.chain[:len(l.chain)-1]
	return m
}

// child follows one mention of a sub-agent.
func (l *loader) child(from *Member, local LocalAgent) {
	if local.SourceType != sourceFile {
		return // resolved elsewhere: by a registry, a database or the runtime
	}
	file, problem := resolveSource(from.Path, local.Source)
	to := l.byPath[file]
	switch {
	case problem != nil:
		l.report(from, local, *problem)
		return
	case slices.Contains(l.chain, file):
		l.report(from, local, l.cycle(file))
	case to == nil:
		to = l.open(from, local, file)
	}

	if to != nil {
		from.Children = append(from.Children, Edge{
			Alias: local.Alias,
			Range: local.SourceRange,
			To:    to,
		})
	}
}

// open parses a file that has not been read before. It returns nil if the file can't be read.
func (l *loader) open(from *Member, local LocalAgent, file string) *Member {
	if len(l.chain) > maxDepth {
		l.report(from, local, yamldoc.Stop(
			ruleTooDeep,
			diag.Range{},
			fmt.Sprintf("more than %d sub-agents below each other", maxDepth),
			"a flatter tree of agents",
		))
		return nil
	}

	src, err := l.read(file)
	if err != nil {
		l.report(from, local, l.missing(local.Source, file, err))
		return nil
	}
	return l.load(file, src)
}

// report adds a finding about a mention of a sub-agent.
func (l *loader) report(from *Member, local LocalAgent, f diag.Finding) {
	f.File, f.Range = from.Path, local.SourceRange
	l.add(f)
}

// resolveSource turns a source into a path within the file system.
func resolveSource(from, source string) (string, *diag.Finding) {
	file := path.Join(path.Dir(from), source)
	var wrong, expected string
	switch {
	case path.IsAbs(source), strings.ContainsRune(source, '\\'), strings.Contains(source, "://"):
		wrong = "is not a relative path"
		expected = "a path relative to this file with forward slashes, such as ./agents/researcher.agf.yaml"
	case !fs.ValidPath(file):
		wrong, expected = "leads out of the folder that is checked", "a path that stays inside it"
	default:
		return file, nil
	}

	f := yamldoc.Stop(ruleOutside, diag.Range{}, fmt.Sprintf("source %q %s", source, wrong), expected)
	return "", &f
}

// cycle describes the cycle from the file back to itself. A cycle does not stop the load, because
// the depth of delegation at run time is limited elsewhere.
func (l *loader) cycle(file string) diag.Finding {
	ring := append(slices.Clone(l.chain[slices.Index(l.chain, file):]), file)
	return yamldoc.Fail(
		ruleCycle,
		diag.Range{},
		"the agents delegate in a circle: "+strings.Join(ring, " → "),
		"sub-agents that do not lead back to their parents",
	)
}

func (l *loader) missing(source, file string, err error) diag.Finding {
	f := yamldoc.Stop(
		ruleMissingAgent,
		diag.Range{},
		fmt.Sprintf("the sub-agent's file %q can't be read: %s", source, reason(err)),
		"a file at this path, relative to the file that names it",
	)
	if entries, err := fs.ReadDir(l.fsys, path.Dir(file)); err == nil {
		names := collect(entries, func(e fs.DirEntry) string { return e.Name() })
		f.Nearest = diag.Nearest(path.Base(file), names)
	}
	return f
}

// reason returns the reason why a file can't be read, without its path.
func reason(err error) string {
	var pathError *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.As(err, &pathError):
		return pathError.Err.Error()
	default:
		return err.Error()
	}
}

// read returns the file's content. If it is too large, it returns one byte more than Parse accepts,
// so that Parse refuses it.
func (l *loader) read(file string) ([]byte, error) {
	info, err := fs.Stat(l.fsys, file) // before it is opened: a named pipe without a writer would hold us there
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}

	f, err := l.fsys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written, so closing has nothing to say
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return src, nil
}

// depths compares each agent's max_delegation_depth with the agents below it.
func (l *loader) depths() {
	h := heights{}
	for _, m := range l.graph.Members {
		if m.Agent == nil || m.Agent.Constraints.Limits.MaxDelegationDepth == nil {
			continue
		}
		limit, depth := *m.Agent.Constraints.Limits.MaxDelegationDepth, h.of(m)
		if depth > limit {
			f := yamldoc.Warn(
				ruleDelegationDepth,
				m.Agent.Doc.Root.Get("constraints").Get("limits").Field("max_delegation_depth").Key.Range,
				fmt.Sprintf("max_delegation_depth is %d, but the agents below are %d deep", limit, depth),
				fmt.Sprintf("%d, or fewer agents below each other", depth),
			)
			f.File = m.Path
			l.add(f)
		}
	}
}

// heights counts the delegations below each member. A delegation that closes a cycle doesn't count.
type heights map[*Member]int64

func (h heights) of(m *Member) int64 {
	if height, ok := h[m]; ok {
		return height
	}
	h[m] = 0 // while below is being counted: a cycle ends here
	var height int64
	if m.Agent != nil && m.Agent.delegatesBeyondFiles() {
		height = 1
	}
	for _, child := range m.Children {
		height = max(height, 1+h.of(child.To))
	}
	h[m] = height
	return height
}

// delegatesBeyondFiles reports whether the agent delegates to agents that are not in files.
func (a *Agent) delegatesBeyondFiles() bool {
	return len(a.ActionSpace.RemoteAgents) > 0 || slices.ContainsFunc(
		a.ActionSpace.LocalAgents,
		func(l LocalAgent) bool { return l.SourceType != sourceFile },
	)
}
