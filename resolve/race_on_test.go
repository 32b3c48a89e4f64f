//go:build race

package resolve_test

// The race detector makes sync.Pool forget at random, so a plan then
// allocates a scratch now and again.
const raceAllocations = 8
