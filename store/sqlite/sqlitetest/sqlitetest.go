// Package sqlitetest changes a SQLite store from outside of it, as
// somebody does who has the file and not the key.
package sqlitetest

import (
	"database/sql"
	"net/url"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// Exec runs statements on a database file, also while servers use it.
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
