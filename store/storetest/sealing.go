package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	stores "github.com/assent-dev/assent/store"
)

// full has all methods of a store.
type full = stores.Store

// signature replaces a real signature: it is the checkpoint as plain text.
func signature(c ledger.Checkpoint) ([]byte, error) {
	return fmt.Appendf(nil, "%s\n%d\n%s\n", c.Origin, c.Size, c.Root), nil
}

// sealAll seals everything and returns the number of entries.
func sealAll(t testing.TB, s full, sign func(ledger.Checkpoint) ([]byte, error)) int {
	t.Helper()
	if sign == nil {
		sign = signature
	}
	return must(s.Seal(context.Background(), 1_000_000, sign))(t)
}

// entries seals and counts a tenant's entries.
func entries(t testing.TB, s full, tenant string) int {
	t.Helper()
	sealAll(t, s, nil)
	return len(must(s.Entries(context.Background(), tenant, 0, 1_000_000))(t))
}

func appendEntries(t testing.TB, s full, tenant string, n int) {
	t.Helper()
	ok(t, s.Update(context.Background(), tenant, func(tx approval.Tx) error {
		for i := range n {
			tx.Append(
				record(t, tenant, "vote_counted", "apr_"+number(i%3), epoch().Add(time.Duration(i)*time.Second)),
			)
		}
		return nil
	}))
}

// verify checks the whole log of a tenant against its checkpoint, entry
// by entry.
func verify(t testing.TB, s full, tenant string) (size int64) {
	t.Helper()
	size, signed, err := s.Checkpoint(context.Background(), tenant)
	ok(t, err)
	all := must(s.Entries(context.Background(), tenant, 0, int(size)+1))(t)
	equal(t, int64(len(all)), size)
	var leaves [][]byte
	for i, e := range all {
		equal(t, e.Index, int64(i))
		must(ledger.Check(e.Leaf, e.Openings))(t)
		leaves = append(leaves, e.Leaf)
	}
	fresh := must(ledger.Extend(0, nil, leaves))(t)
	equal(t, string(signed), string(must(signature(ledger.Checkpoint{
		Origin: ledger.Origin(tenant),
		Size:   size,
		Root:   fresh.Root,
	}))(t)))
	hashes := s.Hashes(context.Background(), tenant)
	for i := int64(0); i < size; i += max(1, size/20) {
		proof := must(ledger.ProveInclusion(size, i, hashes))(t)
		ok(t, ledger.CheckInclusion(proof, size, fresh.Root, i, ledger.LeafHash(leaves[i])))
	}
	return size
}

func seal(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	size, signed, err := s.Checkpoint(ctx, tenant)
	ok(t, err)
	equal(t, size, 0)
	equal(t, len(signed), 0)
	equal(t, sealAll(t, s, nil), 0)
	appendEntries(t, s, tenant, 7)
	appendEntries(t, s, "other", 2)
	equal(t, len(must(s.Entries(ctx, tenant, 0, 10))(t)), 0) // not before they are sealed
	equal(t, must(s.Seal(ctx, 3, signature))(t), 3)
	equal(t, verify(t, s, tenant), 2) // and one of the other's
	equal(t, sealAll(t, s, nil), 6)
	equal(t, verify(t, s, tenant), 7)
	equal(t, verify(t, s, "other"), 2)
	for range 5 {
		appendEntries(t, s, tenant, 150)
		sealAll(t, s, nil)
	}
	equal(t, verify(t, s, tenant), 757)
	got := must(s.Entries(ctx, tenant, 5, 2))(t)
	equal(t, len(got), 2)
	equal(t, got[0].Index, 5)
	if _, err := s.Hashes(ctx, tenant).ReadHashes([]int64{1 << 40}); err == nil {
		t.Fatal("a hash that is not there was read")
	}
}

