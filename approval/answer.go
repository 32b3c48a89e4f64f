package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func (in *VoteInput) check() error {
	switch {
	case in.Verdict != Approve && in.Verdict != Deny && in.Verdict != Respond && !in.Verdict.picks():
		return &InputError{
			"verdict",
			"approve, deny or respond; choose, submit or dismiss for a question",
		}
	case in.Verdict == Respond && strings.TrimSpace(in.Response) == "":
		return &InputError{"response", "what the agent is to be told"}
	case in.Verdict != Respond && in.Response != "":
		return &InputError{"response", "nothing unless the verdict is respond"}
	case in.Verdict != Approve && in.Grant != nil:
		return &InputError{"grant", "nothing unless the verdict is approve"}
	case in.Verdict != Choose && in.Choice != nil:
		return &InputError{"choice", "nothing unless the verdict is choose"}
	case in.Verdict == Choose && (in.Choice == nil || *in.Choice < 0):
		return &InputError{"choice", "the index of a choice, from 0"}
	case in.Verdict != Submit && in.Data != nil:
		return &InputError{"data", "nothing unless the verdict is submit"}
	case in.Verdict == Submit && len(in.Data) == 0:
		return &InputError{"data", "the answer, as JSON that the question's schema accepts"}
	case in.Verdict == Deny && strings.TrimSpace(in.Reason) == "":
		return &InputError{"reason", "why it must not run: the agent is told"}
	}

	return errors.Join(
		checkAnswer(in.Binding, in.Person, in.Channel, in.Token, in.Reason),
		checkWords("response", in.Response),
	)
}

// ready returns an error unless the answer is for the version that its giver read and the call that
// they were shown.
func (r *Request) ready(ifVersion int64, seen string) error {
	switch {
	case r.State == Pending && ifVersion != 0 && ifVersion != r.Version:
		return ErrVersion
	case r.State == Pending && !sees(seen, r.Binding()):
		return ErrBinding
	}

	return nil
}

// editable returns an error unless the request is a pending approval of a call and the edit is for
// the call that its author saw.
func (r *Request) editable(ifVersion int64, seen string) error {
	switch {
	case r.Question != nil:
		return ErrQuestion
	case r.State != Pending:
		return ErrClosed
	}

	return r.ready(ifVersion, seen)
}

// Vote records a person's answer: approve, deny or respond for the approval of a call; choose,
// submit or dismiss for a question. Late, duplicate, partial and conflicting answers are outcomes,
// not errors.
func (s *Service) Vote(ctx context.Context, in VoteInput) (*Voted, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	voter, known, err := s.known(ctx, in.Tenant, in.Person)
	if err != nil {
		return nil, err
	}
	if !known {
		voter = Person{ID: in.Person}
	}
	if err := s.checkData(ctx, &in); err != nil {
		return nil, err
	}
	out := &Voted{}
	r, err := s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) (step, error) {
		*out = Voted{}
		if err := in.fits(r); err != nil {
			return step{refused: err}, nil
		}
		if !in.holdsTo(r) {
			return step{refused: ErrVersion}, nil
		}
		if err := r.ready(in.IfVersion, in.Binding); err != nil {
			return step{refused: err}, nil
		}
		return s.vote(ctx, tx, r, voter, known, in, now, out)
	})
	if err != nil {
		return nil, err
	}
	out.Request, out.Detail = r, out.explain(r, voter.ID)
	denied := out.Outcome == VoteDenied || out.Outcome == VoteRevoked
	if s.cfg.Watcher != nil && denied && r.Question == nil {
		s.cfg.Watcher.Denied(r)
	}
	return out, nil
}

