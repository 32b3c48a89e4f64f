package inbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Channel is the channel of the votes that are given here.
const Channel = "inbox"

// readAnswer opens the seal of a form about one request and returns what its page showed. With
// errEarly the answer is complete, but was posted too soon.
func (v requestPages) readAnswer(to purpose) (seen, error) {
	form := v.r.PostForm
	in, early := v.openSeen(to, form.Get("seen"), v.visit)
	if early != nil && !errors.Is(early, errEarly) {
		return seen{}, early
	}
	version, err := strconv.ParseInt(form.Get("version"), 10, 64)
	if id := v.id(); err != nil || in.Request != id || form.Get("request") != id ||
		version != in.Version || form.Get("binding") != in.Binding {
		return seen{}, errSeal
	}
	return in, early
}

// tellHere redirects to the request that the form is about.
func (v requestPages) tellHere(m said) error {
	m.Request = v.id()
	return v.tell("/requests/"+m.Request, m)
}

// vote processes one person's answer and redirects to the request, with a description of the
// result.
func (v requestPages) vote() error {
	a, err := v.readAnswer(toVote)
	if err != nil {
		return v.tellHere(saying("bad", "Nothing was decided.", sentence(err.Error())))
	}
	in, err := v.ballot(a)
	if err != nil {
		return v.refused(a, err)
	}
	voted, err := v.Service.Vote(v.ctx(), in)
	if err != nil {
		return v.refused(a, err)
	}
	return v.tellHere(outcomeWords(voted))
}

// ballot reads the answer in the form.
func (v requestPages) ballot(a seen) (in approval.VoteInput, err error) {
	form := v.r.PostForm
	in = approval.VoteInput{
		Tenant:    v.Tenant,
		ID:        a.Request,
		IfVersion: a.Version,
		Binding:   a.Binding,
		Person:    v.Person.ID,
		Verdict:   approval.Verdict(form.Get("verdict")),
		Reason:    clean(form.Get("reason")),
		Channel:   Channel,
		Full:      a.Full,
	}
	switch in.Verdict {
	case approval.Approve:
		if err = v.stillShown(a); err == nil {
			in.Grant, err = v.readOffer()
		}
	case approval.Deny:
		in.Reason, err = denial(form.Get("preset"), in.Reason)
	case approval.Respond:
		in.Response = clean(form.Get("response"))
	case approval.Submit:
		in.Reason = ""
		r, err := v.stored(a.Request)
		if err != nil {
			return in, err
		}
		in.Data, err = v.submitted(r)
		return in, err
	case approval.Choose:
		in.Reason = ""
		in.Choice, err = readChoice(form["choice"])
	}

	return in, err
}

// readChoice parses the number of a choice. It accepts nothing else: no label, no other spelling,
// and no missing value.
func readChoice(texts []string) (*int, error) {
	wrong := &approval.InputError{Field: "choice", Expected: "the number of one choice"}
	if len(texts) != 1 {
		return nil, wrong
	}
	n, err := strconv.Atoi(texts[0])
	if err != nil || n < 0 || strconv.Itoa(n) != texts[0] {
		return nil, wrong
	}
	return &n, nil
}

