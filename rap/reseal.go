package rap

import (
	"errors"
	"strings"

	"github.com/assent-dev/assent/rap/internal/kept"
)

// RoomPrefix begins the names of rooms whose records are of this package.
const RoomPrefix = "rap/"

// Reseal returns what store.Rotation wants: values sealed with a key derived from the next one.
func Reseal(before, after []byte) func(room, key string, value []byte) ([]byte, error) {
	return func(room, key string, value []byte) ([]byte, error) {
		if !strings.HasPrefix(room, RoomPrefix) {
			return value, nil
		}
		place, kind, ok := kept.CutKind(room)
		if !ok {
			return nil, errors.New("the room has no kind")
		}

		return kept.Resealed(place, kind, key, before, after, value)
	}
}
