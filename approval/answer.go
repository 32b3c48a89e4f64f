package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// longest is how many bytes a person's words may have.
const longest = 4000

func (in *VoteInput) check() error {
	switch {
	case in.Verdict != Approve && in.Verdict != Deny && in.Verdict != Respond:
		return &InputError{"verdict", "approve, deny or respond"}
	case in.Verdict == Respond && strings.TrimSpace(in.Response) == "":
		return &InputError{"response", "what the agent is to be told"}
	case in.Verdict != Respond && in.Response != "":
		return &InputError{"response", "nothing unless the verdict is respond"}
	case in.Verdict != Approve && in.Grant != nil:
		return &InputError{"grant", "nothing unless the verdict is approve"}
	case len(in.Reason) > longest || safeText(in.Reason) != in.Reason:
		return &InputError{"reason", fmt.Sprintf("UTF-8 text of at most %d bytes", longest)}
	case len(in.Response) > longest || safeText(in.Response) != in.Response:
		return &InputError{"response", fmt.Sprintf("UTF-8 text of at most %d bytes", longest)}
	}
	return nil
}

// ready holds an answer to what its giver saw: the version that they read and the call that they were shown.
func (r *Request) ready(ifVersion int64, seen string) error {
	switch {
	case r.State == Pending && ifVersion != 0 && ifVersion != r.Version:
		return ErrVersion
	case r.State == Pending && !sees(seen, r.Binding()):
		return ErrBinding
	}
	return nil
}

// Vote records a person's answer. Late, duplicate, partial and conflicting answers are outcomes, not errors.
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
	out := &Voted{}
	out.Request, err = s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) ([]Event, bool, error) {
		*out = Voted{}
		if err := r.ready(in.IfVersion, in.Binding); err != nil {
			return nil, false, err
		}
		return s.vote(ctx, tx, r, voter, known, in, now, out)
	})
	if err != nil {
		return nil, err
	}
	out.Detail = out.explain(voter.ID)
	return out, nil
}

func (s *Service) vote(ctx context.Context, tx Tx, r *Request, voter Person, known bool, in VoteInput, now time.Time, out *Voted) ([]Event, bool, error) {
	w, err := s.standing(ctx, r, voter)
	if err != nil {
		return nil, false, err
	}
	if !known {
		delete(w.people, voter.ID)
	}
	if in.Grant != nil && r.State == Pending {
		if err := r.checkOffer(in.Grant, s.cfg); err != nil {
			return nil, false, err
		}
	}
	if in.Verdict == Respond && r.State == Pending {
		r.Answer = in.Response
	}
	vote := Vote{
		Person: voter.ID, Verdict: in.Verdict, Revision: r.Current().Number, Binding: in.Binding, Reason: in.Reason, Channel: in.Channel,
		Groups: voter.Groups, Full: in.Full, Grant: in.Grant, At: now,
	}
	outcome, events, err := r.vote(vote, w, now, s.cfg)
	if err != nil {
		return nil, false, err
	}
	if outcome != VoteDenied {
		r.Answer = ""
	}
	out.Outcome = outcome
	changed := outcome != VoteDuplicate && outcome != VoteNotEligible
	if changed {
		tx.AddVote(VoteFact{Request: r.ID, Agent: r.Agent.ID, Target: r.Current().Call.Target(), Person: voter.ID, Verdict: in.Verdict, Waited: now.Sub(r.Current().At), At: now})
	}
	if outcome == VoteApproved {
		more, err := s.grant(tx, r, now, out)
		if err != nil {
			return nil, false, err
		}
		return append(events, more...), true, nil
	}
	return events, changed, nil
}

// grant makes the standing approval that the counted votes offer.
func (s *Service) grant(tx Tx, r *Request, now time.Time, out *Voted) ([]Event, error) {
	id, err := newID("grt_", now, s.random)
	if err != nil {
		return nil, fmt.Errorf("make an id: %w", err)
	}
	g := r.grant(id, now, s.cfg)
	if g == nil {
		return nil, nil
	}
	tx.SaveGrant(g)
	out.Grant = g
	bounds := make([]any, len(g.Bounds))
	for i, b := range g.Bounds {
		bounds[i] = map[string]any{"path": b.Path, "kind": string(b.Kind)}
	}
	return []Event{g.event(EventGrantCreated, r.By, map[string]any{"by": list(g.By), "bounds": bounds, "binding": r.Binding()})}, nil
}

// explain says in words what became of an answer.
func (v *Voted) explain(person string) string {
	r := v.Request
	switch v.Outcome {
	case VoteCounted:
		return fmt.Sprintf("counted: %d of %d approvals", len(r.voters(Approve)), Summarize(r).Needed)
	case VoteApproved:
		return "approved: it may run once, until " + stamp(r.Permit.Expires)
	case VoteDenied:
		return "denied: it will not run"
	case VoteDuplicate:
		return "nothing changed: " + person + " said so before"
	case VoteRevoked:
		return "the approval is void: it was denied before it ran"
	case VoteNotEligible:
		return "not counted: " + person + " has no say here"
	}
	return fmt.Sprintf("too late: the request is %s (%s); the answer is kept in the ledger", r.State, r.Cause)
}

