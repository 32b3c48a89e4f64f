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
	maxSignIns   = 20  // links of one call, each in the place of the one before
	mostSignedIn = 100 // sign-ins of a person that are shown
	// tidySignIns is how often sign-ins are looked for that a process
	// ended and did not tell of before it died.
	tidySignIns = time.Minute
)

// signIn is what a call's record says of the sign-in that its tool
// wants, beside the link.
type signIn struct {
	Place  string    `json:"place"`            // of the document by which its user finds it; "": nobody does
	Links  int       `json:"links"`            // how many the tool sent
	Choice int       `json:"choice,omitempty"` // how many questions it had asked before
	Since  time.Time `json:"since"`
}

// keptSignIn is the document by which people find a sign-in. What is
// true stands in the record of the call: it is written before that, and
// removed once everybody was told that it is over.
type keptSignIn struct {
	Call  string    `json:"call"`
	Since time.Time `json:"since"`
	Told  string    `json:"told,omitempty"` // digest of the link that the ledger was told of
}

// takeSignIn keeps where the user is to sign in. Nothing is sent back;
// the call stays pending. The tool hears that it is kept once the
// ledger knows, so that whoever is told of it is.
func (r *Runtime) takeSignIn(ctx context.Context, c *call, m *wire.OAuth) error {
	if c.Over() {
		return &refusal{http.StatusGone, "the call has ended"}
	}
	place, err := r.signInPlace(ctx, c)
	if err != nil {
		return err
	}
	told := durable.Hash(m.AuthURL)
	before, err := r.keepSignIn(ctx, c, place, "")
	if err != nil {
		return err
	}

	now, err := r.engine.Change(ctx, c.Key, func(c *call) error { return r.addSignIn(c, place, m.AuthURL) })
	switch {
	case errors.Is(err, durable.ErrUnchanged) && before == told:
		return nil
	case err != nil && !errors.Is(err, durable.ErrUnchanged):
		return err
	case now.Part.Told.SignInHost == "":
		r.log.Warn("a link to sign in is shown to nobody: its origin is not registered for the tool server",
			"call", callName(c.Key))
	}

	if place == "" {
		return nil
	}

	if err := r.record(ctx, signin.EventAsked, now, map[string]any{signin.Fact: signInID(c)}); err != nil {
		return err
	}
	_, err = r.keepSignIn(ctx, now, place, told)

	return err
}

// addSignIn makes a link the call's own, in the place of one before.
func (r *Runtime) addSignIn(c *call, place, link string) error {
	p := &c.Part
	switch {
	case c.Over():
		return &refusal{http.StatusGone, "the call has ended"}
	case p.Told.SignIn == link && p.SignIn.Place == place:
		return durable.ErrUnchanged
	case p.SignIn.Links >= maxSignIns:
		return &refusal{http.StatusConflict, "the link was changed too often"}
	}

	heard(c)
	p.Told.SignIn, p.Told.SignInHost = link, ""
	if at := r.signInAt(c); at.Link != "" {
		p.Told.SignInHost = at.Host
	}
	p.SignIn.Place = place
	p.SignIn.Links++
	p.SignIn.Choice = p.Choices
	p.SignIn.Since = r.now()

	return nil
}

// signInAt is where a call's link leads: no link where its origin is
// none of those that are registered for the tool server by now.
func (r *Runtime) signInAt(c *call) signin.Place {
	return signin.At(c.Part.Told.SignIn, func(address string) error {
		s := r.servers[c.Part.Server]
		if s == nil {
			return errors.New("its tool server is not registered any more")
		}

		return s.peer.Check(address)
	})
}

// signInPlace is where the user of a call finds its sign-in: where they
// found it before, if they did. "" is nowhere.
func (r *Runtime) signInPlace(ctx context.Context, c *call) (string, error) {
	if c.Part.SignIn.Place != "" || r.cfg.Person == nil {
		return c.Part.SignIn.Place, nil
	}
	user, err := r.userOf(ctx, c)
	if err != nil || user == "" {
		return "", err
	}

	return r.names.Person(user) + "/" + signInID(c), nil
}

// signInID is the name of a call's sign-in. It says nothing of the call.
func signInID(c *call) string { return "sign_in_" + durable.Hash("sign_in " + c.Key)[:32] }

