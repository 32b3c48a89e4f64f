package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// Requests that only some people may read or answer are found by their keys in the table
// request_keys, so that a page costs the same for a person who may read ten of 10,000
// requests as for a person who may read all of them. The table is only an index: each line
// that it leads to is checked against its code, and the service checks whether the person
// may read it.

// keyOpen is the state in request_keys of a request that is not closed.
const keyOpen = "open"

const (
	probesOnce = 64 // keys and states that one statement looks up
	countKeys  = 1001
	rekeyStep  = 200 // requests whose keys one transaction writes
)

// listKeys returns the keys of a request as they are stored in the table.
func listKeys(s approval.Summary) []string {
	keys := s.Keys()
	for i, k := range keys {
		keys[i] = plain(k)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// keyState returns the state of a request as it is stored in request_keys.
func keyState(state approval.State) string {
	if state == approval.Pending || state == approval.Approved {
		return keyOpen
	}
	return string(state)
}

// changeKeys replaces the keys of a request's old row by those of the new one. The old row
// is empty for a new request.
func changeKeys(tenant string, before, now row) []Stmt {
	gone, added := before.keys, now.keys
	if len(before.keys) > 0 && keyState(before.State) == keyState(now.State) && before.x.deadline == now.x.deadline {
		gone, added = without(gone, now.keys), without(added, before.keys)
	}
	var out []Stmt
	if len(gone) > 0 {
		out = append(out, dropKeys(tenant, before.Summary, gone, keyState(before.State)))
	}
	if len(added) > 0 {
		out = append(out, addKeys(tenant, now, added))
	}
	return out
}

// without returns the elements of all that are not in others, which must be sorted.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(key string) bool {
		_, found := slices.BinarySearch(others, key)
		return found
	})
}

func dropKeys(tenant string, s approval.Summary, keys []string, state string) Stmt {
	where, args := oneOf("name", keys, tenant, s.ID, micros(s.Created), state)
	return do("DELETE FROM request_keys WHERE tenant = $1 AND id = $2 AND created = $3 AND state = $4 AND "+where, args...)
}

func addKeys(tenant string, r row, keys []string) Stmt {
	args := []any{tenant, keyState(r.State), micros(r.Created), r.ID, r.x.deadline}
	rows := make([]string, len(keys))
	for i, key := range keys {
		args = append(args, key)
		rows[i] = fmt.Sprintf("($1, $2, $3, $4, $5, $%d)", len(args))
	}
	return do("INSERT INTO request_keys (tenant, state, created, id, deadline, name) VALUES "+strings.Join(rows, ", ")+
		" ON CONFLICT (tenant, name, state, created, id) DO UPDATE SET deadline = excluded.deadline", args...)
}

// found is a request that a key led to.
type found struct {
	at int64 // by which the list is ordered
	id string
}

// listKeyed lists requests that have one of some keys.
func (s *Store) listKeyed(ctx context.Context, tenant string, q *listing, keys []string) (approval.Page, error) {
	all, err := s.unkeyed(ctx, tenant, q)
	if err != nil {
		return approval.Page{}, err
	}
	for some := range slices.Chunk(q.probes(keys), probesOnce) {
		sql, args, err := q.probe(tenant, some)
		if err != nil {
			return approval.Page{}, err
		}
		more, err := list(ctx, s, "list requests", scanFound, sql, args...)
		if err != nil {
			return approval.Page{}, err
		}
		all = append(all, more...)
	}
	_, direction, _ := q.order()
	slices.SortFunc(all, func(a, b found) int {
		order := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
		if direction == "DESC" {
			return -order
		}
		return order
	})
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(x found) bool {
		again := seen[x.id]
		seen[x.id] = true
		return again
	})
	more := len(all) > q.f.Limit
	all = all[:min(len(all), q.f.Limit)]
	out := approval.Page{Total: len(all)}
	if more {
		last := all[len(all)-1]
		out.Next = cursor(q.f, last.at, last.id)
	}
	if len(keys) > 0 && (more || q.f.Cursor != "") { // otherwise this page is the whole list
		if out.Total, err = s.countKeyed(ctx, tenant, q, keys); err != nil {
			return approval.Page{}, err
		}
	}
	out.Requests, err = s.lines(ctx, tenant, all)
	return out, err
}

