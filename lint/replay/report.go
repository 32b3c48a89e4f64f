package replay

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Report is the result of a replay. Its lists are sorted, so that the same records give the
// same report.
type Report struct {
	// Compared says what the new outcomes are compared with: "plans", "record", or "nothing" if
	// neither is available.
	Compared string `json:"compared"`
	Calls    int    `json:"calls"`
	Bad      int    `json:"bad"` // entries that could not be read and are not part of the figures
	Others   int    `json:"others"`
	Unasked  int    `json:"unasked"`
	// Denials is the number of calls that a person denied. DenialsUnasked is the number of
	// those for which no approval would be needed now.
	Denials        int `json:"denials"`
	DenialsUnasked int `json:"denials_unasked"`
	// listed calls of unasked and denials_unasked; may be limited by Options.List
	Listed    int       `json:"listed"`
	Matrix    Matrix    `json:"matrix"`
	Targets   []Target  `json:"targets"`
	Rules     []Rule    `json:"rules"`
	Groups    []Group   `json:"groups"`
	Questions Questions `json:"questions"`
	Inputs    []Input   `json:"inputs"`
}

// Input is one record that was read.
type Input struct {
	File   string `json:"file"`
	Form   Form   `json:"form"`
	Calls  int    `json:"calls"`
	Bad    int    `json:"bad"`
	Others int    `json:"others"` // entries that are not about a call of the agent
}

// live reports whether calls were compared while they were made.
func (r *Report) live() bool { return len(r.Inputs) > 0 && r.Inputs[0].Form == Traffic }

// Matrix counts calls by their old outcome, and for each by the new one.
type Matrix struct {
	Allow   Outcomes `json:"allow"`
	Ask     Outcomes `json:"ask"`
	Deny    Outcomes `json:"deny"`
	Unknown Outcomes `json:"unknown"` // calls without an old outcome
}

// Outcomes counts calls by their new outcome.
type Outcomes struct {
	Allow int `json:"allow"`
	Ask   int `json:"ask"`
	Deny  int `json:"deny"`
}

// Target is the matrix of one target.
type Target struct {
	Target string `json:"target"` // as in Call.Target; empty for all targets beyond the limit
	Calls  int    `json:"calls"`
	Matrix Matrix `json:"matrix"`
}

// Rule is the matrix of the calls to which a rule applied on either side.
type Rule struct {
	Source string `json:"source"` // empty for all rules beyond the limit
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Old    int    `json:"old"` // calls for which it required approval, or which it denied
	New    int    `json:"new"`
	Matrix Matrix `json:"matrix"`
}

// Group is the matrix of the calls about which a group of people is asked on either side.
type Group struct {
	Group  string `json:"group"` // empty for any approver
	Old    Rate   `json:"old"`
	New    Rate   `json:"new"`
	Matrix Matrix `json:"matrix"`
}

// Questions describes how often people are asked.
type Questions struct {
	From  string `json:"from,omitempty"` // first day with a call, UTC
	To    string `json:"to,omitempty"`
	Days  int    `json:"days"`  // from the first to the last, both included
	Timed int    `json:"timed"` // calls with a time
	Old   Rate   `json:"old"`
	New   Rate   `json:"new"`
}

// Rate is a number of questions.
type Rate struct {
	Total int `json:"total"`
	// PerDay is the average number per day of questions with a time, with one decimal. It is
	// empty if no call has a time. Most is the largest number on one day.
	PerDay string `json:"per_day,omitempty"`
	Most   int    `json:"most,omitempty"`
	timed  int
}

// add counts one call.
func (m *Matrix) add(e *entry) {
	row := &m.Unknown
	if e.known {
		row = []*Outcomes{
			resolve.Deny:  &m.Deny,
			resolve.Ask:   &m.Ask,
			resolve.Allow: &m.Allow,
		}[e.old]
	}

	switch e.new {
	case resolve.Allow:
		row.Allow++
	case resolve.Ask:
		row.Ask++
	default:
		row.Deny++
	}
}

// known reports whether any call was compared.
func (m *Matrix) known() bool {
	return m.Allow != Outcomes{} || m.Ask != Outcomes{} || m.Deny != Outcomes{}
}

func (r *Rate) finish(days int) {
	if days == 0 {
		return
	}
	tenths := (20*r.timed + days) / (2 * days)
	r.PerDay = strconv.Itoa(tenths/10) + "." + strconv.Itoa(tenths%10)
}

// report returns the figures.
func (t *tally) report() *Report {
	r := t.figures
	r.Inputs = t.inputs
	r.Questions = t.questions()
	r.Compared = "nothing"
	switch {
	case t.opt.Old != nil:
		r.Compared = "plans"
	case r.Matrix.known():
		r.Compared = "record"
	}

	r.Targets = []Target{}
	r.Rules = []Rule{}
	r.Groups = []Group{}
	for _, key := range slices.SortedFunc(maps.Keys(t.targets), targetKey.compare) {
		r.Targets = append(r.Targets, t.targets[key].Target)
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.rules), ruleKey.compare) {
		r.Rules = append(r.Rules, *t.rules[key])
	}
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		g := *t.groups[name]
		g.Old.finish(r.Questions.Days)
		g.New.finish(r.Questions.Days)
		r.Groups = append(r.Groups, g)
	}

	return &r
}

// questions summarizes the days.
func (t *tally) questions() Questions {
	q := t.figures.Questions
	if len(t.days) == 0 {
		return q
	}
	all := slices.Sorted(maps.Keys(t.days))
	first, last := all[0], all[len(all)-1]
	date := func(day int) string { return time.Unix(int64(day)*secondsOfDay, 0).UTC().Format(time.DateOnly) }
	q.From, q.To = date(first), date(last)
	q.Days = last - first + 1
	for _, d := range t.days {
		q.Old.Most, q.New.Most = max(q.Old.Most, d.old), max(q.New.Most, d.new)
	}
	q.Old.finish(q.Days)
	q.New.finish(q.Days)
	return q
}

const secondsOfDay = 24 * 60 * 60

// targetKey identifies the target of calls.
type targetKey struct {
	kind            resolve.Kind
	container, name string
	remote          resolve.Remote
}

func (a targetKey) compare(b targetKey) int {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.container, b.container),
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.remote, b.remote),
	)
}

func keyOf(c *resolve.Call) targetKey {
	switch c.Kind {
	case resolve.MCPTool:
		return targetKey{kind: c.Kind, container: c.Server, name: c.Tool}
	case resolve.Skill:
		return targetKey{kind: c.Kind, container: c.Agent, name: c.Skill}
	case resolve.Delegation:
		return targetKey{kind: c.Kind, name: c.Agent, remote: c.Remote}
	default:
		return targetKey{kind: c.Kind, name: c.Tool}
	}
}

// ruleKey identifies a rule in both plans and in the record.
type ruleKey struct {
	source       resolve.Source
	policy, rule string
}

// newRuleKey returns the key of a rule. Decisions of the action space have no rule, so their
// code is used instead.
func newRuleKey(source resolve.Source, policy, rule string, code resolve.Code) ruleKey {
	if source == resolve.FromActionSpace {
		if code == resolve.AskedUndeclared {
			code = resolve.NotDeclared
		}
		rule = string(code)
	}

	return ruleKey{source, policy, rule}
}

func (a ruleKey) compare(b ruleKey) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.policy, b.policy), cmp.Compare(a.rule, b.rule))
}
