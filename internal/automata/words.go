package automata

import "unicode/utf8"

// Words is a finite set of texts.
type Words struct {
	part  *partition
	class map[rune]int // of the characters that occur
	edges []map[int]int
	ends  []bool
}

// The state that has left the set for good, and the first one.
const (
	wordsDead = iota
	wordsStart
)

// NewWords makes a trie of the texts. Texts that are not valid UTF-8
// are left out, as no argument can hold them.
func NewWords(texts []string) *Words {
	w := &Words{
		class: map[rune]int{},
		edges: make([]map[int]int, wordsStart+1),
		ends:  make([]bool, wordsStart+1),
	}
	var sets [][]rune
	for _, t := range texts {
		for _, r := range t {
			if _, ok := w.class[r]; !ok && utf8.ValidString(t) {
				w.class[r] = 0
				sets = append(sets, []rune{r, r})
			}
		}
	}

	w.part = newPartition(sets)
	for i, lo := range w.part.lo {
		if _, ok := w.class[lo]; ok {
			w.class[lo] = w.part.class[i]
		}
	}
	for _, t := range texts {
		if utf8.ValidString(t) {
			w.add(t)
		}
	}
	return w
}

func (w *Words) add(text string) {
	at := wordsStart
	for _, r := range text {
		to, ok := w.edges[at][w.class[r]]
		if !ok {
			to = len(w.edges)
			if w.edges[at] == nil {
				w.edges[at] = map[int]int{}
			}
			w.edges[at][w.class[r]] = to
			w.edges, w.ends = append(w.edges, nil), append(w.ends, false)
		}

		at = to
	}

	w.ends[at] = true
}

func (w *Words) classes() *partition       { return w.part }
func (w *Words) start() int                { return wordsStart }
func (w *Words) accepts(state int) bool    { return w.ends[state] }
func (w *Words) weight(int) int            { return 1 }
func (w *Words) next(state, class int) int { return w.edges[state][class] } // no edge: 0, wordsDead
