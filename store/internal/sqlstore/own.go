package sqlstore

import (
	"sync"

	"github.com/assent-dev/assent/approval/ledger"
)

// own remembers the entries that this process wrote until it sees them
// sealed, so that none can be taken away before unnoticed.
type own struct {
	mu      sync.Mutex
	all     map[ownEntry]ownCount
	suspect map[ownEntry]bool // missing after the round before
}

type ownEntry struct {
	tenant string
	hash   ledger.Hash
}

// ownCount counts equal entries: those on their way to the database,
// and those that are committed.
type ownCount struct{ sent, kept int }

// mostOwn bounds what is remembered while nothing can be sealed.
const mostOwn = 100_000

// send notes entries before their commit: another goroutine may see
// them sealed before this one hears that they were committed.
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

// commit notes whether they were committed. Of what is not known to be,
// nothing is expected.
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

// seen takes note of entries that were sealed.
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

// forget expects nothing of what was committed so far.
func (o *own) forget(tenant string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, n := range o.all {
		if n.kept = 0; k.tenant == tenant {
			o.set(k, n)
		}
	}
}

// snapshot lists what is committed and was not seen yet.
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

// lost names the tenants of whom entries are missing: committed before
// the round, not among those that wait (left), not seen sealed, twice
// in a row.
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
