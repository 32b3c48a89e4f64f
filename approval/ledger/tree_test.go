package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// bare returns a log with arbitrary leaves, because the tree does not parse them.
func bare(t testing.TB, leaves int) *testLog {
	t.Helper()
	l := &testLog{root: emptyRoot()}
	for i := range leaves {
		l.extend(t, Record{Leaf: fmt.Append(nil, i)})
	}
	return l
}

// roots returns the roots of the log's first 0, 1, 2, … entries.
func (l *testLog) roots(t testing.TB) []Hash {
	t.Helper()
	out := []Hash{emptyRoot()}
	for size := range l.records {
		e, err := Extend(int64(size)+1, l, nil)
		must(t, err)
		out = append(out, e.Root)
	}

	return out
}

// TestExtendAgreesWithTlog: our hashes, their order and the root equal those of the public library,
// which stores one leaf at a time.
func TestExtendAgreesWithTlog(t *testing.T) {
	l := bare(t, 100)
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) (out []tlog.Hash, err error) {
		for _, i := range indexes {
			out = append(out, stored[i])
		}
		return out, nil
	})
	for i, root := range l.roots(t)[1:] {
		hashes, err := tlog.StoredHashes(int64(i), l.records[i].Leaf, read)
		must(t, err)
		stored = append(stored, hashes...)
		if want, err := tlog.TreeHash(int64(i)+1, read); err != nil || root != Hash(want) {
			t.Fatalf("size %d: root %s, want %s, %v", i+1, root, want, err)
		}
	}

	if len(stored) != len(l.hashes) || int64(len(stored)) != storedCount(100) {
		t.Fatalf("%d hashes, want %d", len(l.hashes), len(stored))
	}
	for i, h := range stored {
		if l.hashes[i] != Hash(h) {
			t.Errorf("hash %d differs", i)
		}
	}
	if l.hashes[storedIndex(0, 42)] != LeafHash(l.records[42].Leaf) {
		t.Error("the hash of leaf 42 is not where storedIndex says")
	}
}

// TestExtendInBatches: batches of any size give the same result as single leaves, with one read per
// batch of at most one hash per doubling of the size.
func TestExtendInBatches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one := bare(t, rapid.IntRange(0, 70).Draw(rt, "size"))
		l := &testLog{root: emptyRoot()}
		for l.size() < one.size() {
			n := rapid.Int64Range(0, one.size()-l.size()).Draw(rt, "batch")
			before, size := l.memory, l.size()
			l.extend(t, one.records[size:size+n]...)
			if calls, read := l.calls-before.calls, l.read-before.read; calls > 1 ||
				read != bits.OnesCount64(uint64(size)) {
				rt.Fatalf("extending %d by %d read %d hashes in %d calls", size, n, read, calls)
			}
		}

		if l.root != one.root || fmt.Sprint(l.hashes) != fmt.Sprint(one.hashes) {
			rt.Fatal("batches give another log")
		}
	})
}

func TestExtendRefuses(t *testing.T) {
	l := bare(t, 5)
	_, err := Extend(-1, l, nil)
	fails(t, err, "can't have -1 entries")
	_, err = Extend(math.MaxInt64, l, nil)
	fails(t, err, "can't have")
	_, err = Extend(8, l, make([][]byte, 1))
	fails(t, err, "read hashes: no hash")
	_, err = Extend(5, short{}, nil)
	fails(t, err, "found 0 of 2")
	_, err = Extend(maxSize, full{}, make([][]byte, 1))
	fails(t, err, "more than 72057594037927936 entries")
	if _, err = Extend(maxSize-1, full{}, make([][]byte, 1)); err != nil {
		t.Error(err)
	}
	_, err = ProveInclusion(5, 1, short{})
	fails(t, err, "found 0 of")
	_, err = ProveConsistency(5, 3, short{})
	fails(t, err, "found 0 of")
	if _, err := ProveInclusion(maxSize, 1, full{}); err != nil {
		t.Error(err)
	}
}

type short struct{}

func (short) ReadHashes([]int64) ([]Hash, error) { return nil, nil }

type full struct{}

func (full) ReadHashes(indexes []int64) ([]Hash, error) { return make([]Hash, len(indexes)), nil }

