package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

var errUsedUp = errors.New("used up")

// grant returns a live grant. Different n give different grants.
func grant(n int) *approval.Grant {
	return &approval.Grant{
		ID:      fmt.Sprintf("grt_%06d", n),
		Tenant:  tenant,
		Agent:   "acme.trader",
		Target:  "tool execute_trade",
		Plan:    "p1",
		MaxUses: 3,
		Call: resolve.Call{
			Kind: resolve.Tool,
			Tool: "execute_trade",
			Args: resolve.Raw(`{"amount":1}`),
		},
		Bounds: []approval.Bound{
			{Path: "amount", Kind: approval.AtMost}, {Path: "command", Kind: approval.Words, Value: "go test *"},
		},
		Ignored:  []string{"description"},
		Examples: []approval.Example{{Path: "command", Text: "go test other", Covered: true}},
		By:       []string{"ada"},
		Request:  "apr_000001",
		Created:  epoch().Add(time.Duration(n) * time.Second),
		Expires:  epoch().Add(time.Hour),
	}
}

func grants(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	missing(t, second(s.Grant(ctx, tenant, "grt_000001")))
	refused(t, s.Update(ctx, tenant, func(tx approval.Tx) error {
		_, err := tx.Grant("grt_000001")
		return err
	}), approval.ErrNotFound)
	write(t, s, func(tx approval.Tx) {
		for n := range 3 {
			tx.SaveGrant(grant(n))
		}
	})
	got := must(s.Grant(ctx, tenant, "grt_000001"))(t)
	equal(t, string(must(json.Marshal(got))(t)), string(must(json.Marshal(grant(1)))(t)))
	write(t, s, func(tx approval.Tx) {
		g, err := tx.Grant("grt_000001")
		ok(t, err)
		at := epoch()
		g.Revoked, g.RevokedBy = &at, "ada"
		tx.SaveGrant(g)
	})
	all := must(s.Grants(ctx, tenant, true, epoch()))(t)
	equal(t, len(all), 3)
	equal(t, all[0].ID, "grt_000002")
	equal(t, all[1].RevokedBy, "ada")
	equal(t, len(must(s.Grants(ctx, tenant, false, epoch()))(t)), 2)
	equal(t, len(must(s.Grants(ctx, tenant, false, epoch().Add(time.Hour)))(t)), 0)
}

// live checks the grants that may cover a call now.
func live(t *testing.T, db Database) {
	s := one(t, db)
	at := epoch()
	dead := []*approval.Grant{grant(1), grant(2), grant(3), grant(4), grant(5)}
	dead[0].Agent = "acme.other"
	dead[1].Target = "tool refund"
	dead[2].Revoked = &at
	dead[3].Expires = at
	dead[4].Uses = 3
	write(t, s, func(tx approval.Tx) {
		for _, g := range append(dead, grant(6), grant(7)) {
			tx.SaveGrant(g)
		}
	})
	write(t, s, func(tx approval.Tx) {
		got, err := tx.Live("acme.trader", "tool execute_trade", at)
		ok(t, err)
		equal(t, len(got), 2)
		equal(t, got[0].ID, "grt_000007")
	})
}

// grantRace checks that concurrent callers use a grant no more often than allowed.
func grantRace(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	const uses = 10
	write(t, a, func(tx approval.Tx) {
		g := grant(1)
		g.MaxUses = uses
		tx.SaveGrant(g)
	})
	var used atomic.Int64
	for _, err := range crowd(40, func(i int) error {
		s := []full{a, b}[i%2]
		err := s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			all, err := tx.Live("acme.trader", "tool execute_trade", epoch())
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return errUsedUp
			}
			all[0].Uses++
			tx.SaveGrant(all[0])
			return nil
		})
		if err == nil {
			used.Add(1)
		}
		return err
	}) {
		if err != nil {
			refused(t, err, errUsedUp)
		}
	}

	equal(t, used.Load(), uses)
	equal(t, must(a.Grant(t.Context(), tenant, "grt_000001"))(t).Uses, uses)
}

