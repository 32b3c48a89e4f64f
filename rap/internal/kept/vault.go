// Package kept holds what both sides of RAP keep their calls with: sealed records, and small means of waiting.
package kept

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
	"strings"
	"time"

	"github.com/assent-dev/assent/store"
)

// vault keeps documents of one kind, sealed: they hold arguments, callback URLs and response URLs, and a store's backup goes places.
type Vault[T any] struct {
	records store.Records
	Room    string
	aead    cipher.AEAD
}

// doc is a document with its place in the store.
type Doc[T any] struct {
	Key     string
	Alias   string
	Version int64
	Due     time.Time
	Expires time.Time
	Body    T
}

// Purpose is what the keys of all documents of this package are derived for.
const Purpose = "assent rap "

func New[T any](records store.Records, room string, key []byte, kind string) (*Vault[T], error) {
	if len(key) != 32 {
		return nil, errors.New("key: expected 32 bytes")
	}
	room += "/" + kind
	derived, err := hkdf.Key(sha256.New, key, nil, Purpose+room, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Vault[T]{records, room, aead}, err
}

// place names the record in what is sealed, so that no record can stand in for another.
func (v *Vault[T]) place(key string) []byte { return []byte(v.Room + "\x00" + key) }

// put stores a document at the version it was read at; approval.ErrVersion when it moved on meanwhile.
func (v *Vault[T]) Put(ctx context.Context, d *Doc[T]) error {
	text, err := json.Marshal(d.Body)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	next, err := v.records.PutRecord(ctx, store.Record{
		Room: v.Room, Key: d.Key, Alias: d.Alias, Version: d.Version, Due: d.Due, Expires: d.Expires, Value: v.aead.Seal(nil, nil, text, v.place(d.Key)),
	})
	if err == nil {
		d.Version = next
	}
	return err
}

func (v *Vault[T]) Open(r store.Record) (*Doc[T], error) {
	text, err := v.aead.Open(nil, nil, r.Value, v.place(r.Key))
	if err != nil {
		return nil, fmt.Errorf("the record can't be opened: another key sealed it, or it was changed: %w", err)
	}
	d := &Doc[T]{Key: r.Key, Alias: r.Alias, Version: r.Version, Due: r.Due, Expires: r.Expires}
	if err := json.Unmarshal(text, &d.Body); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if p, ok := any(&d.Body).(placed); ok {
		p.At(d.Key)
	}
	return d, nil
}

// placed is a document that knows where it is kept.
type placed interface{ At(key string) }

func (v *Vault[T]) Get(ctx context.Context, key string) (*Doc[T], error) {
	r, err := v.records.Record(ctx, v.Room, key)
	if err != nil {
		return nil, err
	}
	return v.Open(r)
}

func (v *Vault[T]) ByAlias(ctx context.Context, alias string) (*Doc[T], error) {
	r, err := v.records.RecordByAlias(ctx, v.Room, alias)
	if err != nil {
		return nil, err
	}
	return v.Open(r)
}

// due returns what should be looked at. Documents that can't be opened are reported beside the others.
func (v *Vault[T]) Due(ctx context.Context, now time.Time, limit int) ([]*Doc[T], error) {
	rs, err := v.records.DueRecords(ctx, v.Room, now, limit)
	return v.openAll(rs, err)
}

func (v *Vault[T]) List(ctx context.Context, prefix, after string, limit int) ([]*Doc[T], error) {
	rs, err := v.records.ListRecords(ctx, v.Room, prefix, after, limit)
	return v.openAll(rs, err)
}

// each shows the records below a prefix as they are kept, in the order of their keys.
func (v *Vault[T]) Each(ctx context.Context, prefix string, show func(store.Record)) error {
	const page = 64 // they may be large
	for after := ""; ; {
		rs, err := v.records.ListRecords(ctx, v.Room, prefix, after, page)
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

func (v *Vault[T]) openAll(rs []store.Record, err error) ([]*Doc[T], error) {
	var out []*Doc[T]
	for _, r := range rs {
		d, bad := v.Open(r)
		if err = errors.Join(err, bad); bad == nil {
			out = append(out, d)
		}
	}
	return out, err
}

func (v *Vault[T]) Remove(ctx context.Context, d *Doc[T]) error {
	return v.records.DeleteRecord(ctx, v.Room, d.Key, d.Version)
}

// newToken returns a secret of 256 bits for one URL, and its hash, by which it is found.
func NewToken() (token, hash string) {
	token = rand.Text() + rand.Text()
	return token, Hash(token)
}

// hashed turns an opaque text of any length and content into one that is fit for a key.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// resealed opens a value with one key and seals it with the next.
func Resealed(room, kind, key string, before, after, value []byte) ([]byte, error) {
	from, err1 := New[struct{}](nil, room, before, kind)
	to, err2 := New[struct{}](nil, room, after, kind)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}

	text, err := from.aead.Open(nil, nil, value, from.place(key))
	if err != nil {
		return nil, fmt.Errorf("it can't be opened: another key sealed it: %w", err)
	}

	return to.aead.Seal(nil, nil, text, to.place(key)), nil
}

// cutKind parts the name of a room into the place of its owner and the kind of its documents.
func CutKind(room string) (place, kind string, ok bool) {
	i := strings.LastIndexByte(room, '/')
	if i < 0 {
		return room, "", false
	}

	return room[:i], room[i+1:], true
}