func (s *Service) vote(
	ctx context.Context, tx Tx, r *Request, voter Person, known bool, in VoteInput, now time.Time, out *Voted,
) (step, error) {
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, now, voter)
	if err != nil {
		return step{}, err
	}
	if !known {
		delete(w.People, voter.ID)
	}
	vote := Vote{
		Person:   voter.ID,
		Verdict:  in.Verdict,
		Revision: r.Current().Number,
		Binding:  in.Binding,
		Reason:   in.Reason,
		Channel:  in.Channel,
		Groups:   voter.Groups,
		Full:     in.Full,
		Hidden:   r.Hidden(),
		Token:    in.Token,
		Chosen:   in.chosen(r),
		Data:     in.Data,
		Also:     in.Also,
		Grant:    in.Grant,
		At:       now,
	}
	if in.IfVersion != 0 { // ready has compared the version
		vote.Also = len(r.Requester.Also)
	}
	if in.Grant != nil && r.State == Pending && !r.said(vote) && eligibility(w, &a, voter.ID).Answer {
		if err := r.checkOffer(in.Grant, s.cfg); err != nil {
			return step{refused: err}, nil
		}
	}
	outcome, events, err := r.vote(vote, in.Response, w, now, s.cfg)
	if err != nil {
		return step{refused: err}, nil
	}
	out.Outcome, out.why = outcome, eligibility(w, &a, voter.ID).Why
	did := step{events: events, changed: outcome != VoteDuplicate && outcome != VoteNotEligible}
	if outcome == VoteDuplicate && in.Verdict != Approve {
		tx.SealFirst() // the first answer may not have been sealed yet
	}
	if did.changed {
		tx.AddVote(VoteFact{
			Request: r.ID,
			Agent:   r.Agent.ID,
			Target:  r.Current().Call.Target(),
			Person:  voter.ID,
			Verdict: in.Verdict,
			Waited:  now.Sub(r.seenSince(voter.ID)),
			At:      now,
		})
	}

	var more []Event
	switch {
	case outcome == VoteApproved:
		more, err = s.grant(tx, r, w, now, out)
	case did.changed && in.Verdict != Approve && r.GrantID != "":
		// A person who may deny the request denies a request that a standing approval came from, so
		// the standing approval ends too.
		_, more, err = revoke(tx, r.GrantID, voter.ID, in.Reason, now)
	}

	did.events = append(did.events, more...)
	return did, err
}

// seenSince returns the time when the revision that a person answers began. For the author of an
// edit, it is the start of the revision that was edited.
func (r *Request) seenSince(person string) time.Time {
	if n := len(r.Revisions); n > 1 && r.Current().Author == person {
		return r.Revisions[n-2].At
	}
	return r.Current().At
}

// grant creates the standing approval that the counted votes offer, if all of them do.
func (s *Service) grant(tx Tx, r *Request, w quorum.Standing, now time.Time, out *Voted) ([]Event, error) {
	id, err := newID(grantPrefix, now, s.random)
	if err != nil {
		return nil, fmt.Errorf("make an id: %w", err)
	}
	var counted []string
	for _, p := range r.approvers(w) {
		counted = append(counted, p.ID)
	}
	g := r.grant(id, counted, now, s.cfg)
	if g == nil {
		return nil, nil
	}
	tx.SaveGrant(g)
	out.Grant = g
	created, err := g.created(r)
	if err != nil {
		return nil, err
	}
	return []Event{created}, nil
}

// explain describes the result of an answer in words.
func (v *Voted) explain(r *Request, person string) string {
	switch v.Outcome {
	case VoteCounted:
		return fmt.Sprintf("counted: %d of %d approvals", len(r.voters(Approve)), Summarize(r).Needed)
	case VoteApproved:
		return "approved: it may run once, until " + stamp(r.Permit.Expires)
	case VoteDenied:
		return "denied: it will not run"
	case VoteAnswered:
		return "answered: " + r.picked()
	case VoteDuplicate:
		return "nothing changed: " + person + " said so before"
	case VoteRevoked:
		return "the approval is void: it was denied before it ran"
	case VoteNotEligible:
		return "not counted: " + person + " is not eligible to answer this request: " + v.why
	}

	return fmt.Sprintf("too late: the request is %s (%s); the answer is kept in the ledger", r.State, r.Cause)
}

