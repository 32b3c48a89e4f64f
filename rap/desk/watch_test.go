package desk

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
	"github.com/assent-dev/assent/client"
)

// Whatever happens to what was asked, the desk tells, whichever way it hears of it.
func TestWatchTellsWhatChanges(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *house, of func(runtime, agentID string) seat) {
		d := of("rt", "files")
		answeredOne, expired, withdrawn := put(t, d, "1", motd()), "", put(t, d, "3", motd())
		q := motd()
		q.Within = time.Minute
		expired = put(t, d, "2", q)
		w := watching(t, d)
		state := func(ref string, want hold.AnswerState) func(string) bool {
			return func(told string) bool {
				got, err := d.Answer(t.Context(), ref)
				return (told == ref || told == "") && err == nil && got.State == want
			}
		}
		h.vote(answeredOne, "mara", approval.Choose, 1)
		w.until("an answer", state(answeredOne, hold.AnswerChosen))
		must(t, d.Cancel(t.Context(), withdrawn, ""))
		w.until("a withdrawal", state(withdrawn, hold.AnswerCancelled))
		h.clock.add(time.Minute)
		w.until("the end of time", state(expired, hold.AnswerExpired))
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// What follows the ledger names requests of its own agent, and no others.
func TestWatchNamesOnesOwn(t *testing.T) {
	for name, side := range sides() {
		if strings.Contains(name, "polling") {
			continue // which never knows
		}
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			d, other := side(h, "rt", "files"), side(h, "rt", "other")
			w := watching(t, d)
			foreign, mine := put(t, other, "theirs", motd()), put(t, d, "ours", motd())
			h.vote(foreign, "mara", approval.Choose, 0)
			must(t, h.svc.Freeze(t.Context(), "acme", "other", "mara", ""))
			h.vote(mine, "mara", approval.Choose, 0)
			w.until("an answer", func(ref string) bool {
				if ref != "" && ref != mine {
					t.Errorf("it tells of %q", ref)
				}
				return ref == mine
			})
			for _, agent := range []string{"files", ""} {
				must(t, h.svc.Freeze(t.Context(), "acme", agent, "mara", ""))
				w.until("a freeze", func(ref string) bool { return ref == "" })
				must(t, h.svc.Thaw(t.Context(), "acme", agent, "mara", ""))
				w.until("its end", func(ref string) bool { return ref == "" })
			}
		})
	}
}

// A ledger that can't be read for a time hides nothing for good.
func TestWatchAfterTrouble(t *testing.T) {
	h := newHouse(t)
	d := seatAt(Service(h.svc, h.store, Place{Tenant: "acme", Agent: "files"}), "rt")
	ref := put(t, d, "k", motd())
	w := watching(t, d)
	h.store.lose(errors.New("disk on fire"))
	h.vote(ref, "mara", approval.Choose, 0)
	w.until("all may have changed", func(told string) bool { return told == "" })
	h.store.lose(nil)
	second := put(t, d, "k2", motd())
	h.vote(second, "mara", approval.Choose, 0)
	w.until("the second answer", func(told string) bool {
		got, err := d.Answer(t.Context(), second)
		return err == nil && got.State == hold.AnswerChosen && (told == second || told == "")
	})
}

// More than one read of the ledger brings is told whole.
func TestWatchCatchesUp(t *testing.T) {
	h := newHouse(t)
	d := seatAt(Service(h.svc, h.store, Place{Tenant: "acme", Agent: "files"}), "rt")
	w := watching(t, d)
	want := map[string]bool{}
	h.store.mu.Lock() // the desk reads no further
	for i := range batch {
		ref := put(t, d, fmt.Sprint(i), motd())
		must(t, d.Cancel(t.Context(), ref, ""))
		want[ref] = true
	}
	for size := int64(0); size < 2*batch; {
		changed := h.store.Changed("acme")
		var err error
		size, _, err = h.store.Checkpoint(t.Context(), "acme")
		must(t, err)
		await(t.Context(), changed, 20*time.Millisecond)
	}
	h.store.mu.Unlock()
	w.until("all of them", func(told string) bool {
		delete(want, told)
		return len(want) == 0
	})
}

// Where there is nothing to follow, the desk has everything looked at again and again.
func TestWatchWithoutAServer(t *testing.T) {
	h := newHouse(t)
	d := Client("files", map[string]*client.Client{"rt": h.client("rt", "request", "read")}).(*clientDesk)
	d.poll = 20 * time.Millisecond
	h.stop()
	w := watching(t, seatAt(d, "rt"))
	for range 3 {
		w.until("a look", func(told string) bool { return told == "" })
	}
}

func TestNews(t *testing.T) {
	leaf := func(kind, subject string, facts map[string]any) string {
		record, err := ledger.Entry{Time: time.Now(), Tenant: "acme", Type: kind, Subject: subject, Facts: facts}.Seal(strings.NewReader(strings.Repeat("salt", 9)))
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
		news{"files", func(ref string) { told = ref }}.leaf([]byte(tt.leaf))
		if told != tt.want {
			t.Errorf("%s: told of %q, want %q", name, told, tt.want)
		}
	}
}

// FuzzNews: no leaf makes the desk panic or tell of a request that is not in it.
func FuzzNews(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`["assent/1","2026-01-01T00:00:00.000000Z"]`))
	f.Fuzz(func(t *testing.T, leaf []byte) {
		news{"files", func(ref string) {
			if l, err := ledger.ParseLeaf(leaf); err == nil && ref != "" && l.Subject != ref {
				t.Fatalf("told of %q", ref)
			}
		}}.leaf(leaf)
	})
}
