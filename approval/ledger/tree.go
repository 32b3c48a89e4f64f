package ledger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// maxSize is the largest number of entries in a log. Beyond it, arithmetic with indexes could
// overflow.
const maxSize = 1 << 56

// Hash is the SHA-256 of a leaf or of a node of the tree, as defined in RFC 6962.
type Hash [32]byte

// String returns the hash in base64.
func (h Hash) String() string { return base64.StdEncoding.EncodeToString(h[:]) }

// ParseHash parses the format of String.
func ParseHash(s string) (Hash, error) {
	b, ok := decode64(s)
	if !ok || len(b) != len(Hash{}) {
		return Hash{}, errors.New("a hash is not base64 of 32 bytes")
	}
	return Hash(b), nil
}

// MarshalText returns the same text as String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses the format of MarshalText.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// LeafHash returns the hash of a leaf. It is stored at storedIndex(0, index of the entry).
func LeafHash(leaf []byte) Hash { return Hash(tlog.RecordHash(leaf)) }

// HashReader reads stored hashes of one log. ReadHashes returns one hash per index, in order, or an
// error. The indexes are mostly ascending.
type HashReader interface {
	ReadHashes(indexes []int64) ([]Hash, error)
}

// storedIndex returns the index at which the hash of node n of a level is stored. Level 0 contains
// the leaves.
func storedIndex(level int, n int64) int64 { return tlog.StoredHashIndex(level, n) }

// storedCount returns the number of stored hashes for a log with size entries: a little less than
// two per entry.
func storedCount(size int64) int64 { return tlog.StoredHashCount(size) }

// Extension contains what a store must add to its log, in the same transaction as the leaves.
type Extension struct {
	First  int64  // index of the first of Hashes
	Hashes []Hash // to be stored in order
	Size   int64  // number of entries afterwards
	Root   Hash   // root of the log afterwards
}

// Extend appends leaves to a log with size entries. It calls hashes at most once, for at most 56
// hashes of the right edge of the tree, whatever the number of leaves, and not at all if the log is
// empty. Without leaves it only computes the root.
func Extend(size int64, hashes HashReader, leaves [][]byte) (Extension, error) {
	e, err := readEdge(size, hashes)
	if err != nil {
		return Extension{}, fmt.Errorf("extend the log: %w", err)
	}
	if int64(len(leaves)) > maxSize-size {
		return Extension{}, fmt.Errorf("extend the log: more than %d entries", int64(maxSize))
	}
	out := Extension{First: storedCount(size)}
	if len(leaves) > 0 {
		out.Hashes = make([]Hash, 0, 2*len(leaves)+len(e.nodes))
	}
	for _, leaf := range leaves {
		out.Hashes = e.add(LeafHash(leaf), out.Hashes)
	}
	out.Size, out.Root = e.size, e.root()
	return out, nil
}

// edge is the right edge of a growing tree: the roots of its complete subtrees, largest first.
// Appending needs nothing else. Its length grows with the logarithm of the size.
type edge struct {
	size  int64
	nodes []Hash
}

func readEdge(size int64, hashes HashReader) (*edge, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	var indexes []int64
	for rest := size; rest > 0; {
		level := bits.Len64(uint64(rest)) - 1
		rest &^= 1 << level
		indexes = append(indexes, storedIndex(level, (size-rest)>>level-1))
	}
	nodes, err := readHashes(hashes, indexes)
	return &edge{size, nodes}, err
}

// add appends a leaf. It appends the leaf's hash to stored, followed by the hashes of the nodes
// that the leaf completes.
func (e *edge) add(h Hash, stored []Hash) []Hash {
	stored = append(stored, h)
	for n := e.size; n&1 != 0; n >>= 1 {
		last := len(e.nodes) - 1
		h = nodeHash(e.nodes[last], h)
		e.nodes = e.nodes[:last]
		stored = append(stored, h)
	}

	e.nodes = append(e.nodes, h)
	e.size++
	return stored
}

func (e *edge) root() Hash {
	if e.size == 0 {
		return emptyRoot()
	}
	last := len(e.nodes) - 1
	root := e.nodes[last]
	for i := last - 1; i >= 0; i-- {
		root = nodeHash(e.nodes[i], root)
	}
	return root
}

