package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/internal/must"
)

// TestLateSaver pauses a saving process between any two of its steps while others continue, and
// checks that its save fails.
func TestLateSaver(t *testing.T) {
	for others := 1; others <= 5; others++ {
		for base := int64(0); base < 3; base++ {
			s := newStore(t)
			th := agent.NewThread("a")
			for range base {
				mustSave(t, s, th)
			}
			dir := filepath.Join(s.dir, nameOf("a"))
			must.Do(t, s.begin(dir, "a"))
			early := must.Get(prepare(dir, base+1, []byte("early")))(t)
			for range others {
				mustSave(t, s, th)
			}
			late := must.Get(prepare(dir, base+1, []byte("late")))(t)
			for name, d := range map[string]*draft{"early": early, "late": late} {
				if err := d.publish(); !errors.Is(err, agent.ErrConflict) {
					t.Errorf("base %d, %d others, %s: %v", base, others, name, err)
				}
			}
			if got := mustLoad(t, s, "a"); got.Revision != base+int64(others) {
				t.Errorf("base %d, %d others: revision %d", base, others, got.Revision)
			}
		}
	}
}

// TestStoppedInTheMiddle tests the two orders of events in which a missing check would let a
// second process save a revision that has been removed by then.
func TestStoppedInTheMiddle(t *testing.T) {
	s := newStore(t)
	dir := filepath.Join(s.dir, nameOf("a"))
	must.Do(t, s.begin(dir, "a"))
	// There were four saves. The last one has listed the directory and has not removed anything
	// yet. Then a late process saves.
	for n := int64(1); n <= 4; n++ {
		must.Do(t, os.WriteFile(filepath.Join(dir, revisionFile(n)), nil, 0o600))
	}
	late := must.Get(prepare(dir, 1, []byte("late")))(t)
	if err := late.check(); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("check of a draft whose revision is there and about to be removed: %v", err)
	}
	// A process has done its checks and pauses. Others save and remove obsolete files. Then it
	// continues.
	early := &draft{dir, late.path, 5}
	must.Do(t, early.check())
	must.Do(t, os.WriteFile(filepath.Join(dir, revisionFile(8)), nil, 0o600))
	prune(dir, 8)
	if err := early.link(); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("link of a draft whose revision came and went: %v", err)
	}
}

// TestOldestFirst checks that nothing is removed after a file that can't be removed.
func TestOldestFirst(t *testing.T) {
	s := newStore(t)
	mustSave(t, s, agent.NewThread("a"))
	dir := filepath.Join(s.dir, nameOf("a"))
	must.Do(t, errors.Join(os.Remove(filepath.Join(dir, "0.json")),
		os.MkdirAll(filepath.Join(dir, "0.json", "x"), 0o700)))

	for n := int64(2); n <= 12; n++ {
		must.Do(t, os.WriteFile(filepath.Join(dir, revisionFile(n)), nil, 0o600))
	}
	prune(dir, 12)
	if got := files(t, s, "a"); len(got) != 14 {
		t.Errorf("files %v", got)
	}
}
