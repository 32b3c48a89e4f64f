package inbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// request is a request as lists show it.
type request struct {
	ID, Rules  string
	Agent      string
	Target     string  // with its kind: "tool wire"
	Name       string  // without its kind: "wire"
	Kind       string  // the kind in words
	Summary    summary // the call's values
	Principal  string
	Unknown    bool // the directory does not contain the principal
	State      approval.State
	StateWords string
	Message    string
	From       string // the writer of the message
	Hidden     bool   // the message could repeat values that a policy hides
	Created    time.Time
	Deadline   time.Time
	Pending    bool
	Stages     []stage
	Short      string // stages that can't be filled; empty if the quorum can be met
	Hints      []hint
	Question   *question // nil for the approval of a call
	Say, Seat  bool      // what the visitor may do: deny or answer; approve
	Fills      bool      // their approval would fill an empty seat; for a question, their answer would count
	Why        string    // why they may not or need not approve
	Brief      bool      // too large; only the data of the list is shown
	Mine       string    // the visitor's answer to the current revision
	Missing    string    // who must still approve
	AnyOf      []string  // lists of alternatives, in words; Stages are those that lack the fewest people
	NeedReason string    // what the reason of an approval must be; empty if it needs none
	By         string    // who caused the state, and their reason
	Reason     string
}

// Title describes in one line of plain text what the call does.
func (c request) Title() string {
	if c.Question != nil && c.Question.Alone != "" {
		return safetext.Inspect(c.Question.Alone, safetext.Form{}).Spoken()
	}
	if c.Question != nil {
		return "question of " + safetext.Inspect(c.Question.Asker, safetext.Form{}).Spoken() + " about " +
			safetext.Inspect(c.Name, safetext.Form{}).Spoken()
	}

	return strings.TrimSpace(safetext.Inspect(c.Name, safetext.Form{}).Spoken() + " " + c.Summary.Spoken())
}

// Approvable reports whether the visitor gets the option to approve: the request is pending, and
// their approval would count.
func (c request) Approvable() bool { return c.Pending && c.Seat && c.Fills && c.Mine == "" }

// Batchable reports whether the request may be answered together with others. A request with a
// grave hint must be answered alone.
func (c request) Batchable() bool {
	return c.Approvable() && c.Question == nil &&
		!slices.ContainsFunc(c.Hints, func(h hint) bool { return h.Grave })
}

// Graves returns the hints that lists must show.
func (c request) Graves() []hint {
	return slices.DeleteFunc(slices.Clone(c.Hints), func(h hint) bool { return !h.Grave && !h.Listed })
}

// stage is one stage, with the people who have approved and those who may.
type stage struct {
	Group   string
	Needed  int
	Seated  []string
	Missing int
	Could   string // names of members who may still approve
	Nobody  bool   // a seat is empty, and no person may fill it now
}

// hint is a fact that needs special attention.
type hint struct {
	Grave  bool
	Listed bool // also shown in lists
	Text   string
}

func grave(text string) hint { return hint{Grave: true, Text: text} }

func listed(text string) hint { return hint{Listed: true, Text: text} }

// listPieces limits the text that is inspected for the hints of all requests on one page.
const listPieces = 20_000

// outline returns a request for a list. Its hints cover the arguments and the tool's texts as far
// as the budget allows, and say so if they don't cover everything.
func (v *visit) outline(r *approval.Request) (request, error) {
	cur := r.Current()
	c := request{
		ID:         r.ID,
		Rules:      approval.Summarize(r).Rules,
		Agent:      r.Agent.ID,
		Target:     cur.Call.Target(),
		Name:       name(&cur.Call),
		Kind:       kindWords(&cur.Call),
		Summary:    summarize(&cur.Call, r.Arguments()),
		Principal:  r.Requester.Principal,
		Unknown:    r.Requester.Unknown,
		State:      r.State,
		StateWords: stateWords(r),
		Message:    cur.Decision.Message,
		From:       messageFrom(cur),
		Hidden:     len(r.Redact) > 0,
		Created:    r.Created,
		Deadline:   r.Deadline,
		Pending:    r.State == approval.Pending,
		Hints:      hints(r, v.looks),
		Reason:     r.Reason,
		AnyOf:      r.Alternatives(),
		NeedReason: r.NeedsReason.String(),
		Question:   v.questionBrief(r),
	}
	c.By = v.called(r.By)
	var err error
	if r.Question == nil {
		if c.Stages, err = v.stages(r); err != nil {
			return c, err
		}
		c.Missing = missing(c.Stages)
	}

	shortages, err := v.Service.Shortages(v.ctx(), r)
	if err != nil {
		return c, err
	}
	c.Short = approval.ShortageWords(shortages)
	e, err := v.Service.Eligible(v.ctx(), r, v.Person.ID)
	if err != nil {
		return c, err
	}
	c.Mine = saidBy(r, v.Person.ID)
	c.Say = e.Answer
	c.Seat = e.Approve
	c.Fills = e.Waiting
	c.Why = whyNot(e, c.Pending && c.Mine == "")

	return c, nil
}

// saidBy returns what a person has answered to the current revision, as a verb: "approved". It
// returns an empty string if they have not answered.
func saidBy(r *approval.Request, person string) string {
	words := map[approval.Verdict]string{
		approval.Approve: "approved",
		approval.Deny:    "denied",
		approval.Respond: "answered",
		approval.Choose:  "answered",
		approval.Dismiss: "dismissed",
	}
	out := ""
	for _, x := range r.Votes {
		if x.Person == person && (r.Counts(&x) || x.Late && x.Revision == r.Current().Number) {
			out = words[x.Verdict]
		}
	}

	return out
}

