package value

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file tells which keys of an object count as the same one. With
// Limits.FoldKeys those do that differ in case alone, under Unicode's
// simple folding: what encoding/json in Go and other readers without
// regard to case take for one field, K (the Kelvin sign) for k and ſ
// for s among them.

// longKey is from where on, in bytes, keys of equal hash are not
// compared pair by pair.
const longKey = 64

// twins finds two keys that count as the same one among n in the order
// of the text: the pair whose second stands first. It takes linear
// time, whoever chose the keys.
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

// foldRune returns the smallest of the characters that are equal under
// simple folding, as encoding/json does.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// hashKey spreads keys by their first and last eight bytes; keys that
// fold alike have one hash. Keys that share both ends are told apart by
// comparing: nothing rests on the hash but speed.
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

// foldedEnds is ends of the folded key. Eight characters are eight
// bytes or more, so what lies between the first eight and the last
// eight makes no difference.
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
