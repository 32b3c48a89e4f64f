package sqlstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// A store is bound to the key that signs its ledger, for one period after another. A period
// begins when a store is bound for the first time, when it is restored, and when its key is
// changed. Each period has its own id, from which the key of the rows' codes is derived. So
// a row of one period is not valid in another, and a process that still uses an older
// period can write nothing.

// period is a row of that table.
type period struct {
	n         int64
	id        string
	publicKey string
	why       string
	at        int64
	code      []byte
}

// Why a period began.
const (
	whyNew       = "new"
	whyRotated   = "rotated"   // the key changed
	whyRestoring = "restoring" // rows of a backup, of which some must be voided yet
	whyRestored  = "restored"
)

func (p period) values() []any { return []any{p.n, p.id, p.publicKey, p.why, p.at} }

const lastPeriod = "SELECT n, id, public_key, why, at, code FROM periods ORDER BY n DESC LIMIT 1"

func scanPeriod(r Rows) (p period, err error) {
	return p, r.Scan(&p.n, &p.id, &p.publicKey, &p.why, &p.at, &p.code)
}

// write adds a period, with its code.
func (p *period) write(ctx context.Context, x Tx, a *authenticator) error {
	p.code = a.code("periods", p.values()...)
	x.Queue(
		do("INSERT INTO periods (n, id, public_key, why, at, code) VALUES ($1, $2, $3, $4, $5, $6)",
			append(p.values(), p.code)...),
	)
	return x.Flush(ctx)
}

// next returns the period of this store that follows another one, with its authenticator.
func (s *Store) next(after period, key store.Key, why string) (period, *authenticator, error) {
	p := period{
		n:         after.n + 1,
		id:        rand.Text(),
		publicKey: key.Public,
		why:       why,
		at:        micros(s.now()),
	}
	a, err := newAuthenticator(key.Secret, p.id)
	return p, a, err
}

// bind binds the store to its key: it joins the current period, or begins the first period
// of an empty store.
func (s *Store) bind(ctx context.Context) error {
	last, found, err := first(ctx, s.eng, scanPeriod, lastPeriod)
	key := s.trust.Key
	switch {
	case err != nil:
		return unavailable("open the database", err)
	case key.Public == "" && found:
		return &store.KeyError{Bound: last.publicKey}
	case key.Public == "":
		return nil
	case found:
		return s.join(last)
	}

	err = s.exclusively(ctx, "bind the store", func(x Tx) error {
		if last, found, err = first(ctx, x, scanPeriod, lastPeriod); found || err != nil {
			return err // another process began the period first
		}
		last, err = s.begin(ctx, x)
		return err
	})
	if err == nil {
		err = s.join(last)
	}
	if err != nil {
		return err
	}
	return s.beginMarks("")
}

// begin writes the first period. A store that has rows and no period is refused: somebody
// may have removed the codes.
func (s *Store) begin(ctx context.Context, x Tx) (period, error) {
	err := empty(ctx, x)
	if errors.Is(err, store.ErrBackup) {
		err = verdict{&store.KeyError{Given: s.trust.Key.Public}}
	}
	if err != nil {
		return period{}, err
	}
	if check := s.trust.Key.Check; check != nil {
		if err := check(); err != nil {
			return period{}, verdict{err}
		}
	}
	p, a, err := s.next(period{}, s.trust.Key, whyNew)
	if err != nil {
		return period{}, verdict{err}
	}
	return p, p.write(ctx, x, a)
}

// join makes p the period of this process, if its key and code match.
func (s *Store) join(p period) error {
	key := s.trust.Key
	if p.publicKey != key.Public {
		return &store.KeyError{Bound: p.publicKey, Given: key.Public}
	}
	a, err := newAuthenticator(key.Secret, p.id)
	if err != nil {
		return err
	}
	if !hmac.Equal(p.code, a.code("periods", p.values()...)) {
		return s.tampered("", "period "+p.id, misfit)
	}
	if p.why == whyRestoring && !s.trust.Unfinished {
		return store.ErrUnfinished
	}
	s.auth, s.period = a, p
	if s.trust.Watermark != nil {
		s.marks = s.trust.Watermark.Marks(p.id)
		for tenant, m := range s.marks {
			s.versions.note(rowName{tenant: tenant}, m.Freezes, time.Time{})
		}
	}

	return nil
}

