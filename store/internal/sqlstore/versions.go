package sqlstore

import (
	"sync"
	"time"
)

// rowName is a row with versions: a request or a grant by its id, ""
// for what is frozen.
type rowName struct{ tenant, subject string }

// versions remembers the latest version of what changed of late,
// whoever changed it: by commits of this process, and by the ledger's
// entries that it has followed. Memory is bounded: what was not seen
// again for one to two spans is forgotten.
type versions struct {
	mu         sync.Mutex
	span       time.Duration
	turned     time.Time
	young, old map[rowName]int64
	freezes    map[string]int64 // by tenant; never forgotten
}

// mostVersions bounds a generation, about 100 bytes each: more than
// changes between two sealings, behind which the tree tells.
const mostVersions = 10_000

func newVersions(span time.Duration) *versions {
	return &versions{
		span:    span,
		young:   map[rowName]int64{},
		freezes: map[string]int64{},
	}
}

// note remembers a version. now is any clock that goes on.
func (v *versions) note(row rowName, version int64, now time.Time) {
	if version <= 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if row.subject == "" {
		v.freezes[row.tenant] = max(v.freezes[row.tenant], version)
		return
	}
	if now.Sub(v.turned) >= v.span || len(v.young) >= mostVersions {
		v.old = v.young
		v.young = map[rowName]int64{}
		v.turned = now
	}
	v.young[row] = max(version, v.young[row], v.old[row])
}

// latest is the latest version that is remembered, 0 for none.
func (v *versions) latest(row rowName) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if row.subject == "" {
		return v.freezes[row.tenant]
	}
	return max(v.young[row], v.old[row])
}
