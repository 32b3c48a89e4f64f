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

// Get returns a call, or approval.ErrNotFound.
func (e *Engine[P]) Get(ctx context.Context, key string) (*Call[P], error) {
	r, err := e.calls.records.Record(ctx, e.calls.namespace, key)
	if err != nil {
		return nil, err
	}
	return e.Open(r)
}

// ByAlias returns the call with an alias, or approval.ErrNotFound.
func (e *Engine[P]) ByAlias(ctx context.Context, alias string) (*Call[P], error) {
	r, err := e.calls.records.RecordByAlias(ctx, e.calls.namespace, alias)
	if err != nil {
		return nil, err
	}
	return e.Open(r)
}

// Open decrypts and decodes the record of a call.
func (e *Engine[P]) Open(r store.Record) (*Call[P], error) {
	text, err := e.calls.Unseal(r.Key, r.Value)
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
func (e *Engine[P]) put(ctx context.Context, c *Call[P]) error {
	c.Format = currentFormat
	c.Expires = e.expires(c)
	d := &Doc[Call[P]]{
		Key:     c.Key,
		Alias:   c.Alias,
		Version: c.version,
		Due:     c.due(),
		Expires: c.Expires,
		Body:    *c,
	}
	err := e.calls.Put(ctx, d)
	c.version = d.Version
	return err
}

// expires returns when a record may be deleted. A call that has not ended is ended at its
// deadline by the process that runs its namespace. If no process runs it any more, the record
// is deleted Abandon after the deadline.
func (e *Engine[P]) expires(c *Call[P]) time.Time {
	switch {
	case c.State == Closed:
		return e.transport.Keep(c)
	case e.cfg.Abandon > 0 && !c.Deadline.IsZero():
		return c.Deadline.Add(e.cfg.Abandon)
	}

	return time.Time{}
}

// Change changes a call by compare-and-set. It calls change with the stored call, possibly more
// than once, and stores the result. If change returns an error, nothing is stored, and Change
// returns the error with the call as it was read. change must not access the network or the
// approval service.
func (e *Engine[P]) Change(ctx context.Context, key string, change func(*Call[P]) error) (*Call[P], error) {
	for range maxChanges {
		c, err := e.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		was := c.State
		if err := change(c); err != nil {
			return c, err
		}
		switch err := e.put(ctx, c); {
		case err == nil:
			e.changed(ctx, was, c)
			e.stored(c)
			e.wakeAt(c)
			return c, nil
		case !errors.Is(err, errConflict):
			return nil, err
		}
	}

	return nil, ErrBusy
}

// changed notifies the transport if the state changed.
func (e *Engine[P]) changed(ctx context.Context, was State, c *Call[P]) {
	if was != c.State {
		e.transport.Moved(ctx, was, c)
	}
}

// stored wakes the waiters of a call after a write, and stops its run if the record requires
// that.
func (e *Engine[P]) stored(c *Call[P]) {
	e.waiting.wake(c.Key)
	e.tasks.check(c.Key, func(f *task) error { return overtaken(c, f) })
}

// Finish ends a call inside a change. It does nothing if the call has ended already.
func (e *Engine[P]) Finish(c *Call[P], how Ending) {
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
	c.EndedAt = e.now()
	c.Deadline = time.Time{}
	e.transport.End(c, how)
	c.Run.Lease = time.Time{}
	c.State = Ended
	if c.Message == nil {
		c.State = Closed
	}
}
