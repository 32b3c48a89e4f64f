package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// KeyRotated is the type of the last entry under one key: its facts old
// and new name that key and the next one. The checkpoint behind it is a
// handover, signed by both.
const KeyRotated = "key_rotated"

// Handed is a change of the key that an export proves.
type Handed struct {
	Size     int64 // entries up to there
	From, To string
}

// keyring knows which keys an auditor trusts: those that are pinned,
// and those that took over from one of them by a handover.
type keyring struct {
	pinned    []string
	handovers []string // notes of the header, in order
	proven    []Handed
}

// pin takes the keys that an auditor has. Empty ones are none.
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

// mayTrust reports whether a key can turn out to be trusted once the
// handovers are proven.
func (k *keyring) mayTrust(key string) bool { return k.trusts(key) || len(k.handovers) > 0 }

// trusts reports whether a key is pinned, or took over from one that
// is. Without a pinned key all are, which proves nothing.
func (k *keyring) trusts(key string) bool {
	return len(k.pinned) == 0 || slices.Contains(k.pinned, key) ||
		slices.ContainsFunc(k.before(key), func(key string) bool { return slices.Contains(k.pinned, key) })
}

// before lists the keys from which one came, by the handovers that were
// proven, the latest first.
func (k *keyring) before(key string) []string {
	var out []string
	for _, h := range slices.Backward(k.proven) {
		if h.To == key {
			out, key = append(out, h.From), h.From
		}
	}
	return out
}

// follow takes the next entry. When it tells of a new key, the next
// handover must be the checkpoint behind it, signed by both.
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

// whole refuses handovers that no entry tells of.
func (k *keyring) whole() error {
	if n := len(k.handovers) - len(k.proven); n > 0 {
		return fmt.Errorf("%d handovers stand in the header that no entry tells of", n)
	}
	return nil
}
