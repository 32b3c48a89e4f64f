package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/storetest"
)

// TestServersNeedNotOwnTheLedger runs the statements of docs/guides/postgresql.md. The role
// for servers must have every right that servers need, and must not be able to delete or
// change entries.
func TestServersNeedNotOwnTheLedger(t *testing.T) {
	ctx := t.Context()
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "guides", "postgresql.md")))(t)
	_, after, _ := strings.Cut(string(page), "```sql\n")
	grants, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the page shows no statements")
	}
	owners := pgtest.New(t)
	role := "app_" + strings.ToLower(rand.Text())
	u := must.Get(url.Parse(owners))(t)
	schema := u.Query().Get("search_path")
	u.User = url.User(role)
	open := func(where string) store.Store {
		s, err := postgres.Open(ctx, where, postgres.Options{Conns: 4, Trust: storetest.Trust()})
		return wanted(t, s, err)
	}
	erases := func(s store.Store) bool {
		id := must.Get(s.Identity(ctx))(t)
		return id.Erases
	}
	owner := open(owners)
	exec(t, owners, strings.NewReplacer("assent_app", role, "SCHEMA public", "SCHEMA "+schema).Replace(grants))
	t.Cleanup(func() { // after the stores are closed; t.Context() has ended by then
		conn, err := pgx.Connect(context.Background(), owners)
		if err == nil {
			_, err = conn.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
			err = errors.Join(err, conn.Close(context.Background()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	app := open(u.String())
	if !erases(owner) || erases(app) {
		t.Error("the owner may erase, and servers may not")
	}
	storetest.Fill(t, app)
	if _, _, err := app.Prune(ctx, "acme", time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := app.Due(ctx, time.Now(), 10, func(tx approval.Tx, _ string, r *approval.Request) error {
		r.Due = nil
		tx.Save(r)
		return nil
	}); err != nil {
		t.Error(err)
	}

	if err := app.Verify(ctx); err != nil {
		t.Error(err)
	}
	if _, _, err := app.Prunable(ctx, "acme", time.Now()); err != nil {
		t.Error(err)
	}
	storetest.Backup(t, app)
	conn := must.Get(pgx.Connect(ctx, u.String()))(t)
	defer conn.Close(t.Context())
	for _, sql := range []string{
		"DELETE FROM entries",
		"TRUNCATE entries",
		"UPDATE entries SET leaf = ''",
		"UPDATE entries SET version = 0",
		"DELETE FROM hashes",
		"UPDATE hashes SET pos = 9",
		"DELETE FROM trees",
		"UPDATE periods SET why = 'new'",
		"DELETE FROM periods",
		"DROP TABLE entries",
	} {
		if _, err := conn.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "SQLSTATE 42501") {
			t.Errorf("%s: %v", sql, err)
		}
	}

	// An error for a migration that this role may not run names the command to run it.
	exec(t, owners, "DELETE FROM assent_migrations WHERE version = (SELECT max(version) FROM assent_migrations)")
	refused, err := postgres.Open(ctx, u.String(), postgres.Options{Trust: storetest.Trust()})
	if err == nil {
		must.Do(t, refused.Close())
	}
	if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "run `assent migrate` once with the role") {
		t.Errorf("opened by a role that may not change tables: %v", err)
	}
}
