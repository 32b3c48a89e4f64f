package runtime

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// leftOf is how many records of each kind a namespace has.
func leftOf(t testing.TB, records store.Records, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, kind := range []string{"calls", "refs", "threads", "events", "views", "users", "sign_ins"} {
		found := must.Get(records.ListRecords(t.Context(), namespace+"/"+kind, "", "", 100))(t)
		out[kind] = len(found)
	}

	return out
}

// TestForgetsWhatAnEarlierProcessKept: calls of a process that is gone
// are deleted when their time is over, whether they had ended or not
// and whether a runtime still works in their namespace or none does.
func TestForgetsWhatAnEarlierProcessKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assent.db")
	open := func() store.Store {
		return must.Get(sqlite.Open(t.Context(), path, sqlite.Options{}))(t)
	}
	db := open()
	w := newRTWorld(t, func(c *Config) {
		c.Records = db
		c.Person = func(context.Context, string) (string, bool, error) { return "ann", true, nil }
	})
	w.sent("ended")
	w.accepts("ended", rtResult("ended", "done"))
	w.subscribes("told")
	w.accepts("told", rtEvent("told", "on"))
	w.accepts("told", rtView("log", "{}"))
	w.sent("open")
	w.accepts("open", w.choice("open", "1"))
	w.asked(1)
	w.settles()
	w.stop()
	must.Do(t, db.Close())

	db = open() // in a process that has no runtime for the agent any more
	t.Cleanup(func() { _ = db.Close() })
	for _, c := range []struct {
		after time.Duration
		calls int
	}{{keepEnded - time.Hour, 3}, {keepEnded + time.Hour, 2}} {
		must.Do(t, db.SweepRecords(t.Context(), w.now().Add(c.after)))
		if left := leftOf(t, db, "clerk"); left["calls"] != c.calls {
			t.Errorf("after %s: %v, want %d calls", c.after, left, c.calls)
		}
	}

	must.Do(t, db.SweepRecords(t.Context(), w.now().Add(keepLive+w.cfg.CallWithin+2*time.Hour)))
	for kind, n := range leftOf(t, db, "clerk") {
		if n > 0 {
			t.Errorf("%d %s are kept for ever", n, kind)
		}
	}
	w.cfg.Records = db
	w.start()
}

// TestEndsWhatAnEarlierProcessLeft: the next process ends the calls of
// one that is gone, and forgets them in their time.
func TestEndsWhatAnEarlierProcessLeft(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	w.stop()
	w.pass(2 * time.Hour) // of which nobody knew
	w.start()
	w.ends("a", WhyTimeout)
	w.stop()
	w.pass(keepEnded)
	w.start()
	w.until("forgotten", func() bool { return leftOf(t, w.cfg.Records, "clerk")["calls"] == 0 })
}
