package durable

import (
	"errors"
	"strings"

	"github.com/assent-dev/assent/store"
)

// CutKind parts the namespace of a vault's records into that of its
// owner (Sealing.Namespace) and the kind of its documents.
func CutKind(namespace string) (owner, kind string, ok bool) {
	i := strings.LastIndexByte(namespace, '/')
	if i < 0 {
		return namespace, "", false
	}
	return namespace[:i], namespace[i+1:], true
}

// Settled reports whether a call's record says that it has ended, so
// that nothing is left to be run of it: it may stay in a store that was
// filled from a backup. An error says that it can't be read. Key and
// purpose are those of the Sealing.
func Settled(key []byte, purpose string, r store.Record) (bool, error) {
	owner, kind, _ := CutKind(r.Namespace)
	if kind != "calls" {
		return false, nil
	}
	v, err := NewVault[stated](Sealing{Namespace: owner, Key: key, Purpose: purpose}, kind)
	if err != nil {
		return false, err
	}
	d, err := v.Open(r)
	return err == nil && d.Body.ended(), err
}

// stated is what a record says of how far its call had come.
type stated struct {
	State State `json:"state"`
}

func (s stated) ended() bool { return s.State == Ended || s.State == Closed }

// Reseal returns what store.Rotation wants: the values below a prefix
// of namespaces sealed with a key derived from the next one, all others
// as they are. Purpose is that of the Sealing.
func Reseal(prefix, purpose string, before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return func(namespace, key string, value []byte) ([]byte, error) {
		if !strings.HasPrefix(namespace, prefix) {
			return value, nil
		}
		owner, kind, ok := CutKind(namespace)
		if !ok {
			return nil, errors.New("the namespace has no kind")
		}
		s := Sealing{Namespace: owner, Key: before, Purpose: purpose}
		from, err1 := NewVault[struct{}](s, kind)
		s.Key = after
		to, err2 := NewVault[struct{}](s, kind)
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