// keepSignIn keeps the document of a sign-in, and what the ledger was
// told, unless told is "". It returns what that was before.
func (r *Runtime) keepSignIn(ctx context.Context, c *call, place, told string) (before string, err error) {
	if place == "" {
		return "", nil
	}
	_, err = r.signIns.Edit(ctx, place, func(d *durable.Doc[keptSignIn]) error {
		if d.Version == 0 {
			d.Alias = signInID(c)
			d.Body = keptSignIn{Call: c.Key, Since: r.now()}
		}
		before = d.Body.Told
		d.Body.Told = cmp.Or(told, before)
		d.Expires = later(c.Deadline, r.now()).Add(r.cfg.CallWithin + keepEnded)

		return nil
	})
	if err != nil {
		return "", fmt.Errorf("keep a sign-in: %w", err)
	}

	return before, nil
}

// asksToSignIn reports whether a call waits for its user to sign in.
func (r *Runtime) asksToSignIn(c *call) bool {
	return c.Part.Told.SignIn != "" && !c.Over() && !r.gone(c.Expires) &&
		(c.Deadline.IsZero() || r.now().Before(c.Deadline))
}

// signedIn forgets a sign-in that a question came after, since its
// answer lets the call go on.
func signedIn(c *call) {
	if c.Part.Choice != nil && c.Part.Choice.Number > c.Part.SignIn.Choice {
		c.Part.Told.SignIn, c.Part.Told.SignInHost = "", ""
	}
}

// overSignIn tells that nobody needs to sign in any more for a call,
// once. After a crash in the middle of it tidySignIns does.
func (r *Runtime) overSignIn(ctx context.Context, c *call) {
	if c.Part.SignIn.Place == "" || r.asksToSignIn(c) {
		return
	}
	d, err := r.signIns.Get(ctx, c.Part.SignIn.Place)
	if err == nil && d.Body.Told != "" {
		err = r.record(ctx, signin.EventOver, c, map[string]any{signin.Fact: signInID(c)})
	}
	if err == nil {
		err = r.signIns.Remove(ctx, d)
	}
	if err != nil && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, approval.ErrVersion) {
		r.log.Warn("the end of a sign-in is told later", "call", callName(c.Key), "error", plainError(err))
	}
}

// tidy tells of sign-ins that are over and that nobody told of, again
// and again until ctx ends.
func (r *Runtime) tidy(ctx context.Context) {
	again := time.NewTicker(tidySignIns)
	defer again.Stop()
	for {
		err := r.signIns.All(ctx, "", func(d *durable.Doc[keptSignIn]) error { return r.tidyOne(ctx, d) })
		if err != nil {
			r.log.Warn("sign-ins can't be looked through", "error", plainError(err))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runtime) tidyOne(ctx context.Context, d *durable.Doc[keptSignIn]) error {
	c, err := r.engine.Get(ctx, d.Body.Call)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return r.signIns.Remove(ctx, d)
	case err != nil:
		return err
	case c.Part.SignIn.Place == d.Key:
		r.overSignIn(ctx, c)
	}

	return nil
}

// SignInsOf lists what a person of the directory is asked to sign in to
// now. Agent is not set: a runtime doesn't know its agent's name.
func (r *Runtime) SignInsOf(ctx context.Context, person string) (signin.Page, error) {
	var page signin.Page
	if person == "" || r.cfg.Person == nil {
		return page, nil
	}
	docs, err := r.signIns.List(ctx, r.names.Person(person)+"/", "", mostSignedIn+1)
	if err != nil {
		return page, fmt.Errorf("list the sign-ins of a person: %w", err)
	}
	for _, d := range docs {
		one, whose, err := r.openSignIn(ctx, d)
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

// SignIn is a sign-in that is open, and whose it is; approval.ErrNotFound.
func (r *Runtime) SignIn(ctx context.Context, id string) (one signin.Asked, person string, err error) {
	d, err := r.signIns.ByAlias(ctx, id)
	if err == nil {
		one, person, err = r.openSignIn(ctx, d)
	}
	if err != nil {
		return signin.Asked{}, "", fmt.Errorf("read a sign-in: %w", err)
	}

	return one, person, nil
}

// openSignIn is what a document stands for, and the person who may see
// it, as of now. Every entrance by which people see a sign-in asks here.
func (r *Runtime) openSignIn(ctx context.Context, d *durable.Doc[keptSignIn]) (signin.Asked, string, error) {
	c, err := r.engine.Get(ctx, d.Body.Call)
	if err != nil {
		return signin.Asked{}, "", err
	}
	if !r.asksToSignIn(c) || c.Part.SignIn.Place != d.Key {
		return signin.Asked{}, "", approval.ErrNotFound
	}
	user, err := r.userOf(ctx, c)
	if err != nil {
		return signin.Asked{}, "", err
	}
	if user == "" {
		return signin.Asked{}, "", approval.ErrNotFound
	}

	at := r.signInAt(c)
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
