package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// past returns a call that ran, n seconds after the epoch.
func past(n int) approval.Past {
	at := epoch().Add(time.Duration(n) * time.Second)
	return approval.Past{
		ID:    fmt.Sprintf("run_%06d", n),
		State: condition.PastRan,
		At:    at,
		Until: at.Add(time.Hour),
		Call: resolve.PastCall{
			AgentID: "acme.trader", Principal: "ada", Session: "s1", Kind: resolve.Tool, Tool: "pay",
			Args: resolve.Raw(fmt.Sprintf(`{"amount": %d.50}`, n)),
		},
	}
}

// recorded returns the query for everything that ran.
func recorded() approval.PastQuery {
	return approval.PastQuery{State: condition.PastRan, Limit: 100}
}

func readPasts(ctx context.Context, s full) error { return second(s.Pasts(ctx, tenant, recorded())) }

// savePasts writes past calls.
func savePasts(t testing.TB, s full, all ...approval.Past) {
	t.Helper()
	write(t, s, func(tx approval.Tx) {
		for _, p := range all {
			tx.SavePast(p)
		}
	})
}

// pasts checks what is kept of past calls, and which of them a query selects, in a transaction and
// outside of one.
func pasts(t *testing.T, db Database) {
	s := one(t, db)
	ends := epoch().Add(time.Minute)
	named := func(n int, c resolve.PastCall) approval.Past {
		p := past(n)
		p.Call = c
		return p
	}
	all := []approval.Past{
		past(0),
		named(1, resolve.PastCall{AgentID: "acme.b", Kind: resolve.MCPTool, Server: "bank", Tool: "pay_all",
			ServerRef: "mcp.bank.example"}),
		named(2, resolve.PastCall{AgentID: "acme.b", Principal: "zoë", Kind: resolve.Skill, Agent: "books",
			Skill: "pay"}),
		named(3, resolve.PastCall{AgentID: "acme.b", Session: "s2", Kind: resolve.Delegation, Agent: "books"}),
		past(4),
	}
	all[4].Ends, all[4].Kept = &ends, []string{"amount", "currency.code"}
	other := past(5)
	other.State = condition.PastAsked
	savePasts(t, s, append(slices.Clone(all), other)...)
	update(t, s, func(tx approval.Tx) error { // every field is kept
		for _, want := range all {
			got, err := tx.PastOf(want.ID)
			ok(t, err)
			equal(t, string(must(json.Marshal(got))(t)), string(must(json.Marshal([]approval.Past{want}))(t)))
		}
		return nil
	})

	for name, c := range map[string]struct {
		change func(*approval.PastQuery)
		want   string
	}{
		"all":         {func(*approval.PastQuery) {}, "01234"},
		"a state":     {func(q *approval.PastQuery) { q.State = condition.PastAsked }, "5"},
		"from":        {func(q *approval.PastQuery) { q.From = all[2].At }, "234"},
		"not ended":   {func(q *approval.PastQuery) { q.Now = ends.Add(-time.Microsecond) }, "01234"},
		"ended":       {func(q *approval.PastQuery) { q.Now = ends }, "0123"},
		"an agent":    {func(q *approval.PastQuery) { q.Agent = "acme.b" }, "123"},
		"a principal": {func(q *approval.PastQuery) { q.Principal = "zoë" }, "2"},
		"a session":   {func(q *approval.PastQuery) { q.Session, q.Agent = "s2", "acme.b" }, "3"},
		"kinds": {func(q *approval.PastQuery) {
			q.Kinds = []resolve.Kind{resolve.MCPTool, resolve.Skill}
		}, "12"},
		"a name":            {func(q *approval.PastQuery) { q.Names = []string{"pay"} }, "024"},
		"a name or another": {func(q *approval.PastQuery) { q.Names = []string{"books", "pay_*"} }, "123"},
		"a glob":            {func(q *approval.PastQuery) { q.Names = []string{"p*y"} }, "024"},
		"no wildcards of SQL": {func(q *approval.PastQuery) {
			q.Names = []string{"pay%*", `pay\*`, "*pa_", "_*"}
		}, ""},
		"a name of a tool": {func(q *approval.PastQuery) {
			q.Kinds, q.Names = []resolve.Kind{resolve.Tool}, []string{"pay", "books"}
		}, "04"},
		"a target": {func(q *approval.PastQuery) { q.Target = &all[2].Call }, "2"},
		"nothing":  {func(q *approval.PastQuery) { q.Agent = "nobody" }, ""},
	} {
		q := recorded()
		c.change(&q)
		outside := must(s.Pasts(t.Context(), tenant, q))(t)
		update(t, s, func(tx approval.Tx) error {
			for where, got := range map[string][]approval.Past{"outside": outside, "inside": must(tx.Pasts(q))(t)} {
				if numbers := numbersOf(got); numbers != c.want {
					t.Errorf("%s, %s: got %q, want %q", name, where, numbers, c.want)
				}
			}
			return nil
		})
		q.Limit = 2
		equal(t, len(must(s.Pasts(t.Context(), tenant, q))(t)), min(2, len(c.want)))
	}
	equal(t, len(must(s.Pasts(t.Context(), "other", recorded()))(t)), 0)

	// A second record of an id and state replaces the first, also in one transaction.
	again := all[4]
	again.Ends, again.At = nil, epoch().Add(time.Hour)
	savePasts(t, s, all[4], again)
	q := recorded()
	q.Now, q.From = ends, again.At
	equal(t, numbersOf(must(s.Pasts(t.Context(), tenant, q))(t)), "4")
	write(t, s, func(tx approval.Tx) {
		tx.DropPast(all[0].ID, condition.PastRan)
		tx.DropPast(other.ID, condition.PastRan) // it has no such row
	})
	equal(t, numbersOf(must(s.Pasts(t.Context(), tenant, recorded()))(t)), "1234")
	ok(t, s.SweepValues(t.Context(), all[2].Until))
	equal(t, numbersOf(must(s.Pasts(t.Context(), tenant, recorded()))(t)), "34")

	// Every query returns the mark of a restore.
	savePasts(t, s, approval.Past{State: approval.PastRestored, At: epoch(), Until: epoch().Add(time.Hour)})
	q.Agent = "nobody"
	marked := must(s.Pasts(t.Context(), tenant, q))(t)
	if len(marked) != 1 || marked[0].State != approval.PastRestored || !marked[0].At.Equal(epoch()) {
		t.Fatalf("got %+v", marked)
	}
}

// numbersOf returns the last digits of the ids in order.
func numbersOf(all []approval.Past) string {
	var out []string
	for _, p := range all {
		out = append(out, p.ID[len(p.ID)-1:])
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// pastsReplicas checks that transactions of two replicas that count past calls see each other's, whether
// they hold other locks or not.
func pastsReplicas(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	insert(t, a, request(1), request(2))
	const n, most = 64, 10
	everybody(t, crowd(n, func(i int) error {
		return []full{a, b}[i%2].Update(context.Background(), tenant, func(tx approval.Tx) error {
			if i%4 > 1 {
				r, err := tx.Request(request(1 + i%2).ID)
				if err != nil {
					return err
				}
				tx.Save(r)
			}
			before, err := tx.Pasts(recorded())
			if err == nil && len(before) < most {
				tx.SavePast(past(i))
			}
			return err
		})
	}))
	equal(t, len(must(a.Pasts(t.Context(), tenant, recorded()))(t)), most)
}
