package durable

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// Sealing configures where documents are stored and how they are sealed.
type Sealing struct {
	Records   store.Records
	Namespace string // of the owner, such as "rap/gateway/tools"
	Key       []byte // 32 secret bytes
	// Purpose is mixed into the keys, so that two components with the same secret can't read
	// each other's documents.
	Purpose string
}

// Vault stores documents of one kind. They are sealed because they hold arguments and secret
// URLs, and backups of a store are copied to many places.
type Vault[T any] struct {
	records   store.Records
	namespace string
	aead      cipher.AEAD
}

// Doc is a document with its metadata in the store.
type Doc[T any] struct {
	Key     string
	Alias   string    // a second key; empty if there is none
	Version int64     // at which it was read; 0 if it is not stored yet
	Due     time.Time // when it should be worked on; zero means never
	Expires time.Time // when it may be deleted; zero means never
	Body    T
}

// NewVault returns the vault for documents of a kind.
func NewVault[T any](s Sealing, kind string) (*Vault[T], error) {
	if len(s.Key) != sha256.Size {
		return nil, errors.New("key: expected 32 bytes")
	}
	namespace := s.Namespace + "/" + kind
	key, err := hkdf.Key(sha256.New, s.Key, nil, s.Purpose+namespace, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key: %w", err)
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	return &Vault[T]{records: s.Records, namespace: namespace, aead: aead}, nil
}

// place returns the additional data that binds a sealed document to its record, so that one
// record can't be substituted for another.
func (v *Vault[T]) place(key string) []byte { return []byte(v.namespace + "\x00" + key) }

// Put stores a document at the version at which it was read. It returns approval.ErrVersion if
// the record was changed since.
func (v *Vault[T]) Put(ctx context.Context, d *Doc[T]) error {
	text, err := json.Marshal(d.Body)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	next, err := v.records.PutRecord(ctx, store.Record{
		Namespace: v.namespace,
		Key:       d.Key,
		Alias:     d.Alias,
		Version:   d.Version,
		Due:       d.Due,
		Expires:   d.Expires,
		Value:     v.Seal(d.Key, text),
	})
	if err == nil {
		d.Version = next
	}
	return err
}

// Get returns a document, or approval.ErrNotFound.
func (v *Vault[T]) Get(ctx context.Context, key string) (*Doc[T], error) {
	r, err := v.records.Record(ctx, v.namespace, key)
	if err != nil {
		return nil, err
	}
	return v.Open(r)
}

// ByAlias returns the document with an alias, or approval.ErrNotFound.
func (v *Vault[T]) ByAlias(ctx context.Context, alias string) (*Doc[T], error) {
	r, err := v.records.RecordByAlias(ctx, v.namespace, alias)
	if err != nil {
		return nil, err
	}
	return v.Open(r)
}

// List returns up to limit documents whose keys begin with prefix and come after a key, ordered
// by key. Documents that can't be opened are left out; the error, returned along with the
// others, reports them.
func (v *Vault[T]) List(ctx context.Context, prefix, after string, limit int) ([]*Doc[T], error) {
	records, err := v.records.ListRecords(ctx, v.namespace, prefix, after, limit)
	var out []*Doc[T]
	for _, r := range records {
		d, bad := v.Open(r)
		if err = errors.Join(err, bad); bad == nil {
			out = append(out, d)
		}
	}

	return out, err
}

// Each calls show with the sealed records whose keys begin with prefix, ordered by key.
func (v *Vault[T]) Each(ctx context.Context, prefix string, show func(store.Record)) error {
	const page = 64 // they may be large
	for after := ""; ; {
		records, err := v.records.ListRecords(ctx, v.namespace, prefix, after, page)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Key
			show(r)
		}
		if len(records) < page {
			return nil
		}
	}
}

// All calls show with the documents whose keys begin with prefix, ordered by key. The error
// joins those of documents that can't be opened, which are skipped, and those of show.
func (v *Vault[T]) All(ctx context.Context, prefix string, show func(*Doc[T]) error) error {
	var failed error
	err := v.Each(ctx, prefix, func(r store.Record) {
		d, err := v.Open(r)
		if err == nil {
			err = show(d)
		}
		failed = errors.Join(failed, err)
	})
	return errors.Join(failed, err)
}

// Edit changes a document by compare-and-set. It calls edit with the stored document, or with
// an empty one at version 0, possibly more than once. If edit returns an error, nothing is
// stored, and Edit returns the error.
func (v *Vault[T]) Edit(ctx context.Context, key string, edit func(*Doc[T]) error) (*Doc[T], error) {
	for range maxChanges {
		d, err := v.Get(ctx, key)
		if errors.Is(err, approval.ErrNotFound) {
			d, err = &Doc[T]{Key: key}, nil
		}
		if err == nil {
			err = edit(d)
		}
		if err == nil {
			err = v.Put(ctx, d)
		}
		if !errors.Is(err, errConflict) {
			return d, err
		}
	}

	return nil, ErrBusy
}

// Remove deletes a document at the version at which it was read. It returns approval.ErrVersion
// if the record was changed since.
func (v *Vault[T]) Remove(ctx context.Context, d *Doc[T]) error {
	return v.records.DeleteRecord(ctx, v.namespace, d.Key, d.Version)
}

// due returns the sealed records that are due at now.
func (v *Vault[T]) due(ctx context.Context, now time.Time, limit int) ([]store.Record, error) {
	return v.records.DueRecords(ctx, v.namespace, now, limit)
}

// Open decrypts and decodes a record.
func (v *Vault[T]) Open(r store.Record) (*Doc[T], error) {
	text, err := v.Unseal(r.Key, r.Value)
	if err != nil {
		return nil, err
	}
	d := &Doc[T]{
		Key:     r.Key,
		Alias:   r.Alias,
		Version: r.Version,
		Due:     r.Due,
		Expires: r.Expires,
	}
	if err := json.Unmarshal(text, &d.Body); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return d, nil
}

// Seal seals the text of the document with a key.
func (v *Vault[T]) Seal(key string, text []byte) []byte {
	return v.aead.Seal(nil, nil, text, v.place(key))
}

// Unseal returns the text of a sealed document.
func (v *Vault[T]) Unseal(key string, sealed []byte) ([]byte, error) {
	text, err := v.aead.Open(nil, nil, sealed, v.place(key))
	if err != nil {
		return nil, fmt.Errorf("the record can't be opened: another key sealed it, or it was changed: %w", err)
	}

	return text, nil
}

// Hash returns a key for a text of any length and content.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
