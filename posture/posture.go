// Package posture compares what two versions of an agent with its
// policies let through: for all calls, not for a sample of them.
//
// A posture is what a plan (package resolve) makes of every call it can
// be given. Compare tells the calls that are allowed, asked about or
// denied on one side and not on the other, exactly and in words, each
// with a call that shows it and that both plans have decided before it
// is told. It also tells what protects besides the outcome: who must
// approve, by when, what a grant may vary, what is hidden, lists,
// references and readings, each by the order that Aspects writes down.
// Query asks about one plan what an invariant asks: is there a call
// like this with that outcome?
//
// What can't be told is Undecided, says why, and counts as loosening.
// The package is pure: no clock, no network, no disk.
package posture

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// Effect is what a change does to what is asked.
type Effect string

// The effects of a change. What can't be ordered, such as another group
// in the place of one, is Undecided too.
const (
	Tightens  Effect = "tightens"
	Loosens   Effect = "loosens"
	Changes   Effect = "changes" // nothing that protects: a message
	Undecided Effect = "undecided"
)

// Verdict sums up the changes of a report.
type Verdict string

// The verdicts. A report with changes of messages alone is Equivalent.
const (
	Equivalent       Verdict = "equivalent"
	VerdictTightens  Verdict = "tightens"
	VerdictLoosens   Verdict = "loosens"
	Mixed            Verdict = "mixed" // some changes tighten, others loosen
	VerdictUndecided Verdict = "undecided"
)

// The aspects of calls, beside those of Aspects.
const (
	outcomeAspect = "outcome" // allow is looser than ask is looser than deny
	messageAspect = "message"
	agentAspect   = "agent" // the agent is there
)

// everyOther is the name of targets that neither side names.
const everyOther = "*"

// Safe reports whether nothing that was asked or denied may now be
// let through: nothing loosens, and nothing is undecided.
func (v Verdict) Safe() bool { return v == Equivalent || v == VerdictTightens }

