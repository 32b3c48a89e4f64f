package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// requestPage is one request, whole.
type requestPage struct {
	card
	Version   int64
	Binding   string
	Cause     approval.Cause
	Revision  int
	Answer    string
	Permit    *approval.Permit
	GrantID   string
	Replaces  string
	Replaced  string
	Facts     []fact
	Docs      []document
	All       bool // everything is drawn, however long
	Full      bool // the whole call stands on this page
	Huge      bool // it can't be approved here
	Reasons   []reason
	Missing   []string
	Ending    string
	Called    []string
	Revisions []revision
	Similar   []similar
	History   []entry
	News      []string // what changed since the page that the visitor answered on
	Offer     *offer
	Edit      string // arguments for the editor, "" when they can't be edited here
	Seen      string
}

// Dismissed reports whether a question was closed without picking.
func (p requestPage) Dismissed() bool { return p.Cause == approval.ByDismissal }

// fact is one bound fact, from the call itself.
type fact struct {
	Name string
	Text string
	Note string
}

// reason is one rule that asked.
type reason struct {
	Rule     string
	Where    string
	Detail   string
	Matchers []resolve.Matcher
}

// revision is one form of the call with what it changed.
type revision struct {
	Number  int
	Author  string
	Note    string
	At      time.Time
	Changes []change
}

// change is one difference, ready to be looked at.
type change struct {
	Path     string
	Old, New *shown // nil when added or removed
	Hidden   bool
}

// similar is an earlier decision about the same agent and target.
type similar struct {
	ID     string
	State  string
	By     string
	Reason string
	At     time.Time
	Same   bool // the very same arguments
}

