package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
)

// indexed holds the columns of a request that have indexes. A save that doesn't change them
// is cheaper.
type indexed struct {
	state, agent, target, groups, binding string
	deadline, due, closed                 int64
}

// row holds a request's columns, and the keys under which lists find it.
type row struct {
	approval.Summary
	x    indexed
	keys []string
}

func rowOf(r *approval.Request) row {
	s := approval.Summarize(r)
	x := indexed{
		state:    string(s.State),
		agent:    s.Agent,
		target:   plain(s.Target),
		groups:   joinGroups(s.Groups),
		binding:  r.Binding(),
		deadline: micros(r.Deadline),
	}
	if r.Due != nil {
		x.due = micros(*r.Due)
	}
	if r.Closed != nil {
		x.closed = micros(*r.Closed)
	}
	return row{s, x, listKeys(s)}
}

// line returns the values that the code of a list's line covers, in the form of their
// columns.
func (s row) line(tenant string) []any {
	return []any{
		tenant,
		s.ID,
		s.Version,
		s.x.state,
		string(s.Cause),
		s.Agent,
		s.x.target,
		plain(s.Principal),
		plain(s.Message),
		s.Rules,
		s.x.groups,
		int64(s.Approvals),
		int64(s.Needed),
		micros(s.Created),
		s.x.deadline,
		answering(&s.Summary),
	}
}

func (s *Store) insertRequest(tenant string, r *approval.Request, row row, body string) Stmt {
	return do(
		`INSERT INTO requests (tenant, id, version, state, cause, agent, target, principal, message, rules, group_names, approvals, needed, created,
deadline, answering, due, closed, binding, pruned, body, code, line_code, asker, bytes, keyed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, 0, $20, $21, $22, $23, $24, $3)`,
		append(
			row.line(tenant),
			optional(r.Due),
			optional(r.Closed),
			r.Binding(),
			body,
			s.auth.code("requests", tenant, r.ID, r.Version, body),
			s.auth.code("requests line", row.line(tenant)...),
			plain(r.Requester.Runtime),
			int64(len(body)),
		)...)
}

// updateRequest returns the statement that writes a request whose stored version is old.
// The statement changes no row if the ledger has a later version. same means that no
// indexed column changed, keyed that the statements of changeKeys follow.
func (s *Store) updateRequest(
	tenant string,
	r *approval.Request,
	now row,
	old int64,
	same, keyed bool,
	body string,
) Stmt {
	args := []any{
		tenant,
		r.ID,
		old,
		r.Version,
		string(now.Cause),
		plain(now.Principal),
		plain(now.Message),
		now.Rules,
		int64(now.Approvals),
		int64(now.Needed),
		body,
		s.auth.code("requests", tenant, r.ID, r.Version, body),
		s.auth.code("requests line", now.line(tenant)...),
		answering(&now.Summary),
	}
	set := "version = $4, cause = $5, principal = $6, message = $7, rules = $8, approvals = $9, needed = $10, body " +
		"= $11, code = $12, line_code = $13, " +
		"answering = $14"
	if keyed { // if the keys were right before, they are right now
		set += ", keyed = CASE WHEN keyed = version THEN $4 ELSE keyed END"
	}
	if !same {
		set += ", state = $15, agent = $16, target = $17, group_names = $18, deadline = $19, due = $20, closed = " +
			"$21, binding = $22, pruned = 0"
		args = append(
			args,
			now.x.state,
			now.Agent,
			now.x.target,
			now.x.groups,
			now.x.deadline,
			optional(r.Due),
			optional(r.Closed),
			r.Binding(),
		)
	}

	return one("UPDATE requests SET "+set+" WHERE tenant = $1 AND id = $2 AND version = $3 AND "+upToDate, args...)
}

// answering returns the JSON that a list needs to show who may answer. For a request that
// is no longer pending it has only the readers.
func answering(s *approval.Summary) string {
	var kept any = s.Answering
	if s.State != approval.Pending { // it no longer waits for an answer
		kept = struct {
			Readers []string `json:"readers"`
		}{s.Answering.Readers}
	}
	text, err := json.Marshal(kept)
	if err != nil { // texts, numbers and times always have a form
		return ""
	}

	return plain(string(text))
}

