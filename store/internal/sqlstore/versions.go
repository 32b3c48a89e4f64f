package sqlstore

import (
	"sync"
	"time"
)

// rowName identifies a row with versions: a request or a grant by its id, the freezes by an
// empty subject.
type rowName struct{ tenant, subject string }

// versions remembers the latest version of each row that changed recently, from commits of
// this process and from the ledger's entries that it has followed. Memory is bounded: a row
// that was not seen for one to two spans is forgotten.
type versions struct {
	mu         sync.Mutex
	span       time.Duration
	turned     time.Time
	young, old map[rowName]int64
	freezes    map[string]int64 // by tenant; never forgotten
}

// mostVersions limits one generation (about 100 bytes for each row). It is more than the
// number of changes between two sealings; after a sealing, the tree shows the version.
const mostVersions = 10_000

func newVersions(span time.Duration) *versions {
	return &versions{
		span:    span,
		young:   map[rowName]int64{},
		freezes: map[string]int64{},
	}
}

// note remembers a version. now is the time of a clock that never goes back.
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

// latest returns the latest remembered version, or 0.
func (v *versions) latest(row rowName) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if row.subject == "" {
		return v.freezes[row.tenant]
	}
	return max(v.young[row], v.old[row])
}
