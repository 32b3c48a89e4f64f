package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/testwait"
	stores "github.com/assent-dev/assent/store"
)

// SealFirst runs the suite of updates that are answered only after they
// are sealed.
func SealFirst(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"with what waits":                     sealedWithWaiting,
		"nothing is written if it fails":      notSealed,
		"the watermark can't be written":      notNoted,
		"put back after a kill":               putBackAfterKill,
		"put back before another replica":     putBackBeforeReplica,
		"put back behind a shared file":       putBackBehindSharedFile,
		"an entry that the database drops":    droppedEntry,
		"replicas at once":                    sealedByReplicas,
		"a replica that hangs":                sealedBesideOneThatHangs,
		"noted when a store is verified":      notedByVerify,
		"more waits than a group can seal":    tooMuchWaits,
		"without a signer it is sealed later": sealedLater,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

// signing returns a trust that can sign, with a watermark in a folder.
func signing(t *testing.T, dir string) stores.Trust {
	t.Helper()
	trust, _ := remembering(t, dir)
	trust.Key.Sign = signature
	return trust
}

// spend consumes request 1, which must be approved, and returns after that is sealed.
func spend(t *testing.T, s full) error {
	t.Helper()
	return consume(t.Context(), s, func(tx approval.Tx) {
		tx.SealFirst()
		tx.Append(record(t, tenant, approval.EventConsumed, request(1).ID, epoch()))
	})
}

// approved opens and approves request 1, and copies all rows at that moment.
func approved(t *testing.T, p Place, s full) {
	t.Helper()
	opened(t, s, 1)
	step(t, s, approval.EventApproved, func(r *approval.Request) { r.State = approval.Approved })
	keepRows(t, p, s)
}

func keepRows(t *testing.T, p Place, s full) {
	t.Helper()
	sealAll(t, s, nil)
	for _, table := range []string{"requests", "entries", "trees", "hashes"} {
		p.Exec("CREATE TABLE saved_" + table + " AS SELECT * FROM " + table)
	}
}

// putAllBack does what an attacker would do to remove everything that happened since.
func putAllBack(p Place) {
	putBackRequest(p)
	p.Exec("DELETE FROM entries WHERE idx IS NULL OR idx >= (SELECT size FROM saved_trees)")
	p.Exec("DELETE FROM hashes WHERE pos NOT IN (SELECT pos FROM saved_hashes)")
	p.Exec("DELETE FROM trees; INSERT INTO trees SELECT * FROM saved_trees")
}

// putBackRequest restores the request's row and leaves what is sealed.
func putBackRequest(p Place) {
	p.Exec("DELETE FROM entries WHERE idx IS NULL")
	p.Exec("DELETE FROM requests; INSERT INTO requests SELECT * FROM saved_requests")
}

func sealedWithWaiting(t *testing.T, p Place) {
	s := p.one(t, signing(t, t.TempDir()))
	opened(t, s, 1)
	step(t, s, approval.EventApproved, func(r *approval.Request) { r.State = approval.Approved })
	appendEntries(t, s, tenant, 3)
	appendEntries(t, s, "other", 1)
	ok(t, spend(t, s))
	all := verify(t, s, tenant)
	entries := must(s.History(t.Context(), tenant, request(1).ID, 0, 10))(t)
	equal(t, entries[len(entries)-1].Index, all-1) // after all that was committed before
	equal(t, sealAll(t, s, nil), 1)                // the other tenant's
	equal(t, verify(t, s, tenant), all)
	equal(t, s.Integrity().Alarms, 0)
}

// refusing makes every UPDATE of an entry fail, or every INSERT into a
// table.
func refusing(p Place, event, table string) (mend func()) {
	if p.Engine == "postgres" {
		p.Exec(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS ` +
			`'BEGIN RAISE EXCEPTION ''no room''; END'`)
		p.Exec("CREATE TRIGGER refuse BEFORE " + event + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION refuse()")
		return func() { p.Exec("DROP TRIGGER refuse ON " + table) }
	}
	p.Exec("CREATE TRIGGER refuse BEFORE " + event + " ON " + table + " BEGIN SELECT RAISE(ABORT, 'no room'); END")
	return func() { p.Exec("DROP TRIGGER refuse") }
}

// notSealed checks that nothing is spent, other tenants are not affected, and the same
// action succeeds afterwards.
func notSealed(t *testing.T, p Place) {
	s := p.one(t, signing(t, t.TempDir()))
	approved(t, p, s)
	size := verify(t, s, tenant)
	for _, what := range [][2]string{{"UPDATE", "entries"}, {"INSERT", "hashes"}, {"INSERT", "entries"}} {
		if what[0] == "UPDATE" {
			appendEntries(t, s, tenant, 1) // which waits to be sealed
		}
		mend := refusing(p, what[0], what[1])
		err := spend(t, s)
		refused(t, err, stores.ErrUnavailable)
		refused(t, err, stores.ErrNotSealed)
		equal(t, found(t, s, request(1).ID).State, approval.Approved)
		if what[0] == "UPDATE" {
			ok(t, s.Update(t.Context(), "other", func(tx approval.Tx) error {
				tx.SealFirst()
				tx.Append(record(t, "other", approval.EventCancelled, "x", epoch()))
				return nil
			}))
			equal(t, verify(t, s, "other"), 1)
		}
		mend()
	}
	equal(t, verify(t, s, tenant), size)
	ok(t, spend(t, s))
	equal(t, verify(t, s, tenant), size+2)
	equal(t, s.Integrity().Alarms, 0)
}

// notNoted checks the same if the watermark was moved away.
func notNoted(t *testing.T, p Place) {
	dir := filepath.Join(t.TempDir(), "marks")
	ok(t, os.Mkdir(dir, 0o700))
	s := p.one(t, signing(t, dir))
	approved(t, p, s)
	ok(t, os.Rename(dir, dir+".away"))
	err := spend(t, s)
	refused(t, err, stores.ErrUnavailable)
	refused(t, err, stores.ErrNotSealed)
	equal(t, found(t, s, request(1).ID).State, approval.Approved)
	ok(t, os.Rename(dir+".away", dir))
	ok(t, spend(t, s))
}

// putBackAfterKill checks that a process that ends without closing anything has written to
// the watermark what it answered.
func putBackAfterKill(t *testing.T, p Place) {
	dir := t.TempDir()
	a := p.one(t, signing(t, dir))
	approved(t, p, a)
	ok(t, spend(t, a))
	putBackRequest(p)
	b := p.one(t, signing(t, dir))
	ok(t, b.Verify(t.Context()))
	tampered(t, spend(t, b))
	putAllBack(p)
	tampered(t, p.one(t, signing(t, dir)).Verify(t.Context()))
}

// putBackBeforeReplica checks another replica, with its own watermark, that could learn of
// the action only from the database.
func putBackBeforeReplica(t *testing.T, p Place) {
	a, b := p.one(t, signing(t, t.TempDir())), p.one(t, signing(t, t.TempDir()))
	approved(t, p, a)
	ok(t, second(b.Seal(t.Context(), 10, signature)))
	ok(t, spend(t, a))
	putBackRequest(p)
	tampered(t, spend(t, b))
	// After it has followed the log, removing sealed entries does not help.
	ok(t, second(b.Seal(t.Context(), 10, signature)))
	putAllBack(p)
	tampered(t, spend(t, b))
}

// putBackBehindSharedFile checks that replicas with a shared watermark know of each other's
// actions at once.
func putBackBehindSharedFile(t *testing.T, p Place) {
	dir := t.TempDir()
	a, b := p.one(t, signing(t, dir)), p.one(t, signing(t, dir))
	approved(t, p, a)
	ok(t, second(b.Seal(t.Context(), 10, signature)))
	ok(t, spend(t, a))
	putAllBack(p)
	tampered(t, spend(t, b))
}

// droppedEntry covers a database that reports an entry as written but drops it. The next
// process that reads the log finds the gap.
func droppedEntry(t *testing.T, p Place) {
	dir := t.TempDir()
	a, b := p.one(t, signing(t, dir)), p.one(t, signing(t, t.TempDir()))
	approved(t, p, a)
	ok(t, second(b.Seal(t.Context(), 10, signature)))
	if p.Engine == "postgres" {
		p.Exec("CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
		p.Exec("CREATE TRIGGER skip BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION skip()")
	} else {
		p.Exec("CREATE TRIGGER skip BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
	}
	ok(t, spend(t, a))
	putBackRequest(p)
	tampered(t, spend(t, a))
	tampered(t, spend(t, b))
	tampered(t, p.one(t, signing(t, dir)).Verify(t.Context()))
}

// sealedByReplicas runs many actions on two replicas, while both also seal in the
// background.
func sealedByReplicas(t *testing.T, p Place) {
	replicas := []full{p.one(t, signing(t, t.TempDir())), p.one(t, signing(t, t.TempDir()))}
	stop := make(chan struct{})
	var background sync.WaitGroup
	for _, s := range replicas {
		background.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					ok(t, second(s.Seal(t.Context(), 50, signature)))
				}
			}
		})
	}
	const writers, each = 12, 10
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			s := replicas[n%2]
			for i := range each {
				ok(t, s.Update(t.Context(), tenant, func(tx approval.Tx) error {
					if i%2 == 0 {
						tx.SealFirst()
					}
					tx.Append(record(t, tenant, approval.EventCancelled, "x", epoch()))
					return nil
				}))
			}
		})
	}
	all.Wait()
	testwait.Until(t, "everything to be sealed", func() bool {
		size, _, err := replicas[0].Checkpoint(t.Context(), tenant)
		return err == nil && size == writers*each
	})
	close(stop)
	background.Wait()
	for _, s := range replicas {
		equal(t, verify(t, s, tenant), writers*each)
		equal(t, s.Integrity().Alarms, 0)
		equal(t, len(s.Integrity().Stopped), 0)
	}
}

// notedByVerify checks that what a killed process committed but did not write to the
// watermark is written before the next process answers.
func notedByVerify(t *testing.T, p Place) {
	dir := t.TempDir()
	a := p.one(t, signing(t, t.TempDir())) // whose watermark is lost
	approved(t, p, a)
	ok(t, spend(t, a))
	ok(t, p.one(t, signing(t, dir)).Verify(t.Context()))
	putAllBack(p)
	tampered(t, p.one(t, signing(t, dir)).Verify(t.Context()))
}

func tooMuchWaits(t *testing.T, p Place) {
	s := p.one(t, signing(t, t.TempDir()))
	approved(t, p, s)
	appendEntries(t, s, tenant, 4097)
	refused(t, spend(t, s), stores.ErrNotSealed)
	sealAll(t, s, nil)
	ok(t, spend(t, s))
}

func sealedLater(t *testing.T, p Place) {
	s := p.one(t, Trust())
	approved(t, p, s)
	size := verify(t, s, tenant)
	ok(t, spend(t, s))
	equal(t, verify(t, s, tenant), size)
	equal(t, sealAll(t, s, nil), 1)
}

// sealedBesideOneThatHangs checks that a replica that hangs while it seals loses its lock.
// Its transaction is not committed, and can be repeated.
func sealedBesideOneThatHangs(t *testing.T, p Place) {
	if p.Engine == "sqlite" {
		return // has one process that writes
	}
	dir := t.TempDir()
	trust := signing(t, dir)
	stuck, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	sign := trust.Key.Sign
	trust.Key.Sign = func(c ledger.Checkpoint) ([]byte, error) {
		once.Do(func() {
			close(stuck)
			<-free
		})
		return sign(c)
	}
	hanging := must(p.Open(trust))(t)
	other := p.one(t, signing(t, t.TempDir()))
	insert(t, other, request(1), request(2))
	spent := func(s stores.Store, n int) error {
		return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			r, err := tx.Request(request(n).ID)
			if err == nil {
				finish(r, approval.Denied, epoch())
				tx.Save(r)
				tx.SealFirst()
				tx.Append(record(t, tenant, approval.EventDenied, r.ID, epoch()))
			}
			return err
		})
	}
	late := make(chan error, 1)
	go func() { late <- spent(hanging, 1) }()
	<-stuck
	ok(t, spent(other, 2))
	close(free)
	refused(t, <-late, stores.ErrNotSealed) // it can't report whether it was committed
	equal(t, found(t, other, request(1).ID).State, approval.Pending)
	ok(t, spent(hanging, 1))
	verify(t, other, tenant)
	equal(t, page(t, other, approval.Filter{States: []approval.State{approval.Denied}}).Total, 2)
	ok(t, hanging.Close())
}
