package catalog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// ErrCursor is returned for a cursor that doesn't belong to this list: the list has changed since,
// or the cursor was not issued here.
var ErrCursor = errors.New("the cursor is not one of this list: the tools have changed, list them from the beginning")

// Page is one page of the list.
type Page struct {
	Tools [][]byte // as clients see them, see Tool.View; not to be changed
	Next  string   // the cursor of the next page; "" behind the last
}

// pages is the list as clients see it, computed once.
type pages struct {
	views      [][]byte
	size       int
	generation [16]byte
	seal       cipher.AEAD // nil: no cursors
}

// errKey is the error for an invalid key.
var errKey = errors.New("the key of cursors: expected 32 bytes")

func (p *pages) make(t *Table, size int, key []byte) error {
	p.size = size
	if key == nil {
		p.size = max(len(t.Entries), 1)
	} else if err := p.sealing(key); err != nil {
		return err
	}
	sum := sha256.New()
	p.views = make([][]byte, len(t.Entries))
	for i, e := range t.Entries {
		p.views[i] = e.Verdict.Tool.View(e.Advertised)
		frame(sum, p.views[i])
	}
	copy(p.generation[:], sum.Sum(nil))
	return nil
}

// frame adds a text with its length to a hash, so that different sequences of texts have different
// hashes.
func frame(sum hash.Hash, text []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(text)))
	sum.Write(size[:])
	sum.Write(text)
}

func (p *pages) sealing(key []byte) error {
	if len(key) != sha256.Size {
		return errKey
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return fmt.Errorf("make the cipher: %w", err)
	}
	if p.seal, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return fmt.Errorf("make the cipher: %w", err)
	}
	return nil
}

// Generation identifies the list that clients see. It differs after each change that they would
// see, and is the same in every process.
func (t *Table) Generation() string { return hex.EncodeToString(t.pages.generation[:]) }

// First returns the first page.
func (t *Table) First() Page { return t.page(0) }

// After returns the page of a cursor, or ErrCursor. The cursor may be any text from a client,
// including an empty one.
func (t *Table) After(cursor string) (Page, error) {
	at, err := t.pages.open(cursor)
	if err != nil {
		return Page{}, err
	}
	return t.page(at), nil
}

func (t *Table) page(from int) Page {
	to := min(from+t.pages.size, len(t.pages.views))
	page := Page{Tools: t.pages.views[from:to]}
	if to < len(t.pages.views) {
		page.Next = t.pages.cursor(to)
	}
	return page
}

// cursorKind is bound to each cursor, so that nothing else that was sealed with the key is accepted
// as a cursor.
const cursorKind = "assent tools/list cursor"

func (p *pages) cursor(at int) string {
	text := binary.BigEndian.AppendUint64(p.generation[:len(p.generation):len(p.generation)], uint64(at))
	return base64.RawURLEncoding.EncodeToString(p.seal.Seal(nil, nil, text, []byte(cursorKind)))
}

func (p *pages) open(cursor string) (at int, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || p.seal == nil {
		return 0, ErrCursor
	}
	text, err := p.seal.Open(nil, nil, sealed, []byte(cursorKind))
	if err != nil || len(text) != len(p.generation)+8 || string(text[:len(p.generation)]) != string(p.generation[:]) {
		return 0, ErrCursor
	}
	n := binary.BigEndian.Uint64(text[len(p.generation):])
	if n > uint64(len(p.views)) {
		return 0, ErrCursor
	}
	return int(n), nil
}
