package postgres

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store/internal/sqlstore"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/storetest"
)

// TestListsReadFewRows checks that for a list of 2,000 open requests or records, PostgreSQL
// reads no more rows than the page has, times the number of keys for groups and readers.
func TestListsReadFewRows(t *testing.T) {
	ctx := t.Context()
	e, _ := suited(t, pgtest.New(t))
	r := &storetest.Recorder{Engine: e}
	s := must.Get(sqlstore.New(ctx, r, sqlstore.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })

	const (
		n     = 2000
		ahead = 64 // an incremental sort reads groups of 32 rows
	)
	most := map[string]int{
		"a page": 51, "a long page": 501, "the oldest": 2, "by deadline": 501, "all states": 51,
		"all by deadline": 51, "of an agent": 51, "since some time": 51,
		// For each key: the page, and the requests that it leads to.
		"of a rare group": 51 * 4 * 2, "of many groups": 51 * 46 * 2, "mine, by deadline": 501 * 6 * 2,
		"of a reader of few": n / 50, "all of a reader of few": n / 50, "due of a reader of few": n / 50,
		"ended of a reader of few": n / 50, "answered": n / 50,
		"due of a reader of all": 51 * 3 * 2, "all of a reader of all": 51 * 3 * 2,
		"records": 500, "records after one": 500, "due records": 500, "a record by alias": 1,
	}
	r.Take() // reads of the opening
	analyzed := sync.OnceFunc(func() { analyze(t, e) })
	read := func(what string) {
		statements := r.Take()
		if len(statements) == 0 {
			t.Errorf("%s: nothing was read", what)
		}
		analyzed()
		for _, s := range statements {
			limit, ok := most[what]
			if !ok {
				t.Fatalf("how many rows may %q read?", what)
			}
			if strings.HasPrefix(s.SQL, "SELECT count(") {
				limit = 8 * n // counting has its own limit; PostgreSQL scans a table of this size
			}
			if got, plan := rowsRead(t, e, s); got > limit+ahead {
				t.Errorf("%s: read %d rows, want at most %d\n%s\n%s", what, got, limit, s.SQL, plan)
			}
		}
	}
	storetest.Lists(t, s, n, read)
	analyzed = sync.OnceFunc(func() { analyze(t, e) })
	storetest.RecordLists(t, s, n, read)
}

// analyze collects the planner's statistics, as a server does by itself after a while.
func analyze(t *testing.T, e *engine) {
	t.Helper()
	must.Get(e.pool.Exec(t.Context(), "ANALYZE requests, request_keys, records"))(t)
}

// step is a node of a plan that ran.
type step struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Plans    []step
}

// read returns how many rows of tables a plan read.
func (s step) read() int {
	sum := 0
	if s.Relation != "" {
		sum = int((s.Rows + s.Filtered) * s.Loops)
	}
	for _, p := range s.Plans {
		sum += p.read()
	}
	return sum
}

// rowsRead runs a statement. It returns the number of table rows that it read, and its
// plan.
func rowsRead(t *testing.T, e *engine, s sqlstore.Stmt) (int, string) {
	t.Helper()
	var text string
	err := e.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+s.SQL, s.Args...).Scan(&text)
	must.Do(t, err)
	var plans []struct{ Plan step }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		t.Fatalf("plan %s: %v", text, err)
	}
	return plans[0].Plan.read(), text
}
