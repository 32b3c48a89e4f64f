// Package testtier selects what `make test` runs of tests that try many rows or random cases. `make long` runs all
// of them: it sets ASSENT_ROWS=all. Each row belongs to the first tier or doesn't, on every machine, so a failure can
// be repeated.
package testtier

import (
	"hash/fnv"
	"os"
)

// share is how many times more rows `make long` runs.
const share = 3

func all() bool { return os.Getenv("ASSENT_ROWS") == "all" }

// Count returns how many of n random cases to try: a third of them in `make test`.
func Count(n int) int {
	if all() {
		return n
	}
	return (n + share - 1) / share
}

// Row reports whether the row of a table with this name is tried: about a third of the rows in `make test`. A test
// with several tables passes the name of the table first, so that each runs other rows.
func Row(names ...string) bool {
	digest := fnv.New32a()
	for _, name := range names {
		_, _ = digest.Write([]byte(name + "\x00"))
	}
	return all() || digest.Sum32()%share == 0
}
