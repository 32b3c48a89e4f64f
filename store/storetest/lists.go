package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	stores "github.com/assent-dev/assent/store"
)

// Lists fills a store with open requests and tells how long each kind of list takes.
func Lists(t testing.TB, s stores.Store, n int, took func(what string, d time.Duration)) {
	t.Helper()
	for i := 0; i < n; {
		var all []*approval.Request
		for ; len(all) < 500 && i < n; i++ {
			r := request(i)
			if i%100 == 0 {
				r.Stages = []policy.Stage{{Group: "ops", People: 1}}
			}
			all = append(all, r)
		}
		insert(t, s, all...)
	}
	pending, many := []approval.State{approval.Pending}, []string{"ops"}
	for i := range 20 {
		many = append(many, "group"+number(i))
	}
	for what, f := range map[string]approval.Filter{
		"a page":            {States: pending},
		"a long page":       {States: pending, Limit: 500},
		"by deadline":       {States: pending, Limit: 500, ByDue: true},
		"all states":        {},
		"of a rare group":   {States: pending, Groups: []string{"ops"}},
		"of many groups":    {States: pending, Groups: many},
		"of an agent":       {States: pending, Agent: "acme.trader"},
		"all by deadline":   {ByDue: true},
		"mine, by deadline": {States: pending, Groups: []string{"ops", "risk"}, ByDue: true, Limit: 500},
		"since some time":   {States: pending, Since: epoch().Add(5 * time.Minute)},
	} {
		best := time.Hour
		for range 3 {
			start := time.Now()
			p := must(s.Requests(context.Background(), tenant, f))(t)
			best = min(best, time.Since(start))
			if p.Total == 0 {
				t.Fatalf("%s: nothing found", what)
			}
		}
		took(what, best)
	}
}
