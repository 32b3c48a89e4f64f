package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
)

// editPage shows the effect of an edit before it is made: everything that would be approved with
// it.
type editPage struct {
	ID, Target string
	Version    int64
	Binding    string // binding of the current call
	New        string // binding of the edited call
	Args       string
	Note       string
	Outcome    string
	Grounds    []approval.Ground
	Stages     []policy.Stage // stages of the edited call
	AnyOf      []string       // lists of alternatives, in words
	Changes    changeList
	Docs       []document
	Facts      []fact
	Unseen     unseen
	Problem    string // why the edit can't be confirmed
	Seen       string
}

// Confirmable reports whether the edit can be made from this page.
func (p editPage) Confirmable() bool { return p.Problem == "" }

// edit shows the effect of an edit (step preview, or fragment for the script) or makes the edit
// (step confirm).
func (v requestPages) edit() error {
	step := v.r.PostForm.Get("step")
	to := toPreview
	if step == "confirm" {
		to = toEdit
	}
	a, err := v.readAnswer(to)
	// The fragment changes nothing, so it need not wait for Arm.
	if err != nil && !(step == "fragment" && errors.Is(err, errEarly)) {
		return v.tellHere(saying("bad", "Nothing was changed.", sentence(err.Error())))
	}
	in := approval.EditInput{
		Tenant:    v.Tenant,
		ID:        a.Request,
		IfVersion: a.Version,
		Binding:   a.Binding,
		Person:    v.Person.ID,
		Args:      strings.ReplaceAll(v.r.PostForm.Get("arguments"), "\r\n", "\n"),
		Reason:    clean(v.r.PostForm.Get("reason")),
		Channel:   Channel,
	}
	if step == "confirm" {
		return v.confirmEdit(a, in)
	}
	p, err := v.previewEdit(in)
	if err != nil {
		return v.refused(a, err)
	}
	if step == "fragment" {
		v.write(200, "edit", "preview", p)
		return nil
	}
	return v.show("edit", "Edit "+p.Target, "queue", p)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// confirmEdit makes the edit if the page showed exactly this text, and everything else that is
// approved with it.
func (v requestPages) confirmEdit(a seen, in approval.EditInput) error {
	if a.Edit != digest(in.Args) || !a.Full {
		return v.refused(a, approval.ErrNotShown)
	}
	preview, err := v.Service.Preview(v.ctx(), in)
	if err != nil {
		return v.refused(a, err)
	}
	if preview.Request == nil || !slices.Equal(a.Shown, shownDigests(preview.Request)) {
		return v.refused(a, approval.ErrNotShown)
	}
	in.Full = true
	edited, err := v.Service.Edit(v.ctx(), in)
	if err != nil {
		return v.refused(a, err)
	}
	m := outcomeWords(edited.Voted)
	m.Lines = slices.Insert(m.Lines, 0, "The arguments are replaced, and your approval of the new ones is given.")
	return v.tellHere(m)
}

func (v requestPages) previewEdit(in approval.EditInput) (editPage, error) {
	r, err := v.stored(in.ID)
	if err != nil {
		return editPage{}, err
	}
	p := editPage{
		ID:      r.ID,
		Target:  r.Current().Call.Target(),
		Version: r.Version,
		Binding: r.Binding(),
		Args:    in.Args,
		Note:    in.Reason,
	}
	if editable(r) == "" {
		p.Problem = "These arguments can't be edited here: policy hides a part of them, or they are too large."
		return p, nil
	}
	edited, err := v.Service.Preview(v.ctx(), in)
	var input *approval.InputError
	if errors.As(err, &input) {
		p.Problem = sentence(input.Error())
		return p, nil
	}
	if err != nil {
		return p, err
	}
	v.fillEdit(&p, r, edited)
	return p, nil
}

// fillEdit draws the request as it would be after the edit.
func (v requestPages) fillEdit(p *editPage, r *approval.Request, e *approval.Edited) {
	p.New, p.Outcome = e.Binding, e.Decision.Outcome.String()
	after := e.Request
	if after == nil {
		p.Changes = v.showChanges(e.Changes, r.Arguments())
		p.Problem = "The rules deny the edited call, so the edit would be refused: " + e.Decision.Message + "."
		return
	}
	p.Docs = v.documents(after, true)
	p.Facts = facts(after)
	p.Unseen = unseenOf(after)
	p.Changes = v.showChanges(e.Changes, after.Arguments())
	p.Grounds, p.Stages, p.AnyOf = after.Grounds(), after.Stages, after.Alternatives()
	whole := full(p.Docs)
	switch {
	case len(e.Changes) == 0:
		p.Problem = "Nothing is changed yet."
	case !whole:
		p.Problem = "The edited call can't be shown fully, so it can't be approved here."
	case p.Unseen.Forbidden:
		p.Problem = "A policy forbids approving the edited call while it hides a value of it: " +
			strings.Join(p.Unseen.Paths, ", ") + "."
	}

	p.Seen = v.sealSeen(toEdit, r, after, p.Problem == "" && whole, digest(p.Args))
}