func freezes(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	within := func(want int) {
		t.Helper()
		write(t, s, func(tx approval.Tx) {
			got, err := tx.Freezes()
			ok(t, err)
			equal(t, len(got), want)
		})
		equal(t, len(must(s.Freezes(ctx, tenant))(t)), want)
	}
	within(0)
	all := approval.Freeze{By: "ada", Reason: "smoke", At: epoch()}
	write(t, s, func(tx approval.Tx) {
		tx.SaveFreeze(all)
		tx.SaveFreeze(approval.Freeze{Agent: "acme.trader", By: "bob", At: epoch()})
	})
	within(2)
	equal(t, must(s.Freezes(ctx, tenant))(t)[0], all)
	lifted := epoch().Add(time.Minute)
	all.Lifted = &lifted
	write(t, s, func(tx approval.Tx) {
		tx.SaveFreeze(all)
	})
	within(1)
	all.Lifted = nil
	write(t, s, func(tx approval.Tx) {
		tx.SaveFreeze(all)
	})
	within(2)

	// Every check after the answer to a freeze must see the freeze, whatever runs
	// concurrently.
	everybody(t, crowd(40, func(i int) error {
		agent := "agent" + number(i)
		if err := s.Update(ctx, tenant, func(tx approval.Tx) error {
			tx.SaveFreeze(approval.Freeze{Agent: agent, At: epoch()})
			return nil
		}); err != nil {
			return err
		}

		return s.Update(ctx, tenant, func(tx approval.Tx) error {
			got, err := tx.Freezes()
			for _, f := range got {
				if f.Agent == agent {
					return err
				}
			}
			return errors.Join(err, fmt.Errorf("%s is not frozen", agent))
		})
	}))
}

func memories(t *testing.T, db Database) {
	s := one(t, db)
	want := approval.Memory{Digest: "d", Request: "apr_1", Grant: "g", Expires: epoch()}
	write(t, s, func(tx approval.Tx) {
		m, err := tx.Remembered("k")
		ok(t, err)
		if m != nil {
			t.Fatal("remembered before")
		}
		tx.Remember("k", want)
	})
	write(t, s, func(tx approval.Tx) {
		equal(t, *must(tx.Remembered("k"))(t), want)
		other := want
		other.Digest = "e" // as after the old one has expired
		tx.Remember("k", other)
	})
	write(t, s, func(tx approval.Tx) {
		equal(t, must(tx.Remembered("k"))(t).Digest, "e")
	})
}

// memoryRace checks that of several updates that find nothing under a key, one succeeds,
// and the others run again and find its memory.
func memoryRace(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	everybody(t, crowd(40, func(i int) error {
		s := []full{a, b}[i%2]
		return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
			m, err := tx.Remembered("k")
			if err != nil || m != nil {
				return err
			}
			tx.Insert(request(i))
			tx.Remember("k", approval.Memory{Request: request(i).ID})
			return nil
		})
	}))
	equal(t, page(t, a, approval.Filter{}).Total, 1)
}

func votes(t *testing.T, db Database) {
	s := one(t, db)
	fact := func(n int) approval.VoteFact {
		return approval.VoteFact{
			Request: "apr_" + number(n),
			Agent:   "a",
			Target:  "tool t",
			Person:  "ada",
			Verdict: approval.Deny,
			Waited:  1500 * time.Microsecond,
			At:      epoch().Add(time.Duration(n) * time.Minute),
		}
	}
	write(t, s, func(tx approval.Tx) {
		for n := range 5 {
			tx.AddVote(fact(n))
		}
	})
	got := must(s.Votes(t.Context(), tenant, epoch().Add(2*time.Minute), 2))(t)
	equal(t, len(got), 2)
	equal(t, got[0], fact(4))
	equal(t, got[1], fact(3))
	equal(t, len(must(s.Votes(t.Context(), tenant, epoch().Add(2*time.Minute), 10))(t)), 3)
}

// due checks that fn runs once for each due request, and that its changes are stored.
func due(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	insert(t, s, request(1), request(2), request(3), request(4))
	change(t, s, "apr_000004", func(r *approval.Request) { r.Due = nil })
	now := epoch().Add(10*time.Minute + 2*time.Second) // 1 and 2
	var seen []string
	expire := func(tx approval.Tx, of string, r *approval.Request) error {
		equal(t, of, tenant)
		seen = append(seen, r.ID)
		finish(r, approval.Expired, now)
		tx.Save(r)
		tx.Append(record(t, tenant, "request_expired", r.ID, now))
		return nil
	}
	equal(t, must(s.Due(ctx, now, 1, expire))(t), 1)
	equal(t, must(s.Due(ctx, now, 10, expire))(t), 1)
	equal(t, must(s.Due(ctx, now, 10, expire))(t), 0)
	sameIDs(t, seen, 1, 2)
	equal(t, found(t, s, "apr_000001").State, approval.Expired)
	equal(t, entries(t, s, tenant), 2)
}

