// Package keyset caches the public keys of token issuers. It reloads them when they are old, and
// when a token names an unknown key.
package keyset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// ErrUnavailable means that the keys can't be loaded now, so it is unknown which keys are valid.
var ErrUnavailable = errors.New("the issuer's keys can't be fetched now")

// Patience limits the time of a load.
const Patience = 10 * time.Second

// Set caches the keys of an issuer between requests. It is ready to use once its exported fields
// are set, and safe for concurrent use.
type Set struct {
	Load  func(ctx context.Context) ([]jose.JSONWebKey, error)
	Now   func() time.Time
	Log   *slog.Logger
	Fresh time.Duration // the age after which they are reloaded
	Again time.Duration // at least, between two loads

	mu      sync.Mutex
	known   []jose.JSONWebKey
	at      time.Time     // when they were loaded
	tried   time.Time     // when the last load began
	failed  error         // of the last load
	loading chan struct{} // closed when the last load has ended
	busy    bool          // it has not ended
}

// keepKeys is the time for which known keys are used while they can't be reloaded.
const keepKeys = 24 * time.Hour

// Find returns the keys for which fits returns true. If there are none, it reloads the keys, unless
// that was done a moment ago. It returns ErrUnavailable if the keys can't be loaded.
func (k *Set) Find(ctx context.Context, fits func(*jose.JSONWebKey) bool) ([]jose.JSONWebKey, error) {
	found, loading, _ := k.look(ctx, fits)
	if len(found) > 0 {
		return found, nil
	}
	if err := ended(ctx, loading); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	found, _, failed := k.look(ctx, fits)
	if len(found) == 0 && failed != nil {
		return nil, ErrUnavailable
	}
	return found, nil
}

// ended waits until a load has ended.
func ended(ctx context.Context, loading <-chan struct{}) error {
	select {
	case <-loading:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look returns the known keys that fit, and starts a load if one is due.
func (k *Set) look(
	ctx context.Context, fits func(*jose.JSONWebKey) bool,
) (found []jose.JSONWebKey, loading <-chan struct{}, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	age := now.Sub(k.at)
	if age > keepKeys {
		k.known = nil
	}
	for _, key := range k.known {
		if fits(&key) {
			found = append(found, key)
		}
	}

	due := len(found) == 0 || age > k.Fresh
	if due && !k.busy && now.Sub(k.tried) >= k.Again {
		k.tried, k.busy = now, true
		k.loading = make(chan struct{})
		go k.reload(context.WithoutCancel(ctx), k.loading)
	}
	return found, k.loading, k.failed
}

// reload loads the keys for everyone who waits. If that fails, the known keys are kept.
func (k *Set) reload(ctx context.Context, done chan<- struct{}) {
	ctx, stop := context.WithTimeout(ctx, Patience)
	defer stop()
	loaded, err := k.Load(ctx)
	if err != nil {
		k.Log.WarnContext(ctx, "the issuer's keys can't be fetched", "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed, k.busy = err, false
	if err == nil {
		k.known, k.at = loaded, k.tried
	}
	close(done)
}
