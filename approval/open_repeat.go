package approval

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// remembered answers a repeated idempotency key with the result of the first call. It reports
// whether it has set the result.
func (o *opening) remembered(tx Tx) (bool, error) {
	if o.in.Key == "" {
		return false, nil
	}
	m, err := tx.Remembered(o.key())
	if err != nil || m == nil || !o.now.Before(m.Expires) {
		return false, err
	}
	if m.Digest != o.digest() {
		return false, ErrKeyReuse
	}
	if m.Grant != "" {
		if _, counts := o.pastRun(); counts && o.ran == "" { // that run has ended, and this is another one
			return false, nil
		}
		return o.grantedBefore(tx, m.Grant)
	}
	if isRun(m.Request) { // it is decided again
		return false, nil
	}
	o.out.Outcome = resolve.Ask
	o.out.Shared = true
	o.out.Request, err = tx.Request(m.Request)
	return true, err
}

// grantedBefore repeats the answer that a standing approval covers the call. The first call has
// already been counted as a use. It returns false if the grant no longer covers the call.
func (o *opening) grantedBefore(tx Tx, id string) (bool, error) {
	g, err := tx.Grant(id)
	if err != nil {
		return false, err
	}
	before := *g
	before.Uses-- // as it was when this call was first answered
	if o.d.Outcome != resolve.Ask || !o.covered(&before) {
		return false, nil
	}
	tx.SealFirst() // the earlier answer may not have been sealed yet
	o.out.Outcome = resolve.Allow
	o.out.Grant = g
	return true, nil
}

// foundKey returns the idempotency key under which an asker's identical call finds its request if
// the binding no longer leads to it. Keys that askers choose never start with "call:".
func foundKey(who Asker, binding string) string { return "call:" + who.Own(binding) }

// keepFound lets every asker of a request still find it by a binding that it is about to lose,
// because an approver edits the call or because the request is approved and another caller asks for
// an identical call.
func (s *Service) keepFound(tx Tx, r *Request, binding string, now time.Time) {
	permitAge := cmp.Or(s.cfg.ownPermitAge(r.Tenant), s.cfg.PermitAge)
	until := r.Deadline.Add(r.Within + permitAge) // a deadline is extended once at most
	if least := now.Add(s.cfg.Remember); until.Before(least) {
		until = least
	}
	for _, who := range r.askers() {
		tx.Remember(foundKey(who, binding), Memory{Request: r.ID, Expires: until})
	}
}

// findOwn loads the open request that keepFound stored for this asker.
func (o *opening) findOwn(tx Tx) error {
	m, err := tx.Remembered(foundKey(o.in.Asker, o.binding))
	if err != nil || m == nil || !o.now.Before(m.Expires) || o.last != nil && o.last.ID == m.Request {
		return err
	}
	r, err := tx.Request(m.Request)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || !r.AskedBy(o.in.Asker) {
		return err
	}
	o.own = r
	return o.tick(tx, r)
}

// remember stores the idempotency key for Config.Remember, or until m.Expires if that is later.
func (o *opening) remember(tx Tx, m Memory) {
	if o.in.Key != "" {
		m.Digest = o.digest()
		if least := o.now.Add(o.s.cfg.Remember); m.Expires.Before(least) {
			m.Expires = least
		}
		tx.Remember(o.key(), m)
	}
}

// key returns the idempotency key with the asker as a prefix.
func (o *opening) key() string { return o.in.Asker.Own(o.in.Key) }

// digest returns a digest of the call and its context. The same idempotency key may be used again
// only with the same digest. The plan is not part of it, because it may change between the two
// calls.
func (o *opening) digest() string {
	c := &o.call
	parts := []string{
		o.in.Agent,
		o.in.Replaces,
		string(c.Kind),
		c.Tool,
		c.Server,
		c.Agent,
		c.Skill,
		strconv.Itoa(int(c.Remote)),
		string(c.Args),
		string(c.ParentInput),
		c.Principal,
		c.Session,
		c.ToolDefinition,
	}
	for _, hint := range slices.Sorted(maps.Keys(c.Annotations)) {
		parts = append(parts, hint, strconv.FormatBool(c.Annotations[hint]))
	}
	if o.question != nil {
		parts = append(append(parts, "question"), o.question.parts()...)
	}
	return digestOf(parts...)
}
