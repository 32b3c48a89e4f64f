package storetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	stores "github.com/assent-dev/assent/store"
)

func tokens(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	missing(t, second(s.TokenByHash(ctx, "h1")))
	first := stores.Token{
		ID:      "t1",
		Tenant:  tenant,
		Name:    "bot",
		Hash:    "h1",
		Scopes:  []string{"decide", "request"},
		Agents:  []string{"a"},
		Created: epoch(),
		Expires: epoch().Add(time.Hour),
	}
	second := stores.Token{
		ID:      "t2",
		Tenant:  tenant,
		Name:    "cli",
		Hash:    "h2",
		Scopes:  []string{"vote"},
		Person:  "ada",
		Maker:   "t1",
		Created: epoch().Add(time.Second),
		Expires: epoch(),
	}
	ok(t, s.PutToken(ctx, first))
	ok(t, s.PutToken(ctx, second))
	if got := must(s.TokenByHash(ctx, "h1"))(t); !reflect.DeepEqual(got, first) {
		t.Fatalf("got %+v, want %+v", got, first)
	}
	live := func(of, name string, after time.Duration) error {
		_, err := s.LiveToken(ctx, of, name, epoch().Add(after))
		return err
	}
	if got := must(s.LiveToken(ctx, tenant, "bot", epoch()))(t); !reflect.DeepEqual(got, first) {
		t.Fatalf("got %+v, want %+v", got, first)
	}
	missing(t, live(tenant, "bot", time.Hour))
	missing(t, live(tenant, "cli", 0))
	missing(t, live(tenant, "b%", 0))
	missing(t, live("other", "bot", 0))
	all := must(s.Tokens(ctx, tenant))(t)
	equal(t, len(all), 2)
	if !reflect.DeepEqual(all[0], second) {
		t.Fatalf("got %+v, want %+v", all[0], second)
	}
	ok(t, s.RevokeToken(ctx, tenant, "t1", epoch()))
	ok(t, s.RevokeToken(ctx, tenant, "t1", epoch().Add(time.Hour)))
	if got := must(s.TokenByHash(ctx, "h1"))(t); got.Revoked == nil || !got.Revoked.Equal(epoch()) {
		t.Fatalf("got %+v", got)
	}
	missing(t, live(tenant, "bot", 0))
	missing(t, s.RevokeToken(ctx, tenant, "t9", epoch()))
	missing(t, s.RevokeToken(ctx, "other", "t2", epoch()))
	first.ID, first.Tenant = "t3", "other"
	if err := s.PutToken(ctx, first); err == nil {
		t.Fatal("two tokens have one hash")
	}
	equal(t, len(must(s.Tokens(ctx, "other"))(t)), 0)
}

// tokenNames checks that of concurrent callers that want a name, through any replica, one
// gets it, and the next one after that token has ended.
func tokenNames(t *testing.T, db Database) {
	ctx := t.Context()
	open := db(t)
	replicas := []stores.Store{replica(t, open), replica(t, open)}
	of := func(n int, created time.Time) stores.Token {
		id := string(rune('a' + n))
		return stores.Token{
			ID:      id,
			Tenant:  tenant,
			Name:    "bot",
			Hash:    id,
			Scopes:  []string{"read"},
			Created: created,
			Expires: created.Add(time.Hour),
		}
	}
	var got atomic.Int64
	for _, err := range crowd(8, func(n int) error {
		return replicas[n%2].PutToken(ctx, of(n, epoch()))
	}) {
		switch {
		case err == nil:
			got.Add(1)
		case !errors.Is(err, stores.ErrNameTaken):
			t.Fatal(err)
		}
	}

	equal(t, got.Load(), 1)
	ok(t, replicas[0].PutToken(ctx, of(8, epoch().Add(2*time.Hour))))
	ok(t, replicas[0].RevokeToken(ctx, tenant, "i", epoch().Add(2*time.Hour)))
	ok(t, replicas[0].PutToken(ctx, of(9, epoch().Add(2*time.Hour))))
}

