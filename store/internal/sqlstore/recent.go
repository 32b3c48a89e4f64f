package sqlstore

import (
	"sync"

	"github.com/assent-dev/assent/approval"
)

// keptRequests bounds what recent keeps.
const keptRequests = 2048

// recent keeps open requests as they were committed last, decoded, so that an answer to one needs neither its document from the database nor
// a parser. What it holds counts only while the database says that the version is still the same; then the row is read for its
// lock alone.
type recent struct {
	mu  sync.Mutex
	all map[[2]string]*approval.Request // by tenant and id; never changed
}

// get returns a request that only its Clone may be changed of, or nil.
func (c *recent) get(tenant, id string) *approval.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[[2]string{tenant, id}]
}

// put keeps an open request, and forgets one that has ended: few ask for it again.
func (c *recent) put(tenant string, r *approval.Request) {
	key := [2]string{tenant, r.ID}
	kept := r.Clone()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.State.Open() {
		delete(c.all, key)
		return
	}
	if c.all == nil {
		c.all = map[[2]string]*approval.Request{}
	}
	for victim := range c.all { // any
		if len(c.all) < keptRequests {
			break
		}
		delete(c.all, victim)
	}
	c.all[key] = kept
}
