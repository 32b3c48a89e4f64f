package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
)

var errNo = errors.New("no")

// updates checks that each update sees the version that the one before it has written, and
// that a request may be saved twice in one transaction.
func updates(t *testing.T, db Database) {
	s := one(t, db)
	insert(t, s, request(1))
	for n := range 5 {
		change(t, s, "apr_000001", func(r *approval.Request) {
			equal(t, r.Version, int64(n+1))
			bump(r)
		})
	}

	update(t, s, func(tx approval.Tx) error { // twice in one transaction
		r, err := tx.Request("apr_000001")
		ok(t, err)
		tx.Save(r)
		bump(r)
		tx.Save(r)
		equal(t, r.Version, 8)
		return nil
	})
	r := found(t, s, "apr_000001")
	equal(t, r.Version, 8)
	equal(t, bumps(r), 6)
}

// stale checks that a request that was changed after it was read outside is refused, after
// several attempts of fn.
func stale(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	insert(t, s, request(1))
	old := found(t, s, "apr_000001")
	change(t, s, old.ID, func(r *approval.Request) { bump(r) })
	runs := 0
	err := s.Update(ctx, tenant, func(tx approval.Tx) error {
		runs++
		mine := *old
		tx.Save(&mine)
		tx.Append(record(t, tenant, "vote_counted", old.ID, epoch()))
		return nil
	})
	refused(t, err, approval.ErrVersion)
	if runs < 2 {
		t.Fatal("the transaction did not run again")
	}
	equal(t, entries(t, s, tenant), 0)
	equal(t, found(t, s, old.ID).Version, 2)
}

// versionRace checks that every Save gets its own version, and none is lost.
func versionRace(t *testing.T, db Database) {
	open := db(t)
	replicas := []*atomic.Int64{new(atomic.Int64), new(atomic.Int64)}
	a, b := replica(t, open), replica(t, open)
	insert(t, a, request(1))
	const n = 64
	won := sync.Map{}
	everybody(t, crowd(n, func(i int) error {
		s := []full{a, b}[i%2]
		replicas[i%2].Add(1)
		var version int64
		err := s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			r, err := tx.Request("apr_000001")
			if err != nil {
				return err
			}
			bump(r)
			tx.Save(r)
			tx.Append(record(t, tenant, "vote_counted", r.ID, epoch()))
			version = r.Version
			return nil
		})
		if _, twice := won.LoadOrStore(version, i); err == nil && twice {
			return fmt.Errorf("version %d was won twice", version)
		}
		return err
	}))
	r := found(t, a, "apr_000001")
	equal(t, r.Version, n+1)
	equal(t, bumps(r), n)
	equal(t, entries(t, a, tenant), n)
}

// failedUpdates checks that nothing from a failing fn appears, that everything from
// concurrent updates does, and that entries appear together with the other writes.
func failedUpdates(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	const n = 90
	errs := crowd(n, func(i int) error {
		return s.Update(ctx, tenant, func(tx approval.Tx) error {
			r := request(i)
			if i%3 == 2 { // fails when it is written, not before
				r.ID = "apr_000000"
			}
			tx.Insert(r)
			tx.Append(
				record(t, tenant, "request_opened", r.ID, epoch()),
				approval.Delivery{Target: "w", Payload: number(i)},
			)
			tx.AddVote(approval.VoteFact{Request: r.ID, At: epoch()})
			tx.SaveGrant(grant(i))
			tx.Remember("key"+number(i), approval.Memory{Request: r.ID})
			if i%3 == 1 {
				return errNo
			}
			return nil
		})
	})
	for i, err := range errs {
		switch {
		case i%3 == 1 && !errors.Is(err, errNo),
			i%3 == 2 && err == nil && errs[0] == nil,
			i%3 == 0 && i > 0 && err != nil:
			t.Fatalf("update %d: %v", i, err)
		}
	}

	equal(t, entries(t, s, tenant), n/3)
	equal(t, page(t, s, approval.Filter{}).Total, n/3)
	equal(t, len(must(s.Votes(ctx, tenant, time.Time{}, n))(t)), n/3)
	equal(t, len(must(s.Grants(ctx, tenant, true, epoch()))(t)), n/3)
	equal(t, len(jobs(t, s, "", n)), n/3)
}

// panics checks that a panic in fn reaches its caller and affects no other update.
func panics(t *testing.T, db Database) {
	s := one(t, db)
	var seen atomic.Int64
	everybody(t, crowd(40, func(i int) (err error) {
		defer func() {
			if recover() != nil {
				seen.Add(1)
			}
		}()
		return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			tx.Insert(request(i))
			if i%4 == 0 {
				panic("at the disco")
			}
			return nil
		})
	}))
	equal(t, seen.Load(), 10)
	equal(t, page(t, s, approval.Filter{}).Total, 30)
}

