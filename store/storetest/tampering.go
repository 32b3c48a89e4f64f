package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	stores "github.com/assent-dev/assent/store"
)

// Tampering runs the suite of rows that were written or changed by an attacker who has the
// database but not the key.
func Tampering(t *testing.T, place func(t *testing.T) Place) {
	for name, c := range map[string]struct {
		sql  string
		read func(context.Context, full) error
	}{
		"a state": {
			`UPDATE requests SET body = replace(body, '"state":"pending"', '"state":"approved"')`,
			readRequest,
		},
		"a vote in a document": {
			`UPDATE requests SET body = replace(body, '"on_timeout"', '"votes":[{"person":"eve"}],"on_timeout"')`,
			lockRequest,
		},
		"a version": {`UPDATE requests SET version = 7`, readRequest},
		"a request of another tenant": {
			`UPDATE requests SET tenant = 'other'`,
			func(ctx context.Context, s full) error {
				return second(s.Request(ctx, "other", request(1).ID))
			},
		},
		"another request's code": {
			`UPDATE requests SET code = (SELECT r.code FROM requests AS r WHERE r.id = 'apr_000002')`,
			readRequest,
		},
		"no code":                     {`UPDATE requests SET code = NULL`, readRequest},
		"a request that is worked on": {`UPDATE requests SET body = replace(body, 'ada', 'eve')`, workOnRequest},
		"a request among similar ones": {
			`UPDATE requests SET body = replace(body, 'ada', 'eve'), closed = 1`,
			func(ctx context.Context, s full) error {
				return second(s.Similar(ctx, tenant, "acme.trader", "tool execute_trade", 5))
			},
		},
		"a message in a list": {`UPDATE requests SET message = 'Trade nothing?'`, listRequests},
		"a state in a list":   {`UPDATE requests SET state = 'answered'`, listRequests},
		"a time that is due":  {`UPDATE requests SET due = 1 WHERE id = 'apr_000001'`, dueRequest},
		"a call that is another": {
			`UPDATE requests SET binding = 'sha256:other' WHERE id = 'apr_000001'`,
			latestRequest,
		},
		"a grant's uses": {`UPDATE grants SET body = replace(body, '"max_uses":3', '"max_uses":9')`, readGrant},
		"a grant that is listed": {
			`UPDATE grants SET body = replace(body, '"max_uses":3', '"max_uses":9')`,
			listGrants,
		},
		"a grant that covers": {`UPDATE grants SET body = replace(body, '"max_uses":3', '"max_uses":9')`, liveGrant},
		"a grant out of nothing": {
			`INSERT INTO grants SELECT tenant, 'grt_forged', agent, target, created, expires, revoked, max_uses, ` +
				`uses, pruned, body, version, code FROM grants`,
			liveGrant,
		},
		"a freeze's agent":       {`UPDATE frozen SET body = replace(body, 'ada', 'eve')`, readFreezes},
		"freezes taken away":     {`DELETE FROM frozen`, readFreezes},
		"freezes without a code": {`UPDATE frozen SET body = '[]', code = NULL`, lockFreezes},
		"an amount of a past call": {
			`UPDATE pasts SET body = (SELECT e.leaf FROM entries AS e LIMIT 1)`,
			readPasts,
		},
		"a past call with another id": {`UPDATE pasts SET id = 'run_000002'`, readPasts},
		"an idempotency key":          {`UPDATE memories SET request = 'apr_000002'`, remembered},
		"a token's scopes":            {`UPDATE tokens SET scopes = '["admin"]'`, readToken},
		"a token's person":            {`UPDATE tokens SET person = 'eve'`, readToken},
		"a token's end":               {`UPDATE tokens SET expires = expires + 1000000`, listTokens},
		"a token out of nothing": {
			`INSERT INTO tokens (id, tenant, name, hash, scopes, agents, person, maker, created, expires, revoked, ` +
				`code) SELECT 'tok_forged', tenant, name, 'forged', scopes, agents, person, maker, created, ` +
				`expires, revoked, code FROM tokens`,
			func(ctx context.Context, s full) error {
				return second(s.TokenByHash(ctx, "forged"))
			},
		},
		"a token that asks by its name": {
			`UPDATE tokens SET agents = '[]'`,
			func(ctx context.Context, s full) error {
				return second(s.LiveToken(ctx, tenant, "bot", epoch()))
			},
		},
		"a forged token that is ended": {`UPDATE tokens SET person = 'eve'`, func(ctx context.Context, s full) error {
			return s.RevokeToken(ctx, tenant, "t1", epoch())
		}},
		"a session": {
			`UPDATE kept SET name = 'other' WHERE bucket = 'session'`,
			func(ctx context.Context, s full) error {
				return second(s.Value(ctx, "session", "other", epoch()))
			},
		},
		"a session that lasts": {`UPDATE kept SET expires = expires + 1000000`, readValue},
		"a session out of another": {`UPDATE kept SET bucket = 'link'`, func(ctx context.Context, s full) error {
			return second(s.TakeValue(ctx, "link", "k", epoch()))
		}},
		"what a sign-in brought": {`UPDATE kept SET value = (SELECT e.leaf FROM entries AS e LIMIT 1)`, listValues},
		"a record":               {`UPDATE records SET value = (SELECT e.leaf FROM entries AS e LIMIT 1)`, readRecord},
		"a record's alias": {`UPDATE records SET alias = 'mine'`, func(ctx context.Context, s full) error {
			return second(s.RecordByAlias(ctx, "calls", "mine"))
		}},
		"a record's version": {`UPDATE records SET version = 9`, listRecordsOf},
		"a record's time": {`UPDATE records SET due = 1`, func(ctx context.Context, s full) error {
			return second(s.DueRecords(ctx, "calls", epoch(), 10))
		}},
		"a sealed entry": {
			`UPDATE entries SET leaf = (SELECT e.leaf FROM entries AS e WHERE e.idx = 1) WHERE idx = 0`,
			func(ctx context.Context, s full) error {
				return second(s.Leaves(ctx, tenant, 0, 10))
			},
		},
		"a sealed entry's subject": {
			`UPDATE entries SET subject = 'apr_000002' WHERE idx = 0`,
			func(ctx context.Context, s full) error {
				return second(s.History(ctx, tenant, "apr_000002", 0, 10))
			},
		},
		"the size of the ledger":       {`UPDATE trees SET size = size + 1`, sealing},
		"the checkpoint of the ledger": {`UPDATE trees SET checkpoint = root`, sealing},
		"an entry that is not sealed":  {`UPDATE entries SET type = 'request_approved' WHERE idx IS NULL`, sealing},
		"a sealed entry, to be sealed": {
			`INSERT INTO entries (tenant, type, subject, at, leaf, version, code) SELECT tenant, type, subject, at, ` +
				`leaf, version, code FROM entries WHERE idx = 0`,
			sealing,
		},
		"an entry out of nothing": {
			`INSERT INTO entries (tenant, type, subject, at, leaf, version) SELECT tenant, type, subject, at, leaf, ` +
				`version FROM entries WHERE idx = 0`,
			sealing,
		},
		"an entry of another tenant":    {`UPDATE entries SET tenant = 'other' WHERE idx IS NULL`, sealing},
		"what the store is bound to":    {`UPDATE periods SET why = 'rotated'`, nil},
		"what the store is bound to, 2": {`UPDATE periods SET id = 'other'`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place(t)
			s := p.open(t, Trust())
			everyKind(t, s)
			ok(t, s.Close())
			p.Exec(c.sql)
			heard := 0
			trust := Trust()
			trust.Alarm = func(*stores.TamperedError) { heard++ }
			s, err := p.Open(trust)
			if c.read != nil {
				ok(t, err)
				err = c.read(t.Context(), s)
				equal(t, s.Integrity().Alarms, int64(heard))
				ok(t, s.Close())
			}

			tampered(t, err)
			if heard == 0 {
				t.Fatal("nobody heard of it")
			}
		})
	}

	t.Run("a delivery", func(t *testing.T) {
		t.Parallel()
		p := place(t)
		s := p.one(t, Trust())
		deliver(t, s, "slack", "slack")
		p.Exec(`UPDATE deliveries SET payload = '{"approved":true}' WHERE id = (SELECT min(id) FROM deliveries)`)
		equal(t, len(claim(t, s, "me", []string{"slack"}, soon(), 10)), 1)
		dead := jobs(t, s, stores.DeadEnd, 10)
		equal(t, len(dead), 1)
		if !strings.Contains(dead[0].Problem, "without the key") {
			t.Fatalf("got %q", dead[0].Problem)
		}
	})
	t.Run("codes missing", func(t *testing.T) {
		t.Parallel()
		uncovered(t, place)
	})
}