func values(t *testing.T, db Database) {
	ctx := t.Context()
	s, now := one(t, db), epoch()
	later := now.Add(time.Minute)
	missing(t, second(s.Value(ctx, "session", "k", now)))
	ok(t, s.SetValue(ctx, "session", "k", []byte("one"), later))
	ok(t, s.SetValue(ctx, "session", "k", []byte("two\x00\xff"), later))
	ok(t, s.SetValue(ctx, "session", "gone", []byte("x"), now))
	ok(t, s.SetValue(ctx, "session", "empty", nil, later))
	ok(t, s.SetValue(ctx, "link", "k", []byte("three"), later))
	equal(t, string(must(s.Value(ctx, "session", "k", now))(t)), "two\x00\xff")
	for _, c := range []struct {
		key string
		at  time.Time
	}{{"k", later}, {"gone", now}, {"other", now}} {
		missing(t, second(s.Value(ctx, "session", c.key, c.at)))
		missing(t, second(s.TakeValue(ctx, "session", c.key, c.at)))
	}

	all := must(s.ListValues(ctx, "session", now))(t)
	equal(t, len(all), 2)
	equal(t, string(all["k"]), "two\x00\xff")
	equal(t, string(must(s.TakeValue(ctx, "session", "k", now))(t)), "two\x00\xff")
	missing(t, second(s.Value(ctx, "session", "k", now)))
	ok(t, s.DeleteValue(ctx, "link", "k"))
	ok(t, s.DeleteValue(ctx, "link", "k"))
	equal(t, len(must(s.ListValues(ctx, "link", now))(t)), 0)
}

// takeRace checks that only one caller gets a value.
func takeRace(t *testing.T, db Database) {
	open := db(t)
	replicas := []full{replica(t, open), replica(t, open)}
	ok(t, replicas[0].SetValue(t.Context(), "link", "k", []byte("v"), epoch().Add(time.Hour)))
	var got atomic.Int64
	for _, err := range crowd(20, func(i int) error {
		_, err := replicas[i%2].TakeValue(context.Background(), "link", "k", epoch())
		if err == nil {
			got.Add(1)
		}
		return err
	}) {
		if err != nil {
			missing(t, err)
		}
	}

	equal(t, got.Load(), 1)
}

func sweep(t *testing.T, db Database) {
	ctx := t.Context()
	s, now := one(t, db), epoch()
	everybody(t, crowd(1200, func(i int) error {
		return s.Update(ctx, tenant, func(tx approval.Tx) error {
			tx.Remember(number(i), approval.Memory{Expires: now.Add(time.Duration(i-1100) * time.Second)})
			return nil
		})
	}))
	ok(t, s.SetValue(ctx, "b", "old", []byte("x"), now.Add(-time.Second)))
	ok(t, s.SetValue(ctx, "b", "new", []byte("x"), now.Add(time.Second)))
	ok(t, s.SweepValues(ctx, now))
	equal(t, len(must(s.ListValues(ctx, "b", time.Unix(0, 0)))(t)), 1)
	write(t, s, func(tx approval.Tx) {
		if m, err := tx.Remembered("1100"); m != nil || err != nil {
			t.Fatalf("got %v, %v", m, err)
		}
		if m, err := tx.Remembered("1101"); m == nil || err != nil {
			t.Fatalf("got %v, %v", m, err)
		}
	})
}

func deliver(t testing.TB, s full, targets ...string) {
	t.Helper()
	write(t, s, func(tx approval.Tx) {
		for i, target := range targets {
			tx.Append(record(t, tenant, "request_opened", "apr_1", epoch()),
				approval.Delivery{
					Target:  target,
					Event:   "request_opened",
					Subject: "apr_" + number(i),
					Payload: `{"n":` + number(i) + `}`,
				})
		}

	})
}

// soon returns a time at which everything that was just appended is due, with the clock of any
// engine's test.
func soon() time.Time { return time.Now().Add(100 * 365 * 24 * time.Hour) }

func outbox(t *testing.T, db Database) {
	ctx := t.Context()
	s, now := one(t, db), soon()
	deliver(t, s, "slack", "webhook:ops", "slack", "unknown")
	equal(t, len(claim(t, s, "me", nil, now, 10)), 0)
	equal(t, len(claim(t, s, "me", []string{"slack"}, time.Unix(0, 0), 10)), 0)
	got := claim(t, s, "me", []string{"slack", "webhook:ops"}, now, 2)
	equal(t, len(got), 2)
	equal(t, got[0].Delivery, approval.Delivery{
		Target:  "slack",
		Event:   "request_opened",
		Subject: "apr_0",
		Payload: `{"n":0}`,
	})
	equal(t, got[0].Tenant, tenant)
	equal(t, got[0].Attempt, 1)
	equal(t, got[0].State, stores.Waiting)
	ok(t, s.Delivered(ctx, "me", got[0].ID, now))
	ok(t, s.Retry(ctx, "me", got[1].ID, "503\x00", now.Add(time.Minute)))
	rest := claim(t, s, "me", []string{"slack", "webhook:ops"}, now, 10)
	equal(t, len(rest), 1)
	ok(t, s.Bury(ctx, "me", rest[0].ID, "410", now))
	again := claim(t, s, "me", []string{"slack", "webhook:ops"}, now.Add(time.Minute), 10)
	equal(t, len(again), 1)
	equal(t, again[0].Attempt, 2)
	equal(t, again[0].Problem, "503\uFFFD")

	dead := jobs(t, s, stores.DeadEnd, 10)
	equal(t, len(dead), 1)
	equal(t, dead[0].Problem, "410")
	all := jobs(t, s, "", 10)
	equal(t, len(all), 4)
	equal(t, all[3].State, stores.Sent)
	equal(t, len(jobs(t, s, "", 2)), 2)
	equal(t, len(must(s.Jobs(ctx, "other", "", 2))(t)), 0)

	missing(t, s.Redeliver(ctx, "other", dead[0].ID, now))
	ok(t, s.Redeliver(ctx, tenant, dead[0].ID, now))
	missing(t, s.Redeliver(ctx, tenant, dead[0].ID, now))
	anew := claim(t, s, "me", []string{"slack"}, now, 10)
	equal(t, anew[0].ID, dead[0].ID)
	equal(t, anew[0].Attempt, 1)
}

