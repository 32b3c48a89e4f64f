package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// frozen is the list of a tenant's freezes in force, sorted by agent. Its version grows
// with every change.
type frozen struct {
	version int64
	all     []approval.Freeze
}

// clone returns a copy that callers may change.
func (f frozen) clone() []approval.Freeze { return append([]approval.Freeze(nil), f.all...) }

// put returns the freezes in force after next began or was lifted.
func (f frozen) put(next approval.Freeze) frozen {
	all := slices.DeleteFunc(f.clone(), func(o approval.Freeze) bool { return o.Agent == next.Agent })
	if next.Lifted == nil {
		all = append(all, next)
	}
	slices.SortFunc(all, func(a, b approval.Freeze) int { return strings.Compare(a.Agent, b.Agent) })
	return frozen{f.version, all}
}

type frozenRow struct {
	newest  *int64 // latest version in the ledger
	version *int64
	body    *string
	code    []byte
}

const selectFrozen = `SELECT (SELECT max(entries.version) FROM entries WHERE entries.subject = '' AND entries.tenant = $1), frozen.version, frozen.body, frozen.code
FROM (SELECT 1 AS one) AS always LEFT JOIN frozen ON frozen.tenant = $1`

// frozen reads the freezes in force. If the row is missing or an old one was put back, that
// is found by comparing it with the ledger's entries and with the versions that this
// process and the watermark know.
func (s *Store) frozen(ctx context.Context, q querier, tenant string) (frozen, error) {
	seen := s.versions.latest(rowName{tenant: tenant})
	r, _, err := first(ctx, q, func(r Rows) (x frozenRow, err error) {
		return x, r.Scan(&x.newest, &x.version, &x.body, &x.code)
	}, selectFrozen, tenant)
	if err != nil {
		return frozen{}, err
	}
	var out frozen
	if r.version != nil {
		out.version = *r.version
		if err := s.genuine(r.code, tenant, "freezes", "frozen", tenant, out.version, *r.body); err != nil {
			return frozen{}, err
		}
		if err := json.Unmarshal([]byte(*r.body), &out.all); err != nil {
			return frozen{}, verdict{unavailable("read stored document", err)}
		}
	}

	if r.newest != nil {
		seen = max(seen, *r.newest)
	}
	if seen > out.version {
		const problem = "they were put back or taken away: this is version %d, and there was version %d"
		return frozen{}, s.tampered(tenant, "freezes", fmt.Sprintf(problem, out.version, seen))
	}

	return out, nil
}

// writeFrozen returns the statement that writes the next version of the freezes.
func (s *Store) writeFrozen(tenant string, next frozen) (Stmt, error) {
	body, err := json.Marshal(next.all)
	if err != nil {
		return Stmt{}, fmt.Errorf("save freezes: %w", err)
	}
	version := next.version + 1
	code := s.auth.code("frozen", tenant, version, string(body))
	if next.version == 0 {
		return do(
			"INSERT INTO frozen (tenant, version, body, code) VALUES ($1, $2, $3, $4)",
			tenant,
			version,
			string(body),
			code,
		), nil
	}

	return one(
		"UPDATE frozen SET version = $3, body = $4, code = $5 WHERE tenant = $1 AND version = $2",
		tenant,
		next.version,
		version,
		string(body),
		code,
	), nil
}

// Freezes lists the freezes in force.
func (s *Store) Freezes(ctx context.Context, tenant string) ([]approval.Freeze, error) {
	if err := s.stopped(tenant); err != nil {
		return nil, err
	}
	f, err := s.frozen(ctx, s.eng, tenant)
	return f.clone(), unavailable("read freezes", err)
}
