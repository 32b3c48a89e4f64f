package storetest

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	stores "github.com/assent-dev/assent/store"
)

// Migrations runs the suite of databases that a store must refuse to open.
func Migrations(t *testing.T, place func(t *testing.T) Place) {
	db := func(t *testing.T) (open func() (stores.Store, error), exec func(sql string)) {
		p := place(t)
		return func() (stores.Store, error) { return p.Open(Trust()) }, p.Exec
	}
	for name, c := range map[string]struct {
		before bool // the statement comes before the store has ever opened it
		sql    string
		want   string
	}{
		"newer": {
			sql:  "INSERT INTO assent_migrations (version, name, checksum) VALUES (99, '0099_later.sql', 'x')",
			want: "newer version",
		},
		"altered": {
			sql:  "UPDATE assent_migrations SET checksum = 'x' WHERE version = 1",
			want: "changed by hand",
		},
		"step missing":   {sql: "UPDATE assent_migrations SET version = version + 10", want: "step 1 is missing"},
		"records lost":   {sql: "DELETE FROM assent_migrations", want: "half-applied"},
		"table lost":     {sql: "DROP TABLE votes", want: "table votes"},
		"records' table": {sql: "DROP TABLE records", want: "table records"},
		"column lost":    {sql: "ALTER TABLE kept RENAME COLUMN value TO worth", want: "table kept"},
		"half-applied": {
			before: true,
			sql:    "CREATE TABLE requests (id INTEGER)",
			want:   "half-applied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, exec := db(t)
			if !c.before {
				s, err := open()
				ok(t, err)
				ok(t, s.Close())
			}
			exec(c.sql)
			for range 2 { // a refusal changes nothing
				_, err := open()
				refused(t, err, stores.ErrSchema)
				if !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v does not say %q", err, c.want)
				}
			}
		})
	}

	t.Run("of the first version", func(t *testing.T) {
		t.Parallel()
		open, exec := db(t)
		s := must(open())(t)
		insert(t, s, request(1))
		ok(t, s.Close())
		exec("DROP TABLE pasts")
		exec("DELETE FROM assent_migrations WHERE version > 1")
		s = replica(t, open)
		found(t, s, request(1).ID)
		savePasts(t, s, past(1))
		equal(t, numbersOf(must(s.Pasts(t.Context(), tenant, recorded()))(t)), "1")
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		open, _ := db(t)
		everybody(t, crowd(6, func(int) error {
			s, err := open()
			if err != nil {
				return err
			}
			return s.Close()
		}))
	})
}

// Insert runs a transaction with a write of every kind. Different n give different rows.
func Insert(t testing.TB, s stores.Store, n int) error {
	r := request(n)
	r.Revisions[0].Call.Args = resolve.Raw(`"` + strings.Repeat("x", 10_000) + `"`)
	return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
		tx.Insert(r)
		tx.AddVote(approval.VoteFact{Request: r.ID, At: epoch()})
		tx.Append(record(t, tenant, "request_opened", r.ID, epoch()), approval.Delivery{Target: "slack"})
		return nil
	})
}

// Whole counts the transactions of Insert that happened. It fails if one happened in part.
func Whole(t testing.TB, s stores.Store) int {
	t.Helper()
	ctx := context.Background()
	total := page(t, s, approval.Filter{}).Total
	equal(t, entries(t, s, tenant), total)
	equal(t, len(must(s.Votes(ctx, tenant, epoch(), 100_000))(t)), total)
	equal(t, len(jobs(t, s, "", 100_000)), total)
	verify(t, s, tenant)
	return total
}
