package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/value"
)

func (x *exchange) decide() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	call, err := parseCall(x.body, "")
	if err != nil {
		return err
	}
	d, err := x.cfg.Service.Decide(x.r.Context(), x.tenant(), agent, call)
	if err != nil {
		return err
	}
	x.metrics.called(d.Outcome.String())
	return x.answer(http.StatusOK, d)
}

// agent is the agent of the path, if the token may act for it.
func (x *exchange) agent() (string, error) {
	agent := x.r.PathValue("agent")
	if !actsFor(x.token, agent) {
		return "", fail(openapi.CodeAgentNotAllowed, "the token is bound to "+strings.Join(x.token.Agents, ", "))
	}
	return agent, nil
}

func (x *exchange) openRequest() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	f := object(x.body, "", "call", "replaces", "within").must("call")
	in := approval.OpenInput{
		Tenant:   x.tenant(),
		Asker:    asker(x.token),
		Agent:    agent,
		Call:     f.call("call"),
		Key:      key,
		Replaces: f.text("replaces"),
		Within:   f.duration("within"),
	}
	if f.err != nil {
		return f.err
	}
	if in.Replaces != "" {
		if _, err := x.own(in.Replaces); err != nil {
			return fail(openapi.CodeInvalid, "replaces: expected an earlier request of this token").in("replaces")
		}
	}
	if err := x.namesPerson(); err != nil { // who asks is barred from answering: the right one must be
		return err
	}
	opened, err := x.cfg.Service.Open(x.r.Context(), in)
	if err != nil {
		return err
	}
	x.wake()
	x.metrics.called(opened.Word())
	return x.opened(opened)
}

func (x *exchange) opened(o *approval.Opened) error {
	if o.Outcome != resolve.Ask || o.Shared {
		return x.answer(http.StatusOK, o)
	}
	x.w.Header().Set("Location", "/v1/requests/"+o.Request.ID)
	x.w.Header().Set("ETag", etag(o.Request))
	return x.answer(http.StatusCreated, o)
}

const longestKey = 200 // characters

// idempotencyKey is the runtime's own: two runtimes that choose the
// same key mean two things.
func (x *exchange) idempotencyKey() (string, error) {
	switch keys := x.r.Header.Values("Idempotency-Key"); {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1 || keys[0] == "" || utf8.RuneCountInString(keys[0]) > longestKey:
		return "", fail(
			openapi.CodeBadRequest,
			fmt.Sprintf("Idempotency-Key: expected one of at most %d characters", longestKey),
		).in("Idempotency-Key")
	default:
		return keys[0], nil
	}
}

// maxWait bounds a long poll, so that proxies on the way stay calm.
const maxWait = 60 * time.Second

func (x *exchange) getRequest() error {
	id := x.r.PathValue("id")
	wait, err := x.duration("wait")
	if err != nil {
		return err
	}
	version, err := x.integer("version", 0, mostWhole, 0)
	if err != nil {
		return err
	}
	if wait > 0 { // whoever finds no place has nothing read for them
		place, err := x.place(x.cfg.Shares.Polls, "polls")
		if err != nil {
			return err
		}
		defer place.Return()
	}

	r, err := x.readable(id)
	if err != nil {
		return err
	}
	if wait > 0 && r.Version == version {
		if r, err = x.moved(id, version, min(wait, maxWait)); err != nil {
			return err
		}
	}
	if err := x.heldBack(r); err != nil {
		return err
	}
	return x.answerRequest(r)
}

// moved waits until a request has changed, and reads it again.
// Meanwhile nothing is kept of it.
func (x *exchange) moved(id string, version int64, wait time.Duration) (*approval.Request, error) {
	x.giveBack()
	ctx, done := x.waiting(wait)
	err := x.cfg.Service.Await(ctx, x.tenant(), id, version, wait)
	drained := ctx.Err() != nil && x.r.Context().Err() == nil // then the answer is what stands now
	done()
	if err != nil && !drained {
		return nil, err
	}
	if err := x.enter(); err != nil {
		return nil, err
	}
	if err := x.stillMay(openapi.ScopeRead, openapi.ScopeRequest); err != nil {
		return nil, err
	}
	return x.readable(id)
}