// Preview decides an edit without recording it.
func (s *Service) Preview(ctx context.Context, in EditInput) (*Edited, error) {
	r, err := s.Request(ctx, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if err := r.editable(in.IfVersion, in.Binding); err != nil {
		return nil, err
	}
	next, out, err := s.edited(ctx, r, in)
	switch {
	case errors.Is(err, ErrEditDenied):
		return out, nil
	case err != nil:
		return nil, err
	}

	out.Request = r.edited(next, in.Person, s.clock.Now())

	return out, nil
}

// edited returns a copy of the request as it would be after an edit, before its author's approval.
func (r *Request) edited(next Revision, author string, now time.Time) *Request {
	after := r.Clone()
	next.Author, next.At = author, now
	after.revise(next, require(&next.Decision))

	return after
}

// readable returns an error unless the text is JSON that all parsers read in the same way.
func readable(text string) error {
	var shape value.ShapeBuilder
	return shape.Build().Scan([]byte(text), value.DefaultLimits(), &value.Scratch{})
}

// edited decides the request's call with other arguments. If the edited call is denied, it returns
// ErrEditDenied together with the decision.
func (s *Service) edited(ctx context.Context, r *Request, in EditInput) (Revision, *Edited, error) {
	c, err := s.plans.Plan(ctx, r.Tenant, r.Agent.ID)
	if err != nil {
		return Revision{}, nil, err
	}
	if err := readable(in.Args); err != nil {
		return Revision{}, nil, &InputError{"arguments", "readable JSON: " + err.Error()}
	}
	if !strings.HasPrefix(strings.TrimLeft(in.Args, " \t\r\n"), "{") {
		return Revision{}, nil, &InputError{"arguments", "an object"}
	}
	call := r.Current().Call
	call.Args = resolve.Raw(in.Args)
	d, err := s.decideNow(ctx, r.Tenant, c, &call, r.ID)
	if err != nil {
		return Revision{}, nil, err
	}
	if why := r.asks(); why != "" {
		d = asked(c.Plan, &call, d, why)
	}
	out := &Edited{
		Decision: d,
		Binding:  d.Binding,
		Changes:  Diff(string(r.Current().Call.Args), in.Args),
	}
	if d.Outcome == resolve.Deny {
		return Revision{}, out, ErrEditDenied
	}
	if out.Binding, err = c.Plan.Bind(&call); err != nil {
		return Revision{}, nil, fmt.Errorf("bind the edited call: %w", err)
	}
	next := c.revision(call, out.Binding, d)
	next.Note = in.Reason

	return next, out, nil
}

// Edit creates a new revision, voids the votes on the old one, and counts its author as approving
// it.
func (s *Service) Edit(ctx context.Context, in EditInput) (*Edited, error) {
	if err := checkAnswer(in.Binding, in.Person, in.Channel, in.Token, in.Reason); err != nil {
		return nil, err
	}
	voter, err := s.somebody(ctx, in.Tenant, in.Person)
	if err != nil {
		return nil, err
	}
	prepared, err := s.prepareEdit(ctx, in, voter)
	if err != nil {
		return nil, err
	}
	var out *Edited
	var voted *Voted
	r, err := s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) (did step, err error) {
		out, voted = nil, &Voted{}
		if err := r.editable(in.IfVersion, in.Binding); err != nil {
			return step{refused: err}, nil
		}
		out, did, err = s.edit(ctx, tx, r, voter, in, prepared, now, voted)
		return did, err
	})
	if err != nil {
		return out, err
	}
	voted.Request, voted.Detail = r, voted.explain(r, voter.ID)
	out.Voted = voted
	return out, nil
}

// preparedEdit is the decision about an edit of the revision with this binding. It is made outside
// of the transaction, because large arguments take time.
type preparedEdit struct {
	binding string
	next    Revision
	out     *Edited
	err     error // ErrEditDenied or *InputError
}