func nodeHash(left, right Hash) Hash {
	return Hash(tlog.NodeHash(tlog.Hash(left), tlog.Hash(right)))
}

func emptyRoot() Hash {
	root, _ := tlog.TreeHash(0, nil) // reads no hashes
	return Hash(root)
}

func checkSize(size int64) error {
	if size < 0 || size > maxSize {
		return fmt.Errorf("a log can't have %d entries", size)
	}
	return nil
}

// readHashes returns an error if a reader returns the wrong number of hashes.
func readHashes(r HashReader, indexes []int64) ([]Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	hashes, err := r.ReadHashes(indexes)
	if err != nil {
		return nil, fmt.Errorf("read hashes: %w", err)
	}
	if len(hashes) != len(indexes) {
		return nil, fmt.Errorf(
			"read hashes: found %d of %d: the store has lost some",
			len(hashes),
			len(indexes),
		)
	}

	return hashes, nil
}

// reader adapts a HashReader to tlog.
func reader(r HashReader) tlog.HashReaderFunc {
	return func(indexes []int64) ([]tlog.Hash, error) {
		hashes, err := readHashes(r, indexes)
		return theirs(hashes), err
	}
}

func theirs(hashes []Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(hashes))
	for i, h := range hashes {
		out[i] = tlog.Hash(h)
	}
	return out
}

func ours(hashes []tlog.Hash) []Hash {
	out := make([]Hash, len(hashes))
	for i, h := range hashes {
		out[i] = Hash(h)
	}
	return out
}

// ProveInclusion proves that the log with size entries contains the entry at index (RFC 6962,
// 2.1.1).
func ProveInclusion(size, index int64, hashes HashReader) ([]Hash, error) {
	if err := checkIndex(size, index); err != nil {
		return nil, fmt.Errorf("prove inclusion: %w", err)
	}
	proof, err := tlog.ProveRecord(size, index, reader(hashes))
	if err != nil {
		return nil, fmt.Errorf("prove inclusion: %w", err)
	}
	return ours(proof), nil
}

// CheckInclusion verifies a proof of inclusion against a root. leaf is the result of LeafHash.
func CheckInclusion(proof []Hash, size int64, root Hash, index int64, leaf Hash) error {
	if err := checkIndex(size, index); err != nil {
		return err
	}
	if tlog.CheckRecord(theirs(proof), size, tlog.Hash(root), index, tlog.Hash(leaf)) != nil {
		return fmt.Errorf(
			"the log of %d entries with root %s does not hold this entry at index %d",
			size,
			root,
			index,
		)
	}

	return nil
}

func checkIndex(size, index int64) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if index < 0 || index >= size {
		return fmt.Errorf("a log of %d entries has no index %d", size, index)
	}
	return nil
}

// ProveConsistency proves that the log with size entries starts with all entries of the older log
// (RFC 6962, 2.1.2).
func ProveConsistency(size, older int64, hashes HashReader) ([]Hash, error) {
	if err := checkOlder(size, older); err != nil {
		return nil, fmt.Errorf("prove consistency: %w", err)
	}
	if older == 0 {
		return nil, nil
	}
	proof, err := tlog.ProveTree(size, older, reader(hashes))
	if err != nil {
		return nil, fmt.Errorf("prove consistency: %w", err)
	}
	return ours(proof), nil
}

// CheckConsistency verifies a proof of consistency between two roots.
func CheckConsistency(proof []Hash, size int64, root Hash, older int64, olderRoot Hash) error {
	if err := checkOlder(size, older); err != nil {
		return err
	}
	ok := older == 0 && len(proof) == 0 && olderRoot == emptyRoot() && (size > 0 || root == olderRoot)
	if older > 0 {
		ok = tlog.CheckTree(theirs(proof), size, tlog.Hash(root), older, tlog.Hash(olderRoot)) == nil
	}

	if !ok {
		return fmt.Errorf(
			"the log of %d entries with root %s does not begin with the log of %d entries with root %s",
			size,
			root,
			older,
			olderRoot,
		)
	}

	return nil
}

func checkOlder(size, older int64) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if older < 0 || older > size {
		return fmt.Errorf("a log of %d entries can't begin with %d", size, older)
	}
	return nil
}
