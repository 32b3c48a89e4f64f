package lint

import (
	"io/fs"
	"path"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/schema"
)

// Files locates an agent's sub-agents: Path is the agent's own path in FS, which its sub-agents'
// paths can't leave.
type Files struct {
	FS   fs.FS
	Path string
}

// These are the two rules of the graph whose findings have to be moved to a position in the linted
// file.
const (
	ruleCycle   = "sub-agent-cycle"
	ruleTooDeep = "sub-agents-too-deep"
)

// hasLinks reports whether loading the graph may have findings: there are files to read, or
// delegation that a limit forbids.
func hasLinks(a *schema.Agent) bool {
	delegates := len(a.ActionSpace.LocalAgents)+len(a.ActionSpace.RemoteAgents) > 0
	return a.HasFileAgents() || delegates && a.Constraints.Limits.MaxDelegationDepth != nil
}

// load reads the sub-agents and returns the findings about this file's own links. The other
// findings are reported when the files that contain them are linted.
func (p *Pass) load(files Files) []diag.Finding {
	graph, findings := p.Agent.LoadGraph(files.FS, files.Path)
	p.Graph = graph
	p.prefix = strings.TrimSuffix(p.file, files.Path)
	if p.prefix == p.file { // the caller shows other names than the paths of its file system
		p.prefix = ""
	}
	var kept []diag.Finding
	for _, f := range findings {
		switch {
		case !schema.IsGraphRule(f.Rule), f.Rule == ruleCycle:
		case f.Rule == ruleTooDeep:
			kept = append(kept, p.tooDeep(f))
		case f.File == path.Clean(files.Path):
			f.File = p.file
			kept = append(kept, f)
		}
	}

	return append(kept, p.cycles()...)
}

// tooDeep moves a finding about the end of a chain to its top, because the chain is shorter when
// seen from the agents below.
func (p *Pass) tooDeep(f diag.Finding) diag.Finding {
	f.Related = append(f.Related, diag.Related{
		File:    p.prefix + f.File,
		Range:   f.Range,
		Message: "followed up to here",
	})
	f.File, f.Range = p.file, p.Agent.Doc.Root.Get("action_space").Field("local_agents").Key.Range
	return f
}

// cycles reports the links of the agent that lead back to it. Every agent in the cycle gets a
// finding for its own link, because each of them can break the cycle.
func (p *Pass) cycles() []diag.Finding {
	if p.Graph == nil {
		return nil
	}
	var found []diag.Finding
	for _, link := range p.Graph.Root.Children {
		ring := wayBack(link.To, p.Graph.Root, map[*schema.Member]bool{})
		if ring == nil {
			continue
		}
		found = append(found, diag.Finding{
			Rule:     ruleCycle,
			Severity: diag.Error,
			File:     p.file,
			Range:    link.Range,
			Message:  "the agents delegate in a circle: " + p.Graph.Root.Path + " → " + strings.Join(ring, " → "),
			Expected: "sub-agents that do not lead back to their parents",
		})
	}

	return found
}

// wayBack returns the paths from one member to another, or nil if there is no path.
func wayBack(from, to *schema.Member, seen map[*schema.Member]bool) []string {
	if from == to {
		return []string{to.Path}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, link := range from.Children {
		if rest := wayBack(link.To, to, seen); rest != nil {
			return append([]string{from.Path}, rest...)
		}
	}
	return nil
}
