package store

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
)

// Bounds of records.
const (
	MaxRecordName  = 512      // bytes of a room, a key or an alias
	MaxRecordValue = 64 << 20 // bytes; a backup with longer ones could not be restored
	MaxRecordList  = 1000     // records of a list
)

// Record is a document of an edge that has to survive a crash. The
// store doesn't look inside; whoever puts secrets into Value seals it.
type Record struct {
	Namespace string    // owner of the record; keys of different namespaces never collide
	Key       string    // unique in its room
	Alias     string    // a second key, unique in its room among stored records; "" none
	Version   int64     // grows by one with every change; the first is 1
	Due       time.Time // when somebody should look at it next; zero: never
	Expires   time.Time // when it may be forgotten; zero: never
	Value     []byte
}

// Normal returns a record as every store keeps it, with times in UTC
// and cut to the microsecond. An *approval.InputError says what none
// keeps: namespaces, keys and aliases that are no RecordName (an alias may
// be empty), values over MaxRecordValue, and times that no calendar
// has.
func (r Record) Normal() (Record, error) {
	switch {
	case !RecordName(r.Namespace):
		return Record{}, badName("record.room")
	case !RecordName(r.Key):
		return Record{}, badName("record.key")
	case r.Alias != "" && !RecordName(r.Alias):
		return Record{}, badName("record.alias")
	case len(r.Value) > MaxRecordValue:
		return Record{}, &approval.InputError{Field: "record.value", Expected: "at most 64 MiB"}
	}

	for name, at := range map[string]*time.Time{"record.due": &r.Due, "record.expires": &r.Expires} {
		if *at = at.UTC().Truncate(time.Microsecond); at.Year() < 1 || at.Year() > 9999 {
			return Record{}, &approval.InputError{Field: name, Expected: "a time in the years 1 to 9999"}
		}
	}
	return r, nil
}

// RecordName reports whether a room, a key or an alias can be kept: 1 to
// 512 bytes of UTF-8 without NUL. What can't be is never found either.
func RecordName(s string) bool {
	return s != "" && len(s) <= MaxRecordName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func badName(field string) error {
	return &approval.InputError{Field: field, Expected: "1 to 512 bytes of UTF-8 without NUL"}
}

// CheckRecordList refuses, with an *approval.InputError, bounds of a
// list that no store takes. Prefix and after may be empty.
func CheckRecordList(room, prefix, after string, limit int) error {
	switch {
	case !RecordName(room):
		return badName("room")
	case prefix != "" && !RecordName(prefix):
		return badName("prefix")
	case after != "" && !RecordName(after):
		return badName("after")
	case limit < 1 || limit > MaxRecordList:
		return &approval.InputError{Field: "limit", Expected: "1 to 1000"}
	}

	return nil
}

// Records are versioned documents. Times are kept to the microsecond
// (Record.Normal).
type Records interface {
	// PutRecord stores a record whose Version is the one that is stored
	// now (0: none is) and returns the next version. Anything else is
	// approval.ErrVersion, and so is an alias that another record has:
	// nothing was written then. A record that can't be kept is an
	// *approval.InputError.
	PutRecord(ctx context.Context, r Record) (int64, error)
	// DeleteRecord deletes a record at that version;
	// approval.ErrVersion when it moved on or is gone.
	DeleteRecord(ctx context.Context, room, key string, version int64) error
	// Record returns a record; approval.ErrNotFound. One that expired
	// may or may not be there still.
	Record(ctx context.Context, room, key string) (Record, error)
	// RecordByAlias returns the record with a (not empty) alias;
	// approval.ErrNotFound.
	RecordByAlias(ctx context.Context, room, alias string) (Record, error)
	// ListRecords lists records whose keys begin with prefix and come
	// after a key, in the byte order of keys; limit 1 to 1000.
	ListRecords(ctx context.Context, room, prefix, after string, limit int) ([]Record, error)
	// DueRecords lists records whose time has come, the earliest first,
	// and of one time in the byte order of keys; limit 1 to 1000. It
	// claims nothing: changing the record does.
	DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]Record, error)
	// SweepRecords deletes what expired by now, in small steps.
	SweepRecords(ctx context.Context, now time.Time) error
}
