package sqlstore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/internal/sqlstore"
	"github.com/assent-dev/assent/store/sqlite"
)

// TestALaterStepIsAppliedOnce: a later version applies its step to a filled store, completely
// or not at all, and this version refuses the store afterwards.
func TestALaterStepIsAppliedOnce(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "s.db")
	open := func() (*sqlstore.Store, error) {
		s, err := sqlite.Open(ctx, path, sqlite.Options{})
		if err != nil {
			return nil, err
		}
		return s.(*sqlstore.Store), nil
	}
	s := must.Get(open())(t)
	record := store.Record{Namespace: "calls", Key: "k", Value: []byte("v")}
	must.Get(s.PutRecord(ctx, record))(t)

	const more = "CREATE TABLE more (id {{int}} NOT NULL PRIMARY KEY) {{strict}};\n"
	err := s.MigrateMore(ctx, "0003_more.sql", more+"ALTER TABLE none ADD COLUMN x {{int}};\n")
	if err == nil || !strings.Contains(err.Error(), "step 3 (0003_more.sql)") {
		t.Fatalf("a step that fails: %v", err)
	}
	must.Do(t, s.Close())
	s = must.Get(open())(t) // nothing of the step has happened
	for range 2 {
		must.Do(t, s.MigrateMore(ctx, "0003_more.sql", more))
	}
	id := must.Get(s.Identity(ctx))(t)
	if id.SchemaBefore != 3 || id.Schema != 3 {
		t.Errorf("the second time it went from step %d to %d", id.SchemaBefore, id.Schema)
	}
	must.Get(s.Record(ctx, "calls", "k"))(t)
	must.Do(t, s.Close())

	if s, err = open(); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("this version opens the store: %v, %v", s, err)
	}
}
