package inbox

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

// tokensPage is the page on which people sign in their command lines, and see and revoke the tokens
// that answer for them.
type tokensPage struct {
	Mine []store.Token // live tokens of this person
}

// tokens shows the page. A code can't be prefilled by a link: a person who reads the code on their
// own command line can type it, and a person who was tricked into following a link has no code.
func (v adminPages) tokens() error {
	var p tokensPage
	all, err := v.Store.Tokens(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Person == v.Person.ID && t.Revoked == nil && v.now.Before(t.Expires) {
			p.Mine = append(p.Mine, t)
		}
	}
	return v.show("tokens", "Command lines", "tokens", p)
}

// devices returns the device sign-in, with the same rules as every other way to get a token.
func (v adminPages) devices() *tokens.Devices {
	return &tokens.Devices{Maker: v.maker(), Values: v.Store}
}

func (v adminPages) maker() *tokens.Maker {
	return &tokens.Maker{
		Store:     v.Store,
		Directory: v.Directory,
		Record:    v.Service.Record,
		Now:       v.Now,
		Random:    rand.Reader,
	}
}

// answerDevice signs a command line in as this person, or refuses it.
func (v adminPages) answerDevice() error {
	if err := v.posted(); err != nil {
		return err
	}
	confirm := v.r.PostForm.Get("answer") == "confirm"
	err := v.devices().Answer(v.ctx(), v.r.PostForm.Get("code"), v.Tenant, v.Person.ID, confirm)
	switch {
	case errors.Is(err, tokens.ErrDeviceGone):
		return v.tell("/device", saying("bad", "No command line shows this code, or it is used up. Nothing was signed in: "+
			"look at the code again, or run assent login once more."))
	case errors.Is(err, tokens.ErrDevicesFull):
		return v.tell("/device", saying("bad", "Nothing was signed in: "+err.Error()+"."))
	case err != nil:
		return err
	case !confirm:
		return v.tell("/device", saying("note", "Refused: the command line that shows this code gets nothing."))
	}

	line := "Signed in: the command line that shows " + tokens.CleanCode(v.r.PostForm.Get("code")) +
		" answers as you from now on, for " + span(tokens.VoteAge) + " at most."

	return v.tell("/device", saying("good", line))
}

// endToken revokes a token of this person.
func (v adminPages) endToken() error {
	if err := v.posted(); err != nil {
		return err
	}
	id := v.id()
	all, err := v.Store.Tokens(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	mine := func(t store.Token) bool { return t.ID == id && t.Person == v.Person.ID }
	if !slices.ContainsFunc(all, mine) {
		return &problem{
			http.StatusForbidden,
			"Not yours to do",
			"That token is not yours, or there is no such token. Nothing was done.",
		}
	}

	if err := v.maker().End(v.ctx(), v.Tenant, id, tokens.By{Person: v.Person.ID}); err != nil {
		return err
	}

	return v.tell("/device", saying("good", "Ended: whoever holds it can do nothing with it any more."))
}

// answers reports whether a token may answer requests.
func answers(t store.Token) bool { return slices.Contains(t.Scopes, string(openapi.ScopeVote)) }