// sealTenant checks that entries committed before the call are sealed after it, whichever
// process seals them.
func sealTenant(t *testing.T, db Database) {
	ctx := t.Context()
	open := db(t)
	replicas := []full{replica(t, open), replica(t, open)}
	equal(t, must(replicas[0].SealTenant(ctx, tenant, signature))(t), 0)
	appendEntries(t, replicas[0], tenant, 300) // more than one step
	equal(t, must(replicas[1].SealTenant(ctx, tenant, signature))(t), 300)
	equal(t, verify(t, replicas[0], tenant), 300)

	appendEntries(t, replicas[0], tenant, 1)
	signing := make(chan struct{})
	release := make(chan struct{})
	sealed := make(chan error, 1)
	go func() {
		_, err := replicas[0].Seal(ctx, 10, func(c ledger.Checkpoint) ([]byte, error) {
			close(signing)
			<-release
			return signature(c)
		})
		sealed <- err
	}()
	<-signing
	for i, s := range replicas {
		early, cancel := context.WithCancel(ctx)
		returned := make(chan error, 1)
		go func() {
			_, err := s.SealTenant(early, tenant, signature)
			returned <- err
		}()
		runtime.Gosched()
		cancel()
		if err := <-returned; err == nil {
			t.Errorf("replica %d returned while the entry was not sealed", i)
		}
	}
	close(release)
	must(replicas[1].SealTenant(ctx, tenant, signature))(t)
	equal(t, verify(t, replicas[1], tenant), 301)
	ok(t, <-sealed)
}

// sealRace checks that replicas that seal while others append make one tree, and that every
// signed checkpoint belongs to it.
func sealRace(t *testing.T, db Database) {
	ctx := t.Context()
	open := db(t)
	replicas := []full{replica(t, open), replica(t, open)}
	const workers, each = 6, 25
	var mu sync.Mutex
	roots := map[int64]ledger.Checkpoint{}
	sign := func(c ledger.Checkpoint) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		roots[c.Size] = c
		return signature(c)
	}
	everybody(t, crowd(workers+2, func(i int) error {
		s := replicas[i%2]
		for range each {
			var err error
			if i < workers {
				err = s.Update(ctx, tenant, func(tx approval.Tx) error {
					tx.Append(record(t, tenant, "vote_counted", "apr_"+number(i), epoch()))
					return nil
				})
			} else {
				_, err = s.Seal(ctx, 40, sign)
			}

			if err != nil {
				return err
			}
		}

		return nil
	}))
	sealAll(t, replicas[0], sign)
	equal(t, verify(t, replicas[1], tenant), workers*each)
	hashes := replicas[1].Hashes(ctx, tenant)
	last := roots[workers*each]
	for size, c := range roots {
		proof := must(ledger.ProveConsistency(last.Size, size, hashes))(t)
		if err := ledger.CheckConsistency(proof, last.Size, last.Root, size, c.Root); err != nil {
			t.Fatal(err)
		}
	}
}

// sealFailure checks that entries are not sealed if signing fails, and that other tenants'
// are.
func sealFailure(t *testing.T, db Database) {
	s := one(t, db)
	appendEntries(t, s, tenant, 3)
	appendEntries(t, s, "zeta", 2)
	n, err := s.Seal(t.Context(), 100, func(c ledger.Checkpoint) ([]byte, error) {
		if c.Origin == ledger.Origin(tenant) {
			return nil, errNo
		}
		return signature(c)
	})
	equal(t, n, 2)
	refused(t, err, errNo)
	if errors.Is(err, stores.ErrUnavailable) {
		t.Fatal("the store is not to blame")
	}
	equal(t, len(must(s.Entries(t.Context(), tenant, 0, 10))(t)), 0)
	equal(t, verify(t, s, "zeta"), 2)
	_, err = s.SealTenant(t.Context(), tenant, func(ledger.Checkpoint) ([]byte, error) { return nil, errNo })
	refused(t, err, errNo)
	equal(t, sealAll(t, s, nil), 3)
	verify(t, s, tenant)
}

