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
}

// engines lists them. A new one is a folder of store, and a line here.
func engines() []engine {
	return []engine{
		{open: openSQLite},
		{[]string{"postgres", "postgresql"}, openPostgres},
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