// messageFrom describes who wrote the message. The values in a message come from the call, so they
// are the agent's.
func messageFrom(rev *approval.Revision) string {
	const values = " The values in it come from the call, so they are the agent’s."
	switch rev.MessageFrom {
	case resolve.FromAgent, resolve.FromServer:
		return "By the author of the agent’s file, not checked by anybody." + values
	case resolve.FromPolicy:
		return "By the author of a policy." + values
	case resolve.FromDefault:
		return "Made by assent from the call, since no rule has a message: its values are the agent’s."
	}

	return "By the author of a rule, or made by assent from the call." + values
}

// whyNot returns why the visitor may not approve or answer, or an empty string if they may. open is
// set if the request is pending and the visitor has not answered.
func whyNot(e approval.Eligibility, open bool) string {
	switch {
	case e.Approve && !e.Waiting && open:
		return "Your approval is not needed: the seats that you may fill are taken. You can still deny it."
	case e.Approve:
		return ""
	case e.Answer:
		return "You were called in to look: you may deny it or answer, but approvals must come from the groups below."
	}

	return "You may not answer this: " + ofYou(e.Why) + "."
}

// ofYou returns the reason why the visitor may not answer, addressed to them.
func ofYou(why string) string {
	return cmp.Or(map[string]string{
		approval.WhyUnknown:   "the directory does not know you",
		approval.WhyNotAsked:  "you are in none of the groups that are asked",
		approval.WhyOwner:     "you own the agent",
		approval.WhyPrincipal: "the agent acts for you",
		approval.WhyTokens:    "the token that asks is yours",
		approval.WhyToken:     "you are the one who asks",
	}[why], why)
}

func (v *visit) stages(r *approval.Request) ([]stage, error) {
	views, err := v.Service.Stages(v.ctx(), r)
	if err != nil {
		return nil, err
	}
	out := make([]stage, len(views))
	for i, x := range views {
		out[i] = stage{
			Group:   x.Group,
			Needed:  x.Needed,
			Missing: x.Missing,
			Could:   names(x.Could),
		}
		for _, id := range x.Seated {
			out[i].Seated = append(out[i].Seated, v.called(id))
		}
		out[i].Nobody = x.Missing > 0 && r.State == approval.Pending && len(x.Could) == 0
	}

	return out, nil
}

// missing describes whose approvals are still needed. It returns an empty string if none are.
func missing(stages []stage) string {
	var words []string
	for _, s := range stages {
		switch {
		case s.Missing <= 0:
		case s.Could == "":
			words = append(words, seatsOf(s.Missing, s.Group)+" (nobody may fill it now)")
		default:
			words = append(words, seatsOf(s.Missing, s.Group)+" ("+s.Could+" may)")
		}
	}

	return strings.Join(words, ", ")
}

// names lists people, but only the first few of many.
func names(people []approval.Person) string {
	const most = 6
	all := make([]string, len(people))
	for i, p := range people {
		all[i] = cmp.Or(p.Name, p.ID)
	}
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " and " + safetext.Count(len(all)-most) + " more"
	}

	return strings.Join(all, ", ")
}

// hints returns the hints about a request. They only depend on facts that the binding covers.
func hints(r *approval.Request, b *budget) []hint {
	var out []hint
	add := func(h hint, when bool) {
		if when {
			out = append(out, h)
		}
	}
	cur := r.Current()
	add(
		grave("Runs unless somebody denies it"),
		r.State == approval.Pending && r.OnTimeout == policy.TimeoutApprove,
	)
	destructive, said := annotation(cur, "destructiveHint")
	add(listed("Declared destructive"), destructive && said)
	add(hint{Text: "Not declared safe"}, destructive && !said && cur.Call.Kind == resolve.MCPTool)
	flags, all := flagsOf(&cur.Call, b)
	add(grave("Hidden characters in the arguments"), flags.Hides())
	add(grave("Look-alike characters in the arguments"), flags.Deceives())
	if r.Question != nil {
		words := wordsOf(r.Question, b)
		add(grave("Hidden characters in the tool’s words"), words.Hides())
		add(grave("Look-alike characters in the tool’s words"), words.Deceives())
	}
	add(listed("Unknown person: "+r.Requester.Principal), r.Requester.Unknown)
	add(
		hint{Text: "Long arguments: " + safetext.Count(len(cur.Call.Args)) + " bytes"},
		len(cur.Call.Args) > largest,
	)
	add(listed("Not all of it was looked through for hidden and look-alike characters"), !all || b.spent())
	unknown := func(x resolve.Reason) bool { return x.Code == resolve.ConditionUnknown }
	add(
		hint{Text: "A condition could not be told true or false"},
		slices.ContainsFunc(cur.Decision.Reasons, unknown),
	)
	add(listed("Edited by "+cur.Author), cur.Number > 0)
	add(listed("Some values are hidden by policy"), len(r.Redact) > 0)
	add(listed("Escalated to "+strings.Join(r.Called, ", ")), len(r.Called) > 0)

	return out
}

// flagsOf returns the problems in the arguments and the parent's input. all is false if it did not
// inspect everything.
func flagsOf(c *resolve.Call, b *budget) (found safetext.Flags, all bool) {
	found, all = safetext.Flags{}, true
	for _, text := range []string{string(c.Args), string(c.ParentInput)} {
		if len(text) > largest || b.spent() {
			all = false
			continue
		}
		found.Add(inspectDocument("", text, policy.Redaction{}, false, b).Flags)
	}

	return found, all
}

// annotation returns a hint about the tool, and reports whether the server gave it.
func annotation(rev *approval.Revision, name string) (value, said bool) {
	value, said = rev.Call.Annotations[name]
	if !said {
		value, _ = policy.DefaultHint(name)
	}
	return value, said
}