func history(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	appendEntries(t, s, tenant, 7)
	equal(t, len(must(s.History(ctx, tenant, "apr_0", 0, 10))(t)), 0)
	sealAll(t, s, nil)
	got := must(s.History(ctx, tenant, "apr_0", 0, 10))(t)
	equal(t, len(got), 3)
	for i, e := range got {
		equal(t, e.Index, int64(3*i))
		equal(t, must(ledger.ParseLeaf(e.Leaf))(t).Subject, "apr_0")
	}
	equal(t, len(must(s.History(ctx, "other", "apr_0", 0, 10))(t)), 0)
	equal(t, len(must(s.History(ctx, tenant, "apr_0", 0, 2))(t)), 2)
	rest := must(s.History(ctx, tenant, "apr_0", got[1].Index+1, 10))(t)
	equal(t, len(rest), 1)
	equal(t, rest[0].Index, got[2].Index)
}

// prune checks that pruning removes what people wrote and calls carried, and that the rest
// still verifies.
func prune(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	const n = 450
	before := epoch().Add(400 * time.Second)
	for i := range n {
		r := request(i)
		finish(r, approval.Denied, epoch().Add(time.Duration(i)*time.Second))
		r.Votes = []approval.Vote{{
			Person:  "ada",
			Reason:  "secret",
			Verdict: approval.Deny,
			Groups:  []string{"risk"},
		}}
		write(t, s, func(tx approval.Tx) {
			tx.Insert(r)
			tx.Append(record(t, tenant, "request_denied", r.ID, *r.Closed))
		})
		if i == 100 {
			sealAll(t, s, nil)
		}
	}

	write(t, s, func(tx approval.Tx) {
		tx.Insert(request(900))
		old, young := grant(1), grant(2)
		old.Expires, young.Expires = epoch(), before.Add(time.Hour)
		tx.SaveGrant(old)
		tx.SaveGrant(young)
	})
	requests, dropped, err := s.Prunable(ctx, tenant, before)
	ok(t, err)
	equal(t, requests, 400)
	equal(t, dropped, 400)
	equal(t, found(t, s, request(3).ID).Reason == "", false)
	requests, dropped, err = s.Prune(ctx, tenant, before)
	ok(t, err)
	equal(t, requests, 400)
	equal(t, dropped, 400)
	sealAll(t, s, nil)
	equal(t, verify(t, s, tenant), n)
	for i, e := range must(s.Entries(ctx, tenant, 0, n))(t) {
		equal(t, e.Openings == nil, i < 400)
	}
	r := found(t, s, request(3).ID)
	if len(r.Current().Call.Args) != 0 || r.Reason != "" || r.Votes[0].Reason != "" ||
		r.Current().Decision.Message != "" {
		t.Fatalf("not redacted: %+v", r)
	}
	equal(t, r.State, approval.Denied)
	equal(t, r.Votes[0].Person, "ada")
	equal(t, r.Version, 2)
	equal(t, found(t, s, request(420).ID).Reason, "because")
	equal(t, string(found(t, s, request(900).ID).Current().Call.Args), string(request(900).Current().Call.Args))
	equal(t, string(must(s.Grant(ctx, tenant, "grt_000001"))(t).Call.Args), "")
	equal(t, string(must(s.Grant(ctx, tenant, "grt_000002"))(t).Call.Args), `{"amount":1}`)
	for _, line := range page(t, s, approval.Filter{Limit: 500}).Requests {
		old := line.State == approval.Denied && line.Created.Before(before)
		equal(t, line.Message == "", old)
	}
	// An entry that is added to a pruned request is removed by the next pruning.
	change(t, s, request(3).ID, func(r *approval.Request) { r.Reason = "late" })
	requests, dropped, err = s.Prune(ctx, tenant, epoch().Add(410*time.Second))
	ok(t, err)
	equal(t, requests, 11)
	equal(t, dropped, 10)
	equal(t, found(t, s, request(3).ID).Reason, "")
	equal(t, verify(t, s, tenant), n)
}

// sealFairly checks that a tenant that records more than can be sealed does not delay other
// tenants.
func sealFairly(t *testing.T, db Database) {
	s := one(t, db)
	appendEntries(t, s, "a-loud-one", 900)
	appendEntries(t, s, "quiet", 1)
	must(s.Seal(t.Context(), 600, signature))(t)
	equal(t, len(must(s.Entries(t.Context(), "quiet", 0, 10))(t)), 1)
	sealAll(t, s, nil)
	equal(t, verify(t, s, "a-loud-one"), 900)
}

