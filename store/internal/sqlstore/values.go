package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

const sweepStep = 500

// PutToken inserts or replaces a token.
func (s *Store) PutToken(ctx context.Context, t store.Token) error {
	return s.write(ctx, "put token", func(x Tx) error {
		if err := s.checkName(ctx, x, t); err != nil {
			return err
		}
		x.Queue(do(putToken, s.auth.coded("tokens", tokenValues(t)...)...))
		return nil
	})
}

const putToken = `INSERT INTO tokens (tenant, id, name, hash, scopes, agents, person, maker, created, expires, revoked, code)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, hash = excluded.hash,
scopes = excluded.scopes, agents = excluded.agents, person = excluded.person, maker = excluded.maker, created = excluded.created, expires = excluded.expires,
revoked = excluded.revoked, code = excluded.code`

// checkName returns ErrNameTaken if another live token of the tenant has the name. It locks
// the names first, so that two concurrent writers can't both find the name free.
func (s *Store) checkName(ctx context.Context, x Tx, t store.Token) error {
	if wait := s.eng.Dialect().WaitFor; wait != "" {
		x.Queue(do(wait, "names of tokens of "+t.Tenant))
	}
	other, taken, err := first(ctx, x, scanText,
		"SELECT id FROM tokens WHERE tenant = $1 AND name = $2 AND id <> $3 AND revoked IS NULL AND expires > $4",
		t.Tenant, t.Name, t.ID, micros(t.Created))
	if err != nil {
		return err
	}
	if taken {
		return verdict{fmt.Errorf("%w: %s has it", store.ErrNameTaken, other)}
	}

	return nil
}

// tokenValues returns the columns of a token that its code covers.
func tokenValues(t store.Token) []any {
	return []any{
		t.Tenant,
		t.ID,
		t.Name,
		t.Hash,
		texts(t.Scopes),
		texts(t.Agents),
		t.Person,
		t.Maker,
		micros(t.Created),
		micros(t.Expires),
		optional(t.Revoked),
	}
}

// texts encodes a list for a column.
func texts(list []string) string {
	b, _ := json.Marshal(list) // strings can always be written
	return string(b)
}

// tokenRow is a token with its code. gone is not zero if the ledger has an entry that the
// token was revoked.
type tokenRow struct {
	store.Token
	code []byte
	gone int64
}

const selectTokens = "SELECT tenant, id, name, hash, scopes, agents, person, maker, created, expires, revoked, " +
	"code, (SELECT count(*) FROM entries WHERE " +
	"entries.subject = tokens.id AND entries.tenant = tokens.tenant AND entries.type = '" +
	approval.EventTokenRevoked + "') FROM tokens WHERE "

func scanToken(r Rows) (t tokenRow, err error) {
	var scopes, agents string
	var created, expires int64
	var revoked *int64
	if err = r.Scan(
		&t.Tenant,
		&t.ID,
		&t.Name,
		&t.Hash,
		&scopes,
		&agents,
		&t.Person,
		&t.Maker,
		&created,
		&expires,
		&revoked,
		&t.code,
		&t.gone,
	); err != nil {
		return t, err
	}

	t.Created = moment(created)
	t.Expires = moment(expires)
	t.Revoked = optionalMoment(revoked)
	if err = json.Unmarshal([]byte(scopes), &t.Scopes); err == nil {
		err = json.Unmarshal([]byte(agents), &t.Agents)
	}
	return t, err
}

// token returns a tamper error for a row that was not written by this service. A token that
// was revoked once stays revoked, whatever its row says.
func (s *Store) token(t tokenRow) (store.Token, error) {
	what := "token " + t.ID
	if err := s.genuine(t.code, t.Tenant, what, "tokens", tokenValues(t.Token)...); err != nil {
		return store.Token{}, err
	}
	if t.Revoked != nil {
		return t.Token, nil
	}
	if at, known := s.revoked(t.Tenant, t.ID); known {
		_ = s.tampered(t.Tenant, what, "it was revoked, and its row says that it is good: it counts as revoked")
		t.Revoked = &at
		return t.Token, nil
	}

	if t.gone > 0 {
		return store.Token{}, s.tampered(
			t.Tenant,
			what,
			"the ledger tells that it was revoked, and its row says that it is good",
		)
	}

	return t.Token, nil
}

