// Package automata decides what regular expressions have in common: is
// there a text that these match and those do not? It answers with a
// shortest such text, or that there is none, or that the question was
// too large.
//
// A Machine is a set of texts. Patterns run the instructions of
// regexp/syntax by subset construction, lazily and over classes of
// characters instead of bytes, so Unicode classes cost no more than
// ASCII ones; look-behind for ^, $, \b and \B is part of a state. Words
// are finite sets. Find walks the product of several machines.
//
// Machines remember the states they have built. They are not for
// concurrent use.
package automata

import "slices"

// Machine is a set of texts, as a deterministic automaton whose states
// are built when they are first asked for.
type Machine interface {
	classes() *partition
	start() int
	next(state, class int) int
	accepts(state int) bool
	weight(state int) int // what a step from here costs, in instructions
}

// Outcome is a result of Find.
type Outcome uint8

// None: no text satisfies the question. Found: here is one. TooLarge:
// the limit was reached before either was certain.
const (
	None Outcome = iota
	Found
	TooLarge
)

// stepsPerState bounds the instructions that a question may execute,
// per state that it may visit.
const stepsPerState = 200

// Find looks for a shortest text for which want holds, given which of
// the machines contain it. Among the shortest it prefers letters, then
// digits, then other printable characters. It visits at most limit
// states of the product. The answer depends on nothing but the
// question, not on what the machines were asked before.
func Find(machines []Machine, want func(contains []bool) bool, limit int) (string, Outcome) {
	steps := limit * stepsPerState
	return FindWithin(machines, want, limit, &steps)
}

// FindWithin is Find with a bound for several searches together: it
// takes what it executes off steps, and gives up when they are used up.
func FindWithin(machines []Machine, want func(contains []bool) bool, limit int, steps *int) (string, Outcome) {
	most := min(limit*stepsPerState, *steps)
	w := walk{
		machines: machines,
		want:     want,
		seen:     map[string]bool{},
		steps:    most,
	}
	defer func() { *steps -= most - w.steps }()
	parts, start := make([]*partition, len(machines)), make([]int, len(machines))
	for i, m := range machines {
		parts[i], start[i] = m.classes(), m.start()
	}
	letters := alphabet(parts)
	if w.visit(start, -1, 0) {
		return "", Found
	}
	next := make([]int, len(machines))
	for from := 0; from < len(w.nodes); from++ {
		for _, l := range letters {
			if w.steps < 0 || len(w.nodes) > limit {
				return "", TooLarge
			}
			for i, m := range machines {
				next[i] = m.next(w.nodes[from].states[i], l.class[i])
				w.steps -= m.weight(w.nodes[from].states[i])
			}
			if w.visit(next, from, l.shown) {
				return w.text(), Found
			}
		}
	}

	return "", None
}

// node is a reachable state of the product: a state of each machine,
// and how it was reached.
type node struct {
	states []int
	parent int
	by     rune
}

// walk is a breadth-first search of the product.
type walk struct {
	machines []Machine
	want     func([]bool) bool
	nodes    []node
	seen     map[string]bool
	steps    int // left
	key      []byte
	contains []bool
}

// visit adds a product state unless it is known, and reports whether it
// answers the question.
func (w *walk) visit(states []int, parent int, by rune) bool {
	w.key = w.key[:0]
	for _, s := range states {
		w.key = appendInt(w.key, s)
	}
	if w.seen[string(w.key)] {
		return false
	}
	w.seen[string(w.key)] = true
	w.nodes = append(w.nodes, node{slices.Clone(states), parent, by})
	w.contains = w.contains[:0]
	for i, m := range w.machines {
		w.contains = append(w.contains, m.accepts(states[i]))
		w.steps -= m.weight(states[i]) + m.classes().n // what a new state of the machine takes to build
	}
	return w.want(w.contains)
}

// text spells the path to the last node.
func (w *walk) text() string {
	var path []rune
	for i := len(w.nodes) - 1; w.nodes[i].parent >= 0; i = w.nodes[i].parent {
		path = append(path, w.nodes[i].by)
	}
	slices.Reverse(path)
	return string(path)
}