// upToDate is a condition that is true if the ledger has no version later than $3 of row $2
// of tenant $1.
const upToDate = "NOT EXISTS (SELECT 1 FROM entries WHERE entries.subject = $2 AND entries.tenant = $1 AND " +
	"entries.version > $3)"

// newestOf returns an expression for the latest version of a row in the ledger. The
// statement must name the row's table.
func newestOf(table string) string {
	return "(SELECT max(entries.version) FROM entries WHERE entries.subject = " + table +
		".id AND entries.tenant = " + table + ".tenant)"
}

func (s *Store) insertGrant(tenant string, g *approval.Grant, body string) Stmt {
	return do(
		`INSERT INTO grants (tenant, id, agent, target, created, expires, revoked, max_uses, uses, pruned, body, version, code)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, 1, $11)`,
		tenant,
		g.ID,
		g.Agent,
		plain(g.Target),
		micros(g.Created),
		micros(g.Expires),
		optional(g.Revoked),
		int64(g.MaxUses),
		int64(g.Uses),
		body,
		s.auth.code("grants", tenant, g.ID, int64(1), body),
	)
}

// updateGrant returns the statement that writes a grant whose stored version is old. It
// changes no row if the ledger has a later version.
func (s *Store) updateGrant(tenant string, g *approval.Grant, old int64, body string) Stmt {
	return one(
		`UPDATE grants SET version = $4, agent = $5, target = $6, expires = $7, revoked = $8, max_uses = $9, uses = $10, pruned = 0, body = $11, code = $12
WHERE tenant = $1 AND id = $2 AND version = $3 AND `+upToDate,
		tenant,
		g.ID,
		old,
		old+1,
		g.Agent,
		plain(g.Target),
		micros(g.Expires),
		optional(g.Revoked),
		int64(g.MaxUses),
		int64(g.Uses),
		body,
		s.auth.code("grants", tenant, g.ID, old+1, body),
	)
}

// joinGroups joins groups so that each is enclosed by line ends, and can be searched
// together with them.
func joinGroups(groups []string) string {
	if len(groups) == 0 {
		groups = []string{""}
	}
	var b strings.Builder
	for _, g := range groups {
		b.WriteByte('\n')
		b.WriteString(groupName(g))
	}
	b.WriteByte('\n')
	return b.String()
}

// groupName replaces line ends, because groups are joined by them.
func groupName(g string) string { return plain(strings.ReplaceAll(g, "\n", " ")) }

func splitGroups(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "\n"), "\n"), "\n")
}