// revoked looks the token up in the watermark.
func (s *Store) revoked(tenant, id string) (time.Time, bool) {
	if s.trust.Watermark == nil {
		return time.Time{}, false
	}
	return s.trust.Watermark.Revoked(tenant, id)
}

// TokenByHash returns a token in any state.
func (s *Store) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	t, ok, err := find(ctx, s, "read token", scanToken, selectTokens+"hash = $1", hash)
	if err == nil && !ok {
		err = fmt.Errorf("token: %w", approval.ErrNotFound)
	}
	if err != nil {
		return store.Token{}, err
	}
	return s.token(t)
}

// LiveToken returns the token of a name if it is neither revoked nor expired.
func (s *Store) LiveToken(ctx context.Context, tenant, name string, now time.Time) (store.Token, error) {
	found, err := list(ctx, s, "read token", scanToken,
		selectTokens+"tenant = $1 AND name = $2 AND revoked IS NULL AND expires > $3", tenant, plain(name), micros(now))
	if err != nil {
		return store.Token{}, err
	}
	all, err := each(found, s.token)
	if err != nil {
		return store.Token{}, err
	}
	for _, t := range all {
		if t.Revoked == nil { // the watermark may have a revocation that the row lacks
			return t, nil
		}
	}
	return store.Token{}, fmt.Errorf("token: %w", approval.ErrNotFound)
}

// Tokens lists a tenant's tokens, newest first.
func (s *Store) Tokens(ctx context.Context, tenant string) ([]store.Token, error) {
	found, err := list(ctx, s, "list tokens", scanToken,
		selectTokens+"tenant = $1 ORDER BY created DESC, id DESC", tenant)
	if err != nil {
		return nil, err
	}
	return each(found, s.token)
}

// RevokeToken revokes a token. A token that was revoked before keeps that time.
func (s *Store) RevokeToken(ctx context.Context, tenant, id string, at time.Time) error {
	_, err := s.endToken(ctx, tenant, id, at)
	if err != nil {
		return err
	}
	return s.noteRevoked(tenant, id, at)
}

// EndToken is RevokeToken for a token that may not exist.
func (s *Store) EndToken(ctx context.Context, tenant, id string, at time.Time) (bool, error) {
	ended, err := s.endToken(ctx, tenant, id, at)
	if errors.Is(err, approval.ErrNotFound) {
		return false, nil
	}
	return ended, err
}

func (s *Store) endToken(ctx context.Context, tenant, id string, at time.Time) (ended bool, err error) {
	err = s.write(ctx, "revoke token", func(x Tx) error {
		ended = false
		row, ok, err := first(
			ctx,
			x,
			scanToken,
			selectTokens+"tenant = $1 AND id = $2"+s.d.Lock,
			tenant,
			plain(id),
		)
		switch {
		case err != nil:
			return err
		case !ok:
			return verdict{fmt.Errorf("token %q: %w", id, approval.ErrNotFound)}
		case row.Revoked != nil:
			return nil
		}

		if err := s.genuine(row.code, tenant, "token "+row.ID, "tokens", tokenValues(row.Token)...); err != nil {
			return err
		}
		last := moment(micros(at))
		row.Revoked, ended = &last, true
		x.Queue(
			one(
				"UPDATE tokens SET revoked = $3, code = $4 WHERE tenant = $1 AND id = $2",
				tenant,
				row.ID,
				micros(at),
				s.auth.code("tokens", tokenValues(row.Token)...),
			),
		)
		return nil
	})
	return ended, err
}

// noteRevoked writes the revocation to the watermark, if there is one.
func (s *Store) noteRevoked(tenant, id string, at time.Time) error {
	if s.trust.Watermark == nil {
		return nil
	}
	if err := s.trust.Watermark.Revoke(tenant, id, at); err != nil {
		return fmt.Errorf(
			"the token %s is revoked, but that could not be noted outside of the store: %w",
			id,
			err,
		)
	}

	return nil
}

