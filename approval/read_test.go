package approval_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store/sqlite"
)

// readingPeople has one person for each relation to the request of TestWhoMayRead, each in their
// own groups.
const readingPeople = `schema_version: "1.0.0"
people:
  - {id: answers, groups: [risk]}
  - {id: stands-in, groups: [deputies]}
  - {id: is-called, groups: [leads]}
  - {id: asks}
  - {id: asks-too}
  - {id: is-acted-for, also: [Acted.For@example.com]}
  - {id: owns-by-directory, owns: [desk]}
  - {id: owns-by-file, also: [Otto]}
  - {id: administers, groups: [admins]}
  - {id: audits, groups: [auditors]}
  - {id: answered-before, groups: [alumni]}
  - {id: outside, groups: [traders], owns: [other]}
readers: [auditors]
`

// readable returns a request that everyone except outside and answered-before may read.
func readable(id string) *approval.Request {
	require := &policy.Require{Escalate: []policy.Escalation{{After: time.Hour, To: "leads"}}}
	call := resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: []byte(`{}`), Principal: "acted.for@example.com"}
	return &approval.Request{
		ID:      id,
		Tenant:  "acme",
		Version: 1,
		State:   approval.Pending,
		Agent:   approval.Agent{ID: "desk"},
		Created: time.Unix(1, 0),
		Requester: approval.Requester{
			Runtime:   "outside", // the name of a token makes no one a reader
			Person:    "asks",
			Principal: call.Principal,
			Also:      []string{"rt-2"},
			AlsoOf:    []string{"asks-too"},
			Owners:    []string{"otto"},
		},
		Stages: []policy.Stage{{
			Group:    "risk",
			People:   1,
			StandIns: []policy.StandIn{{Group: "deputies", After: time.Hour}},
		}},
		Revisions: []approval.Revision{{
			Call:     call,
			Binding:  "sha256:" + id,
			Decision: resolve.Decision{Require: require},
		}},
		Votes: []approval.Vote{{Person: "answered-before", Verdict: approval.Approve, Binding: "sha256:" + id}},
	}
}

// reading returns a service on a store with some requests.
func reading(t *testing.T, file string, requests ...*approval.Request) *approval.Service {
	t.Helper()
	d, findings := people.Parse("people.yaml", []byte(file))
	if d == nil {
		t.Fatal(findings)
	}
	s, err := sqlite.Open(t.Context(), t.TempDir()+"/a.db", sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	must(t, s.Update(t.Context(), "acme", func(tx approval.Tx) error {
		for _, r := range requests {
			tx.Insert(r)
		}
		return nil
	}))
	admins := func(string) string { return "admins" }

	return approval.New(s, nil, d, time.Now, rand.Reader, approval.Config{Admins: admins})
}

// mayRead reports whether the person may read the request, and checks that all ways to read it
// agree.
func mayRead(t *testing.T, s *approval.Service, who, id string) bool {
	t.Helper()
	by, err := s.Reader(t.Context(), "acme", who)
	must(t, err)
	_, err = s.Read(t.Context(), "acme", id, by)
	if err != nil && !errors.Is(err, approval.ErrNotFound) {
		t.Fatal(err)
	}
	read := err == nil
	page, err := s.List(t.Context(), "acme", by, approval.Filter{Limit: 500}, nil)
	must(t, err)
	listed := slices.ContainsFunc(page.Requests, func(x approval.Summary) bool { return x.ID == id })
	entries, err := s.Entries(t.Context(), "acme", by, []approval.About{{Type: approval.EventOpened, Subject: id}})
	must(t, err)
	if listed != read || entries[0] != read {
		t.Errorf("%s: read %t, listed %t, entries %t", who, read, listed, entries[0])
	}

	return read
}

func TestWhoMayRead(t *testing.T) {
	r := readable("apr_1")
	ended := readable("apr_2")
	ended.State = approval.Denied
	question := readable("qst_1")
	question.Question = &approval.Question{}
	s := reading(t, readingPeople, r, ended, question)
	users := []string{"is-acted-for", "asks", "asks-too", "owns-by-directory", "owns-by-file", "administers", "audits"}
	for _, line := range strings.Split(strings.TrimSpace(readingPeople), "\n") {
		_, rest, ok := strings.Cut(line, "{id: ")
		if !ok {
			continue
		}
		who := rest[:strings.IndexAny(rest, ",}")]
		want := who != "outside" && who != "answered-before"
		for id, want := range map[string]bool{r.ID: want, ended.ID: want, question.ID: slices.Contains(users, who)} {
			if got := mayRead(t, s, who, id); got != want {
				t.Errorf("%s reads %s: %t, want %t", who, id, got, want)
			}
		}
	}
	if mayRead(t, s, "nobody-knows-me", r.ID) {
		t.Error("somebody whom the directory doesn't know reads")
	}
	open := reading(t, strings.Replace(readingPeople, "[auditors]\n", "everybody\n", 1), r)
	if !mayRead(t, open, "outside", r.ID) || mayRead(t, open, "nobody-knows-me", r.ID) {
		t.Error("readers: everybody")
	}
}

// TestListsOfWhatMayBeReadAreWhole: among 3,000 requests of others, a reader's list contains all of
// theirs, from one page of the store.
func TestListsOfWhatMayBeReadAreWhole(t *testing.T) {
	var all []*approval.Request
	for i := range 3000 {
		r := readable(fmt.Sprintf("apr_%04d", i))
		r.Created = time.Unix(int64(i), 0)
		if i%1000 == 0 {
			r.Stages = []policy.Stage{{Group: "traders", People: 1}}
		}
		all = append(all, r)
	}
	s := reading(t, readingPeople, all...)
	by, err := s.Reader(t.Context(), "acme", "outside")
	must(t, err)
	page, err := s.List(t.Context(), "acme", by, approval.Filter{Limit: 25}, nil)
	must(t, err)
	if len(page.Requests) != 3 || page.Total != 3 || page.Next != "" {
		t.Errorf("%d of %d requests, next %q", len(page.Requests), page.Total, page.Next)
	}
}

func TestFiguresAreOnesOwn(t *testing.T) {
	s := reading(t, readingPeople, readable("apr_1"))
	votes := []approval.VoteFact{{Person: "answers"}, {Person: "outside"}}
	for who, want := range map[string]int{"answers": 1, "owns-by-directory": 0, "administers": 2, "audits": 2} {
		by, err := s.Reader(t.Context(), "acme", who)
		must(t, err)
		if got := by.Votes(votes); len(got) != want {
			t.Errorf("%s reads %d votes, want %d", who, len(got), want)
		}
	}
}