// waiting is the context of a long poll, which the draining of the
// server ends too.
func (x *exchange) waiting(wait time.Duration) (ctx context.Context, done func()) {
	// recorders of tests have none
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(wait + answerTime))
	ctx, cancel := context.WithCancel(x.r.Context())
	x.metrics.polls.Inc()
	go func() {
		select {
		case <-x.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		x.metrics.polls.Dec()
	}
}

func (x *exchange) answerRequest(r *approval.Request) error {
	x.w.Header().Set("ETag", etag(r))
	return x.answer(http.StatusOK, r)
}

func etag(r *approval.Request) string { return fmt.Sprintf("%q", strconv.FormatInt(r.Version, 10)) }

// own returns a request that this runtime asked for, be it first or
// later. Others are as if they were not there.
func (x *exchange) own(id string) (*approval.Request, error) {
	r, err := x.cfg.Service.Own(x.r.Context(), x.tenant(), id, asker(x.token))
	if err == nil && !actsFor(x.token, r.Agent.ID) {
		return nil, approval.ErrNotFound
	}
	return r, err
}

// known returns a request of an agent that the token may act for.
func (x *exchange) known(id string) (*approval.Request, error) {
	if err := x.roomFor(id); err != nil {
		return nil, err
	}
	r, err := x.cfg.Service.Request(x.r.Context(), x.tenant(), id)
	if err == nil && !actsFor(x.token, r.Agent.ID) {
		return nil, approval.ErrNotFound
	}
	return r, err
}

// readable returns a request that the token may read: any with scope
// read, else its own.
func (x *exchange) readable(id string) (*approval.Request, error) {
	if may(x.token, openapi.ScopeRead) {
		return x.known(id)
	}
	return x.own(id)
}

// person is whose answers the token gives.
func (x *exchange) person() (string, error) {
	if x.token.Person == "" {
		return "", fail(openapi.CodeNoPerson, "only a token that was made for a person may answer")
	}
	return x.token.Person, x.namesPerson()
}

// namesPerson holds the token's person to their id. Another name may
// pass to somebody else, whose answers the token must never give.
func (x *exchange) namesPerson() error {
	if x.token.Person == "" {
		return nil
	}
	p, known, err := x.cfg.Directory.Person(x.r.Context(), x.tenant(), x.token.Person)
	if err != nil {
		return fmt.Errorf("ask the directory: %w", err)
	}
	if known && p.ID != x.token.Person {
		return fail(
			openapi.CodeNoPerson,
			"the token must name the person's id, not another name: have one made for the id that people.yaml or "+
				"the sign-in gives",
		)
	}

	return nil
}

// versionText is an ETag of a request. openapi.yaml has the same pattern.
var versionText = regexp.MustCompile(`^"[1-9][0-9]{0,14}"$`)

// seen reads If-Match: the version that a person answers.
func (x *exchange) seen() (int64, error) {
	all := x.r.Header.Values("If-Match")
	if len(all) == 0 {
		return 0, fail(
			openapi.CodeIfMatchRequired,
			`expected the header If-Match: "N" with the version that the person saw`,
		).in("If-Match")
	}

	version, err := strconv.ParseInt(strings.Trim(all[0], `"`), 10, 64)
	if len(all) > 1 || !versionText.MatchString(all[0]) || err != nil {
		return 0, fail(
			openapi.CodeBadRequest,
			`If-Match: expected one version in quotes, such as "3"`,
		).in("If-Match")
	}

	return version, nil
}

// answering is what a vote and an edit have in common: who answers what.
func (x *exchange) answering() (r *approval.Request, person string, version int64, err error) {
	if person, err = x.person(); err != nil {
		return
	}
	if version, err = x.seen(); err != nil {
		return
	}
	r, err = x.known(x.r.PathValue("id"))
	return
}

func (x *exchange) vote() error {
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
		Grant:     f.grant("grant"),
	}
	if f.err != nil {
		return f.err
	}
	voted, err := x.cfg.Service.Vote(x.r.Context(), in)
	if err != nil {
		return x.with(r, err)
	}
	x.wake()
	x.w.Header().Set("ETag", etag(voted.Request))
	return x.answer(http.StatusOK, voted)
}

