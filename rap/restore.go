package rap

import (
	"strings"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// NamespacePrefix is the prefix of the namespaces of this package's records.
const NamespacePrefix = "rap/"

// purpose is Sealing.Purpose for both sides, as in package names.
const purpose = "assent rap "

// OutlivesRestore reports whether a record may stay in a store that was restored from a backup.
// An open call may have run since, and would run again; a session grant may have been used up
// or ended. Ended calls stay, so that repetitions of them don't run.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	side, kind, _ := durable.CutKind(r.Namespace)
	switch {
	case kind == "grants":
		return false, nil
	case r.Due.IsZero():
		return true, nil
	case !strings.Contains(side, "gateway/"):
		return false, nil
	}

	return durable.Settled(key, purpose, r)
}

// Reseal returns the function that store.Rotation needs: it reseals values with the new key.
func Reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return durable.Reseal(NamespacePrefix, purpose, before, after)
}
