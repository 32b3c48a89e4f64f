package storetest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	stores "github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/watermark"
)

// Sealing runs the suite of logs that were changed by an attacker who has the database but
// not the key.
func Sealing(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"a forged entry":                           forgedEntry,
		"a cut tail":                               cutTail,
		"a cut tail, after a restart":              cutTailRestart,
		"another history":                          anotherHistory,
		"a log taken away":                         logTakenAway,
		"an entry taken away before it was sealed": lostEntry,
		"a replica that follows":                   follower,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

// forgedEntry checks that the entries before a forged one are sealed and none after it,
// that its tenant stops, and that other tenants are not affected. Without the forged entry,
// sealing continues.
func forgedEntry(t *testing.T, p Place) {
	ctx := t.Context()
	s := p.one(t, Trust())
	appendEntries(t, s, tenant, 3)
	p.Exec(
		`INSERT INTO entries (tenant, type, subject, at, leaf, version, code) SELECT tenant, 'request_approved', ` +
			`subject, at, leaf, version, code FROM entries WHERE idx IS NULL ORDER BY seq LIMIT 1`,
	)
	appendEntries(t, s, tenant, 4)
	appendEntries(t, s, "other", 2)
	n, err := s.Seal(ctx, 100, signature)
	tampered(t, err)
	equal(t, n, 5)
	equal(t, verify(t, s, tenant), 3)
	equal(t, verify(t, s, "other"), 2)
	tampered(t, s.Integrity().Stopped[tenant])
	tampered(t, inserting(s, 1))
	tampered(t, second(s.Freezes(ctx, tenant)))
	appendEntries(t, s, "other", 2)
	tampered(t, second(s.Seal(ctx, 100, signature)))
	equal(t, verify(t, s, tenant), 3)
	equal(t, verify(t, s, "other"), 4)
	p.Exec(`DELETE FROM entries WHERE type = 'request_approved'`)
	equal(t, sealAll(t, s, nil), 4)
	equal(t, verify(t, s, tenant), 7)
	equal(t, len(s.Integrity().Stopped), 0)
	opened(t, s, 1)
}

const (
	saveLog = "CREATE TABLE saved_trees AS SELECT * FROM trees"
	cutLog  = "DELETE FROM entries WHERE idx >= 3; DELETE FROM hashes WHERE pos >= 4; DELETE FROM trees; INSERT " +
		"INTO trees SELECT * FROM saved_trees"
)

// cutTail cuts off the end of the log and restores its older checkpoint, which the service
// signed itself.
func cutTail(t *testing.T, p Place) {
	s := p.one(t, Trust())
	cutLogOf(t, p, s)
	err := sealing(t.Context(), s)
	tampered(t, err)
	if !strings.Contains(err.Error(), "it has 3 entries, and had 7") ||
		!strings.Contains(err.Error(), "--in-place") {
		t.Fatal(err)
	}
	tampered(t, inserting(s, 1))
}

func cutLogOf(t *testing.T, p Place, s full) {
	t.Helper()
	appendEntries(t, s, tenant, 3)
	sealAll(t, s, nil)
	p.Exec(saveLog)
	appendEntries(t, s, tenant, 4)
	sealAll(t, s, nil)
	p.Exec(cutLog)
}

// cutTailRestart checks that a process that starts after the cut detects it by the
// watermark.
func cutTailRestart(t *testing.T, p Place) {
	dir := t.TempDir()
	trust, w := remembering(t, dir)
	s := p.open(t, trust)
	cutLogOf(t, p, s)
	ok(t, s.Close())
	ok(t, w.Close())
	trust, _ = remembering(t, dir)
	s = p.one(t, trust)
	tampered(t, s.Verify(t.Context()))
	appendEntries(t, s, tenant, 9) // longer than before
	tampered(t, sealing(t.Context(), s))
}

// anotherHistory checks that a process without a watermark signs the log from the cut on,
// and that one that has seen more refuses the resulting log, although it is longer.
func anotherHistory(t *testing.T, p Place) {
	open := func() (stores.Store, error) { return p.Open(Trust()) }
	dir := t.TempDir()
	trust, w := remembering(t, dir)
	s := p.open(t, trust)
	cutLogOf(t, p, s)
	ok(t, s.Close())
	ok(t, w.Close())
	fresh := replica(t, open)
	ok(t, fresh.Verify(t.Context()))
	appendEntries(t, fresh, tenant, 9)
	sealAll(t, fresh, nil)
	trust, _ = remembering(t, dir)
	s = p.one(t, trust)
	err := s.Verify(t.Context())
	tampered(t, err)
	if !strings.Contains(err.Error(), "does not begin with the 7 entries") {
		t.Fatal(err)
	}
}

func logTakenAway(t *testing.T, p Place) {
	dir := t.TempDir()
	trust, w := remembering(t, dir)
	s := p.open(t, trust)
	appendEntries(t, s, tenant, 3)
	sealAll(t, s, nil)
	p.Exec("DELETE FROM entries; DELETE FROM hashes; DELETE FROM trees")
	tampered(t, sealing(t.Context(), s))
	ok(t, s.Close())
	ok(t, w.Close())
	trust, _ = remembering(t, dir)
	s = p.one(t, trust)
	tampered(t, s.Verify(t.Context()))
}

// lostEntry removes an entry after its commit and before its sealing. The next rounds of
// sealing must find that it is missing.
func lostEntry(t *testing.T, p Place) {
	s := p.one(t, Trust())
	appendEntries(t, s, tenant, 2)
	sealAll(t, s, nil)
	appendEntries(t, s, tenant, 2)
	p.Exec("DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)")
	ok(t, sealing(t.Context(), s)) // it may be on its way
	err := sealing(t.Context(), s)
	tampered(t, err)
	if !strings.Contains(err.Error(), "before they were sealed") {
		t.Fatal(err)
	}
}

// follower checks that a replica that seals nothing itself detects a change of the other's
// log.
func follower(t *testing.T, p Place) {
	ctx := t.Context()
	a, b := p.one(t, Trust()), p.one(t, Trust())
	appendEntries(t, a, tenant, 3)
	sealAll(t, a, nil)
	p.Exec(saveLog)
	ok(t, sealing(ctx, b))
	appendEntries(t, a, tenant, 4)
	appendEntries(t, b, tenant, 1)
	sealAll(t, a, nil)
	ok(t, sealing(ctx, b))
	ok(t, sealing(ctx, b))
	p.Exec(cutLog)
	tampered(t, sealing(ctx, b))
	tampered(t, sealing(ctx, a))
}

// Restoring runs the suite of restores.
func Restoring(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, func(t *testing.T) Place){
		"from a backup":   restored,
		"a forged backup": restoredForged,
		"a watermark that does not know the store": restoredUnremembered,
		"in place":       restoredInPlace,
		"of another key": restoredOther,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place)
		})
	}
}

