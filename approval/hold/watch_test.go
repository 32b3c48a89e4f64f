package hold_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/assenttest"
)

// TestWatchTellsWhatChanges: Watch reports every change of a request, however it learns of the
// change.
func TestWatchTellsWhatChanges(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		answeredOne := put(t, d, "1", motd())
		expired := ""
		withdrawn := put(t, d, "3", motd())
		q := motd()
		q.Within = time.Minute
		expired = put(t, d, "2", q)
		w := watching(t, d)
		state := func(ref string, want hold.State) func(string) bool {
			return func(told string) bool {
				got, err := d.Answer(t.Context(), ref)
				return (told == ref || told == "") && err == nil && got.State == want
			}
		}
		chooses(h, answeredOne, "mara", 1)
		w.until("an answer", state(answeredOne, hold.Chosen))
		must(t, d.Cancel(t.Context(), withdrawn, ""))
		w.until("a withdrawal", state(withdrawn, hold.Cancelled))
		h.Clock.Add(time.Minute)
		w.until("the end of time", state(expired, hold.Expired))
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWatchNamesOnesOwn: Watch reports only requests of its own agent if it follows the ledger.
func TestWatchNamesOnesOwn(t *testing.T) {
	for name, one := range sides() {
		if strings.Contains(name, "polling") {
			continue // polling does not know which request changed
		}
		t.Run(name, func(t *testing.T) {
			h := newAssent(t, assenttest.Config{Runs: true})
			d, other := one(h, "rt", "files"), one(h, "rt", "other-files")
			w := watching(t, d)
			foreign, mine := put(t, other, "theirs", motd()), put(t, d, "ours", motd())
			chooses(h, foreign, "mara", 0)
			must(t, h.Service.Freeze(t.Context(), "acme", "other-files", "mara", ""))
			chooses(h, mine, "mara", 0)
			w.until("an answer", func(ref string) bool {
				if ref != "" && ref != mine {
					t.Errorf("it tells of %q", ref)
				}
				return ref == mine
			})
			for _, agent := range []string{"files", ""} {
				must(t, h.Service.Freeze(t.Context(), "acme", agent, "mara", ""))
				w.until("a freeze", func(ref string) bool { return ref == "" })
				must(t, h.Service.Thaw(t.Context(), "acme", agent, "mara", ""))
				w.until("its end", func(ref string) bool { return ref == "" })
			}
		})
	}
}

// TestWatchAfterTrouble: changes during a failure of the ledger are reported afterwards.
func TestWatchAfterTrouble(t *testing.T) {
	h, log := withFragileLog(t)
	d := inProcess(h, "rt", "files")
	ref := put(t, d, "k", motd())
	w := watching(t, d)
	log.lose(errors.New("disk on fire"))
	chooses(h, ref, "mara", 0)
	w.until("all may have changed", func(told string) bool { return told == "" })
	log.lose(nil)
	second := put(t, d, "k2", motd())
	chooses(h, second, "mara", 0)
	w.until("the second answer", func(told string) bool {
		got, err := d.Answer(t.Context(), second)
		return err == nil && got.State == hold.Chosen && (told == second || told == "")
	})
}

// TestWatchCatchesUp: Watch reports all entries if there are more than one read returns.
func TestWatchCatchesUp(t *testing.T) {
	h, log := withFragileLog(t)
	d := inProcess(h, "rt", "files")
	w := watching(t, d)
	want := map[string]bool{}
	log.mu.Lock() // blocks the reader
	for i := range hold.Batch {
		ref := put(t, d, fmt.Sprint(i), motd())
		must(t, d.Cancel(t.Context(), ref, ""))
		want[ref] = true
	}
	for size := int64(0); size < 2*hold.Batch; {
		changed := h.Store.Changed("acme")
		var err error
		size, _, err = h.Store.Checkpoint(t.Context(), "acme")
		must(t, err)
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}

	log.mu.Unlock()
	w.until("all of them", func(told string) bool {
		delete(want, told)
		return len(want) == 0
	})
}

// TestWatchWithoutAServer: without a ledger to follow, Watch repeatedly reports that any request
// may have changed.
func TestWatchWithoutAServer(t *testing.T) {
	h := newAssent(t, assenttest.Config{})
	d := atServer("request", "read")(h, "rt", "files")
	h.Stop()
	w := watching(t, d)
	for range 3 {
		w.until("a look", func(told string) bool { return told == "" })
	}
}

func TestChanges(t *testing.T) {
	leaf := func(kind, subject string, facts map[string]any) string {
		record, err := ledger.Entry{
			Time:    time.Now(),
			Tenant:  "acme",
			Type:    kind,
			Subject: subject,
			Facts:   facts,
		}.Seal(strings.NewReader(strings.Repeat("salt", 9)))
		must(t, err)
		return string(record.Leaf)
	}
	files := map[string]any{"agent": "files"}
	for name, tt := range map[string]struct{ leaf, want string }{
		"answered":          {leaf(approval.EventAnswered, "qst_1", files), "qst_1"},
		"approved":          {leaf(approval.EventApproved, "apr_1", files), "apr_1"},
		"edited":            {leaf(approval.EventEdited, "apr_1", files), "apr_1"},
		"a permit's end":    {leaf(approval.EventPermitExpired, "apr_1", files), "apr_1"},
		"consumed":          {leaf(approval.EventConsumed, "apr_1", files), "apr_1"},
		"opened":            {leaf(approval.EventOpened, "qst_1", files), "nothing"},
		"a vote":            {leaf(approval.EventVote, "qst_1", files), "nothing"},
		"reminded":          {leaf(approval.EventReminded, "qst_1", files), "nothing"},
		"of another agent":  {leaf(approval.EventAnswered, "qst_1", map[string]any{"agent": "other"}), "nothing"},
		"of no agent":       {leaf(approval.EventAnswered, "qst_1", nil), "nothing"},
		"frozen":            {leaf(approval.EventFrozen, "", files), ""},
		"thawed":            {leaf(approval.EventThawed, "", files), ""},
		"thawed, all":       {leaf(approval.EventThawed, "", map[string]any{"agent": ""}), ""},
		"thawed, another":   {leaf(approval.EventThawed, "", map[string]any{"agent": "other"}), "nothing"},
		"a token":           {leaf("token_created", "tok_1", files), "nothing"},
		"what is no leaf":   {"{}", ""},
		"what is unhinged":  {"\xff", ""},
		"nothing whatever":  {"", ""},
		"a leaf and a half": {leaf(approval.EventAnswered, "qst_1", files) + "{", ""},
	} {
		told := "nothing"
		hold.Changes{Agent: "files", Changed: func(ref string) { told = ref }}.Leaf([]byte(tt.leaf))
		if told != tt.want {
			t.Errorf("%s: told of %q, want %q", name, told, tt.want)
		}
	}
}

// FuzzChanges: no leaf causes a panic, or a report of a request that the leaf does not contain.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`["assent/1","2026-01-01T00:00:00.000000Z"]`))
	f.Fuzz(func(t *testing.T, leaf []byte) {
		hold.Changes{
			Agent: "files",
			Changed: func(ref string) {
				if l, err := ledger.ParseLeaf(leaf); err == nil && ref != "" && l.Subject != ref {
					t.Fatalf("told of %q", ref)
				}
			},
		}.Leaf(leaf)
	})
}
