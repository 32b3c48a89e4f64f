package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	stores "github.com/assent-dev/assent/store"
)

// Fill puts rows of every kind into a store.
func Fill(t testing.TB, s stores.Store) {
	t.Helper()
	ctx := context.Background()
	for i := range 30 {
		write(t, s, func(tx approval.Tx) {
			r := request(i)
			if i%2 == 0 {
				finish(r, approval.Denied, epoch())
			}
			tx.Insert(r)
			tx.SaveGrant(grant(i))
			tx.SaveFreeze(approval.Freeze{
				Agent:  number(i % 3),
				Reason: "<&>\u2028\"",
				At:     epoch(),
			})
			tx.Remember(number(i), approval.Memory{Digest: "d", Expires: epoch()})
			tx.AddVote(approval.VoteFact{Request: r.ID, At: epoch()})
			tx.SavePast(past(i))
			tx.Append(
				record(t, tenant, "request_opened", r.ID, epoch()),
				approval.Delivery{Target: "slack", Payload: "{}"},
			)
		})
		if i == 20 {
			sealAll(t, s, nil)
		}
	}

	ok(t, s.PutToken(ctx, stores.Token{
		ID:      "t",
		Tenant:  tenant,
		Hash:    "h",
		Scopes:  []string{"read"},
		Created: epoch(),
		Expires: epoch(),
	}))
	for i := range 3 {
		r := document(number(i))
		r.Alias, r.Value = "alias of "+r.Key, []byte("\x00\xff")[:i]
		if i > 0 {
			r.Due, r.Expires = epoch(), epoch().Add(time.Hour)
		}
		put(t, s, put(t, s, r))
	}

	ok(t, s.SetValue(ctx, "b", "k", []byte("\x00\xff"), epoch().Add(time.Hour)))
	ok(t, s.SetValue(ctx, "b", "empty", nil, epoch().Add(time.Hour)))
}

// Backup returns a backup of a store.
func Backup(t testing.TB, s stores.Store) string {
	t.Helper()
	var b bytes.Buffer
	ok(t, s.Backup(context.Background(), &b))
	return b.String()
}

func backup(t *testing.T, db Database) {
	ctx := t.Context()
	from, to := one(t, db), one(t, db)
	empty := Backup(t, from)
	Fill(t, from)
	text := Backup(t, from)
	ok(t, to.Restore(ctx, strings.NewReader(text)))
	equal(t, Uncoded(t, Backup(t, to)), Uncoded(t, text))
	verify(t, to, tenant)
	equal(t, sealAll(t, to, nil), 9)
	insert(t, to, request(77)) // counters continue after the restored rows
	appendEntries(t, to, tenant, 3)
	deliver(t, to, "slack")
	write(t, to, func(tx approval.Tx) {
		tx.AddVote(approval.VoteFact{At: epoch()})
	})
	equal(t, entries(t, to, tenant), 34)
	equal(t, verify(t, to, tenant), 34)

	again := must(to.RecordByAlias(ctx, "calls", "alias of 2"))(t)
	equal(t, again.Version, 2)
	stored(t, to, put(t, to, again))

	third := one(t, db)
	ok(t, third.Restore(ctx, strings.NewReader(empty)))
	ok(t, third.Restore(ctx, strings.NewReader(empty)))
	equal(t, Uncoded(t, Backup(t, third)), Uncoded(t, empty))
}

// Uncoded returns a backup without the parts that each restore creates again: periods and
// codes.
func Uncoded(t testing.TB, backup string) string {
	t.Helper()
	codes := map[string]int{
		"requests":   2,
		"grants":     1,
		"frozen":     1,
		"memories":   1,
		"pasts":      1,
		"entries":    1,
		"trees":      1,
		"handovers":  1,
		"tokens":     1,
		"records":    1,
		"kept":       1,
		"deliveries": 1,
	}
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(backup, "\n"), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		var row []any
		ok(t, json.Unmarshal([]byte(line), &row))
		table, _ := row[0].(string)
		if table == "periods" {
			continue
		}
		text, err := json.Marshal(row[:len(row)-codes[table]])
		ok(t, err)
		out.Write(append(text, '\n'))
	}

	return out.String()
}

