package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// requestPages are the pages of one request, and the forms that answer it.
type requestPages struct{ *visit }

// requestPage shows one request in full.
type requestPage struct {
	request
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
	Unseen    unseen
	All       bool // everything is drawn, whatever its length
	Full      bool // the whole call is shown on this page
	Huge      bool // it can't be approved here
	Grounds   []approval.Ground
	Unfilled  []string      // variables of the message without a value in the call
	Context   []contextItem // what the agent adds
	Call      bool          // false for a question that the agent itself asks
	Ending    string
	CallsIn   []approval.CallIn
	Revisions []revision
	Similar   []similar
	History   []entry
	Later     string   // address of the later entries
	News      []string // what changed after the page on which the visitor answered
	Offer     *offer
	Edit      string // arguments for the editor; empty if they can't be edited here
	Next      *next  // another request that waits for the visitor
	Seen      string // seal of the forms that answer
	SeenEdit  string // seal of the form that previews an edit
}

// unseen lists the values of a call that a policy hides, by their paths.
type unseen struct {
	Paths     []string
	Forbidden bool // a policy forbids approving the call while they are hidden
}

func unseenOf(r *approval.Request) unseen {
	return unseen{Paths: r.Hidden(), Forbidden: len(r.Unapprovable()) > 0}
}

// next is the request that the visitor may continue with.
type next struct {
	ID, Title string
	Others    int // number of other waiting requests
	AtLeast   bool
}

// Shown reports whether the page allows an approval: it shows the whole call, and no policy forbids
// it.
func (p requestPage) Shown() bool { return p.Full && !p.Huge && !p.Unseen.Forbidden }

// Dismissed reports whether a question was dismissed.
func (p requestPage) Dismissed() bool { return p.Cause == approval.ByDismissal }

// fact is one fact from the call that the binding covers.
type fact struct {
	Name      string
	Text      string
	Note      string
	Technical bool // useful for machines and auditors; pages may fold it
}

// revision is one version of the call, with its changes.
type revision struct {
	Number  int
	Author  string
	Note    string
	At      time.Time
	Changes changeList
}

// changeList contains the changes of an edit.
type changeList struct {
	Changes []change
	More    bool // the page has no space for all of them
}

// change is one difference, ready to be shown.
type change struct {
	Path     safetext.Shown
	Old, New *safetext.Shown // nil if added or removed
	Hidden   bool
}

// longChange is the largest number of characters of one side of a change that are shown. The page
// shows the resulting arguments in full.
const longChange = 20_000

// similar is an earlier decision about the same agent and target.
type similar struct {
	ID     string
	State  string
	By     string
	Reason string
	At     time.Time
	Same   bool // the arguments are identical
}

func (v requestPages) request() error {
	if err := v.roomForRequest(v.id()); err != nil {
		return err
	}
	r, err := v.stored(v.id())
	if err != nil {
		return err
	}
	p, err := v.readRequest(r, v.r.URL.Query().Get("show") == "all")
	if err != nil {
		return err
	}
	if p.Question != nil {
		return v.show("question", "Question: "+p.Name, "queue", p)
	}
	return v.show("request", p.Title(), "queue", p)
}

func (v requestPages) readRequest(r *approval.Request, all bool) (requestPage, error) {
	cur := r.Current()
	p := requestPage{
		Version:   r.Version,
		Binding:   cur.Binding,
		Cause:     r.Cause,
		Revision:  cur.Number,
		Answer:    r.Answer,
		Permit:    r.Permit,
		GrantID:   r.GrantID,
		Replaces:  r.Replaces,
		Replaced:  r.Replaced,
		Facts:     facts(r),
		Docs:      v.documents(r, all),
		All:       all,
		Unseen:    unseenOf(r),
		Grounds:   r.Grounds(),
		Unfilled:  cur.Decision.MissingVariables,
		Context:   contextOf(r.Context),
		Call:      r.Current().Call.Kind != "",
		Ending:    r.AtDeadline(),
		CallsIn:   r.CallsIn(),
		Revisions: v.revisions(r),
	}
	p.Full = full(p.Docs)
	p.Huge = slices.ContainsFunc(p.Docs, func(d document) bool { return d.Huge })
	var err error
	if p.request, err = v.outline(r); err != nil {
		return p, err
	}
	if p.Question != nil {
		limit := longPrompt
		if all {
			limit = 0
		}
		p.Question = v.questionWhole(r, limit)
		p.Full = true // an answer requires that all labels were seen, and none is ever cut
	} else if p.Approvable() {
		p.Offer = v.offer(r)
		p.Edit = editable(r)
	}

	if p.Next, err = v.next(r.ID); err != nil {
		return p, err
	}
	if err := v.readPast(r, &p); err != nil {
		return p, err
	}
	if m := v.said(); m != nil && m.Since > 0 {
		p.News = v.news(r, time.UnixMilli(m.Since))
	}
	p.Seen = v.sealSeen(toVote, r, r, p.Full, "")
	p.SeenEdit = v.sealSeen(toPreview, r, r, p.Full, "")

	return p, nil
}

