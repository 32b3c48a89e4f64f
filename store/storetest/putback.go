package storetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	stores "github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/watermark"
)

// PutBack runs the suite of rows that are replaced by their earlier versions, with the
// codes of those.
func PutBack(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"a consumed request":                     consumedAgain,
		"a consumed request, elsewhere":          consumedElsewhere,
		"a consumed request without its entries": consumedWithoutEntries,
		"a grant":                                grantAgain,
		"freezes":                                freezesAgain,
		"freezes without their entries":          freezesWithoutEntries,
		"a revoked token":                        tokenAgain,
		"a revoked token without its entry":      tokenWithoutEntry,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

// consumed processes request 1 to its end, and keeps its row from when it was approved.
func consumed(t *testing.T, p Place, s full) {
	t.Helper()
	opened(t, s, 1)
	step(t, s, approval.EventApproved, func(r *approval.Request) { r.State = approval.Approved })
	p.Exec("CREATE TABLE saved AS SELECT * FROM requests")
	step(t, s, approval.EventConsumed, func(r *approval.Request) { finish(r, approval.Consumed, epoch()) })
	sealAll(t, s, nil)
}

// step changes request 1 and records that in the ledger.
func step(t testing.TB, s full, event string, fn func(*approval.Request)) {
	t.Helper()
	update(t, s, func(tx approval.Tx) error {
		r, err := tx.Request(request(1).ID)
		if err != nil {
			return err
		}
		fn(r)
		tx.Save(r)
		tx.Append(record(t, tenant, event, r.ID, epoch()))
		return nil
	})
}

const (
	putRequestBack = "DELETE FROM requests; INSERT INTO requests SELECT * FROM saved"
	dropEntries    = "DELETE FROM entries WHERE version > 1"
)

// consume tries to use the permit like a service.
func consume(ctx context.Context, s full, seal func(approval.Tx)) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error {
		r, err := tx.Request(request(1).ID)
		if err != nil {
			return err
		}
		if r.State != approval.Approved {
			return errNo
		}
		finish(r, approval.Consumed, epoch())
		tx.Save(r)
		seal(tx)
		return nil
	})
}

func ignore(approval.Tx) {}

func consumedAgain(t *testing.T, p Place) {
	s := p.one(t, Trust())
	consumed(t, p, s)
	p.Exec(putRequestBack)
	tampered(t, consume(t.Context(), s, ignore))
	tampered(t, second(s.Request(t.Context(), tenant, request(1).ID)))
}

// consumedElsewhere checks that a replica that knows the request as approved, and not that
// it was consumed, does not run it again.
func consumedElsewhere(t *testing.T, p Place) {
	a, b := p.one(t, Trust()), p.one(t, Trust())
	opened(t, a, 1)
	step(t, a, approval.EventApproved, func(r *approval.Request) { r.State = approval.Approved })
	p.Exec("CREATE TABLE saved AS SELECT * FROM requests")
	ok(t, consume(t.Context(), b, func(tx approval.Tx) {
		tx.Append(record(t, tenant, approval.EventConsumed, request(1).ID, epoch()))
	}))
	p.Exec(putRequestBack)
	tampered(t, consume(t.Context(), a, ignore))
}

// consumedWithoutEntries checks that the process remembers, and that one that starts later
// misses the entries in the ledger.
func consumedWithoutEntries(t *testing.T, p Place) {
	s := p.open(t, Trust())
	consumed(t, p, s)
	p.Exec(putRequestBack)
	p.Exec(dropEntries)
	tampered(t, consume(t.Context(), s, ignore))
	ok(t, s.Close())
	s = p.one(t, Trust())
	tampered(t, s.Verify(t.Context()))
}

func grantAgain(t *testing.T, p Place) {
	ctx := t.Context()
	s := p.one(t, Trust())
	use := func() error {
		return s.Update(ctx, tenant, func(tx approval.Tx) error {
			all, err := tx.Live("acme.trader", "tool execute_trade", epoch())
			if err != nil {
				return err
			}
			all[0].Uses++
			tx.SaveGrant(all[0])
			tx.Append(record(t, tenant, approval.EventGrantUsed, all[0].ID, epoch()))
			return nil
		})
	}
	write(t, s, func(tx approval.Tx) {
		tx.SaveGrant(grant(1))
	})
	p.Exec("CREATE TABLE saved AS SELECT * FROM grants")
	ok(t, use())
	p.Exec("DELETE FROM grants; INSERT INTO grants SELECT * FROM saved")
	tampered(t, use())
	tampered(t, second(s.Grants(ctx, tenant, true, epoch())))
	p.Exec("DELETE FROM entries")
	tampered(t, use()) // this process remembers
	tampered(t, second(s.Grant(ctx, tenant, grant(1).ID)))
}

