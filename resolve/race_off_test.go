//go:build !race

package resolve_test

const raceAllocations = 0