// beginMarks begins the period of this process in the watermark.
func (s *Store) beginMarks(before string) error {
	if s.trust.Watermark == nil {
		return nil
	}
	return s.trust.Watermark.Begin(s.period.id, before, s.marks)
}

// appendOwn appends an entry of the store itself.
func (s *Store) appendOwn(x Tx, a *authenticator, tenant, event string, facts map[string]any) error {
	r, err := ledger.Entry{
		Time:   s.now(),
		Tenant: tenant,
		Type:   event,
		Facts:  facts,
	}.Seal(rand.Reader)
	if err != nil {
		return verdict{err}
	}
	x.Queue(
		do(
			"INSERT INTO entries (tenant, type, subject, at, leaf, version, code) VALUES ($1, $2, '', $3, $4, 0, $5)",
			tenant,
			r.Type,
			micros(r.Time),
			r.Leaf,
			a.code("entries", tenant, nil, r.Type, "", micros(r.Time), int64(0), r.Leaf),
		),
	)
	return nil
}

// held returns the statements that make a transaction fail if it is not in this process's
// period.
func (s *Store) held() []Stmt {
	if s.auth == nil {
		return nil
	}
	out := []Stmt{{
		SQL:  "SELECT count(*) FROM periods WHERE id = $1 AND n = (SELECT max(n) FROM periods)",
		Args: []any{s.period.id},
		Held: true,
	}}
	if s.d.KeyShare != "" {
		out = append([]Stmt{{SQL: s.d.KeyShare}}, out...)
	}
	return out
}

// stillBound returns the reason why the statements of held failed. It returns nil if the
// store is in this process's period, so that the transaction can run again.
func (s *Store) stillBound(ctx context.Context) error {
	if s.auth == nil {
		return nil
	}
	last, found, err := first(ctx, s.eng, scanPeriod, lastPeriod)
	switch {
	case err != nil:
		return unavailable("read the period", err)
	case !found:
		return s.tampered("", "period "+s.period.id, "it was taken away")
	case last.id == s.period.id:
		return nil
	case last.publicKey == s.period.publicKey:
		return fmt.Errorf("%w: it was restored meanwhile: start again", store.ErrKey)
	}

	return &store.KeyError{Bound: last.publicKey, Given: s.period.publicKey}
}

// exclusively runs fn in a transaction while no other transaction writes.
func (s *Store) exclusively(ctx context.Context, what string, fn func(Tx) error) error {
	return s.repeat(ctx, what, func(x Tx) error {
		if s.d.KeyAlone != "" {
			x.Queue(do(s.d.KeyAlone))
		}
		return fn(x)
	})
}

// Identity returns the store's identity.
func (s *Store) Identity(ctx context.Context) (store.Identity, error) {
	x, err := s.eng.Snapshot(ctx)
	if err != nil {
		return store.Identity{}, unavailable("read the identity", err)
	}
	defer x.Rollback()
	out := store.Identity{SchemaBefore: s.schemaBefore, Schema: s.schema}
	switch err := empty(ctx, x); {
	case err == nil:
		out.Empty = true
	case !errors.Is(err, store.ErrBackup):
		return out, unavailable("read the identity", err)
	}

	last, found, err := first(ctx, x, scanPeriod, lastPeriod)
	if err != nil {
		return out, unavailable("read the identity", err)
	}
	if out.Erases, err = s.eng.Erases(ctx); err != nil {
		return out, unavailable("read the identity", err)
	}
	if found {
		out.ID = last.id
		out.PublicKey = last.publicKey
		out.Since = moment(last.at)
		out.Restored = last.why == whyRestored || last.why == whyRestoring
	}

	return out, nil
}