// channelName is what a client may call itself; the server's own
// channels say who they are themselves.
var channelName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// channel is where the person answered, in the client's words. reserved
// are the names of channels of this server.
func (f *fields) channel(reserved []string) string {
	if !f.has("channel") {
		return "api"
	}
	name := f.text("channel")
	switch {
	case !channelName.MatchString(name):
		f.refuse("channel", "expected 1 to 32 letters, digits and ._-")
	case slices.Contains(reserved, name):
		f.refuse(
			"channel",
			"expected the client's own name: "+strings.Join(reserved, " and ")+" are the server's channels",
		)
	}

	return name
}

// grant reads what an approver offers beside the vote.
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
		).must("path", "kind")
		b := approval.Bound{Path: one.text("path"), Kind: approval.BoundKind(one.text("kind"))}
		if one.err == nil && b.Kind != approval.AtMost && b.Kind != approval.AtLeast {
			one.refuse("kind", "expected at_most or at_least")
		}
		if one.err != nil {
			f.err = one.err
			return nil
		}
		out = append(out, b)
	}

	return out
}

func (x *exchange) edit() error {
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

	x.wake()
	return x.answer(http.StatusOK, edited)
}

// why is the first reason of a denial.
func why(d resolve.Decision) string {
	if len(d.Reasons) == 0 {
		return ""
	}
	return d.Reasons[0].Detail
}

// with tells which request a problem is about, and where it stands now.
func (x *exchange) with(r *approval.Request, err error) *problem {
	p := problemOf(err).about(r.ID)
	if now, err := x.cfg.Service.Request(x.r.Context(), x.tenant(), r.ID); err == nil {
		r = now
	}
	switch p.Code {
	case openapi.CodeNotApproved,
		openapi.CodeClosed,
		openapi.CodePending,
		openapi.CodeConsumed,
		openapi.CodeStale,
		openapi.CodeVersionMismatch:
		p.State = r.State
	}

	if p.Code == openapi.CodeNotApproved && p.Detail == "" {
		p.Detail = "it is " + string(r.State)
	}
	return p
}

