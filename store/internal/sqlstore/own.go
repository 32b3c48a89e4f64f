package sqlstore

import (
	"sync"

	"github.com/assent-dev/assent/approval/ledger"
)

// own remembers the entries that this process wrote until it sees them sealed, so that an
// entry can't be removed before that without being noticed.
type own struct {
	mu      sync.Mutex
	all     map[ownEntry]ownCount
	suspect map[ownEntry]bool // missing after the previous round
}

type ownEntry struct {
	tenant string
	hash   ledger.Hash
}

// ownCount counts equal entries: those that are being committed, and those that are
// committed.
type ownCount struct{ sent, kept int }

// mostOwn limits the remembered entries while nothing can be sealed.
const mostOwn = 100_000

// send notes entries before their commit, because another goroutine may see them sealed
// before this one learns that they were committed.
func (o *own) send(tenant string, entries []appended) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil || len(o.all) > mostOwn {
		o.all = map[ownEntry]ownCount{}
	}
	for _, e := range entries {
		k := ownEntry{tenant, ledger.LeafHash(e.Leaf)}
		n := o.all[k]
		n.sent++
		o.all[k] = n
	}
}

// commit notes whether the entries were committed. If committed is false, the outcome may
// be unknown, so the log is not required to contain them.
func (o *own) commit(tenant string, entries []appended, committed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		k := ownEntry{tenant, ledger.LeafHash(e.Leaf)}
		n := o.all[k]
		if n.sent == 0 {
			continue // seen already
		}
		if n.sent--; committed {
			n.kept++
		}
		o.set(k, n)
	}
}

func (o *own) set(k ownEntry, n ownCount) {
	if n == (ownCount{}) {
		delete(o.all, k)
	} else {
		o.all[k] = n
	}
}

// seen removes entries that were sealed.
func (o *own) seen(tenant string, all []logged) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range all {
		k := ownEntry{tenant, e.hash}
		n, mine := o.all[k]
		switch {
		case !mine:
			continue
		case n.kept > 0:
			n.kept--
		default:
			n.sent--
		}

		o.set(k, n)
	}
}

// forget drops all committed entries of a tenant, so that none of them is reported as
// missing.
func (o *own) forget(tenant string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, n := range o.all {
		if n.kept = 0; k.tenant == tenant {
			o.set(k, n)
		}
	}
}

// snapshot returns the entries that are committed and were not seen sealed yet.
func (o *own) snapshot() map[ownEntry]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[ownEntry]bool{}
	for k, n := range o.all {
		if n.kept > 0 {
			out[k] = true
		}
	}
	return out
}

// lost returns the tenants that miss entries. An entry is missing if it was committed
// before the round, its tenant is not in left (tenants with entries still to be sealed),
// and it was not seen sealed, in two rounds in a row.
func (o *own) lost(before map[ownEntry]bool, left map[string]bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	suspect, gone := map[ownEntry]bool{}, map[string]bool{}
	for k := range before {
		if o.all[k].kept == 0 || left[k.tenant] {
			continue
		}
		if suspect[k] = true; o.suspect[k] {
			gone[k.tenant] = true
		}
	}

	o.suspect = suspect
	var out []string
	for tenant := range gone {
		out = append(out, tenant)
	}
	return out
}