// lines returns the list's lines for the found requests, in their order.
func (s *Store) lines(ctx context.Context, tenant string, all []found) ([]approval.Summary, error) {
	ids := make([]string, len(all))
	for i, x := range all {
		ids[i] = x.id
	}
	read, err := s.Summaries(ctx, tenant, ids)
	out := make([]approval.Summary, 0, len(all))
	for _, id := range ids {
		if line, there := read[id]; there {
			out = append(out, line)
		}
	}
	return out, err
}

func scanFound(r Rows) (f found, err error) { return f, r.Scan(&f.at, &f.id) }

// probe is a range of request_keys.
type probe struct{ key, state string }

// keyStates returns the states of the filter as request_keys stores them.
func (q *listing) keyStates() []string {
	var out []string
	for _, state := range q.states() {
		out = append(out, keyState(state))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (q *listing) probes(keys []string) []probe {
	var out []probe
	for _, key := range keys {
		for _, state := range q.keyStates() {
			out = append(out, probe{plain(key), state})
		}
	}
	return out
}

// onRequests returns the part of the condition that needs columns of requests, and the
// exact state of open requests.
func (q *listing) onRequests() string {
	where := q.where("request_keys.created")
	if q.f.Readers != nil {
		where += q.inGroups()
	}
	return where + q.inStates()
}

func (q *listing) inStates() string {
	names := []string{"''"}
	for _, state := range q.states() {
		names = append(names, "'"+string(state)+"'")
	}
	return " AND requests.state IN (" + strings.Join(names, ", ") + ")"
}

// probe reads as much of each range as the page may need. The join is written so that
// SQLite starts with the range.
func (q *listing) probe(tenant string, some []probe) (string, []any, error) {
	q.args = []any{tenant}
	where := q.onRequests()
	column, direction, after := q.order()
	if q.f.Cursor != "" {
		at, id, err := parseCursor(q.f)
		if err != nil {
			return "", nil, err
		}
		where += fmt.Sprintf(" AND (request_keys.%s, request_keys.id) %s (%s, %s)", column, after, q.arg(at), q.arg(id))
	}
	limit := q.arg(int64(q.f.Limit + 1))
	parts := make([]string, roundUp(len(some)))
	for i := range parts {
		p := probe{"", keyOpen} // no request has this key; it pads the statement
		if i < len(some) {
			p = some[i]
		}
		parts[i] = fmt.Sprintf("SELECT * FROM (SELECT request_keys.%[1]s AS at, request_keys.id AS id "+
			"FROM request_keys CROSS JOIN requests "+
			"WHERE request_keys.tenant = $1 AND request_keys.name = %[2]s AND request_keys.state = '%[3]s' "+
			"AND requests.tenant = $1 AND requests.id = request_keys.id%[4]s "+
			"ORDER BY request_keys.%[1]s %[5]s, request_keys.id %[5]s LIMIT %[6]s) AS part%[7]d",
			column, q.arg(p.key), p.state, where, direction, limit, i)
	}
	return strings.Join(parts, " UNION ALL "), q.args, nil
}

// unkeyed lists requests whose keys are not written yet. There are few of them, and they
// are found without their keys.
func (s *Store) unkeyed(ctx context.Context, tenant string, q *listing) ([]found, error) {
	q.args = []any{tenant}
	// As an expression the state can't make SQLite take another index.
	states := strings.Replace(q.inStates(), "requests.state", "requests.state || ''", 1)
	where := q.where("requests.created") + q.inGroups() + states
	column, direction, after := q.order()
	if q.f.Cursor != "" {
		at, id, err := parseCursor(q.f)
		if err != nil {
			return nil, err
		}
		where += fmt.Sprintf(" AND (%s, id) %s (%s, %s)", column, after, q.arg(at), q.arg(id))
	}
	return list(ctx, s, "list requests", scanFound, fmt.Sprintf(
		"SELECT %[1]s, id FROM requests WHERE tenant = $1 AND keyed <> version%[2]s "+
			"ORDER BY %[1]s %[3]s, id %[3]s LIMIT %[4]s",
		column, where, direction, q.arg(int64(q.f.Limit+1))), q.args...)
}

// countKeyed counts requests that have one of some keys, up to countKeys, because no page
// shows more and a request is read once for each of its keys. Unless the filter has other
// conditions, it reads only request_keys. That table does not distinguish pending requests
// from approved ones, which are few: those are subtracted.
func (s *Store) countKeyed(ctx context.Context, tenant string, q *listing, keys []string) (int, error) {
	names, args := oneOf("request_keys.name", keys, tenant)
	q.args = args
	count := func(from, where string) (int, error) {
		n, _, err := find(ctx, s, "count requests", scanInt, fmt.Sprintf("SELECT count(DISTINCT id) FROM (SELECT "+
			"request_keys.id FROM %s WHERE request_keys.tenant = $1 AND %s AND request_keys.state IN ('%s')%s LIMIT %d)"+
			" AS counted",
			from, names, strings.Join(q.keyStates(), "', '"), where, countKeys*min(len(keys), 4)), q.args...)
		return min(int(n), countKeys), err
	}
	has := func(state approval.State) bool { return slices.Contains(q.states(), state) }
	if q.f.Agent+q.f.Target+q.f.Principal != "" || q.f.Readers != nil && len(q.f.Groups) > 0 ||
		has(approval.Approved) && !has(approval.Pending) {
		return count("request_keys CROSS JOIN requests",
			q.onRequests()+" AND requests.tenant = $1 AND requests.id = request_keys.id")
	}
	total, err := count("request_keys", q.where("request_keys.created"))
	if err != nil || !has(approval.Pending) || has(approval.Approved) || q.f.AnsweredBy != "" || total == countKeys {
		return total, err
	}
	q.args = args
	approved, err := count("requests CROSS JOIN request_keys", " AND requests.tenant = $1"+
		" AND requests.state = 'approved' AND request_keys.created = requests.created "+
		"AND request_keys.id = requests.id"+q.where("requests.created"))
	return total - approved, err
}

// Index writes the keys of restored requests.
func (s *Store) Index(ctx context.Context) error {
	tenants, err := list(ctx, s, "index requests", scanText,
		"SELECT DISTINCT tenant FROM requests WHERE keyed <> version")
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if err := s.index(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) index(ctx context.Context, tenant string) error {
	for after := ""; ; {
		var n int
		last := after
		err := s.write(ctx, "index requests", func(x Tx) error {
			all, err := collect(ctx, x, scanDocument, documents("requests")+
				" WHERE tenant = $1 AND keyed <> version AND id > $2 ORDER BY id LIMIT $3"+s.d.Lock,
				tenant, after, int64(rekeyStep))
			if err != nil {
				return err
			}
			n = len(all)
			for _, d := range all {
				last = d.id
				if s.check("requests", tenant, d, 0) != nil {
					continue // readers get the error when they read it
				}
				r, err := parseRequest(d.body)
				if err != nil {
					continue
				}
				now := rowOf(r)
				open := now.Summary
				open.State = approval.Pending // that was its state when it had these keys
				x.Queue(dropKeys(tenant, open, listKeys(open), keyOpen), addKeys(tenant, now, now.keys),
					do("UPDATE requests SET keyed = version WHERE tenant = $1 AND id = $2", tenant, d.id))
			}
			return nil
		})
		if err != nil || n < rekeyStep {
			return err
		}
		after = last
	}
}

// keysTable returns the table of keys. It is in no backup, because Index can write it.
func keysTable() table {
	return define("request_keys", "tenant name state created id", "tenant name state created:i id deadline:i")
}