// prepareEdit decides an edit. It returns nil if the transaction will refuse the edit without
// reading its arguments.
func (s *Service) prepareEdit(ctx context.Context, in EditInput, voter Person) (*preparedEdit, error) {
	r, err := s.Request(ctx, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if r.editable(in.IfVersion, in.Binding) != nil || !in.Full || r.fullOfEdits(len(in.Args)) != nil {
		return nil, nil
	}
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now(), voter)
	if err != nil {
		return nil, err
	}
	if e := eligibility(w, &a, voter.ID); e.May(Approve) != nil {
		return nil, nil
	}

	p := &preparedEdit{binding: r.Binding()}
	p.next, p.out, p.err = s.edited(ctx, r, in)
	if wrong, _ := errors.AsType[*InputError](p.err); p.err != nil && wrong == nil && !errors.Is(p.err, ErrEditDenied) {
		return nil, p.err
	}

	return p, nil
}

// fullOfEdits returns an error if one more edit with size bytes of arguments would exceed the
// limits.
func (r *Request) fullOfEdits(size int) error {
	switch {
	case r.bytes()+size > mostEdited:
		return &InputError{
			"arguments",
			fmt.Sprintf("at most %d bytes in all edits of one request: deny it", mostEdited),
		}
	case len(r.Revisions) > mostEdits:
		return &InputError{"arguments", fmt.Sprintf("at most %d edits of one request: deny it", mostEdits)}
	}

	return nil
}

// checkAnswer validates the fields that votes and edits have in common.
func checkAnswer(binding, person, channel, token, reason string) error {
	return errors.Join(
		checkName("binding", binding),
		checkName("person", person),
		checkName("channel", channel),
		checkName("token", token),
		checkWords("reason", reason),
	)
}

// The limits for the edits of one request. Each edit stores the whole call.
const (
	mostEdits  = 50
	mostEdited = 6 << 20 // bytes of all revisions' arguments
)

// bytes returns the total size of the arguments in all revisions.
func (r *Request) bytes() int {
	sum := 0
	for _, x := range r.Revisions {
		sum += len(x.Call.Args)
	}
	return sum
}

func (s *Service) edit(
	ctx context.Context,
	tx Tx,
	r *Request,
	voter Person,
	in EditInput,
	prepared *preparedEdit,
	now time.Time,
	voted *Voted,
) (*Edited, step, error) {
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, now, voter)
	if err != nil {
		return nil, step{}, err
	}
	refused := func(why string, err error) step {
		e := r.event(EventEditRefused, voter.ID, map[string]any{"why": why, "channel": in.Channel})
		return step{events: []Event{e.sealing("note", in.Reason)}, refused: err}
	}
	// checked before the arguments are read, because they may be large
	if e := eligibility(w, &a, voter.ID); e.May(Approve) != nil {
		return nil, refused(e.Why, fmt.Errorf("%w: %s may not edit", ErrNotEligible, voter.ID)), nil
	}

	if !in.Full {
		return nil, step{refused: ErrNotShown}, nil
	}
	if err := r.fullOfEdits(len(in.Args)); err != nil {
		return nil, step{refused: err}, nil
	}
	if prepared == nil || prepared.binding != r.Binding() {
		return nil, step{refused: ErrVersion}, nil // the request changed after prepareEdit read it
	}
	next, out := prepared.next, prepared.out
	switch {
	case errors.Is(prepared.err, ErrEditDenied):
		did := refused("denied", prepared.err)
		did.events[0] = did.events[0].sealing("args", in.Args)
		return out, did, nil
	case prepared.err != nil:
		return nil, step{refused: prepared.err}, nil
	case next.Binding == r.Binding():
		return nil, step{refused: &InputError{"arguments", "a change: these are the same"}}, nil
	}

	if other, err := tx.Latest(next.Binding); err != nil {
		return nil, step{}, err
	} else if other != nil && other.ID != r.ID && other.State.Open() {
		return nil, step{
			refused: &InputError{
				"arguments",
				"a call that nobody is asked about yet: " + other.ID + " asks for this one",
			},
		}, nil
	}

	s.keepFound(tx, r, r.Binding(), now)
	next.Author, next.At = voter.ID, now
	edited := r.revise(next, require(&next.Decision))
	vote := VoteInput{
		Verdict: Approve,
		Also:    len(r.Requester.Also),
		Binding: next.Binding,
		Reason:  in.Reason,
		Channel: in.Channel,
		Token:   in.Token,
		Full:    in.Full,
	}
	did, err := s.vote(ctx, tx, r, voter, true, vote, now, voted)
	if err == nil {
		err = did.refused // a refused vote must not leave the edit without its author's approval
	}
	if err != nil {
		return nil, step{}, err
	}
	did.events, did.changed = append([]Event{edited}, did.events...), true
	return out, did, nil
}

