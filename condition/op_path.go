package condition

import (
	"regexp"
	"slices"
	"strings"
)

// The operators that look at paths, without a file system.
const (
	PathInside    Op = "path_inside"
	NotPathInside Op = "not_path_inside"
)

// within holds for the paths of its directories and below them, or for the paths outside of all
// of them. It is unknown for texts that are not readable as such paths.
type within struct {
	name    Op
	meaning string
	named   words
	not     bool
}

func (w within) op() Op { return w.name }

func (w within) means() string { return w.meaning }

func (w within) words() words { return w.named }

func (w within) slips() []Op {
	return map[Op][]Op{PathInside: {NotPathInside}, NotPathInside: {PathInside}}[w.name]
}

func (w within) operand() operand { return someTexts{check: checkDirectory} }

func (w within) negative() bool { return false }

func (w within) expression(string) (string, bool) { return "", false }

func checkDirectory(text string) (fault, expected string) {
	if d, ok := readPath(text); ok && !d.leaves {
		return "", ""
	}
	return "this is not a directory that paths are compared with",
		`an absolute path such as /srv/data, or a relative one such as . or src that does not leave its start`
}

func (w within) compare(t *Test, with compiling) (comparison, bool) {
	names, ok := textsOf(t)
	if !ok {
		return comparison{}, false
	}
	var all []filePath
	for _, name := range names {
		d, ok := readPath(name)
		if !ok || d.leaves {
			return comparison{}, false
		}
		all = append(all, d)
	}
	list := enumerate(quoted(names), " or ")
	in := pathFact("in", all, True, [2]string{"is a path inside " + list, "is a text that is no path inside " + list})
	out := pathFact("out", all, False, [2]string{
		"is a path outside " + list, "is a text that is no path, or one inside " + list,
	})
	return comparison{texts: twoFacts(in, out, w.not, with.sem.OnMismatch)}, true
}

// filePath is a path without empty elements, "." and "..".
type filePath struct {
	absolute bool
	elements []string
	leaves   bool // it is relative and goes above its start
}

// readPath resolves a path as a text. It returns false if it can't be compared with others.
func readPath(text string) (filePath, bool) {
	first, _, _ := strings.Cut(text, "/")
	if text == "" || strings.ContainsAny(text, "\x00\\") || text[0] == '~' || strings.Contains(first, ":") {
		return filePath{}, false
	}
	p := filePath{absolute: text[0] == '/'}
	for _, e := range strings.Split(text, "/") {
		switch {
		case e == "" || e == ".":
		case e != "..":
			p.elements = append(p.elements, e)
		case len(p.elements) > 0:
			p.elements = p.elements[:len(p.elements)-1]
		case !p.absolute:
			return filePath{leaves: true}, true
		}
	}
	return p, true
}

// String returns the path as a text.
func (p filePath) String() string {
	text := strings.Join(p.elements, "/")
	switch {
	case p.absolute:
		return "/" + text
	case text == "":
		return "."
	}
	return text
}

// inside reports whether a path is a directory or below it. It is Unknown if one is absolute and
// the other relative.
func (p filePath) inside(dir filePath) Truth {
	switch {
	case p.absolute != dir.absolute:
		return Unknown
	case p.leaves || len(p.elements) < len(dir.elements):
		return False
	}
	return truthOf(slices.Equal(p.elements[:len(dir.elements)], dir.elements))
}

// pathFact holds for paths that are inside one of some directories with a truth.
func pathFact(kind string, all []filePath, is Truth, named [2]string) *pattern {
	var names []string
	for _, d := range all {
		names = append(names, d.String())
	}
	key := strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "\x00")
	f := &fact{family: filePaths{}, about: all}
	if is == True {
		f.samples = []string{all[0].String()}
	}
	return &pattern{
		text:   key,
		source: "path " + kind + "\x00" + key,
		is: func(text string) bool {
			p, ok := readPath(text)
			truth := False
			for _, d := range all {
				truth = max(truth, p.inside(d))
			}
			return ok && truth == is
		},
		fact:  f,
		named: named,
	}
}

// filePaths is the family of facts about paths.
type filePaths struct{}

// Expressions of paths. Exactly the readable absolute and relative paths match these.
const (
	absolutePath = `\A/[^\\\x00]*\z`
	relativePath = `\A[^/~\\\x00:][^/\\\x00:]*(?:/[^\\\x00]*)?\z`
	pathElement  = `[^/\\\x00.][^/\\\x00]*`
	firstElement = `[^/\\\x00.~:][^/\\\x00:]*`
	pathSkip     = `(?:\./+|` + pathElement + `/+\.\./+)*`
	pathTail     = `(?:/+` + pathSkip + `(?:` + pathElement + `|\.))*/*\z`
)

// cells returns a cell for each directory, for other absolute and relative paths, for relative
// paths that leave their start, and for texts that are no path.
func (filePaths) cells(facts []*fact) []textCell {
	all := []filePath{{absolute: true}, {}}
	for _, f := range facts {
		all = append(all, f.about.([]filePath)...)
	}
	fresh := "x"
	for _, d := range all {
		for slices.ContainsFunc(d.elements, func(e string) bool { return strings.HasPrefix(e, fresh) }) {
			fresh += "q"
		}
	}

	cells := []textCell{
		{sample: "", known: true,
			certain:  certainly(`\A\z`, `\A~(?s:.*)\z`, `\A[^/]*:(?s:.*)\z`, `\A(?s:.*)[\x00\\](?s:.*)\z`),
			possible: possibly(`(?s:.*)`, absolutePath, relativePath)},
		{sample: "..", known: true, certain: certainly(`\A\.\.(?:/[^\\\x00]*)?\z`, `\A(?:\./+)*\.\.(?:/[^\\\x00]*)?\z`),
			possible: possibly(relativePath)},
	}
	seen := map[string]bool{}
	for _, d := range all {
		if name := d.String(); !seen[name] {
			seen[name] = true
			cells = append(cells, d.cell(fresh))
		}
	}
	return cells
}

// cell returns the paths inside a directory, of which those that certainly belong to it are not
// inside another one.
func (p filePath) cell(fresh string) textCell {
	var elements []string
	for _, e := range p.elements {
		elements = append(elements, regexp.QuoteMeta(e))
	}
	c := textCell{sample: strings.TrimSuffix(p.String(), "/") + "/" + fresh, known: true}
	start, possible := `\A`, relativePath
	if p.absolute {
		start, possible = `\A/+`+pathSkip, absolutePath
	} else if len(elements) == 0 {
		c.sample = fresh
	}
	c.possible = possibly(possible)
	named := start + strings.Join(elements, `/+`+pathSkip)
	free := fresh + `[^/\\\x00:]*`
	switch {
	case len(elements) > 0:
		c.certain = certainly(named+pathTail, named+`/+`+free+pathTail, named+`/*\z`)
	case p.absolute:
		c.certain = certainly(start+`(?:`+pathElement+pathTail+`|\z)`, start+free+pathTail, start+`\z`)
	default:
		c.certain = certainly(start+firstElement+pathTail, start+free+pathTail, `\A\./*\z`)
	}
	return c
}
