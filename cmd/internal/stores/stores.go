// Package stores is the table of all engines of stores.
package stores

import (
	"context"
	"slices"
	"strings"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/sqlite"
)

// engine is what a store can run on.
type engine struct {
	schemes []string // of the URLs that name its stores; none: paths do
	open    func(ctx context.Context, where string, trust store.Trust) (store.Store, error)
	// log is the size of what the store has not folded into its file, in
	// bytes; nil where it has no file.
	log func(where string) int64
}

// engines lists them. A new one is a folder of store, and a line here.
func engines() []engine {
	return []engine{
		{open: openSQLite, log: sqlite.LogSize},
		{schemes: []string{"postgres", "postgresql"}, open: openPostgres},
	}
}

func openSQLite(ctx context.Context, path string, trust store.Trust) (store.Store, error) {
	return sqlite.Open(ctx, path, sqlite.Options{Trust: trust})
}

func openPostgres(ctx context.Context, url string, trust store.Trust) (store.Store, error) {
	return postgres.Open(ctx, url, postgres.Options{Trust: trust})
}

// Open opens the store of a path or a URL.
func Open(ctx context.Context, where string, trust store.Trust) (store.Store, error) {
	return find(where).open(ctx, where, trust)
}

// Log is the size of what a store has not folded into its file yet, in
// bytes; 0 where there is nothing, or no file.
func Log(where string) int64 {
	if e := find(where); e.log != nil {
		return e.log(where)
	}

	return 0
}

// IsURL tells the URL of a store from a path.
func IsURL(where string) bool { return len(find(where).schemes) > 0 }

// find is the engine of a URL, or else that of paths.
func find(where string) engine {
	all := engines()
	scheme, _, found := strings.Cut(where, "://")
	for _, e := range all {
		if found && slices.Contains(e.schemes, scheme) {
			return e
		}
	}

	return all[slices.IndexFunc(all, func(e engine) bool { return len(e.schemes) == 0 })]
}