// restored checks that a service can't open the store before the restore is finished, and
// that no earlier row is valid in it.
func restored(t *testing.T, place func(t *testing.T) Place) {
	ctx := t.Context()
	p := place(t)
	q := place(t)
	dir := t.TempDir()
	trust, w := remembering(t, dir)
	from := p.open(t, trust)
	everyKind(t, from)
	text := Backup(t, from)
	appendEntries(t, from, tenant, 5)
	freeze(t, from, "later")
	sealAll(t, from, nil)
	ok(t, from.Close())
	ok(t, w.Close())
	trust, w = remembering(t, dir)
	to := q.open(t, trust)
	ok(t, to.Restore(ctx, strings.NewReader(text)))
	before := to.Integrity().Before[tenant]
	equal(t, before.Size, 10)
	equal(t, len(before.Frozen), 2)
	ok(t, to.Close())
	_, err := q.Open(trust)
	refused(t, err, stores.ErrUnfinished)
	unfinished := trust
	unfinished.Unfinished = true
	to = q.open(t, unfinished)
	ok(t, readRequest(ctx, to))
	ok(t, to.FinishRestore(ctx))
	ok(t, to.Close())
	to = q.one(t, trust)
	ok(t, to.Verify(ctx))
	ok(t, sealing(ctx, to))
	ok(t, w.Close())
	for _, read := range readers() {
		ok(t, read(ctx, to))
	}

	q.Exec("UPDATE requests SET code = line_code")
	tampered(t, readRequest(ctx, to))
}