func freeze(t testing.TB, s full, agent string) {
	t.Helper()
	write(t, s, func(tx approval.Tx) {
		tx.SaveFreeze(approval.Freeze{Agent: agent, By: "ada", At: epoch()})
		tx.Append(record(t, tenant, approval.EventFrozen, "", epoch()))
	})
}

func freezesAgain(t *testing.T, p Place) {
	ctx := t.Context()
	s := p.open(t, Trust())
	freeze(t, s, "a")
	p.Exec("CREATE TABLE saved AS SELECT * FROM frozen")
	freeze(t, s, "")
	p.Exec("DELETE FROM frozen; INSERT INTO frozen SELECT * FROM saved")
	tampered(t, second(s.Freezes(ctx, tenant)))
	ok(t, s.Close())
	s = p.one(t, Trust())
	tampered(t, lockFreezes(ctx, s))
	p.Exec("DELETE FROM frozen")
	tampered(t, lockFreezes(ctx, s))
}

// remembering returns a trust with a watermark in a folder.
func remembering(t testing.TB, dir string) (stores.Trust, *watermark.Watermark) {
	t.Helper()
	trust := Trust()
	w := must(watermark.Open(filepath.Join(dir, "key.watermark"), "here", nil))(t)
	trust.Watermark = w
	return trust, w
}

// freezesWithoutEntries checks that the watermark has the freezes.
func freezesWithoutEntries(t *testing.T, p Place) {
	dir := t.TempDir()
	trust, w := remembering(t, dir)
	s := p.open(t, trust)
	freeze(t, s, "")
	ok(t, s.Close())
	ok(t, w.Close())
	p.Exec("DELETE FROM frozen")
	p.Exec("DELETE FROM entries")
	trust, _ = remembering(t, dir)
	s = p.one(t, trust)
	tampered(t, second(s.Freezes(t.Context(), tenant)))
	tampered(t, lockFreezes(t.Context(), s))
}

// revokedToken makes a token, keeps its row, and revokes it.
func revokedToken(t *testing.T, p Place, s full) {
	t.Helper()
	ok(t, s.PutToken(t.Context(), stores.Token{
		ID:      "t1",
		Tenant:  tenant,
		Name:    "bot",
		Hash:    "h1",
		Scopes:  []string{"read"},
		Created: epoch(),
		Expires: epoch().Add(time.Hour),
	}))
	p.Exec("CREATE TABLE saved AS SELECT * FROM tokens")
	ok(t, s.RevokeToken(t.Context(), tenant, "t1", epoch()))
	write(t, s, func(tx approval.Tx) {
		tx.Append(record(t, tenant, approval.EventTokenRevoked, "t1", epoch()))
	})
	p.Exec("DELETE FROM tokens; INSERT INTO tokens SELECT * FROM saved")
}

func tokenAgain(t *testing.T, p Place) {
	s := p.one(t, Trust())
	revokedToken(t, p, s)
	tampered(t, readToken(t.Context(), s))
	tampered(t, listTokens(t.Context(), s))
}

// tokenWithoutEntry checks that the watermark's list of revoked tokens is used, even in a
// replica that learned of the revocation only through the ledger.
func tokenWithoutEntry(t *testing.T, p Place) {
	ctx := t.Context()
	dir, elsewhere := t.TempDir(), t.TempDir()
	mine, _ := remembering(t, dir)
	theirs, _ := remembering(t, elsewhere)
	a := p.one(t, mine)
	b := p.one(t, theirs)
	ok(t, second(b.Seal(ctx, 10, signature)))
	appendEntries(t, a, tenant, 1)
	sealAll(t, a, nil)
	ok(t, second(b.Seal(ctx, 10, signature)))
	revokedToken(t, p, a)
	sealAll(t, a, nil)
	ok(t, second(b.Seal(ctx, 10, signature)))
	p.Exec("DELETE FROM entries")
	for _, s := range []full{a, b} {
		equal(t, must(s.TokenByHash(ctx, "h1"))(t).Revoked == nil, false)
		missing(t, second(s.LiveToken(ctx, tenant, "bot", epoch())))
		equal(t, s.Integrity().Alarms > 0, true)
	}
	_, w := remembering(t, elsewhere)
	_, known := w.Revoked(tenant, "t1")
	equal(t, known, true)
}
