// Package sqlitetest changes a SQLite store like an attacker who has the file but not the
// key.
package sqlitetest

import (
	"database/sql"
	"net/url"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// Exec runs statements on a database file. Servers may use it at the same time.
func Exec(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(path)+"?_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}
