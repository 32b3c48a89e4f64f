package approval

import (
	"maps"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/resolve"
)

// remembered answers a repetition of an idempotency key with what
// became of the first call.
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
		return o.grantedBefore(tx, m.Grant)
	}
	o.out.Outcome = resolve.Ask
	o.out.Shared = true
	o.out.Request, err = tx.Request(m.Request)
	return true, err
}

// grantedBefore repeats that a standing approval covers the call; its
// use was counted then. One that has ended since says nothing any more.
func (o *opening) grantedBefore(tx Tx, id string) (bool, error) {
	g, err := tx.Grant(id)
	if err != nil {
		return false, err
	}
	before := *g
	before.Uses-- // as it stood when this call came first
	if o.d.Outcome != resolve.Ask || !o.covered(&before) {
		return false, nil
	}
	tx.SealFirst() // the answer before may not have got that far
	o.out.Outcome = resolve.Allow
	o.out.Grant = g
	return true, nil
}

// remember keeps the key for as long as the service does, or longer
// where m says so.
func (o *opening) remember(tx Tx, m Memory) {
	if o.in.Key != "" {
		m.Digest = o.digest()
		if least := o.now.Add(o.s.cfg.Remember); m.Expires.Before(least) {
			m.Expires = least
		}
		tx.Remember(o.key(), m)
	}
}

// key is the idempotency key, of this asker's own.
func (o *opening) key() string { return o.in.Asker.Own(o.in.Key) }

// digest says whether two calls under one key are the same. The plan
// may have changed in between; the call may not.
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
