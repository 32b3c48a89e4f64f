package sqlstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/store"
)

// tx is the part of a batch that one update sees. Its writes are held back until its
// function has returned nil.
type tx struct {
	b                       *batch
	tenant                  string
	writes                  []Stmt
	err                     error // a write that is not possible
	lockConflict            bool
	wroteFreeze, wroteGrant bool
	read                    map[string]row   // requests as they were read
	newKeys                 map[string]bool  // idempotency keys under which nothing was remembered
	grants                  map[string]int64 // versions of grants that were read or written
	// versions that this update writes, by the id of the request or grant; the key of the
	// freezes is the empty string
	told       map[string]int64
	freezing   []approval.Freeze
	frozenThen []approval.Freeze // the freezes in force after this update
	appended   []appended
	sealFirst  bool
}

// appended is an entry with its deliveries. Its code is computed when the versions that the
// update writes are known.
type appended struct {
	ledger.Record
	deliveries []approval.Delivery
}

var _ approval.Tx = (*tx)(nil)

// settle returns the error for the update's caller when its function returned err.
func (t *tx) settle(err error) error {
	switch {
	case err == errAborted:
		return err
	case t.lockConflict:
		return errBusy
	case err == nil && t.err == nil:
		return t.finish()
	case err == nil:
		return t.err
	}

	return err
}

// finish writes what depends on the whole update: the resulting freezes, and the entries,
// which name the versions of the rows that they describe.
func (t *tx) finish() error {
	if len(t.freezing) > 0 {
		next, err := t.frozen()
		if err != nil {
			return err
		}
		for _, f := range t.freezing {
			next = next.put(f)
		}
		stmt, err := t.b.s.writeFrozen(t.tenant, next)
		if err != nil {
			return err
		}
		t.writes, t.frozenThen = append(t.writes, stmt), next.all
		t.tell("", next.version+1)
	}

	for _, e := range t.appended {
		t.writeDeliveries(e)
	}
	return nil
}

// changes reports whether the update wrote anything.
func (t *tx) changes() bool { return len(t.writes)+len(t.appended) > 0 }

func (t *tx) tell(subject string, version int64) {
	if t.told == nil {
		t.told = map[string]int64{}
	}
	t.told[subject] = version
}

// fact returns the parts of the entry that its code covers.
func (t *tx) fact(e appended) fact {
	return fact{
		kind:    e.Type,
		subject: plain(e.Subject),
		at:      micros(e.Time),
		version: t.told[e.Subject],
		leaf:    e.Leaf,
	}
}

// writeEntries writes the update's entries unsealed.
func (t *tx) writeEntries() {
	for _, e := range t.appended {
		f := t.fact(e)
		t.b.tx.Queue(blind("INSERT INTO entries (tenant, type, subject, at, leaf, openings, version, code) VALUES "+
			"($1, $2, $3, $4, $5, $6, $7, $8)", t.tenant, f.kind, f.subject, f.at, f.leaf, blob(e.Openings), f.version,
			t.b.s.auth.code("entries", f.values(t.tenant, nil)...)))
	}
}

