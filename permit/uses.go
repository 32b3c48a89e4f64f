package permit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Uses remembers which permits were used, so that none is used twice.
// A tool of several processes, or one that may start again while a
// permit is good, needs one that they share: a table with a unique
// column does.
type Uses interface {
	// Use reports whether this is the first use of an id, and keeps it
	// until the time given. Of any number at once, one is the first.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

// DefaultUses is how many permits a verifier remembers by default.
const DefaultUses = 100_000

// errFull refuses permits rather than forget one that is still good.
var errFull = errors.New("too many permits are remembered at once")

// NewUses remembers up to limit permits in this process.
func NewUses(limit int, now func() time.Time) Uses {
	return &uses{limit: limit, now: now, until: map[string]time.Time{}}
}

type uses struct {
	limit int
	now   func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
	swept time.Time
}

// Use forgets what is over at most once a minute, and when it is full.
func (u *uses) Use(_ context.Context, id string, until time.Time) (first bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if len(u.until) >= u.limit || now.Sub(u.swept) > time.Minute {
		u.sweep(now)
	}

	if _, used := u.until[id]; used {
		return false, nil
	}
	if len(u.until) >= u.limit {
		return false, errFull
	}
	u.until[id] = until
	return true, nil
}

func (u *uses) sweep(now time.Time) {
	for id, until := range u.until {
		if now.After(until) {
			delete(u.until, id)
		}
	}
	u.swept = now
}
