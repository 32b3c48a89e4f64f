package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/assent-dev/assent/approval"
	stores "github.com/assent-dev/assent/store"
)

// recordRace checks that of 64 concurrent calls on several handles of one store, one wins
// each version, each new key, each alias and each deletion.
func recordRace(t *testing.T, handles ...stores.Records) {
	ctx := t.Context()
	const crew, rounds = 64, 10
	at := func(i int) stores.Records { return handles[i%len(handles)] }
	winner := func(fn func(i int) error) {
		t.Helper()
		won := 0
		for _, err := range crowd(crew, fn) {
			if err == nil {
				won++
				continue
			}
			refused(t, err, approval.ErrVersion)
		}

		equal(t, won, 1)
	}
	for round := range rounds {
		winner(func(i int) error {
			r := document("a")
			r.Version, r.Value = int64(round), []byte(number(i))
			version, err := at(i).PutRecord(ctx, r)
			if err == nil && version != int64(round)+1 {
				err = fmt.Errorf("version %d after %d", version, round)
			}
			return err
		})
	}

	for round := range rounds { // new records that want one alias
		winner(func(i int) error {
			r := document(fmt.Sprintf("new %d of %d", i, round))
			r.Alias = "new " + number(round)
			_, err := at(i).PutRecord(ctx, r)
			return err
		})
	}

	everybody(t, crowd(crew, func(i int) error {
		_, err := at(i).PutRecord(ctx, document("old "+number(i)))
		return err
	}))
	winner(func(i int) error { // stored records that want one alias
		r := document("old " + number(i))
		r.Version, r.Alias = 1, "old"
		_, err := at(i).PutRecord(ctx, r)
		return err
	})
	winner(func(i int) error {
		return at(i).DeleteRecord(ctx, "calls", "a", rounds)
	})
	equal(t, len(callRecords(t, at(0), "new ", "", 1000)), rounds)
	equal(t, must(at(1).RecordByAlias(ctx, "calls", "old"))(t).Version, 2)
	noRecord(t, at(1), "calls", "a")
}

// recordReplicas checks that two handles of one store see the same records.
func recordReplicas(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	r := document("seen")
	r.Alias = "x"
	r = put(t, a, r)
	stored(t, b, r)
	r = put(t, b, r)
	stored(t, a, r)
	ok(t, a.DeleteRecord(t.Context(), "calls", "seen", r.Version))
	noAlias(t, b, "calls", "x")
	recordRace(t, a, b)
}

// recordsAndUpdates checks that changes of records and updates share groups, and that a
// refused one does not affect the others.
func recordsAndUpdates(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	taken := document("taken")
	taken.Alias = "taken"
	put(t, s, taken)
	boom := errors.New("boom")
	const n = 120
	for i, err := range crowd(n, func(i int) error {
		r := document(number(i))
		switch i % 6 {
		case 0:
			return s.Update(ctx, tenant, func(tx approval.Tx) error {
				tx.Insert(request(i))
				return nil
			})
		case 1:
			return s.Update(ctx, tenant, func(tx approval.Tx) error {
				tx.Insert(request(i))
				return boom
			})
		case 2:
			r.Alias = "taken"
		case 3:
			r.Version = 1
		case 4:
			return s.DeleteRecord(ctx, "calls", number(i), 1)
		}

		_, err := s.PutRecord(ctx, r)
		return err
	}) {
		if want := []error{
			nil,
			boom,
			approval.ErrVersion,
			approval.ErrVersion,
			approval.ErrVersion,
			nil,
		}[i%6]; !errors.Is(err, want) {
			t.Fatalf("%d: got error %v, want %v", i, err, want)
		}
	}

	equal(t, page(t, s, approval.Filter{}).Total, n/6)
	equal(t, len(callRecords(t, s, "", "", 1000)), n/6+1)
}

// recordsClosed checks that a closed store returns that error, and not that records don't
// exist.
func recordsClosed(t *testing.T, db Database) {
	ctx := t.Context()
	s, err := db(t)()
	ok(t, err)
	r := put(t, s, document("a"))
	ok(t, s.Close())
	unavailable(t, second(s.PutRecord(ctx, r)))
	unavailable(t, s.DeleteRecord(ctx, "calls", "a", 1))
	unavailable(t, second(s.Record(ctx, "calls", "a")))
	unavailable(t, second(s.RecordByAlias(ctx, "calls", "a")))
	unavailable(t, second(s.ListRecords(ctx, "calls", "", "", 1)))
	unavailable(t, second(s.DueRecords(ctx, "calls", epoch(), 1)))
	unavailable(t, s.SweepRecords(ctx, epoch()))
}
