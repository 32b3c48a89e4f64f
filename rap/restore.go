package rap

import (
	"strings"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// NamespacePrefix begins the namespaces whose records are of this
// package.
const NamespacePrefix = "rap/"

// purpose is that of both sides' keys, as package names has it.
const purpose = "assent rap "

// OutlivesRestore reports whether a record may stay in a store that was
// filled from a backup. Calls on their way may have run since, and
// would run again; what a user allowed for a session may have been used
// up or ended. Calls that had ended stay, so that repetitions of them
// run nothing.
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

// Reseal returns what store.Rotation wants: values sealed with a key
// derived from the next one.
func Reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return durable.Reseal(NamespacePrefix, purpose, before, after)
}
