//go:build !linux

package growth

import "time"

// cpuTime is only available on Linux. On other systems only allocations are checked.
func cpuTime() (time.Duration, bool) { return 0, false }
