//go:build race

package growth

// slower divides the size of inputs under the race detector, which makes the same work slower by
// about this factor.
const slower = 10
