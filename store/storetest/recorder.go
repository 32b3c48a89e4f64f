package storetest

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// Recorder is an engine that records the reads outside of transactions.
type Recorder struct {
	sqlstore.Engine
	mu  sync.Mutex
	all []sqlstore.Stmt
}

// Query records the statement and runs it.
func (r *Recorder) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	r.mu.Lock()
	r.all = append(r.all, sqlstore.Stmt{SQL: query, Args: args})
	r.mu.Unlock()
	return r.Engine.Query(ctx, query, args...)
}

// Take returns the statements recorded since the last call.
func (r *Recorder) Take() []sqlstore.Stmt {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}