// dueFailures checks that failures don't stop other requests.
func dueFailures(t *testing.T, db Database) {
	s := one(t, db)
	for n := range 6 {
		insert(t, s, request(n))
	}
	now := epoch().Add(time.Hour)
	n, err := s.Due(t.Context(), now, 10, func(tx approval.Tx, _ string, r *approval.Request) error {
		finish(r, approval.Expired, now)
		tx.Save(r)
		tx.Append(record(t, tenant, "request_expired", r.ID, now))
		switch r.ID {
		case "apr_000001":
			return errNo
		case "apr_000003":
			tx.Insert(request(5)) // can't be written
		}

		return nil
	})
	equal(t, n, 6)
	refused(t, err, errNo)
	equal(t, page(t, s, approval.Filter{States: []approval.State{approval.Expired}}).Total, 4)
	equal(t, entries(t, s, tenant), 4)
}

// dueFailuresStandBack checks that more requests than one batch that always fail don't keep
// later ones from being processed, and are tried again later.
func dueFailuresStandBack(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	const poison, batch = 70, 64
	for n := range poison + 1 {
		insert(t, s, request(n))
	}
	good, now := request(poison).ID, epoch().Add(time.Hour)
	tried := 0
	act := func(tx approval.Tx, _ string, r *approval.Request) error {
		tried++
		if r.ID != good {
			return errNo
		}
		finish(r, approval.Expired, now)
		tx.Save(r)
		return nil
	}
	for i, want := range []int{batch, poison + 1 - batch} {
		n, err := s.Due(ctx, now.Add(time.Duration(i)*time.Second), batch, act)
		refused(t, err, errNo)
		equal(t, n, want)
	}
	equal(t, found(t, s, good).State, approval.Expired)
	equal(t, must(s.Due(ctx, now.Add(59*time.Second), batch, act))(t), 0)
	equal(t, tried, poison+1)
	n, err := s.Due(ctx, now.Add(2*time.Minute), batch, act)
	refused(t, err, errNo)
	equal(t, n, batch)
}

// dueRace checks that no request is given to two workers.
func dueRace(t *testing.T, db Database) {
	open := db(t)
	replicas := []approval.Store{replica(t, open), replica(t, open), replica(t, open)}
	const n = 50
	for i := range n {
		insert(t, replicas[0].(full), request(i))
	}
	now := epoch().Add(time.Hour)
	var total atomic.Int64
	everybody(t, crowd(len(replicas), func(i int) error {
		for range 20 {
			ran, err := replicas[i].Due(
				context.Background(),
				now,
				7,
				func(tx approval.Tx, _ string, r *approval.Request) error {
					r.Due = nil
					bump(r)
					tx.Save(r)
					return nil
				},
			)
			total.Add(int64(ran))
			if err != nil {
				return err
			}
		}

		return nil
	}))
	equal(t, total.Load(), n)
	for i := range n {
		r := found(t, replicas[0], request(i).ID)
		equal(t, r.Version, 2)
		equal(t, bumps(r), 1)
	}
}

// changed checks that channels close if something of their tenant changes.
func changed(t *testing.T, db Database) {
	s := one(t, db)
	closed(t, s.Changed(tenant)) // after the store has read the current state
	ch, other := s.Changed(tenant), s.Changed("other")
	update(t, s, func(tx approval.Tx) error { return nil })
	select {
	case <-ch:
		t.Fatal("nothing changed")
	default:
	}
	insert(t, s, request(1))
	select {
	case <-ch: // at once
	default:
		t.Fatal("the change was not told")
	}
	select {
	case <-other:
		t.Fatal("nothing changed there")
	default:
	}
	ch = s.Changed(tenant)
	write(t, s, func(tx approval.Tx) {
		tx.Append(record(t, tenant, "frozen", "", epoch()))
	})
	closed(t, ch)
	ch = s.Changed(tenant)
	sealAll(t, s, nil)
	closed(t, ch)
}

// changedElsewhere checks that changes by another replica are noticed.
func changedElsewhere(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	closed(t, a.Changed(tenant))
	for n := range 3 {
		ch := a.Changed(tenant)
		write(t, b, func(tx approval.Tx) {
			tx.Insert(request(n))
			tx.Append(record(t, tenant, "request_opened", request(n).ID, epoch()))
		})
		closed(t, ch)
	}

	ch := a.Changed(tenant)
	sealAll(t, b, nil)
	closed(t, ch)
}
