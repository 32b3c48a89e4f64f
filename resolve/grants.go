package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/policy"
)

// Standing says what standing approvals of a target may leave open, as the runtime's owner declares
// it. It changes no decision: a call asks as before, and only a standing approval that people gave
// can cover more calls.
type Standing struct {
	// Target is named as in Options.CaseSensitive.
	Target string `doc:"target"`
	// Ignored lists the arguments that do not change what a call does, such as a description for
	// people. People see them and the binding covers them, but a standing approval does not compare
	// them if they are texts, null or missing.
	Ignored []string `doc:"ignored"`
	// Bounds are the arguments that an approver may let vary if the agent's own file asks, in the same
	// way as the bounds of a policy. A policy that asks allows only what it names itself.
	Bounds []policy.Bound `doc:"bounds"`
}

// CheckStanding returns what is wrong with an entry, and the field concerned with the index in its
// list. derived are the entries of the same configuration: an argument from which facts are read
// acts, so it can't be ignored.
func CheckStanding(s Standing, derived []Derived) (field string, i int, err error) {
	if _, err := parsePlace(s.Target); err != nil {
		return "target", 0, err
	}
	acting := []string{}
	for j := range derived {
		if d := &derived[j]; d.Target == s.Target {
			acting = append(append(acting, d.Paths...), d.From, d.Directory)
		}
	}
	for i, name := range s.Ignored {
		switch {
		case name == "":
			return "ignored", i, errors.New("an argument has a name")
		case slices.ContainsFunc(acting, func(a string) bool { return strings.EqualFold(a, name) }):
			return "ignored", i, fmt.Errorf("%q acts: derived reads facts from it", name)
		}
	}
	for i, b := range s.Bounds {
		anything := b.Kind == policy.Prefix || b.Kind == policy.AnyText
		switch {
		case slices.Contains(s.Ignored, b.Path):
			return "bounds", i, fmt.Errorf("%q is ignored, so it needs no bound", b.Path)
		case anything && slices.ContainsFunc(acting, func(a string) bool { return strings.EqualFold(a, b.Path) }):
			return "bounds", i, fmt.Errorf("%s for %q would cover what derived reads facts from: use words, below or equals",
				b.Kind, b.Path)
		}
	}

	return "", 0, nil
}

// standings reads Options.Grants. A parent must have each entry too.
func standings(opt Options) (map[place]*Standing, error) {
	all := make(map[place]*Standing, len(opt.Grants))
	for i := range opt.Grants {
		s := &opt.Grants[i]
		if _, _, err := CheckStanding(*s, opt.Derived); err != nil {
			return nil, fmt.Errorf("grants: %w", err)
		}
		at, _ := parsePlace(s.Target) // it was read before
		if all[at] != nil {
			return nil, fmt.Errorf("grants: %q stands twice", s.Target)
		}
		if above := opt.Parent; above == nil || above.standings[at] != nil && above.standings[at].text() == s.text() {
			all[at] = s
		}
	}

	return all, nil
}

// text returns the whole meaning of an entry, for a digest.
func (s *Standing) text() string {
	bounds := make([]string, len(s.Bounds))
	for i, b := range s.Bounds {
		bounds[i] = fmt.Sprintf("%q %s", b.Path, b.Kind)
	}

	return fmt.Sprintf("ignored %q bounds %q", sorted(s.Ignored), sorted(bounds))
}

// requirement returns the requirement of rules in agents' files about the target: nil, or the bounds
// that the owner lets approvers choose.
func (s *Standing) requirement() *policy.Require {
	if s == nil || len(s.Bounds) == 0 {
		return nil
	}
	r := policy.Require{Grants: policy.Grants{Bounds: s.Bounds}}.Join(policy.Require{})

	return &r
}

// Ignored returns the arguments of a call that standing approvals do not compare, sorted.
func (p *Plan) Ignored(c *Call) []string {
	t := p.find(c)
	if t == nil || t.standing == nil || len(t.standing.Ignored) == 0 {
		return nil
	}

	return sorted(t.standing.Ignored)
}
