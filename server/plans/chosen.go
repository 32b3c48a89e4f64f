package plans

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Decisions is a decision configuration, decisions.yaml, which is kept
// fresh as the files of agents are. A changed one is in force once all
// that it names can be used: its directories hold a sound set, and its
// registry has answered. Until then the one before decides, whole: the
// choices of one never stand beside the policies of another.
type Decisions struct {
	File string
	// Open says where the policies are that a configuration names. It
	// is asked at every load, and returns the same registry for the
	// same configuration; one that is new has been asked once by then.
	// An error names the field that can't be used.
	Open func(*resolve.Config) (Sources, error)
	// Retain is told after every load which registries are in use; nil:
	// nobody is.
	Retain func([]policy.Registry)
}

// Sources are where policies come from.
type Sources struct {
	Policies []string        // directories of *.policy.yaml
	Registry policy.Registry // beside them, see Fetched; nil: none
}

// choice is what decisions rest on beside agents and policies.
type choice struct {
	config  *resolve.Config // nil: there is no decision configuration
	from    Sources
	options resolve.Options
	refused []diag.Finding // every call is denied for these
}

// watched is a registry as a load saw it.
type watched struct {
	registry policy.Registry
	seen     string
}

// choose reads the decision configuration, and keeps the one that was
// in force when it can't be used as it stands.
func (l *loader) choose() {
	if l.cfg.Decisions == nil {
		l.choice = &choice{from: Sources{l.cfg.Policies, l.cfg.Registry}, options: l.cfg.Options}
		l.watch(l.choice)

		return
	}

	before := l.before.choice
	next, found, why := l.readChoice()
	l.watch(next)
	if next != nil && before != nil && l.keeps() && next.config.Digest() != before.config.Digest() {
		why = l.unready(next)
	}
	if len(why) == 0 {
		l.choice = next
		return
	}

	l.problem(Problem{
		Part: Configuration,
		File: l.cfg.Decisions.File,
		Why:  why,
		Kept: before != nil && l.keeps(),
	})
	switch {
	case before == nil:
		l.choice = &choice{refused: found}
	case l.keeps():
		l.choice = before
		l.watch(before)
	default:
		l.choice = &choice{config: before.config, refused: found}
	}
}

// watch notes how the registry of a choice stands, before anything of
// it is read.
func (l *loader) watch(c *choice) {
	if c != nil && c.from.Registry != nil {
		l.watched = append(l.watched, watched{c.from.Registry, seen(c.from.Registry)})
	}
}

// readChoice reads the file, and opens what it names; nil when that
// can't be, with the reasons.
func (l *loader) readChoice() (*choice, []diag.Finding, []string) {
	file := l.cfg.Decisions.File
	refuse := func(text string) (*choice, []diag.Finding, []string) {
		return nil, []diag.Finding{{
			Rule:     "config-invalid",
			Severity: diag.Error,
			Stops:    true,
			File:     file,
			Message:  text,
		}}, []string{text}
	}
	src, _, err := l.agents.text(file)
	if err != nil {
		return refuse(unreadable(file, err))
	}
	config, findings := resolve.ParseConfig(file, src)
	if config == nil {
		return nil, findings, stopping(findings)
	}
	from, err := l.cfg.Decisions.Open(config)
	if err != nil {
		return refuse(err.Error())
	}

	options := config.Options()
	options.Limits = l.cfg.Options.Limits
	options.TrustValues = l.cfg.Options.TrustValues

	return &choice{config: config, from: from, options: options}, findings, nil
}

// unready says what a changed configuration names that can't be used
// yet.
func (l *loader) unready(next *choice) []string {
	if r := next.from.Registry; r != nil && r.Err() != nil {
		return []string{fmt.Sprintf("%s: registry: %v", l.cfg.Decisions.File, r.Err())}
	}
	set, _ := snapshot(next.from.Registry).(*policy.Set)
	_, _, why := l.readPolicies(next.from.Policies, set)

	return why
}

// Chosen returns the decision configuration that is in force; nil: none
// is. Nobody changes it.
func (p *Plans) Chosen() *resolve.Config { return p.current().choice.config }

// Registry returns the policy registry that is in force; nil: none is.
func (p *Plans) Registry() policy.Registry { return p.current().choice.from.Registry }

// retain tells which registries are in use after a load.
func (p *Plans) retain() {
	if p.cfg.Decisions == nil || p.cfg.Decisions.Retain == nil {
		return
	}
	var used []policy.Registry
	for _, w := range p.watched {
		used = append(used, w.registry)
	}
	p.cfg.Decisions.Retain(used)
}
