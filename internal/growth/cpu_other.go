//go:build !linux

package growth

import "time"

const processClock, threadClock clock = 0, 0

// cpuTime is only available on Linux. On other systems only allocations are checked.
func cpuTime(clock) (time.Duration, bool) { return 0, false }

// residentPeak is only available on Linux. On other systems the heap is measured after the work.
func residentPeak(func()) (uint64, bool) { return 0, false }
