package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Registry resolves the policies that agents name and lists the
// implicit ones.
type Registry interface {
	// Policy returns the policy of that ref.
	Policy(ref string) (*Policy, bool)
	// Implicit lists the implicit policies, ordered by ref.
	Implicit() []*Policy
	// Err returns an error if the registry can't be read. Every call is then denied.
	Err() error
}

// Set is a registry in memory. It is immutable and safe for concurrent use.
type Set struct {
	byRef map[string]*Policy
	all   []*Policy // ordered by ref
	err   error
}

// RefusedError is the reason why a registry was refused; a registry is all or nothing
// (docs/contracts/policy.md).
type RefusedError struct {
	Findings []diag.Finding // those that refused it, at least one
}

// Error names the first finding and says how many follow.
func (e *RefusedError) Error() string {
	text := "policy registry refused: "
	if at := place(e.Findings[0].File, e.Findings[0].Range); at != "" {
		text += at + ": "
	}
	text += e.Findings[0].Message
	if more := len(e.Findings) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// NewSet builds a registry from policies. It never returns nil. If a policy_ref occurs twice, or a
// policy is nil because it could not be parsed, the findings say so and the set is refused, see
// Refuse.
func NewSet(policies ...*Policy) (*Set, []diag.Finding) {
	s := &Set{byRef: make(map[string]*Policy, len(policies))}
	var findings []diag.Finding
	for _, p := range policies {
		switch first := s.byRef[refOf(p)]; {
		case p == nil:
			findings = append(
				findings,
				yamldoc.Stop(
					ruleUnreadable,
					diag.Range{},
					"a policy could not be read",
					"a policy without errors",
				),
			)
		case first != nil:
			findings = append(findings, duplicateRef(first, p))
		default:
			s.byRef[p.Ref] = p
		}
	}

	if len(findings) > 0 {
		return Refuse(findings), findings
	}
	for _, ref := range slices.Sorted(maps.Keys(s.byRef)) {
		s.all = append(s.all, s.byRef[ref])
	}
	return s, nil
}

// Refuse returns a registry without policies that denies every call, because of the findings. Its
// error omits the findings that don't stop a load.
func Refuse(findings []diag.Finding) *Set {
	reasons := slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool { return !f.Stops })
	if len(reasons) == 0 {
		reasons = []diag.Finding{
			yamldoc.Stop(ruleUnreadable, diag.Range{}, "no reason was given", ""),
		}
	}
	return &Set{err: &RefusedError{Findings: reasons}}
}

func refOf(p *Policy) string {
	if p == nil {
		return ""
	}
	return p.Ref
}

func duplicateRef(first, second *Policy) diag.Finding {
	f := yamldoc.Stop(ruleDuplicateRef, second.Range,
		fmt.Sprintf("policy_ref %q stands twice (first in %s)", second.Ref, place(first.File, first.Range)),
		"a policy_ref of its own for every policy of the registry")
	f.File = second.File
	f.Related = []diag.Related{{
		File:    first.File,
		Range:   first.Range,
		Message: "first used here",
	}}
	return f
}

// place writes file:line:column, or as much of it as is known.
func place(file string, r diag.Range) string {
	if r.Start.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, r.Start.Line, r.Start.Column)
}

// Policy returns the policy of that ref.
func (s *Set) Policy(ref string) (*Policy, bool) {
	p, ok := s.byRef[ref]
	return p, ok
}

// Policies lists all policies, ordered by ref.
func (s *Set) Policies() []*Policy { return slices.Clone(s.all) }

// Implicit lists the implicit policies, ordered by ref.
func (s *Set) Implicit() []*Policy {
	return slices.DeleteFunc(s.Policies(), func(p *Policy) bool { return p.Applies != Implicit })
}

// Err returns a *RefusedError when the registry was refused.
func (s *Set) Err() error { return s.err }
