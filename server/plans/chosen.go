package plans

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Decisions is a decision configuration, decisions.yaml, which is reloaded like the files
// of agents. A changed configuration takes effect when everything that it names can be
// used: its directories hold a valid set, and its registry has answered. Until then the
// previous one stays in force as a whole: the choices of one are never combined with the
// policies of another.
type Decisions struct {
	File string
	// Open returns the sources of the policies that a configuration names. It is called at
	// every load, and must return the same registry for the same configuration. A new
	// registry must have been asked once before Open returns. An error names the field that
	// can't be used.
	Open func(*resolve.Config) (Sources, error)
	// Retain is called after every load with the registries in use. It may be nil.
	Retain func([]policy.Registry)
}

// Sources are the sources of policies.
type Sources struct {
	Policies []string        // directories of *.policy.yaml
	Registry policy.Registry // in addition to the directories, see Fetched; may be nil
}

// choice is everything that decisions depend on in addition to agents and policies.
type choice struct {
	config  *resolve.Config // nil if there is no decision configuration
	from    Sources
	options resolve.Options
	refused []diag.Finding // every call is denied for these
}

// watched is a registry and its state at a load.
type watched struct {
	registry policy.Registry
	seen     string
}

// choose reads the decision configuration. It keeps the previous one if the new one can't
// be used.
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

// watch records the state of a choice's registry, before anything is read from it.
func (l *loader) watch(c *choice) {
	if c != nil && c.from.Registry != nil {
		l.watched = append(l.watched, watched{c.from.Registry, seen(c.from.Registry)})
	}
}

// readChoice reads the file and opens what it names. It returns nil and the reasons if that
// fails.
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

// unready returns what a changed configuration names and can't be used yet.
func (l *loader) unready(next *choice) []string {
	if r := next.from.Registry; r != nil && r.Err() != nil {
		return []string{fmt.Sprintf("%s: registry: %v", l.cfg.Decisions.File, r.Err())}
	}
	set, _ := snapshot(next.from.Registry).(*policy.Set)
	_, _, why := l.readPolicies(next.from.Policies, set)

	return why
}

// Chosen returns the decision configuration in force, or nil if there is none. Callers must
// not change it.
func (p *Plans) Chosen() *resolve.Config { return p.current().choice.config }

// Registry returns the policy registry in force, or nil if there is none.
func (p *Plans) Registry() policy.Registry { return p.current().choice.from.Registry }

// retain passes the registries in use to Decisions.Retain after a load.
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
