package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	stores "github.com/assent-dev/assent/store"
)

// Lists fills a store with open requests and calls read after each kind of list.
func Lists(t testing.TB, s stores.Store, n int, read func(what string)) {
	t.Helper()
	for i := 0; i < n; {
		var all []*approval.Request
		for ; len(all) < 500 && i < n; i++ {
			r := request(i)
			if i%100 < 2 {
				r.Stages = []policy.Stage{{Group: "ops", People: 1}}
				r.Votes = []approval.Vote{{Person: "bob", Verdict: approval.Approve, Revision: 0}}
			}
			if i%100 == 1 {
				finish(r, approval.Denied, epoch())
			}
			all = append(all, r)
		}

		insert(t, s, all...)
	}

	pending, many := []approval.State{approval.Pending}, []string{"ops"}
	few, ended := []string{"group:ops", "name:nobody"}, []approval.State{approval.Denied, approval.Expired}
	for i := range 20 {
		many = append(many, "group"+number(i))
	}
	for what, f := range map[string]approval.Filter{
		"a page":      {States: pending},
		"a long page": {States: pending, Limit: 500},
		"the oldest": {
			States: pending,
			Limit:  1,
			Oldest: true,
		},
		"by deadline": {
			States: pending,
			Limit:  500,
			ByDue:  true,
		},
		"all states":      {},
		"of a rare group": {States: pending, Groups: []string{"ops"}},
		"of many groups":  {States: pending, Groups: many},
		"of an agent":     {States: pending, Agent: "acme.trader"},
		"all by deadline": {ByDue: true},
		"mine, by deadline": {
			States: pending,
			Groups: []string{"ops", "risk"},
			ByDue:  true,
			Limit:  500,
		},
		"of a reader of few":       {States: pending, Readers: few},
		"all of a reader of few":   {Readers: few},
		"due of a reader of few":   {States: pending, Readers: few, ByDue: true},
		"ended of a reader of few": {States: ended, Readers: few},
		"due of a reader of all": {States: pending, Readers: []string{"agent:acme.trader", "group:leads"},
			ByDue: true},
		"all of a reader of all": {Readers: []string{"agent:acme.trader", "group:leads"}},
		"answered":               {States: pending, AnsweredBy: "bob", ByDue: true},
		"since some time":        {States: pending, Since: epoch().Add(5 * time.Minute)},
	} {
		if p := page(t, s, f); p.Total == 0 {
			t.Fatalf("%s: nothing found", what)
		}
		read(what)
	}
}

// RecordLists fills a store with due records, and calls read after lists of 500 of them,
// and after reading one.
func RecordLists(t testing.TB, s stores.Records, n int, read func(what string)) {
	t.Helper()
	ctx := context.Background()
	everybody(t, crowd(64, func(w int) error {
		for i := w; i < n; i += 64 {
			r := document(fmt.Sprintf("call/%06d", i))
			r.Alias = "alias of " + r.Key
			r.Due = epoch().Add(time.Duration(n-i) * time.Microsecond)
			r.Expires = epoch().Add(time.Hour)
			r.Value = make([]byte, 2048)
			if _, err := s.PutRecord(ctx, r); err != nil {
				return err
			}
		}

		return nil
	}))
	list := func(all []stores.Record, err error) error {
		if err == nil && len(all) != 500 {
			err = fmt.Errorf("%d records", len(all))
		}
		return err
	}
	for what, look := range map[string]func() error{
		"records": func() error {
			return list(s.ListRecords(ctx, "calls", "call/", "", 500))
		},
		"records after one": func() error {
			return list(s.ListRecords(ctx, "calls", "call/", fmt.Sprintf("call/%06d", n/3), 500))
		},
		"due records": func() error {
			return list(s.DueRecords(ctx, "calls", epoch().Add(time.Hour), 500))
		},
		"a record by alias": func() error {
			_, err := s.RecordByAlias(ctx, "calls", "alias of call/000500")
			return err
		},
	} {
		ok(t, look())
		read(what)
	}
}
