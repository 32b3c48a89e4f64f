package inbox

import (
	"cmp"
	"errors"
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
	Group   string
	Needed  int
	Seated  []string
	Missing int
	Could   string // names of members who may still approve
	Nobody  bool   // the seat is free, and nobody may take it now
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
	barred, err := v.barred(r)
	if err != nil {
		return c, err
	}
	if r.Question == nil {
		c.Stages, err = v.stages(r, barred)
	}
	if err != nil {
		return c, err
	}
	c.Say, c.Seat, c.Why = v.may(r, barred)
	for _, x := range r.Votes {
		if x.Person == v.Person.ID && x.Revision == cur.Number {
			c.Mine = map[approval.Verdict]string{approval.Approve: "approved", approval.Deny: "denied", approval.Respond: "answered", approval.Choose: "answered", approval.Dismiss: "dismissed"}[x.Verdict]
		}
	}
	return c, nil
}

// barred says who may not vote, and why: those who ask, those for whom the agent acts, and its owners. The service has the last word;
// the page says beforehand what it will be.
func (v *visit) barred(r *approval.Request) (map[string]string, error) {
	out := map[string]string{}
	var err error
	bar := func(name, why string) {
		p, e := v.person(name)
		err = errors.Join(err, e)
		out[cmp.Or(p.ID, name)] = why
	}
	bar(r.Requester.Runtime, "you are the one who asks")
	if r.Question != nil && len(r.Question.Groups) == 0 { // the user may own the agent and its program: it is them that the tool asks
		return out, err
	}
	owners, e := v.Directory.Owners(v.ctx(), v.Tenant, r.Agent.ID)
	err = errors.Join(err, e)
	bar(r.Requester.Person, "your own token asks")
	bar(r.Requester.Principal, "the agent acts for you")
	for _, name := range r.Requester.Also {
		bar(name, "you are one of those who ask")
	}
	for _, name := range r.Requester.AlsoOf {
		bar(name, "your own token asks too")
	}
	for _, o := range slices.Concat(owners, r.Requester.Owners) {
		bar(o, "you own this agent")
	}
	return out, err
}

func (v *visit) may(r *approval.Request, barred map[string]string) (say, seat bool, why string) {
	if why, out := barred[v.Person.ID]; out {
		return false, false, "You have no say here: " + why + "."
	}
	if asksUser(r) {
		if p, err := v.person(r.Requester.Principal); err != nil || p.ID != v.Person.ID {
			return false, false, "You have no say here: the question is for the person whom the agent acts for."
		}
		return true, true, ""
	}
	seat = slices.ContainsFunc(r.Stages, func(s policy.Stage) bool { return v.Person.Holds(s.Group) })
	say = seat || slices.ContainsFunc(r.Called, v.Person.Holds)
	switch {
	case !say:
		why = "You have no say here: you are in none of the groups that are asked."
	case !seat:
		why = "You were called in: you may deny or answer, but approvals must come from the groups below."
	}
	return say, seat, why
}

func (v *visit) stages(r *approval.Request, barred map[string]string) ([]stage, error) {
	approvers, err := v.approvers(r, barred)
	if err != nil {
		return nil, err
	}
	seatings, _ := approval.Seat(r.Stages, approvers)
	out := make([]stage, len(seatings))
	for i, s := range seatings {
		out[i] = stage{Group: s.Group, Needed: len(s.People) + s.Missing, Missing: s.Missing}
		for _, id := range s.People {
			out[i].Seated = append(out[i].Seated, v.called(id))
		}
		if s.Missing > 0 && r.State == approval.Pending {
			if out[i].Could, err = v.could(s.Group, approvers, barred); err != nil {
				return nil, err
			}
			out[i].Nobody = out[i].Could == ""
		}
	}
	return out, nil
}

// approvers are the people whose approval of the current revision counts now.
func (v *visit) approvers(r *approval.Request, barred map[string]string) ([]approval.Person, error) {
	var out []approval.Person
	for _, x := range r.Votes {
		if x.Verdict != approval.Approve || x.Late || x.Revision != r.Current().Number {
			continue
		}
		p, err := v.person(x.Person)
		if err != nil {
			return nil, err
		}
		if _, out := barred[p.ID]; p.ID == "" || out {
			continue
		}
		out = append(out, p)
	}
	return out, nil
}

// could names members of a group who have not approved and may.
func (v *visit) could(group string, done []approval.Person, barred map[string]string) (string, error) {
	members, err := v.Directory.Members(v.ctx(), v.Tenant, group)
	if err != nil {
		return "", err
	}
	var names []string
	for _, m := range members {
		_, out := barred[m.ID]
		if out || slices.ContainsFunc(done, func(p approval.Person) bool { return p.ID == m.ID }) {
			continue
		}
		names = append(names, cmp.Or(m.Name, m.ID))
	}
	const most = 6
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + count(len(names)-most) + " more", nil
	}
	return strings.Join(names, ", "), nil
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