func (v *visit) request() error {
	r, err := v.Store.Request(v.ctx(), v.Tenant, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	p, err := v.readRequest(r, v.r.URL.Query().Get("show") == "all")
	if err != nil {
		return err
	}
	if p.Question != nil {
		return v.show("question", "Question: "+p.Target, "queue", p)
	}
	return v.show("request", p.Target, "queue", p)
}

func (v *visit) readRequest(r *approval.Request, all bool) (requestPage, error) {
	cur := r.Current()
	p := requestPage{
		Version: r.Version, Binding: cur.Binding, Cause: r.Cause, Revision: cur.Number, Answer: r.Answer, Permit: r.Permit, GrantID: r.GrantID,
		Replaces: r.Replaces, Replaced: r.Replaced, Facts: facts(r), Docs: documents(&cur.Call, r.Redact, all), All: all,
		Reasons: reasons(cur.Decision.Reasons), Missing: cur.Decision.MissingVariables, Ending: ending(r), Called: r.Called, Revisions: v.revisions(r),
	}
	p.Full = full(p.Docs)
	p.Huge = slices.ContainsFunc(p.Docs, func(d document) bool { return d.Huge })
	var err error
	if p.card, err = v.card(r); err != nil {
		return p, err
	}
	if p.Question != nil {
		limit := longPrompt
		if all {
			limit = 0
		}
		p.Question = v.question(r, limit)
		p.Full = true // an answer needs to have seen all labels, and none is ever cut
	} else if p.Seat && p.Pending {
		p.Offer = v.offer(r)
		p.Edit = editable(r)
	}
	if err := v.readPast(r, &p); err != nil {
		return p, err
	}
	if m := v.said(); m != nil && m.Since > 0 {
		p.News = v.news(r, time.UnixMilli(m.Since))
	}
	p.Seen = v.sealSeen(r, p.Full, "")
	return p, nil
}

// readPast reads what happened before: to this request, and to others like it.
func (v *visit) readPast(r *approval.Request, p *requestPage) error {
	past, err := v.Store.Similar(v.ctx(), v.Tenant, r.Agent.ID, r.Current().Call.Target(), 10)
	if err != nil {
		return err
	}
	for _, o := range past {
		if o.ID != r.ID {
			p.Similar = append(p.Similar, v.similar(r, o))
		}
	}
	entries, err := v.Store.History(v.ctx(), v.Tenant, r.ID)
	if err != nil {
		return err
	}
	p.History = v.entries(entries)
	return nil
}

func (v *visit) similar(r, o *approval.Request) similar {
	at := o.Created
	if o.Decided != nil {
		at = *o.Decided
	}
	by := ""
	if o.By != "" {
		by = v.called(o.By)
	}
	return similar{o.ID, stateWords(o), by, o.Reason, at, o.Current().Call.Args == r.Current().Call.Args}
}

func (v *visit) sealSeen(r *approval.Request, full bool, edit string) string {
	return v.seal("seen", seen{v.Tenant, v.Person.ID, r.ID, r.Version, r.Binding(), full, edit, v.now.UnixMilli()})
}

// documents are the JSON texts that the binding covers.
func documents(c *approval.Call, redact []string, all bool) []document {
	out := []document{inspectDocument("Arguments", c.Args, redact, all)}
	if c.ParentInput != "" {
		out = append(out, inspectDocument("Input of the calling agent", c.ParentInput, nil, all))
	}
	return out
}

func full(docs []document) bool {
	return !slices.ContainsFunc(docs, func(d document) bool { return d.Cut || d.Huge })
}

// facts are everything else that the binding covers. They are shown uncut.
func facts(r *approval.Request) []fact {
	cur := r.Current()
	c := cur.Call
	var out []fact
	add := func(name, text, note string) {
		if text != "" {
			out = append(out, fact{name, text, note})
		}
	}
	note := "an approval is of exactly this"
	if r.Question != nil {
		add("Tool server", r.Question.Asker, "it asks; registered here under this name")
		note = "an answer is to exactly this question about exactly this call"
	}
	add("Agent", r.Agent.ID, "")
	add("Agent version", r.Agent.Version, "")
	add("Kind of call", map[resolve.Kind]string{resolve.Tool: "local tool", resolve.MCPTool: "tool of an MCP server", resolve.Skill: "skill of a remote agent", resolve.Delegation: "delegation to a sub-agent"}[c.Kind], "")
	add("Tool", c.Tool, "")
	add("Server", c.Server, "")
	add("Called agent", c.Agent, "")
	add("Skill", c.Skill, "")
	add("Remote", map[resolve.Remote]string{resolve.RemoteYes: "yes", resolve.RemoteNo: "no"}[c.Remote], "")
	add("Acts for", cmp.Or(c.Principal, "nobody named"), "")
	add("Session", c.Session, "")
	add("Asked by runtime", r.Requester.Runtime, "")
	add("Whose token that is", r.Requester.Person, "")
	add("Asked by too", strings.Join(r.Requester.Also, ", "), "the very same call")
	add("Whose tokens those are", strings.Join(r.Requester.AlsoPeople(), ", "), "")
	add("Owners", strings.Join(r.Requester.Owners, ", "), "")
	for _, name := range sortedKeys(c.Annotations) {
		add("Tool says "+name, fmt.Sprint(c.Annotations[name]), "by its server; can only make it stricter")
	}
	add("Tool definition", c.ToolDefinition, "")
	add("Rules as of plan", cur.Plan, "")
	add("Digest of all this", cur.Binding, note)
	return out
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func reasons(in []resolve.Reason) []reason {
	var out []reason
	for _, x := range in {
		o := reason{Rule: x.Rule, Detail: x.Detail, Matchers: x.Matchers}
		if x.Policy != "" {
			o.Rule = x.Policy + " / " + x.Rule
		}
		if x.File != "" {
			o.Where = fmt.Sprintf("%s:%d", x.File, x.Line)
		}
		o.Rule = cmp.Or(o.Rule, string(x.Source))
		out = append(out, o)
	}
	return out
}

func (v *visit) revisions(r *approval.Request) []revision {
	var out []revision
	for i, x := range r.Revisions {
		rev := revision{Number: x.Number, Note: x.Note, At: x.At}
		if i > 0 {
			rev.Author = v.called(x.Author)
			rev.Changes = changes(approval.Diff(r.Revisions[i-1].Call.Args, x.Call.Args), r.Redact)
		}
		out = append(out, rev)
	}
	return out
}

// changes makes differences fit to be looked at. What policy hides is hidden here too: a path, what is below it, and what holds it.
func changes(in []approval.Change, redact []string) []change {
	var out []change
	for _, c := range in {
		o := change{Path: cmp.Or(c.Path, "the whole document")}
		if slices.ContainsFunc(redact, func(p string) bool { return touches(p, c.Path) }) {
			o.Hidden = true
		} else {
			o.Old, o.New = jsonShown(c.Old), jsonShown(c.New)
		}
		out = append(out, o)
	}
	return out
}

func touches(a, b string) bool {
	return b == "" || a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// jsonShown shows a JSON text. Escapes inside its strings are left as they were written: they can't act.
func jsonShown(text string) *shown {
	if text == "" {
		return nil
	}
	s := inspect(text, form{})
	return &s
}

// news says what happened to a request after a time.
func (v *visit) news(r *approval.Request, since time.Time) []string {
	var out []string
	for _, x := range r.Revisions[1:] {
		if x.At.After(since) {
			out = append(out, fmt.Sprintf("%s edited the arguments: see Revisions.", v.called(x.Author)))
		}
	}
	for _, x := range r.Votes {
		if x.At.After(since) {
			out = append(out, fmt.Sprintf("%s: %s.", v.called(x.Person), x.Verdict))
		}
	}
	if r.State != approval.Pending {
		out = append(out, stateWords(r)+".")
	}
	if len(out) == 0 {
		out = append(out, "A reminder, an escalation or a further identical call moved it on; what is asked is the same.")
	}
	return out
}

// editable is the text for the editor: the same JSON, indented, with every character that could hide written as a JSON escape. What
// policy hides can't be edited here, nor what is too large to be looked at.
func editable(r *approval.Request) string {
	args := r.Current().Call.Args
	if len(r.Redact) > 0 || len(args) > largest {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(args), "", "  ") != nil {
		return ""
	}
	return escapeJSON(b.String())
}

// escapeJSON writes hidden characters of a JSON text as \u escapes, which mean the same.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !hidden(r) && !tag(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
