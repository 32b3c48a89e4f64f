package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/schema"
)

// Selector names the agents that an implicit policy governs
// (docs/contracts/policy.md). Every field that is given must match;
// inside a list one match is enough. All values are globs, see Glob.
type Selector struct {
	IDs                 []string          `doc:"ids"`
	Namespaces          []string          `doc:"namespaces"`
	DataClassifications []string          `doc:"data_classifications"`
	Labels              map[string]string `doc:"labels"` // every label must match
}

// Match reports whether the selector covers an agent. A nil or empty
// selector covers every agent. A field that the agent lacks reads as
// "", so only a lone `*` matches it: leaving metadata out doesn't dodge
// `*`.
func (s *Selector) Match(m *schema.Metadata) bool {
	if s == nil {
		return true
	}
	for key, pattern := range s.Labels {
		if !Glob(pattern, m.Labels[key]) {
			return false
		}
	}
	return anyGlob(s.IDs, m.ID) && anyGlob(s.Namespaces, m.Namespace) &&
		anyGlob(s.DataClassifications, m.DataClassification)
}

// Match names the calls that a rule meets (docs/contracts/policy.md).
// Every field that is given must match; inside a list one match is
// enough. The zero Match meets every call.
type Match struct {
	Kinds       []Kind          `doc:"kinds"`
	Targets     []string        `doc:"targets"`     // globs over tool, skill id or delegated agent alias
	Servers     []string        `doc:"servers"`     // globs over MCP server alias or remote agent alias
	Annotations map[string]bool `doc:"annotations"` // hints of the called tool, see Annotated
	ServerRefs  []string        `doc:"server_refs"` // globs over the server_ref of an MCP server
	Takes       []string        `doc:"takes"`       // names of arguments that the call has, all of them
	Except      *Except         `doc:"except"`      // nil: no call is taken out of the rule
}

// Except names calls that a rule does not meet although its Match has them. Every field that is
// given must match, with the meaning that it has in Match.
type Except struct {
	Kinds       []Kind          `doc:"kinds"`
	Targets     []string        `doc:"targets"`
	Servers     []string        `doc:"servers"`
	Annotations map[string]bool `doc:"annotations"`
	ServerRefs  []string        `doc:"server_refs"`
	Takes       []string        `doc:"takes"`
	Agents      *Selector       `doc:"agents"` // of the agent that makes the call
}

// Match returns the fields of the exception, except Agents, as a Match.
func (e *Except) Match() *Match {
	return &Match{
		Kinds:       e.Kinds,
		Targets:     e.Targets,
		Servers:     e.Servers,
		Annotations: e.Annotations,
		ServerRefs:  e.ServerRefs,
		Takes:       e.Takes,
	}
}

// Called is what a rule can match of a call when a plan is compiled.
type Called struct {
	Kind   Kind
	Target string // tool, skill or delegated agent
	// Server is the alias of the MCP server or of the remote agent. It is empty for local tools and
	// local agents.
	Server string
	// ServerRef is the server_ref of the MCP server in the file of the agent that makes the call.
	ServerRef string
}

// Target reports whether the rule can apply to a call: the part that is known when a plan is
// compiled. A rule with Servers never applies to local tools and local agents, and one with
// ServerRefs only to tools of MCP servers (docs/design/001-semantics.md). Except is not considered.
func (m *Match) Target(c Called) bool {
	if len(m.Kinds) > 0 && !slices.Contains(m.Kinds, c.Kind) {
		return false
	}
	if len(m.Servers) > 0 && c.Server == "" || len(m.ServerRefs) > 0 && c.Kind != MCPTool {
		return false
	}
	return anyGlob(m.Targets, c.Target) && anyGlob(m.Servers, c.Server) && anyGlob(m.ServerRefs, c.ServerRef)
}

// Annotated reports whether the rule matches a call whose server reported these hints. Only the
// call has them, so this is not part of compiling (docs/design/001-semantics.md). An absent hint
// has MCP's default. An absent annotation that MCP doesn't define counts as a match, because a rule
// can only add requirements. A hint of an untrusted server can make the rule match but not exempt
// the call: if it would exempt the call, it counts as absent.
func (m *Match) Annotated(reported map[string]bool, trusted bool) bool {
	for name, want := range m.Annotations {
		got, told := reported[name]
		if told && (trusted || got == want) {
			if got != want {
				return false
			}
			continue
		}

		if standard, known := DefaultHint(name); known && standard != want {
			return false
		}
	}

	return true
}

// Exempts reports whether a trusted call has all annotations of an exception. An absent hint has MCP's
// default. An absent annotation that MCP doesn't define exempts nothing, so that a misspelt one can't.
func (m *Match) Exempts(reported map[string]bool) bool {
	for name, want := range m.Annotations {
		got, told := reported[name]
		if !told {
			standard, known := DefaultHint(name)
			if !known {
				return false
			}
			got = standard
		}
		if got != want {
			return false
		}
	}

	return true
}

// DefaultHint returns MCP's default for a tool annotation that the server doesn't report. known is
// false for names that MCP doesn't define.
func DefaultHint(name string) (value, known bool) {
	switch name {
	case "destructiveHint", "openWorldHint":
		return true, true
	case "readOnlyHint", "idempotentHint":
		return false, true
	}

	return false, false
}

// Hints lists the annotation names that MCP defines.
func Hints() []string {
	return []string{"destructiveHint", "readOnlyHint", "idempotentHint", "openWorldHint"}
}

// anyGlob is true when no pattern is given or one of them matches.
func anyGlob(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return Glob(p, s) })
}

// Glob reports whether pattern matches all of s, case-sensitively. Only `*` is special: it matches
// any characters, or none (docs/design/001-semantics.md). Glob scans s once from left to right:
// choosing the leftmost position for every piece between two stars can't miss a match.
func Glob(pattern, s string) bool {
	piece, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, piece) {
		return false
	}
	s = s[len(piece):]
	for star {
		piece, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, piece)
		}
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}

	return s == ""
}
