package sqlstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// pastColumns are the columns that readers fetch. A row that another column leads to is held to its body.
const pastColumns = "id, state, body, code"

// pastRow is a row as it is read.
type pastRow struct {
	id, state  string
	body, code []byte
}

func scanPast(r Rows) (p pastRow, err error) { return p, r.Scan(&p.id, &p.state, &p.body, &p.code) }

// genuinePast checks and decodes a row.
func (s *Store) genuinePast(tenant string, p pastRow) (approval.Past, error) {
	what := "past call " + p.id
	if err := s.genuine(p.code, tenant, what, "pasts", tenant, p.id, p.state, p.body); err != nil {
		return approval.Past{}, err
	}
	out := approval.Past{ID: p.id, State: condition.PastState(p.state)}
	if !decodePast(p.body, &out) {
		return out, unavailable("read past calls", fmt.Errorf("%s can't be decoded", what))
	}
	return out, nil
}

// encodePast writes the times of a past call, 0 for no end, and its texts, each after its length.
func encodePast(p *approval.Past) []byte {
	c := &p.Call
	ends := int64(0)
	if p.Ends != nil {
		ends = micros(*p.Ends)
	}
	var out []byte
	for _, n := range [...]int64{micros(p.At), ends, micros(p.Until)} {
		out = binary.AppendVarint(out, n)
	}
	container, name := p.Container()
	for _, text := range [...]string{
		c.AgentID, c.Principal, c.Session, string(c.Kind), container, name, c.ServerRef, string(c.Args),
		strings.Join(p.Kept, "\x00"),
	} {
		out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
	}
	return out
}

// decodePast reads what encodePast wrote.
func decodePast(body []byte, p *approval.Past) bool {
	var times [3]int64
	for i := range times {
		n, size := binary.Varint(body)
		if size <= 0 {
			return false
		}
		times[i], body = n, body[size:]
	}
	var texts [9]string
	for i := range texts {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > uint64(len(body)-size) {
			return false
		}
		end := size + int(n)
		texts[i], body = string(body[size:end]), body[end:]
	}
	p.At, p.Until = moment(times[0]), moment(times[2])
	if times[1] != 0 {
		p.Ends = optionalMoment(&times[1])
	}
	c := &p.Call
	c.AgentID, c.Principal, c.Session, c.Kind = texts[0], texts[1], texts[2], resolve.Kind(texts[3])
	c.ServerRef = texts[6]
	if texts[7] != "" {
		c.Args = resolve.Raw(texts[7])
	}
	if texts[8] != "" {
		p.Kept = strings.Split(texts[8], "\x00")
	}
	container, name := texts[4], texts[5]
	switch c.Kind {
	case resolve.MCPTool:
		c.Server, c.Tool = container, name
	case resolve.Skill:
		c.Agent, c.Skill = container, name
	case resolve.Delegation:
		c.Agent = name
	default:
		c.Tool = name
	}
	return len(body) == 0
}

// pastQuery returns the statement that reads the rows that a query selects, and the mark of a restore.
func pastQuery(tenant string, q approval.PastQuery) (sql string, args []any) {
	args = []any{tenant}
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	where := []string{
		"tenant = $1", "state = " + arg(string(q.State)), "at >= " + arg(micros(q.From)),
		"(ends IS NULL OR ends > " + arg(micros(q.Now)) + ")",
	}
	equal := func(column, text string) { where = append(where, column+" = "+arg(plain(text))) }
	// Only the first of the indexed columns is left to the database, in the order in which they are likely
	// to select few rows: without statistics it takes any of their indexes.
	chosen := false
	indexed := func(column string) string {
		if chosen {
			return "(" + column + " || '')"
		}
		chosen = true
		return column
	}
	either := func(values []string, test func(string) string) {
		if len(values) > 0 {
			tests := make([]string, len(values))
			for i, v := range values {
				tests[i] = test(v)
			}
			where = append(where, "("+strings.Join(tests, " OR ")+")")
		}
	}
	for _, key := range [][2]string{{"session", q.Session}, {"principal", q.Principal}} {
		if key[1] != "" {
			equal(indexed(key[0]), key[1])
			where = append(where, key[0]+" <> ''") // the condition of its index
		}
	}
	if q.Target != nil {
		container, name := (&approval.Past{Call: *q.Target}).Container()
		equal("kind", string(q.Target.Kind))
		equal("container", container)
		equal(indexed("name"), name)
	}
	var kinds []string
	for _, k := range q.Kinds {
		kinds = append(kinds, string(k))
	}
	either(kinds, func(kind string) string { return "kind = " + arg(kind) })
	contained := len(kinds) == 0 || slices.ContainsFunc(q.Kinds, func(k resolve.Kind) bool {
		return k != resolve.Tool && k != resolve.MCPTool
	})
	name := "name"
	if len(q.Names) > 0 {
		name = indexed("name")
	}
	either(q.Names, func(glob string) string {
		one := " = " + arg(likeGlob(plain(glob)))
		if strings.Contains(glob, "*") {
			one = strings.Replace(one, "=", "LIKE", 1) + ` ESCAPE '\'`
		}
		if !contained {
			return name + one
		}
		return name + one + " OR container" + one
	})

	if q.Agent != "" {
		equal(indexed("agent"), q.Agent)
	}

	limit := arg(int64(q.Limit))
	return "SELECT * FROM (SELECT " + pastColumns + " FROM pasts WHERE " + strings.Join(where, " AND ") +
		" LIMIT " + limit + ") AS chosen UNION ALL SELECT " + pastColumns +
		" FROM pasts WHERE tenant = $1 AND id = '' AND state = '" + string(approval.PastRestored) + "'", args
}

