// Package lint checks agents and policies: first whether they are
// valid, then the authoring rules, one file each under lint/rules. It
// reads bytes and returns findings; files, streams and flags are the
// caller's.
//
// A Linter holds the rules and options of a run, its Workers lint one
// file after the other. What a file reports goes through three hands
// before it is returned: the owner's Config re-grades rules, comments
// in the file silence single findings and say why, and the rest is put
// in order. Nothing silences a finding that stops the load.
package lint

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Rule is one authoring rule. A rule looks at agents, at policies, or
// at both.
type Rule struct {
	diag.RuleInfo
	Agent  func(*Pass) // nil: has nothing to say about agents
	Policy func(*Pass) // nil: has nothing to say about policies
	// NeedsGraph rules compare an agent with its sub-agents: they run
	// when those could be read.
	NeedsGraph bool
	// NeedsPolicies rules look at the policies that apply to an agent:
	// they run when policies were given.
	NeedsPolicies bool
	// NeedsFleet rules compare a policy with all agents of the run:
	// they run when there are any.
	NeedsFleet bool
	// NeedsPeople rules look at who is in the groups that policies
	// name: they run when a directory was given.
	NeedsPeople bool
	// NeedsTools rules hold files against what tools are offered: they
	// run when catalogues were given.
	NeedsTools bool
	// Replaces names a more general rule of validity. Its finding at
	// the place of one of this rule's gives way, so that one mistake is
	// one finding.
	Replaces string
}

// Options are the choices for a run.
type Options struct {
	// Strict makes unknown fields errors (Agent Format, schema
	// overview, rule 3).
	Strict bool
	// Config is the owner's configuration; nil for none.
	Config *Config
	// Registry holds the policies that agents may name; nil when none
	// were given, and then nothing is said about references.
	Registry policy.Registry
	// Unread are the policy_refs of policies that were given and are
	// broken: nothing is said about references to them. "" is one whose
	// policy_ref can't be read either.
	Unread []string
	// Fleet holds all agents of the run; nil when policies are checked
	// without agents.
	Fleet *Fleet
	// People says who is in the groups that policies name; nil when no
	// directory was given.
	People People
	// Catalogs say which tools are offered; nil when none were given.
	Catalogs Catalogs
	// Semantics are the readings of silent points that conditions are
	// analysed under.
	Semantics resolve.Semantics
	// Owner holds the owner's other choices, for plans. With
	// AllowTimeoutApprove, approval by timeout is a warning, since the
	// owner wants it.
	Owner resolve.Options
}

// People is what a directory says about the groups that policies name.
type People interface {
	// Groups lists the groups that somebody is in, and those that the
	// directory lists.
	Groups() []string
	// Lists reports whether the directory lists a group itself, so that
	// sign-ins may bring more people into it.
	Lists(group string) bool
	// Short tells for each stage that can't be filled, by its group,
	// how many people there are for it beside all others. Who owns the
	// agent of an id, by the directory or by the label "owner", is not
	// counted; nobody is left out without an id.
	Short(stages []policy.Stage, agent, label string) map[string]int
}

// Linter holds the rules of a run. It is safe for concurrent use
// through its workers.
type Linter struct {
	rules []Rule
	opt   Options
	infos map[string]diag.RuleInfo
}

// New makes a linter of authoring rules; the rules of validity are always on.
func New(rules []Rule, opt Options) *Linter {
	l := &Linter{
		rules: rules,
		opt:   opt,
		infos: map[string]diag.RuleInfo{},
	}
	for _, info := range Infos(rules) {
		l.infos[info.ID] = info
	}
	return l
}

// Worker lints one file after the other. Workers of one linter may run
// at the same time, a single one may not.
type Worker struct {
	linter    *Linter
	analyzers map[condition.Use]*condition.Analyzer
}

// Worker returns a new worker.
func (l *Linter) Worker() *Worker {
	return &Worker{linter: l, analyzers: map[condition.Use]*condition.Analyzer{}}
}

// maxStates bounds the automata of one question; beyond it the answer
// is "undecided" and nothing is reported.
const maxStates = 20_000

func (w *Worker) analyzer(use condition.Use) *condition.Analyzer {
	a := w.analyzers[use]
	if a == nil {
		a = condition.NewAnalyzer(use, w.linter.opt.Semantics.Conditions, maxStates)
		w.analyzers[use] = a
	}
	return a
}

