package sqlstore

import (
	"sync"

	"github.com/assent-dev/assent/approval"
)

// What recent keeps at most: so many requests, and of each so many bytes of revisions. Arguments may have megabytes, which callers choose.
const (
	keptRequests = 2048
	keptBytes    = 16 << 10
)

// recent keeps requests as they were committed last, decoded while they are open, so that an answer to one needs neither its document from
// the database nor a parser. What it holds counts only while the database says that the version is still the same.
type recent struct {
	mu  sync.Mutex
	all map[[2]string]lately // by tenant and id
}

// lately is one request as this process committed it last.
type lately struct {
	version int64
	r       *approval.Request // never changed; nil once it has ended, or when it is large
	texts   revisions
}

func (c *recent) get(tenant, id string) lately {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[[2]string{tenant, id}]
}

func (c *recent) put(tenant string, r *approval.Request, texts revisions) {
	key, now := [2]string{tenant, r.ID}, lately{version: r.Version}
	if r.State.Open() && len(texts.text) <= keptBytes {
		now.r, now.texts = r.Clone(), texts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key].version > now.version { // another transaction was quicker to tell
		return
	}
	if c.all == nil {
		c.all = map[[2]string]lately{}
	}
	for victim := range c.all { // any
		if len(c.all) < keptRequests {
			break
		}
		delete(c.all, victim)
	}
	c.all[key] = now
}

// drop forgets a request that turned out to be out of date.
func (c *recent) drop(tenant, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, [2]string{tenant, id})
}
