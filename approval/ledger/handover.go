package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// KeyRotated is the type of the last entry under one key. Its facts old and new are that key and
// the next one. The checkpoint after it is a handover, signed with both keys.
const KeyRotated = "key_rotated"

// Handed is a change of the key that an export proves.
type Handed struct {
	Size     int64 // number of entries up to the change
	From, To string
}

// keyring contains the keys that an auditor trusts: the pinned keys, and the keys that replaced one
// of them by a proven handover.
type keyring struct {
	pinned    []string
	handovers []string // notes in the header, in order
	proven    []Handed
}

// pin adds an auditor's keys. Empty keys are ignored.
func (k *keyring) pin(one string, more []string) {
	for _, key := range append([]string{one}, more...) {
		if key != "" {
			k.pinned = append(k.pinned, key)
		}
	}
}

func (k *keyring) expected() string {
	shown := make([]string, len(k.pinned))
	for i, key := range k.pinned {
		shown[i] = quote(key)
	}
	return strings.Join(shown, " or ")
}

// notes reads the handovers of a header.
func (k *keyring) notes(v value.Value) error {
	if v.Kind != value.Array || len(v.Items) == 0 {
		return errors.New(`"handovers" is not an array with a checkpoint at least`)
	}
	for _, item := range v.Items {
		if item.Kind != value.String {
			return errors.New(`"handovers" holds something else than texts`)
		}
		k.handovers = append(k.handovers, item.Text)
	}

	return nil
}

// mayTrust reports whether a key is trusted or may become trusted once handovers are proven.
func (k *keyring) mayTrust(key string) bool { return k.trusts(key) || len(k.handovers) > 0 }

// trusts reports whether a key is pinned or replaced a pinned key. If no key is pinned, it trusts
// all keys, which proves nothing about the signer.
func (k *keyring) trusts(key string) bool {
	return len(k.pinned) == 0 || slices.Contains(k.pinned, key) ||
		slices.ContainsFunc(k.before(key), func(key string) bool { return slices.Contains(k.pinned, key) })
}

// before lists the earlier keys that a key replaced by proven handovers, latest first.
func (k *keyring) before(key string) []string {
	var out []string
	for _, h := range slices.Backward(k.proven) {
		if h.To == key {
			out, key = append(out, h.From), h.From
		}
	}
	return out
}

// follow processes the next entry. If the entry is a key rotation, the next handover must be the
// checkpoint after it, signed with both keys.
func (k *keyring) follow(l Leaf, origin string, size int64, root func() Hash) error {
	if l.Type != KeyRotated || len(k.proven) == len(k.handovers) {
		return nil
	}
	from, _ := l.Facts.Get("old")
	to, _ := l.Facts.Get("new")
	note := []byte(k.handovers[len(k.proven)])
	want := Checkpoint{Origin: origin, Size: size, Root: root()}
	for _, key := range []string{from.Text, to.Text} {
		c, err := OpenCheckpoint(note, key)
		if err != nil {
			return fmt.Errorf("the handover to %s: %w", quote(to.Text), err)
		}
		if c != want {
			return fmt.Errorf(
				"the handover to %s is of %d entries with root %s, expected %d with %s",
				quote(to.Text),
				c.Size,
				c.Root,
				want.Size,
				want.Root,
			)
		}
	}

	k.proven = append(k.proven, Handed{Size: size, From: from.Text, To: to.Text})
	return nil
}

// whole returns an error if there are handovers without an entry.
func (k *keyring) whole() error {
	if n := len(k.handovers) - len(k.proven); n > 0 {
		return fmt.Errorf("%d handovers stand in the header that no entry tells of", n)
	}
	return nil
}
