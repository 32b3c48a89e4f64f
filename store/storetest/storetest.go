// Package storetest has the tests that every store must pass: each method, and each promise
// in the comments of approval.Store and store.Store, including races and replicas. An
// engine's test calls Run.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// Database makes an empty database and returns a function that opens it. Each call opens
// another replica. The suite closes the stores.
type Database func(t *testing.T) (open func() (store.Store, error))

// Place is an empty database, with functions to open it as a store and to run statements on
// it.
type Place struct {
	Engine string // sqlite or postgres
	Open   func(store.Trust) (store.Store, error)
	Exec   func(sql string)
}

// Run runs the suite on stores that are bound to a key.
func Run(t *testing.T, place func(t *testing.T) Place) {
	db := func(t *testing.T) func() (store.Store, error) {
		p := place(t)
		return func() (store.Store, error) { return p.Open(Trust()) }
	}
	for name, test := range map[string]func(*testing.T, Database){
		"requests":                  requests,
		"token names":               tokenNames,
		"round trip":                roundTrip,
		"lists tell who may answer": listsTellWhoMayAnswer,
		"list":                      list,
		"list by filter":            filters,
		"pages":                     pages,
		"cursors":                   cursors,
		"similar":                   similar,
		"questions":                 questions,
		"forms":                     forms,
		"heads":                     heads,
		"loads":                     loads,
		"latest":                    latest,
		"latest edited elsewhere":   latestEditedElsewhere,
		"one card":                  oneCard,
		"one card of two replicas":  oneCardReplicas,
		"memory":                    memories,
		"memory race":               memoryRace,
		"update":                    updates,
		"stale":                     stale,
		"version race":              versionRace,
		"failed updates":            failedUpdates,
		"panics":                    panics,
		"goexit":                    exits,
		"cancelled":                 cancelled,
		"two requests":              twoRequests,
		"tenants":                   tenants,
		"grants":                    grants,
		"live":                      live,
		"grant race":                grantRace,
		"freezes":                   freezes,
		"votes":                     votes,
		"past calls":                pasts,
		"past calls of replicas":    pastsReplicas,
		"due":                       due,
		"due failures":              dueFailures,
		"due failures stand back":   dueFailuresStandBack,
		"due race":                  dueRace,
		"changed":                   changed,
		"changed elsewhere":         changedElsewhere,
		"seal":                      seal,
		"seal one tenant":           sealTenant,
		"seal race":                 sealRace,
		"seal failure":              sealFailure,
		"seal fairly":               sealFairly,
		"leaves":                    leaves,
		"large entries":             largeEntries,
		"history":                   history,
		"prune":                     prune,
		"prune spares the open":     pruneSparesTheOpen,
		"tokens":                    tokens,
		"values":                    values,
		"value race":                takeRace,
		"sweep":                     sweep,
		"records": func(t *testing.T, db Database) {
			Records(t, func(t *testing.T) store.Records { return one(t, db) })
		},
		"records of replicas":     recordReplicas,
		"records and updates":     recordsAndUpdates,
		"records without a store": recordsClosed,
		"outbox":                  outbox,
		"outbox sweep":            sweepSent,
		"outbox leases":           leases,
		"outbox race":             claimRace,
		"backup":                  backup,
		"backup refused":          backupRefused,
		"backup while busy":       backupBusy,
		"ping and close":          pingAndClose,
		"odd texts":               oddTexts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

const tenant = "acme"

// epoch returns the time of the tests.
func epoch() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC) }

// one opens the only replica of a new database.
func one(t *testing.T, db Database) store.Store {
	t.Helper()
	return replica(t, db(t))
}

