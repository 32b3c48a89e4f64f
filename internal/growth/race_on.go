//go:build race

package growth

// slower is how much smaller inputs are under the race detector, which
// makes the same work about as much slower.
const slower = 10