// leaves checks that the feed gets no openings, which it doesn't need.
func leaves(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	appendEntries(t, s, tenant, 5)
	equal(t, len(must(s.Leaves(ctx, tenant, 0, 10))(t)), 0)
	sealAll(t, s, nil)
	all := must(s.Entries(ctx, tenant, 1, 3))(t)
	for i, e := range must(s.Leaves(ctx, tenant, 1, 3))(t) {
		equal(t, e.Index, int64(i+1))
		equal(t, string(e.Leaf), string(all[i].Leaf))
		equal(t, len(e.Openings), 0)
	}
	equal(t, len(must(s.Leaves(ctx, "other", 0, 10))(t)), 0)
}

// largeEntries checks that a reader of many large entries gets all of them, but never needs
// gigabytes of memory at once.
func largeEntries(t *testing.T, db Database) {
	s := one(t, db)
	large := strings.Repeat("x", 9<<20)
	for i := range 5 {
		args := large
		if i == 3 {
			args = "small"
		}
		r, err := ledger.Entry{
			Time:    epoch(),
			Tenant:  tenant,
			Type:    "call_denied",
			Subject: number(i),
			Sealed:  map[string]string{"args": args},
		}.Seal(rand.Reader)
		ok(t, err)
		write(t, s, func(tx approval.Tx) {
			tx.Append(r)
		})
	}

	sealAll(t, s, nil)
	for next := int64(0); next < 5; {
		some := must(s.Entries(t.Context(), tenant, next, 100))(t)
		size := 0
		for _, e := range some {
			equal(t, e.Index, next)
			must(ledger.Check(e.Leaf, e.Openings))(t)
			equal(t, len(e.Openings) > 0, true)
			next, size = next+1, size+len(e.Openings)
		}

		if len(some) == 0 || size > 24<<20 {
			t.Fatalf("%d entries of %d bytes at once", len(some), size)
		}
	}

	equal(t, len(must(s.Leaves(t.Context(), tenant, 0, 100))(t)), 5)
}

// pruneSparesTheOpen checks that the entries about a request that waits or ended later, and
// about a grant that may be used, stay readable.
func pruneSparesTheOpen(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	before := epoch().Add(time.Hour)
	later, over := request(2), request(3)
	finish(later, approval.Denied, before.Add(time.Minute))
	finish(over, approval.Denied, epoch())
	live, ended := grant(1), grant(2)
	live.Expires, ended.Expires = before.Add(time.Hour), epoch()
	write(t, s, func(tx approval.Tx) {
		for _, r := range []*approval.Request{request(1), later, over} {
			tx.Insert(r)
			tx.Append(record(t, tenant, "request_opened", r.ID, epoch()))
		}
		for _, g := range []*approval.Grant{live, ended} {
			tx.SaveGrant(g)
			tx.Append(record(t, tenant, "grant_created", g.ID, epoch()))
		}
	})
	sealAll(t, s, nil)

	requests, entries, err := s.Prunable(ctx, tenant, before)
	ok(t, err)
	equal(t, requests, 1)
	equal(t, entries, 2)
	requests, entries, err = s.Prune(ctx, tenant, before)
	ok(t, err)
	equal(t, requests, 1)
	equal(t, entries, 2)
	var readable []bool
	for _, e := range must(s.Entries(ctx, tenant, 0, 10))(t) {
		readable = append(readable, e.Openings != nil)
	}
	equal(t, fmt.Sprint(readable), fmt.Sprint([]bool{true, true, false, true, false}))

	change(t, s, request(1).ID, func(r *approval.Request) { finish(r, approval.Denied, epoch()) })
	requests, entries, err = s.Prune(ctx, tenant, before)
	ok(t, err)
	equal(t, requests, 1)
	equal(t, entries, 1)
}
