package sqlstore

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"github.com/assent-dev/assent/store"
)

// Every row that a decision rests on carries a message authentication
// code: HMAC-SHA-256 over the name of its table and the columns that
// decide anything, its primary key and version among them. The key is
// derived from the service's, for one period of one store (periods.go),
// so no row can be forged, changed, or moved to another place, store or
// period by somebody who has the database alone. Which columns a code
// covers stands in tables(); the others are indexes and are never
// trusted.

// authenticator makes and checks codes. A nil one makes none, and finds
// everything right.
type authenticator struct{ free sync.Pool }

// newAuthenticator derives the key of one period.
func newAuthenticator(secret []byte, period string) (*authenticator, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "assent rows v1 "+period, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of the rows: %w", err)
	}
	return &authenticator{sync.Pool{New: func() any { return &coder{mac: hmac.New(sha256.New, key)} }}}, nil
}

// coder computes one code.
type coder struct {
	mac hash.Hash
	buf [1024]byte
	n   int
}

// code is the code of one row: of the table's name and the values of
// the columns that it covers, in the order of tables(). Values are
// string, int64, []byte or nil, as statements take them.
func (a *authenticator) code(table string, values ...any) []byte {
	if a == nil {
		return nil
	}
	c := a.free.Get().(*coder)
	c.mac.Reset()
	c.value(table)
	for _, v := range values {
		c.value(v)
	}
	c.flush()
	sum := c.mac.Sum(make([]byte, 0, sha256.Size))
	a.free.Put(c)
	return sum
}

// coded are values with their code behind them.
func (a *authenticator) coded(table string, values ...any) []any {
	return append(values, a.code(table, values...))
}

// value adds a value with its kind and length, so that no two rows read
// the same.
func (c *coder) value(v any) {
	switch v := v.(type) {
	case string:
		c.begin('s', int64(len(v)))
		for len(v) > 0 {
			n := copy(c.buf[c.n:], v)
			c.added(n)
			v = v[n:]
		}
	case []byte:
		if len(v) == 0 { // drivers don't tell no bytes from NULL
			c.begin('0', 0)
			return
		}
		c.begin('b', int64(len(v)))
		for len(v) > 0 {
			n := copy(c.buf[c.n:], v)
			c.added(n)
			v = v[n:]
		}
	case int64:
		c.begin('i', v)
	case nil:
		c.begin('0', 0)
	default:
		c.value(fmt.Sprintf("%T %v", v, v)) // no column holds one
	}
}

func (c *coder) begin(kind byte, n int64) {
	if len(c.buf)-c.n < 9 {
		c.flush()
	}
	c.buf[c.n] = kind
	binary.BigEndian.PutUint64(c.buf[c.n+1:], uint64(n))
	c.added(9)
}

func (c *coder) added(n int) {
	if c.n += n; c.n == len(c.buf) {
		c.flush()
	}
}

func (c *coder) flush() {
	c.mac.Write(c.buf[:c.n]) // never fails
	c.n = 0
}

// genuine refuses a row whose code is not the one that its values have.
func (s *Store) genuine(found []byte, tenant, what string, table string, values ...any) error {
	if s.auth == nil || hmac.Equal(found, s.auth.code(table, values...)) {
		return nil
	}
	if err := s.replaced(); err != nil {
		return verdict{err}
	}
	return s.tampered(tenant, what, misfit)
}

// periodWait is how long to wait for the answer to whether the period of
// this process is over.
const periodWait = 2 * time.Second

// replaced returns an error if the period of this process is over,
// because the key was changed or the store was restored. Then the codes
// of rows are new and fit none that this process can make, which is no
// tampering. If that can't be found out, it returns nil.
func (s *Store) replaced() error {
	ctx, cancel := context.WithTimeout(context.Background(), periodWait)
	defer cancel()
	if err := s.stillBound(ctx); errors.Is(err, store.ErrKey) {
		return err
	}
	return nil
}

const misfit = "its code does not fit: it was written or changed without the key"

// tampered raises the alarm, and returns what to tell: a verdict.
func (s *Store) tampered(tenant, what, problem string) error {
	err := &store.TamperedError{Tenant: tenant, What: what, Problem: problem}
	s.alarms.Add(1)
	if s.trust.Alarm != nil {
		s.trust.Alarm(err)
	}
	return verdict{err}
}
