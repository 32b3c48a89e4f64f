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
	start, end uint32 // of its text in the document or, with the flag in place, unescaped in Scratch.buf
	place      uint32 // offset of its opening quote
}

const inBuf = 1 << 31 // flag in keyRef.place

func (k keyRef) offset() int { return int(k.place &^ inBuf) }

// manyKeys is the number of keys from which on an object's keys are sorted once at its end
// instead of compared pairwise.
const manyKeys = 32

func (p *scanner) keyText(k keyRef) string {
	if k.place&inBuf != 0 {
		return view(p.buf[k.start:k.end])
	}
	return p.text[k.start:k.end]
}

// repeats records an error if key equals one of keys[outer:]. In large objects, and for long
// keys with equal hashes, it returns later = true instead, and anyRepeated has to be called.
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

// anyRepeated records an error if two of keys[outer:] are equal: the pair with the smallest
// second key.
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

// repetition returns the error for two equal keys.
func repetition(first, second string) (code ErrorCode, detail string) {
	if first == second {
		return DuplicateKey, "duplicate key " + quote(second)
	}
	// In ASCII, because otherwise the Kelvin sign would look like the letter it is mistaken
	// for.
	return FoldedKey, fmt.Sprintf(
		"the keys %+q and %+q differ in upper and lower case alone, so some readers take them for one: expected one "+
			"of them",
		shorten(first),
		shorten(second),
	)
}

// mix hashes the two ends of a key. It ignores bit 5, which distinguishes upper from lower case
// in ASCII.
func mix(first, last uint64) uint32 {
	const spaces = ' ' * ones
	return uint32(((first | spaces) ^ bits.RotateLeft64(last|spaces, 29)) * 0x9E3779B97F4A7C15 >> 32)
}

// ends returns the first and last eight bytes of s as little-endian words. If s has less than
// eight bytes, the first word is all of s, padded with zeros.
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

// load reads eight bytes at s[i:] as a little-endian word; the compiler turns it into a single
// load.
func load(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load4(s string, i int) uint32 {
	s = s[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// bit returns the key's bit in a 64-bit filter of the keys that may be present.
func bit(hash uint32) uint64 { return 1 << (hash >> 26) }

// bucket returns the key's index in a table of n entries, a power of two.
func bucket(hash uint32, n int) int { return int(hash) & (n - 1) }