// plain makes a text valid for a column: PostgreSQL accepts neither NUL nor invalid UTF-8.
// Documents keep NUL as \u0000.
func plain(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func parse[T any](body string) (*T, error) {
	v := new(T)
	return v, unavailable("read stored document", json.Unmarshal([]byte(body), v))
}

// parseRequest parses a document and checks that Request.Current works.
func parseRequest(body string) (*approval.Request, error) {
	r, err := parse[approval.Request](body)
	if err == nil && len(r.Revisions) == 0 {
		return nil, unavailable("read stored document", fmt.Errorf("request %q has no revision", r.ID))
	}

	return r, err
}

// document is a row that holds a document: a request or a grant. The body is empty if the
// caller has it already.
type document struct {
	id      string
	body    string
	version int64
	code    []byte
	newest  *int64 // latest version in the ledger
}

func scanDocument(r Rows) (d document, err error) {
	return d, r.Scan(&d.id, &d.body, &d.version, &d.code, &d.newest)
}

// documents returns the beginning of a statement that reads documents of a table.
func documents(table string) string {
	return "SELECT id, body, version, code, " + newestOf(table) + " FROM " + table
}

// document reads the document of an id, and returns a tamper error if it is not the latest
// version. read has the contract of tx.locked.
func (s *Store) document(
	table, tenant, id string, read func(what, sql string, args ...any) (document, bool, error),
) (document, error) {
	what, seen := strings.TrimSuffix(table, "s"), s.versions.latest(rowName{tenant, id})
	d, ok, err := read("read "+what, documents(table)+" WHERE tenant = $1 AND id = $2", tenant, plain(id))
	if err == nil && !ok {
		err = fmt.Errorf("%s %q: %w", what, id, approval.ErrNotFound)
	}
	if err != nil {
		return d, err
	}
	return d, s.check(table, tenant, d, seen)
}

// outside returns a read function for document that uses no transaction.
func (s *Store) outside(ctx context.Context) func(what, sql string, args ...any) (document, bool, error) {
	return func(what, sql string, args ...any) (document, bool, error) {
		return find(ctx, s, what, scanDocument, sql, args...)
	}
}

// check returns a tamper error if a document was not written by this service, or if it is
// an old version that was put back: the ledger or this process knows a later one. seen is
// the version that this process knew before the document was read.
func (s *Store) check(table, tenant string, d document, seen int64) error {
	what := strings.TrimSuffix(table, "s") + " " + d.id
	if d.newest != nil {
		seen = max(seen, *d.newest)
	}
	if seen > d.version {
		return s.tampered(
			tenant,
			what,
			fmt.Sprintf("it was put back: this is version %d, and there was version %d", d.version, seen),
		)
	}

	if d.body == "" {
		return nil
	}
	return s.genuine(d.code, tenant, what, table, tenant, d.id, d.version, d.body)
}

// memoryRow is a remembered answer with its code.
type memoryRow struct {
	approval.Memory
	code []byte
}

func scanMemory(r Rows) (m memoryRow, err error) {
	var expires int64
	err = r.Scan(&m.Digest, &m.Request, &m.Grant, &expires, &m.code)
	m.Expires = moment(expires)
	return m, err
}

// memoryValues returns the columns of a memory that its code covers.
func memoryValues(tenant, key string, m approval.Memory) []any {
	return []any{tenant, key, m.Digest, m.Request, m.Grant, micros(m.Expires)}
}

func scanVote(r Rows) (v approval.VoteFact, err error) {
	var verdict string
	var waited, at int64
	err = r.Scan(&v.Request, &v.Agent, &v.Target, &v.Person, &verdict, &waited, &at)
	v.Verdict = approval.Verdict(verdict)
	v.Waited = time.Duration(waited) * time.Microsecond
	v.At = moment(at)
	return v, err
}

const summaryColumns = "id, version, state, cause, agent, target, principal, message, rules, group_names, " +
	"approvals, needed, created, deadline, answering, " +
	"line_code, octet_length(body)"

// listed is a line of a list with the values that its code covers.
type listed struct {
	approval.Summary
	covered []any // without the tenant
	code    []byte
}

func scanSummary(r Rows) (s listed, err error) {
	var state, cause, groups, answering string
	var approvals, needed, created, deadline int64
	err = r.Scan(
		&s.ID,
		&s.Version,
		&state,
		&cause,
		&s.Agent,
		&s.Target,
		&s.Principal,
		&s.Message,
		&s.Rules,
		&groups,
		&approvals,
		&needed,
		&created,
		&deadline,
		&answering,
		&s.code,
		&s.Bytes,
	)
	s.covered = []any{
		s.ID,
		s.Version,
		state,
		cause,
		s.Agent,
		s.Target,
		s.Principal,
		s.Message,
		s.Rules,
		groups,
		approvals,
		needed,
		created,
		deadline,
		answering,
	}
	s.State = approval.State(state)
	s.Cause = approval.Cause(cause)
	s.Groups = splitGroups(groups)
	s.Approvals = int(approvals)
	s.Needed = int(needed)
	s.Created = moment(created)
	s.Deadline = moment(deadline)
	s.Question = approval.QuestionID(s.ID)
	if err == nil && answering != "" {
		err = json.Unmarshal([]byte(answering), &s.Answering)
	}
	return s, err
}

// line checks a line of a list.
func (s *Store) line(tenant string, l listed) (approval.Summary, error) {
	covered := append([]any{tenant}, l.covered...)
	return l.Summary, s.genuine(l.code, tenant, "line of request "+l.ID, "requests line", covered...)
}
