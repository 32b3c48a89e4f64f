package sqlstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
)

const (
	pageSize  = 50
	pageMost  = 500
	countMost = 10001
)

// Requests lists summaries. It reads columns only; the indexes hold
// what filters of the inbox need, so counting touches no row.
func (s *Store) Requests(ctx context.Context, tenant string, f approval.Filter) (approval.Page, error) {
	if f.Limit == 0 {
		f.Limit = pageSize
	}
	f.Limit = min(max(f.Limit, 1), pageMost)
	q := listing{f: f, find: s.d.Find}
	page, args, err := q.page(tenant)
	if err != nil {
		return approval.Page{}, err
	}
	found, err := list(ctx, s, "list requests", scanSummary, page, args...)
	if err != nil {
		return approval.Page{}, err
	}
	count, args := q.count(tenant)
	total, _, err := find(ctx, s, "count requests", scanInt, count, args...)
	if err != nil {
		return approval.Page{}, err
	}
	lines, err := each(found, func(l listed) (approval.Summary, error) { return s.line(tenant, l) })
	out := approval.Page{Requests: lines, Total: int(total)}
	if len(lines) > f.Limit {
		out.Requests = lines[:f.Limit]
		out.Next = cursor(f, out.Requests[f.Limit-1])
	}
	return out, err
}

// Summaries reads the columns of some requests.
func (s *Store) Summaries(ctx context.Context, tenant string, ids []string) (map[string]approval.Summary, error) {
	out := make(map[string]approval.Summary, len(ids))
	for some := range slices.Chunk(ids, headsOnce) {
		where, args := oneOf("id", some, tenant)
		found, err := list(ctx, s, "list requests", scanSummary,
			"SELECT "+summaryColumns+" FROM requests WHERE tenant = $1 AND "+where, args...)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			x, err := s.line(tenant, l)
			if err != nil {
				return nil, err
			}
			out[x.ID] = x
		}
	}

	return out, nil
}

// listing writes the statements of one list.
type listing struct {
	f    approval.Filter
	find string
	args []any
}

func (q *listing) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// states are those of the filter, or all.
func (q *listing) states() []approval.State {
	all := []approval.State{
		approval.Pending,
		approval.Approved,
		approval.Denied,
		approval.Expired,
		approval.Cancelled,
		approval.Consumed,
		approval.Answered,
	}
	if len(q.f.States) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(s approval.State) bool { return !slices.Contains(q.f.States, s) })
}

// where is the condition but for the state.
func (q *listing) where() string {
	var b strings.Builder
	equal := func(column, value string) {
		if value != "" {
			fmt.Fprintf(&b, " AND %s = %s", column, q.arg(plain(value)))
		}
	}
	equal("agent", q.f.Agent)
	equal("target", q.f.Target)
	equal("principal", q.f.Principal)
	if !q.f.Since.IsZero() {
		fmt.Fprintf(&b, " AND created >= %s", q.arg(micros(q.f.Since)))
	}
	if len(q.f.Groups) > 0 {
		fmt.Fprintf(&b, " AND (%s(group_names, %s) > 0", q.find, q.arg("\n\n"))
		for _, g := range q.f.Groups {
			fmt.Fprintf(&b, " OR %s(group_names, %s) > 0", q.find, q.arg("\n"+groupName(g)+"\n"))
		}
		b.WriteString(")")
	}
	if q.f.Readers != nil {
		b.WriteString(" AND (1 = 0")
		for _, key := range q.f.Readers { // the indexes hold the groups, so most rows are picked without being read
			if group, ok := strings.CutPrefix(key, approval.ReaderGroup); ok && group != "" {
				fmt.Fprintf(&b, " OR %s(group_names, %s) > 0", q.find, q.arg("\n"+groupName(group)+"\n"))
			}
		}
		for _, key := range q.f.Readers {
			fmt.Fprintf(&b, " OR %s(answering, %s) > 0", q.find, q.arg(quoted(key)))
		}
		fmt.Fprintf(&b, " OR %s(answering, %s) = 0)", q.find, q.arg(readersField))
	}

	return b.String()
}

// readersField begins the keys of readers in the column answering. No
// text of it can, since quotes in texts are escaped.
const readersField = `"readers":`

// quoted is a text as it stands in the column answering.
func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always has a form

	return plain(string(out))
}

func (q *listing) order() (column, direction, after string) {
	switch {
	case q.f.ByDue:
		return "deadline", "ASC", ">"
	case q.f.Oldest:
		return "created", "ASC", ">"
	}

	return "created", "DESC", "<"
}

// page reads every state by its index, and one summary more than asked for.
func (q *listing) page(tenant string) (string, []any, error) {
	q.args = []any{tenant}
	where := q.where()
	column, direction, after := q.order()
	if q.f.Cursor != "" {
		at, id, err := parseCursor(q.f)
		if err != nil {
			return "", nil, err
		}
		where += fmt.Sprintf(" AND (%s, id) %s (%s, %s)", column, after, q.arg(at), q.arg(id))
	}

	limit := q.arg(int64(q.f.Limit + 1))
	var parts []string
	for _, state := range q.states() {
		parts = append(
			parts,
			fmt.Sprintf(
				"SELECT * FROM (SELECT %s FROM requests WHERE tenant = $1 AND state = '%s'%s ORDER BY %s %s, id %s "+
					"LIMIT %s) AS %s",
				summaryColumns,
				state,
				where,
				column,
				direction,
				direction,
				limit,
				state,
			),
		)
	}

	if len(parts) == 0 {
		parts = []string{
			"SELECT " + summaryColumns + " FROM requests WHERE tenant = $1 AND 1 = 0" + where,
		}
	}
	return fmt.Sprintf(
		"%s ORDER BY %s %s, id %s LIMIT %s",
		strings.Join(parts, " UNION ALL "),
		column,
		direction,
		direction,
		limit,
	), q.args, nil
}

func (q *listing) count(tenant string) (string, []any) {
	q.args = []any{tenant}
	where := q.where()
	names := []string{"''"}
	for _, state := range q.states() {
		names = append(names, "'"+string(state)+"'")
	}
	return fmt.Sprintf(
		"SELECT count(*) FROM (SELECT 1 FROM requests WHERE tenant = $1 AND state IN (%s)%s LIMIT %d) AS counted",
		strings.Join(names, ", "),
		where,
		countMost,
	), q.args
}

// A cursor says after which request a page begins, and in which order.
func cursor(f approval.Filter, last approval.Summary) string {
	at := last.Created
	if f.ByDue {
		at = last.Deadline
	}
	return base64.RawURLEncoding.EncodeToString(
		[]byte(orderMark(f) + strconv.FormatInt(micros(at), 10) + " " + last.ID),
	)
}

func orderMark(f approval.Filter) string {
	switch {
	case f.ByDue:
		return "d"
	case f.Oldest:
		return "o"
	}

	return "c"
}

func parseCursor(f approval.Filter) (at int64, id string, err error) {
	bad := &approval.InputError{
		Field:    "cursor",
		Expected: "next of the page before, with the same order",
	}
	text, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	rest, ok := strings.CutPrefix(string(text), orderMark(f))
	number, id, found := strings.Cut(rest, " ")
	if err != nil || !ok || !found || plain(id) != id {
		return 0, "", bad
	}
	if at, err = strconv.ParseInt(number, 10, 64); err != nil {
		return 0, "", bad
	}
	return at, id, nil
}
