package sqlstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

// TestLatestVersionsAreRememberedAsLongAsPermitsLive also checks that they are forgotten
// soon after.
func TestLatestVersionsAreRememberedAsLongAsPermitsLive(t *testing.T) {
	v := newVersions(time.Hour)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	row := rowName{"default", "apr_1"}

	v.note(row, 3, begin)
	v.note(row, 2, begin.Add(time.Minute))
	v.note(row, 0, begin.Add(time.Minute))
	if got := v.latest(row); got != 3 {
		t.Errorf("the latest version is %d", got)
	}
	if got := v.latest(rowName{"lab", "apr_1"}); got != 0 {
		t.Errorf("of another tenant it is %d", got)
	}

	v.note(rowName{"default", "apr_2"}, 1, begin.Add(61*time.Minute))
	if got := v.latest(row); got != 3 {
		t.Errorf("an hour later it is %d", got)
	}
	v.note(row, 2, begin.Add(62*time.Minute)) // an older entry that is read late
	v.note(rowName{"default", "apr_3"}, 1, begin.Add(122*time.Minute))
	if got := v.latest(row); got != 3 {
		t.Errorf("after a version that was not the latest it is %d", got)
	}
	v.note(rowName{"default", "apr_4"}, 1, begin.Add(200*time.Minute))
	v.note(rowName{"default", "apr_5"}, 1, begin.Add(300*time.Minute))
	if got := v.latest(row); got != 0 {
		t.Errorf("long after it is %d", got)
	}
}

// TestVersionsOfFreezesAreNeverForgotten also checks that memory is bounded.
func TestVersionsOfFreezesAreNeverForgotten(t *testing.T) {
	v, now := newVersions(time.Hour), time.Now()
	v.note(rowName{tenant: "default"}, 4, now)
	for n := range 3 * mostVersions {
		v.note(rowName{"default", fmt.Sprint("apr_", n)}, 1, now)
	}
	if n := len(v.young) + len(v.old); n > 2*mostVersions {
		t.Errorf("%d versions are remembered", n)
	}
	if got := v.latest(rowName{tenant: "default"}); got != 4 {
		t.Errorf("of what is frozen the version is %d", got)
	}
}

func written(leaves ...string) (entries []appended, sealed []logged) {
	for _, leaf := range leaves {
		entries = append(entries, appended{Record: ledger.Record{Leaf: []byte(leaf)}})
		sealed = append(sealed, logged{hash: ledger.LeafHash([]byte(leaf))})
	}
	return entries, sealed
}

// TestEntriesOfThisProcessAreAwaited checks that entries are expected until they are seen
// sealed.
func TestEntriesOfThisProcessAreAwaited(t *testing.T) {
	var o own
	round := func(left bool) []string {
		return o.lost(o.snapshot(), map[string]bool{"default": left})
	}
	two := func(left bool) []string { return append(round(left), round(left)...) }
	write := func(committed bool, leaves ...string) []logged {
		entries, sealed := written(leaves...)
		o.send("default", entries)
		o.commit("default", entries, committed)
		return sealed
	}

	sealed := write(true, "a", "b", "b")
	if lost := two(true); lost != nil {
		t.Errorf("lost while entries wait: %v", lost)
	}
	o.seen("default", sealed[:2])
	o.seen("lab", sealed[2:])
	if lost := round(false); lost != nil {
		t.Errorf("lost after one round: %v", lost)
	}
	if lost := round(false); !slices.Equal(lost, []string{"default"}) {
		t.Errorf("one of two equal entries is gone, and lost are %v", lost)
	}
	o.seen("default", sealed[2:])
	if lost := two(false); lost != nil {
		t.Errorf("lost though all are there: %v", lost)
	}

	write(false, "not committed")
	if lost := two(false); lost != nil {
		t.Errorf("lost what was not committed: %v", lost)
	}

	entries, early := written("seen before the commit is known")
	o.send("default", entries)
	o.seen("default", early)
	o.commit("default", entries, true)
	if lost := two(false); lost != nil {
		t.Errorf("lost what was seen already: %v", lost)
	}
	if len(o.all) != 0 {
		t.Errorf("%d entries are remembered for nothing", len(o.all))
	}

	write(true, "gone")
	o.forget("default")
	if lost := two(false); lost != nil {
		t.Errorf("lost what is not expected: %v", lost)
	}
}

// TestEntriesAwaitedAreBounded covers a time in which nothing can be sealed.
func TestEntriesAwaitedAreBounded(t *testing.T) {
	var o own
	for n := range mostOwn + 1000 {
		entries, _ := written(fmt.Sprint(n))
		o.send("default", entries)
		o.commit("default", entries, true)
	}
	if len(o.all) > mostOwn+1 {
		t.Errorf("%d entries are remembered", len(o.all))
	}
}

// TestFactsCoverWhatIsSealed checks that each column of an entry that affects decisions
// changes its code.
func TestFactsCoverWhatIsSealed(t *testing.T) {
	a, one := testAuthenticator(t, "secret", "period"), int64(1)
	zero := int64(0)
	entry := fact{kind: approval.EventApproved, subject: "apr_1", at: 5, version: 2, leaf: []byte("leaf")}
	codes := map[string]bool{}
	add := func(tenant string, index *int64, f fact) {
		codes[string(a.code("entries", f.values(tenant, index)...))] = true
	}
	add("default", nil, entry)
	add("default", &zero, entry)
	add("default", &one, entry)
	add("lab", nil, entry)
	for _, change := range []func(*fact){
		func(f *fact) { f.kind = approval.EventDenied },
		func(f *fact) { f.subject = "apr_2" },
		func(f *fact) { f.at++ },
		func(f *fact) { f.version++ },
		func(f *fact) { f.leaf = []byte("leaF") },
	} {
		f := entry
		change(&f)
		add("default", nil, f)
	}

	if len(codes) != 9 {
		t.Errorf("9 entries have %d codes", len(codes))
	}
}
