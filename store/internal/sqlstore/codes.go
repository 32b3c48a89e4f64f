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

// Every row that a decision depends on carries a message authentication code: HMAC-SHA-256
// over the name of its table and the columns that affect decisions, including its primary
// key and version. The key is derived from the service's key, for one period of one store
// (periods.go). So a person who has only the database can't forge or change a row, or move
// it to another table, key, store or period. tables() lists the columns that each code
// covers. The other columns are indexes and are never trusted.

// authenticator makes and checks codes. A nil authenticator makes no codes and accepts
// every row.
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

// code returns the code of one row: of the table's name and the values of the columns that
// it covers, in the order of tables(). Values are string, int64, []byte or nil, as
// statements take them.
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

// coded returns the values followed by their code.
func (a *authenticator) coded(table string, values ...any) []any {
	return append(values, a.code(table, values...))
}

// value adds a value with its kind and length, so that different rows never give the same
// input.
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
		if len(v) == 0 { // drivers don't distinguish empty bytes from NULL
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
		c.value(fmt.Sprintf("%T %v", v, v)) // no column has a value of this type
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

// genuine returns a tamper error if found is not the code of the values.
func (s *Store) genuine(found []byte, tenant, what string, table string, values ...any) error {
	if s.auth == nil || hmac.Equal(found, s.auth.code(table, values...)) {
		return nil
	}
	if err := s.replaced(); err != nil {
		return verdict{err}
	}
	return s.tampered(tenant, what, misfit)
}

// periodWait is how long replaced waits for the database.
const periodWait = 2 * time.Second

// replaced returns an error if the period of this process is over because the key was
// changed or the store was restored. After that the rows have codes that this process can't
// check, which is not tampering. If the period can't be read, replaced returns nil.
func (s *Store) replaced() error {
	ctx, cancel := context.WithTimeout(context.Background(), periodWait)
	defer cancel()
	if err := s.stillBound(ctx); errors.Is(err, store.ErrKey) {
		return err
	}
	return nil
}

const misfit = "its code does not fit: it was written or changed without the key"

// tampered reports a changed row to the alarm, and returns the error as a verdict.
func (s *Store) tampered(tenant, what, problem string) error {
	err := &store.TamperedError{Tenant: tenant, What: what, Problem: problem}
	s.alarms.Add(1)
	if s.trust.Alarm != nil {
		s.trust.Alarm(err)
	}
	return verdict{err}
}
