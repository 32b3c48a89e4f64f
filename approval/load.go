package approval

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Quota limits what callers may have stored. Zero fields set no limit.
type Quota struct {
	Token  Amounts // one token
	Tenant Amounts // all tokens of one tenant together
}

// Amounts are the limits of a quota.
type Amounts struct {
	Open         int64 // undecided requests
	OpenBytes    int64 // bytes of all undecided requests
	BytesPerHour int64 // bytes of all recorded calls, whatever their result
}

// LimitError is returned if a caller has reached a limit. Nothing was recorded, and nothing may
// run.
type LimitError struct {
	Detail string        // whose limit, how much is used, and what to do
	After  time.Duration // when to try again
}

// Error returns Detail.
func (e *LimitError) Error() string { return e.Detail }

// recordWeight is the approximate size in bytes of a call's ledger entry without its texts.
const recordWeight = 1 << 10

// loads counts what callers have stored. The open requests are read from the store at most once per
// loadAge, and requests that this process opened since are added. So callers of several replicas
// may exceed their limit a little for a second.
type loads struct {
	quota Quota

	mu    sync.Mutex
	open  map[string]*openLoad // by tenant
	hours map[loadKey]hourly
}

// openLoad holds what one tenant's tokens have open.
type openLoad struct {
	read   time.Time
	tokens map[string]Load
	sums   map[string]Load // by part
}

// loadKey identifies a token, or a part of a tenant.
type loadKey struct{ tenant, token string }

// partOf returns the part of a tenant that a token's requests are counted in. Acts of
// administration have their own part, so that runtimes that reach their limit can't keep
// administrators from asking. No token has the name of a part.
func partOf(token string) string {
	if strings.HasPrefix(token, administrationPrefix) {
		return administrationPrefix
	}

	return ""
}

// hourly counts the bytes of the last hour. The count decreases evenly over time.
type hourly struct {
	bytes float64
	at    time.Time
}

const (
	loadAge   = time.Second // how long a result of Store.Loads is used
	mostHours = 10_000      // number of entries above which those older than an hour are deleted
)

// room returns an error if recording a call of this size would exceed the limit per hour. A call of
// any size is accepted if nothing was recorded in the last hour.
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

// recorded adds a call that has been recorded.
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

// faded updates the count of a key and returns its bytes.
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

// look reads the open requests from the store, unless that was done within loadAge.
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

// admit returns an error if one more open request of this size would exceed a limit.
func (l *loads) admit(tenant, token string, size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.open[tenant]
	if known == nil { // no limit is set
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

// opened adds a request that was opened after the last look.
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