type broken struct{ err error }

func (b broken) ReadHashes([]int64) ([]Hash, error) { return nil, b.err }

func TestReadErrorsAreWrapped(t *testing.T) {
	gone := errors.New("connection lost")
	if _, err := Extend(3, broken{gone}, nil); !errors.Is(err, gone) {
		t.Errorf("Extend: %v", err)
	}
	if _, err := ProveInclusion(3, 1, broken{gone}); !errors.Is(err, gone) {
		t.Errorf("ProveInclusion: %v", err)
	}
	if _, err := ProveConsistency(3, 1, broken{gone}); !errors.Is(err, gone) {
		t.Errorf("ProveConsistency: %v", err)
	}
}

func TestInclusion(t *testing.T) {
	l := bare(t, 33)
	for size, root := range l.roots(t) {
		for index := range size {
			proof, err := ProveInclusion(int64(size), int64(index), l)
			must(t, err)
			leaf := LeafHash(l.records[index].Leaf)
			must(t, CheckInclusion(proof, int64(size), root, int64(index), leaf))
			other := int64(index+1) % int64(size)
			if size > 1 && CheckInclusion(proof, int64(size), root, other, leaf) == nil {
				t.Errorf("the proof of %d in %d holds for %d", index, size, other)
			}
			if CheckInclusion(proof, int64(size), root, int64(index), Hash{}) == nil {
				t.Errorf("the proof of %d in %d holds for another leaf", index, size)
			}
			if CheckInclusion(append(proof, Hash{}), int64(size), root, int64(index), leaf) == nil {
				t.Errorf("the proof of %d in %d holds with one hash more", index, size)
			}
		}
	}
}

// TestConsistency: the proof between any two sizes is valid for their roots and for no other root.
func TestConsistency(t *testing.T) {
	l := bare(t, 33)
	roots := l.roots(t)
	for size, root := range roots {
		for older, olderRoot := range roots[:size+1] {
			proof, err := ProveConsistency(int64(size), int64(older), l)
			must(t, err)
			must(t, CheckConsistency(proof, int64(size), root, int64(older), olderRoot))
			if CheckConsistency(proof, int64(size), root, int64(older), Hash{1}) == nil {
				t.Errorf("the proof from %d to %d holds for another old root", older, size)
			}
			if older > 0 && CheckConsistency(proof, int64(size), Hash{1}, int64(older), olderRoot) == nil {
				t.Errorf("the proof from %d to %d holds for another new root", older, size)
			}
			if CheckConsistency(append(proof, Hash{}), int64(size), root, int64(older), olderRoot) == nil {
				t.Errorf("the proof from %d to %d holds with one hash more", older, size)
			}
		}
	}

	if CheckConsistency(nil, 0, Hash{1}, 0, emptyRoot()) == nil {
		t.Error("an empty log has but one root")
	}
}

func TestProofsRefuse(t *testing.T) {
	l := bare(t, 3)
	for _, tt := range []struct{ size, at int64 }{{3, -1}, {3, 4}, {-1, 0}, {math.MaxInt64, 1}, {math.MinInt64, 0}} {
		_, err := ProveInclusion(tt.size, tt.at, l)
		_, err2 := ProveConsistency(tt.size, tt.at, l)
		for _, err := range []error{
			err,
			err2,
			CheckInclusion(nil, tt.size, Hash{}, tt.at, Hash{}),
			CheckConsistency(nil, tt.size, Hash{}, tt.at, Hash{}),
		} {
			if err == nil {
				t.Errorf("size %d, at %d: want an error", tt.size, tt.at)
			}
		}
	}

	if _, err := ProveInclusion(3, 3, l); err == nil {
		t.Error("index 3 of 3: want an error")
	}
}

func TestParseHash(t *testing.T) {
	h := LeafHash(nil)
	if got, err := ParseHash(h.String()); err != nil || got != h {
		t.Errorf("got %s, %v", got, err)
	}
	for _, s := range []string{"", "AA==", h.String() + "\n", h.String()[:43], "!" + h.String()[1:]} {
		if _, err := ParseHash(s); err == nil {
			t.Errorf("%q: want an error", s)
		}
	}
}
