package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// Errors of calls and their changes.
var (
	// ErrExists is returned if another call has the key or the alias already.
	ErrExists = errors.New("there is a call in this place already")
	// ErrUnchanged is returned by a change function to leave the call unchanged.
	ErrUnchanged = errors.New("the call was left as it is")
	// ErrNewer is returned for a record that a newer version of the program wrote. Only
	// processes of that version may work on it.
	ErrNewer = errors.New("a newer version of the program keeps this call")
	// ErrBusy is returned if every attempt to change a call met a concurrent change.
	ErrBusy = errors.New("the call changes faster than it can be changed")
)

// maxChanges limits the attempts to change a record that changes concurrently.
const maxChanges = 100

// errConflict is returned if the record was changed since it was read.
var errConflict = approval.ErrVersion

// book keeps the calls in the store.
type book[P any] struct {
	*workers
	transport Transport[P]
	calls     *Vault[Call[P]]
	refs      *Vault[reference]
	waiting   waiters
}

// Get returns a call, or approval.ErrNotFound.
func (b *book[P]) Get(ctx context.Context, key string) (*Call[P], error) {
	r, err := b.calls.records.Record(ctx, b.calls.namespace, key)
	if err != nil {
		return nil, err
	}
	return b.Open(r)
}

// ByAlias returns the call with an alias, or approval.ErrNotFound.
func (b *book[P]) ByAlias(ctx context.Context, alias string) (*Call[P], error) {
	r, err := b.calls.records.RecordByAlias(ctx, b.calls.namespace, alias)
	if err != nil {
		return nil, err
	}
	return b.Open(r)
}

// Open decrypts and decodes the record of a call.
func (b *book[P]) Open(r store.Record) (*Call[P], error) {
	text, err := b.calls.Unseal(r.Key, r.Value)
	if err != nil {
		return nil, err
	}
	c, err := readCall[P](text)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	c.Key = r.Key
	c.Alias = r.Alias
	c.Expires = r.Expires
	c.version = r.Version
	return c, nil
}

// readCall checks the format before it decodes the rest, because other formats may give members
// another meaning.
func readCall[P any](text []byte) (*Call[P], error) {
	var form struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, err
	}
	switch {
	case form.Format > currentFormat:
		return nil, ErrNewer
	case form.Format < currentFormat:
		return nil, fmt.Errorf("the record has format %d, not %d", form.Format, currentFormat)
	}

	c := &Call[P]{}
	return c, json.Unmarshal(text, c)
}

// put stores a call at the version at which it was read. It returns errConflict if the record
// was changed since.
func (b *book[P]) put(ctx context.Context, c *Call[P]) error {
	c.Format = currentFormat
	c.Expires = b.expires(c)
	d := &Doc[Call[P]]{
		Key:     c.Key,
		Alias:   c.Alias,
		Version: c.version,
		Due:     c.due(),
		Expires: c.Expires,
		Body:    *c,
	}
	err := b.calls.Put(ctx, d)
	c.version = d.Version
	return err
}

// expires returns when a record may be deleted. A call that has not ended is ended at its
// deadline by the process that runs its namespace. If no process runs it any more, the record
// is deleted Abandon after the deadline.
func (b *book[P]) expires(c *Call[P]) time.Time {
	switch {
	case c.State == Closed:
		return b.transport.Keep(c)
	case b.cfg.Abandon > 0 && !c.Deadline.IsZero():
		return c.Deadline.Add(b.cfg.Abandon)
	}

	return time.Time{}
}

// Change changes a call by compare-and-set. It calls change with the stored call, possibly more
// than once, and stores the result. If change returns an error, nothing is stored, and Change
// returns the error with the call as it was read. change must not access the network or the
// approval service.
func (b *book[P]) Change(ctx context.Context, key string, change func(*Call[P]) error) (*Call[P], error) {
	for range maxChanges {
		c, err := b.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		was := c.State
		if err := change(c); err != nil {
			return c, err
		}
		switch err := b.put(ctx, c); {
		case err == nil:
			b.changed(ctx, was, c)
			b.stored(c)
			b.wakeAt(c)
			return c, nil
		case !errors.Is(err, errConflict):
			return nil, err
		}
	}

	return nil, ErrBusy
}

// changed notifies the transport if the state changed.
func (b *book[P]) changed(ctx context.Context, was State, c *Call[P]) {
	if was != c.State {
		b.transport.Moved(ctx, was, c)
	}
}

// stored wakes the waiters of a call after a write, and stops its run if the record requires
// that.
func (b *book[P]) stored(c *Call[P]) {
	b.waiting.wake(c.Key)
	b.tasks.check(c.Key, func(f *task) error { return overtaken(c, f) })
}

// Finish ends a call inside a change. It does nothing if the call has ended already.
func (b *book[P]) Finish(c *Call[P], how Ending) {
	if c.Over() {
		return
	}
	orElse(&how.Why, Returned)
	c.WithdrawAsk()
	if c.Approval != nil && !c.Approval.Taken {
		c.Withdraw = append(c.Withdraw, c.Approval.Ref)
		c.Later = Attempt{}
	}

	c.Message = nil
	c.Ending = &how
	c.EndedAt = b.now()
	c.Deadline = time.Time{}
	b.transport.End(c, how)
	c.Run.Lease = time.Time{}
	c.State = Ended
	if c.Message == nil {
		c.State = Closed
	}
}

// move changes a call that was read, and stores it.
func (b *book[P]) move(ctx context.Context, c *Call[P], change func()) error {
	was := c.State
	change()
	b.claimMessage(c)
	if err := b.put(ctx, c); err != nil {
		return err
	}
	b.changed(ctx, was, c)
	b.stored(c)
	if c.due().After(b.now()) { // if it is due already, the current worker continues
		b.wakeAt(c)
	}
	return nil
}

// applyRuling moves a call to the state that a ruling leads to.
func (b *book[P]) applyRuling(c *Call[P], r Ruling) {
	var until time.Time
	if r.Within > 0 {
		until = b.now().Add(r.Within)
	}
	switch r.Do {
	case Proceed:
		c.State = Ready
	case Approve:
		c.State = Asking
		c.askApproval(r.Verdict.Binding)
		c.Ask.Until = until
	case Question:
		c.State = Asking
		c.AskQuestion(until)
	case Wait:
		c.State = Waiting
	default:
		orElse(&r.Ending.Why, Refused)
		b.Finish(c, r.Ending)
	}
}

// putOff schedules another decision after a pause.
func (b *book[P]) putOff(c *Call[P]) {
	c.Run.Fails++
	c.Run.Next = b.now().Add(b.cfg.Pause(c.Run.Fails))
}

// endAs returns a step that ends a call.
func (b *book[P]) endAs(how Ending) step[P] {
	return func(ctx context.Context, c *Call[P], _ *turn) error {
		return b.move(ctx, c, func() { b.Finish(c, how) })
	}
}
