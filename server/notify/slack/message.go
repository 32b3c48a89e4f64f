package slack

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify"
)

// The ids of the elements that are returned in interactions.
const (
	actionApprove = "assent_approve"
	actionDeny    = "assent_deny"
	actionOpen    = "assent_open"
)

// message is a request as blocks.
type message struct {
	text   string // for notifications and screen readers; contains nothing of the call
	blocks []slack.Block
	size   int  // total size of the sections' texts
	full   bool // the call is shown completely, so it may be approved here
}

const (
	maxTotal = 12_000 // of all sections: Slack rejects messages whose texts together are very long
	maxCall  = 3      // sections with the contents of the call
	maxFacts = 2      // sections with facts
)

// render shows the current state of a request. short lists stages that can't reach their
// quorum, if any. For private see renderQuestion.
func (a *App) render(r *approval.Request, short string, private bool) message {
	if r.Question != nil {
		return a.renderQuestion(r, private)
	}
	title := title(r.State)
	m := message{text: title + ": " + r.ID, full: a.cfg.Arguments}
	m.add(slack.NewHeaderBlock(plain(title)))
	m.lines(ending(r), 1)
	if short != "" {
		m.lines([]string{"Nobody can fill this quorum: " + short + ". It can only be denied, or expire."}, 1)
	}
	m.lines(facts(r), maxFacts)
	switch {
	case r.Pruned():
		m.say("What the call carried is no longer kept.")
	case a.cfg.Arguments:
		m.call(r)
	default:
		m.say("What the call carries is not shown in Slack. Read it in the inbox.")
	}

	m.add(a.buttons(r, m.full))
	return m
}

func (m *message) add(b slack.Block) { m.blocks = append(m.blocks, b) }

func (m *message) say(text string) {
	m.size += safetext.SlackLength(text)
	m.add(section(text))
}

// lines adds sections. If lines don't fit, it adds their number.
func (m *message) lines(lines []string, most int) {
	if left := m.pack(lines, most); left > 0 {
		m.say(fmt.Sprintf("%d further lines are in the inbox.", left))
	}
}

// pack adds up to most sections, and returns the number of lines that don't fit.
func (m *message) pack(lines []string, most int) (left int) {
	texts, left := pack(lines, most)
	for _, t := range texts {
		m.say(t)
	}
	return left
}

func title(s approval.State) string {
	switch s {
	case approval.Pending:
		return "Approval needed"
	case approval.Approved:
		return "Approved"
	case approval.Consumed:
		return "Approved and run"
	case approval.Denied:
		return "Denied"
	case approval.Expired:
		return "Expired"
	case approval.Answered:
		return "Answered"
	}

	return "Cancelled"
}

// ending describes who caused the state and when. It returns nothing for a pending request.
func ending(r *approval.Request) []string {
	var lines []string
	switch r.State {
	case approval.Pending:
		return nil
	case approval.Approved, approval.Consumed:
		by := listed(approvers(r), 10)
		if r.By == "" { // the request expired, and the owners of rules and runtime let a timeout approve
			by = "nobody, by timeout"
		}
		lines = append(lines, "Approved by "+by+at(r.Decided))
		if p := r.Permit; p != nil && p.Consumed != nil {
			lines = append(lines, "Run by "+short(p.By)+at(p.Consumed))
		}
	default:
		line := title(r.State)
		if r.By != "" {
			line += " by " + short(r.By)
		}
		lines = append(lines, line+at(cmp.Or(r.Closed, r.Decided))+" ("+short(string(r.Cause))+")")
	}

	if r.Reason != "" {
		reason, _ := safetext.CutSlack(r.Reason, 2*maxValue)
		lines = append(lines, "Their words: "+reason)
	}
	return lines
}

func approvers(r *approval.Request) []string {
	var out []string
	for _, v := range r.Votes {
		name := short(v.Person)
		if v.Verdict == approval.Approve && r.Counts(&v) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}

	return out
}