// restoredUnremembered checks that a restore is refused if the watermark has no marks of
// the store, or only from when its ledger was shorter, because it can't show what the
// restore loses. The store stays empty then.
func restoredUnremembered(t *testing.T, place func(t *testing.T) Place) {
	p, q := place(t), place(t)
	old, w := remembering(t, t.TempDir())
	ok(t, p.open(t, old).Close()) // binds the store
	s := p.open(t, Trust())
	everyKind(t, s)
	sealAll(t, s, nil)
	text := Backup(t, s)
	ok(t, s.Close())
	other, v := remembering(t, t.TempDir())
	for want, trust := range map[string]stores.Trust{tenant: old, "": other} {
		to := q.open(t, trust)
		unknown, found := errors.AsType[*stores.WatermarkError](to.Restore(t.Context(), strings.NewReader(text)))
		if !found || unknown.Tenant != want {
			t.Errorf("restored, with the error %v, want one of tenant %q", unknown, want)
		}
		equal(t, must(to.Identity(t.Context()))(t).Empty, true)
		ok(t, to.Close())
	}
	s = p.open(t, other)
	if _, found := errors.AsType[*stores.WatermarkError](s.RestoreInPlace(t.Context())); !found {
		t.Error("restored in place without the watermark that knows the store")
	}
	ok(t, s.Close())
	ok(t, w.Close())
	ok(t, v.Close())
}

// restoredForged checks that a changed backup is refused even if its checksum was changed
// too.
func restoredForged(t *testing.T, place func(t *testing.T) Place) {
	p, q := place(t), place(t)
	s := p.open(t, Trust())
	everyKind(t, s)
	p.Exec(`UPDATE tokens SET person = 'eve'`)
	text := Backup(t, s)
	ok(t, s.Close())
	to := q.open(t, Trust())
	tampered(t, to.Restore(t.Context(), strings.NewReader(text)))
	equal(t, must(to.Identity(t.Context()))(t).Empty, true)
	opened(t, to, 1)
	ok(t, to.Close())
}

// restoredInPlace checks that a restored snapshot is detected, and can be used after
// RestoreInPlace.
func restoredInPlace(t *testing.T, place func(t *testing.T) Place) {
	ctx := t.Context()
	p, dir := place(t), t.TempDir()
	trust, w := remembering(t, dir)
	s := p.open(t, trust)
	cutLogOf(t, p, s)
	tampered(t, sealing(ctx, s))
	id := must(s.Identity(ctx))(t).ID
	ok(t, s.RestoreInPlace(ctx))
	equal(t, s.Integrity().Before[tenant].Size, 7)
	equal(t, must(s.Identity(ctx))(t).ID == id, false)
	refused(t, second(p.Open(trust)), stores.ErrUnfinished)
	ok(t, s.FinishRestore(ctx))
	appendEntries(t, s, tenant, 1)
	sealAll(t, s, nil)
	equal(t, verify(t, s, tenant), 4)
	ok(t, s.Close())
	ok(t, w.Close())
	trust.Watermark = must(watermark.Open(filepath.Join(dir, "key.watermark"), "here", nil))(t)
	s = p.one(t, trust)
	ok(t, s.Verify(ctx))
	ok(t, sealing(ctx, s))
}

func restoredOther(t *testing.T, place func(t *testing.T) Place) {
	p, q := place(t), place(t)
	s := p.open(t, Trust())
	everyKind(t, s)
	text := Backup(t, s)
	ok(t, s.Close())
	to := q.open(t, stores.Trust{Key: keyOf("other.example")})
	refused(t, to.Restore(t.Context(), strings.NewReader(text)), stores.ErrKey)
	ok(t, to.Close())
	bare := must(place(t).Open(stores.Trust{}))(t)
	refused(t, bare.Restore(t.Context(), strings.NewReader(text)), stores.ErrKey)
	ok(t, bare.Close())
}