// next returns the request that waits for the visitor and is due first, other than the current one.
// It returns nil if there is none.
func (v requestPages) next(but string) (*next, error) {
	const enough = 10
	list, err := v.Service.Waiting(v.ctx(), v.Tenant, v.Person.ID, approval.Filter{ByDue: true, Limit: enough})
	if errors.Is(err, approval.ErrUnknownName) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(list.Requests, func(s approval.Summary) bool { return s.ID == but })
	if len(others) == 0 {
		return nil, nil
	}
	first := others[0]

	return &next{
		ID:      first.ID,
		Title:   first.Target,
		Others:  len(others) - 1,
		AtLeast: list.Next != "",
	}, nil
}

// readPast reads the history of this request and of similar ones.
func (v requestPages) readPast(r *approval.Request, p *requestPage) error {
	if !p.Call { // without a call there are no similar requests
		return v.readHistory(r, p)
	}
	past, err := v.Store.Similar(v.ctx(), v.Tenant, r.Agent.ID, r.Current().Call.Target(), 10)
	if err != nil {
		return err
	}
	by, err := v.reader()
	if err != nil {
		return err
	}
	for _, o := range past {
		if o.ID != r.ID && by.MayRead(o) {
			p.Similar = append(p.Similar, v.similar(r, o))
		}
	}

	return v.readHistory(r, p)
}

// readHistory reads the ledger entries about this request.
func (v requestPages) readHistory(r *approval.Request, p *requestPage) error {
	entries, err := v.Store.History(v.ctx(), v.Tenant, r.ID, 0, pageEntries)
	if err != nil {
		return err
	}
	p.History = v.entries(entries)
	p.Later, err = v.laterThan(r.ID, entries)
	return err
}

func (v requestPages) similar(r, o *approval.Request) similar {
	return similar{
		o.ID,
		stateWords(o),
		v.called(o.By),
		o.Reason,
		*cmp.Or(o.Decided, &o.Created),
		bytes.Equal(o.Current().Call.Args, r.Current().Call.Args),
	}
}

// sealSeen seals what a page shows: the current request, or the request as it would be after an
// edit.
func (v *visit) sealSeen(to purpose, r, shown *approval.Request, full bool, edit string) string {
	return v.seal(to, seen{
		Tenant:  v.Tenant,
		Person:  v.Person.ID,
		Request: r.ID,
		Version: r.Version,
		Binding: r.Binding(),
		Full:    full,
		Shown:   shownDigests(shown),
		Edit:    edit,
		At:      v.now.UnixMilli(),
	})
}

// shownDigests returns the digests of all documents that an approval covers and that a page must
// show: the facts, the arguments, and the input of the delegating agent.
func shownDigests(r *approval.Request) []string {
	call := &r.Current().Call
	var all strings.Builder
	for _, f := range facts(r) {
		fmt.Fprintf(&all, "%q %q\n", f.Name, f.Text)
	}

	return []string{digest(all.String()), digest(string(call.Args)), digest(string(call.ParentInput))}
}

// documents returns the JSON texts that the binding covers.
func (v *visit) documents(r *approval.Request, all bool) []document {
	call := &r.Current().Call
	out := []document{inspectDocument("Arguments", string(call.Args), r.Arguments().Redaction(), all, v.draws)}
	if len(call.ParentInput) != 0 {
		out = append(
			out,
			inspectDocument(
				"Input of the calling agent",
				string(call.ParentInput),
				r.Arguments().ParentRedaction(),
				all,
				v.draws,
			),
		)
	}

	return out
}

func full(docs []document) bool {
	return !slices.ContainsFunc(docs, func(d document) bool { return d.Cut || d.Huge })
}

