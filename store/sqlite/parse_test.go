package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/storetest"
)

// TestBackupHoldsAllTables finds tables that were added by a migration and are not backed
// up.
func TestBackupHoldsAllTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := open(t, path)()
	wanted(t, s, err)
	lines := strings.Split(strings.TrimSpace(storetest.Backup(t, s)), "\n")
	var end struct{ Rows map[string]int }
	must.Do(t, json.Unmarshal([]byte(lines[len(lines)-1]), &end))
	rows, err := raw(
		t,
		path,
	).QueryContext(t.Context(), `SELECT m.name, count(*) FROM sqlite_master m, pragma_table_info(m.name)
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT IN ('assent_migrations', 'pulse', 'request_keys') GROUP BY m.name`)
	must.Do(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var columns int
		must.Do(t, rows.Scan(&name, &columns))
		if _, ok := end.Rows[name]; !ok {
			t.Errorf("backups leave table %s out", name)
		}
	}

	must.Do(t, rows.Err())
}

func FuzzRestore(f *testing.F) {
	dir := f.TempDir()
	from := must.Get(sqliteOpen(filepath.Join(dir, "from.db")))(f)
	storetest.Fill(f, from)
	good := storetest.Backup(f, from)
	for _, seed := range []string{
		"",
		"{}\n",
		good[:len(good)/3],
		strings.Replace(good, "[", "{", 1),
		good[:strings.Index(good, "\n")+1] + "[\"votes\",1]\n",
	} {
		f.Add(seed)
	}

	to := must.Get(sqliteOpen(filepath.Join(dir, "to.db")))(f)
	f.Cleanup(func() { _ = errors.Join(from.Close(), to.Close()) })
	f.Fuzz(func(t *testing.T, text string) {
		if err := to.Restore(t.Context(), strings.NewReader(text)); err != nil && !errors.Is(err, store.ErrBackup) &&
			!errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	})
}

func FuzzCursor(f *testing.F) {
	s := must.Get(sqliteOpen(filepath.Join(f.TempDir(), "a.db")))(f)
	f.Cleanup(func() { _ = s.Close() })
	for _, seed := range []string{"", "YzEgYXByXzE", "ZC0xIA", "!"} {
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, cursor string, byDue bool) {
		_, err := s.Requests(t.Context(), "acme", approval.Filter{Cursor: cursor, ByDue: byDue})
		if _, input := errors.AsType[*approval.InputError](err); err != nil && !input {
			t.Fatal(err)
		}
	})
}

func sqliteOpen(path string) (store.Store, error) {
	return sqlite.Open(context.Background(), path, sqlite.Options{})
}