// Preview decides an edit without recording it.
func (s *Service) Preview(ctx context.Context, in EditInput) (*Edited, error) {
	r, err := s.store.Request(ctx, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if r.State != Pending {
		return nil, ErrClosed
	}
	if err := r.ready(in.IfVersion, in.Binding); err != nil {
		return nil, err
	}
	_, out, err := s.edited(ctx, r, in)
	if errors.Is(err, ErrEditDenied) {
		err = nil
	}
	return out, err
}

// edited decides the request's call with other arguments. ErrEditDenied comes with the decision.
func (s *Service) edited(ctx context.Context, r *Request, in EditInput) (Revision, *Edited, error) {
	c, err := s.plans.Plan(ctx, r.Tenant, r.Agent.ID)
	if err != nil {
		return Revision{}, nil, err
	}
	if _, err := value.Parse([]byte(in.Args), value.DefaultLimits()); err != nil {
		return Revision{}, nil, &InputError{"arguments", "readable JSON: " + err.Error()}
	}
	call := r.Current().Call
	call.Args = in.Args
	d := c.Plan.Decide(call.Resolve())
	out := &Edited{Decision: d, Binding: d.Binding, Changes: Diff(r.Current().Call.Args, in.Args)}
	if d.Outcome == resolve.Deny {
		return Revision{}, out, ErrEditDenied
	}
	if out.Binding, err = c.Plan.Bind(call.Resolve()); err != nil {
		return Revision{}, nil, fmt.Errorf("bind the edited call: %w", err)
	}
	return Revision{Call: call, Binding: out.Binding, Plan: c.Plan.Version(), Decision: d, Note: in.Reason}, out, nil
}

// Edit makes a new revision, voids the votes on the old one, and counts its author as approving it.
func (s *Service) Edit(ctx context.Context, in EditInput) (*Edited, error) {
	if len(in.Reason) > longest || safeText(in.Reason) != in.Reason {
		return nil, &InputError{"reason", fmt.Sprintf("UTF-8 text of at most %d bytes", longest)}
	}
	voter, known, err := s.known(ctx, in.Tenant, in.Person)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, ErrUnknownName
	}
	var out *Edited
	voted := &Voted{}
	voted.Request, err = s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) ([]Event, bool, error) {
		*voted = Voted{}
		if r.State != Pending {
			return nil, false, ErrClosed
		}
		if err := r.ready(in.IfVersion, in.Binding); err != nil {
			return nil, false, err
		}
		var events []Event
		var save bool
		var err error
		out, events, save, err = s.edit(ctx, tx, r, voter, in, now, voted)
		return events, save, err
	})
	if err != nil {
		return out, err
	}
	voted.Detail = voted.explain(voter.ID)
	out.Voted = voted
	return out, nil
}

func (s *Service) edit(ctx context.Context, tx Tx, r *Request, voter Person, in EditInput, now time.Time, voted *Voted) (*Edited, []Event, bool, error) {
	w, err := s.standing(ctx, r, voter)
	if err != nil {
		return nil, nil, false, err
	}
	refused := func(why string, err error) ([]Event, bool, error) {
		e := r.event(EventEditRefused, voter.ID, map[string]any{"why": why, "channel": in.Channel}).sealing("args", in.Args).sealing("note", in.Reason)
		return []Event{e}, false, err
	}
	if _, seat, why := w.may(r, voter.ID); !seat {
		events, save, err := refused(why, fmt.Errorf("%w: %s may not edit", ErrNotEligible, voter.ID))
		return nil, events, save, err
	}
	next, out, err := s.edited(ctx, r, in)
	if errors.Is(err, ErrEditDenied) {
		events, save, err := refused("denied", err)
		return out, events, save, err
	}
	if err != nil {
		return nil, nil, false, err
	}
	if next.Binding == r.Binding() {
		return nil, nil, false, &InputError{"arguments", "a change: these are the same"}
	}
	next.Author, next.At = voter.ID, now
	events := []Event{r.revise(next, require(&next.Decision))}
	vote := VoteInput{Verdict: Approve, Binding: next.Binding, Reason: in.Reason, Channel: in.Channel, Full: true}
	more, _, err := s.vote(ctx, tx, r, voter, true, vote, now, voted)
	if err != nil {
		return nil, nil, false, err
	}
	return out, append(events, more...), true, nil
}

// Consume turns an approval into the one run of it. The answer is the consumed request: run exactly Current().Call. The rules are asked
// again: a plan that changed since voids the approval (ErrStale), and a freeze stops it (ErrFrozen).
func (s *Service) Consume(ctx context.Context, in ConsumeInput) (*Request, error) {
	if in.Key == "" {
		return nil, &InputError{"key", "a text of this attempt's own"}
	}
	known, err := s.store.Request(ctx, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	c, err := s.plans.Plan(ctx, in.Tenant, known.Agent.ID)
	if err != nil {
		return nil, err
	}
	binding := in.Binding
	if in.Call != nil {
		if binding, err = c.Plan.Bind(in.Call); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBinding, err)
		}
	}
	return s.change(ctx, in.Tenant, in.ID, func(tx Tx, r *Request, now time.Time) ([]Event, bool, error) {
		return s.consume(tx, r, c, binding, in, now)
	})
}

func (s *Service) consume(tx Tx, r *Request, c *Compiled, binding string, in ConsumeInput, now time.Time) ([]Event, bool, error) {
	if r.State == Approved {
		f, err := frozen(tx, stops(r.Agent.ID))
		if err != nil {
			return nil, false, err
		}
		if f != nil {
			e, err := r.refuse(in.Runtime, "frozen", ErrFrozen)
			return []Event{e}, false, err
		}
		if r.Current().Plan != c.Plan.Version() {
			return []Event{r.withdraw(ByPlanChange, in.Runtime, "", now)}, true, ErrStale
		}
	}
	e, err := r.consume(binding, in.Key, in.Runtime, now)
	switch {
	case e.Type == "":
		return nil, false, err
	case err != nil:
		return []Event{e}, false, err
	}
	return []Event{e}, true, nil
}