// listed returns up to most names, and the number of the others.
func listed(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func at(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " at " + clock(*t)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// facts returns the lines that are made from the record, never from texts of the author or the
// agent.
func facts(r *approval.Request) []string {
	rev := r.Current()
	lines := []string{"Agent: " + short(r.Agent.ID), "Wants to run: " + short(rev.Call.Target())}
	if r.Requester.Unknown {
		lines = append(
			lines,
			"For an unknown person: nobody is known by the name that follows, so one more person must agree",
		)
	}

	for _, f := range []struct{ name, value string }{
		{"For", r.Requester.Principal},
		{"Asked by", r.Requester.Runtime},
		{"And by", strings.Join(r.Requester.Also, ", ")},
		{"Session", r.Requester.Session},
	} {
		if f.value != "" {
			lines = append(lines, f.name+": "+short(f.value))
		}
	}

	lines = append(lines, because(rev.Decision.Reasons)...)
	if rev.Number > 0 {
		lines = append(lines, fmt.Sprintf("Edited by %s, revision %d", short(rev.Author), rev.Number))
	}
	lines = append(lines, needs(r))
	for _, c := range r.CallsIn() {
		text, _ := safetext.CutSlack(c.String(), 2*maxValue)
		lines = append(lines, "Escalation: "+text)
	}
	if r.State == approval.Pending {
		text, _ := safetext.CutSlack(r.AtDeadline(), 2*maxValue)
		lines = append(lines, "Until: "+clock(r.Deadline)+". "+text)
	}
	if n := len(r.Context); n > 0 {
		lines = append(lines, fmt.Sprintf("What the agent says about it: %d items, in the inbox", n))
	}
	return append(lines, "Request: "+short(r.ID)+", binding "+short(prefix(rev.Binding)))
}

// because lists the rules that required approval, with their places.
func because(reasons []resolve.Reason) []string {
	const most = 5
	var lines []string
	for i, x := range reasons {
		if i == most {
			return append(lines, fmt.Sprintf("and %d more rules", len(reasons)-most))
		}
		line := "Because of: " + short(strings.TrimSpace(cmp.Or(x.Policy, string(x.Source))+" "+x.Rule))
		if x.File != "" {
			line += fmt.Sprintf(", %s:%d", short(x.File), x.Line)
		}
		lines = append(lines, line)
	}

	return lines
}

// needs lists the stages and the number of approvals so far.
func needs(r *approval.Request) string {
	var stages []string
	for _, s := range r.Stages {
		group := "any approver"
		if s.Group != "" {
			group = short(s.Group)
		}
		stages = append(stages, fmt.Sprintf("%d of %s", s.People, group))
	}
	for _, alternatives := range r.AnyOf {
		var all []string
		for _, alternative := range alternatives {
			var one []string
			for _, s := range alternative {
				one = append(one, fmt.Sprintf("%d of %s", s.People, short(s.Group)))
			}
			all = append(all, strings.Join(one, " and "))
		}
		stages = append(stages, "("+strings.Join(all, ", or ")+")")
	}

	return fmt.Sprintf("Needs: %s. Approvals so far: %d", listed(stages, 8), len(approvers(r)))
}

// call shows the reasons of the rules and the message, both quoted, and the contents of the
// call.
func (m *message) call(r *approval.Request) {
	p := carried(r)
	m.why(r)
	m.words(r.Current(), p.hidden)
	left := m.pack(p.lines, min(maxCall, m.room(0))) + p.left
	m.full = !p.hidden && !p.cut && left == 0
	m.gaps(r, p, left)
}

// why shows the purpose of each rule, in its author's words, and the reason why it required
// approval.
func (m *message) why(r *approval.Request) {
	const most = 5
	var lines []string
	for i, g := range r.Grounds() {
		if i == most {
			lines = append(lines, "│ …")
			break
		}
		for _, text := range append([]string{g.About}, g.Words...) {
			if text != "" {
				shown, _ := safetext.CutSlack(text, 2*maxValue)
				lines = append(lines, "│ "+shown)
			}
		}
	}

	if len(lines) > 0 {
		m.say("Why the rules ask:\n" + strings.Join(lines, "\n"))
	}
}

// carried returns the complete contents of the call.
func carried(r *approval.Request) *printer {
	c := &r.Current().Call
	p := &printer{}
	p.document("Arguments", string(c.Args), r.Arguments().Redaction())
	if len(c.ParentInput) != 0 {
		p.document("Input of the agent that delegates", string(c.ParentInput), r.Arguments().ParentRedaction())
	}
	p.context(r.Current())
	return p
}

// context writes the other data that the binding covers. Names that the facts had to cut are
// repeated in full.
func (p *printer) context(rev *approval.Revision) {
	c, worth := &rev.Call, "not believed"
	if rev.HintsBelieved {
		worth = "believed"
	}
	for _, hint := range slices.Sorted(maps.Keys(c.Annotations)) {
		p.line(0, fmt.Sprintf("Hint of the server, %s: %s %t", worth, p.short(hint, maxKey), c.Annotations[hint]))
	}
	for _, f := range []struct{ name, value string }{
		{"Call", c.Target()},
		{"Principal", c.Principal},
		{"Session", c.Session},
	} {
		if _, whole := safetext.CutSlack(f.value, maxValue); !whole {
			p.line(0, f.name+": "+p.short(f.value, maxString))
		}
	}

	if c.Remote != resolve.RemoteUnstated {
		p.line(0, fmt.Sprintf("Remote: %t", c.Remote == resolve.RemoteYes))
	}
	if c.ToolDefinition != "" {
		p.line(0, "Tool definition: "+p.short(c.ToolDefinition, maxKey))
	}
}

// gaps lists what is missing.
func (m *message) gaps(r *approval.Request, p *printer, left int) {
	var why []string
	if p.hidden {
		paths, _ := safetext.CutSlack(strings.Join(r.Hidden(), ", "), 2*maxValue)
		why = append(why, "A policy hides values from channels: "+paths+".")
	}
	if len(r.Unapprovable()) > 0 {
		m.say("Not everything is shown. " + strings.Join(why, " ") +
			" A policy forbids approving this while they are hidden; it can be denied in the inbox.")
		return
	}
	if p.cut {
		why = append(why, "Some values are too long for Slack.")
	}
	if left > 0 {
		why = append(why, fmt.Sprintf("%d further lines do not fit.", left))
	}
	if len(why) > 0 {
		m.say("Not everything is shown. " + strings.Join(why, " ") +
			" Read it in the inbox, it can only be approved there.")
	}
}

// words shows the message with the call's values. Every line is quoted, so that it can't be
// mistaken for a fact. A message that may contain a hidden value is not shown.
func (m *message) words(rev *approval.Revision, hidden bool) {
	text := rev.Decision.Message
	switch {
	case text == "":
		return
	case hidden:
		m.say("The message is not shown: it may hold hidden values.")
		return
	}

	const most = 1500
	var lines []string
	size := 0
	for line := range strings.Lines(text) {
		shown, whole := fenced(strings.TrimSuffix(line, "\n"), most)
		if size += safetext.SlackLength(shown); size > most || !whole {
			lines = append(lines, "(the rest of the message is not shown here)")
			break
		}
		lines = append(lines, shown)
	}

	m.say(messageFrom(rev.MessageFrom) + ":\n" + strings.Join(lines, "\n"))
}

// messageFrom describes the author of a message.
func messageFrom(from resolve.Source) string {
	switch from {
	case resolve.FromAgent, resolve.FromServer:
		return "Message by the author of the agent's file, with the agent's values"
	case resolve.FromPolicy:
		return "Message by the author of a policy, with the agent's values"
	case resolve.FromDefault:
		return "Message made by assent from the call, with the agent's values"
	}

	return "Message by the author of a rule, or made from the call, with the agent's values"
}

// fenced returns one quoted line of a message. Package template has escaped the values in it.
func fenced(line string, limit int) (string, bool) {
	shown := "│ " + safetext.SlackMessage(line)
	return shown, safetext.SlackLength(shown) <= limit
}

// buttons returns the buttons of a request. The link to the inbox is always there. It opens a
// page and decides nothing.
func (a *App) buttons(r *approval.Request, full bool) slack.Block {
	open := a.opens(r)
	if r.State != approval.Pending || !full {
		return slack.NewActionBlock("", open)
	}
	t := ticketOf(r)
	approve := slack.NewButtonBlockElement(actionApprove, t.String(), plain("Approve")).
		WithStyle(slack.StylePrimary)
	approve.WithConfirm(slack.NewConfirmationBlockObject(
		plain("Approve this call?"),
		plain(
			"Request "+short(t.Request)+", binding "+short(t.Binding)+". It runs exactly as the message shows it.",
		),
		plain("Approve"),
		plain("Not now"),
	))
	deny := slack.NewButtonBlockElement(actionDeny, t.String(), plain("Deny…")).WithStyle(slack.StyleDanger)
	return slack.NewActionBlock("", approve, deny, open)
}

// opens returns the button that opens the page of a request.
func (a *App) opens(r *approval.Request) slack.BlockElement {
	page := notify.Link(&url.URL{
		Scheme: a.inbox.Scheme,
		Host:   a.inbox.Host,
		Path:   a.inbox.Path,
	}, r.ID)
	return slack.NewButtonBlockElement(actionOpen, "", plain("Open in the inbox")).WithURL(page)
}