// facts returns everything else that the binding covers, and who asks. They are never cut.
func facts(r *approval.Request) []fact {
	cur := r.Current()
	c := cur.Call
	var out []fact
	add := func(f fact) {
		if f.Text != "" {
			out = append(out, f)
		}
	}
	technical := func(name, text string) {
		add(fact{Name: name, Text: text, Technical: true})
	}
	note := "an approval is of exactly this"
	if r.Question != nil {
		asker := fact{
			Name: "Tool server",
			Text: r.Question.Asker,
			Note: "it asks; registered here under this name",
		}
		note = "an answer is to exactly this question about exactly this call"
		if c.Kind == "" {
			asker.Name, asker.Note = "Asked by", "the agent's own name for who asks"
			note = "an answer is to exactly this question"
		}
		add(asker)
	}

	add(fact{Name: "Agent", Text: r.Agent.ID})
	add(fact{Name: "Tool", Text: c.Tool})
	add(fact{Name: "Server", Text: c.Server})
	add(fact{Name: "Called agent", Text: c.Agent})
	add(fact{Name: "Skill", Text: c.Skill})
	add(fact{Name: "Acts for", Text: cmp.Or(c.Principal, "nobody named"), Note: unknownNote(r)})
	for _, name := range slices.Sorted(maps.Keys(c.Annotations)) {
		add(fact{Name: "Hint " + name, Text: fmt.Sprint(c.Annotations[name]), Note: hintNote(cur)})
	}

	add(fact{Name: "Asked by runtime", Text: r.Requester.Runtime})
	add(fact{Name: "Whose token that is", Text: r.Requester.Person})
	add(fact{
		Name: "Asked by too",
		Text: strings.Join(r.Requester.Also, ", "),
		Note: "the very same call",
	})
	add(fact{Name: "Whose tokens those are", Text: strings.Join(r.Requester.AlsoPeople(), ", ")})
	kind := map[resolve.Kind]string{
		resolve.Tool:       "local tool",
		resolve.MCPTool:    "tool of an MCP server",
		resolve.Skill:      "skill of a remote agent",
		resolve.Delegation: "delegation to a sub-agent",
	}
	remote := map[resolve.Remote]string{resolve.RemoteYes: "yes", resolve.RemoteNo: "no"}
	technical("Kind of call", kind[c.Kind])
	technical("Remote", remote[c.Remote])
	technical("Agent version", r.Agent.Version)
	technical("Session", c.Session)
	technical("Owners", strings.Join(r.Requester.Owners, ", "))
	technical("Tool definition", c.ToolDefinition)
	technical("Rules as of plan", cur.Plan)
	add(fact{
		Name:      "Digest of all this",
		Text:      cur.Binding,
		Note:      note,
		Technical: true,
	})

	return out
}

// unknownNote returns a note if the directory does not contain the principal.
func unknownNote(r *approval.Request) string {
	if !r.Requester.Unknown {
		return ""
	}

	return "unknown person: nobody is known by this name, so one more person must agree"
}

// hintNote describes how trustworthy a hint about the tool is.
func hintNote(rev *approval.Revision) string {
	if rev.HintsBelieved {
		return "by its server, which is believed"
	}

	return "by its server, which is not believed: it takes the call out of no rule"
}

// revisions draws the latest revision first, so that the oldest ones are left out if the page has
// no space for all changes.
func (v requestPages) revisions(r *approval.Request) []revision {
	out := make([]revision, len(r.Revisions))
	for i, x := range slices.Backward(r.Revisions) {
		rev := revision{Number: x.Number, Note: x.Note, At: x.At}
		if i > 0 {
			rev.Author = v.called(x.Author)
			rev.Changes = v.changes(string(r.Revisions[i-1].Call.Args), string(x.Call.Args), r.Arguments())
		}
		out[i] = rev
	}

	return out
}

// bytesPiece is the number of bytes that can be compared in the time for drawing one piece.
const bytesPiece = 64

// changes compares two texts of arguments if the budget of the page allows it.
func (v requestPages) changes(before, after string, arguments policy.Arguments) changeList {
	if !v.draws.spend((len(before) + len(after)) / bytesPiece) {
		return changeList{More: true}
	}
	return v.showChanges(approval.Diff(before, after), arguments)
}

// showChanges prepares changes for display. Values that a policy hides are hidden.
func (v *visit) showChanges(in []approval.Change, arguments policy.Arguments) changeList {
	var out changeList
	for _, c := range in {
		if !v.draws.spend(valuePieces) {
			out.More = true
			break
		}
		visible, hidden := c.Redact(arguments)
		o := change{Path: v.shownPath(c.Path), Hidden: hidden}
		if !hidden {
			o.Old, o.New = v.jsonShown(visible.Old), v.jsonShown(visible.New)
		}
		out.Changes = append(out.Changes, o)
	}

	return out
}

func (v *visit) shownPath(path string) safetext.Shown {
	return safetext.Inspect(
		cmp.Or(path, "the whole document"),
		safetext.Form{Limit: longText, Spend: v.draws.spend},
	)
}

// jsonShown prepares a JSON text for display. Escapes in its strings stay unchanged, because they
// have no effect.
func (v *visit) jsonShown(text string) *safetext.Shown {
	if text == "" {
		return nil
	}
	s := safetext.Inspect(text, safetext.Form{Limit: longChange, Spend: v.draws.spend})
	return &s
}

// news describes what happened to a request after a time.
func (v requestPages) news(r *approval.Request, since time.Time) []string {
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
		out = append(
			out,
			"A reminder, an escalation or a further identical call moved it on; what is asked is the same.",
		)
	}

	return out
}

// editable returns the text for the editor: the same JSON, indented, with every character that
// could be invisible written as a JSON escape. It returns an empty string if a policy hides a value
// or if the arguments are too large to be shown.
func editable(r *approval.Request) string {
	args := r.Current().Call.Args
	if len(r.Hidden()) > 0 || len(args) > largest {
		return ""
	}
	return indentedJSON(string(args))
}

// indentedJSON returns indented JSON, or an empty string if the text is not JSON.
func indentedJSON(args string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(args), "", "  ") != nil {
		return ""
	}
	if b.Len() > 2*largest { // deeply nested JSON is mostly indentation
		return safetext.JSON(args)
	}
	return safetext.JSON(b.String())
}
