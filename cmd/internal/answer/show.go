package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/template"
)

// Without --all, only the beginning and the end of a long text are printed. No person reads more
// than maxApprovable bytes of arguments, so such calls can't be approved here.
const (
	headLines     = 120
	tailLines     = 40
	maxLineShown  = 8 << 10 // bytes
	maxApprovable = 1 << 20 // bytes
)

// view prints requests.
type view struct {
	*term.Printer
	now time.Time
	all bool // every line, however many
	cut bool // something was left out
}

// viewOn returns a view of requests at the current time.
func viewOn(p *term.Printer, all bool) *view { return &view{Printer: p, now: time.Now(), all: all} }

// request prints everything that a person needs to decide, first the facts from the bound call.
// Messages are fenced and labelled with their author.
func (s *view) request(r *approval.Request) {
	if r.Question != nil {
		s.question(r)
		return
	}
	rev := r.Current()
	s.Printf("%s  %s  %s\n", term.Bold.Of(r.ID), s.state(r.State, r.Cause), s.timing(r))
	s.Printf("%s wants to run %s\n\n", term.Bold.Of(agentName(r.Agent)), term.Bold.Of(rev.Call.Target()))
	s.call(r)
	switch {
	case rev.Decision.Message == "":
	case len(r.Redact) > 0:
		s.Printf("\nThe message is not shown: it could repeat values that policy hides.\n")
	default:
		s.Printf("\nMessage, %s:\n", messageFrom(rev.MessageFrom))
		s.text("  | ", rev.Decision.Message, term.Scrub)
	}

	s.asker(r)
	s.grounds(r)
	s.needs(r)
	s.revisions(r)
	s.says(r)
	s.ending(r)
	s.Printf("\nBinding  %s (version %d)\n", rev.Binding, r.Version)
}

// messageFrom names the author of a message.
func messageFrom(from resolve.Source) term.Ready {
	switch from {
	case resolve.FromAgent, resolve.FromServer:
		return "by the author of the agent's file; the values in it are the agent's"
	case resolve.FromPolicy:
		return "by the author of a policy; the values in it are the agent's"
	case resolve.FromDefault:
		return "made by assent from the call, since no rule has one; the values in it are the agent's"
	}

	return "by the author of a rule, or made by assent from the call; the values in it are the agent's"
}

func agentName(a approval.Agent) string {
	name := a.ID
	if a.Version != "" {
		name += " " + a.Version
	}
	if a.Name != "" && a.Name != a.ID {
		name += " (" + a.Name + ")"
	}
	return name
}

func (s *view) state(state approval.State, cause approval.Cause) term.Styled {
	text := string(state)
	switch cause {
	case "", approval.ByVotes, approval.ByConsume:
	default:
		text += " (" + strings.ReplaceAll(string(cause), "_", " ") + ")"
	}
	look := map[approval.State]term.Style{
		approval.Pending:  term.Yellow,
		approval.Approved: term.Green,
		approval.Consumed: term.Green,
		approval.Denied:   term.Red,
		approval.Answered: term.Green,
	}[state]
	return look.Of(text)
}

func (s *view) timing(r *approval.Request) string {
	switch {
	case r.State == approval.Pending:
		return "to be decided " + term.Until(r.Deadline, s.now)
	case r.State == approval.Approved && r.Permit != nil:
		return "to be used " + term.Until(r.Permit.Expires, s.now)
	case r.Closed != nil:
		return "ended " + term.Ago(*r.Closed, s.now)
	}

	return "asked " + term.Ago(r.Created, s.now)
}

// call prints the call that would run: its bound arguments, without values that the policies hide.
func (s *view) call(r *approval.Request) {
	rev := r.Current()
	s.Printf("Arguments:\n")
	args, _ := approval.Redact(string(rev.Call.Args), r.Arguments().Redaction())
	s.text("  ", indentJSON(args), template.Escape)
	if len(rev.Call.ParentInput) != 0 {
		s.Printf("Input of the delegating agent:\n")
		input, _ := approval.Redact(string(rev.Call.ParentInput), r.Arguments().ParentRedaction())
		s.text("  ", indentJSON(input), template.Escape)
	}
	s.hidden(r)
	for _, name := range slices.Sorted(maps.Keys(rev.Call.Annotations)) {
		s.Printf(
			"The server says of the tool: %s %t, %s\n",
			name,
			rev.Call.Annotations[name],
			believed(rev.HintsBelieved),
		)
	}

	if rev.Call.ToolDefinition != "" {
		s.Printf("Tool definition: %s\n", rev.Call.ToolDefinition)
	}
}

