//go:build !linux

package growth

import "time"

var start = time.Now()

// processorTime returns the time since the start: other systems offer no
// clock of a thread without cgo.
func processorTime() time.Duration { return time.Since(start) }
