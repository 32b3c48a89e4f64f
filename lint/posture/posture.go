// Package posture compares what two versions of an agent with its policies allow. It compares all
// calls, not a sample of them.
//
// A posture is the set of decisions of a plan (package resolve) for every possible call. Compare
// reports the calls whose outcome (allowed, asked about or denied) differs between the sides, each
// with an exact description in words and an example that both plans have decided. It also reports
// protection besides the outcome: who must approve, by when, what a grant may vary, what is hidden,
// lists, references and readings, each by the order that Aspects defines. Query answers a question
// about one plan, such as an invariant: is there a call like this with that outcome?
//
// A difference that can't be determined is Undecided, gives the reason, and counts as loosening.
// The package is pure: it uses no clock, network or disk.
package posture

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// Effect classifies a change: whether more or fewer calls are asked about or denied, or neither.
type Effect string

// These are the effects of a change. A change without an order, such as one group replaced by
// another, is Undecided too.
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

// These are the aspects of calls. Aspects returns the others.
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

// Position is the position of the rule that decides on one side.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Change is one difference between two sides (docs/contracts/diff.md).
type Change struct {
	// AgentID is the metadata.id of the agent that makes the calls.
	AgentID string `json:"agent_id"`
	// Kind is the kind of the calls, or "agent" if the change is about the agent as a whole.
	Kind   string `json:"kind"`
	Tool   string `json:"tool,omitempty"` // "*": every other one, Region says which
	Server string `json:"server,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Skill  string `json:"skill,omitempty"`
	Aspect string `json:"aspect"`
	Effect Effect `json:"effect"`
	From   string `json:"from"`
	To     string `json:"to"`
	// Region describes the calls. It is empty if the change is not about calls.
	Region string `json:"region,omitempty"`
	// Asks describes, for a change between ask and allow, the calls about which the new side
	// certainly asks. It may be empty.
	Asks string `json:"asks,omitempty"`
	// Witness is one of the calls, as `assent decide` takes it.
	Witness json.RawMessage `json:"witness,omitempty"`
	Old     *Position       `json:"old,omitempty"`
	New     *Position       `json:"new,omitempty"`
	// Below names the agents that delegate to this one and whose rules change its calls. It is
	// empty if its own rules do.
	Below string `json:"below,omitempty"`
	// Why is the reason why a change is undecided.
	Why string `json:"why,omitempty"`
	// Note describes a consequence of the change that its effect does not show.
	Note string `json:"note,omitempty"`

	region *condition.Region
	world  condition.Calls
	note   string        // what Region adds to the documents
	parent string        // whether they have a parent's input
	class  string        // which annotations they have
	odd    bool          // their arguments are no object
	edited []*EditedRule // the rules that cause the change, empty if none is known
}

// Report is the result of a comparison.
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
	// People lists who may answer. It is nil if that is not known. PeopleAt is the position in its
	// file.
	People   *people.Directory
	PeopleAt *Position
	// PermitAge is how long an allowed call may wait before it runs. It is 0 if no limit is set.
	PermitAge time.Duration
	// Offered lists the tools that each MCP server is known to offer, by the server's alias. If the
	// server has no allow-list, they are compared by name.
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
	// Sources maps roles to the locations within the side where the files were found.
	Sources map[string]string
	// Below is the plan of the agent combined with all agents that delegate to it, as a service
	// compiles it. Parents names these agents. Both are empty if there are none.
	Below   *resolve.Plan
	Parents string
}

// below returns the side with the plan that includes its parents.
func (s Side) below() *Side {
	if s.Below != nil {
		s.Plan = s.Below
	}
	return &s
}

// Compare returns the changes from one version of an agent to another. A nil side means that the
// agent doesn't exist there: none of its calls run.
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

// says reports whether two changes are equal apart from their witnesses and positions.
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

// onlyOne returns the change for an agent that only one side has.
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
