package rap_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assent-dev/assent/store"
)

// confDisk is a process's way to its records. It can be cut, at once or
// after some more writes: a process without it is as good as dead.
type confDisk struct {
	store.Records
	mu     sync.Mutex
	left   int                                // writes before it is cut; negative: never
	writes func(namespace string)             // is told of each write before it is made
	lists  func(context.Context) (fail error) // is told of each list
}

var errDead = errors.New("the process is dead")

func (d *confDisk) die(after int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = after
}

func (d *confDisk) alive(write bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return errDead
	}
	if write && d.left > 0 {
		d.left--
	}
	return nil
}

func (d *confDisk) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if d.writes != nil {
		d.writes(r.Namespace)
	}
	if err := d.alive(true); err != nil {
		return 0, err
	}
	return d.Records.PutRecord(ctx, r)
}

func (d *confDisk) Record(ctx context.Context, room, key string) (store.Record, error) {
	if err := d.alive(false); err != nil {
		return store.Record{}, err
	}
	return d.Records.Record(ctx, room, key)
}

func (d *confDisk) RecordByAlias(ctx context.Context, room, alias string) (store.Record, error) {
	if err := d.alive(false); err != nil {
		return store.Record{}, err
	}
	return d.Records.RecordByAlias(ctx, room, alias)
}

func (d *confDisk) ListRecords(ctx context.Context, room, prefix, after string, limit int) ([]store.Record, error) {
	err := d.alive(false)
	if d.lists != nil {
		err = errors.Join(err, d.lists(ctx))
	}
	if err != nil {
		return nil, err
	}
	return d.Records.ListRecords(ctx, room, prefix, after, limit)
}

func (d *confDisk) DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]store.Record, error) {
	if err := d.alive(false); err != nil {
		return nil, err
	}
	return d.Records.DueRecords(ctx, room, now, limit)
}