// everyKind puts one row of every kind into a store. A part of the ledger is sealed, the
// last entry is not.
func everyKind(t testing.TB, s full) {
	t.Helper()
	ctx := context.Background()
	opened(t, s, 1)
	opened(t, s, 2)
	sealAll(t, s, nil)
	write(t, s, func(tx approval.Tx) {
		tx.SaveGrant(grant(1))
		tx.Remember("k", approval.Memory{Digest: "d", Request: request(1).ID, Expires: epoch()})
		tx.SavePast(past(1))
		tx.Append(record(t, tenant, approval.EventGrantCreated, grant(1).ID, epoch()))
	})
	write(t, s, func(tx approval.Tx) {
		tx.SaveFreeze(approval.Freeze{By: "ada", Reason: "smoke", At: epoch()})
		tx.Append(record(t, tenant, approval.EventFrozen, "", epoch()))
	})
	ok(t, s.PutToken(ctx, stores.Token{
		ID:      "t1",
		Tenant:  tenant,
		Name:    "bot",
		Hash:    "h1",
		Scopes:  []string{"read"},
		Created: epoch(),
		Expires: epoch().Add(time.Hour),
	}))
	ok(t, s.SetValue(ctx, "session", "k", []byte("ada"), epoch().Add(time.Hour)))
	put(t, s, document("a"))
}

