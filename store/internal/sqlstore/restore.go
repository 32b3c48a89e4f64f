package sqlstore

import (
	"bufio"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// Restore reads the lines of a backup into one transaction. It does not retry, because r
// can be read only once. Every row must carry the code of the backup's period, and gets one
// of a new period. Rows that were written after the backup are no longer valid.
func (s *Store) Restore(ctx context.Context, r io.Reader) error {
	var next period
	before := ""
	t, err := s.eng.Begin(ctx)
	if err != nil {
		return unavailable("restore", err)
	}
	defer t.Rollback()
	err = func() error {
		if s.d.KeyAlone != "" {
			t.Queue(do(s.d.KeyAlone))
		}
		if err := empty(ctx, t); err != nil {
			return err
		}
		t.Queue(do("DELETE FROM periods"))
		in := &backupReader{
			r:    bufio.NewReaderSize(r, 1<<16),
			sum:  sha256.New(),
			rows: map[string]int64{},
		}
		if err := in.restore(ctx, t); err != nil {
			return err
		}
		if err := s.count(ctx, t); err != nil {
			return err
		}
		last, found, err := first(ctx, t, scanPeriod, lastPeriod)
		switch {
		case err != nil:
			return err
		case found && last.publicKey != s.trust.Key.Public, !found && s.auth != nil:
			return verdict{&store.KeyError{Bound: last.publicKey, Given: s.trust.Key.Public}}
		case !found:
			return nil
		}

		before = last.id
		if err := s.remembered(ctx, t, before); err != nil {
			return err
		}
		next, err = s.renewed(ctx, t, last, whyRestoring)
		return err
	}()
	if err == nil {
		err = t.Commit(ctx)
	}
	if err != nil && s.eng.Class(err) == Conflict {
		err = refuse("it holds a row twice, or somebody writes to the store meanwhile: %w", err)
	}
	if err != nil {
		return unavailable("restore", err)
	}
	s.changes.everything()
	return s.beganAnew(next, before)
}

// watermarkLag is how much older than the newest entry of a ledger its mark may be: a
// server that is killed loses marks that it has not written yet.
const watermarkLag = time.Minute

// remembered returns an error if the watermark can't show what happened after the state
// that a transaction sees: if it does not have the period, or if its mark of a log is
// smaller than the log and more than watermarkLag older than the log's newest entry.
func (s *Store) remembered(ctx context.Context, x Tx, period string) error {
	if s.trust.Watermark == nil {
		return nil
	}
	if !s.trust.Watermark.Knows(period) {
		return verdict{&store.WatermarkError{}}
	}
	marks := s.trust.Watermark.Marks(period)
	type log struct {
		tenant       string
		size, newest int64
	}
	logs, err := collect(ctx, x, func(r Rows) (l log, err error) { return l, r.Scan(&l.tenant, &l.size, &l.newest) },
		`SELECT tenant, size, (SELECT max(at) FROM entries WHERE entries.tenant = trees.tenant AND idx = trees.size - 1)
FROM trees WHERE size > 0 ORDER BY tenant`)
	if err != nil {
		return err
	}
	for _, l := range logs {
		mark := marks[l.tenant]
		if mark.Size < l.size && mark.Time.Before(moment(l.newest).Add(-watermarkLag)) {
			return verdict{&store.WatermarkError{Tenant: l.tenant, Size: l.size, Known: mark.Size}}
		}
	}
	return nil
}

// rememberedPeriod returns the id of the period under which the watermark knows the store.
// A restore that was interrupted after its commit has not begun its period in the
// watermark, so the period before it is returned then.
func (s *Store) rememberedPeriod(ctx context.Context, x Tx) (string, error) {
	id := s.period.id
	if s.period.why == whyRestoring && s.trust.Watermark != nil && !s.trust.Watermark.Knows(id) {
		before, found, err := first(ctx, x, scanText, "SELECT id FROM periods WHERE n < $1 ORDER BY n DESC LIMIT 1",
			s.period.n)
		if err != nil {
			return "", err
		}
		if found {
			id = before
		}
	}
	return id, s.remembered(ctx, x, id)
}

// renewed checks all rows of a period and moves them to a new period with the same key.
func (s *Store) renewed(ctx context.Context, x Tx, last period, why string) (period, error) {
	from, err := newAuthenticator(s.trust.Key.Secret, last.id)
	if err == nil && !hmac.Equal(last.code, from.code("periods", last.values()...)) {
		err = s.tampered("", "period "+last.id, misfit)
	}
	if err != nil {
		return period{}, verdict{err}
	}
	next, to, err := s.next(last, s.trust.Key, why)
	if err != nil {
		return period{}, verdict{err}
	}
	if err := s.renew(ctx, x, from, to, nil); err != nil {
		return period{}, err
	}
	return next, next.write(ctx, x, to)
}

// began makes a period that was just committed the period of this process, with the known
// states of its logs.
func (s *Store) began(p period, before string, logs map[string]grown) error {
	if p.id == "" {
		return nil
	}
	s.sealing.Lock()
	defer s.sealing.Unlock()
	if s.trust.Watermark != nil {
		s.before = s.trust.Watermark.Marks(before)
	}
	unfinished := s.trust.Unfinished
	s.trust.Unfinished = true
	err := s.join(p)
	s.trust.Unfinished = unfinished
	if err != nil {
		return err
	}
	s.trees.replace(logs)
	s.marks = map[string]store.Mark{}
	for tenant, at := range logs {
		s.marks[tenant] = store.Mark{
			Size: at.size,
			Root: at.root,
			Time: s.now().UTC().Truncate(time.Microsecond),
		}.Join(store.Mark{Freezes: s.before[tenant].Freezes, Frozen: s.before[tenant].Frozen})
	}

	s.halted.Store(nil)
	return s.beginMarks(before)
}

// beganAnew makes the period of a restore the period of this process. It forgets the
// remembered logs and rows, which were replaced by the restore.
func (s *Store) beganAnew(p period, before string) error {
	s.versions = newVersions(s.trust.Recent)
	return s.began(p, before, map[string]grown{})
}

// RestoreInPlace begins a new period with the rows that are in the database.
func (s *Store) RestoreInPlace(ctx context.Context) error {
	if s.auth == nil {
		return errors.New("restore in place: the store has no key")
	}
	var next period
	before := s.period.id
	err := s.exclusively(ctx, "restore in place", func(x Tx) (err error) {
		x.Queue(s.held()[len(s.held())-1])
		if before, err = s.rememberedPeriod(ctx, x); err != nil {
			return err
		}
		next, err = s.renewed(ctx, x, s.period, whyRestoring)
		return err
	})
	if err != nil {
		return err
	}
	return s.beganAnew(next, before)
}

// FinishRestore allows services to open the store again.
func (s *Store) FinishRestore(ctx context.Context) error {
	if s.auth == nil {
		return nil
	}
	done := s.period
	done.why = whyRestored
	done.code = s.auth.code("periods", done.values()...)
	err := s.exec(ctx, "finish the restore",
		one("UPDATE periods SET why = $2, code = $3 WHERE id = $1", done.id, done.why, done.code))
	if err == nil {
		s.period = done
	}
	return err
}

// Rotate seals everything, names the new key in the last entry of each log, and begins a
// period under that key.
func (s *Store) Rotate(ctx context.Context, r store.Rotation) error {
	if s.auth == nil || r.Key.Public == "" || len(r.Key.Secret) == 0 {
		return errors.New("rotate: the store is bound to no key, or the new key is none")
	}
	if r.Key.Public == s.trust.Key.Public {
		return errors.New("rotate: the new key is the one that the store has")
	}
	s.sealing.Lock()
	p, logs, err := s.rotate(ctx, r)
	s.sealing.Unlock()
	if err != nil {
		return err
	}
	before := s.period.id
	s.trust.Key = r.Key
	return s.began(p, before, logs)
}

func (s *Store) rotate(ctx context.Context, r store.Rotation) (next period, logs map[string]grown, err error) {
	err = s.exclusively(ctx, "rotate the key", func(x Tx) error {
		x.Queue(s.held()[len(s.held())-1])
		if logs, err = s.handOver(ctx, x, r); err != nil {
			return err
		}
		var to *authenticator
		if next, to, err = s.next(s.period, r.Key, whyRotated); err != nil {
			return verdict{err}
		}
		if err := s.renew(ctx, x, s.auth, to, r.Reseal); err != nil {
			return err
		}
		return next.write(ctx, x, to)
	})
	return next, logs, err
}

// handOver ends each log under this key: its last entry names the next key, and its
// checkpoint is kept.
func (s *Store) handOver(ctx context.Context, x Tx, r store.Rotation) (map[string]grown, error) {
	tenants, err := collect(ctx, x, scanText, tenantsOf)
	if err != nil {
		return nil, err
	}
	logs := map[string]grown{}
	for _, tenant := range tenants {
		at, err := s.sealWhole(ctx, x, tenant, s.trees.of(tenant), r.Sign)
		if err != nil {
			return nil, err
		}
		facts := map[string]any{"old": s.trust.Key.Public, "new": r.Key.Public}
		if err := s.appendOwn(x, s.auth, tenant, approval.EventKeyRotated, facts); err != nil {
			return nil, err
		}
		if logs[tenant], err = s.sealWhole(ctx, x, tenant, at, r.Sign); err != nil {
			return nil, err
		}
		t, err := s.tree(ctx, x, tenant)
		if err != nil {
			return nil, err
		}
		x.Queue(do("INSERT INTO handovers (tenant, size, checkpoint, code) VALUES ($1, $2, $3, $4)",
			s.auth.coded("handovers", tenant, t.size, t.checkpoint)...))
	}

	return logs, nil
}

// sealWhole seals all entries of a tenant within a transaction.
func (s *Store) sealWhole(
	ctx context.Context, x Tx, tenant string, at grown, sign func(ledger.Checkpoint) ([]byte, error),
) (grown, error) {
	for {
		step, err := s.sealSome(ctx, x, tenant, at, sealStep, sign)
		if err = cmp.Or(err, step.bad); err != nil || step.n == 0 {
			return step.at, err
		}
		if err := x.Flush(ctx); err != nil {
			return at, err
		}
		at = step.at
	}
}

// Handovers lists the checkpoints of a tenant's log that two keys signed, oldest first.
func (s *Store) Handovers(ctx context.Context, tenant string) ([][]byte, error) {
	type row struct {
		size       int64
		note, code []byte
	}
	scan := func(r Rows) (x row, err error) { return x, r.Scan(&x.size, &x.note, &x.code) }
	found, err := list(ctx, s, "list handovers", scan,
		"SELECT size, checkpoint, code FROM handovers WHERE tenant = $1 ORDER BY size", tenant)
	if err != nil {
		return nil, err
	}
	return each(found, func(h row) ([]byte, error) {
		what := fmt.Sprintf("handover at %d entries", h.size)
		return h.note, s.genuine(h.code, tenant, what, "handovers", tenant, h.size, h.note)
	})
}
