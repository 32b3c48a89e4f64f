package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
)

// Keyed runs requests through random changes and compares lists by
// readers, groups and answers with those that a walk over all requests
// gives: while requests change, without the keys of some of
// them, and after a restore.
func Keyed(t *testing.T, place func(t *testing.T) Place) {
	p := place(t)
	s := p.one(t, Trust())
	random := rand.New(rand.NewPCG(1, 2))
	groups := []string{"risk", "desk", "ops", "leads", "", "odd\n'%"}
	people := []string{"ada", "bob", "olga"}
	any := func(all []string) string { return all[random.IntN(len(all))] }
	for n := range 60 {
		r := request(n)
		r.Created = epoch().Add(time.Duration(random.IntN(20)) * time.Second)
		r.Requester.Principal, r.Agent.ID = any(people), "acme."+any(people)
		r.Stages = []policy.Stage{{Group: any(groups), People: 2}, {Group: any(groups), People: 1}}
		insert(t, s, r)
	}
	step := func() {
		change(t, s, fmt.Sprintf("apr_%06d", random.IntN(60)), func(r *approval.Request) {
			at := epoch().Add(time.Duration(random.IntN(20)) * time.Minute)
			states := []approval.State{approval.Approved, approval.Denied, approval.Expired}
			switch random.IntN(5) {
			case 0:
				r.Called = append(r.Called, any(groups))
			case 1:
				r.Deadline = at
			case 2:
				r.Votes = append(r.Votes, approval.Vote{Person: any(people), Verdict: approval.Approve, At: at})
			case 3:
				r.State = states[random.IntN(2)]
			default:
				finish(r, states[1+random.IntN(2)], at)
			}
		})
	}
	for range 60 {
		step()
	}
	filters := []approval.Filter{{Readers: []string{}}, {AnsweredBy: "bob"}, {AnsweredBy: "nobody"}}
	for range 40 {
		f := approval.Filter{Groups: []string{any(groups), any(groups)}}
		if random.IntN(3) > 0 {
			f.Readers = []string{"group:" + any(groups), "agent:acme." + any(people), "name:" + any(people)}
		}
		if random.IntN(2) == 0 {
			f.Groups = nil
		}
		if random.IntN(3) == 0 {
			f.Principal = any(people)
		}
		if random.IntN(3) == 0 {
			f.Since = epoch().Add(10 * time.Second)
		}
		f.States = [][]approval.State{
			nil, {approval.Pending}, {approval.Approved, approval.Denied}, {approval.Pending, approval.Approved},
		}[random.IntN(4)]
		f.ByDue, f.Oldest = random.IntN(2) == 0, random.IntN(4) == 0
		filters = append(filters, f)
	}
	compare := func(when string) {
		for _, f := range filters {
			want := walked(t, s, f)
			got, total := paged(t, s, f)
			if !slices.Equal(got, want) || total != len(want) {
				t.Fatalf("%s, %+v:\ngot  %v of %d\nwant %v", when, f, got, total, want)
			}
		}
	}
	compare("after changes")

	// Restored requests have no keys.
	p.Exec("DELETE FROM request_keys WHERE id < 'apr_000010'; UPDATE requests SET keyed = 0 WHERE id < 'apr_000010'")
	p.Exec("UPDATE requests SET keyed = version - 1 WHERE id >= 'apr_000010' AND id < 'apr_000030'")
	for _, f := range filters { // all are found, and perhaps others
		got, _ := paged(t, s, f)
		for _, id := range walked(t, s, f) {
			if !slices.Contains(got, id) {
				t.Fatalf("not keyed, %+v: %s is missing", f, id)
			}
		}
	}
	for range 30 {
		step()
	}
	ok(t, s.Index(t.Context()))
	compare("indexed")
	p.Exec("UPDATE requests SET keyed = 0")
	ok(t, s.Index(t.Context()))
	compare("indexed again")
}

// paged reads a list in small pages. total is the total of the first page.
func paged(t *testing.T, s approval.Store, f approval.Filter) (all []string, total int) {
	t.Helper()
	f.Limit = 7
	for {
		p := page(t, s, f)
		if all = append(all, ids(p)...); f.Cursor == "" {
			total = p.Total
		}
		if f.Cursor = p.Next; p.Next == "" {
			return all, total
		}
	}
}

// walked filters all requests by a filter's definition.
func walked(t *testing.T, s approval.Store, f approval.Filter) (out []string) {
	t.Helper()
	whole := f
	whole.Groups, whole.Readers, whole.AnsweredBy, whole.Limit = nil, nil, "", 500
	for _, x := range page(t, s, whole).Requests {
		asked := len(f.Groups) == 0 || slices.ContainsFunc(append([]string{""}, f.Groups...), func(g string) bool {
			return slices.Contains(x.Groups, strings.ReplaceAll(g, "\n", " "))
		})
		reads := f.Readers == nil || slices.ContainsFunc(f.Readers, func(key string) bool {
			return slices.Contains(x.Answering.Readers, key)
		})
		answered := f.AnsweredBy == "" || x.State == approval.Pending &&
			slices.Contains(x.Answering.Answered, f.AnsweredBy)
		if asked && reads && answered {
			out = append(out, x.ID)
		}
	}
	return out
}
