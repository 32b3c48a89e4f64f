package value

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// keyRef is a key of an object that is being scanned.
type keyRef struct {
	hash       uint32
	start, end uint32 // of its text in the document or, if place says so, unescaped in Scratch.buf
	place      uint32 // offset of its opening quote
}

const inBuf = 1 << 31 // flag in keyRef.place

// manyKeys is from where on comparing a key with every earlier one gives way to sorting them once.
const manyKeys = 32

func (p *scanner) keyText(k keyRef) string {
	if k.place&inBuf != 0 {
		return view(p.buf[k.start:k.end])
	}
	return p.text[k.start:k.end]
}

// repeats tells, and reports, whether key stands in keys[outer:]. In large objects it leaves that to anyRepeated.
func (p *scanner) repeats(outer int, key keyRef) bool {
	open := p.keys[outer:]
	if len(open) >= manyKeys {
		return false
	}
	for _, k := range open {
		if k.hash == key.hash && p.keyText(k) == p.keyText(key) {
			p.failDuplicate(k, key)
			return true
		}
	}
	return false
}

// anyRepeated tells, and reports, whether keys[outer:] holds a key twice: the pair whose second stands first.
func (p *scanner) anyRepeated(outer int) bool {
	open := p.keys[outer:]
	slices.SortFunc(open, func(a, b keyRef) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Or(cmp.Compare(p.keyText(a), p.keyText(b)), cmp.Compare(a.place&^inBuf, b.place&^inBuf))
	})
	second := 0
	for i := 1; i < len(open); i++ {
		a, b := open[i-1], open[i]
		if a.hash == b.hash && p.keyText(a) == p.keyText(b) && (second == 0 || b.place&^inBuf < open[second].place&^inBuf) {
			second = i
		}
	}
	if second == 0 {
		return false
	}
	p.failDuplicate(open[second-1], open[second])
	return true
}

func (p *scanner) failDuplicate(first, second keyRef) {
	here, there := int(second.place&^inBuf), int(first.place&^inBuf)
	line, column := position(p.src, there)
	where := fmt.Sprintf("column %d", column)
	if again, _ := position(p.src, here); again != line {
		where = fmt.Sprintf("line %d, column %d", line, column)
	}
	p.fail(DuplicateKey, here, fmt.Sprintf("duplicate key %s (first at %s)", quote(p.keyText(second)), where))
}

// hashKey spreads keys by their first and last eight bytes. Keys that share both are told apart by comparing; nothing
// rests on it but speed, and large objects are sorted, so keys made to collide gain nothing.
func hashKey(s string) uint32 { return mix(ends(s)) }

func mix(first, last uint64) uint32 {
	return uint32((first ^ bits.RotateLeft64(last, 29)) * 0x9E3779B97F4A7C15 >> 32)
}

// ends is the first and last eight bytes of s as little-endian words, or all of it padded with zeros. Up to 16 bytes
// nothing is left out.
func ends(s string) (first, last uint64) {
	n := len(s)
	switch {
	case n >= 8:
		return load(s, 0), load(s, n-8)
	case n >= 4:
		return uint64(load4(s, 0)) | uint64(load4(s, n-4))<<(8*(n-4)), 0
	case n > 0:
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1)), 0
	}
	return 0, 0
}

// load reads eight bytes at s[i:] as a little-endian word; the compiler makes one load of it.
func load(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load4(s string, i int) uint32 {
	s = s[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// bit is the key's place in a 64-bit word that says which keys there may be.
func bit(hash uint32) uint64 { return 1 << (hash >> 26) }

// bucket is the key's place in a table of n, a power of two.
func bucket(hash uint32, n int) int { return int(hash) & (n - 1) }
