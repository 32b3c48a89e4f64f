//go:build !linux

package growth

import "time"

// cpuTime is only known on Linux. Elsewhere allocations alone are held.
func cpuTime() (time.Duration, bool) { return 0, false }
