package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// What is printed of a text without --all: its beginning and its end. More than maxApprovable bytes of arguments are nothing that
// a person reads, so they can't be approved here.
const (
	headLines     = 120
	tailLines     = 40
	maxLineShown  = 8 << 10 // bytes
	maxApprovable = 1 << 20 // bytes
)

// shower prints requests.
type shower struct {
	*printer
	now time.Time
	all bool // every line, however many
	cut bool // something was left out
}

// request prints everything that a person needs to decide, the facts from the bound call first. The author's words are fenced as such.
func (s *shower) request(r *approval.Request) {
	if r.Question != nil {
		s.question(r)
		return
	}
	rev := r.Current()
	s.printf("%s  %s  %s\n", styled{bold, r.ID}, s.state(r.State, r.Cause), s.timing(r))
	s.printf("%s wants to run %s\n\n", styled{bold, agentName(r.Agent)}, styled{bold, rev.Call.Target()})
	s.call(&rev.Call, r.Redact)
	switch {
	case rev.Decision.Message == "":
	case len(r.Redact) > 0:
		s.printf("\nThe author's message is not shown: it could repeat values that policy hides.\n")
	default:
		s.printf("\nMessage, in the words of the agent's or the policy's author:\n")
		s.text("  | ", rev.Decision.Message, scrub)
	}
	s.asker(r)
	s.reasons(rev.Decision.Reasons)
	s.needs(r)
	s.revisions(r)
	s.ending(r)
	s.printf("\nBinding  %s (version %d)\n", rev.Binding, r.Version)
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

func (s *shower) state(state approval.State, cause approval.Cause) styled {
	text := string(state)
	switch cause {
	case "", approval.ByVotes, approval.ByConsume:
	default:
		text += " (" + strings.ReplaceAll(string(cause), "_", " ") + ")"
	}
	look := map[approval.State]style{approval.Pending: yellow, approval.Approved: green, approval.Consumed: green, approval.Denied: red, approval.Answered: green}[state]
	return styled{look, text}
}

func (s *shower) timing(r *approval.Request) string {
	switch {
	case r.State == approval.Pending:
		return "to be decided " + until(r.Deadline, s.now)
	case r.State == approval.Approved && r.Permit != nil:
		return "to be used " + until(r.Permit.Expires, s.now)
	case r.Closed != nil:
		return "ended " + ago(*r.Closed, s.now)
	}
	return "asked " + ago(r.Created, s.now)
}

// call prints what would run: the arguments as they are bound, except for values that the policies hide.
func (s *shower) call(c *approval.Call, redact []string) {
	s.printf("Arguments:\n")
	args, hidden := redacted(c.Args, redact)
	s.text("  ", indentJSON(args), template.Escape)
	if hidden > 0 {
		s.printf("  %s\n", styled{yellow, fmt.Sprintf("%d values are hidden by policy (%s); what runs, and what is approved, includes them", hidden, strings.Join(redact, ", "))})
	}
	if c.ParentInput != "" {
		s.printf("Input of the delegating agent:\n")
		s.text("  ", indentJSON(c.ParentInput), template.Escape)
	}
	for _, name := range slices.Sorted(mapKeys(c.Annotations)) {
		s.printf("The server says of the tool: %s %t\n", name, c.Annotations[name])
	}
	if c.ToolDefinition != "" {
		s.printf("Tool definition: %s\n", c.ToolDefinition)
	}
}

func (s *shower) asker(r *approval.Request) {
	s.printf("\nAsked by\n")
	s.field("runtime", r.Requester.Runtime)
	s.field("of", r.Requester.Person)
	s.field("and by", strings.Join(r.Requester.Also, ", "))
	s.field("of", strings.Join(r.Requester.AlsoPeople(), ", "))
	s.field("for", r.Requester.Principal)
	if r.Requester.Unknown {
		s.field("", "nobody is known by this name, so one more person is asked")
	}
	s.field("session", r.Requester.Session)
	s.field("owners", strings.Join(r.Requester.Owners, ", "))
	s.field("about", r.Agent.Description)
}

// field prints a named text, unless it is empty.
func (s *shower) field(name, text string) {
	if text != "" {
		s.printf("  %-9s %s\n", name, text)
	}
}

func (s *shower) reasons(reasons []resolve.Reason) {
	if len(reasons) > 0 {
		s.printf("\nWhy\n")
	}
	for _, x := range reasons {
		s.printf("  %s: %s\n", ruleName(x), x.Detail)
		if x.File != "" {
			s.printf("    %s\n", styled{dim, x.File + ":" + strconv.Itoa(x.Line) + ":" + strconv.Itoa(x.Column)})
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

// needs prints who must answer and who has.
func (s *shower) needs(r *approval.Request) {
	s.printf("\nNeeds\n")
	for _, stage := range r.Stages {
		s.printf("  %s\n", stageText(stage))
	}
	if len(r.Stages) == 0 {
		s.printf("  1 approver\n")
	}
	if len(r.Called) > 0 {
		s.printf("  called in: %s\n", strings.Join(r.Called, ", "))
	}
	for i := range r.Votes {
		s.vote(&r.Votes[i], r.Current().Number)
	}
}

func stageText(stage policy.Stage) string {
	who := "of " + stage.Group
	if stage.Group == "" {
		who = "of the approvers"
	}
	return strconv.Itoa(stage.People) + " " + who
}

func (s *shower) vote(v *approval.Vote, current int) {
	note := ""
	switch {
	case v.Late:
		note = " (late)"
	case v.Revision != current:
		note = " (of an earlier form of the call)"
	}
	s.printf("  %s: %s%s, %s, %s\n", v.Person, styled{verdictStyle(v.Verdict), string(v.Verdict)}, note, v.Channel, ago(v.At, s.now))
	if v.Reason != "" {
		s.text("    | ", v.Reason, template.Escape)
	}
}

func verdictStyle(v approval.Verdict) style {
	switch v {
	case approval.Approve, approval.Choose, approval.Dismiss:
		return green
	}
	return red
}

// revisions prints what each edit changed.
func (s *shower) revisions(r *approval.Request) {
	for i := 1; i < len(r.Revisions); i++ {
		rev := &r.Revisions[i]
		s.printf("\nEdited by %s %s\n", rev.Author, ago(rev.At, s.now))
		if rev.Note != "" {
			s.text("  | ", rev.Note, template.Escape)
		}
		s.changes(approval.Diff(r.Revisions[i-1].Call.Args, rev.Call.Args), r.Redact)
	}
}

// changes prints a diff of arguments.
func (s *shower) changes(changes []approval.Change, redact []string) {
	for _, c := range changes {
		before, after := cmp.Or(c.Old, "(absent)"), cmp.Or(c.New, "(absent)")
		if hides(redact, c.Path) {
			before, after = hiddenValue, hiddenValue
		}
		s.printf("  %s\n", styled{bold, cmp.Or(c.Path, "(all)")})
		s.text(s.paint(red, "    - "), before, template.Escape)
		s.text(s.paint(green, "    + "), after, template.Escape)
	}
	if len(changes) == 0 {
		s.printf("  nothing changed\n")
	}
}

// ending prints what happens without an answer, or how it ended.
func (s *shower) ending(r *approval.Request) {
	s.printf("\n")
	switch r.State {
	case approval.Pending:
		s.printf("Without an answer by %s it is not run (expired)%s.\n", stamp(r.Deadline), timeoutNote(r.OnTimeout))
		for _, rung := range r.Ladder {
			s.printf("At %s: %s\n", stamp(rung.At), strings.TrimSpace(string(rung.Kind)+" "+rung.To))
		}
		s.printf("Standing approvals: %s\n", grantsText(r.Grants))
		return
	case approval.Approved:
		s.printf("Approved, and not used yet.\n")
	}
	s.field("by", r.By)
	s.field("reason", r.Reason)
	s.field("answer", r.Answer)
	s.field("grant", r.GrantID)
	s.field("replaced", r.Replaced)
}

func timeoutNote(t policy.Timeout) string {
	if t == policy.TimeoutApprove {
		return ", unless the server lets the policy approve by timeout"
	}
	return ""
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
		bounds = append(bounds, "at most for "+span(g.MaxAge))
	}
	if g.MaxUses > 0 {
		bounds = append(bounds, "at most "+strconv.Itoa(g.MaxUses)+" uses")
	}
	if len(bounds) == 0 {
		return "within the server's bounds"
	}
	return strings.Join(bounds, ", ")
}

// text prints a text of several lines behind a mark. Without all, the middle of a long one is left out, and it says so.
func (s *shower) text(mark, text string, escape func(string) string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if s.all || len(lines) <= headLines+tailLines {
		s.lines(mark, lines, escape)
		return
	}
	s.cut = true
	s.lines(mark, lines[:headLines], escape)
	s.printf("%s\n", styled{yellow, fmt.Sprintf("… %d lines are left out here: --all shows them …", len(lines)-headLines-tailLines)})
	s.lines(mark, lines[len(lines)-tailLines:], escape)
}

func (s *shower) lines(mark string, lines []string, escape func(string) string) {
	for _, line := range lines {
		body := strings.TrimLeft(line, " ")
		margin := line[:len(line)-len(body)]
		if s.all || len(body) <= maxLineShown {
			s.raw(mark + margin + escape(body) + "\n")
			continue
		}
		s.cut = true
		half := maxLineShown / 2
		s.raw(mark + margin + escape(strings.ToValidUTF8(body[:half], "")) + "\n")
		s.printf("%s\n", styled{yellow, fmt.Sprintf("… %d bytes are left out here: --all shows them …", len(body)-maxLineShown)})
		s.raw(mark + margin + escape(strings.ToValidUTF8(body[len(body)-half:], "")) + "\n")
	}
}

// indentJSON spreads a JSON text over lines without touching its numbers and strings. What is no JSON is quoted.
func indentJSON(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return strconv.Quote(text)
	}
	return out.String()
}

const hiddenValue = `"(hidden by policy)"`

// redacted replaces the values at the paths. Without any it gives back the very text.
func redacted(args string, paths []string) (text string, hidden int) {
	if len(paths) == 0 {
		return args, 0
	}
	doc, err := value.Parse([]byte(args), value.DefaultLimits())
	if err != nil {
		return hiddenValue, 1
	}
	hidden = hide(&doc, paths)
	return string(doc.AppendJSON(nil)), hidden
}

// hide replaces what the paths name, be it as a whole key or along the dots: an agent that adds the key "a.b" does not uncover b in a.
func hide(v *value.Value, paths []string) (hidden int) {
	below := func(segment string, child *value.Value) {
		if slices.Contains(paths, segment) {
			*child = value.Value{Kind: value.String, Text: strings.Trim(hiddenValue, `"`)}
			hidden++
			return
		}
		var deeper []string
		for _, path := range paths {
			if rest, ok := strings.CutPrefix(path, segment+"."); ok {
				deeper = append(deeper, rest)
			}
		}
		if len(deeper) > 0 {
			hidden += hide(child, deeper)
		}
	}
	for i := range v.Members {
		below(v.Members[i].Key, &v.Members[i].Value)
	}
	for i := range v.Items {
		below(strconv.Itoa(i), &v.Items[i])
	}
	return hidden
}

// hides tells whether the value at a path is hidden, or part of it or around it is.
func hides(redact []string, path string) bool {
	return slices.ContainsFunc(redact, func(r string) bool {
		return path == "" || r == path || strings.HasPrefix(path, r+".") || strings.HasPrefix(r, path+".")
	})
}