// clean converts line breaks as browsers send them.
func clean(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// stillShown returns an error unless the page showed every document of the current request in full.
func (v requestPages) stillShown(a seen) error {
	if !a.Full {
		return approval.ErrNotShown
	}
	r, err := v.stored(a.Request)
	if err != nil {
		return err
	}
	if r.Version == a.Version && !slices.Equal(a.Shown, shownDigests(r)) {
		return approval.ErrNotShown
	}

	return nil
}

// presets returns reasons for a denial that fit any call and need no typing.
func presets() []string {
	return []string{"Not needed", "Wrong target or values", "Not now", "Talk to me first"}
}

// denial returns the reason for a denial: a preset, the person's own text, or both.
func denial(preset, text string) (string, error) {
	known := slices.Contains(presets(), preset)
	switch {
	case known && text != "":
		return preset + ": " + text, nil
	case known:
		return preset, nil
	case text == "":
		return "", errNoReason
	}

	return text, nil
}

var errNoReason = &approval.InputError{
	Field:    "reason",
	Expected: "why it must not run: choose a reason, or write one. The agent is told",
}

// refused redirects with the reason why an answer was refused. Errors that the visitor can't
// correct are treated as failures.
func (v requestPages) refused(a seen, err error) error {
	m := saying("bad", "Nothing was decided.")
	var input *approval.InputError
	var problems form.Problems
	switch {
	case errors.As(err, &problems):
		return v.mend(a.Request, problems)
	case errors.Is(err, approval.ErrVersion), errors.Is(err, approval.ErrBinding):
		m.Kind, m.Since = "note", a.At
		m.Lines = []string{
			"Nothing was decided: the request changed after your page was made. Look again, and answer again.",
		}
	case errors.Is(err, approval.ErrClosed):
		m.Kind, m.Since = "note", a.At
		m.Lines = []string{"Too late, nothing changed: the request has ended."}
	case errors.Is(err, approval.ErrNotShown):
		m.Lines = append(m.Lines, "Your page did not show the whole call. Show everything first.")
	case errors.Is(err, approval.ErrHidden):
		m.Lines = append(m.Lines, sentence(err.Error()), "It can be denied.")
	case errors.Is(err, errNoReason):
		m.Lines = append(m.Lines, "Say "+errNoReason.Expected+".")
	case errors.As(err, &input):
		m.Lines = append(m.Lines, sentence(input.Error()))
	case slices.ContainsFunc(understood(), func(known error) bool { return errors.Is(err, known) }):
		m.Lines = append(m.Lines, sentence(err.Error()))
	default:
		return err
	}

	return v.tellHere(m)
}

// understood returns the errors whose text is meant for visitors.
func understood() []error {
	return []error{
		approval.ErrGrantRefused,
		approval.ErrNotEligible,
		approval.ErrUnknownName,
		approval.ErrFrozen,
		approval.ErrEditDenied,
	}
}

// offer describes the possible standing approval, with the limits that policies set.
type offer struct {
	Agent, Target   string
	Session         string
	SessionOnly     bool // required by a policy
	Hours, MaxHours int
	Uses, MaxUses   int
	Numbers         []number
	Texts           []textBound
	Lists           []string // texts for which the approver may add other values
	Ignored         []string // arguments that are not compared
	Exposures       []approval.Exposure
	Several         bool // more than one approval is needed
}

// textBound is a bound of a text that the form offers.
type textBound struct{ approval.Suggestion }

// Field returns the bound as the form sends it.
func (b textBound) Field() (string, error) {
	text, err := json.Marshal(b.Bound)
	return string(text), err
}

// lists returns the arguments for which every rule lets the approver name other texts.
func lists(r *approval.Request) []string {
	doc, err := value.Parse([]byte(r.Current().Call.Args), value.DefaultLimits())
	if err != nil {
		return nil
	}
	var out []string
	for _, b := range r.Grants.Bounds {
		v, found := doc.Lookup(b.Path)
		hidden := r.Arguments().Hides(strings.Split(b.Path, ".")...)
		if found && v.Kind == value.String && !hidden && b.Kind == approval.Equals {
			out = append(out, b.Path)
		}
	}

	return out
}

// number is an argument that may vary within a bound.
type number struct {
	Path, Text string
	Kind       approval.BoundKind
}

// Words describes what the bound allows.
func (n number) Words() string {
	if n.Kind == approval.AtLeast {
		return "anything from " + n.Text + " up to 0"
	}
	return "anything from 0 up to " + n.Text
}

// The defaults of the form and their upper limits, unless a policy is stricter.
const (
	offerHours, mostHours = 1, 30 * 24
	offerUses, mostUses   = 1, 10_000
)

// offer returns nil if the request can't lead to a standing approval.
func (v requestPages) offer(r *approval.Request) *offer {
	c := r.Current().Call
	g := r.Grants
	if g.Forbid || g.Session && c.Session == "" || c.Kind == resolve.MCPTool && c.ToolDefinition == "" ||
		g.MaxAge > 0 && g.MaxAge < time.Hour {
		return nil
	}
	o := &offer{
		Agent:       r.Agent.ID,
		Target:      c.Target(),
		Session:     c.Session,
		SessionOnly: g.Session,
		MaxHours:    mostHours,
		MaxUses:     mostUses,
		Hours:       offerHours,
		Uses:        offerUses,
		Numbers:     numbers(r),
		Ignored:     r.Current().Ignored,
		Lists:       lists(r),
		Exposures:   r.Exposures(),
		Several:     approval.Summarize(r).Needed > 1,
	}
	for _, s := range r.Suggest() {
		o.Texts = append(o.Texts, textBound{s})
	}
	if g.MaxAge > 0 {
		o.MaxHours = min(mostHours, int(g.MaxAge/time.Hour))
	}
	if g.MaxUses > 0 {
		o.MaxUses = min(mostUses, g.MaxUses)
	}

	return o
}

// numbers lists the arguments that every rule allows to vary, if the call has them as numbers and
// no policy hides them.
func numbers(r *approval.Request) []number {
	doc, err := value.Parse([]byte(r.Current().Call.Args), value.DefaultLimits())
	if err != nil {
		return nil
	}
	var out []number
	for _, b := range r.Grants.Bounds {
		v, found := doc.Lookup(b.Path)
		hidden := r.Arguments().Hides(strings.Split(b.Path, ".")...)
		sign := v.Num.Cmp(value.IntNum(0))
		if found && v.Kind == value.Number && !hidden &&
			(b.Kind == approval.AtMost && sign > 0 || b.Kind == approval.AtLeast && sign < 0) {
			out = append(out, number{b.Path, approval.GroupDigits(string(v.AppendJSON(nil))), b.Kind})
		}
	}

	return out
}

// bounded parses a field that is an integer from 1 to most.
func (v requestPages) bounded(field string, most int) (int, error) {
	n, err := strconv.Atoi(v.r.PostForm.Get(field))
	if err != nil || n < 1 || n > most {
		return 0, &approval.InputError{Field: field, Expected: "a whole number from 1 to " + safetext.Count(most)}
	}
	return n, nil
}

// readOffer returns the standing approval that the form offers, or nil if it offers none.
func (v requestPages) readOffer() (*approval.GrantOffer, error) {
	form := v.r.PostForm
	if form.Get("grant") != "on" {
		return nil, nil
	}
	hours, wrong := v.bounded("hours", mostHours)
	uses, also := v.bounded("uses", mostUses)
	if err := cmp.Or(wrong, also); err != nil {
		return nil, err
	}
	o := &approval.GrantOffer{
		Session: form.Get("session") == "on",
		MaxAge:  time.Duration(hours) * time.Hour,
		MaxUses: uses,
	}
	for _, b := range form["bound"] {
		kind, path, _ := strings.Cut(b, ":")
		bound := approval.Bound{Path: path, Kind: approval.BoundKind(kind)}
		if strings.HasPrefix(b, "{") {
			bound = approval.Bound{}
			if err := json.Unmarshal([]byte(b), &bound); err != nil {
				return nil, &approval.InputError{Field: "bound", Expected: "a bound that the form offers"}
			}
		}
		o.Bounds = append(o.Bounds, bound)
	}
	for _, field := range slices.Sorted(maps.Keys(form)) {
		path, also := strings.CutPrefix(field, "also:")
		if !also {
			continue
		}
		for line := range strings.Lines(form.Get(field)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				o.Bounds = append(o.Bounds, approval.Bound{Path: path, Kind: approval.Equals, Value: line})
			}
		}
	}
	return o, nil
}
