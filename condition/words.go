package condition

import (
	"strconv"
	"strings"
	"unicode"
)

// maxShown limits the alternatives, intervals or words of a list in a sentence.
const maxShown = 6

// String describes the region for people, as in `8000 < amount ≤ 10000` or `amount is missing,
// or currency is "EUR"`. It is exact except for lists that are cut, which end with the number
// of omitted entries.
func (r *Region) String() string {
	var alternatives []string
	for _, b := range r.simple() {
		if len(b) == 0 {
			return "every call"
		}
		var all []string
		for _, s := range b {
			place := r.q.places[s.place]
			text := s.words(nameOf(place))
			if place[0] == timeInput {
				text = s.timeWords(place[1])
			}
			if h := r.q.pasts[s.place]; h != nil {
				text = s.pastWords(h)
			}
			if len(b) > 1 && strings.Contains(text, " or ") {
				text = "(" + text + ")"
			}
			all = append(all, text)
		}

		alternatives = append(alternatives, strings.Join(all, " and "))
	}

	return enumerate(alternatives, "; or ")
}

// nameOf formats a place like its key in a file. A literal key with dots is quoted, and so is a
// segment that would not be read as a name.
func nameOf(place []string) string {
	var b strings.Builder
	for i, s := range place {
		if i > 0 {
			b.WriteByte('.')
		}
		odd := func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && (r != '.' ||
				s != parentInput)
		}
		if s == "" || strings.ContainsFunc(s, odd) {
			s = strconv.Quote(s)
		}
		b.WriteString(s)
	}

	return b.String()
}

// enumerate joins the first entries of a list.
func enumerate(list []string, between string) string {
	more := len(list) - maxShown
	if more > 0 {
		list = append(list[:maxShown:maxShown], strconv.Itoa(more)+" more")
	}
	return strings.Join(list, between)
}

// timeWords describes the moments of a domain of timeBox.
func (d domain) timeWords(key string) string {
	w, _ := windowOf(key)
	var all []string
	for _, known := range [...]struct {
		atom atoms
		word string
	}{{atomTrue, "during " + w.String()}, {atomFalse, "outside " + w.String()}, {atomAbsent, "at an unknown time"}} {
		if d.atoms&known.atom != 0 {
			all = append(all, known.word)
		}
	}

	return strings.Join(all, " or ")
}

// words describes a domain of the argument with a name.
func (d domain) words(name string) string {
	if d.compounds == nil && d.numbers.full() && d.texts.full() {
		switch d.atoms {
		case allAtoms &^ atomAbsent:
			return name + " is given"
		case allAtoms &^ (atomAbsent | atomNull):
			return name + " is given and not null"
		}
	}
	if d.atoms == allAtoms && d.compounds == nil {
		switch {
		case d.texts.full() && d.numbers.empty():
			return name + " is no number"
		case d.texts.full():
			return d.numbers.words(name) + " or " + name + " is no number"
		case d.numbers.full() && d.texts.empty():
			return name + " is no text"
		case d.numbers.full():
			return d.texts.words(name) + " or " + name + " is no text"
		}
	}

	var parts []string
	if !d.numbers.empty() {
		parts = append(parts, d.numbers.words(name))
	}
	if !d.texts.empty() {
		parts = append(parts, d.texts.words(name))
	}
	if d.compounds != nil {
		parts = append(parts, d.compounds.words(name))
	}
	if atoms := d.withoutCompounds().words(); atoms != "" {
		parts = append(parts, name+" is "+atoms)
	}
	return strings.Join(parts, " or ")
}

// withoutCompounds returns the atoms without the one that compounds describes.
func (d *domain) withoutCompounds() atoms {
	if d.compounds != nil {
		return d.atoms &^ atomCompound
	}
	return d.atoms
}