func (x *exchange) consume() error {
	r, err := x.own(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	f := object(x.body, "", "call", "binding", "key").must("key")
	in := approval.ConsumeInput{
		Tenant:  x.tenant(),
		ID:      r.ID,
		Asker:   asker(x.token),
		Call:    f.call("call"),
		Binding: f.text("binding"),
		Key:     f.text("key"),
	}
	switch {
	case f.err != nil:
		return f.err
	case f.has("call") == f.has("binding"):
		return fail(openapi.CodeBadRequest, "expected either call or binding")
	case f.has("binding") && in.Binding == "":
		return fail(openapi.CodeBadRequest, "binding: expected the digest of the call").in("binding")
	case in.Key == "" || utf8.RuneCountInString(in.Key) > longestKey:
		return fail(
			openapi.CodeBadRequest,
			fmt.Sprintf("key: expected a text of at most %d characters", longestKey),
		).in("key")
	}

	consumed, err := x.cfg.Service.Consume(x.r.Context(), in)
	x.metrics.consumed(err)
	if err != nil {
		return x.with(r, err)
	}
	x.wake()
	return x.answerRequest(consumed)
}

func (x *exchange) cancel() error {
	find := x.own
	if may(x.token, openapi.ScopeAdmin) {
		find = x.known
	}
	r, err := find(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	reason, err := x.reason()
	if err != nil {
		return err
	}
	cancelled, err := x.cfg.Service.Cancel(x.r.Context(), x.tenant(), r.ID, actor(x.token), reason)
	if err != nil {
		return x.with(r, err)
	}
	x.wake()
	return x.answerRequest(cancelled)
}

const longestReason = 4000 // characters

// reason reads a body that holds nothing but a reason, or nothing at all.
func (x *exchange) reason() (string, error) {
	if len(x.body) == 0 {
		return "", nil
	}
	f := object(x.body, "", "reason")
	return f.reason(), f.err
}

func (f *fields) reason() string {
	reason := f.text("reason")
	if utf8.RuneCountInString(reason) > longestReason {
		f.refuse("reason", fmt.Sprintf("expected at most %d characters", longestReason))
	}
	return reason
}

func (x *exchange) history() error {
	r, err := x.readable(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := x.heldBack(r); err != nil {
		return err
	}
	from, err := x.integer("from", 0, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	entries, err := x.cfg.Store.History(x.r.Context(), x.tenant(), r.ID, from, mostHistory)
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	out := openapi.Entries{Entries: make([]openapi.Entry, len(entries))}
	for i, e := range entries {
		out.Entries[i] = openapi.Entry{
			Index:    e.Index,
			Leaf:     e.Leaf,
			Openings: e.Openings,
		}
	}

	if out.Next, err = x.nextEntry(r.ID, entries); err != nil {
		return err
	}
	return x.answer(http.StatusOK, out)
}

// mostHistory is how many entries of a history are answered with at once.
const mostHistory = 500

// nextEntry is where a history goes on behind what was read of it; 0 at
// its end.
func (x *exchange) nextEntry(subject string, read []ledger.SealedEntry) (int64, error) {
	if len(read) == 0 {
		return 0, nil
	}
	more, err := x.cfg.Store.History(x.r.Context(), x.tenant(), subject, read[len(read)-1].Index+1, 1)
	if err != nil || len(more) == 0 {
		return 0, err
	}
	return more[0].Index, nil
}

func (x *exchange) listRequests() error {
	f, err := x.filter()
	if err != nil {
		return err
	}
	list := x.answerable
	if x.query["mine"] == "true" {
		list = x.waitingForMe
	}
	page, err := list(f)
	if err != nil {
		return err
	}
	if page.Requests == nil {
		page.Requests = []approval.Summary{}
	}
	return x.answer(http.StatusOK, page)
}

// waitingForMe lists what waits for the token's person.
func (x *exchange) waitingForMe(f approval.Filter) (*approval.Page, error) {
	if len(f.States) > 0 && !slices.Contains(f.States, approval.Pending) {
		return &approval.Page{}, nil // what has ended waits for nobody
	}
	person, err := x.person()
	if err != nil {
		return nil, err
	}
	page, err := x.cfg.Service.Waiting(x.r.Context(), x.tenant(), person, f)
	if err != nil {
		return nil, err
	}

	return &page, nil
}

func (x *exchange) filter() (f approval.Filter, err error) {
	q := x.query
	f = approval.Filter{
		Agent:     q["agent"],
		Target:    q["target"],
		Principal: q["principal"],
		Cursor:    q["cursor"],
	}
	if f.States, err = x.states(); err != nil {
		return f, err
	}
	if f.Since, err = x.time("since"); err != nil {
		return f, err
	}
	limit, err := x.integer("limit", 1, 500, 50)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	order, err := x.word("order", "newest", "due")
	if err != nil {
		return f, err
	}
	f.ByDue = order == "due"
	f.Groups, err = x.groups()
	return f, err
}

// groups picks requests by who may answer them: one group.
func (x *exchange) groups() ([]string, error) {
	mine, err := x.flag("mine")
	group, one := x.query["group"]
	switch {
	case err != nil:
		return nil, err
	case mine && one:
		return nil, &approval.InputError{Field: "group", Expected: "either group or mine"}
	case one:
		return []string{group}, nil
	}

	return nil, nil
}

func (x *exchange) states() ([]approval.State, error) {
	text, ok := x.query["state"]
	if !ok {
		return nil, nil
	}
	all := []approval.State{
		approval.Pending,
		approval.Approved,
		approval.Denied,
		approval.Expired,
		approval.Cancelled,
		approval.Consumed,
		approval.Answered,
	}
	var out []approval.State
	for _, word := range strings.Split(text, ",") {
		switch state := approval.State(word); {
		case word == "open":
			out = append(out, approval.Pending, approval.Approved)
		case slices.Contains(all, state):
			out = append(out, state)
		default:
			return nil, fail(
				openapi.CodeBadRequest,
				fmt.Sprintf("state: %q is no state, expected open or some of %v", word, all),
			).in("state")
		}
	}

	return out, nil
}
