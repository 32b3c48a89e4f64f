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

// The errors of calls and their changes.
var (
	// ErrExists says that a call has the key or the alias already.
	ErrExists = errors.New("there is a call in this place already")
	// ErrUnchanged is returned by a change that leaves the call as it is.
	ErrUnchanged = errors.New("the call was left as it is")
	// ErrNewer says that a newer version of the program wrote the
	// record. It is left to processes of that version.
	ErrNewer = errors.New("a newer version of the program keeps this call")
	// ErrBusy says that a call was changed each time that somebody
	// tried to change it.
	ErrBusy = errors.New("the call changes faster than it can be changed")
)

// maxChanges is how often a record is tried to be changed that others change.
const maxChanges = 100

// errConflict says that somebody else changed the record since it was read.
var errConflict = approval.ErrVersion

// Get returns a call; approval.ErrNotFound.
func (e *Engine[P]) Get(ctx context.Context, key string) (*Call[P], error) {
	r, err := e.calls.records.Record(ctx, e.calls.namespace, key)
	if err != nil {
		return nil, err
	}
	return e.Open(r)
}

// ByAlias returns the call with an alias; approval.ErrNotFound.
func (e *Engine[P]) ByAlias(ctx context.Context, alias string) (*Call[P], error) {
	r, err := e.calls.records.RecordByAlias(ctx, e.calls.namespace, alias)
	if err != nil {
		return nil, err
	}
	return e.Open(r)
}

// Open returns the call of a record.
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

// readCall checks the record's format first: a member may mean
// something else in another one.
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

// put stores a call at the version that it was read at; errConflict
// when it was changed meanwhile.
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

// expires is when a record may be forgotten. A call that has not ended
// is ended at its deadline by whoever runs its namespace. Where nobody
// does any more, it is forgotten some time later.
func (e *Engine[P]) expires(c *Call[P]) time.Time {
	switch {
	case c.State == Closed:
		return e.transport.Keep(c)
	case e.cfg.Abandon > 0 && !c.Deadline.IsZero():
		return c.Deadline.Add(e.cfg.Abandon)
	}

	return time.Time{}
}

// Change changes a call by compare-and-set: change sees it as it is
// stored, possibly more than once, and what it makes of it is stored.
// An error of change is returned, and nothing was stored; the call is
// returned beside it as it was seen. Neither people nor the network may
// be asked in there.
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

// changed tells the transport of another state.
func (e *Engine[P]) changed(ctx context.Context, was State, c *Call[P]) {
	if was != c.State {
		e.transport.Moved(ctx, was, c)
	}
}

// stored lets those know what was stored who wait for news of the call,
// and its run that should stop.
func (e *Engine[P]) stored(c *Call[P]) {
	e.waiting.wake(c.Key)
	e.tasks.check(c.Key, func(f *task) error { return overtaken(c, f) })
}

// Finish ends a call inside of a change. It ends once.
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