// Consume uses an approval for its one run, and returns the consumed request. The caller must run
// exactly Current().Call. The rules are checked again: if the plan has changed, or calls that ran since
// count (*CountedError), the approval is void (ErrStale). During a freeze it can't be used (ErrFrozen).
func (s *Service) Consume(ctx context.Context, in ConsumeInput) (*Request, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out, err := s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) (step, error) {
		switch {
		case !r.AskedBy(in.Asker):
			return step{}, ErrNotFound
		case r.Question != nil:
			return step{refused: ErrQuestion}, nil
		}

		c, err := s.plans.Plan(ctx, in.Tenant, r.Agent.ID)
		if err != nil {
			return step{}, err
		}
		binding := in.Binding
		if in.Call != nil {
			if binding, err = c.Plan.Bind(in.Call); err != nil {
				return step{refused: fmt.Errorf("%w: %w", ErrBinding, err)}, nil
			}
		}
		return s.consume(tx, r, c, binding, in, now)
	})
	if err != nil {
		return out, err
	}
	return s.signed(in.Tenant, out)
}

func (in *ConsumeInput) check() error {
	if in.Key == "" {
		return &InputError{"key", "a text of this attempt's own"}
	}
	if in.Call != nil {
		if err := checkCall(in.Call); err != nil {
			return err
		}
	}
	return errors.Join(checkName("key", in.Key), checkName("binding", in.Binding), in.Asker.Check())
}

func (s *Service) consume(
	tx Tx, r *Request, c *Compiled, binding string, in ConsumeInput, now time.Time,
) (step, error) {
	// A caller that repeats a lost attempt has not run the call yet, and must not run it during a
	// freeze.
	if r.State == Approved || r.State == Consumed {
		f, err := frozen(tx, stops(r.Agent.ID))
		if err != nil {
			return step{}, err
		}
		if f != nil {
			e, err := r.refuse(in.Asker.Token, "frozen", ErrFrozen)
			return step{events: []Event{e}, refused: err}, nil
		}
	}

	if r.State == Approved && r.Current().Plan != c.Plan.Version() {
		return step{
			events:  []Event{r.withdraw(ByPlanChange, in.Asker.Token, "", now)},
			changed: true,
			refused: ErrStale,
		}, nil
	}

	if r.State == Approved && r.Binding() == binding {
		ended, out, err := s.recount(tx, r, c, in.Asker.Token, now)
		if ended || err != nil {
			return out, err
		}
	}
	audience, life, err := s.audience(in.Tenant, r)
	if err != nil {
		return step{refused: err}, nil
	}
	e, err := r.consume(binding, in.Key, in.Asker.Token, now)
	if e.Type == "" {
		if err == nil {
			tx.SealFirst() // the first attempt may not have been sealed yet
		}
		return step{refused: err}, nil
	}
	if err == nil && audience != "" {
		until := now.Add(life)
		r.Permit.Audience, r.Permit.Until = audience, &until
	}
	return step{
		events:  []Event{e},
		changed: err == nil,
		refused: err,
	}, nil
}
