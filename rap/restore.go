package rap

import (
	"errors"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// RoomPrefix begins the namespaces whose records are of this package.
const NamespacePrefix = "rap/"

// purpose is that of both sides' keys, as package names has it.
const purpose = "assent rap "

// documents opens the records of a kind that one side keeps.
func documents[T any](side, kind string, key []byte) (*durable.Vault[T], error) {
	return durable.NewVault[T](durable.Sealing{
		Namespace: side,
		Key:       key,
		Purpose:   purpose,
	}, kind)
}

// cutKind parts a namespace into that of its side and the kind of its
// documents.
func cutKind(namespace string) (side, kind string, ok bool) {
	i := strings.LastIndexByte(namespace, '/')
	if i < 0 {
		return namespace, "", false
	}

	return namespace[:i], namespace[i+1:], true
}

// OutlivesRestore reports whether a record may stay in a store that was
// filled from a backup. Calls on their way may have run since, and
// would run again; what a user allowed for a session may have been used
// up or ended. Calls that had ended stay, so that repetitions of them
// run nothing.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	side, kind, _ := cutKind(r.Namespace)
	switch {
	case kind == "grants":
		return false, nil
	case r.Due.IsZero():
		return true, nil
	case kind != "calls" || !strings.Contains(side, "gateway/"):
		return false, nil
	}

	v, err := documents[restored](side, kind, key)
	if err != nil {
		return false, err
	}
	d, err := v.Open(r)

	return err == nil && d.Body.ended(), err
}

// restored is what a record says of how far its call had come.
type restored struct {
	State durable.State `json:"state"`
	Phase string        `json:"phase"` // of a version before the engine
}

func (r restored) ended() bool {
	return slices.Contains([]durable.State{durable.Ended, durable.Closed}, r.State) ||
		slices.Contains([]string{"done", "following", "delivered"}, r.Phase)
}

// Reseal returns what store.Rotation wants: values sealed with a key
// derived from the next one.
func Reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return func(namespace, key string, value []byte) ([]byte, error) {
		if !strings.HasPrefix(namespace, NamespacePrefix) {
			return value, nil
		}
		side, kind, ok := cutKind(namespace)
		if !ok {
			return nil, errors.New("the namespace has no kind")
		}

		from, err1 := documents[struct{}](side, kind, before)
		to, err2 := documents[struct{}](side, kind, after)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		text, err := from.Unseal(key, value)
		if err != nil {
			return nil, err
		}

		return to.Seal(key, text), nil
	}
}
