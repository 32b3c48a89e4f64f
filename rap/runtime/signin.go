package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	maxSignIns   = 20  // links of one call, each replacing the one before
	mostSignedIn = 100 // sign-ins of a person that are shown
	// tidySignIns is the interval of the search for sign-ins that ended without an event in the
	// ledger because the process died.
	tidySignIns = time.Minute
)

// signIn is the part of a call's record for the sign-in that its tool requires, except the
// link.
type signIn struct {
	Place  string    `json:"place"`            // key of the document by which its user finds it; empty if there is none
	Links  int       `json:"links"`            // number of links that the tool sent
	Choice int       `json:"choice,omitempty"` // number of questions it had asked before
	Since  time.Time `json:"since"`
}

// keptSignIn is the document by which people find a sign-in. The record of the call is
// authoritative: the document is written before the record, and removed after the end was
// recorded in the ledger.
type keptSignIn struct {
	Call  string    `json:"call"`
	Since time.Time `json:"since"`
	Told  string    `json:"told,omitempty"` // digest of the link that was recorded in the ledger
}

// signInKeeper keeps the links by which users have to sign in to tools.
type signInKeeper struct {
	*base
	vault *durable.Vault[keptSignIn]
}

// takeSignIn stores the link by which the user has to sign in. The call stays pending. The tool
// gets 200 only after the ledger has the event, so that a lost event is sent again.
func (k *signInKeeper) takeSignIn(ctx context.Context, c *call, m *wire.OAuth) error {
	if c.Over() {
		return &refusal{http.StatusGone, "the call has ended"}
	}
	place, err := k.signInPlace(ctx, c)
	if err != nil {
		return err
	}
	told := durable.Hash(m.AuthURL)
	before, err := k.keepSignIn(ctx, c, place, "")
	if err != nil {
		return err
	}

	now, err := k.engine.Change(ctx, c.Key, func(c *call) error { return k.addSignIn(c, place, m.AuthURL) })
	switch {
	case errors.Is(err, durable.ErrUnchanged) && before == told:
		return nil
	case err != nil && !errors.Is(err, durable.ErrUnchanged):
		return err
	case now.Part.Told.SignInHost == "":
		k.log.Warn("a link to sign in is shown to nobody: its origin is not registered for the tool server",
			"call", callName(c.Key))
	}

	if place == "" {
		return nil
	}

	if err := k.record(ctx, signin.EventAsked, now, map[string]any{signin.Fact: signInID(c)}); err != nil {
		return err
	}
	_, err = k.keepSignIn(ctx, now, place, told)

	return err
}

// addSignIn sets the link of a call, replacing any previous one.
func (k *signInKeeper) addSignIn(c *call, place, link string) error {
	p := &c.Part
	switch {
	case c.Over():
		return &refusal{http.StatusGone, "the call has ended"}
	case p.Told.SignIn == link && p.SignIn.Place == place:
		return durable.ErrUnchanged
	case p.SignIn.Links >= maxSignIns:
		return &refusal{http.StatusConflict, "the link was changed too often"}
	}

	noteReceived(c)
	p.Told.SignIn, p.Told.SignInHost = link, ""
	if at := k.signInAt(c); at.Link != "" {
		p.Told.SignInHost = at.Host
	}
	p.SignIn.Place = place
	p.SignIn.Links++
	p.SignIn.Choice = p.Choices
	p.SignIn.Since = k.now()

	return nil
}

// signInAt returns the link of a call. Place.Link is empty if its origin is not currently
// registered for the tool server.
func (k *signInKeeper) signInAt(c *call) signin.Place {
	return signin.At(c.Part.Told.SignIn, func(address string) error {
		s := k.servers[c.Part.Server]
		if s == nil {
			return errors.New("its tool server is not registered any more")
		}

		return s.peer.Check(address)
	})
}

// signInPlace returns the key under which the user finds the sign-in: the previous one, if
// there is one, or empty if there is no known user.
func (k *signInKeeper) signInPlace(ctx context.Context, c *call) (string, error) {
	if c.Part.SignIn.Place != "" || k.cfg.Person == nil {
		return c.Part.SignIn.Place, nil
	}
	user, err := k.userOf(ctx, c)
	if err != nil || user == "" {
		return "", err
	}

	return k.names.Person(user) + "/" + signInID(c), nil
}

// signInID returns the id of a call's sign-in, which reveals nothing about the call.
func signInID(c *call) string { return "sign_in_" + durable.Hash("sign_in " + c.Key)[:32] }

