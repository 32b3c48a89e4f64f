package rap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/store"
)

// RoomPrefix begins the names of rooms whose records are of this package.
const RoomPrefix = "rap/"

// OutlivesRestore reports whether a record may stay in a store that was filled from a backup. Calls on their way may have run since, and would run
// again; what a user allowed for a session may have been used up or ended. Calls that had ended stay, so that repetitions of them run nothing.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	place, kind, _ := cutLast(r.Room)
	switch {
	case kind == "grants":
		return false, nil
	case r.Due.IsZero():
		return true, nil
	case kind != "calls" || !strings.Contains(place, "gateway/"):
		return false, nil
	}
	v, err := newVault[gateCall](&Common{Room: place, Key: key}, kind)
	if err != nil {
		return false, err
	}
	d, err := v.open(r)
	return err == nil && d.body.over(), err
}

// Reseal returns what store.Rotation wants: values sealed with a key derived from the next one.
func Reseal(before, after []byte) func(room, key string, value []byte) ([]byte, error) {
	return func(room, key string, value []byte) ([]byte, error) {
		if !strings.HasPrefix(room, RoomPrefix) {
			return value, nil
		}
		place, kind, ok := cutLast(room)
		if !ok {
			return nil, errors.New("the room has no kind")
		}
		from, err1 := newVault[struct{}](&Common{Room: place, Key: before}, kind)
		to, err2 := newVault[struct{}](&Common{Room: place, Key: after}, kind)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		text, err := from.aead.Open(nil, nil, value, from.place(key))
		if err != nil {
			return nil, fmt.Errorf("it can't be opened: another key sealed it: %w", err)
		}
		return to.aead.Seal(nil, nil, text, to.place(key)), nil
	}
}

func cutLast(room string) (place, kind string, ok bool) {
	i := strings.LastIndexByte(room, '/')
	if i < 0 {
		return room, "", false
	}
	return room[:i], room[i+1:], true
}
