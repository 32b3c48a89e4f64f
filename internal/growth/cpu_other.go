//go:build !linux

package growth

import "time"

const processClock, threadClock clock = 0, 0

// cpuTime is only available on Linux. On other systems only allocations are checked.
func cpuTime(clock) (time.Duration, bool) { return 0, false }
