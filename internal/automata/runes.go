package automata

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Surrogates are no characters of a valid UTF-8 text, so they belong to
// no class.
const (
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
	noClass      = -1
)

// partition splits all characters into classes that no instruction of a
// machine can tell apart. Interval i is lo[i] … lo[i+1]-1 (the last one
// ends at utf8.MaxRune) and belongs to class[i].
type partition struct {
	lo    []rune
	class []int
	n     int // number of classes
}

// newPartition refines the trivial partition by every set in turn. A
// set is a list of inclusive, sorted, disjoint ranges: lo, hi, lo, hi,
// …
func newPartition(sets [][]rune) *partition {
	p := &partition{lo: boundaries(sets), n: 1}
	p.class = make([]int, len(p.lo))
	for i, lo := range p.lo {
		if lo >= surrogateMin && lo <= surrogateMax {
			p.class[i] = noClass
		}
	}
	for _, set := range sets {
		p.refine(set)
	}
	return p
}

func boundaries(sets [][]rune) []rune {
	cuts := []rune{0, surrogateMin, surrogateMax + 1}
	for _, set := range sets {
		for i := 0; i+1 < len(set); i += 2 {
			cuts = append(cuts, set[i])
			if set[i+1] < utf8.MaxRune {
				cuts = append(cuts, set[i+1]+1)
			}
		}
	}

	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// refine moves the part of every class that lies in the set to a class
// of its own, unless the whole class does.
func (p *partition) refine(set []rune) {
	size, inside := make([]int, p.n), make([]int, p.n)
	in := make([]bool, len(p.lo))
	next := 0
	for i, lo := range p.lo {
		for next+1 < len(set) && set[next+1] < lo {
			next += 2
		}
		c := p.class[i]
		if c == noClass {
			continue
		}
		size[c]++
		if next+1 < len(set) && set[next] <= lo {
			in[i] = true
			inside[c]++
		}
	}

	fresh := make([]int, len(size))
	for c := range size {
		fresh[c] = c
		if inside[c] > 0 && inside[c] < size[c] {
			fresh[c] = p.n
			p.n++
		}
	}

	for i := range p.lo {
		if in[i] {
			p.class[i] = fresh[p.class[i]]
		}
	}
}

// samples returns one character of every class.
func (p *partition) samples() []rune {
	out := make([]rune, p.n)
	for i := len(p.lo) - 1; i >= 0; i-- {
		if c := p.class[i]; c != noClass {
			out[c] = p.lo[i]
		}
	}
	return out
}

// letter is one class of the common refinement of several partitions: its class in each of them,
// and the character that represents it in a witness.
type letter struct {
	class []int
	shown rune
	rank  int
}

// alphabet joins partitions. Letters come in the order in which a
// witness should use them.
func alphabet(parts []*partition) []letter {
	at := make([]int, len(parts))
	index := map[string]int{}
	var letters []letter
	var key []byte
	for lo := rune(0); lo <= utf8.MaxRune; {
		hi := rune(utf8.MaxRune)
		key = key[:0]
		class := make([]int, len(parts))
		surrogate := lo >= surrogateMin && lo <= surrogateMax
		for i, p := range parts {
			for at[i]+1 < len(p.lo) && p.lo[at[i]+1] <= lo {
				at[i]++
			}
			if at[i]+1 < len(p.lo) {
				hi = min(hi, p.lo[at[i]+1]-1)
			}
			class[i] = p.class[at[i]]
			key = appendInt(key, class[i])
		}

		if !surrogate {
			shown, rank := bestRune(lo, hi)
			if j, ok := index[string(key)]; !ok {
				index[string(key)] = len(letters)
				letters = append(letters, letter{class, shown, rank})
			} else if rank < letters[j].rank {
				letters[j].shown, letters[j].rank = shown, rank
			}
		}

		lo = hi + 1
	}

	slices.SortStableFunc(letters, func(a, b letter) int { return a.rank - b.rank })
	return letters
}

func appendInt(b []byte, n int) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// bestRune picks the character of lo … hi that reads best in a witness,
// and says how well it reads (less is better).
func bestRune(lo, hi rune) (rune, int) {
	for rank, liked := range [...][2]rune{{'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {'!', '~'}, {' ', ' '}} {
		if from := max(lo, liked[0]); from <= min(hi, liked[1]) {
			return from, rank
		}
	}
	for r := lo; r <= min(hi, lo+64); r++ {
		if unicode.IsPrint(r) {
			return r, 5
		}
	}
	return lo, 6
}

// orbit returns the set of all characters that are equal to r when case
// is ignored.
func orbit(r rune) []rune {
	runes := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		runes = append(runes, f)
	}
	slices.Sort(runes)
	set := make([]rune, 0, 2*len(runes))
	for _, f := range runes {
		set = append(set, f, f)
	}
	return set
}

// spaces returns the set of unicode.IsSpace.
func spaces() []rune {
	var set []rune
	for _, r := range unicode.White_Space.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			set = append(set, c, c)
		}
	}
	return set
}

func newline() []rune   { return []rune{'\n', '\n'} }
func wordChars() []rune { return []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'} }
