package approval

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Quota bounds what callers may have kept. Zero fields bound nothing.
type Quota struct {
	Token  Amounts // one token
	Tenant Amounts // all tokens of one tenant together
}

// Amounts are the parts of a quota.
type Amounts struct {
	Open         int64 // requests that nobody has decided yet
	OpenBytes    int64 // of all of these
	BytesPerHour int64 // of calls that are recorded, whatever becomes of them
}

// LimitError says that a caller has kept as much as it may. Nothing was
// recorded, and nothing may run.
type LimitError struct {
	Detail string        // whose, how much, and what to do
	After  time.Duration // when it may have changed
}

// Error says what to do.
func (e *LimitError) Error() string { return e.Detail }

// recordWeight is what a call takes in the ledger beside its texts,
// about, in bytes.
const recordWeight = 1 << 10

// loads knows what callers have kept. What is open is read from the
// store once in a while, and what this process opened since is added:
// so callers on several replicas may have a little more than their
// part, for a second.
type loads struct {
	quota Quota

	mu    sync.Mutex
	open  map[string]*openLoad // by tenant
	hours map[loadKey]hourly
}

// openLoad is what one tenant's tokens have open.
type openLoad struct {
	read   time.Time
	tokens map[string]Load
	sums   map[string]Load // by part
}

// loadKey is a token, or a part of a tenant.
type loadKey struct{ tenant, token string }

// partOf is the part of a tenant that a token's requests belong to. Acts
// of administration have a part of their own, so that runtimes that fill
// theirs can't keep administrators from asking. No token's name is one
// of a part.
func partOf(token string) string {
	if strings.HasPrefix(token, administrationPrefix) {
		return administrationPrefix
	}

	return ""
}

// hourly is how many bytes of the last hour are still counted: they
// fade evenly.
type hourly struct {
	bytes float64
	at    time.Time
}

const (
	loadAge   = time.Second // for which what was read holds
	mostHours = 10_000      // after which those that faded are forgotten
)

// room refuses to record a call of so many bytes when too much was
// recorded in the last hour. A call that comes when nothing was is let
// through, whatever its size.
func (l *loads) room(tenant, token string, size int64, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.quota.Token.room(
		"this token has",
		l.faded(loadKey{tenant, token}, l.quota.Token, now),
		size,
	); err != nil {
		return err
	}

	return l.quota.Tenant.room("the tenant has", l.faded(loadKey{tenant, partOf(token)}, l.quota.Tenant, now), size)
}

func (a Amounts) room(whose string, recorded float64, size int64) error {
	over := recorded + float64(size) - float64(a.BytesPerHour)
	if a.BytesPerHour == 0 || recorded == 0 || over <= 0 {
		return nil
	}
	const much = "%s had as many bytes of calls recorded as it may in an hour (%d): send less, or smaller calls"
	return &LimitError{
		Detail: fmt.Sprintf(much, whose, a.BytesPerHour),
		After:  time.Duration(over / float64(a.BytesPerHour) * float64(time.Hour)),
	}
}

// recorded counts a call that was.
func (l *loads) recorded(tenant, token string, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range []loadKey{{tenant, token}, {tenant, partOf(token)}} {
		if r, counted := l.hours[key]; counted {
			r.bytes += float64(size)
			l.hours[key] = r
		}
	}
}

// faded brings a rate up to date, and returns its bytes.
func (l *loads) faded(key loadKey, a Amounts, now time.Time) float64 {
	if a.BytesPerHour == 0 {
		return 0
	}
	if l.hours == nil {
		l.hours = map[loadKey]hourly{}
	}
	if len(l.hours) > mostHours {
		maps.DeleteFunc(l.hours, func(_ loadKey, r hourly) bool { return now.Sub(r.at) > time.Hour })
	}

	r := l.hours[key]
	r.bytes = max(0, r.bytes-float64(a.BytesPerHour)*now.Sub(r.at).Hours())
	r.at = now
	l.hours[key] = r
	return r.bytes
}

// look reads what is open, unless that was done a moment ago.
func (l *loads) look(ctx context.Context, store Store, tenant string, now time.Time) error {
	if !l.quota.Token.boundsOpen() && !l.quota.Tenant.boundsOpen() {
		return nil
	}
	l.mu.Lock()
	known := l.open[tenant]
	l.mu.Unlock()
	if known != nil && now.Sub(known.read) < loadAge {
		return nil
	}
	tokens, err := store.Loads(ctx, tenant)
	if err != nil {
		return err
	}
	fresh := &openLoad{read: now, tokens: tokens, sums: map[string]Load{}}
	for name, t := range tokens {
		sum := fresh.sums[partOf(name)]
		fresh.sums[partOf(name)] = Load{Requests: sum.Requests + t.Requests, Bytes: sum.Bytes + t.Bytes}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string]*openLoad{}
	}
	l.open[tenant] = fresh
	return nil
}

// admit refuses one more open request of so many bytes.
func (l *loads) admit(tenant, token string, size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.open[tenant]
	if known == nil { // nothing is bounded
		return nil
	}
	if err := l.quota.Token.admit("this token has", known.tokens[token], size); err != nil {
		return err
	}
	return l.quota.Tenant.admit("the tenant has", known.sums[partOf(token)], size)
}

func (a Amounts) boundsOpen() bool { return a.Open > 0 || a.OpenBytes > 0 }

func (a Amounts) admit(whose string, has Load, size int64) error {
	const mend = ": wait until people have decided some of them, or cancel what nobody needs any more"
	switch {
	case a.Open > 0 && has.Requests >= a.Open:
		detail := fmt.Sprintf("%s %d requests open, and may have no more", whose, has.Requests)
		return &LimitError{Detail: detail + mend, After: time.Minute}
	case a.OpenBytes > 0 && has.Requests > 0 && has.Bytes+size > a.OpenBytes:
		detail := fmt.Sprintf("%s %d bytes of requests open, and may have %d", whose, has.Bytes, a.OpenBytes)
		return &LimitError{Detail: detail + mend, After: time.Minute}
	}

	return nil
}

// opened counts a request that was opened since.
func (l *loads) opened(tenant, token string, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.open[tenant]
	if known == nil {
		return
	}
	has := known.tokens[token]
	known.tokens[token] = Load{Requests: has.Requests + 1, Bytes: has.Bytes + size}
	sum := known.sums[partOf(token)]
	known.sums[partOf(token)] = Load{Requests: sum.Requests + 1, Bytes: sum.Bytes + size}
}
