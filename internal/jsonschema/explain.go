package jsonschema

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// explainer converts v5's tree of errors to failures. It uses only the locations from v5 and
// builds the texts from schema and document, which have more information than v5's texts.
type explainer struct {
	schema any
	doc    any
}

// explain returns the leaves under one error of v5 in a deterministic order, because v5
// iterates over maps.
func (e *explainer) explain(ve *v5.ValidationError) []Failure {
	keyword := last(segments(fragment(ve.AbsoluteKeywordLocation)))
	if (keyword == "oneOf" || keyword == "anyOf") && len(ve.Causes) > 0 {
		return e.alternatives(ve)
	}
	if len(ve.Causes) == 0 || keyword == "minContains" {
		return e.leaf(ve)
	}
	var out []Failure
	for _, cause := range ve.Causes {
		out = append(out, e.explain(cause)...)
	}
	slices.SortStableFunc(out, order)
	return out
}

func order(a, b Failure) int {
	return cmp.Or(
		comparePaths(a.Path, b.Path),
		cmp.Compare(a.Keyword, b.Keyword),
		cmp.Compare(a.Message, b.Message),
	)
}

// comparePaths compares paths by segments, and indexes by their number.
func comparePaths(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		i, errI := strconv.Atoi(x)
		j, errJ := strconv.Atoi(y)
		if errI == nil && errJ == nil {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(x, y)
	})
}

// alternatives picks the branch of a oneOf or anyOf that the author most likely meant. It drops
// branches for other types of value; if none are left, it returns one failure that names all
// types. Then it drops branches whose tag (a const or enum one level down) does not match. Of
// the rest it picks the one with the deepest failure.
func (e *explainer) alternatives(ve *v5.ValidationError) []Failure {
	at := segments(ve.InstanceLocation)
	var branches [][]Failure
	for _, cause := range ve.Causes {
		branches = append(branches, e.explain(cause))
	}
	fit := slices.DeleteFunc(slices.Clone(branches), func(b []Failure) bool { return isOther(b, at) })
	if len(fit) == 0 {
		return joinWants(branches, at)
	}
	if len(fit) == 1 {
		return fit[0]
	}
	tagged := slices.DeleteFunc(slices.Clone(fit), func(b []Failure) bool { return wrongTag(b, at) != nil })
	if len(tagged) == 0 {
		return joinWants(fit, wrongTag(fit[0], at).Path)
	}
	fit = tagged
	if all := joinMissing(fit, at); all != nil {
		return all
	}
	return slices.MinFunc(fit, func(a, b []Failure) int {
		return cmp.Or(cmp.Compare(depth(b), depth(a)), cmp.Compare(len(a), len(b)))
	})
}

// isOther reports whether a branch requires another type than the value at a path has.
func isOther(branch []Failure, at []string) bool {
	return slices.ContainsFunc(branch, func(f Failure) bool { return f.other && slices.Equal(f.Path, at) })
}

// wrongTag returns the failure of a branch whose tag, a const or enum one level below a path,
// does not match, or nil.
func wrongTag(branch []Failure, at []string) *Failure {
	for i, f := range branch {
		if (f.Keyword == "const" || f.Keyword == "enum") && len(f.Path) == len(at)+1 {
			return &branch[i]
		}
	}
	return nil
}

func depth(branch []Failure) int {
	d := 0
	for _, f := range branch {
		d = max(d, len(f.Path))
	}
	return d
}

// joinWants joins branches that each require another type or value at one path into one
// failure.
func joinWants(branches [][]Failure, at []string) []Failure {
	var out *Failure
	for _, branch := range branches {
		for _, f := range branch {
			switch {
			case len(f.wants) == 0 || !slices.Equal(f.Path, at):
			case out == nil:
				out = &f
			default:
				out.wants = append(slices.Clone(out.wants), f.wants...)
				out.Nearest = cmp.Or(out.Nearest, f.Nearest)
			}
		}
	}

	slices.SortStableFunc(out.wants, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	out.wants = slices.Compact(out.wants)
	out.Expected = either(out.wants)
	return []Failure{*out}
}

// rank sorts collections after scalars, which reads better.
func rank(want string) int {
	if want == "a list" || want == "a mapping" {
		return 1
	}
	return 0
}

// joinMissing joins branches that each lack only one property into one failure. It returns nil
// if there are other branches.
func joinMissing(branches [][]Failure, at []string) []Failure {
	if len(branches) < 2 {
		return nil
	}
	var names []string
	for _, b := range branches {
		if len(b) != 1 || b[0].Keyword != "required" || !slices.Equal(b[0].Path, at) {
			return nil
		}
		names = append(names, b[0].Property)
	}

	out := branches[0][0]
	out.Names = names
	out.Message, out.Expected = "none of the fields of which one is needed", either(quoted(names))
	return []Failure{out}
}

// tidy drops duplicates, and failures that only follow from another failure.
func tidy(fs []Failure) []Failure {
	fs = slices.CompactFunc(fs, func(a, b Failure) bool { return order(a, b) == 0 })
	fs = slices.DeleteFunc(fs, func(f Failure) bool {
		return f.Keyword == "unevaluatedProperties" && explained(f, fs)
	})
	matchTypos(fs)
	return slices.DeleteFunc(fs, func(f Failure) bool {
		return f.Keyword == "required" && len(f.Names) == 0
	})
}

// explained reports whether an unevaluated property follows from another failure in the same
// object: the branch that would have evaluated it failed.
func explained(f Failure, fs []Failure) bool {
	return slices.ContainsFunc(fs, func(g Failure) bool {
		return g.Keyword != f.Keyword && len(g.Path) >= len(f.Path) && slices.Equal(g.Path[:len(f.Path)], f.Path)
	})
}

// matchTypos joins an unknown property and the missing one that it was meant to be into one
// failure.
func matchTypos(fs []Failure) {
	for i := range fs {
		if fs[i].Keyword != "additionalProperties" || fs[i].Nearest == "" {
			continue
		}
		for j := range fs {
			if fs[j].Keyword == "required" && slices.Equal(fs[j].Path, fs[i].Path) {
				fs[j].drop(fs[i].Nearest)
			}
		}
	}
}

// drop removes one name from the missing ones.
func (f *Failure) drop(name string) {
	f.Names = slices.DeleteFunc(slices.Clone(f.Names), func(n string) bool { return n == name })
	f.missing()
}

// lookup returns the value at a path in decoded JSON, or nil.
func lookup(v any, path []string) any {
	for _, segment := range path {
		v = member(v, segment)
	}
	return v
}

// member returns the value one step down a path, or nil.
func member(v any, segment string) any {
	switch at := v.(type) {
	case map[string]any:
		return at[segment]
	case []any:
		if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < len(at) {
			return at[i]
		}
	}

	return nil
}

// fragment returns the JSON pointer of a schema location.
func fragment(location string) string {
	_, pointer, _ := strings.Cut(location, "#")
	return pointer
}

// segments splits a JSON pointer from v5, which is escaped as a pointer and then as a URL.
func segments(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, p := range parts {
		if u, err := url.PathUnescape(p); err == nil {
			p = u
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}

	return parts
}

func last(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
