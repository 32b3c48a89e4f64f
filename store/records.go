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

// Record is a document of another package, such as rap or server/auth, that must survive a
// crash. The store doesn't interpret it. If Value contains secrets, the caller must encrypt
// it.
type Record struct {
	Namespace string    // owner of the record; keys of different namespaces never collide
	Key       string    // unique in its room
	Alias     string    // optional second key, unique in its room among stored records
	Version   int64     // grows by one with every change; the first is 1
	Due       time.Time // when the record needs attention next; zero for never
	Expires   time.Time // when it may be deleted; zero for never
	Value     []byte
}

// Normal returns a record in the form in which every store keeps it, with times in UTC and
// truncated to the microsecond. It returns an *approval.InputError for a record that no
// store can keep: if a namespace, key or alias is not a RecordName (an alias may be empty),
// if the value is larger than MaxRecordValue, or if a time is outside of the calendar.
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

// RecordName reports whether s is valid as a namespace, a key or an alias: 1 to 512 bytes
// of UTF-8 without NUL. A lookup by an invalid name finds nothing.
func RecordName(s string) bool {
	return s != "" && len(s) <= MaxRecordName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func badName(field string) error {
	return &approval.InputError{Field: field, Expected: "1 to 512 bytes of UTF-8 without NUL"}
}

// CheckRecordList returns an *approval.InputError if the arguments of a list are invalid.
// Prefix and after may be empty.
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

// Records stores versioned documents. Times are kept to the microsecond (Record.Normal).
type Records interface {
	// PutRecord stores a record and returns its next version. r.Version must be the version
	// that is stored now (0 if there is none). If it isn't, or if another record has the
	// alias, PutRecord writes nothing and returns approval.ErrVersion. A record that can't
	// be kept is an *approval.InputError.
	PutRecord(ctx context.Context, r Record) (int64, error)
	// DeleteRecord deletes a record at that version. It returns approval.ErrVersion if the
	// record has another version or does not exist.
	DeleteRecord(ctx context.Context, room, key string, version int64) error
	// Record returns a record, or approval.ErrNotFound. An expired record may still be
	// returned.
	Record(ctx context.Context, room, key string) (Record, error)
	// RecordByAlias returns the record with an alias, which must not be empty, or
	// approval.ErrNotFound.
	RecordByAlias(ctx context.Context, room, alias string) (Record, error)
	// ListRecords lists records whose keys begin with prefix and sort after the key
	// `after`, in the byte order of keys. The limit is 1 to 1000.
	ListRecords(ctx context.Context, room, prefix, after string, limit int) ([]Record, error)
	// DueRecords lists records that are due, the earliest first, and records with the same
	// time in the byte order of keys. The limit is 1 to 1000. It claims nothing: to claim a
	// record, change it.
	DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]Record, error)
	// SweepRecords deletes records that expired by now, in small steps.
	SweepRecords(ctx context.Context, now time.Time) error
}
