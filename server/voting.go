package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/value"
)

// person returns the person for whom the token may answer.
func (x *exchange) person() (string, error) {
	if x.token.Person == "" {
		return "", errNoPerson()
	}
	_, err := x.namesPerson()
	return x.token.Person, err
}

func errNoPerson() error {
	return fail(openapi.CodeNoPerson, "only a token that was made for a person may answer")
}

// namesPerson checks that the token names its person by their id, and reports whether the
// directory knows them. Another name may be assigned to another person later, for whom the
// token must not answer.
func (x *exchange) namesPerson() (known bool, err error) {
	return x.Server.namesPerson(x.r.Context(), x.token)
}

func (s *Server) namesPerson(ctx context.Context, t *store.Token) (known bool, err error) {
	if t.Person == "" {
		return false, nil
	}
	p, known, err := s.cfg.Directory.Person(ctx, t.Tenant, t.Person)
	if err != nil {
		p := fail(openapi.CodeUnavailable, "the directory of people can't be asked about the token's person")
		p.cause = fmt.Errorf("ask the directory: %w", err)

		return false, p
	}
	if known && p.ID != t.Person {
		return false, fail(
			openapi.CodeNoPerson,
			"the token must name the person's id, not another name: have one made for the id that people.yaml or "+
				"the sign-in gives",
		)
	}

	return known, nil
}

// versionText is the form of a request's ETag. openapi.yaml has the same pattern.
var versionText = pattern.Of(`^"[1-9][0-9]{0,14}"$`)

// seen reads If-Match: the version that the person answers.
func (x requestOps) seen() (int64, error) {
	all := x.r.Header.Values("If-Match")
	if len(all) == 0 {
		return 0, fail(
			openapi.CodeIfMatchRequired,
			`expected the header If-Match: "N" with the version that the person saw`,
		).in("If-Match")
	}

	version, err := strconv.ParseInt(strings.Trim(all[0], `"`), 10, 64)
	if len(all) > 1 || !versionText().MatchString(all[0]) || err != nil {
		return 0, bad("If-Match", `expected one version in quotes, such as "3"`)
	}
	return version, nil
}

// answering reads the common parts of a vote and an edit: the request, the person and the
// version.
func (x requestOps) answering() (r *approval.Request, person string, version int64, err error) {
	if person, err = x.person(); err != nil {
		return
	}
	if version, err = x.seen(); err != nil {
		return
	}
	r, err = x.known(x.r.PathValue("id"))
	return
}

func (x requestOps) vote() error {
	r, person, version, err := x.answering()
	if err != nil {
		return err
	}
	f := object(
		x.body,
		"",
		"verdict",
		"binding",
		"shown_fully",
		"reason",
		"response",
		"choice",
		"data",
		"grant",
		"channel",
	).must("verdict", "binding")
	in := approval.VoteInput{
		Tenant:    x.tenant(),
		ID:        r.ID,
		IfVersion: version,
		Person:    person,
		Channel:   f.channel(x.cfg.Channels),
		Verdict:   approval.Verdict(f.text("verdict")),
		Binding:   f.text("binding"),
		Token:     x.token.Name,
		Full:      f.flag("shown_fully"),
		Reason:    f.text("reason"),
		Response:  f.text("response"),
		Choice:    f.choice("choice"),
		Data:      f.json("data"),
		Grant:     f.grant("grant"),
	}
	if f.err != nil {
		return f.err
	}
	voted, err := x.cfg.Service.Vote(x.r.Context(), in)
	if err != nil {
		return x.with(r, err)
	}
	x.w.Header().Set("ETag", etag(voted.Request))
	return x.answer(http.StatusOK, voted)
}

// channelName is the form of the channel that a client may give. The server's own channels
// set theirs themselves.
var channelName = pattern.Of(`^[A-Za-z0-9._-]{1,32}$`)

// channel returns where the person answered, as the client names it. reserved are the names
// of the server's channels.
func (f *fields) channel(reserved []string) string {
	if !f.has("channel") {
		return "api"
	}
	name := f.text("channel")
	switch {
	case !channelName().MatchString(name):
		f.refuse("channel", "expected 1 to 32 letters, digits and ._-")
	case slices.Contains(reserved, name):
		f.refuse(
			"channel",
			"expected the client's own name: "+strings.Join(reserved, " and ")+" are the server's channels",
		)
	}

	return name
}

// grant reads the grant that an approver offers with the vote.
func (f *fields) grant(name string) *approval.GrantOffer {
	raw, ok := f.raw[name]
	if !ok || f.err != nil {
		return nil
	}
	in := object(raw, f.prefix+name+".", "session", "max_age", "max_uses", "bounds")
	offer := &approval.GrantOffer{
		Session: in.flag("session"),
		MaxAge:  in.duration("max_age"),
		MaxUses: in.count("max_uses"),
		Bounds:  in.bounds("bounds"),
	}
	if in.err == nil && !offer.Session && offer.MaxAge == 0 && offer.MaxUses == 0 {
		in.refuse(
			"max_age",
			"expected max_age, max_uses or session: a standing approval is never made by leaving things out",
		)
	}

	f.err = in.err
	return offer
}

func (f *fields) bounds(name string) []approval.Bound {
	var out []approval.Bound
	for i, item := range f.value(name, value.Array, "a list of bounds").Items {
		one := object(
			item.AppendJSON(nil),
			fmt.Sprintf("%s%s.%d.", f.prefix, name, i),
			"path",
			"kind",
			"value",
		).must("path", "kind")
		b := approval.Bound{
			Path:  one.text("path"),
			Kind:  approval.BoundKind(one.text("kind")),
			Value: one.text("value"),
		}
		if one.err == nil && !policy.IsBoundKind(b.Kind) {
			one.refuse("kind", "expected "+policy.BoundKinds())
		}
		if one.err != nil {
			f.err = one.err
			return nil
		}
		out = append(out, b)
	}

	return out
}

func (x requestOps) edit() error {
	r, person, version, err := x.answering()
	if err != nil {
		return err
	}
	preview, err := x.flag("preview")
	if err != nil {
		return err
	}
	f := object(x.body, "", "arguments", "binding", "shown_fully", "reason", "channel").must("arguments", "binding")
	in := approval.EditInput{
		Tenant:    x.tenant(),
		ID:        r.ID,
		IfVersion: version,
		Person:    person,
		Channel:   f.channel(x.cfg.Channels),
		Token:     x.token.Name,
		Binding:   f.text("binding"),
		Args:      f.text("arguments"),
		Full:      f.flag("shown_fully"),
		Reason:    f.text("reason"),
	}
	if f.err != nil {
		return f.err
	}
	do := x.cfg.Service.Edit
	if preview {
		do = x.cfg.Service.Preview
	}
	edited, err := do(x.r.Context(), in)
	if err != nil {
		p := x.with(r, err)
		if edited != nil && p.Code == openapi.CodeEditDenied {
			p.Detail = why(edited.Decision)
		}
		return p
	}

	return x.answer(http.StatusOK, edited)
}

// why returns the first reason of a denial.
func why(d resolve.Decision) string {
	if len(d.Reasons) == 0 {
		return ""
	}
	return d.Reasons[0].Detail
}
