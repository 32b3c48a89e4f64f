package storetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func requests(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	missing(t, second(s.Request(ctx, tenant, "apr_000001")))
	refused(t, s.Update(ctx, tenant, func(tx approval.Tx) error {
		_, err := tx.Request("apr_000001")
		return err
	}), approval.ErrNotFound)
	insert(t, s, request(1))
	got := found(t, s, "apr_000001")
	equal(t, got.Version, 1)
	change(t, s, got.ID, func(r *approval.Request) {
		bump(r)
		bump(r)
		bump(r)
	})
	got = found(t, s, got.ID)
	equal(t, got.Version, 2)
	equal(t, bumps(got), 3)
	if err := inserting(s, 1); err == nil {
		t.Fatal("the same id was inserted twice")
	}
}

func roundTrip(t *testing.T, db Database) {
	s := one(t, db)
	r, now := request(7), epoch()
	r.State = approval.Consumed
	r.Cause = approval.ByConsume
	r.By = "bot"
	r.Reason = "r\x00\u202e"
	r.Answer = "no"
	r.Decided = &now
	r.Closed = &now
	r.Due = nil
	r.Votes = []approval.Vote{{
		Person:  "ada",
		Verdict: approval.Approve,
		Channel: "cli",
		Groups:  []string{"risk"},
		Full:    true,
		At:      now,
		Grant:   &approval.GrantOffer{MaxUses: 3},
	}}
	r.Permit = &approval.Permit{Expires: now, Key: "k", By: "bot", Consumed: &now}
	r.Called = []string{"leads"}
	r.Redact = []string{"card"}
	r.GrantID = "grt_1"
	r.Replaces = "apr_0"
	r.Replaced = "apr_9"
	r.Revisions = append(r.Revisions, r.Revisions[0])
	r.Revisions[1].Number = 1
	r.Revisions[1].Author = "ada"
	r.Revisions[1].Call.Args = resolve.Raw(strings.Repeat(`"long"`, 100_000))
	insert(t, s, r)
	want := string(must(json.Marshal(r))(t))
	equal(t, string(must(json.Marshal(found(t, s, r.ID)))(t)), want)
	write(t, s, func(tx approval.Tx) {
		got, err := tx.Request(r.ID)
		ok(t, err)
		equal(t, string(must(json.Marshal(got))(t)), want)
	})
	p := page(t, s, approval.Filter{})
	equal(t, listed(t, p.Requests[0]), string(must(json.Marshal(approval.Summarize(r)))(t)))
}

// listed returns the summary of a request as in a list, without the size, which only stores
// know.
func listed(t *testing.T, s approval.Summary) string {
	if s.Bytes < 500 {
		t.Fatalf("request %s has %d bytes", s.ID, s.Bytes)
	}
	s.Bytes = 0
	return string(must(json.Marshal(s))(t))
}

// heads checks versions and sizes, and that missing requests are left out.
func heads(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	large := request(1)
	large.Revisions[0].Call.Args = resolve.Raw(`"` + strings.Repeat("x", 1<<20) + `"`)
	insert(t, s, large, request(2))
	change(t, s, request(2).ID, func(r *approval.Request) { r.Called = []string{"leads"} })
	got := must(s.Heads(ctx, tenant, []string{large.ID, request(2).ID, "apr_nothing", "\x00"}))(t)
	equal(t, len(got), 2)
	equal(t, got[large.ID].Version, int64(1))
	equal(t, got[request(2).ID].Version, int64(2))
	if small := got[request(2).ID].Bytes; got[large.ID].Bytes < 1<<20 || small < 500 || small > 1<<14 {
		t.Fatalf("got %v", got)
	}
	equal(t, len(must(s.Heads(ctx, "other", []string{large.ID}))(t)), 0)
	equal(t, len(must(s.Heads(ctx, tenant, nil))(t)), 0)
	many := make([]string, 300)
	for i := range many {
		many[i] = request(i).ID
	}
	equal(t, len(must(s.Heads(ctx, tenant, many))(t)), 2)
}

