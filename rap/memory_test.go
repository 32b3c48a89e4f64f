package rap_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Records(t, func(*testing.T) store.Records { return rap.NewMemory() })
}

// Records in memory and in a database behave the same for any sequence of operations.
func TestMemoryIsAStore(t *testing.T) {
	t.Parallel()
	db := must.Get(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{}))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		both := twins{memory: rap.NewMemory(), database: db, room: fmt.Sprintf("run %d", run)}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			both.step(t)
		}
	})
}

type twins struct {
	memory, database store.Records
	room             string
}

// say returns the result of a store as text.
func say(v any, err error) string {
	switch {
	case errors.Is(err, approval.ErrVersion):
		return "version"
	case errors.Is(err, approval.ErrNotFound):
		return "not found"
	case err != nil:
		return err.Error()
	}

	return fmt.Sprintf("%q", v)
}

// step does one operation on both stores, and compares their content.
func (w twins) step(t *rapid.T) {
	ctx := context.Background()
	name := func(what string) string {
		return rapid.SampledFrom([]string{"a", "ab", "b", "é", "\xff"}).Draw(t, what)
	}
	some := func(what string) string {
		return rapid.SampledFrom([]string{"", "", "a", "ab", "b", "é", "\x00"}).Draw(t, what)
	}
	at := func(what string) time.Time {
		n := rapid.Int64Range(0, 4).Draw(t, what)
		if n == 0 {
			return time.Time{}
		}
		return time.Unix(1_800_000_000, n*700) // less than a microsecond apart
	}
	r := store.Record{
		Namespace: w.room,
		Key:       name("key"),
		Alias:     some("alias"),
		Due:       at("due"),
		Expires:   at("expires"),
		Value:     []byte(some("value")),
	}
	if r.Version = rapid.Int64Range(-1, 3).Draw(t, "version"); r.Version < 0 { // the right version
		old, _ := w.memory.Record(ctx, r.Namespace, r.Key)
		r.Version = old.Version
	}
	do := rapid.SampledFrom([]string{"put", "put", "put", "delete", "sweep"}).Draw(t, "step")
	alias := some("read")
	prefix := some("prefix")
	after := some("after")
	now := at("now")
	limit := rapid.IntRange(0, 5).Draw(t, "limit")
	for i, ask := range []func(s store.Records) string{
		func(s store.Records) string { return changeRecord(ctx, s, do, r, now) },
		func(s store.Records) string {
			v, err := s.Record(ctx, w.room, r.Key)
			return say(v, err)
		},
		func(s store.Records) string {
			v, err := s.RecordByAlias(ctx, w.room, alias)
			return say(v, err)
		},
		func(s store.Records) string {
			v, err := s.ListRecords(ctx, w.room, prefix, after, limit)
			return say(v, err)
		},
		func(s store.Records) string {
			v, err := s.DueRecords(ctx, w.room, now, limit)
			return say(v, err)
		},
	} {
		if memory, database := ask(w.memory), ask(w.database); memory != database {
			t.Fatalf("question %d: memory says %s, the database says %s", i, memory, database)
		}
	}
}

func changeRecord(ctx context.Context, s store.Records, do string, r store.Record, now time.Time) string {
	switch do {
	case "put":
		version, err := s.PutRecord(ctx, r)
		return say(version, err)
	case "delete":
		return say(nil, s.DeleteRecord(ctx, r.Namespace, r.Key, r.Version))
	default:
		return say(nil, s.SweepRecords(ctx, now))
	}
}
