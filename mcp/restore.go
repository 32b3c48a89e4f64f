package mcp

import (
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// NamespacePrefix is the prefix of the namespaces of gateways (Config.Namespace) that
// OutlivesRestore and Reseal work on.
const NamespacePrefix = "mcp/"

// purpose is the purpose of the keys that seal all records.
const purpose = "mcp/"

// OutlivesRestore reports whether a record may stay in a store that was restored from a backup.
// Calls that had not ended may have run since the backup, and would run again: they are removed,
// and the same call asks again. Stored results stay, and so do records that are never due.
func OutlivesRestore(key []byte, r store.Record) (bool, error) {
	if r.Due.IsZero() {
		return true, nil
	}
	return durable.Settled(key, purpose, r)
}

// Reseal returns the function that store.Rotation needs. It seals values with a key derived from
// the next key.
func Reseal(before, after []byte) func(namespace, key string, value []byte) ([]byte, error) {
	return durable.Reseal(NamespacePrefix, purpose, before, after)
}