// sweepSent checks that deliveries are deleted a week after they arrived, and that waiting
// and dead ones stay.
func sweepSent(t *testing.T, db Database) {
	ctx := t.Context()
	s, now := one(t, db), soon()
	const n = 520
	targets := make([]string, n)
	for i := range targets {
		targets[i] = "slack"
	}
	deliver(t, s, append(targets, "dead", "waiting")...)
	claimed := claim(t, s, "me", []string{"slack"}, now, n)
	everybody(t, crowd(8, func(i int) error {
		for k := i; k < n; k += 8 {
			at := now
			if k == 0 {
				at = now.Add(time.Hour) // the last to arrive, though it was the first
			}
			if err := s.Delivered(ctx, "me", claimed[k].ID, at); err != nil {
				return err
			}
		}

		return nil
	}))
	ok(t, s.Bury(ctx, "me", claim(t, s, "me", []string{"dead"}, now, 1)[0].ID, "410", now))
	week := now.Add(7 * 24 * time.Hour)
	ok(t, s.SweepValues(ctx, week))
	equal(t, len(jobs(t, s, stores.Sent, 2*n)), n)
	ok(t, s.SweepValues(ctx, week.Add(time.Second)))
	left := jobs(t, s, stores.Sent, 2*n)
	equal(t, len(left), 1)
	equal(t, left[0].ID, claimed[0].ID)
	ok(t, s.SweepValues(ctx, week.Add(1000*time.Hour)))
	all := jobs(t, s, "", 2*n)
	equal(t, len(all), 2)
	equal(t, all[0].State, stores.Waiting)
	equal(t, all[1].State, stores.DeadEnd)
}

// leases checks that expired leases go to other workers, and that the old owner can't
// change anything then.
func leases(t *testing.T, db Database) {
	ctx := t.Context()
	s, now := one(t, db), soon()
	deliver(t, s, "slack")
	id := claim(t, s, "old", []string{"slack"}, now, 1)[0].ID
	equal(t, len(claim(t, s, "new", []string{"slack"}, now.Add(59*time.Second), 1)), 0)
	got := claim(t, s, "new", []string{"slack"}, now.Add(time.Minute), 1)
	equal(t, got[0].ID, id)
	equal(t, got[0].Attempt, 2)
	ok(t, s.Delivered(ctx, "old", id, now))
	ok(t, s.Bury(ctx, "old", id, "x", now))
	ok(t, s.Retry(ctx, "old", id, "x", now))
	job := jobs(t, s, "", 1)[0]
	equal(t, job.State, stores.Waiting)
	equal(t, job.Problem, "")
	ok(t, s.Delivered(ctx, "new", id, now))
	ok(t, s.Bury(ctx, "new", id, "x", now))
	equal(t, jobs(t, s, "", 1)[0].State, stores.Sent)
}

// claimRace checks that no delivery is leased twice.
func claimRace(t *testing.T, db Database) {
	open := db(t)
	replicas, now := []full{replica(t, open), replica(t, open)}, soon()
	const n = 60
	targets := make([]string, n)
	for i := range targets {
		targets[i] = "slack"
	}
	deliver(t, replicas[0], targets...)
	seen := sync.Map{}
	var total atomic.Int64
	everybody(t, crowd(8, func(i int) error {
		for range 20 {
			jobs, err := replicas[i%2].Claim(
				context.Background(),
				number(i),
				[]string{"slack"},
				now,
				time.Minute,
				4,
			)
			if err != nil {
				return err
			}
			for _, j := range jobs {
				if _, twice := seen.LoadOrStore(j.ID, i); twice {
					return errors.New("leased twice")
				}
				total.Add(1)
				if err := replicas[i%2].Delivered(context.Background(), number(i), j.ID, now); err != nil {
					return err
				}
			}
		}

		return nil
	}))
	equal(t, total.Load(), n)
}
