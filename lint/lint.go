// Package lint checks agents and policies: first whether they are valid, then the authoring rules,
// one file each under lint/rules. It reads bytes and returns findings; the caller handles files,
// streams and flags.
//
// A Linter has the rules and options of a run, and its Workers lint one file after the other. The
// findings of a file are processed in three steps: the owner's Config changes the severities of
// rules, comments in the file silence single findings with a reason, and the rest is sorted.
// Nothing silences a finding that stops the load.
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
	Agent  func(*Pass) // nil if the rule doesn't check agents
	Policy func(*Pass) // nil if the rule doesn't check policies
	// NeedsGraph rules compare an agent with its sub-agents: they run
	// when those could be read.
	NeedsGraph bool
	// NeedsPolicies rules look at the policies that apply to an agent. They run if policies were
	// given.
	NeedsPolicies bool
	// NeedsFleet rules compare a policy with all agents of the run:
	// they run when there are any.
	NeedsFleet bool
	// NeedsPeople rules look at the members of the groups that policies name. They run if a
	// directory was given.
	NeedsPeople bool
	// NeedsTools rules compare files with the tools that are offered. They run if catalogues were
	// given.
	NeedsTools bool
	// Replaces names a more general rule of validity. Its finding at the same position is removed,
	// so that one mistake is one finding.
	Replaces string
}

// Options are the choices for a run.
type Options struct {
	// Strict makes unknown fields errors (Agent Format, schema
	// overview, rule 3).
	Strict bool
	// Config is the owner's configuration. It may be nil.
	Config *Config
	// Registry contains the policies that agents may name. If it is nil, references are not
	// checked.
	Registry policy.Registry
	// Unread lists the policy_refs of broken policies. References to them are not checked. An empty
	// entry is a policy whose policy_ref can't be read either.
	Unread []string
	// Fleet contains all agents of the run. It is nil if policies are checked without agents.
	Fleet *Fleet
	// People lists the members of the groups that policies name. It is nil if no directory was
	// given.
	People People
	// Catalogs list the tools that are offered. It is nil if none were given.
	Catalogs Catalogs
	// Semantics are the readings of silent points with which conditions are analysed.
	Semantics resolve.Semantics
	// Owner holds the owner's other choices, for plans. With
	// AllowTimeoutApprove, approval by timeout is a warning, since the
	// owner wants it.
	Owner resolve.Options
}

// People answers questions about the groups that policies name, from a directory.
type People interface {
	// Groups lists the groups that have a member, and those that the directory lists.
	Groups() []string
	// Lists reports whether the directory lists a group itself, so that
	// sign-ins may bring more people into it.
	Lists(group string) bool
	// Short returns, for each stage that can't be filled, by its group, how many people are
	// available to it in addition to those for all other stages. Owners of the agent, by the
	// directory or by the label "owner", are not counted. With an empty agent id no one is
	// excluded.
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

// Worker lints one file after the other. Workers of one linter may run concurrently, but a single
// worker may not be used concurrently.
type Worker struct {
	linter    *Linter
	analyzers map[condition.Use]*condition.Analyzer
}

// Worker returns a new worker.
func (l *Linter) Worker() *Worker {
	return &Worker{linter: l, analyzers: map[condition.Use]*condition.Analyzer{}}
}

// maxStates limits the automata for one question. Beyond it the answer is "undecided" and nothing
// is reported.
const maxStates = 20_000

func (w *Worker) analyzer(use condition.Use) *condition.Analyzer {
	a := w.analyzers[use]
	if a == nil {
		a = condition.NewAnalyzer(use, w.linter.opt.Semantics.Conditions, maxStates)
		w.analyzers[use] = a
	}
	return a
}

// Agent lints one agent file. With files, its sub-agents are read too; findings inside them are
// reported when they are linted themselves.
func (w *Worker) Agent(file string, src []byte, files *Files) diag.Report {
	return w.agent(file, src, files, 0)
}

// agent lints an agent that is preceded in the file by a number of documents.
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

// Other returns a report of findings about other files than agents and policies, with the run's
// configuration applied.
func (l *Linter) Other(file string, findings []diag.Finding) diag.Report {
	diag.Stamp(findings, file)
	r := diag.Report{File: file, Findings: l.opt.Config.apply(findings)}
	diag.Sort(r.Findings)
	return r
}

// Policy lints one policy file.
func (w *Worker) Policy(file string, src []byte) diag.Report { return w.policy(file, src, 0) }

// policy is the equivalent of agent for a policy.
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

// run runs every rule whose inputs are available and returns all findings, including those of
// validity.
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

// serves reports whether the pass has the inputs that a rule needs. A partly broken file is not
// compared with others, because the broken part might have made a difference.
func (p *Pass) serves(r *Rule) bool {
	if p.partial && (r.NeedsFleet || r.NeedsPolicies || r.NeedsTools) {
		return false
	}
	return (p.Graph != nil || !r.NeedsGraph) && (p.Fleet != nil || !r.NeedsFleet) &&
		(p.Registry != nil || !r.NeedsPolicies) &&
		(p.People != nil || !r.NeedsPeople) &&
		(len(p.Catalogs()) > 0 || !r.NeedsTools)
}

// replace removes the findings that a reported finding of a more specific rule replaces: those at
// its position or at a related one.
func (p *Pass) replace(by diag.Finding) {
	p.found = slices.DeleteFunc(p.found, func(f diag.Finding) bool {
		return f.Rule == p.rule.Replaces && !f.Stops && (f.Range.Start == by.Range.Start ||
			slices.ContainsFunc(by.Related, func(r diag.Related) bool { return r.Range.Start == f.Range.Start }))
	})
}

// report applies strictness, configuration and suppressions, and sorts the findings. Document and
// pass are nil if the file did not load.
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
