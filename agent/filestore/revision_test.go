package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/internal/must"
)

// TestLateSaver lets a saver stop between any two of its steps while
// others go on, and expects that it never saves.
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

// TestStoppedInTheMiddle walks through the two orders of events in
// which a check that is left out lets a second saver win a revision
// that is removed by then.
func TestStoppedInTheMiddle(t *testing.T) {
	s := newStore(t)
	dir := filepath.Join(s.dir, nameOf("a"))
	must.Do(t, s.begin(dir, "a"))
	// Four saves, the last of which has listed the directory and not
	// removed anything yet. Then a late saver comes.
	for n := int64(1); n <= 4; n++ {
		must.Do(t, os.WriteFile(filepath.Join(dir, revisionFile(n)), nil, 0o600))
	}
	late := must.Get(prepare(dir, 1, []byte("late")))(t)
	if err := late.check(); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("check of a draft whose revision is there and about to be removed: %v", err)
	}
	// A saver has checked and stops. Others save, and remove what they
	// made useless. Then it goes on.
	early := &draft{dir, late.path, 5}
	must.Do(t, early.check())
	must.Do(t, os.WriteFile(filepath.Join(dir, revisionFile(8)), nil, 0o600))
	prune(dir, 8)
	if err := early.link(); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("link of a draft whose revision came and went: %v", err)
	}
}

// TestOldestFirst expects that nothing is removed after what can't be
// removed.
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
