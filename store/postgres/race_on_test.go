//go:build race

package postgres_test

import "time"

// The race detector makes the engine some fifty times slower.
const (
	openRequests = 1000
	slowest      = 10 * time.Second
)
