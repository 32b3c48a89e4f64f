//go:build !race

package sqlite_test

import "time"

const (
	openRequests = 10_000
	slowest      = 500 * time.Millisecond
)
