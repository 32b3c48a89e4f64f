package mcp

import (
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// NamespacePrefix begins the namespaces of gateways (Config.Namespace)
// whose records OutlivesRestore and Reseal know.
const NamespacePrefix = "mcp/"

// purpose is that of the keys of all records.
const purpose = "mcp/"

// OutlivesRestore reports whether a record may stay in a store that was
// filled from a backup. Calls that had not ended may have run since, and
// would run again: they go, and the same call asks anew. Results that
// were kept stay, and the places of calls.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	if r.Due.IsZero() {
		return true, nil
	}
	return durable.Settled(key, purpose, r)
}

// Reseal returns what store.Rotation wants: values sealed with a key
// derived from the next one.
func Reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return durable.Reseal(NamespacePrefix, purpose, before, after)
}
