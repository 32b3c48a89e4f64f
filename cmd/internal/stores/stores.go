// Package stores lists all store engines.
package stores

import (
	"context"
	"slices"
	"strings"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/sqlite"
)

// engine is a kind of store.
type engine struct {
	schemes []string // of the URLs that name its stores; none: paths do
	open    func(ctx context.Context, where string, trust store.Trust) (store.Store, error)
	// log returns the size in bytes of the write-ahead log. It is nil if the engine has no file.
	log func(where string) int64
}

// engines lists them. A new one needs a directory below store and a line here.
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

// Log returns the size in bytes of a store's write-ahead log, which is not yet in its file. It is 0
// if there is no log or no file.
func Log(where string) int64 {
	if e := find(where); e.log != nil {
		return e.log(where)
	}

	return 0
}

// IsURL reports whether a store is named by a URL and not by a path.
func IsURL(where string) bool { return len(find(where).schemes) > 0 }

// find returns the engine for a URL, or the one for paths.
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
