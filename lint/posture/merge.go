package posture

import (
	"slices"
	"strings"
)

// merged joins changes that are the same with and without a parent's input, or for calls with
// different annotations. The remaining changes get a note about the calls to which they apply.
func merged(found []Change, classes int) []Change {
	for i := range found {
		if found[i].region != nil {
			found[i].Region = found[i].region.String()
		}
	}
	found = alike(found, 2, func(c *Change) *string { return &c.parent })
	found = alike(found, classes, func(c *Change) *string { return &c.class })
	for i := range found {
		c := &found[i]
		notes := joined(joined(c.note, c.parent), c.class)
		switch {
		case notes == "":
		case c.Region == "":
			c.Region = notes
		default:
			c.Region += " (" + notes + ")"
		}
	}

	return found
}

// alike joins changes that differ only in one note. If all possible notes occur, the joined change
// has none.
func alike(found []Change, all int, note func(c *Change) *string) []Change {
	var out []Change
	notes := map[int][]string{}
	for _, c := range found {
		i := slices.IndexFunc(out, func(o Change) bool {
			return o.Aspect == c.Aspect && o.Effect == c.Effect && o.From == c.From && o.To == c.To &&
				o.Region == c.Region && o.note == c.note && o.Why == c.Why && others(&o, note) == others(&c, note)
		})
		if i < 0 {
			i = len(out)
			out = append(out, c)
		}
		if out[i].Asks != c.Asks {
			out[i].Asks = "" // it is not the same for all of them
		}
		out[i].addEdits(c.edited)
		if text := *note(&c); text != "" {
			notes[i] = append(notes[i], text)
		}
	}

	for i := range out {
		*note(&out[i]) = strings.Join(notes[i], " or ")
		if len(notes[i]) >= all {
			*note(&out[i]) = ""
		}
	}

	return out
}

// others returns the note that note does not select.
func others(c *Change, note func(c *Change) *string) string {
	if note(c) == &c.parent {
		return c.class
	}
	return c.parent
}
