package directory_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/directory"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
}

func knows(t *testing.T, w *directory.Watched, name string) bool {
	t.Helper()
	_, ok, err := w.Person(t.Context(), "", name)
	must.Do(t, err)
	return ok
}

const (
	justAlice = "schema_version: \"1.0.0\"\npeople:\n  - {id: alice, groups: [g], owns: [x]}\n"
	justBobby = "schema_version: \"1.0.0\"\npeople:\n  - {id: bobby, groups: [g], owns: [x]}\n" // as long as justAlice
)

func TestWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	write(t, file, justAlice)
	synctest.Test(t, func(t *testing.T) {
		w, err := directory.Watch(file, directory.WatchOptions{})
		must.Do(t, err)
		ctx, stop := context.WithCancel(t.Context())
		go w.Run(ctx, time.Second)
		tick := func() {
			<-time.After(1100 * time.Millisecond)
			synctest.Wait()
		} // by the bubble’s clock
		write(t, file, justBobby)
		if tick(); knows(t, w, "alice") || !knows(t, w, "bobby") || w.Err() != nil {
			t.Errorf("not reloaded: %v", w.Err())
		}
		write(t, file, "schema_version: \"1.0.0\"\npeople:\n  - {id: bobby}\n  - {id: Bobby}\n")
		var broken *directory.BrokenError
		if tick(); !knows(t, w, "bobby") || !errors.As(w.Err(), &broken) ||
			!strings.Contains(w.Err().Error(), file+":4:10: \"Bobby\" is a name of") {
			t.Errorf("broken file: %v", w.Err())
		}
		must.Do(t, os.Remove(file))
		if tick(); !knows(t, w, "bobby") || !errors.Is(w.Err(), os.ErrNotExist) {
			t.Errorf("missing file: %v", w.Err())
		}
		write(t, file, justBobby) // the same bytes that were in force
		if tick(); w.Err() != nil {
			t.Errorf("mended file: %v", w.Err())
		}
		stop()
	})
}

func TestWatchBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	if _, err := directory.Watch(file, directory.WatchOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	write(t, file, "schema_version: \"1.0.0\"\npeople:\n  - {id: a, groups: [rsik]}\ngroups: {risk: {}}\n")
	if _, err := directory.Watch(file, directory.WatchOptions{}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "risk"?`) {
		t.Errorf("broken: %v", err)
	}
	write(t, file, strings.Repeat("#", 5<<20))
	if _, err := directory.Watch(file, directory.WatchOptions{}); err == nil {
		t.Error("too large a file was read")
	}
	if text := (&directory.BrokenError{File: "f"}).Error(); text == "" {
		t.Error("no text")
	}
}

func TestWatchedIsABase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	write(t, file, justAlice)
	w, err := directory.Watch(file, directory.WatchOptions{})
	must.Do(t, err)
	var base directory.Base = w
	m, err := base.Members(t.Context(), "", "g")
	o, err2 := base.Owners(t.Context(), "", "x")
	if len(m) != 1 || len(o) != 1 || err != nil || err2 != nil || base.Declares("", "g") {
		t.Errorf("%v %v %v %v", m, o, err, err2)
	}
	if err := w.Reload(); err != nil { // unchanged
		t.Error(err)
	}
}

// TestRefusesAFileWithoutAListOfGroups checks that with an identity provider such a file is
// refused with the line to write, at the start and later. Later, the previous directory
// stays in force.
func TestRefusesAFileWithoutAListOfGroups(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	write(t, file, justAlice)
	closed := directory.WatchOptions{ClosedGroups: true}
	var open *directory.OpenGroupsError
	if _, err := directory.Watch(file, closed); !errors.As(err, &open) || !strings.Contains(err.Error(),
		`groups: {"g": {}}`) {
		t.Fatalf("got %v", err)
	}
	write(t, file, justAlice+"groups: {g: {}}\n")
	w, err := directory.Watch(file, closed)
	must.Do(t, err)
	before, _ := w.InForce()
	write(t, file, justBobby)
	if err := w.Reload(); !errors.As(err, &open) || !knows(t, w, "alice") || knows(t, w, "bobby") {
		t.Errorf("got %v", err)
	}
	if now, n := w.InForce(); now != before || n != 1 {
		t.Errorf("in force is %s of %d people, want %s", now, n, before)
	}
}

// TestDenyBrokenPeople checks that with DenyBroken every lookup is an error while the file
// can't be used.
func TestDenyBrokenPeople(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	write(t, file, justAlice+"groups: {g: {}}\n")
	w, err := directory.Watch(file, directory.WatchOptions{DenyBroken: true})
	if err != nil || !knows(t, w, "alice") || !w.Declares("", "g") {
		t.Fatal(err)
	}
	write(t, file, "people: [")
	failed := w.Reload()
	if _, ok, err := w.Person(t.Context(), "", "alice"); failed == nil || ok || !errors.Is(err, failed) {
		t.Errorf("person: %t, %v", ok, err)
	}
	if m, err := w.Members(t.Context(), "", ""); m != nil || !errors.Is(err, failed) {
		t.Errorf("members: %v, %v", m, err)
	}
	if o, err := w.Owners(t.Context(), "", "x"); o != nil || !errors.Is(err, failed) || w.Declares("", "g") {
		t.Errorf("owners: %v, %v", o, err)
	}
	write(t, file, justBobby)
	if err := w.Reload(); err != nil || !knows(t, w, "bobby") {
		t.Errorf("mended: %v", err)
	}
}