// loads checks the number of open requests of each token.
func loads(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	equal(t, len(must(s.Loads(ctx, tenant))(t)), 0)
	for i := range 5 {
		r := request(i)
		if r.Requester.Runtime = "one"; i > 2 {
			r.Requester.Runtime = "two"
		}
		insert(t, s, r)
	}

	got := must(s.Loads(ctx, tenant))(t)
	equal(t, len(got), 2)
	equal(t, got["one"].Requests, int64(3))
	if one, two := got["one"].Bytes, got["two"].Bytes; two < 1000 || one < two+500 {
		t.Fatalf("got %v", got)
	}
	change(t, s, request(0).ID, func(r *approval.Request) { finish(r, approval.Denied, epoch()) })
	change(t, s, request(1).ID, func(r *approval.Request) { r.Called = []string{"leads"} })
	got = must(s.Loads(ctx, tenant))(t)
	equal(t, got["one"].Requests, int64(2))
	equal(t, len(must(s.Loads(ctx, "other"))(t)), 0)
}

// listsTellWhoMayAnswer checks that a list shows who may answer a pending request, updated
// after each change.
func listsTellWhoMayAnswer(t *testing.T, db Database) {
	s := one(t, db)
	r := request(1)
	r.Stages[0].StandIns = []policy.StandIn{{Group: "leads", After: time.Hour}}
	insert(t, s, r)
	listed := func() string {
		page := page(t, s, approval.Filter{})
		return string(must(json.Marshal(page.Requests[0].Answering))(t))
	}
	equal(t, listed(), string(must(json.Marshal(approval.Summarize(r).Answering))(t)))

	write(t, s, func(tx approval.Tx) {
		got, err := tx.Request(r.ID)
		ok(t, err)
		got.Votes = append(got.Votes, approval.Vote{Person: "ada", Verdict: approval.Approve})
		got.Called = []string{"leads"}
		tx.Save(got)
		r = got
	})
	equal(t, listed(), string(must(json.Marshal(approval.Summarize(r).Answering))(t)))
	if !strings.Contains(listed(), "ada") || !strings.Contains(listed(), "leads") {
		t.Fatalf("the list tells %s", listed())
	}
}

// question makes the request of a tool's question.
func question(n int) *approval.Request {
	r := request(n)
	r.ID = "qst_" + number(n)
	r.Question = &approval.Question{
		Asker:   "files",
		Prompt:  "Allow \u202e<b>?",
		Choices: []string{"", "Yes", "Yes", "No"},
		Default: 3,
		Groups:  []string{"ops"},
	}
	r.Stages, r.Revisions[0].Binding = []policy.Stage{{Group: "ops", People: 1}}, "sha256:"+r.ID
	return r
}

// questions checks that questions are kept, listed and found like other requests, and can
// be distinguished from them.
func questions(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	chosen := 2
	insert(t, s, request(1), question(2))
	change(t, s, "qst_"+number(2), func(r *approval.Request) {
		finish(r, approval.Answered, epoch())
		r.Cause, r.Chosen = approval.ByChoice, &chosen
		r.Votes = []approval.Vote{{
			Person:  "ada",
			Verdict: approval.Choose,
			Groups:  []string{"ops"},
			Binding: r.Binding(),
			Chosen:  &chosen,
			At:      epoch(),
		}}
	})
	got := found(t, s, "qst_"+number(2))
	equal(t, *got.Chosen, 2)
	equal(t, *got.Votes[0].Chosen, 2)
	equal(t, len(got.Question.Choices), 4)
	equal(t, string(must(json.Marshal(got.Question))(t)), string(must(json.Marshal(question(2).Question))(t)))
	all := page(t, s, approval.Filter{})
	equal(t, len(all.Requests), 2)
	equal(t, all.Requests[1].Question, false)
	for _, f := range []approval.Filter{
		{States: []approval.State{approval.Answered}},
		{Groups: []string{"ops"}},
		{Limit: 1},
		{States: []approval.State{approval.Answered}, ByDue: true},
	} {
		p := page(t, s, f)
		if len(p.Requests) != 1 ||
			listed(t, p.Requests[0]) != string(must(json.Marshal(approval.Summarize(got)))(t)) {
			t.Fatalf("%+v lists %+v", f, p)
		}
	}

	equal(t, page(t, s, approval.Filter{States: []approval.State{approval.Answered}}).Total, 1)

	n, _, err := s.Prune(ctx, tenant, epoch().Add(time.Second))
	ok(t, err)
	equal(t, n, 1)
	left := found(t, s, got.ID)
	// the tool's words are gone, the picked choice is not
	equal(t, left.Question.Prompt+strings.Join(left.Question.Choices, ""), "")
	equal(t, len(left.Question.Choices), 4)
	equal(t, *left.Chosen, 2)
	equal(t, left.Question.Asker, "files")
}