// likeGlob returns the pattern of LIKE that matches what a glob matches. In SQLite it also ignores the
// case of letters. It returns a name without stars unchanged.
func likeGlob(glob string) string {
	if !strings.Contains(glob, "*") {
		return glob
	}
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%").Replace(glob)
}

// Pasts lists past calls outside of any transaction.
func (s *Store) Pasts(ctx context.Context, tenant string, q approval.PastQuery) ([]approval.Past, error) {
	sql, args := pastQuery(tenant, q)
	found, err := list(ctx, s, "read past calls", scanPast, sql, args...)
	if err != nil {
		return nil, err
	}
	return each(found, func(p pastRow) (approval.Past, error) { return s.genuinePast(tenant, p) })
}

// Pasts takes the tenant's lock of past calls first. The lock has a statement of its own: a statement
// that both locks and reads would not see what the last holder of the lock has written.
func (t *tx) Pasts(q approval.PastQuery) ([]approval.Past, error) {
	if err := t.lockPasts(); err != nil {
		return nil, err
	}
	sql, args := pastQuery(t.tenant, q)
	return t.pasts(sql, args...)
}

// PastOf reads the rows of one id.
func (t *tx) PastOf(id string) ([]approval.Past, error) {
	return t.pasts("SELECT "+pastColumns+" FROM pasts WHERE tenant = $1 AND id = $2", t.tenant, plain(id))
}

func (t *tx) pasts(sql string, args ...any) ([]approval.Past, error) {
	found, err := collect(t.b.ctx, t.b.tx, scanPast, sql, args...)
	if err != nil {
		return nil, t.fail("read past calls", err)
	}
	return each(found, func(p pastRow) (approval.Past, error) { return t.b.s.genuinePast(t.tenant, p) })
}

// lockPasts takes the lock once for all updates of a batch.
func (t *tx) lockPasts() error {
	d, b := t.b.s.d, t.b
	if d.WaitFor == "" || b.pasts[t.tenant] {
		return nil
	}
	name := "past calls of " + t.tenant
	if t.waits() {
		b.tx.Queue(do(d.WaitFor, name))
	} else {
		got, _, err := first(b.ctx, b.tx, scanInt, "SELECT CASE WHEN "+d.TryLock+" THEN 1 ELSE 0 END", name)
		if err != nil {
			return t.fail("lock past calls", err)
		}
		if got == 0 {
			t.lockConflict = true
			return errBusy
		}
	}
	b.held = true
	if b.pasts == nil {
		b.pasts = map[string]bool{}
	}
	b.pasts[t.tenant] = true
	return nil
}

// SavePast inserts or replaces a row.
func (t *tx) SavePast(p approval.Past) {
	container, name := p.Container()
	body := encodePast(&p)
	t.writes = append(t.writes, do(
		`INSERT INTO pasts (tenant, id, state, at, ends, until, agent, principal, session, kind, container, name, body, code)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (tenant, id, state) DO UPDATE SET at = excluded.at, ends = excluded.ends, until = excluded.until,
agent = excluded.agent, principal = excluded.principal, session = excluded.session, kind = excluded.kind,
container = excluded.container, name = excluded.name, body = excluded.body, code = excluded.code`,
		t.tenant, p.ID, string(p.State), micros(p.At), optional(p.Ends), micros(p.Until), p.Call.AgentID,
		p.Call.Principal, p.Call.Session, string(p.Call.Kind), container, name, body,
		t.b.s.auth.code("pasts", t.tenant, p.ID, string(p.State), body)))
}

// DropPast deletes a row if there is one.
func (t *tx) DropPast(id string, state condition.PastState) {
	t.writes = append(t.writes, do("DELETE FROM pasts WHERE tenant = $1 AND id = $2 AND state = $3",
		t.tenant, plain(id), string(state)))
}