func replica(t *testing.T, open func() (store.Store, error)) store.Store {
	t.Helper()
	s, err := open()
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the result of a call and fails the test on an error: must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func asInput(err error, target **approval.InputError) bool { return errors.As(err, target) }

// refused expects an error of a kind.
func refused(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func tampered(t testing.TB, err error) {
	t.Helper()
	refused(t, err, store.ErrTampered)
}

func missing(t testing.TB, err error) {
	t.Helper()
	refused(t, err, approval.ErrNotFound)
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	refused(t, err, store.ErrUnavailable)
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// request makes a pending request. Different n give different requests.
func request(n int) *approval.Request {
	at := epoch().Add(time.Duration(n) * time.Second)
	due := at.Add(10 * time.Minute)
	id := fmt.Sprintf("apr_%06d", n)
	return &approval.Request{
		ID:       id,
		Tenant:   tenant,
		Version:  1,
		State:    approval.Pending,
		Created:  at,
		Deadline: at.Add(time.Hour),
		Due:      &due,
		Requester: approval.Requester{
			Runtime:   "bot",
			Principal: "ada",
			Session:   "s1",
			Owners:    []string{"olga"},
		},
		Agent: approval.Agent{ID: "acme.trader", Version: "1.2.0", Name: "Trader"},
		Revisions: []approval.Revision{{
			Call: resolve.Call{
				Kind:        resolve.Tool,
				Tool:        "execute_trade",
				Args:        resolve.Raw(`{"amount": 20000.00, "note":"<b>&\u0000é"}`),
				Principal:   "ada",
				Annotations: map[string]bool{"destructiveHint": true},
			},
			Binding: "sha256:" + id,
			Plan:    "p1",
			At:      at,
			Decision: resolve.Decision{
				Outcome:          resolve.Ask,
				Message:          "Trade " + id + "?",
				MissingVariables: []string{},
				Reasons: []resolve.Reason{{
					Source: resolve.FromPolicy,
					Policy: "acme.trades",
					Rule:   "large",
					Code:   resolve.ConditionTrue,
					Detail: "amount gt",
					File:   "t.yaml",
					Line:   3,
				}},
			},
		}},
		Stages:    []policy.Stage{{Group: "risk", People: 2}, {Group: "desk", People: 1}},
		OnTimeout: policy.TimeoutDeny,
		Scheduled: []approval.Scheduled{{At: due, Kind: approval.Escalate, To: "leads"}},
		Grants:    policy.Grants{MaxAge: time.Hour},
	}
}

// record makes a ledger entry.
func record(t testing.TB, tenant, kind, subject string, at time.Time) ledger.Record {
	t.Helper()
	e := ledger.Entry{
		Time:    at,
		Tenant:  tenant,
		Type:    kind,
		Subject: subject,
		Actor:   "bot",
		Facts:   map[string]any{"n": "1"},
		Sealed:  map[string]string{"args": "{}"},
	}
	r, err := e.Seal(rand.Reader)
	ok(t, err)
	return r
}

// update runs one transaction of the tenant that must succeed.
func update(t testing.TB, s store.Store, fn func(approval.Tx) error) {
	t.Helper()
	ok(t, s.Update(context.Background(), tenant, fn))
}

// write is update for functions that only write.
func write(t testing.TB, s store.Store, fn func(approval.Tx)) {
	t.Helper()
	ok(t, s.Update(context.Background(), tenant, func(tx approval.Tx) error {
		fn(tx)
		return nil
	}))
}

// inserting adds one request. It may be refused.
func inserting(s store.Store, n int) error {
	return s.Update(context.Background(), tenant, func(tx approval.Tx) error {
		tx.Insert(request(n))
		return nil
	})
}

// open opens a place. The test must close it.
func (p Place) open(t *testing.T, trust store.Trust) store.Store {
	t.Helper()
	return must(p.Open(trust))(t)
}

// one opens a replica of a place.
func (p Place) one(t *testing.T, trust store.Trust) store.Store {
	t.Helper()
	return replica(t, func() (store.Store, error) { return p.Open(trust) })
}

// found returns a request that must exist.
func found(t testing.TB, s approval.Store, id string) *approval.Request {
	t.Helper()
	return must(s.Request(context.Background(), tenant, id))(t)
}

func page(t testing.TB, s approval.Store, f approval.Filter) approval.Page {
	t.Helper()
	return must(s.Requests(context.Background(), tenant, f))(t)
}

func jobs(t testing.TB, s store.Store, state store.JobState, most int) []store.Job {
	t.Helper()
	return must(s.Jobs(context.Background(), tenant, state, most))(t)
}

// claim leases deliveries for a minute.
func claim(t testing.TB, s store.Store, owner string, targets []string, now time.Time, most int) []store.Job {
	t.Helper()
	return must(s.Claim(context.Background(), owner, targets, now, time.Minute, most))(t)
}

// insert adds requests.
func insert(t testing.TB, s store.Store, all ...*approval.Request) {
	t.Helper()
	write(t, s, func(tx approval.Tx) {
		for _, r := range all {
			tx.Insert(r)
		}
	})
}

// change changes a request within a transaction.
func change(t testing.TB, s store.Store, id string, fn func(*approval.Request)) {
	t.Helper()
	update(t, s, func(tx approval.Tx) error {
		r, err := tx.Request(id)
		if err != nil {
			return err
		}
		fn(r)
		tx.Save(r)
		return nil
	})
}

// finish closes a request.
func finish(r *approval.Request, state approval.State, at time.Time) {
	r.State = state
	r.Cause = approval.ByVotes
	r.Closed = &at
	r.Due = nil
	r.Reason = "because"
}

// crowd runs fn n times at once and returns their errors in order.
func crowd(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			errs[i] = fn(i)
		})
	}

	close(begin)
	all.Wait()
	return errs
}

// everybody expects all functions of a crowd to succeed.
func everybody(t testing.TB, errs []error) {
	t.Helper()
	ok(t, errors.Join(errs...))
}

func ids(p approval.Page) []string {
	out := []string{}
	for _, s := range p.Requests {
		out = append(out, s.ID)
	}
	return out
}

func sameIDs(t testing.TB, got []string, want ...int) {
	t.Helper()
	var names []string
	for _, n := range want {
		names = append(names, fmt.Sprintf("apr_%06d", n))
	}
	if !slices.Equal(got, names) {
		t.Fatalf("got %v, want %v", got, names)
	}
}

// closed waits until a channel is closed.
func closed(t testing.TB, ch <-chan struct{}) {
	t.Helper()
	testwait.Receive(t, "the change to be noticed", ch)
}

func number(n int) string { return strconv.Itoa(n) }

// bump changes a request so that changes can be counted.
func bump(r *approval.Request) { r.Redact = append(r.Redact, "x") }

func bumps(r *approval.Request) int { return len(r.Redact) }