// Position is where the rule stands that decides on one side.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Change is one difference between two sides (docs/contracts/diff.md).
type Change struct {
	// AgentID is the metadata.id of the agent that makes the calls.
	AgentID string `json:"agent_id"`
	// Kind is the kind of the calls, or "agent" for what is about the
	// agent as a whole.
	Kind   string `json:"kind"`
	Tool   string `json:"tool,omitempty"` // "*": every other one, Region says which
	Server string `json:"server,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Skill  string `json:"skill,omitempty"`
	Aspect string `json:"aspect"`
	Effect Effect `json:"effect"`
	From   string `json:"from"`
	To     string `json:"to"`
	// Region says which calls, in words; "" for what is about no calls.
	Region string `json:"region,omitempty"`
	// Asks says of a change between ask and allow which calls the new
	// side asks about for certain, in words; "" for none.
	Asks string `json:"asks,omitempty"`
	// Witness is one of the calls, as `assent decide` takes it.
	Witness json.RawMessage `json:"witness,omitempty"`
	Old     *Position       `json:"old,omitempty"`
	New     *Position       `json:"new,omitempty"`
	// Below names the agents that delegate to this one, by whose rules
	// its calls change, "" where its own rules say it.
	Below string `json:"below,omitempty"`
	// Why says why a change is undecided.
	Why string `json:"why,omitempty"`
	// Note says what else a change does that its effect does not show.
	Note string `json:"note,omitempty"`

	region *condition.Region
	world  condition.Calls
	note   string        // what Region has to say beside the documents
	parent string        // whether they have a parent's input
	class  string        // which annotations they have
	odd    bool          // their arguments are no object
	edited []*EditedRule // the rules that cause the change, empty if none is known
}

// Report is what a comparison found.
type Report struct {
	Verdict Verdict  `json:"verdict"`
	Changes []Change `json:"changes"`
	// Edits groups the changes by what was edited, the most dangerous edit
	// first. Each change is in one of them, or in several if only together
	// they cause it.
	Edits []Edit `json:"edits"`
	// Compared lists the files that each side was read from.
	Compared *Compared `json:"compared,omitempty"`
}

// Compared lists the files that decide on each side, by name and in
// order.
type Compared struct {
	Old []string `json:"old"`
	New []string `json:"new"`
}

// NewReport sums up changes.
func NewReport(changes []Change) Report {
	return Report{
		Verdict: verdictOf(changes),
		Changes: append([]Change{}, changes...),
		Edits:   editsOf(changes),
	}
}

func verdictOf(changes []Change) Verdict {
	has := map[Effect]bool{}
	for i := range changes {
		has[changes[i].Effect] = true
	}
	switch {
	case has[Loosens] && has[Tightens]:
		return Mixed
	case has[Loosens]:
		return VerdictLoosens
	case has[Undecided]:
		return VerdictUndecided
	case has[Tightens]:
		return VerdictTightens
	}

	return Equivalent
}

// Suppression is a comment that silences a finding in a file.
type Suppression struct {
	File string
	Rule string
	At   Position
}

// Side is one version of an agent.
type Side struct {
	Plan *resolve.Plan
	// Suppressed are the comments in the agent's file, and in those of
	// its policies, that silence findings.
	Suppressed []Suppression
	// People is who may answer, nil when that is not known, and
	// PeopleAt the file that says so.
	People   *people.Directory
	PeopleAt *Position
	// PermitAge is how long an allowed call may wait before it runs; 0
	// where nobody says it.
	PermitAge time.Duration
	// Offered names the tools that each MCP server is known to offer, by its
	// alias. They are compared by name where the server has no allow-list.
	Offered map[string][]string
	// Config names the decisions.yaml that was read, empty if there is none.
	Config string
	// Files names every file that the side was read from.
	Files []string
	// PolicyRegistry is the address of the policy registry that the
	// configuration names, and RegistryKeep how long its last copy
	// decides while it can't be reached.
	PolicyRegistry string
	RegistryKeep   time.Duration
	// Sources says by role where the files were found within the side.
	Sources map[string]string
	// Below is the plan of the agent below all those that delegate to
	// it, as a service compiles it, and Parents names these; nil and ""
	// when nobody does.
	Below   *resolve.Plan
	Parents string
}

// below is the side of an agent under its parents.
func (s Side) below() *Side {
	if s.Below != nil {
		s.Plan = s.Below
	}
	return &s
}

// Compare tells the changes from one version of an agent to another. A
// nil side is an agent that is not there: none of its calls run.
func Compare(old, new *Side) []Change {
	if old == nil || new == nil {
		return onlyOne(old, new)
	}
	changes := compareAs(old, new)
	if old.Below == nil && new.Below == nil {
		return changes
	}
	known := slices.Clone(changes)
	for _, c := range compareAs(old.below(), new.below()) {
		if !slices.ContainsFunc(known, c.says) {
			c.Below = cmp.Or(new.Parents, old.Parents)
			changes = append(changes, c)
		}
	}

	slices.SortStableFunc(changes, byTarget)

	return changes
}

// says reports whether two changes say the same, whatever shows it.
func (c Change) says(o Change) bool {
	return c.Kind == o.Kind && c.Tool == o.Tool && c.Server == o.Server && c.Agent == o.Agent && c.Skill == o.Skill &&
		c.Aspect == o.Aspect && c.Effect == o.Effect && c.From == o.From && c.To == o.To && c.Region == o.Region
}

func newComparer(old, new *Side) *comparer {
	return &comparer{
		old:       *old,
		new:       *new,
		cmp:       condition.NewComparison(0),
		keys:      map[*condition.Expr]string{},
		templates: map[string]string{},
	}
}

// compareAs compares two plans of one agent.
func compareAs(old, new *Side) []Change {
	c := newComparer(old, new)
	c.frame()
	c.editedConfig()
	c.targets()
	c.fill()
	slices.SortStableFunc(c.changes, byTarget)

	return c.changes
}

// onlyOne is the change of an agent that one side alone has.
func onlyOne(old, new *Side) []Change {
	change := Change{
		Kind:   "agent",
		Aspect: agentAspect,
		Effect: Loosens,
		From:   "absent",
		To:     "present",
		Region: "every call that it may make",
	}
	there := new
	if there == nil {
		there = old
		change.Effect = Tightens
		change.From, change.To = change.To, change.From
	}
	if there == nil {
		return nil
	}
	agent := there.Plan.Agent()
	change.AgentID = agent.Metadata.ID
	at := &Position{File: agent.File, Line: 1, Column: 1}
	if new != nil {
		change.New = at
	} else {
		change.Old = at
	}

	return []Change{change}
}
