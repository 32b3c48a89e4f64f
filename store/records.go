package store

import (
	"context"
	"time"
)

// Record is a document of an edge that has to survive a crash. The store doesn't look inside; whoever puts secrets into Value seals it.
type Record struct {
	Room    string    // whose record it is; rooms know nothing of each other
	Key     string    // unique in its room
	Alias   string    // a second key, unique in its room among stored records; "" none
	Version int64     // grows by one with every change; the first is 1
	Due     time.Time // when somebody should look at it next; zero: never
	Expires time.Time // when it may be forgotten; zero: never
	Value   []byte
}

// Records are versioned documents. Times are kept to the microsecond.
type Records interface {
	// PutRecord stores a record whose Version is the one that is stored now (0: none is) and returns the next version. Anything else is
	// approval.ErrVersion, and so is an alias that another record has: nothing was written then.
	PutRecord(ctx context.Context, r Record) (int64, error)
	// DeleteRecord deletes a record at that version; approval.ErrVersion when it moved on or is gone.
	DeleteRecord(ctx context.Context, room, key string, version int64) error
	// Record returns a record; approval.ErrNotFound. One that expired may or may not be there still.
	Record(ctx context.Context, room, key string) (Record, error)
	// RecordByAlias returns the record with a (not empty) alias; approval.ErrNotFound.
	RecordByAlias(ctx context.Context, room, alias string) (Record, error)
	// ListRecords lists records whose keys begin with prefix and come after a key, in the byte order of keys; limit 1 to 1000.
	ListRecords(ctx context.Context, room, prefix, after string, limit int) ([]Record, error)
	// DueRecords lists records whose time has come, the earliest first; limit 1 to 1000. It claims nothing: changing the record does.
	DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]Record, error)
	// SweepRecords deletes what expired before now, in small steps.
	SweepRecords(ctx context.Context, now time.Time) error
}
