package value

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file determines which keys of an object are considered equal. With Limits.FoldKeys, keys
// are equal if they differ only in case under Unicode's simple folding. encoding/json in Go and
// other case-insensitive readers consider those to be one field, for example K (the Kelvin
// sign) and k, or ſ and s.

// longKey is the length in bytes above which keys with equal hashes are not compared pairwise.
const longKey = 64

// twins finds two equal keys among n: the pair with the smallest second index. It takes linear
// time even for adversarial keys.
func twins(n int, key func(int) string, fold bool) (first, second int, found bool) {
	if n > manyKeys || anyLong(n, key) {
		return twinsByMap(n, key, fold)
	}
	for second = 1; second < n; second++ {
		for first = range second {
			if sameKey(key(first), key(second), fold) {
				return first, second, true
			}
		}
	}

	return 0, 0, false
}

func anyLong(n int, key func(int) string) bool {
	for i := range n {
		if len(key(i)) > longKey {
			return true
		}
	}
	return false
}

func twinsByMap(n int, key func(int) string, fold bool) (first, second int, found bool) {
	seen := make(map[string]int, n)
	for i := range n {
		name := key(i)
		if fold {
			name = strings.Map(foldRune, name)
		}
		if first, found = seen[name]; found {
			return first, i, true
		}
		seen[name] = i
	}

	return 0, 0, false
}

func sameKey(a, b string, fold bool) bool {
	if fold {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// foldRune returns the smallest of the characters that are equal under simple folding, as in
// encoding/json.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// hashKey hashes the first and last eight bytes of a key. Keys that are equal under folding
// have the same hash. Keys with equal ends are compared, so the hash affects only speed.
func hashKey(s string) uint32 {
	if isASCII(s) {
		return mix(ends(s))
	}
	return mix(foldedEnds(s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldedEnds returns the ends of the folded key. Eight characters are at least eight bytes, so
// the characters between the first eight and the last eight have no effect.
func foldedEnds(s string) (first, last uint64) {
	const most = 8
	var buf [2 * most * utf8.UTFMax]byte
	text := buf[:0]
	head := 0
	tail := len(s)
	for n := 0; n < most && head < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[head:])
		text = utf8.AppendRune(text, foldRune(r))
		head += size
	}
	for n := 0; n < most && tail > head; n++ {
		_, size := utf8.DecodeLastRuneInString(s[head:tail])
		tail -= size
	}
	for _, r := range s[tail:] {
		text = utf8.AppendRune(text, foldRune(r))
	}
	return ends(view(text))
}
