package permit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Uses records which permits were used, so that none is used twice. A tool with several
// processes, or one that may restart while a permit is valid, needs a shared implementation,
// for example a table with a unique column.
type Uses interface {
	// Use records an id until the given time and reports whether this is its first use. Of
	// concurrent calls with the same id, exactly one is the first.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

// DefaultUses is the number of permits that a verifier remembers by default.
const DefaultUses = 100_000

// errFull is returned so that a valid permit is refused rather than another one forgotten.
var errFull = errors.New("too many permits are remembered at once")

// NewUses returns Uses that remember up to limit permits in this process.
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

// Use removes expired ids at most once a minute, and if the limit is reached.
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