// hidden names the values that a policy hides.
func (s *view) hidden(r *approval.Request) {
	paths := r.Hidden()
	if len(paths) == 0 {
		return
	}
	what := fmt.Sprintf("%d values are hidden by policy (%s)", len(paths), strings.Join(paths, ", "))
	if len(paths) == 1 {
		what = "1 value is hidden by policy (" + paths[0] + ")"
	}
	if r.ForbidHidden {
		s.Printf("  %s\n", term.Red.Of(what+": a policy forbids approving it unseen, it can be denied"))
		return
	}
	s.Printf("  %s\n", term.Yellow.Of(what+": whoever approves, approves them unseen, and the record says so"))
}

func believed(yes bool) term.Ready {
	if yes {
		return "and is believed"
	}
	return "and is not believed: it takes the call out of no rule"
}

func (s *view) asker(r *approval.Request) {
	s.Printf("\nAsked by\n")
	s.field("runtime", r.Requester.Runtime)
	s.field("of", r.Requester.Person)
	s.field("and by", strings.Join(r.Requester.Also, ", "))
	s.field("of", strings.Join(r.Requester.AlsoPeople(), ", "))
	s.field("for", r.Requester.Principal)
	if r.Requester.Unknown {
		s.field("", "unknown person: nobody is known by this name, so one more person must agree")
	}
	s.field("session", r.Requester.Session)
	s.field("owners", strings.Join(r.Requester.Owners, ", "))
	s.field("about", r.Agent.Description)
}

// field prints a named text, unless it is empty.
func (s *view) field(name, text string) {
	if text != "" {
		s.Printf("  %-9s %s\n", name, text)
	}
}

func (s *view) reasons(reasons []resolve.Reason) {
	if len(reasons) > 0 {
		s.Printf("\nWhy\n")
	}
	for _, x := range reasons {
		s.Printf("  %s: %s\n", ruleName(x), x.Detail)
		if x.File != "" {
			s.Printf("    %s\n", term.Dim.Of(x.File+":"+strconv.Itoa(x.Line)+":"+strconv.Itoa(x.Column)))
		}
	}
}

func ruleName(x resolve.Reason) string {
	name := string(x.Source)
	if x.Policy != "" {
		name += " " + x.Policy
	}
	if x.Rule != "" {
		name += ", " + x.Rule
	}
	return name + " (" + string(x.Code) + ")"
}

// grounds prints why people are asked: the purpose of each rule, what made it ask, and its
// position.
func (s *view) grounds(r *approval.Request) {
	grounds := r.Grounds()
	if len(grounds) > 0 {
		s.Printf("\nWhy\n")
	}
	for _, g := range grounds {
		if g.About != "" {
			s.Printf("  %s\n", term.Bold.Of(g.About))
		}
		for _, words := range g.Words {
			s.Printf("  %s\n", words)
		}
		where := g.Rule
		if g.Where != "" {
			where += ", " + g.Where
		}
		s.Printf("    %s\n", term.Dim.Of(where))
	}
}

// needs prints who must answer and who has answered.
func (s *view) needs(r *approval.Request) {
	s.Printf("\nNeeds\n")
	for _, stage := range r.Stages {
		s.Printf("  %s\n", stageText(stage))
	}
	if len(r.Stages)+len(r.AnyOf) == 0 {
		s.Printf("  1 approver\n")
	}
	for _, alternatives := range r.Alternatives() {
		s.Printf("  %s\n", alternatives)
	}
	if reason := r.ReasonWords(); reason != "" {
		s.Printf("  %s\n", reason)
	}
	for _, c := range r.CallsIn() {
		s.Printf("  %s\n", c.String())
	}
	for i := range r.Votes {
		s.vote(r, &r.Votes[i])
	}
}

func stageText(stage policy.Stage) string {
	who := "of " + stage.Group
	if stage.Group == "" {
		who = "of the approvers"
	}
	return strconv.Itoa(stage.People) + " " + who
}

func (s *view) vote(r *approval.Request, v *approval.Vote) {
	note := ""
	switch {
	case v.Late:
		note = " (late)"
	case v.Revision != r.Current().Number:
		note = " (of an earlier form of the call)"
	case !r.Counts(v):
		note = " (before others asked for it too)"
	}

	s.Printf(
		"  %s: %s%s, %s, %s\n",
		v.Person,
		verdictStyle(v.Verdict).Of(string(v.Verdict)),
		note,
		v.Channel,
		term.Ago(v.At, s.now),
	)
	if v.Reason != "" {
		s.text("    | ", v.Reason, template.Escape)
	}
	if len(v.Hidden) > 0 {
		s.Printf("    unseen, hidden by policy: %s\n", strings.Join(v.Hidden, ", "))
	}
}

func verdictStyle(v approval.Verdict) term.Style {
	switch v {
	case approval.Approve, approval.Choose, approval.Submit, approval.Dismiss:
		return term.Green
	}
	return term.Red
}

