package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	stores "github.com/assent-dev/assent/store"
)

// Records runs the suite of records alone. Each call of open opens an empty store.
func Records(t *testing.T, open func(t *testing.T) stores.Records) {
	for name, test := range map[string]func(*testing.T, stores.Records){
		"put":         putRecords,
		"aliases":     recordAliases,
		"delete":      deleteRecords,
		"names":       recordNames,
		"values":      recordValues,
		"times":       recordTimes,
		"list":        listRecords,
		"list order":  listRecordsOrder,
		"list bounds": listRecordBounds,
		"due":         dueRecords,
		"sweep":       sweepRecords,
		"race":        func(t *testing.T, s stores.Records) { recordRace(t, s) },
		"cancelled":   cancelledRecords,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// document returns a record of room "calls" that was never stored.
func document(key string) stores.Record {
	return stores.Record{Namespace: "calls", Key: key, Value: []byte(key)}
}

// put stores a record and returns it with its new version.
func put(t testing.TB, s stores.Records, r stores.Record) stores.Record {
	t.Helper()
	version, err := s.PutRecord(context.Background(), r)
	ok(t, err)
	equal(t, version, r.Version+1)
	r.Version = version
	return r
}

// unput expects a record to be refused for its version.
func unput(t testing.TB, s stores.Records, r stores.Record) {
	t.Helper()
	refused(t, second(s.PutRecord(context.Background(), r)), approval.ErrVersion)
}

// stored expects a record to be found, and by its alias too.
func stored(t testing.TB, s stores.Records, want stores.Record) {
	t.Helper()
	sameRecord(t, must(s.Record(context.Background(), want.Namespace, want.Key))(t), want)
	if want.Alias != "" {
		sameRecord(t, must(s.RecordByAlias(context.Background(), want.Namespace, want.Alias))(t), want)
	}
}

func sameRecord(t testing.TB, got, want stores.Record) {
	t.Helper()
	same := bytes.Equal(got.Value, want.Value) && got.Due.Equal(want.Due) && got.Expires.Equal(want.Expires)
	if !same || got.Namespace != want.Namespace || got.Key != want.Key || got.Alias != want.Alias ||
		got.Version != want.Version {
		t.Fatalf("got %.200s, want %.200s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}

func noRecord(t testing.TB, s stores.Records, room, key string) {
	t.Helper()
	missing(t, second(s.Record(context.Background(), room, key)))
}

func noAlias(t testing.TB, s stores.Records, room, alias string) {
	t.Helper()
	missing(t, second(s.RecordByAlias(context.Background(), room, alias)))
}

func keysOf(all []stores.Record) []string {
	out := []string{}
	for _, r := range all {
		out = append(out, r.Key)
	}
	return out
}

func sameKeys(t testing.TB, got []stores.Record, want ...string) {
	t.Helper()
	if keys := keysOf(got); !slices.Equal(keys, want) {
		t.Fatalf("got %q, want %q", keys, want)
	}
}

func callRecords(t testing.TB, s stores.Records, prefix, after string, limit int) []stores.Record {
	t.Helper()
	return must(s.ListRecords(context.Background(), "calls", prefix, after, limit))(t)
}

func dueCalls(t testing.TB, s stores.Records, now time.Time, limit int) []stores.Record {
	t.Helper()
	return must(s.DueRecords(context.Background(), "calls", now, limit))(t)
}

// putRecords checks that versions count changes, and that only a write with the stored
// version changes a record.
func putRecords(t *testing.T, s stores.Records) {
	noRecord(t, s, "calls", "a")
	first := put(t, s, document("a"))
	equal(t, first.Version, 1)
	stored(t, s, first)
	second := first
	second.Value = []byte("two\x00\xff")
	second.Alias = "x"
	second.Due = epoch()
	second.Expires = epoch().Add(time.Hour)
	second = put(t, s, second)
	stored(t, s, second)
	for _, version := range []int64{-1, 0, 1, 3} {
		again := document("a")
		again.Version = version
		unput(t, s, again)
	}
	stored(t, s, second)
	missing := document("b")
	missing.Version = 1
	unput(t, s, missing)
	noRecord(t, s, "calls", "b")
	other := document("a")
	other.Namespace, other.Alias = "views", "x"
	stored(t, s, put(t, s, other))
	second.Alias = ""
	second.Due = time.Time{}
	second.Expires = time.Time{}
	second.Value = nil
	second = put(t, s, second)
	stored(t, s, second)
	noAlias(t, s, "calls", "x")
	stored(t, s, stores.Record{
		Namespace: "views",
		Key:       "a",
		Alias:     "x",
		Version:   1,
		Value:     []byte("a"),
	})
}

// recordAliases checks that an alias belongs to one record, from when it is stored until it
// is removed.
func recordAliases(t *testing.T, s stores.Records) {
	a, b := document("a"), document("b")
	a.Alias, b.Alias = "x", "x"
	a = put(t, s, a)
	unput(t, s, b)
	noRecord(t, s, "calls", "b")
	b.Alias = ""
	b = put(t, s, b)
	b.Alias = "x"
	unput(t, s, b)
	b.Alias = "b" // a key is no alias
	b = put(t, s, b)
	stored(t, s, a)
	stored(t, s, b)
	noAlias(t, s, "calls", "a")
	noAlias(t, s, "calls", "")
	noAlias(t, s, "views", "x")
	a = put(t, s, a) // it keeps its own
	a.Alias = "y"
	a = put(t, s, a)
	noAlias(t, s, "calls", "x")
	b.Alias = "x"
	b = put(t, s, b)
	stored(t, s, b)
	ok(t, s.DeleteRecord(t.Context(), "calls", "b", b.Version))
	a.Alias = "x"
	stored(t, s, put(t, s, a))
	for _, key := range []string{"c", "d"} { // none is no alias
		stored(t, s, put(t, s, document(key)))
	}
}

func deleteRecords(t *testing.T, s stores.Records) {
	ctx := t.Context()
	refused(t, s.DeleteRecord(ctx, "calls", "a", 0), approval.ErrVersion)
	r := document("a")
	r.Alias = "x"
	r = put(t, s, put(t, s, r))
	for _, version := range []int64{0, 1, 3} {
		refused(t, s.DeleteRecord(ctx, "calls", "a", version), approval.ErrVersion)
	}
	refused(t, s.DeleteRecord(ctx, "views", "a", 2), approval.ErrVersion)
	stored(t, s, r)
	ok(t, s.DeleteRecord(ctx, "calls", "a", 2))
	refused(t, s.DeleteRecord(ctx, "calls", "a", 2), approval.ErrVersion)
	noRecord(t, s, "calls", "a")
	noAlias(t, s, "calls", "x")
	unput(t, s, r)
	r.Version = 0
	stored(t, s, put(t, s, r)) // from the beginning
}

// recordNames checks that a record is found only under its exact name, and that an invalid
// name can't be stored and is never found.
func recordNames(t *testing.T, s stores.Records) {
	ctx := t.Context()
	good := []string{
		"a",
		"A",
		"a ",
		"%",
		"_",
		"'",
		"ä",
		"a\u0308",
		"\U0010FFFF",
		"\x01",
		strings.Repeat("é", 256),
	}
	for _, name := range good {
		r := stores.Record{Namespace: "calls", Key: name, Alias: name}
		stored(t, s, put(t, s, r))
		r.Namespace = name
		stored(t, s, put(t, s, r))
	}

	equal(t, len(callRecords(t, s, "", "", 1000)), len(good))
	for _, name := range []string{"", "a\x00", "\xff", "\xed\xa0\x80", strings.Repeat("x", 513)} {
		noRecord(t, s, "calls", name)
		noRecord(t, s, name, "a")
		noAlias(t, s, "calls", name)
		refused(t, s.DeleteRecord(ctx, "calls", name, 1), approval.ErrVersion)
		refused(t, s.DeleteRecord(ctx, name, "a", 1), approval.ErrVersion)
		badInput(t, s, stores.Record{Namespace: name, Key: "k"}, "record.room")
		badInput(t, s, stores.Record{Namespace: "calls", Key: name}, "record.key")
		if name != "" {
			badInput(t, s, stores.Record{
				Namespace: "calls",
				Key:       "k",
				Alias:     name,
			}, "record.alias")
		}
	}

	noRecord(t, s, "calls", "k")
}

func badInput(t testing.TB, s stores.Records, r stores.Record, field string) {
	t.Helper()
	_, err := s.PutRecord(context.Background(), r)
	wantInput(t, err, field)
}

func wantInput(t testing.TB, err error, field string) {
	t.Helper()
	var in *approval.InputError
	if !asInput(err, &in) || in.Field != field {
		t.Fatalf("got error %v, want one about %s", err, field)
	}
}

// recordValues checks that values may be any bytes, and are not shared with the caller.
func recordValues(t *testing.T, s stores.Records) {
	large := make([]byte, 4<<20)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(large) // it never fails
	for key, value := range map[string][]byte{
		"none":  nil,
		"empty": {},
		"zeros": make([]byte, 3),
		"odd":   []byte("\x00\xff\xed\xa0\x80'"),
		"large": large,
	} {
		r := document(key)
		r.Value = value
		r = put(t, s, r)
		stored(t, s, r)
		r.Value = append(value[:len(value):len(value)], 'x')
		stored(t, s, put(t, s, r))
	}

	mine := document("mine")
	mine.Value = []byte("abc")
	mine = put(t, s, mine)
	want := mine
	want.Value = []byte("abc")
	mine.Value[0] = 'x'
	got := must(s.Record(t.Context(), "calls", "mine"))(t)
	sameRecord(t, got, want)
	got.Value[0] = 'y'
	listed := callRecords(t, s, "mine", "", 1)
	sameRecord(t, listed[0], want)
	listed[0].Value[0] = 'z'
	stored(t, s, want)
	badInput(t, s, stores.Record{
		Namespace: "calls",
		Key:       "k",
		Value:     make([]byte, stores.MaxRecordValue+1),
	}, "record.value")
}

// recordTimes checks that times are kept to the microsecond, and that a zero time stays
// zero.
func recordTimes(t *testing.T, s stores.Records) {
	zone := time.FixedZone("", 3600)
	for i, at := range []time.Time{
		{},
		time.Unix(0, 0),
		epoch(),
		epoch().Add(time.Microsecond),
		epoch().Add(999),
		epoch().In(zone),
		epoch().AddDate(-200, 0, 0),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Time{}.Add(1),
		time.Time{}.Add(time.Microsecond),
	} {
		r := document("t" + number(i))
		r.Due, r.Expires = at, at
		put(t, s, r)
		got := must(s.Record(t.Context(), "calls", r.Key))(t)
		if want := at.Truncate(time.Microsecond); !got.Due.Equal(want) || !got.Expires.Equal(want) ||
			got.Due.Location() != time.UTC ||
			got.Due.IsZero() != want.IsZero() {
			t.Fatalf("%v: got %v, %v", at, got.Due, got.Expires)
		}
	}

	due := dueCalls(t, s, epoch().AddDate(8000, 0, 0), 100)
	sameKeys(t, due, "t9", "t6", "t1", "t2", "t4", "t5", "t3", "t7")
	for _, at := range []time.Time{
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		badInput(t, s, stores.Record{
			Namespace: "calls",
			Key:       "k",
			Due:       at,
		}, "record.due")
		badInput(t, s, stores.Record{
			Namespace: "calls",
			Key:       "k",
			Expires:   at,
		}, "record.expires")
	}
}

func listRecords(t *testing.T, s stores.Records) {
	ctx := t.Context()
	equal(t, len(callRecords(t, s, "", "", 10)), 0)
	for _, key := range []string{"b/2", "a", "b/10", "b", "c", "b0", "b/1"} {
		r := document(key)
		r.Alias = "alias of " + key
		r.Due = epoch()
		r.Expires = epoch().Add(time.Hour)
		r = put(t, s, r)
		sameRecord(t, callRecords(t, s, key, "", 1)[0], r)
	}

	other := document("b/3")
	other.Namespace = "views"
	put(t, s, other)
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 1000, "a b b/1 b/10 b/2 b0 c"},
		{"b/", "", 1000, "b/1 b/10 b/2"},
		{"b/", "b/1", 1000, "b/10 b/2"},
		{"b/", "b/11", 1000, "b/2"},
		{"b/", "b/1", 1, "b/10"},
		{"b/", "a", 2, "b/1 b/10"},
		{"b/", "b/2", 1000, ""},
		{"b/", "c", 1000, ""},
		{"", "b/2", 1000, "b0 c"},
		{"b", "b", 1000, "b/1 b/10 b/2 b0"},
		{"d", "", 1000, ""},
		{"%", "", 1000, ""},
		{"B", "", 1000, ""},
	} {
		sameKeys(t, callRecords(t, s, c.prefix, c.after, c.limit), strings.Fields(c.want)...)
	}

	sameKeys(t, must(s.ListRecords(ctx, "views", "b", "", 10))(t), "b/3")
}

// listRecordsOrder checks that keys are sorted by their bytes, whatever the database's
// locale, and that pages skip nothing.
func listRecordsOrder(t *testing.T, s stores.Records) {
	var keys []string
	for _, head := range []string{
		"",
		"a",
		"A",
		"z",
		"Z",
		"é",
		"ß",
		"-",
		"_",
		"~",
		"\U0010FFFF",
		"\U0001F600",
		"\uFFFD",
		"\uE000",
		"\uD7FF",
		"\x7f",
	} {
		for _, tail := range []string{"", "a", "B", "\x01", "\U0010FFFF", "\uFFFF", "é"} {
			if head+tail != "" {
				keys = append(keys, head+tail)
			}
		}
	}

	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(keys)) {
		put(t, s, document(keys[i]))
	}
	for _, prefix := range append([]string{""}, keys...) {
		var got, want []string
		for after := ""; ; {
			page := keysOf(callRecords(t, s, prefix, after, 10))
			if got = append(got, page...); len(page) < 10 {
				break
			}
			after = page[9]
		}

		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("keys after %q: got %q, want %q", prefix, got, want)
		}
	}
}

func listRecordBounds(t *testing.T, s stores.Records) {
	ctx := t.Context()
	for _, limit := range []int{-1, 0, 1001} {
		_, err := s.ListRecords(ctx, "calls", "", "", limit)
		wantInput(t, err, "limit")
		_, err = s.DueRecords(ctx, "calls", epoch(), limit)
		wantInput(t, err, "limit")
	}

	for _, name := range []string{"a\x00", "\xff", strings.Repeat("x", 513)} {
		_, err := s.ListRecords(ctx, name, "", "", 1)
		wantInput(t, err, "room")
		_, err = s.ListRecords(ctx, "calls", name, "", 1)
		wantInput(t, err, "prefix")
		_, err = s.ListRecords(ctx, "calls", "", name, 1)
		wantInput(t, err, "after")
		_, err = s.DueRecords(ctx, name, epoch(), 1)
		wantInput(t, err, "room")
	}
}

func dueRecords(t *testing.T, s stores.Records) {
	ctx := t.Context()
	for i, after := range []time.Duration{5, 3, -time.Hour, 3, 0, 4} {
		r := document(number(i))
		r.Due = epoch().Add(after * time.Microsecond)
		put(t, s, r)
	}
	never, other := document("never"), document("other")
	other.Namespace, other.Due = "views", epoch()
	put(t, s, never)
	put(t, s, other)
	now := epoch().Add(4 * time.Microsecond)
	sameKeys(t, dueCalls(t, s, now, 1000), "2", "4", "1", "3", "5")
	sameKeys(t, dueCalls(t, s, now.Add(-1), 1000), "2", "4", "1", "3")
	sameKeys(t, dueCalls(t, s, now, 3), "2", "4", "1")
	sameKeys(t, dueCalls(t, s, now, 3), "2", "4", "1") // nothing was claimed
	sameKeys(t, must(s.DueRecords(ctx, "none", now, 3))(t))
	first := dueCalls(t, s, now, 1)[0]
	sameRecord(t, first, must(s.Record(ctx, "calls", "2"))(t))
	first.Due = epoch().Add(5 * time.Microsecond)
	first = put(t, s, first)
	sameKeys(t, dueCalls(t, s, now, 1000), "4", "1", "3", "5")
	first.Due = time.Time{}
	put(t, s, first)
	sameKeys(t, dueCalls(t, s, epoch().Add(time.Hour), 1000), "4", "1", "3", "5", "0")
}

// sweepRecords checks that expired records are deleted, even if there are more than fit
// into one step, and that their names can be used again.
func sweepRecords(t *testing.T, s stores.Records) {
	ctx := t.Context()
	const gone = 1100
	everybody(t, crowd(8, func(w int) error {
		for i := w; i < gone+5; i += 8 {
			r := document(fmt.Sprintf("%05d", i))
			r.Alias = "alias of " + r.Key
			r.Expires = epoch().Add(time.Duration(i-gone+1) * time.Microsecond)
			if i == gone+4 {
				r.Expires = time.Time{}
			}
			if _, err := s.PutRecord(ctx, r); err != nil {
				return err
			}
		}

		return nil
	}))
	late := must(s.Record(ctx, "calls", "00000"))(t)
	late.Expires = epoch().Add(time.Hour)
	put(t, s, late)
	ok(t, s.SweepRecords(ctx, epoch()))
	sameKeys(t, callRecords(t, s, "", "", 1000), "00000", "01100", "01101", "01102", "01103", "01104")
	noAlias(t, s, "calls", "alias of 00001")
	again := document("00001")
	again.Alias = "alias of 00002"
	stored(t, s, put(t, s, again))
	ok(t, s.SweepRecords(ctx, epoch()))
	ok(t, s.SweepRecords(ctx, epoch().AddDate(100, 0, 0)))
	sameKeys(t, callRecords(t, s, "", "", 1000), "00001", "01104")
}

// cancelledRecords checks that a call whose context was cancelled before it began changes
// nothing.
func cancelledRecords(t *testing.T, s stores.Records) {
	r := put(t, s, document("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refused(t, second(s.PutRecord(ctx, r)), context.Canceled)
	refused(t, s.DeleteRecord(ctx, "calls", "a", 1), context.Canceled)
	refused(t, second(s.Record(ctx, "calls", "a")), context.Canceled)
	refused(t, second(s.RecordByAlias(ctx, "calls", "a")), context.Canceled)
	refused(t, second(s.ListRecords(ctx, "calls", "", "", 1)), context.Canceled)
	refused(t, second(s.DueRecords(ctx, "calls", epoch(), 1)), context.Canceled)
	refused(t, s.SweepRecords(ctx, epoch()), context.Canceled)
	stored(t, s, r)
}
