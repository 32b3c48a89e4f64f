package rap

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// NewMemory returns records that are kept in memory, for command-line tools and tests.
func NewMemory() store.Records {
	return &memory{records: map[memoryName]store.Record{}, aliases: map[memoryName]string{}}
}

// memoryName is a key or an alias in its namespace.
type memoryName struct{ namespace, of string }

type memory struct {
	mu      sync.Mutex
	records map[memoryName]store.Record // by key
	aliases map[memoryName]string       // key by alias
}

func (m *memory) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("put record: %w", err)
	}
	r, err := r.Normal()
	if err != nil {
		return 0, fmt.Errorf("put record: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[memoryName{r.Namespace, r.Key}]
	if owner, taken := m.aliases[memoryName{r.Namespace, r.Alias}]; old.Version != r.Version ||
		taken && owner != r.Key {
		return 0, fmt.Errorf("put record: %w", approval.ErrVersion)
	}
	m.forget(old)
	r.Version++
	r.Value = bytes.Clone(r.Value)
	m.records[memoryName{r.Namespace, r.Key}] = r
	if r.Alias != "" {
		m.aliases[memoryName{r.Namespace, r.Alias}] = r.Key
	}
	return r.Version, nil
}

func (m *memory) forget(r store.Record) {
	delete(m.records, memoryName{r.Namespace, r.Key})
	delete(m.aliases, memoryName{r.Namespace, r.Alias})
}

func (m *memory) DeleteRecord(ctx context.Context, namespace, key string, version int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete record: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.records[memoryName{namespace, key}]
	if !found || r.Version != version {
		return fmt.Errorf("delete record: %w", approval.ErrVersion)
	}
	m.forget(r)
	return nil
}

func (m *memory) Record(ctx context.Context, namespace, key string) (store.Record, error) {
	return m.get(ctx, namespace, func() string { return key })
}

func (m *memory) RecordByAlias(ctx context.Context, namespace, alias string) (store.Record, error) {
	// No record has an empty key, so an unknown alias finds nothing.
	return m.get(ctx, namespace, func() string { return m.aliases[memoryName{namespace, alias}] })
}

func (m *memory) get(ctx context.Context, namespace string, key func() string) (store.Record, error) {
	if err := ctx.Err(); err != nil {
		return store.Record{}, fmt.Errorf("read record: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.records[memoryName{namespace, key()}]
	if !found {
		return store.Record{}, fmt.Errorf("record: %w", approval.ErrNotFound)
	}
	return lentRecord(r), nil
}

// lentRecord returns a record whose value the caller may modify.
func lentRecord(r store.Record) store.Record {
	r.Value = bytes.Clone(r.Value)
	return r
}

func (m *memory) ListRecords(
	ctx context.Context,
	namespace, prefix, after string,
	limit int,
) ([]store.Record, error) {
	if err := cmp.Or(ctx.Err(), store.CheckRecordList(namespace, prefix, after, limit)); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return m.list(namespace, limit, func(r store.Record) bool {
		return strings.HasPrefix(r.Key, prefix) && r.Key > after
	}, byRecordKey), nil
}

func (m *memory) DueRecords(
	ctx context.Context,
	namespace string,
	now time.Time,
	limit int,
) ([]store.Record, error) {
	if err := cmp.Or(ctx.Err(), store.CheckRecordList(namespace, "", "", limit)); err != nil {
		return nil, fmt.Errorf("list due records: %w", err)
	}
	come := func(r store.Record) bool { return !r.Due.IsZero() && !r.Due.After(now) }
	return m.list(namespace, limit, come, func(a, b store.Record) int {
		return cmp.Or(a.Due.Compare(b.Due), byRecordKey(a, b))
	}), nil
}

func byRecordKey(a, b store.Record) int { return strings.Compare(a.Key, b.Key) }

func (m *memory) list(
	namespace string, limit int, wanted func(store.Record) bool, order func(a, b store.Record) int,
) []store.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Record
	for n, r := range m.records {
		if n.namespace == namespace && wanted(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, order)
	out = out[:min(limit, len(out))]
	for i, r := range out {
		out[i] = lentRecord(r)
	}
	return slices.Clip(out)
}

func (m *memory) SweepRecords(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sweep records: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range maps.Values(m.records) {
		if !r.Expires.IsZero() && !r.Expires.After(now) {
			m.forget(r)
		}
	}
	return nil
}
