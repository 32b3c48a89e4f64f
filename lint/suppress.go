package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// A suppression is a comment on the line where a finding starts, or alone on the line above it:
//
//	# agf-validate: ignore RULE[, RULE] -- reason
//
// The reason is required, because later readers of the file must know why a warning was overruled.
// Findings that stop the load and timeout-approves can't be silenced.
const (
	marker = "agf-validate"
	form   = "# agf-validate: ignore RULE[, RULE] -- reason"
)

// suppression is one comment, well formed or not.
type suppression struct {
	line   int // the line that it speaks for
	at     diag.Range
	rules  []string
	used   []bool // by rule
	reason string
	flaw   string
	near   string // nearest rule to one that does not exist
}

// silence applies the suppressions of one file.
type silence struct {
	linter   *Linter
	pass     *Pass
	comments []*suppression
}

// apply removes silenced findings, and adds findings about suppressions that are malformed or have
// no effect.
func (s *silence) apply(
	doc *yamldoc.Document, findings []diag.Finding,
) (kept []diag.Finding, silenced []diag.Suppressed) {
	if s.read(doc); len(s.comments) == 0 {
		return findings, nil
	}
	for _, f := range findings {
		if c := s.silencer(f); c != nil {
			silenced = append(silenced, diag.Suppressed{Finding: f, Reason: c.reason})
		} else {
			kept = append(kept, f)
		}
	}

	for _, c := range s.comments {
		kept = append(kept, s.about(c, doc.File)...)
	}
	return kept, silenced
}

// silencer returns the comment that silences a finding, or nil if there is none.
func (s *silence) silencer(f diag.Finding) *suppression {
	for _, c := range s.comments {
		i := slices.Index(c.rules, f.Rule)
		if c.flaw != "" || i < 0 || c.line != f.Range.Start.Line {
			continue
		}
		if f.Stops {
			c.flaw = f.Rule + " stops the load here, which can't be silenced"
			return nil
		}
		c.used[i] = true
		return c
	}

	return nil
}

// about returns what is wrong with a comment.
func (s *silence) about(c *suppression, file string) []diag.Finding {
	if c.flaw != "" {
		return []diag.Finding{{
			Rule:     suppressionInvalid,
			Severity: diag.Error,
			File:     file,
			Range:    c.at,
			Message:  c.flaw,
			Expected: form,
			Nearest:  c.near,
		}}
	}

	var idle []string
	for i, id := range c.rules {
		if !c.used[i] && s.couldRun(id) {
			idle = append(idle, id)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return []diag.Finding{{
		Rule:     suppressionUnused,
		Severity: diag.Info,
		File:     file,
		Range:    c.at,
		Message: fmt.Sprintf(
			"nothing to silence: %s reports nothing in line %d",
			strings.Join(idle, ", "),
			c.line,
		),
		Expected: "no comment, or one on the line of the finding or alone above it",
	}}
}

// couldRun reports whether a rule could report findings in this run: it may be off, some rules need
// the registry, the sub-agents, the other agents or the people, and no rule sees all of a broken
// file.
func (s *silence) couldRun(id string) bool {
	switch {
	case s.linter.opt.Config.off(id), s.pass.partial:
		return false
	case id == ruleUnresolved, id == ruleAdvisoryMissing, id == ruleSelectorOverridden:
		return s.pass.Registry != nil
	case schema.IsGraphRule(id):
		return s.pass.Graph != nil
	}

	r := s.linter.rule(id)
	return r == nil || s.pass.serves(r)
}

func (l *Linter) rule(id string) *Rule {
	i := slices.IndexFunc(l.rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &l.rules[i]
}

// read finds the suppressions among the comments. A comment that is alone on its line applies to
// the next line that is not just a comment.
func (s *silence) read(doc *yamldoc.Document) {
	alone := map[int]bool{}
	for _, c := range doc.Comments {
		alone[c.Line] = alone[c.Line] || c.Alone
	}
	for _, c := range doc.Comments {
		rest, ok := strings.CutPrefix(strings.TrimSpace(c.Text), marker)
		if !ok {
			continue
		}
		sup := &suppression{line: c.Line, at: c.Range}
		for alone[sup.line] {
			sup.line++
		}
		s.parse(sup, rest)
		s.comments = append(s.comments, sup)
	}
}

// parse reads ": ignore RULE[, RULE] -- reason" and records mistakes in it.
func (s *silence) parse(c *suppression, text string) {
	names, ok := strings.CutPrefix(strings.TrimLeft(text, " "), ":")
	if !ok {
		c.flaw = "a suppression starts with `agf-validate:`"
		return
	}
	if names, ok = strings.CutPrefix(strings.TrimSpace(names)+" ", "ignore "); !ok {
		c.flaw = "a suppression says `ignore` after `agf-validate:`"
		return
	}
	names, reason, _ := strings.Cut(names, "--")
	if c.reason = strings.TrimSpace(reason); c.reason == "" {
		c.flaw = "a suppression needs a reason after `--`"
		return
	}
	for _, name := range strings.Split(names, ",") {
		if id := strings.TrimSpace(name); c.flaw == "" {
			s.add(c, id)
		}
	}
	c.used = make([]bool, len(c.rules))
}

// add adds one rule to a suppression.
func (s *silence) add(c *suppression, id string) {
	c.rules = append(c.rules, id)
	if _, ok := s.linter.infos[id]; !ok {
		c.flaw, c.near = fmt.Sprintf("no rule is called %q", id), diag.Nearest(id, s.linter.ids())
		return
	}
	if id == timeoutApproves {
		c.flaw = id + " can't be silenced by a comment"
	}
}

func (l *Linter) ids() []string {
	var all []string
	for _, info := range Infos(l.rules) {
		all = append(all, info.ID)
	}
	return all
}

// timeoutApproves is a rule of package policy. It can't be silenced, because only the owner may
// decide that a missing answer counts as consent (docs/contracts/policy.md).
const timeoutApproves = "timeout-approves"

// Silenceable reports whether a comment can silence findings of the
// rule, as far as they don't stop the load.
func Silenceable(id string) bool {
	return id != timeoutApproves && id != suppressionInvalid && id != suppressionUnused && id != configInvalid
}