// Agent lints one agent file. With files its sub-agents are read too;
// what is wrong inside them is told when their own turn comes.
func (w *Worker) Agent(file string, src []byte, files *Files) diag.Report {
	return w.agent(file, src, files, 0)
}

// agent lints an agent before which a number of documents stand in the
// file.
func (w *Worker) agent(file string, src []byte, files *Files, before int) diag.Report {
	agent, found := schema.ParseParts(file, src)
	if agent == nil {
		return w.unread(file, src, files, found, before)
	}
	p := &Pass{
		Agent:    agent,
		Registry: w.linter.opt.Registry,
		file:     file,
		Fleet:    w.linter.opt.Fleet,
		People:   w.linter.opt.People,
		found:    found,
		left:     budget,
		worker:   w,
		partial:  yamldoc.Stops(found) || before > 0,
	}
	if files != nil && hasLinks(agent) {
		p.found = append(p.found, p.load(*files)...)
	}
	p.found = append(p.found, p.references()...)
	return w.report(file, agent.Doc, p, p.run())
}

// Other makes the report of findings that stand in no agent or policy,
// under the run's configuration.
func (l *Linter) Other(file string, findings []diag.Finding) diag.Report {
	diag.Stamp(findings, file)
	r := diag.Report{File: file, Findings: l.opt.Config.apply(findings)}
	diag.Sort(r.Findings)
	return r
}

// Policy lints one policy file.
func (w *Worker) Policy(file string, src []byte) diag.Report { return w.policy(file, src, 0) }

// policy is agent for a policy.
func (w *Worker) policy(file string, src []byte, before int) diag.Report {
	pol, found := policy.ParseParts(file, src)
	if pol == nil {
		return w.unread(file, src, nil, found, before)
	}
	opt := w.linter.opt
	p := &Pass{
		Policy:   pol,
		Registry: opt.Registry,
		Fleet:    opt.Fleet,
		People:   opt.People,
		file:     file,
		found:    found,
		left:     budget,
		worker:   w,
		partial:  yamldoc.Stops(found) || before > 0,
	}
	return w.report(file, pol.Doc, p, p.run())
}

// run runs every rule that has something to say and returns all
// findings, those of validity too.
func (p *Pass) run() []diag.Finding {
	for i := range p.worker.linter.rules {
		p.rule = &p.worker.linter.rules[i]
		check := p.rule.Agent
		if p.Policy != nil {
			check = p.rule.Policy
		}
		if check != nil && p.serves(p.rule) {
			check(p)
		}
	}

	return append(p.found, p.reports...)
}

// serves reports whether the pass has what a rule needs. What is left
// of a broken file is compared with no other: it may be the broken part
// that would have made the difference.
func (p *Pass) serves(r *Rule) bool {
	if p.partial && (r.NeedsFleet || r.NeedsPolicies || r.NeedsTools) {
		return false
	}
	return (p.Graph != nil || !r.NeedsGraph) && (p.Fleet != nil || !r.NeedsFleet) &&
		(p.Registry != nil || !r.NeedsPolicies) &&
		(p.People != nil || !r.NeedsPeople) &&
		(len(p.Catalogs()) > 0 || !r.NeedsTools)
}

// replace takes the findings out that a reported one of a more special
// rule stands for: those at its place or at a related one.
func (p *Pass) replace(by diag.Finding) {
	p.found = slices.DeleteFunc(p.found, func(f diag.Finding) bool {
		return f.Rule == p.rule.Replaces && !f.Stops && (f.Range.Start == by.Range.Start ||
			slices.ContainsFunc(by.Related, func(r diag.Related) bool { return r.Range.Start == f.Range.Start }))
	})
}

// report applies strictness, configuration and suppressions, and puts
// the findings in order. Document and pass are nil when the file did
// not load.
func (w *Worker) report(file string, doc *yamldoc.Document, p *Pass, findings []diag.Finding) diag.Report {
	diag.Stamp(findings, file)
	for i := range findings {
		if w.linter.opt.Strict && findings[i].Rule == schema.UnknownField {
			findings[i].Severity = diag.Error
		}
		if w.linter.opt.Owner.AllowTimeoutApprove && findings[i].Rule == timeoutApproves {
			findings[i].Severity = diag.Warning
		}
	}

	r := diag.Report{File: file, Findings: w.linter.opt.Config.apply(findings)}
	if doc != nil {
		s := silence{linter: w.linter, pass: p}
		r.Findings, r.Suppressed = s.apply(doc, r.Findings)
	}
	diag.Sort(r.Findings)
	return r
}
