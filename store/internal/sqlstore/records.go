package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// Both statements return a row if the record was written, and none if its stored version is
// not the expected one. If two transactions write the same alias at once, the index accepts
// one: the other gets a conflict, and returns no row when it runs again.
const (
	insertRecord = `INSERT INTO records (room, name, version, alias, due, expires, value, code) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING RETURNING version`
	updateRecord = `UPDATE records SET version = version + 1, alias = $4, due = $5, expires = $6, value = $7, code = $8 WHERE room = $1 AND name = $2 AND version = $3
AND NOT EXISTS (SELECT 1 FROM records AS other WHERE other.room = $1 AND other.alias = $4 AND other.alias <> '' AND other.name <> $2) RETURNING version`
	deleteRecord = "DELETE FROM records WHERE room = $1 AND name = $2 AND version = $3 RETURNING version"
)

// PutRecord writes a record within the next group.
func (s *Store) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	r, err := r.Normal()
	if err != nil {
		return 0, fmt.Errorf("put record: %w", err)
	}
	sql, version := updateRecord, r.Version // that is stored
	if r.Version == 0 {
		sql, version = insertRecord, 1 // to be stored
	}
	if r.Value == nil {
		r.Value = []byte{} // and not NULL
	}
	r.Version++
	code := s.auth.code("records", recordValues(r)...)
	if err := s.changeRecord(
		ctx,
		"put record",
		sql,
		r.Namespace,
		r.Key,
		version,
		r.Alias,
		sometime(r.Due),
		sometime(r.Expires),
		r.Value,
		code,
	); err != nil {
		return 0, err
	}

	return r.Version, nil
}

// recordValues returns the columns of a record that its code covers.
func recordValues(r store.Record) []any {
	return []any{
		r.Namespace,
		r.Key,
		r.Alias,
		r.Version,
		sometime(r.Due),
		sometime(r.Expires),
		r.Value,
	}
}

// DeleteRecord deletes a record within the next group.
func (s *Store) DeleteRecord(ctx context.Context, room, key string, version int64) error {
	if !store.RecordName(room) || !store.RecordName(key) {
		return fmt.Errorf("delete record: %w", approval.ErrVersion)
	}
	return s.changeRecord(ctx, "delete record", deleteRecord, room, key, version)
}

// changeRecord runs a statement in the next group. The statement must return a row if it
// changed the record.
func (s *Store) changeRecord(ctx context.Context, what, sql string, room, key string, more ...any) error {
	args := append([]any{room, key}, more...)
	return s.run(ctx, &job{what: what, record: room + "\x00" + key}, func(t *tx) error {
		_, changed, err := first(t.b.ctx, t.b.tx, scanInt, sql, args...)
		if err == nil && !changed {
			return fmt.Errorf("%s: %w", what, approval.ErrVersion)
		}
		return t.fail(what, err)
	})
}

// sometime returns micros(t), or nil (NULL) for a zero time.
func sometime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

const selectRecords = "SELECT room, name, alias, version, due, expires, value, code FROM records WHERE "

// recordRow is a record with its code.
type recordRow struct {
	store.Record
	code []byte
}

func scanRecord(r Rows) (x recordRow, err error) {
	var due, expires *int64
	err = r.Scan(&x.Namespace, &x.Key, &x.Alias, &x.Version, &due, &expires, &x.Value, &x.code)
	if x.Value == nil {
		x.Value = []byte{} // as drivers may return none
	}
	if due != nil {
		x.Due = moment(*due)
	}
	if expires != nil {
		x.Expires = moment(*expires)
	}
	return x, err
}

// Record returns one record.
func (s *Store) Record(ctx context.Context, room, key string) (store.Record, error) {
	return s.record(ctx, room, key, "name = $2")
}

// RecordByAlias returns the record with an alias.
func (s *Store) RecordByAlias(ctx context.Context, room, alias string) (store.Record, error) {
	return s.record(ctx, room, alias, "alias = $2 AND alias <> ''")
}

func (s *Store) record(ctx context.Context, room, name, where string) (store.Record, error) {
	var r recordRow
	var err error
	ok := store.RecordName(room) && store.RecordName(name)
	if ok {
		r, ok, err = find(ctx, s, "read record", scanRecord, selectRecords+"room = $1 AND "+where, room, name)
	}

	if err == nil && !ok {
		err = fmt.Errorf("record: %w", approval.ErrNotFound)
	}
	if err != nil {
		return store.Record{}, err
	}

	return s.genuineRecord(r)
}

func (s *Store) genuineRecord(r recordRow) (store.Record, error) {
	what := "record " + r.Key + " of " + r.Namespace
	if err := s.genuine(r.code, "", what, "records", recordValues(r.Record)...); err != nil {
		return store.Record{}, err
	}
	return r.Record, nil
}

// ListRecords reads a range of the primary key.
func (s *Store) ListRecords(
	ctx context.Context,
	room, prefix, after string,
	limit int,
) ([]store.Record, error) {
	if err := store.CheckRecordList(room, prefix, after, limit); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	where, args := "room = $1 AND name > $3", []any{room, int64(limit), after}
	if after < prefix {
		where, args = "room = $1 AND name >= $3", []any{room, int64(limit), prefix}
	}
	if end := behind(prefix); end != "" {
		where, args = where+" AND name < $4", append(args, end)
	}
	out, err := list(ctx, s, "list records", scanRecord, selectRecords+where+" ORDER BY name LIMIT $2", args...)
	if err != nil {
		return nil, err
	}
	return each(out, s.genuineRecord)
}

// behind returns the first text after all texts that begin with prefix, or an empty string
// if there is none. UTF-8 bytes sort in the order of code points.
func behind(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case utf8.MaxRune:
			continue
		case 0xD7FF: // the next code points are surrogates, which no text contains
			last = 0xDFFF
		}

		return prefix + string(last+1)
	}

	return ""
}

// DueRecords reads only the beginning of an index.
func (s *Store) DueRecords(ctx context.Context, room string, now time.Time, limit int) ([]store.Record, error) {
	if err := store.CheckRecordList(room, "", "", limit); err != nil {
		return nil, fmt.Errorf("list due records: %w", err)
	}
	out, err := list(ctx, s, "list due records", scanRecord,
		selectRecords+"room = $1 AND due <= $2 AND due IS NOT NULL ORDER BY due, name LIMIT $3",
		room, micros(now), int64(limit))
	if err != nil {
		return nil, err
	}
	return each(out, s.genuineRecord)
}

// Namespaces lists the namespaces whose names begin with prefix.
func (s *Store) Namespaces(ctx context.Context, prefix string) ([]string, error) {
	all, err := list(ctx, s, "list namespaces", scanText, "SELECT DISTINCT room FROM records ORDER BY room")
	return slices.DeleteFunc(all, func(room string) bool { return !strings.HasPrefix(room, prefix) }), err
}

// SweepRecords deletes expired records, except those whose expiry was extended meanwhile.
func (s *Store) SweepRecords(ctx context.Context, now time.Time) error {
	return s.sweep(
		ctx,
		"sweep records",
		now,
		"DELETE FROM records WHERE (room, name) IN (SELECT room, name FROM records WHERE expires <= $1 LIMIT $2) "+
			"AND expires <= $1 RETURNING version",
	)
}
