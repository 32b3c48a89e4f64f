package sqlstore

import (
	"context"
	"encoding/base64"
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

// Requests lists summaries. Filters by groups, readers and people find requests by their
// keys; see listKeyed. All other filters use the indexes of requests, so counting reads no
// rows.
func (s *Store) Requests(ctx context.Context, tenant string, f approval.Filter) (approval.Page, error) {
	if f.Limit == 0 {
		f.Limit = pageSize
	}
	f.Limit = min(max(f.Limit, 1), pageMost)
	q := listing{f: f, find: s.d.Find}
	if keys, keyed := f.Keys(); keyed {
		return s.listKeyed(ctx, tenant, &q, keys)
	}
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
		last := out.Requests[f.Limit-1]
		at := last.Created
		if f.ByDue {
			at = last.Deadline
		}
		out.Next = cursor(f, micros(at), last.ID)
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

// listing builds the statements of one list.
type listing struct {
	f    approval.Filter
	find string
	args []any
}

func (q *listing) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// states returns the states of the filter, or all states if it names none.
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

// where returns the condition on columns of requests, without the state. created is the
// column of the creation time.
func (q *listing) where(created string) string {
	var b strings.Builder
	equal := func(column, value string) {
		if value != "" {
			fmt.Fprintf(&b, " AND requests.%s = %s", column, q.arg(plain(value)))
		}
	}
	equal("agent", q.f.Agent)
	equal("target", q.f.Target)
	equal("principal", q.f.Principal)
	if !q.f.Since.IsZero() {
		fmt.Fprintf(&b, " AND %s >= %s", created, q.arg(micros(q.f.Since)))
	}

	return b.String()
}

// inGroups returns the condition that one of the filter's groups may answer.
func (q *listing) inGroups() string {
	if len(q.f.Groups) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, " AND (%s(group_names, %s) > 0", q.find, q.arg("\n\n"))
	for _, g := range q.f.Groups {
		fmt.Fprintf(&b, " OR %s(group_names, %s) > 0", q.find, q.arg("\n"+groupName(g)+"\n"))
	}
	b.WriteString(")")
	return b.String()
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

// page builds a statement that reads each state by its index, with one summary more than
// the limit.
func (q *listing) page(tenant string) (string, []any, error) {
	q.args = []any{tenant}
	where := q.where("created")
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
	where := q.where("created")
	return fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM requests WHERE tenant = $1%s%s LIMIT %d) AS counted",
		q.inStates(), where, countMost), q.args
}

// A cursor holds the last request of a page and the order of the list.
func cursor(f approval.Filter, at int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(orderMark(f) + strconv.FormatInt(at, 10) + " " + id))
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