// backupRefused checks that only a complete, unchanged backup is restored, only into an
// empty store, and that nothing changes otherwise.
func backupRefused(t *testing.T, db Database) {
	ctx := t.Context()
	from, to := one(t, db), one(t, db)
	Fill(t, from)
	good, empty := Backup(t, from), Backup(t, to)
	lines := strings.SplitAfter(good, "\n")
	without := func(i int) string {
		return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "")
	}
	for name, c := range map[string]struct{ text, says string }{
		"nothing":            {"", "it ends after line 0"},
		"no backup":          {"{}\n", "does not begin as a backup does"},
		"no JSON":            {"<html>\n", "does not begin as a backup does"},
		"no end":             {without(len(lines) - 2), "without the line that closes a backup"},
		"cut in a line":      {good[:len(good)/2], "is cut off"},
		"cut before the end": {good[:len(good)-1], "is cut off"},
		"a row less":         {without(3), "its checksum is another"},
		"a row more":         {strings.Replace(good, lines[3], lines[3]+lines[3], 1), "a row twice"},
		"an edited row":      {strings.Replace(good, "acme.trader", "acme.tradr", 1), "its checksum is another"},
		"another schema": {
			strings.Replace(good, `"schema":`, `"schema":9`, 1),
			"restore it with the version that made it",
		},
		"an older schema": {
			strings.Replace(good, `"schema":6`, `"schema":5`, 1),
			"of schema 5 and this version of assent has 6: restore it with the version that made it",
		},
		"another count": {
			strings.Replace(good, `"entries":30`, `"entries":31`, 1),
			"30 rows of table entries, and says 31",
		},
		"another sum":     {strings.Replace(good, `"sha256":"`, `"sha256":"0`, 1), "its checksum is another"},
		"more behind it":  {good + "\n", "something follows"},
		"unknown table":   {strings.Replace(good, `["votes",`, `["voters",`, 1), "is not a row of a table"},
		"wrong kind":      {strings.Replace(good, `["votes",`, `["votes","`, 1), "is not JSON"},
		"too few columns": {strings.Replace(good, `,"pending",`, `,`, 1), "is not a row of a table"},
		"wrong column": {
			strings.Replace(
				good,
				`["records","calls","0","alias of 0",2`,
				`["records","calls","0","alias of 0","2"`,
				1,
			),
			"column version of table records is of the wrong kind",
		},
	} {
		err := to.Restore(ctx, strings.NewReader(c.text))
		refused(t, err, stores.ErrBackup)
		if !strings.Contains(err.Error(), c.says) {
			t.Fatalf("%s: %v does not say %q", name, err, c.says)
		}
		if Uncoded(t, Backup(t, to)) != Uncoded(t, empty) {
			t.Fatalf("%s: something was restored", name)
		}
	}

	reading := errors.New("the disk is gone")
	refused(t, to.Restore(ctx, &failing{text: good[:len(good)/2], err: reading}), reading)
	equal(t, Backup(t, to), empty)
	refused(t, from.Restore(ctx, strings.NewReader(good)), stores.ErrBackup)
	equal(t, Backup(t, from), good)
	refused(t, from.Backup(ctx, &failing{err: reading}), reading)
	ok(t, to.Restore(ctx, strings.NewReader(good)))
}

// failing reads its text and then fails. Its writes fail at once.
type failing struct {
	text string
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.text == "" {
		return 0, f.err
	}
	n := copy(p, f.text)
	f.text = f.text[n:]
	return n, nil
}

func (f *failing) Write([]byte) (int, error) { return 0, f.err }

// pausing pauses each write until the test has done something.
type pausing struct {
	bytes.Buffer
	first func()
}

func (p *pausing) Write(b []byte) (int, error) {
	if p.first != nil {
		p.first()
		p.first = nil
	}
	return p.Buffer.Write(b)
}

// backupBusy checks that writers continue during a backup, and that the backup holds a
// single state.
func backupBusy(t *testing.T, db Database) {
	s := one(t, db)
	const n = 40
	for i := range n {
		r := request(i)
		r.Revisions[0].Call.Args = resolve.Raw(`"` + strings.Repeat("x", 5000) + `"`)
		write(t, s, func(tx approval.Tx) {
			tx.Insert(r)
			tx.Append(record(t, tenant, "request_opened", r.ID, epoch()))
		})
	}

	before := Backup(t, s)
	out := &pausing{first: func() {
		insert(t, s, request(777))
		appendEntries(t, s, tenant, 5)
		sealAll(t, s, nil)
	}}
	ok(t, s.Backup(t.Context(), out))
	if out.String() != before {
		t.Fatal("the backup holds what was written while it ran")
	}
}

func pingAndClose(t *testing.T, db Database) {
	ctx := t.Context()
	s, err := db(t)()
	ok(t, err)
	ok(t, s.Ping(ctx))
	ok(t, s.Ping(ctx))
	ch := s.Changed(tenant)
	ok(t, s.Close())
	closed(t, ch)
	unavailable(t, s.Ping(ctx))
	unavailable(t, s.Update(ctx, tenant, func(approval.Tx) error { return nil }))
	unavailable(t, second(s.Requests(ctx, tenant, approval.Filter{})))
}
