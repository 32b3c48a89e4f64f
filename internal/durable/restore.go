package durable

import (
	"errors"
	"strings"

	"github.com/assent-dev/assent/store"
)

// CutKind splits the namespace of a vault's records into that of its owner (Sealing.Namespace)
// and the kind of its documents.
func CutKind(namespace string) (owner, kind string, ok bool) {
	i := strings.LastIndexByte(namespace, '/')
	if i < 0 {
		return namespace, "", false
	}
	return namespace[:i], namespace[i+1:], true
}

// Settled reports whether the record of a call has ended, so that it can't run again and may
// stay in a store that was restored from a backup. It returns an error if the record can't be
// read. Key and purpose are those of the Sealing.
func Settled(key []byte, purpose string, r store.Record) (bool, error) {
	owner, kind, _ := CutKind(r.Namespace)
	if kind != "calls" {
		return false, nil
	}
	v, err := NewVault[stateOnly](Sealing{Namespace: owner, Key: key, Purpose: purpose}, kind)
	if err != nil {
		return false, err
	}
	d, err := v.Open(r)
	return err == nil && d.Body.ended(), err
}

// stateOnly decodes only the state of a call's record.
type stateOnly struct {
	State State `json:"state"`
}

func (s stateOnly) ended() bool { return s.State == Ended || s.State == Closed }

// Reseal returns the function that store.Rotation needs. It reseals values in namespaces that
// begin with prefix, from a key derived from before to one derived from after, and returns all
// others unchanged. Purpose is that of the Sealing.
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