func (t *tx) writeDeliveries(e appended) {
	s := t.b.s
	for _, d := range e.deliveries {
		now := micros(s.now())
		t.writes = append(
			t.writes,
			blind(
				`INSERT INTO deliveries (tenant, target, event, subject, payload, state, attempt, run_at, owner, problem, created, code)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
				t.tenant,
				d.Target,
				d.Event,
				plain(d.Subject),
				d.Payload,
				string(store.Waiting),
				int64(0),
				now,
				"",
				"",
				now,
				s.auth.code("deliveries", t.tenant, d.Target, d.Event, plain(d.Subject), d.Payload, now),
			),
		)
	}
}

// fail marks the transaction as lost, unless the error is a verdict.
func (t *tx) fail(what string, err error) error {
	if _, ours := errors.AsType[verdict](err); !ours && t.b.err == nil {
		t.b.err = err
	}
	return unavailable(what, err)
}

func (t *tx) waits() bool { return t.b.patient || !t.b.held }

// locked reads one document and locks it. In a batch that holds locks already, it gives way
// instead of waiting.
func (t *tx) locked(what, query string, args ...any) (d document, ok bool, err error) {
	lock := t.b.s.d.Lock
	if !t.waits() {
		lock = t.b.s.d.SkipLocked
	}
	d, ok, err = first(t.b.ctx, t.b.tx, scanDocument, query+lock, args...)
	if err == nil && !ok && !t.waits() && lock != "" {
		_, t.lockConflict, err = first(t.b.ctx, t.b.tx, scanDocument, query, args...)
	}
	if err == nil && t.lockConflict {
		return d, false, errBusy
	}
	t.b.held = t.b.held || ok
	return d, ok, t.fail(what, err)
}

// Request reads a request and locks it.
func (t *tx) Request(id string) (*approval.Request, error) {
	d, err := t.b.s.document("requests", t.tenant, id, t.locked)
	if err != nil {
		return nil, err
	}
	return t.parse(d.body)
}

// due is like Request for a request that is still due and not locked by another
// transaction. It returns nil if there is none.
func (t *tx) due(id string, now time.Time) (*approval.Request, error) {
	s := t.b.s
	seen := s.versions.latest(rowName{t.tenant, id})
	d, ok, err := first(
		t.b.ctx,
		t.b.tx,
		scanDocument,
		documents("requests")+" WHERE tenant = $1 AND id = $2 AND due <= $3"+s.d.SkipLocked,
		t.tenant,
		id,
		micros(now),
	)
	if err != nil {
		return nil, t.fail("read due request", err)
	}
	if !ok {
		return nil, nil
	}
	t.b.held = true
	if err := s.check("requests", t.tenant, d, seen); err != nil {
		return nil, err
	}
	r, err := t.parse(d.body)
	if err == nil && (r.Due == nil || micros(*r.Due) > micros(now)) {
		return nil, s.tampered(
			t.tenant,
			"request "+id,
			"its column says that it is due, and its document doesn't",
		)
	}

	return r, err
}

// parse records the column values of a request before it is changed.
func (t *tx) parse(body string) (*approval.Request, error) {
	r, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	if t.read == nil {
		t.read = map[string]row{}
	}
	t.read[r.ID] = rowOf(r)
	return r, nil
}

// Latest also takes the lock of the binding, so that two updates that find nothing don't
// both insert.
func (t *tx) Latest(binding string) (*approval.Request, error) {
	for before := ""; ; {
		id, ok, err := t.latest(binding)
		if err != nil || !ok {
			return nil, err
		}
		r, err := t.Request(id)
		if err != nil || r.Binding() == binding {
			return r, err
		}
		if id == before {
			return nil, t.b.s.tampered(
				t.tenant,
				"request "+id,
				"its column says that it is for another call than its document does",
			)
		}

		before = id // it was edited while we waited for its lock, so it has another binding now
	}
}

// newest is the order of Latest: a pending request first, then approved ones, because an
// edit can give an older request the binding of a newer one that has ended.
const newest = "ORDER BY CASE WHEN state = 'pending' THEN 0 WHEN closed IS NULL THEN 1 ELSE 2 END, created DESC, id DESC LIMIT 1"

func (t *tx) latest(binding string) (id string, ok bool, err error) {
	d := t.b.s.d
	got := "1"
	name := t.tenant + " " + binding
	args := []any{t.tenant, binding}
	switch {
	case d.WaitFor == "":
	case t.waits():
		t.b.tx.Queue(do(d.WaitFor, name))
		t.b.held = true
	default:
		got, args = "CASE WHEN "+d.TryLock+" THEN 1 ELSE 0 END", []any{name, t.tenant, binding}
	}

	type row struct {
		got int64
		id  *string
	}
	query := "SELECT " + got + ", (SELECT id FROM requests WHERE tenant = $1 AND binding = $2 " + newest + ")"
	if len(args) == 3 {
		query = "SELECT " + got + ", (SELECT id FROM requests WHERE tenant = $2 AND binding = $3 " + newest + ")"
	}
	found, _, err := first(t.b.ctx, t.b.tx, func(r Rows) (x row, err error) {
		return x, r.Scan(&x.got, &x.id)
	}, query, args...)
	switch {
	case err != nil:
		return "", false, t.fail("read latest request", err)
	case found.got == 0:
		t.lockConflict = true
		return "", false, errBusy
	case found.id == nil:
		return "", false, nil
	}

	return *found.id, true, nil
}

var selectLive = documents(
	"grants",
) + ` WHERE tenant = $1 AND agent = $2 AND target = $3 AND revoked IS NULL AND expires > $4 AND uses < max_uses
ORDER BY created DESC, id DESC`

// Live first reads without locking, since mostly there is no grant. The batch remembers
// that there is none, because all of its updates were requested before the batch began.
func (t *tx) Live(agent, target string, now time.Time) ([]*approval.Grant, error) {
	d, key := t.b.s.d, [3]string{t.tenant, agent, target}
	if t.b.grantless[key] {
		return nil, nil
	}
	args := []any{t.tenant, agent, plain(target), micros(now)}
	found, err := collect(t.b.ctx, t.b.tx, scanDocument, selectLive, args...)
	if err == nil && len(found) > 0 && d.Lock != "" {
		before, lock := len(found), d.Lock
		if !t.waits() {
			lock = d.SkipLocked
		}
		found, err = collect(t.b.ctx, t.b.tx, scanDocument, selectLive+lock, args...)
		t.b.held, t.lockConflict = true, err == nil && lock == d.SkipLocked && len(found) < before
	}

	if err != nil {
		return nil, t.fail("read live grants", err)
	}
	if t.lockConflict {
		return nil, errBusy
	}
	if len(found) == 0 {
		if t.b.grantless == nil {
			t.b.grantless = map[[3]string]bool{}
		}
		t.b.grantless[key] = true
	}

	return each(found, func(d document) (*approval.Grant, error) {
		seen := t.b.s.versions.latest(rowName{t.tenant, d.id})
		return t.grant(d, t.b.s.check("grants", t.tenant, d, seen))
	})
}

// grant remembers the version of a grant that was read.
func (t *tx) grant(d document, err error) (*approval.Grant, error) {
	if err != nil {
		return nil, err
	}
	t.hold(d.id, d.version)
	return parse[approval.Grant](d.body)
}

func (t *tx) hold(grant string, version int64) {
	if t.grants == nil {
		t.grants = map[string]int64{}
	}
	t.grants[grant] = version
}

// Grant reads a grant and locks it.
func (t *tx) Grant(id string) (*approval.Grant, error) {
	return t.grant(t.b.s.document("grants", t.tenant, id, t.locked))
}

// Freezes returns the freezes in force. They are read once for a batch, because all of its
// updates were requested before the batch began. If an update in the batch changes them,
// they are read again.
func (t *tx) Freezes() ([]approval.Freeze, error) {
	f, err := t.frozen()
	return f.clone(), err
}

func (t *tx) frozen() (frozen, error) {
	if known, ok := t.b.freezes[t.tenant]; ok {
		return known, nil
	}
	f, err := t.b.s.frozen(t.b.ctx, t.b.tx, t.tenant)
	if err != nil {
		return frozen{}, t.fail("read freezes", err)
	}
	if t.b.freezes == nil {
		t.b.freezes = map[string]frozen{}
	}
	t.b.freezes[t.tenant] = f
	return f, nil
}

// Remembered reads a memory. If there is none, the next Remember is an insert, which fails
// if another transaction inserts one first.
func (t *tx) Remembered(key string) (*approval.Memory, error) {
	m, ok, err := first(
		t.b.ctx,
		t.b.tx,
		scanMemory,
		"SELECT digest, request, grant_id, expires, code FROM memories WHERE tenant = $1 AND name = $2",
		t.tenant,
		key,
	)
	if err != nil {
		return nil, t.fail("read idempotency key", err)
	}
	if t.newKeys == nil {
		t.newKeys = map[string]bool{}
	}
	if t.newKeys[key] = !ok; !ok {
		return nil, nil
	}
	values := memoryValues(t.tenant, key, m.Memory)
	return &m.Memory, t.b.s.genuine(m.code, t.tenant, "idempotency key", "memories", values...)
}

// Insert adds a new request. If its version is 0, it becomes 1.
func (t *tx) Insert(r *approval.Request) {
	r.Version = max(r.Version, 1)
	body, err := jsonmsg.Marshal(r)
	if err != nil {
		t.err = fmt.Errorf("insert request %q: %w", r.ID, err)
		return
	}
	t.tell(r.ID, r.Version)
	now := rowOf(r)
	t.writes = append(t.writes, t.b.s.insertRequest(t.tenant, r, now, string(body)))
	t.writes = append(t.writes, changeKeys(t.tenant, row{}, now)...)
}

// Save writes a changed request.
func (t *tx) Save(r *approval.Request) {
	old := r.Version
	r.Version++
	body, err := jsonmsg.Marshal(r)
	if err != nil {
		t.err = fmt.Errorf("save request %q: %w", r.ID, err)
		return
	}
	t.tell(r.ID, r.Version)
	now := rowOf(r)
	before, known := t.read[r.ID]
	same := known && r.Closed == nil && before.x == now.x
	t.writes = append(t.writes, t.b.s.updateRequest(t.tenant, r, now, old, same, known, string(body)))
	if known {
		t.writes = append(t.writes, changeKeys(t.tenant, before, now)...)
		t.read[r.ID] = now
	}
}

// SaveGrant inserts a grant, or replaces one that this update has read.
func (t *tx) SaveGrant(g *approval.Grant) {
	t.wroteGrant = true
	body, err := jsonmsg.Marshal(g)
	if err != nil {
		t.err = fmt.Errorf("save grant %q: %w", g.ID, err)
		return
	}
	old := t.grants[g.ID]
	stmt := t.b.s.insertGrant(t.tenant, g, string(body))
	if old > 0 {
		stmt = t.b.s.updateGrant(t.tenant, g, old, string(body))
	}
	t.writes = append(t.writes, stmt)
	t.hold(g.ID, old+1)
	t.tell(g.ID, old+1)
}

// SaveFreeze replaces the freeze of an agent, or the one of all agents.
func (t *tx) SaveFreeze(f approval.Freeze) {
	t.wroteFreeze = true
	f.Reason, f.At = plain(f.Reason), moment(micros(f.At))
	t.freezing = append(t.freezing, f)
}

// Remember stores the answer for an idempotency key.
func (t *tx) Remember(key string, m approval.Memory) {
	sql := "INSERT INTO memories (tenant, name, digest, request, grant_id, expires, code) VALUES ($1, $2, $3, $4, " +
		"$5, $6, $7)"
	if !t.newKeys[key] {
		sql += ` ON CONFLICT (tenant, name) DO UPDATE SET digest = excluded.digest, request = excluded.request, grant_id = excluded.grant_id,
expires = excluded.expires, code = excluded.code`
	}
	t.writes = append(t.writes, do(sql, t.b.s.auth.coded("memories", memoryValues(t.tenant, key, m)...)...))
}

// AddVote stores a vote for statistics.
func (t *tx) AddVote(v approval.VoteFact) {
	t.writes = append(
		t.writes,
		blind("INSERT INTO votes (tenant, request, agent, target, person, verdict, waited, at) VALUES ($1, $2, "+
			"$3, $4, $5, $6, $7, $8)", t.tenant, v.Request, v.Agent, plain(v.Target), v.Person, string(v.Verdict),
			v.Waited.Microseconds(), micros(v.At)),
	)
}

// SealFirst makes the batch seal the update's entries within its transaction; see
// sealfirst.go.
func (t *tx) SealFirst() { t.sealFirst = t.b.s.trust.Key.Sign != nil && t.b.s.auth != nil }

// Append adds a ledger entry and its deliveries. They are written when the update's
// function has returned.
func (t *tx) Append(r ledger.Record, deliveries ...approval.Delivery) {
	if r.Tenant != t.tenant || len(r.Leaf) == 0 {
		t.err = fmt.Errorf(
			"append to the ledger: an entry of tenant %q in a transaction of %q",
			r.Tenant,
			t.tenant,
		)
		return
	}

	t.appended = append(t.appended, appended{r, deliveries})
}
