package rap

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/store"
)

// vault keeps documents of one kind, sealed: they hold arguments, callback URLs and response URLs, and a store's backup goes places.
type vault[T any] struct {
	records store.Records
	room    string
	aead    cipher.AEAD
}

// doc is a document with its place in the store.
type doc[T any] struct {
	key     string
	alias   string
	version int64
	due     time.Time
	expires time.Time
	body    T
}

func newVault[T any](c *Common, kind string) (*vault[T], error) {
	if len(c.Key) != 32 {
		return nil, errors.New("key: expected 32 bytes")
	}
	room := c.Room + "/" + kind
	key, err := hkdf.Key(sha256.New, c.Key, nil, "assent rap "+room, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &vault[T]{c.Records, room, aead}, err
}

// place names the record in what is sealed, so that no record can stand in for another.
func (v *vault[T]) place(key string) []byte { return []byte(v.room + "\x00" + key) }

// put stores a document at the version it was read at; approval.ErrVersion when it moved on meanwhile.
func (v *vault[T]) put(ctx context.Context, d *doc[T]) error {
	text, err := json.Marshal(d.body)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	next, err := v.records.PutRecord(ctx, store.Record{
		Room: v.room, Key: d.key, Alias: d.alias, Version: d.version, Due: d.due, Expires: d.expires, Value: v.aead.Seal(nil, nil, text, v.place(d.key)),
	})
	if err == nil {
		d.version = next
	}
	return err
}

func (v *vault[T]) open(r store.Record) (*doc[T], error) {
	text, err := v.aead.Open(nil, nil, r.Value, v.place(r.Key))
	if err != nil {
		return nil, fmt.Errorf("the record can't be opened: another key sealed it, or it was changed: %w", err)
	}
	d := &doc[T]{key: r.Key, alias: r.Alias, version: r.Version, due: r.Due, expires: r.Expires}
	if err := json.Unmarshal(text, &d.body); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if p, ok := any(&d.body).(placed); ok {
		p.at(d.key)
	}
	return d, nil
}

// placed is a document that knows where it is kept.
type placed interface{ at(key string) }

func (v *vault[T]) get(ctx context.Context, key string) (*doc[T], error) {
	r, err := v.records.Record(ctx, v.room, key)
	if err != nil {
		return nil, err
	}
	return v.open(r)
}

func (v *vault[T]) byAlias(ctx context.Context, alias string) (*doc[T], error) {
	r, err := v.records.RecordByAlias(ctx, v.room, alias)
	if err != nil {
		return nil, err
	}
	return v.open(r)
}

// due returns what should be looked at. Documents that can't be opened are reported beside the others.
func (v *vault[T]) due(ctx context.Context, now time.Time, limit int) ([]*doc[T], error) {
	rs, err := v.records.DueRecords(ctx, v.room, now, limit)
	return v.openAll(rs, err)
}

func (v *vault[T]) list(ctx context.Context, prefix, after string, limit int) ([]*doc[T], error) {
	rs, err := v.records.ListRecords(ctx, v.room, prefix, after, limit)
	return v.openAll(rs, err)
}

// each shows the records below a prefix as they are kept, in the order of their keys.
func (v *vault[T]) each(ctx context.Context, prefix string, show func(store.Record)) error {
	const page = 64 // they may be large
	for after := ""; ; {
		rs, err := v.records.ListRecords(ctx, v.room, prefix, after, page)
		if err != nil {
			return err
		}
		for _, r := range rs {
			after = r.Key
			show(r)
		}
		if len(rs) < page {
			return nil
		}
	}
}

func (v *vault[T]) openAll(rs []store.Record, err error) ([]*doc[T], error) {
	var out []*doc[T]
	for _, r := range rs {
		d, bad := v.open(r)
		if err = errors.Join(err, bad); bad == nil {
			out = append(out, d)
		}
	}
	return out, err
}

func (v *vault[T]) remove(ctx context.Context, d *doc[T]) error {
	return v.records.DeleteRecord(ctx, v.room, d.key, d.version)
}

// newToken returns a secret of 256 bits for one URL, and its hash, by which it is found.
func newToken() (token, hash string) {
	token = rand.Text() + rand.Text()
	return token, hashed(token)
}

// hashed turns an opaque text of any length and content into one that is fit for a key.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
