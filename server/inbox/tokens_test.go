package inbox_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
)

func (h *site) devices() *tokens.Devices {
	return &tokens.Devices{
		Maker: &tokens.Maker{
			Store:     h.store,
			Directory: h.people,
			Record:    h.service.Record,
			Now:       h.now,
			Random:    rand.Reader,
		},
		Values: h.store,
		Key:    make([]byte, 32),
	}
}

func (h *site) begin() tokens.Begun {
	h.t.Helper()
	begun, err := h.devices().Begin("laptop")
	if err != nil {
		h.t.Fatal(err)
	}

	return begun
}

func TestAPersonSignsTheirOwnCommandLineIn(t *testing.T) {
	h := open(t)
	begun := h.begin()
	bob := h.browser("bob")
	bob.get("/device").says(t, "Sign a command line in", "There are none.")
	page := bob.get("/device?code=" + begun.UserCode) // the link was sent by another person
	page.lacks(t, begun.UserCode)
	form := page.form(t, "/device", "Sign it in")
	form.Set("code", begun.UserCode[:13]+"A")
	form.Set("answer", "confirm")
	bob.later("/device", form).says(t, "No command line shows this code")
	form.Set("code", begun.UserCode)
	bob.later("/device", form).says(t, "Signed in: the command line that shows "+begun.UserCode)

	made, _, err := h.devices().Take(t.Context(), begun.DeviceCode)
	if err != nil || made.Person != "bob@example.com" || !slices.Equal(made.Scopes, []string{"read", "vote"}) {
		t.Fatal(made, err)
	}
	page = bob.get("/device")
	page.says(t, made.Name, "Answers in your name")
	h.browser("carol").get("/device").lacks(t, made.Name)

	form = page.form(t, "/tokens/"+made.ID+"/end", "")
	h.pass(time.Second)
	if p := h.browser("carol").post("/tokens/"+made.ID+"/end", form); p.status == 200 {
		t.Error("somebody ended another's token with another's form")
	}
	bob.post("/tokens/"+made.ID+"/end", form).says(t, "Ended:", "There are none.")
	if after := h.token(made.ID); after.Revoked == nil {
		t.Errorf("%+v", after)
	}
}

func (h *site) token(id string) store.Token {
	h.t.Helper()
	all, err := h.store.Tokens(h.t.Context(), tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(t store.Token) bool { return t.ID == id })
	if i < 0 {
		h.t.Fatalf("no token %s in %+v", id, all)
	}

	return all[i]
}

func TestARefusedCommandLineGetsNothing(t *testing.T) {
	h := open(t)
	begun := h.begin()
	bob := h.browser("bob")
	form := bob.get("/device").form(t, "/device", "Sign it in")
	form.Set("code", begun.UserCode)
	form.Set("answer", "refuse")
	bob.later("/device", form).says(t, "Refused: the command line that shows this code gets nothing.")
	bob.post("/device", form).says(t, "used up")
	if _, _, err := h.devices().Take(t.Context(), begun.DeviceCode); !errors.Is(err, tokens.ErrDeviceRefused) {
		t.Error(err)
	}
}

func TestNobodyEndsTheTokenOfSomebodyElse(t *testing.T) {
	h := open(t)
	made, _, err := h.devices().Maker.Make(
		t.Context(),
		tenant,
		tokens.Spec{Name: "runtime", Scopes: []string{"request"}},
		tokens.By{Operator: true},
	)
	must.Do(t, err)
	bob := h.browser("bob")
	form := bob.get("/device").form(t, "/device", "Sign it in")
	bob.later("/tokens/"+made.ID+"/end", form).says(t, "That token is not yours")
	if after := h.token(made.ID); after.Revoked != nil {
		t.Errorf("%+v", after)
	}
}