// exits checks that a goroutine that ends within fn, like a failing test, affects no other
// update.
func exits(t *testing.T, db Database) {
	s := one(t, db)
	everybody(t, crowd(20, func(i int) error {
		return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			tx.Insert(request(i))
			if i%4 == 0 {
				runtime.Goexit()
			}
			return nil
		})
	}))
	equal(t, page(t, s, approval.Filter{}).Total, 15)
}

func cancelled(t *testing.T, db Database) {
	s := one(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refused(t, s.Update(ctx, tenant, func(tx approval.Tx) error {
		tx.Insert(request(1))
		return nil
	}), context.Canceled)
	refused(t, second(s.Requests(ctx, tenant, approval.Filter{})), context.Canceled)
	equal(t, page(t, s, approval.Filter{}).Total, 0)

	// Cancelling within fn does not make the answer wrong.
	ctx, cancel = context.WithCancel(t.Context())
	want := 1
	if err := s.Update(ctx, tenant, func(tx approval.Tx) error {
		tx.Insert(request(2))
		cancel()
		return nil
	}); err != nil {
		refused(t, err, context.Canceled)
		want = 0
	}

	equal(t, page(t, s, approval.Filter{}).Total, want)
}

// twoRequests checks that transactions that lock the same two requests in different orders
// all succeed.
func twoRequests(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	insert(t, a, request(1), request(2))
	const n = 48
	everybody(t, crowd(n, func(i int) error {
		s := a
		first := "apr_000001"
		second := "apr_000002"
		if i%2 == 1 {
			s = b
		}
		if i%4 > 1 {
			first, second = second, first
		}
		return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			x, err := tx.Request(first)
			if err != nil {
				return err
			}
			y, err := tx.Request(second)
			if err != nil {
				return err
			}
			bump(x)
			bump(y)
			tx.Save(x)
			tx.Save(y)
			return nil
		})
	}))
	for _, id := range []string{"apr_000001", "apr_000002"} {
		equal(t, bumps(found(t, a, id)), n)
	}
}

// openCard does what opening a call does: it looks for the request, and makes one if there
// is none.
func openCard(s approval.Store, n int, binding string) error {
	return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
		r, err := tx.Latest(binding)
		if err != nil {
			return err
		}
		if r != nil {
			bump(r)
			tx.Save(r)
			return nil
		}
		r = request(n)
		r.Revisions[0].Binding = binding
		tx.Insert(r)
		return nil
	})
}

func oneCard(t *testing.T, db Database) {
	s := one(t, db)
	cardRace(t, s, s)
}

func oneCardReplicas(t *testing.T, db Database) {
	open := db(t)
	cardRace(t, replica(t, open), replica(t, open))
}

// cardRace checks that identical calls that are opened at once become one request for each
// binding.
func cardRace(t *testing.T, a, b full) {
	const n, cards = 60, 3
	everybody(t, crowd(n, func(i int) error {
		if i%2 == 0 {
			return openCard(a, i, "sha256:"+number(i%cards))
		}
		return openCard(b, i, "sha256:"+number(i%cards))
	}))
	p := page(t, a, approval.Filter{})
	equal(t, p.Total, cards)
	for _, id := range ids(p) {
		equal(t, bumps(found(t, b, id)), n/cards-1)
	}
	// A new request may follow after the old one has ended.
	change(t, a, ids(p)[0], func(r *approval.Request) { finish(r, approval.Denied, epoch()) })
	r := request(99)
	r.Revisions[0].Binding = found(t, a, ids(p)[0]).Binding()
	insert(t, b, r)
}

// tenants checks that tenants don't see each other's data.
func tenants(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	equal(t, len(must(s.Tenants(ctx))(t)), 0)
	for _, name := range []string{"b", "a", "c"} {
		ok(t, s.Update(ctx, name, func(tx approval.Tx) error {
			if r, err := tx.Latest("sha256:apr_000001"); r != nil || err != nil {
				return fmt.Errorf("found %v, %w", r, err)
			}
			tx.Insert(request(1))
			tx.SaveGrant(grant(1))
			tx.SaveFreeze(approval.Freeze{At: epoch()})
			tx.Append(record(t, name, "frozen", "", epoch()))
			return nil
		}))
	}

	equal(t, fmt.Sprint(must(s.Tenants(ctx))(t)), "[a b c]")
	equal(t, must(s.Requests(ctx, "a", approval.Filter{}))(t).Total, 1)
	missing(t, second(s.Request(ctx, "d", "apr_000001")))
	missing(t, second(s.Grant(ctx, "d", "grt_000001")))
	equal(t, len(must(s.Freezes(ctx, "d"))(t)), 0)
	// An entry of another tenant is refused, together with the whole update.
	err := s.Update(ctx, "a", func(tx approval.Tx) error {
		tx.Insert(request(2))
		tx.Append(record(t, "b", "frozen", "", epoch()))
		return nil
	})
	if err == nil || must(s.Requests(ctx, "a", approval.Filter{}))(t).Total != 1 {
		t.Fatalf("got %v", err)
	}
}
