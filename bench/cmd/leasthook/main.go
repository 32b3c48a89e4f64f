// Command leasthook does the least that a hook with a store can do: it reads a hook document on
// standard input and one row of the store. bench/hook compares `assent hook` with it.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(store string) error {
	var document struct {
		Tool string `json:"tool_name"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&document); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+store)
	if err != nil {
		return err
	}
	var table string
	if err := db.QueryRow("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1").Scan(&table); err != nil {
		return err
	}
	if document.Tool == "" || table == "" {
		return fmt.Errorf("no tool %q or no table %q", document.Tool, table)
	}

	return db.Close()
}