// SetValue keeps a value until it expires.
func (s *Store) SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error {
	if value == nil {
		value = []byte{}
	}
	return s.exec(
		ctx,
		"set value",
		do(`INSERT INTO kept (bucket, name, value, expires, code) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (bucket, name) DO UPDATE SET value = excluded.value, expires = excluded.expires, code = excluded.code`,
			s.auth.coded("kept", bucket, key, value, micros(expires))...),
	)
}

type kept struct {
	name    string
	value   []byte
	expires int64
	code    []byte
}

const (
	keptColumns = "name, value, expires, code"
	selectKept  = "SELECT " + keptColumns + " FROM kept WHERE bucket = $1 AND expires > $2"
)

func scanKept(r Rows) (k kept, err error) {
	err = r.Scan(&k.name, &k.value, &k.expires, &k.code)
	if k.value == nil {
		k.value = []byte{} // as drivers may return none
	}
	return k, err
}

func (s *Store) genuineValue(bucket string, k kept) error {
	return s.genuine(k.code, "", "value of "+bucket, "kept", bucket, k.name, k.value, k.expires)
}

// Value returns a value that has not expired.
func (s *Store) Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error) {
	k, ok, err := find(ctx, s, "read value", scanKept, selectKept+" AND name = $3", bucket, micros(now), key)
	return s.value(bucket, k, ok, err)
}

// value checks the row of one value and returns the value.
func (s *Store) value(bucket string, k kept, ok bool, err error) ([]byte, error) {
	if err == nil && !ok {
		err = verdict{fmt.Errorf("value of %s: %w", bucket, approval.ErrNotFound)}
	}
	if err != nil {
		return nil, err
	}
	return k.value, s.genuineValue(bucket, k)
}

// TakeValue deletes a value and returns it.
func (s *Store) TakeValue(ctx context.Context, bucket, key string, now time.Time) (value []byte, err error) {
	err = s.write(ctx, "take value", func(x Tx) error {
		k, ok, err := first(ctx, x, scanKept,
			"DELETE FROM kept WHERE bucket = $1 AND name = $2 AND expires > $3 RETURNING "+keptColumns,
			bucket, key, micros(now))
		value, err = s.value(bucket, k, ok, err)
		return err
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// DeleteValue deletes a value if it exists.
func (s *Store) DeleteValue(ctx context.Context, bucket, key string) error {
	return s.exec(ctx, "delete value", do("DELETE FROM kept WHERE bucket = $1 AND name = $2", bucket, key))
}

// ListValues returns the values of a bucket that have not expired, by key.
func (s *Store) ListValues(ctx context.Context, bucket string, now time.Time) (map[string][]byte, error) {
	all, err := list(ctx, s, "list values", scanKept, selectKept, bucket, micros(now))
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(all))
	for _, k := range all {
		if err := s.genuineValue(bucket, k); err != nil {
			return nil, err
		}
		out[k.name] = k.value
	}

	return out, nil
}

// SweepValues deletes expired values and idempotency keys, and deliveries that arrived more
// than a week ago.
func (s *Store) SweepValues(ctx context.Context, now time.Time) error {
	for _, sql := range []string{
		"DELETE FROM kept WHERE (bucket, name) IN (SELECT bucket, name FROM kept WHERE expires <= $1 LIMIT $2) " +
			"RETURNING expires",
		"DELETE FROM memories WHERE (tenant, name) IN (SELECT tenant, name FROM memories WHERE expires <= $1 LIMIT " +
			"$2) RETURNING expires",
		"DELETE FROM pasts WHERE (tenant, id, state) IN (SELECT tenant, id, state FROM pasts WHERE until <= $1 LIMIT " +
			"$2) RETURNING at",
	} {
		if err := s.sweep(ctx, "sweep values", now, sql); err != nil {
			return err
		}
	}

	return s.sweepSent(ctx, now)
}

// sweep runs a statement that deletes up to $2 rows that expired by $1 and returns a number
// for each, until it deletes fewer than that.
func (s *Store) sweep(ctx context.Context, what string, now time.Time, sql string) error {
	for gone := sweepStep; gone == sweepStep; {
		err := s.write(ctx, what, func(x Tx) error {
			rows, err := collect(ctx, x, scanInt, sql, micros(now), int64(sweepStep))
			gone = len(rows)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}
