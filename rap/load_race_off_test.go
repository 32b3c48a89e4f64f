//go:build !race

package rap_test

const (
	loadPending = 10_000 // choices that wait
	loadCalls   = 200    // that go through while processes are killed
	loadKills   = 32
)
