package condition

import "slices"

// fact makes a pattern of something that no regular expression can say: that the text is the
// address of a host, a path below a directory, or of some length. Facts of one family are about
// one property of the text, such as its host. The family can divide all texts into cells in
// which none of the given facts changes, and knows which texts are certainly in a cell and which
// may be. This decides every question about facts of one family exactly. With patterns or facts of
// other families, it finds texts that the sets of certain texts contain, and shows that there are
// none if the sets of possible texts contain none.
type fact struct {
	family  family
	about   any      // for the family
	samples []string // texts for which the fact holds, if it is easy to find some
}

// family is a property of texts.
type family interface {
	cells(facts []*fact) []textCell
}

// textCell is a set of texts for which the same facts of a family hold.
type textCell struct {
	sample   string // a text of the cell
	known    bool   // whether sample is one; otherwise no text as long as the cell's is tried
	certain  func() []texts
	possible func() texts
	holds    func(*fact) bool // used instead of the sample if that is not known
}

// facts appends the facts of a set, each once.
func (a *texts) facts(list []*pattern) []*pattern {
	for _, l := range a.pats {
		if l.pat.fact != nil && !slices.ContainsFunc(list, func(p *pattern) bool { return p.source == l.pat.source }) {
			list = append(list, l.pat)
		}
	}
	for _, o := range a.outside {
		list = o.facts(list)
	}
	return list
}

// reduced returns the set without facts, given which of them hold.
func (a *texts) reduced(holds map[string]bool) texts {
	out := texts{but: a.but, list: a.list}
	for _, l := range a.pats {
		switch {
		case l.pat.fact == nil:
			out.pats = append(out.pats, l)
		case holds[l.pat.source] == l.not:
			return texts{}
		}
	}
	for _, o := range a.outside {
		switch r := o.reduced(holds); {
		case r.full():
			return texts{}
		case !r.empty():
			out.outside = append(out.outside, &r)
		}
	}
	return out
}

// pickByFacts is pick for a set with facts.
func (a *texts) pickByFacts(list []*pattern, e *effort) (string, Verdict) {
	var families []family
	for _, p := range list {
		if !slices.Contains(families, p.fact.family) {
			families = append(families, p.fact.family)
		}
	}

	chosen := []textCell{{
		possible: func() texts { return allTexts(true) },
		certain:  func() []texts { return []texts{allTexts(true)} },
	}}
	kept := []map[string]bool{{}}
	for _, f := range families {
		var own []*pattern
		var about []*fact
		for _, p := range list {
			if p.fact.family == f {
				own, about = append(own, p), append(about, p.fact)
			}
		}
		cells := f.cells(about)
		var next []textCell
		var holds []map[string]bool
		for i := range chosen {
			for j := range cells {
				next = append(next, chosen[i].and(&cells[j]))
				all := map[string]bool{}
				for source, held := range kept[i] {
					all[source] = held
				}
				for _, p := range own {
					all[p.source] = cells[j].has(p)
				}
				holds = append(holds, all)
			}
		}
		chosen, kept = next, holds
		if len(chosen) > maxBoxes {
			return "", Undecided
		}
	}

	result := No
	for i := range chosen {
		switch s, found := a.pickIn(&chosen[i], kept[i], e); found {
		case Yes:
			return s, Yes
		case Undecided:
			result = Undecided
		}
	}
	return "", result
}

func (c *textCell) has(p *pattern) bool {
	if c.known {
		return p.is(c.sample)
	}
	return c.holds(p.fact)
}

// and returns the cell of texts that are in two cells of different families.
func (c *textCell) and(d *textCell) textCell {
	return textCell{
		sample:   d.sample,
		known:    d.known,
		possible: func() texts { return c.possible().and(d.possible()) },
		certain: func() []texts {
			var both []texts
			for _, s := range c.certain() {
				for _, t := range d.certain() {
					both = append(both, s.and(t))
				}
			}
			return both
		},
	}
}

// pickIn looks for a string of the set in one cell.
func (a *texts) pickIn(c *textCell, holds map[string]bool, e *effort) (string, Verdict) {
	rest := a.reduced(holds)
	if rest.empty() {
		return "", No
	}
	if c.known && a.has(c.sample) {
		return c.sample, Yes
	}
	for _, certain := range c.certain() {
		within := rest.and(certain)
		if s, found := within.search(e); found == Yes && a.has(s) {
			return s, Yes
		}
	}
	possible := rest.and(c.possible())
	if _, found := possible.search(e); found == No {
		return "", No
	}
	return "", Undecided
}

// certainly returns a function for the sets of texts that match expressions of the code, as seen raw.
// It leaves out an expression that is too large.
func certainly(sources ...string) func() []texts {
	return func() []texts { return regular(sources) }
}

func regular(sources []string) []texts {
	var list []texts
	for _, source := range sources {
		if p, err := newPattern(source, Semantics{Trim: RawOnly}); err == nil {
			list = append(list, p.among(false))
		}
	}
	return list
}

// possibly returns a function for the texts that match an expression of the code, as seen raw, and
// none of others. It leaves out an expression that is too large.
func possibly(source string, but ...string) func() texts {
	return func() texts {
		all := allTexts(true)
		for _, s := range regular([]string{source}) {
			all = all.and(s)
		}
		for _, s := range regular(but) {
			all = all.minus(s)
		}
		return all
	}
}
