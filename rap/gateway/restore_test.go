package gateway

import (
	"bytes"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/store"
)

// sealed stores a document in the vault of a namespace, and returns its record.
func sealed[T any](t *testing.T, records store.Records, key []byte, room, kind string, d durable.Doc[T]) store.Record {
	t.Helper()
	v, err := durable.NewVault[T](names.Sealing(records, room, key), kind)
	if err == nil {
		err = v.Put(t.Context(), &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return must.Get(records.Record(t.Context(), room+"/"+kind, d.Key))(t)
}

// Only ended calls stay in a restored store: an open call may have run since the backup, and a
// user's grant may have been used up.
func TestOnlyCallsThatHadEndedOutliveARestore(t *testing.T) {
	records := rap.NewMemory()
	key := bytes.Repeat([]byte{7}, 32)
	soon := time.Now().Add(time.Hour)
	const gateway, runtime = "rap/gateway/desk", "rap/runtime/desk"
	call := func(name string, state durable.State, due time.Time) store.Record {
		return sealed(t, records, key, gateway, "calls", durable.Doc[record]{
			Key:  name,
			Due:  due,
			Body: record{State: state},
		})
	}
	for name, c := range map[string]struct {
		record store.Record
		want   bool
	}{
		"decided":           {call("a", durable.Ready, soon), false},
		"held":              {call("b", durable.Asking, soon), false},
		"done, not sent":    {call("c", durable.Ended, soon), true},
		"delivered":         {call("d", durable.Closed, time.Time{}), true},
		"a session's grant": {sealed(t, records, key, gateway, "grants", durable.Doc[sessionGrant]{Key: "a"}), false},
		"a reference":       {sealed(t, records, key, gateway, "refs", durable.Doc[struct{}]{Key: "a"}), true},
		"sent to a tool": {
			sealed(t, records, key, runtime, "calls", durable.Doc[struct{}]{Key: "a", Due: soon}),
			false,
		},
		"answered": {sealed(t, records, key, runtime, "calls", durable.Doc[struct{}]{Key: "b"}), true},
		"news under way": {
			sealed(t, records, key, runtime, "events", durable.Doc[struct{}]{Key: "a", Due: soon}),
			false,
		},
	} {
		stays, err := rap.OutlivesRestore(key, c.record)
		if err != nil || stays != c.want {
			t.Errorf("%s: stays %v, %v, want %v", name, stays, err, c.want)
		}
	}

	if stays, err := rap.OutlivesRestore(bytes.Repeat([]byte{8}, 32), call("i", durable.Ended, soon)); err == nil ||
		stays {
		t.Errorf("with another key: stays %v, %v", stays, err)
	}
}

// Records are resealed for a new key, and records of other packages stay unchanged.
func TestRecordsAreSealedAnewForANewKey(t *testing.T) {
	records := rap.NewMemory()
	before := bytes.Repeat([]byte{7}, 32)
	after := bytes.Repeat([]byte{8}, 32)
	const room = "rap/gateway/desk"
	r := sealed(
		t,
		records,
		before,
		room,
		"calls",
		durable.Doc[record]{Key: "a", Body: record{State: durable.Ended, Part: call{Thread: "t1"}}},
	)
	reseal := rap.Reseal(before, after)
	next := must.Get(reseal(r.Namespace, r.Key, r.Value))(t)

	r.Value = next
	v := must.Get(durable.NewVault[record](names.Sealing(records, room, after), "calls"))(t)
	if d, err := v.Open(r); err != nil || d.Body.Part.Thread != "t1" || d.Body.State != durable.Ended {
		t.Errorf("%+v, %v", d, err)
	}

	for name, c := range map[string]struct{ room, key string }{
		"sealed with another key": {r.Namespace, r.Key},
		"another record's":        {r.Namespace, "b"},
		"no kind":                 {"rap/", "a"},
	} {
		if out, err := reseal(c.room, c.key, next); err == nil {
			t.Errorf("%s: %x", name, out)
		}
	}

	if out, err := reseal("witness", "a", []byte("plain")); err != nil || string(out) != "plain" {
		t.Errorf("of another package: %q, %v", out, err)
	}
}
