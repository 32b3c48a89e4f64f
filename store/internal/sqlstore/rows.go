package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
)

// indexed are the columns of a request that indexes hold; a save that leaves them alone is cheaper.
type indexed struct {
	state, agent, target, groups, binding string
	deadline, due, closed                 int64
}

// row is what a request's columns hold.
type row struct {
	approval.Summary
	x indexed
}

func rowOf(r *approval.Request) row {
	s := approval.Summarize(r)
	x := indexed{state: string(s.State), agent: s.Agent, target: plain(s.Target), groups: joinGroups(s.Groups), binding: r.Binding(), deadline: micros(r.Deadline)}
	if r.Due != nil {
		x.due = micros(*r.Due)
	}
	if r.Closed != nil {
		x.closed = micros(*r.Closed)
	}
	return row{s, x}
}

func insertRequest(tenant string, r *approval.Request, body string) Stmt {
	s := rowOf(r)
	return Stmt{
		SQL: `INSERT INTO requests (tenant, id, version, state, cause, agent, target, principal, message, rules, group_names, approvals, needed,
created, deadline, due, closed, binding, pruned, body, answering)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 0, $19, $20)`,
		Args: []any{
			tenant, r.ID, r.Version, s.x.state, string(s.Cause), s.Agent, s.x.target, plain(s.Principal), plain(s.Message), s.Rules,
			s.x.groups, int64(s.Approvals), int64(s.Needed), micros(s.Created), s.x.deadline, optional(r.Due), optional(r.Closed),
			r.Binding(), body, answering(&s.Summary),
		},
	}
}

// updateRequest writes a request that had version old. same says that no indexed column changed.
func updateRequest(tenant string, r *approval.Request, s row, old int64, same bool, body string) Stmt {
	args := []any{
		tenant, r.ID, old, r.Version, string(s.Cause), plain(s.Principal), plain(s.Message), s.Rules, int64(s.Approvals), int64(s.Needed), body,
		answering(&s.Summary),
	}
	set := "version = $4, cause = $5, principal = $6, message = $7, rules = $8, approvals = $9, needed = $10, body = $11, answering = $12"
	if !same {
		set += ", state = $13, agent = $14, target = $15, group_names = $16, deadline = $17, due = $18, closed = $19, binding = $20, pruned = 0"
		args = append(args, s.x.state, s.Agent, s.x.target, s.x.groups, s.x.deadline, optional(r.Due), optional(r.Closed), r.Binding())
	}
	return Stmt{SQL: "UPDATE requests SET " + set + " WHERE tenant = $1 AND id = $2 AND version = $3", Args: args, One: true}
}

// answering writes what a list needs to know of who may answer. Of a request that has ended nobody asks for it.
func answering(s *approval.Summary) string {
	if s.State != approval.Pending {
		return ""
	}
	text, err := json.Marshal(s.Answering)
	if err != nil { // texts, numbers and times always have a form
		return ""
	}

	return plain(string(text))
}

func upsertGrant(tenant string, g *approval.Grant, body string) Stmt {
	return Stmt{
		SQL: `INSERT INTO grants (tenant, id, agent, target, created, expires, revoked, max_uses, uses, pruned, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10) ON CONFLICT (tenant, id) DO UPDATE SET agent = excluded.agent, target = excluded.target,
expires = excluded.expires, revoked = excluded.revoked, max_uses = excluded.max_uses, uses = excluded.uses, pruned = 0, body = excluded.body`,
		Args: []any{tenant, g.ID, g.Agent, plain(g.Target), micros(g.Created), micros(g.Expires), optional(g.Revoked), int64(g.MaxUses), int64(g.Uses), body},
	}
}

// joinGroups writes groups so that each stands between two line ends, and can be found with them.
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

// groupName keeps a name on one line.
func groupName(g string) string { return plain(strings.ReplaceAll(g, "\n", " ")) }

func splitGroups(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "\n"), "\n"), "\n")
}

// plain makes a text fit for a column: Postgres takes no NUL. Documents keep it, as \u0000.
func plain(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func parse[T any](body string) (*T, error) {
	v := new(T)
	if err := json.Unmarshal([]byte(body), v); err != nil {
		return nil, unavailable("read stored document", err)
	}
	return v, nil
}

// parseRequest reads a document and makes sure that Request.Current works.
func parseRequest(body string) (*approval.Request, error) {
	r, err := parse[approval.Request](body)
	if err == nil && len(r.Revisions) == 0 {
		return nil, unavailable("read stored document", fmt.Errorf("request %q has no revision", r.ID))
	}
	return r, err
}

func parseAll[T any](bodies []string) ([]*T, error) {
	out := make([]*T, 0, len(bodies))
	for _, body := range bodies {
		v, err := parse[T](body)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

const selectFreezes = "SELECT agent, person, reason, at, lifted FROM freezes WHERE tenant = $1 AND lifted IS NULL ORDER BY agent"

func scanFreeze(r Rows) (f approval.Freeze, err error) {
	var at int64
	var lifted *int64
	err = r.Scan(&f.Agent, &f.By, &f.Reason, &at, &lifted)
	f.At, f.Lifted = moment(at), optionalMoment(lifted)
	return f, err
}

func scanMemory(r Rows) (m approval.Memory, err error) {
	var expires int64
	err = r.Scan(&m.Digest, &m.Request, &m.Grant, &expires)
	m.Expires = moment(expires)
	return m, err
}

func scanVote(r Rows) (v approval.VoteFact, err error) {
	var verdict string
	var waited, at int64
	err = r.Scan(&v.Request, &v.Agent, &v.Target, &v.Person, &verdict, &waited, &at)
	v.Verdict, v.Waited, v.At = approval.Verdict(verdict), time.Duration(waited)*time.Microsecond, moment(at)
	return v, err
}

const summaryColumns = "id, version, state, cause, agent, target, principal, message, rules, group_names, approvals, needed, created, deadline, answering"

func scanSummary(r Rows) (s approval.Summary, err error) {
	var state, cause, groups, answering string
	var approvals, needed, created, deadline int64
	err = r.Scan(&s.ID, &s.Version, &state, &cause, &s.Agent, &s.Target, &s.Principal, &s.Message, &s.Rules, &groups, &approvals, &needed, &created, &deadline, &answering)
	s.State, s.Cause, s.Groups = approval.State(state), approval.Cause(cause), splitGroups(groups)
	s.Approvals, s.Needed, s.Created, s.Deadline = int(approvals), int(needed), moment(created), moment(deadline)
	s.Question = approval.QuestionID(s.ID)
	if err == nil && answering != "" {
		err = json.Unmarshal([]byte(answering), &s.Answering)
	}
	return s, err
}