// words lists the atoms in the form in which they follow the word "is".
func (a atoms) words() string {
	var list []string
	for _, known := range [...]struct {
		atom atoms
		word string
	}{
		{atomAbsent, "missing"},
		{atomNull, "null"},
		{atomTrue, "true"},
		{atomFalse, "false"},
		{atomCompound, "an object or a list"},
	} {
		if a&known.atom != 0 {
			list = append(list, known.word)
		}
	}

	return strings.Join(list, " or ")
}

// words describes the numbers of the set, which must not be empty.
func (a numbers) words(name string) string {
	if a.full() {
		return name + " is a number"
	}
	if points := a.not().points(); points != nil {
		return name + " is any number except " + enumerate(points, " and ")
	}
	var list []string
	in := a.first
	for i := 0; i <= len(a.cuts); i++ {
		if in {
			list = append(list, a.interval(name, i))
		}
		in = !in
	}

	return enumerate(list, " or ")
}

// points lists the numbers of the set if it consists of single numbers, and otherwise returns
// nil.
func (a numbers) points() []string {
	if a.first || len(a.cuts)%2 != 0 {
		return nil
	}
	var list []string
	for i := 0; i < len(a.cuts); i += 2 {
		low, high := shown(&a.cuts[i], &a.cuts[i+1])
		switch {
		case low.num.Cmp(high.num) != 0:
			return nil
		case low.above == high.above:
			list = append(list, "what rounds to "+low.num.String())
		default:
			list = append(list, low.num.String())
		}
	}

	return list
}

// interval describes the numbers between two neighbouring cuts, of which at least one exists.
func (a numbers) interval(name string, i int) string {
	below := map[bool]string{true: " < ", false: " ≤ "}
	switch {
	case i == 0:
		c := a.cuts[0].shown()
		return name + below[!c.above] + c.num.String()
	case i == len(a.cuts):
		c := a.cuts[i-1].shown()
		return name + map[bool]string{true: " > ", false: " ≥ "}[c.above] + c.num.String()
	}

	low, high := shown(&a.cuts[i-1], &a.cuts[i])
	switch {
	case low.num.Cmp(high.num) != 0:
	case low.above == high.above:
		return name + " rounds to " + low.num.String()
	default:
		return name + " = " + low.num.String()
	}
	return low.num.String() + below[low.above] + name + below[!high.above] + high.num.String()
}

// words describes the strings of the set.
func (a *texts) words(name string) string {
	var list []string
	switch {
	case !a.but:
		all := quoted(a.list)
		if len(all) == 1 {
			return name + " is " + all[0]
		}
		return name + " is one of " + enumerate(all, ", ")
	case a.full():
		return name + " is a text"
	case len(a.list) > 0:
		list = append(list, name+" is any text except "+enumerate(quoted(a.list), " and "))
	}

	for _, l := range a.pats {
		if l.pat.named[0] != "" {
			list = append(list, name+" "+l.pat.named[index(l.not)])
			continue
		}
		verb := " matches "
		if l.not {
			verb = " is a text that does not match "
		}
		list = append(list, name+verb+l.pat.words())
	}

	for _, o := range a.outside {
		list = append(list, "not ("+o.words(name)+")")
	}
	return strings.Join(list, " and ")
}

// words formats the pattern, and how it is searched for if that is not the default.
func (p *pattern) words() string {
	text := strconv.Quote(p.text)
	if p.source != p.text {
		text += " as a whole"
	}
	if seesEnd(p.tree) && !p.trims {
		text += " untrimmed"
	}
	return text
}

// quoted quotes texts. All spellings of a currency's code together are one entry.
func quoted(list []string) []string {
	spelt := map[string]int{}
	for _, s := range list {
		spelt[upperCode(s)]++
	}
	var out []string
	for _, s := range list {
		code := upperCode(s)
		switch whole := len(code) == 3 && spelt[code] == len(spellings(code)) && spelt[code] > 1; {
		case !whole:
			out = append(out, strconv.Quote(s))
		case s == code:
			out = append(out, strconv.Quote(s)+" in any case")
		}
	}
	return out
}