// opened inserts a request with its entry.
func opened(t testing.TB, s full, n int) {
	t.Helper()
	write(t, s, func(tx approval.Tx) {
		tx.Insert(request(n))
		tx.Append(
			record(t, tenant, approval.EventOpened, request(n).ID, epoch().Add(time.Duration(n)*time.Second)),
		)
	})
}

// readers returns functions that read one row of every kind.
func readers() []func(context.Context, full) error {
	return []func(context.Context, full) error{
		readRequest,
		lockRequest,
		listRequests,
		readGrant,
		readFreezes,
		remembered,
		readPasts,
		readToken,
		readValue,
		readRecord,
	}
}

func second[T any](_ T, err error) error { return err }

func readRequest(ctx context.Context, s full) error {
	return second(s.Request(ctx, tenant, request(1).ID))
}

func lockRequest(ctx context.Context, s full) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error { return second(tx.Request(request(1).ID)) })
}

func workOnRequest(ctx context.Context, s full) error {
	return second(s.Due(ctx, epoch().Add(time.Hour), 10, func(approval.Tx, string, *approval.Request) error {
		return nil
	}))
}

func dueRequest(ctx context.Context, s full) error {
	return second(s.Due(ctx, epoch().Add(time.Minute), 10, func(approval.Tx, string, *approval.Request) error {
		return nil
	}))
}

func latestRequest(ctx context.Context, s full) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error { return second(tx.Latest("sha256:other")) })
}

func listRequests(ctx context.Context, s full) error {
	return second(s.Requests(ctx, tenant, approval.Filter{}))
}

func readGrant(ctx context.Context, s full) error { return second(s.Grant(ctx, tenant, grant(1).ID)) }

func listGrants(ctx context.Context, s full) error {
	return second(s.Grants(ctx, tenant, true, epoch()))
}

func liveGrant(ctx context.Context, s full) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error {
		return second(tx.Live("acme.trader", "tool execute_trade", epoch()))
	})
}

func readFreezes(ctx context.Context, s full) error { return second(s.Freezes(ctx, tenant)) }

func lockFreezes(ctx context.Context, s full) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error { return second(tx.Freezes()) })
}

func remembered(ctx context.Context, s full) error {
	return s.Update(ctx, tenant, func(tx approval.Tx) error { return second(tx.Remembered("k")) })
}

func readToken(ctx context.Context, s full) error { return second(s.TokenByHash(ctx, "h1")) }

func listTokens(ctx context.Context, s full) error { return second(s.Tokens(ctx, tenant)) }

func readValue(ctx context.Context, s full) error {
	return second(s.Value(ctx, "session", "k", epoch()))
}

func listValues(ctx context.Context, s full) error {
	return second(s.ListValues(ctx, "session", epoch()))
}

func readRecord(ctx context.Context, s full) error { return second(s.Record(ctx, "calls", "a")) }

func listRecordsOf(ctx context.Context, s full) error {
	return second(s.ListRecords(ctx, "calls", "", "", 10))
}

func sealing(ctx context.Context, s full) error { return second(s.Seal(ctx, 100, signature)) }

// uncovered removes the codes of all rows. A new period can't begin with such rows, and the
// errors name each of them.
func uncovered(t *testing.T, place func(t *testing.T) Place) {
	for _, table := range []string{
		"requests",
		"grants",
		"frozen",
		"memories",
		"pasts",
		"entries",
		"trees",
		"tokens",
		"records",
		"kept",
		"deliveries",
	} {
		p := place(t)
		s := p.open(t, Trust())
		everyKind(t, s)
		deliver(t, s, "slack")
		p.Exec(fmt.Sprintf("UPDATE %s SET code = NULL", table))
		err := s.RestoreInPlace(t.Context())
		tampered(t, err)
		var wrong *stores.TamperedError
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.What, table) {
			t.Fatalf("%s: %v", table, err)
		}
		ok(t, s.Close())
	}
}
