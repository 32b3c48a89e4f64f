package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store/internal/sqlstore"
	"github.com/assent-dev/assent/store/storetest"
)

// TestListsReadIndexes checks that no list scans a whole table or sorts its results: there
// is an index for every order.
func TestListsReadIndexes(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.db")
	must.Do(t, create(path))
	e := must.Get(connect(ctx, path, Options{Readers: 4, LockWait: time.Minute}))(t)
	r := &storetest.Recorder{Engine: e}
	s := must.Get(sqlstore.New(ctx, r, sqlstore.Options{}))(t)
	defer s.Close()

	r.Take() // reads of the opening
	read := func(what string) {
		statements := r.Take()
		if len(statements) == 0 {
			t.Errorf("%s: nothing was read", what)
		}
		for _, s := range statements {
			steps := plan(t, e, s)
			if problem := wasteful(steps); problem != "" {
				t.Errorf("%s: %s\n%s\n%s", what, problem, s.SQL, strings.Join(steps, "\n"))
			}
		}
	}
	storetest.Lists(t, s, 1000, read)
	storetest.RecordLists(t, s, 1000, read)
}

// wasteful returns the first step of a plan that reads rows which the list does not need,
// or an empty string.
func wasteful(steps []string) string {
	state := ""
	for i, step := range steps {
		if name, ok := strings.CutPrefix(step, "CO-ROUTINE "); ok {
			state = name
		}
		table := strings.HasPrefix(step, "SCAN requests") || strings.HasPrefix(step, "SCAN records") ||
			strings.HasSuffix(step, "(room=?)") // all records of a namespace
		found := i > 0 && strings.HasPrefix(steps[i-1], "SEARCH ")
		sorts := found && step == "USE TEMP B-TREE FOR ORDER BY"
		// Only requests that are pending have an index by deadline.
		closed := state != "" && state != "pending" && slices.ContainsFunc(steps, func(s string) bool {
			return strings.Contains(s, "requests_deadline")
		})
		// Requests whose keys are not written yet are few, and may be sorted.
		if found && strings.Contains(steps[i-1], "requests_unkeyed") {
			continue
		}
		if table || sorts && !closed {
			return step
		}
	}
	return ""
}

// plan returns SQLite's query plan of a statement.
func plan(t *testing.T, e *engine, s sqlstore.Stmt) []string {
	t.Helper()
	rows := must.Get(e.Query(t.Context(), "EXPLAIN QUERY PLAN "+s.SQL, s.Args...))(t)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		must.Do(t, rows.Scan(&id, &parent, &unused, &detail))
		out = append(out, detail)
	}
	must.Do(t, rows.Err())
	return out
}