// revisions prints what each edit changed.
func (s *view) revisions(r *approval.Request) {
	for i := 1; i < len(r.Revisions); i++ {
		rev := &r.Revisions[i]
		s.Printf("\nEdited by %s %s\n", rev.Author, term.Ago(rev.At, s.now))
		if rev.Note != "" {
			s.text("  | ", rev.Note, template.Escape)
		}
		s.changes(approval.Diff(string(r.Revisions[i-1].Call.Args), string(rev.Call.Args)), r.Arguments())
	}
}

// changes prints a diff of arguments.
func (s *view) changes(changes []approval.Change, arguments policy.Arguments) {
	for _, c := range changes {
		shown, hidden := c.Redact(arguments)
		before, after := cmp.Or(shown.Old, "(absent)"), cmp.Or(shown.New, "(absent)")
		if hidden {
			before, after = approval.HiddenValue, approval.HiddenValue
		}
		s.Printf("  %s\n", term.Bold.Of(cmp.Or(c.Path, "(all)")))
		s.text(s.Paint(term.Red, "    - "), before, template.Escape)
		s.text(s.Paint(term.Green, "    + "), after, template.Escape)
	}

	if len(changes) == 0 {
		s.Printf("  nothing changed\n")
	}
}

// ending prints what happens without an answer, or how it ended.
func (s *view) ending(r *approval.Request) {
	s.Printf("\n")
	switch r.State {
	case approval.Pending:
		s.Printf("To be decided by %s. %s\n", term.Stamp(r.Deadline), r.AtDeadline())
		s.Printf("Standing approvals: %s\n", grantsText(r.Grants))
		for _, c := range r.Suggest() {
			s.Printf("  --grant %s: %s %s\n", quoteFlag(c.Bound), c.Bound.Path, c.Bound.Says())
		}
		return
	case approval.Approved:
		s.Printf("Approved, and not used yet.\n")
	}

	s.field("by", r.By)
	s.field("reason", r.Reason)
	s.field("answer", r.Answer)
	s.field("grant", r.GrantID)
	s.field("replaced", r.Replaced)
}

// quoteFlag returns a bound as approve takes it, quoted for a shell.
func quoteFlag(b approval.Bound) string {
	text := b.Path + "=" + string(b.Kind)
	if b.Value != "" {
		text += ":" + b.Value
	}

	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func grantsText(g policy.Grants) string {
	if g.Forbid {
		return "forbidden by policy"
	}
	var bounds []string
	if g.Session {
		bounds = append(bounds, "only for the session")
	}
	if g.MaxAge > 0 {
		bounds = append(bounds, "at most for "+term.Span(g.MaxAge))
	}
	if g.MaxUses > 0 {
		bounds = append(bounds, "at most "+strconv.Itoa(g.MaxUses)+" uses")
	}
	for _, b := range g.Bounds {
		how := strings.ReplaceAll(string(b.Kind), "_", " ")
		if b.Kind == approval.AtMost || b.Kind == approval.AtLeast {
			how += " the approved number"
		}
		bounds = append(bounds, b.Path+" may vary, "+how)
	}

	if len(bounds) == 0 {
		return "of exactly this call, within the server's bounds"
	}
	return strings.Join(bounds, ", ")
}

// text prints a text of several lines with a mark before each line. Without all, the middle of a
// long text is omitted, with a note.
func (s *view) text(mark, text string, escape func(string) string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if s.all || len(lines) <= headLines+tailLines {
		s.lines(mark, lines, escape)
		return
	}
	s.cut = true
	s.lines(mark, lines[:headLines], escape)
	s.Printf(
		"%s\n",
		term.Yellow.Of(
			fmt.Sprintf("… %d lines are left out here: --all shows them …", len(lines)-headLines-tailLines),
		),
	)
	s.lines(mark, lines[len(lines)-tailLines:], escape)
}

func (s *view) lines(mark string, lines []string, escape func(string) string) {
	for _, line := range lines {
		body := strings.TrimLeft(line, " ")
		margin := line[:len(line)-len(body)]
		if s.all || len(body) <= maxLineShown {
			s.Raw(mark + margin + escape(body) + "\n")
			continue
		}
		s.cut = true
		half := maxLineShown / 2
		s.Raw(mark + margin + escape(strings.ToValidUTF8(body[:half], "")) + "\n")
		s.Printf(
			"%s\n",
			term.Yellow.Of(
				fmt.Sprintf("… %d bytes are left out here: --all shows them …", len(body)-maxLineShown),
			),
		)
		s.Raw(mark + margin + escape(strings.ToValidUTF8(body[len(body)-half:], "")) + "\n")
	}
}

// indentJSON indents a JSON text without changing its numbers and strings. Text that is not JSON is
// quoted.
func indentJSON(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return strconv.Quote(text)
	}
	return out.String()
}