// keepSignIn stores the document of a sign-in and, unless it is empty, the digest of the link
// recorded in the ledger. It returns the previous digest.
func (k *signInKeeper) keepSignIn(ctx context.Context, c *call, place, told string) (before string, err error) {
	if place == "" {
		return "", nil
	}
	_, err = k.vault.Edit(ctx, place, func(d *durable.Doc[keptSignIn]) error {
		if d.Version == 0 {
			d.Alias = signInID(c)
			d.Body = keptSignIn{Call: c.Key, Since: k.now()}
		}
		before = d.Body.Told
		d.Body.Told = cmp.Or(told, before)
		d.Expires = later(c.Deadline, k.now()).Add(k.cfg.CallWithin + keepEnded)

		return nil
	})
	if err != nil {
		return "", fmt.Errorf("keep a sign-in: %w", err)
	}

	return before, nil
}

// clearSignIn removes the sign-in if the question that was just answered came after it: the
// answer shows that the call goes on.
func clearSignIn(c *call) {
	if c.Part.Choice != nil && c.Part.Choice.Number > c.Part.SignIn.Choice {
		c.Part.Told.SignIn, c.Part.Told.SignInHost = "", ""
	}
}

// endSignIn records once that a call's sign-in is over. After a crash tidy does it.
func (k *signInKeeper) endSignIn(ctx context.Context, c *call) {
	if c.Part.SignIn.Place == "" || k.asksToSignIn(c) {
		return
	}
	d, err := k.vault.Get(ctx, c.Part.SignIn.Place)
	if err == nil && d.Body.Told != "" {
		err = k.record(ctx, signin.EventOver, c, map[string]any{signin.Fact: signInID(c)})
	}
	if err == nil {
		err = k.vault.Remove(ctx, d)
	}
	if err != nil && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, approval.ErrVersion) {
		k.log.Warn("the end of a sign-in is told later", "call", callName(c.Key), "error", plainError(err))
	}
}

// tidy records the end of sign-ins that ended without being recorded, repeatedly until ctx
// ends.
func (k *signInKeeper) tidy(ctx context.Context) {
	again := time.NewTicker(tidySignIns)
	defer again.Stop()
	for {
		err := k.vault.All(ctx, "", func(d *durable.Doc[keptSignIn]) error { return k.tidyOne(ctx, d) })
		if err != nil {
			k.log.Warn("sign-ins can't be looked through", "error", plainError(err))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (k *signInKeeper) tidyOne(ctx context.Context, d *durable.Doc[keptSignIn]) error {
	c, err := k.engine.Get(ctx, d.Body.Call)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return k.vault.Remove(ctx, d)
	case err != nil:
		return err
	case c.Part.SignIn.Place == d.Key:
		k.endSignIn(ctx, c)
	}

	return nil
}

// SignInsOf lists the open sign-ins of a person of the directory. Agent is not set, because a
// runtime doesn't know its agent's name.
func (r *Runtime) SignInsOf(ctx context.Context, person string) (signin.Page, error) {
	var page signin.Page
	if person == "" || r.cfg.Person == nil {
		return page, nil
	}
	docs, err := r.signIns.vault.List(ctx, r.names.Person(person)+"/", "", mostSignedIn+1)
	if err != nil {
		return page, fmt.Errorf("list the sign-ins of a person: %w", err)
	}
	for _, d := range docs {
		one, whose, err := r.signIns.openSignIn(ctx, d)
		switch {
		case errors.Is(err, approval.ErrNotFound):
		case err != nil:
			return signin.Page{}, fmt.Errorf("list the sign-ins of a person: %w", err)
		case whose == person:
			page.SignIns = append(page.SignIns, one)
		}
	}

	page.More = len(docs) > mostSignedIn

	return page, nil
}

// SignIn returns an open sign-in and the person it is for, or approval.ErrNotFound.
func (r *Runtime) SignIn(ctx context.Context, id string) (one signin.Asked, person string, err error) {
	d, err := r.signIns.vault.ByAlias(ctx, id)
	if err == nil {
		one, person, err = r.signIns.openSignIn(ctx, d)
	}
	if err != nil {
		return signin.Asked{}, "", fmt.Errorf("read a sign-in: %w", err)
	}

	return one, person, nil
}

// openSignIn returns the open sign-in of a document and the person who may see it. Every way to
// see a sign-in uses it.
func (k *signInKeeper) openSignIn(ctx context.Context, d *durable.Doc[keptSignIn]) (signin.Asked, string, error) {
	c, err := k.engine.Get(ctx, d.Body.Call)
	if err != nil {
		return signin.Asked{}, "", err
	}
	if !k.asksToSignIn(c) || c.Part.SignIn.Place != d.Key {
		return signin.Asked{}, "", approval.ErrNotFound
	}
	user, err := k.userOf(ctx, c)
	if err != nil {
		return signin.Asked{}, "", err
	}
	if user == "" {
		return signin.Asked{}, "", approval.ErrNotFound
	}

	at := k.signInAt(c)
	return signin.Asked{
		ID:        signInID(c),
		Server:    c.Part.Server,
		Operation: c.Part.Operation,
		Host:      at.Host,
		Link:      at.Link,
		Since:     c.Part.SignIn.Since,
		Until:     c.Deadline,
	}, user, nil
}