// forms checks that forms are kept with their answers and with the agent's statements, and
// that pruning removes the words.
func forms(t *testing.T, db Database) {
	s := one(t, db)
	r := question(3)
	r.Question.Choices, r.Question.Default = nil, 0
	r.Question.Schema = json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}}}`)
	r.Context = []info.Item{{Label: "Why", Text: "a <b>\u202e"}}
	insert(t, s, r)
	change(t, s, r.ID, func(r *approval.Request) {
		finish(r, approval.Answered, epoch())
		r.Cause, r.Data = approval.BySubmission, json.RawMessage(`{"b":"<x>"}`)
		r.Votes = []approval.Vote{{
			Person:  "ada",
			Verdict: approval.Submit,
			Groups:  []string{"ops"},
			Binding: r.Binding(),
			Data:    r.Data,
			At:      epoch(),
		}}
	})
	got := must(s.Request(t.Context(), tenant, r.ID))(t)
	equal(t, string(got.Question.Schema), string(r.Question.Schema))
	equal(t, got.Context[0], r.Context[0])
	var data struct{ B string }
	ok(t, json.Unmarshal(got.Data, &data))
	equal(t, data.B, "<x>")

	n, _, err := s.Prune(t.Context(), tenant, epoch().Add(time.Second))
	ok(t, err)
	equal(t, n, 1)
	left := must(s.Request(t.Context(), tenant, got.ID))(t)
	equal(t, string(left.Data)+string(left.Question.Schema)+string(left.Votes[0].Data), "")
	equal(t, len(left.Context), 0)
	equal(t, left.Cause, approval.BySubmission)
}

func list(t *testing.T, db Database) {
	s := one(t, db)
	p := page(t, s, approval.Filter{})
	if p.Requests == nil || len(p.Requests) != 0 || p.Next != "" || p.Total != 0 {
		t.Fatalf("an empty list: %+v", p)
	}
	insert(t, s, request(1), request(3), request(2))
	sameIDs(t, ids(page(t, s, approval.Filter{})), 3, 2, 1)
	change(t, s, "apr_000001", func(r *approval.Request) { r.Deadline = r.Deadline.Add(time.Hour) })
	sameIDs(t, ids(page(t, s, approval.Filter{ByDue: true})), 2, 3, 1)
	change(t, s, "apr_000003", func(r *approval.Request) {
		r.Votes = []approval.Vote{{
			Person:  "ada",
			Verdict: approval.Approve,
			Groups:  []string{"risk"},
			Binding: r.Binding(),
		}}
	})
	got := page(t, s, approval.Filter{}).Requests[0]
	equal(t, got.Approvals, 1)
	equal(t, got.Needed, 3)
	equal(t, got.Version, 2)
}

func filters(t *testing.T, db Database) {
	s := one(t, db)
	var all []*approval.Request
	for n := range 6 {
		all = append(all, request(n+1))
	}
	all[0].Agent.ID = "acme.other"
	all[1].Revisions[0].Call.Tool = "refund"
	all[2].Requester.Principal = "bob"
	all[3].Stages = []policy.Stage{{Group: "ops", People: 1}}
	all[4].Stages = []policy.Stage{{Group: "", People: 1}}
	all[5].Called = []string{"leads"}
	insert(t, s, all...)
	change(t, s, all[0].ID, func(r *approval.Request) { finish(r, approval.Denied, epoch()) })
	change(t, s, all[1].ID, func(r *approval.Request) { r.State = approval.Approved })
	for name, c := range map[string]struct {
		f    approval.Filter
		want []int
	}{
		"all":             {approval.Filter{}, []int{6, 5, 4, 3, 2, 1}},
		"state":           {approval.Filter{States: []approval.State{approval.Pending}}, []int{6, 5, 4, 3}},
		"states":          {approval.Filter{States: []approval.State{approval.Approved, approval.Denied}}, []int{2, 1}},
		"unknown state":   {approval.Filter{States: []approval.State{"odd' OR 1=1 --"}}, nil},
		"agent":           {approval.Filter{Agent: "acme.other"}, []int{1}},
		"target":          {approval.Filter{Target: "tool refund"}, []int{2}},
		"principal":       {approval.Filter{Principal: "bob"}, []int{3}},
		"group":           {approval.Filter{Groups: []string{"ops"}}, []int{5, 4}},
		"called group":    {approval.Filter{Groups: []string{"leads"}}, []int{6, 5}},
		"groups":          {approval.Filter{Groups: []string{"ops", "leads"}}, []int{6, 5, 4}},
		"part of a group": {approval.Filter{Groups: []string{"op"}}, []int{5}},
		"odd group":       {approval.Filter{Groups: []string{"%", "\n", "ops\nx", "'"}}, []int{5}},
		"since":           {approval.Filter{Since: all[4].Created}, []int{6, 5}},
		"many": {approval.Filter{
			Groups: []string{"risk"},
			Agent:  "acme.trader",
			States: []approval.State{approval.Pending},
			ByDue:  true,
		}, []int{3, 5, 6}},
		"oldest":           {approval.Filter{Oldest: true, Limit: 500}, []int{1, 2, 3, 4, 5, 6}},
		"agent's injected": {approval.Filter{Agent: "x' OR '1'='1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := page(t, s, c.f)
			sameIDs(t, ids(p), c.want...)
			equal(t, p.Total, len(c.want))
		})
	}
}

func pages(t *testing.T, db Database) {
	s := one(t, db)
	const n = 23
	for i := range n {
		r := request(i)
		if i%2 == 0 { // equal times must not lose or repeat anything
			r.Created, r.Deadline = epoch(), epoch()
		}
		if i%3 == 0 {
			finish(r, approval.Expired, epoch())
		}
		insert(t, s, r)
	}

	for _, f := range []approval.Filter{{Limit: 5}, {Limit: 5, ByDue: true}, {Limit: 5, Oldest: true}} {
		seen := map[string]bool{}
		for count := 5; ; count += 5 {
			p := page(t, s, f)
			equal(t, p.Total, n)
			for _, id := range ids(p) {
				if seen[id] {
					t.Fatalf("%s stands on two pages", id)
				}
				seen[id] = true
			}

			if f.Cursor = p.Next; f.Cursor == "" {
				break
			}
			equal(t, len(seen), count)
		}

		equal(t, len(seen), n)
	}

	equal(t, len(page(t, s, approval.Filter{Limit: n}).Requests), n)
	equal(t, page(t, s, approval.Filter{Limit: n}).Next, "")
	equal(t, len(page(t, s, approval.Filter{Limit: 100_000}).Requests), n)
}

func cursors(t *testing.T, db Database) {
	s := one(t, db)
	insert(t, s, request(1), request(2))
	next := page(t, s, approval.Filter{Limit: 1}).Next
	for name, f := range map[string]approval.Filter{
		"no cursor":   {Cursor: "!"},
		"empty":       {Cursor: "Yw"},
		"other order": {Cursor: next, ByDue: true},
		"cut":         {Cursor: next[:4]},
	} {
		_, err := s.Requests(t.Context(), tenant, f)
		if bad := new(approval.InputError); !asInput(err, &bad) || bad.Field != "cursor" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func similar(t *testing.T, db Database) {
	s := one(t, db)
	for n := 1; n <= 4; n++ {
		r := request(n)
		if n != 2 { // still open
			finish(r, approval.Denied, epoch().Add(-time.Duration(n)*time.Minute))
		}
		insert(t, s, r)
	}

	other := request(5)
	other.Agent.ID = "acme.other"
	finish(other, approval.Denied, epoch())
	insert(t, s, other)
	got := must(s.Similar(t.Context(), tenant, "acme.trader", "tool execute_trade", 2))(t)
	var names []string
	for _, r := range got {
		names = append(names, r.ID)
	}
	sameIDs(t, names, 1, 3)
	equal(t, got[0].Reason, "because")
	large := request(6)
	large.Revisions[0].Call.Args = resolve.Raw(`"` + strings.Repeat("x", 5<<20) + `"`)
	finish(large, approval.Denied, epoch())
	insert(t, s, large)
	equal(t, len(must(s.Similar(t.Context(), tenant, "acme.trader", "tool execute_trade", 4))(t)), 1)
}

// latest checks that requests are found by their current binding, even after edits.
func latest(t *testing.T, db Database) {
	s := one(t, db)
	find := func(binding string) (id string) {
		write(t, s, func(tx approval.Tx) {
			r, err := tx.Latest(binding)
			ok(t, err)
			if id = ""; r != nil {
				id = r.ID
			}
		})
		return id
	}
	equal(t, find("sha256:b"), "")
	for n := 1; n <= 3; n++ {
		r := request(n)
		r.Revisions[0].Binding = "sha256:b"
		if n != 2 {
			finish(r, approval.Denied, epoch())
		}
		insert(t, s, r)
	}

	equal(t, find("sha256:b"), "apr_000002") // it is open, the newer ones have ended
	change(t, s, "apr_000002", func(r *approval.Request) { finish(r, approval.Denied, epoch()) })
	equal(t, find("sha256:b"), "apr_000003")
	change(t, s, "apr_000003", func(r *approval.Request) {
		r.Revisions = append(r.Revisions, r.Revisions[0])
		r.Current().Binding = "sha256:c"
	})
	equal(t, find("sha256:b"), "apr_000002")
	equal(t, find("sha256:c"), "apr_000003")

	for n := 4; n <= 5; n++ { // the pending one goes before a newer one that is approved
		r := request(n)
		r.Revisions[0].Binding = "sha256:d"
		if n == 5 {
			r.State, r.Permit = approval.Approved, &approval.Permit{Expires: epoch().Add(time.Hour)}
		}
		insert(t, s, r)
	}
	equal(t, find("sha256:d"), "apr_000004")
}

// latestEditedElsewhere checks that a replica that remembers the original request finds it
// by the call to which another replica edited it.
func latestEditedElsewhere(t *testing.T, db Database) {
	open := db(t)
	a, b := replica(t, open), replica(t, open)
	insert(t, a, request(1))
	change(t, b, request(1).ID, func(r *approval.Request) {
		r.Revisions = append(r.Revisions, r.Revisions[0])
		r.Current().Binding = "sha256:edited"
	})
	for _, s := range []full{a, b} {
		update(t, s, func(tx approval.Tx) error {
			r, err := tx.Latest("sha256:edited")
			if err != nil {
				return err
			}
			equal(t, r.ID, request(1).ID)
			equal(t, len(r.Revisions), 2)
			return nil
		})
	}
}

// oddTexts checks that texts that databases don't accept are kept, or replaced only in
// lists.
func oddTexts(t *testing.T, db Database) {
	ctx := t.Context()
	s := one(t, db)
	r := request(1)
	r.Revisions[0].Call.Tool = "a\x00b"
	r.Revisions[0].Decision.Message = "m\x00" + strings.Repeat("ü", 300)
	r.Requester.Principal = "p\x00"
	r.Stages = []policy.Stage{{Group: "line\nend", People: 1}}
	insert(t, s, r)
	got := found(t, s, r.ID)
	equal(t, got.Current().Call.Tool, "a\x00b")
	p := page(t, s, approval.Filter{Groups: []string{"line\nend"}, Principal: "p\x00"})
	equal(t, p.Total, 1)
	equal(t, p.Requests[0].Target, "tool a\uFFFDb")
	equal(t, len([]rune(p.Requests[0].Message)), 200)
	// a name that a URL may contain: there is no such request, which is not an error of the
	// store
	for _, id := range []string{"\x00", "a\xff"} {
		missing(t, second(s.Request(ctx, tenant, id)))
		missing(t, second(s.Grant(ctx, tenant, id)))
		missing(t, s.RevokeToken(ctx, tenant, id, epoch()))
		equal(t, len(must(s.History(ctx, tenant, id, 0, 10))(t)), 0)
		equal(t, len(must(s.Similar(ctx, tenant, id, id, 1))(t)), 0)
		equal(t, page(t, s, approval.Filter{Agent: id, Cursor: "YzEg"}).Total, 0)
	}
}
