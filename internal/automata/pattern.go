package automata

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// Pattern is the set of texts in which a regular expression matches
// somewhere; with trim also those in which it matches once trailing
// white space (unicode.IsSpace) is cut off.
type Pattern struct {
	prog  *syntax.Prog
	part  *partition
	shown []rune // a character of each class

	lines, words bool // the pattern tests line ends, or word boundaries, so a state depends on the last character
	trim         bool // trailing white space may be cut off, and that can change the result

	states []state
	index  map[string]int
	size   int

	mark  []uint64 // generation in which close last met an instruction
	gen   uint64
	stack []uint32
	found []uint32
	key   []byte
}

// state is the set of instructions to run next, and what later steps need to know about the text
// that was read.
type state struct {
	pcs    []uint32
	prev   rune // a representative of the last character; edge at the start
	kept   bool // the text matches when its trailing white space is cut off
	ends   bool // the text matches if it ends here, cut or not
	weight int
	next   []int32
}

const (
	matched  = 0  // the state after a match: whatever follows, the text is in the set
	first    = 1  // the state before the text
	edge     = -1 // as in syntax.EmptyOpContext: the position before the first and after the last character
	unknown  = -1 // a transition not yet computed
	nothing  = ' '
	wordChar = 'a'
)

// NewPattern prepares the machine of a parsed expression. The caller
// has bounded its size.
func NewPattern(re *syntax.Regexp, trim bool) *Pattern {
	prog, _ := syntax.Compile(re.Simplify()) // never fails on what syntax.Parse made
	p := &Pattern{
		prog:  prog,
		index: map[string]int{},
		mark:  make([]uint64, len(prog.Inst)),
	}
	p.prepare(trim)
	p.states = []state{{ends: true, weight: 1, next: make([]int32, p.part.n)}} // every step leads to matched
	p.add(nil, edge, p.trim && p.endsAfter(nil, edge))
	return p
}

// Size returns the memory that the states built so far take, roughly in words.
func (p *Pattern) Size() int { return p.size }

// prepare partitions the characters into classes. No instruction distinguishes two characters of a
// class.
func (p *Pattern) prepare(trim bool) {
	var sets [][]rune
	distinct := map[string]bool{}
	shared := map[*rune]bool{} // repetitions share the set of the instruction they repeat
	for i := range p.prog.Inst {
		in := &p.prog.Inst[i]
		if in.Op == syntax.InstEmptyWidth {
			p.noteEmpty(syntax.EmptyOp(in.Arg), trim)
		}
		set := instRunes(in)
		if len(set) == 0 || shared[&set[0]] {
			continue
		}
		shared[&set[0]] = true
		p.key = p.key[:0]
		for _, r := range set {
			p.key = appendInt(p.key, int(r))
		}
		if !distinct[string(p.key)] {
			distinct[string(p.key)] = true
			sets = append(sets, set)
		}
	}

	if p.lines {
		sets = append(sets, newline())
	}
	if p.words {
		sets = append(sets, wordChars())
	}
	if p.trim {
		sets = append(sets, spaces())
	}
	p.part = newPartition(sets)
	p.shown = p.part.samples()
}

// noteEmpty records what an empty-width instruction looks at. Cutting
// white space off the end matters only to those that see the end: the
// others match in the cut text only if they match in the whole one.
func (p *Pattern) noteEmpty(op syntax.EmptyOp, trim bool) {
	p.lines = p.lines || op&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0
	p.words = p.words || op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
	p.trim = p.trim || trim && op&^(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
}

// instRunes returns the set of characters that decides whether an
// instruction consumes one; empty if none or any do.
func instRunes(in *syntax.Inst) []rune {
	switch in.Op {
	case syntax.InstRuneAnyNotNL:
		return newline()
	case syntax.InstRune, syntax.InstRune1:
		if len(in.Rune) != 1 {
			return in.Rune
		}
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			return orbit(in.Rune[0])
		}
		return []rune{in.Rune[0], in.Rune[0]}
	}

	return nil
}

func (p *Pattern) classes() *partition    { return p.part }
func (p *Pattern) start() int             { return first }
func (p *Pattern) accepts(state int) bool { return p.states[state].ends }
func (p *Pattern) weight(state int) int   { return p.states[state].weight }

func (p *Pattern) next(from, class int) int {
	if to := p.states[from].next[class]; to != unknown {
		return int(to)
	}
	to := p.step(&p.states[from], p.shown[class])
	p.states[from].next[class] = int32(to)
	return to
}

// step runs a state's instructions over one character.
func (p *Pattern) step(s *state, r rune) int {
	if p.close(s.pcs, syntax.EmptyOpContext(s.prev, r)) {
		return matched
	}
	var pcs []uint32
	for _, pc := range p.found {
		if in := &p.prog.Inst[pc]; consumes(in, r) {
			pcs = append(pcs, in.Out)
		}
	}
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	prev, kept := p.remember(r), s.kept
	if p.trim && !unicode.IsSpace(r) {
		kept = p.endsAfter(pcs, prev)
	}
	return p.add(pcs, prev, kept)
}

func consumes(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return in.MatchRune(r)
	}
	return false
}

// remember returns the representative of a character that was read. Characters that no assertion of
// this pattern distinguishes have the same one, so that there are few states.
func (p *Pattern) remember(r rune) rune {
	switch {
	case p.lines && r == '\n':
		return r
	case p.words && syntax.IsWordChar(r):
		return wordChar
	}

	return nothing
}

// endsAfter reports whether the text matches if it ends after prev.
func (p *Pattern) endsAfter(pcs []uint32, prev rune) bool {
	return p.close(pcs, syntax.EmptyOpContext(prev, edge))
}

// close follows all instructions that consume nothing, from the given
// ones and, since a search may begin anywhere, from the start. It
// leaves those reached in p.found and reports whether a match is among
// them.
func (p *Pattern) close(pcs []uint32, holds syntax.EmptyOp) bool {
	p.gen++
	p.found = p.found[:0]
	p.stack = append(append(p.stack[:0], pcs...), uint32(p.prog.Start))
	match := false
	for len(p.stack) > 0 {
		pc := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		if p.mark[pc] == p.gen {
			continue
		}
		p.mark[pc] = p.gen
		p.found = append(p.found, pc)
		switch in := &p.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			match = true
		case syntax.InstAlt, syntax.InstAltMatch:
			p.stack = append(p.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			p.stack = append(p.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				p.stack = append(p.stack, in.Out)
			}
		}
	}

	return match
}

// add returns the number of a state, making it if it is new.
func (p *Pattern) add(pcs []uint32, prev rune, kept bool) int {
	p.key = appendInt(p.key[:0], int(prev))
	if kept {
		p.key = append(p.key, 1)
	}
	for _, pc := range pcs {
		p.key = appendInt(p.key, int(pc))
	}
	if id, ok := p.index[string(p.key)]; ok {
		return id
	}
	s := state{pcs: pcs, prev: prev, kept: kept, next: make([]int32, p.part.n)}
	for i := range s.next {
		s.next[i] = unknown
	}
	s.ends = p.endsAfter(pcs, prev) || kept
	s.weight = len(p.found) + 1
	p.size += len(pcs) + len(s.next)
	p.states = append(p.states, s)
	p.index[string(p.key)] = len(p.states) - 1
	return len(p.states) - 1
}
