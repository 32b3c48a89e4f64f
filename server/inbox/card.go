package inbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// card is a request as lists show it.
type card struct {
	ID, Rules  string
	Agent      string
	Target     string
	Principal  string
	State      approval.State
	StateWords string
	Message    string
	Hidden     bool // the message could repeat what policy hides
	Created    time.Time
	Deadline   time.Time
	Pending    bool
	Stages     []stage
	Short      string // what nobody can fill; "" when the quorum can be met
	Hints      []hint
	Question   *question // nil for the approval of a call
	Say, Seat  bool      // what the visitor may do: say no or answer; approve
	Why        string    // they may not
	Mine       string    // what the visitor has said to the current revision
	By         string    // who brought the state about, and their words
	Reason     string
}

// stage is one stage with who has approved and who could.
type stage struct {
	Group    string
	Needed   int
	Seated   []string
	Missing  int
	Could    string // names of members who may still approve
	Nobody   bool   // the seat is free, and nobody may take it now
	StandIns string // groups that may stand in, and from when on
}

// hint is something to look at twice.
type hint struct {
	Grave bool
	Text  string
}

func (v *visit) card(r *approval.Request) (card, error) {
	cur := r.Current()
	c := card{
		ID: r.ID, Rules: approval.Summarize(r).Rules, Agent: r.Agent.ID, Target: cur.Call.Target(), Principal: r.Requester.Principal,
		State: r.State, StateWords: stateWords(r), Message: cur.Decision.Message, Hidden: len(r.Redact) > 0, Created: r.Created,
		Deadline: r.Deadline, Pending: r.State == approval.Pending, Hints: hints(r), Reason: r.Reason, Question: v.question(r, briefPrompt),
	}
	if r.By != "" {
		c.By = v.called(r.By)
	}
	var err error
	if r.Question == nil {
		if c.Stages, err = v.stages(r); err != nil {
			return c, err
		}
	}
	if c.Short, err = v.short(r); err != nil {
		return c, err
	}
	e, err := v.Service.Eligible(v.ctx(), r, v.Person.ID)
	if err != nil {
		return c, err
	}
	c.Say, c.Seat, c.Why = e.Answer, e.Approve, whyNot(e)
	for _, x := range r.Votes {
		if x.Person == v.Person.ID && x.Revision == cur.Number {
			c.Mine = map[approval.Verdict]string{approval.Approve: "approved", approval.Deny: "denied", approval.Respond: "answered", approval.Choose: "answered", approval.Dismiss: "dismissed"}[x.Verdict]
		}
	}
	return c, nil
}

// whyNot says why the visitor may not approve, or may not answer at all; "" when they may.
func whyNot(e approval.Eligibility) string {
	switch {
	case e.Approve:
		return ""
	case e.Answer:
		return "You were called in: you may deny or answer, but approvals must come from the groups below."
	}

	return "You are not eligible to answer this: " + e.Why + "."
}

func (v *visit) stages(r *approval.Request) ([]stage, error) {
	views, err := v.Service.Stages(v.ctx(), r)
	if err != nil {
		return nil, err
	}
	out := make([]stage, len(views))
	for i, x := range views {
		out[i] = stage{Group: x.Group, Needed: x.Needed, Missing: x.Missing, Could: names(x.Could), StandIns: standIns(r, x.StandIns)}
		for _, id := range x.Seated {
			out[i].Seated = append(out[i].Seated, v.called(id))
		}
		out[i].Nobody = x.Missing > 0 && r.State == approval.Pending && len(x.Could) == 0
	}

	return out, nil
}

// names lists people, the first few of many.
func names(people []approval.Person) string {
	const most = 6
	all := make([]string, len(people))
	for i, p := range people {
		all[i] = cmp.Or(p.Name, p.ID)
	}
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " and " + count(len(all)-most) + " more"
	}

	return strings.Join(all, ", ")
}

// standIns says who may stand in for a stage, and from when on.
func standIns(r *approval.Request, all []policy.StandIn) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = s.Group + " from " + r.Created.Add(s.After).UTC().Format("15:04 UTC")
	}

	return strings.Join(words, ", ")
}

// short says which stages nobody can fill, whoever answers; "" when all can be filled.
func (v *visit) short(r *approval.Request) (string, error) {
	shortages, err := v.Service.Shortages(v.ctx(), r)
	if err != nil {
		return "", err
	}
	words := make([]string, len(shortages))
	for i, s := range shortages {
		words[i] = count(s.Need) + " of " + cmp.Or(s.Group, "all approvers") + ", of whom only " + count(s.Have) + " may answer this"
	}

	return strings.Join(words, "; "), nil
}

// hints are what to look at twice, from the bound facts alone.
func hints(r *approval.Request) []hint {
	var out []hint
	add := func(grave, when bool, text string) {
		if when {
			out = append(out, hint{grave, text})
		}
	}
	cur := r.Current()
	add(true, r.State == approval.Pending && r.OnTimeout == policy.TimeoutApprove, "Runs unless somebody denies it")
	destructive, said := annotation(cur, "destructiveHint")
	add(true, destructive && said, "Tool is marked destructive")
	add(false, destructive && !said && cur.Call.Kind == resolve.MCPTool, "Tool does not say that it isn't destructive")
	flags := inspectDocument("", cur.Call.Args, nil, false).Flags
	add(true, flags["bidi"] || flags["tag"] || flags["invisible"] || flags["control"] || flags["invalid"], "Hidden characters in the arguments")
	add(true, flags["alike"] || flags["mixed"] || flags["digits"], "Look-alike characters in the arguments")
	if r.Question != nil {
		words := wordsOf(r.Question)
		add(true, words["bidi"] || words["tag"] || words["invisible"] || words["control"] || words["invalid"], "Hidden characters in the tool’s words")
		add(true, words["alike"] || words["mixed"] || words["digits"], "Look-alike characters in the tool’s words")
	}
	add(false, len(cur.Call.Args) > largest, "Long arguments: "+count(len(cur.Call.Args))+" bytes")
	add(false, slices.ContainsFunc(cur.Decision.Reasons, func(x resolve.Reason) bool { return x.Code == resolve.ConditionUnknown }), "A condition could not be told true or false")
	add(false, cur.Number > 0, "Edited by "+cur.Author)
	add(false, len(r.Redact) > 0, "Some values are hidden by policy")
	add(false, len(r.Called) > 0, "Escalated to "+strings.Join(r.Called, ", "))
	return out
}

// annotation reads a hint of the tool, and whether its server gave it.
func annotation(rev *approval.Revision, name string) (value, said bool) {
	value, said = rev.Call.Annotations[name]
	if !said {
		value, _ = policy.DefaultHint(name)
	}
	return value, said
}
