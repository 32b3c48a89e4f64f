//go:build race

package rap_test

// The race detector makes the engine some fifty times slower: what is measured without it is only gone through here.
const (
	loadPending = 500
	loadCalls   = 60
	loadKills   = 12
)
