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

func (k keyRef) offset() int { return int(k.place &^ inBuf) }

// manyKeys is from where on comparing a key with every earlier one
// gives way to sorting them once.
const manyKeys = 32

func (p *scanner) keyText(k keyRef) string {
	if k.place&inBuf != 0 {
		return view(p.buf[k.start:k.end])
	}
	return p.text[k.start:k.end]
}

// repeats reports, as an error, that key counts as one of keys[outer:].
// In large objects, and for long keys that share a hash, it leaves that
// to anyRepeated: later is true then.
func (p *scanner) repeats(outer int, key keyRef) (repeated, later bool) {
	open := p.keys[outer:]
	if len(open) >= manyKeys {
		return false, true
	}
	text := p.keyText(key)
	for _, k := range open {
		if k.hash != key.hash {
			continue
		}
		earlier := p.keyText(k)
		if max(len(earlier), len(text)) > longKey {
			return false, true
		}
		if sameKey(earlier, text, p.lim.FoldKeys) {
			p.failRepeated(k, key)
			return true, false
		}
	}

	return false, false
}

// anyRepeated reports, as an error, that two of keys[outer:] count as
// one: the pair whose second stands first.
func (p *scanner) anyRepeated(outer int) bool {
	open := p.keys[outer:]
	slices.SortFunc(open, func(a, b keyRef) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.offset(), b.offset()))
	})
	var first, second keyRef
	found := false
	for len(open) > 0 {
		group := open[:1]
		for len(group) < len(open) && open[len(group)].hash == group[0].hash {
			group = open[:len(group)+1]
		}
		open = open[len(group):]
		if len(group) == 1 {
			continue
		}
		i, j, twice := twins(len(group), func(i int) string { return p.keyText(group[i]) }, p.lim.FoldKeys)
		if twice && (!found || group[j].offset() < second.offset()) {
			first = group[i]
			second = group[j]
			found = true
		}
	}

	if found {
		p.failRepeated(first, second)
	}
	return found
}

func (p *scanner) failRepeated(first, second keyRef) {
	here, there := second.offset(), first.offset()
	line, column := position(p.src, there)
	where := fmt.Sprintf("column %d", column)
	if again, _ := position(p.src, here); again != line {
		where = fmt.Sprintf("line %d, column %d", line, column)
	}
	code, detail := repetition(p.keyText(first), p.keyText(second))
	p.fail(code, here, detail+" (first at "+where+")")
}

// repetition says how two keys count as one.
func repetition(first, second string) (code ErrorCode, detail string) {
	if first == second {
		return DuplicateKey, "duplicate key " + quote(second)
	}
	// In ASCII, or the Kelvin sign would look like the letter that it
	// is taken for.
	return FoldedKey, fmt.Sprintf(
		"the keys %+q and %+q differ in upper and lower case alone, so some readers take them for one: expected one "+
			"of them",
		shorten(first),
		shorten(second),
	)
}

// mix makes a hash of the two ends of a key. Bit 5 is what tells
// capital from small letters in ASCII: it is left out.
func mix(first, last uint64) uint32 {
	const spaces = ' ' * ones
	return uint32(((first | spaces) ^ bits.RotateLeft64(last|spaces, 29)) * 0x9E3779B97F4A7C15 >> 32)
}

// ends is the first and last eight bytes of s as little-endian words,
// or all of it padded with zeros. Up to 16 bytes nothing is left out.
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

// load reads eight bytes at s[i:] as a little-endian word; the compiler
// makes one load of it.
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
