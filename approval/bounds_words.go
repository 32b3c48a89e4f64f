package approval

import (
	"errors"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// Example is a value that a bound covers, or one that it does not cover.
type Example struct {
	Path    string `json:"path"` // of the argument
	Text    string `json:"text"` // of the value: a text without quotes, or a number
	Covered bool   `json:"covered"`
}

// Says describes what a bound covers: `begins with "docs/"`.
func (b Bound) Says() string {
	switch b.Kind {
	case AtMost:
		return "from 0 up to the approved number"
	case AtLeast:
		return "from the approved number up to 0"
	case Equals:
		return "may also be " + strconv.Quote(b.Value)
	case Prefix:
		return "may be any text that begins with " + strconv.Quote(b.Value)
	case Below:
		return "may be any path below " + b.Value
	case Host:
		return "may be any address of " + b.Value
	case Words:
		return "may be the command line " + b.Value + ", where * stands for plain words"
	case AnyText:
		return "may be any text"
	}

	return "may vary in an unknown way"
}

// ParseBound reads PATH=KIND or PATH=KIND:VALUE, as people type a bound: "command=words:go test *".
func ParseBound(text string) (Bound, error) {
	at, rest, ok := strings.Cut(text, "=")
	kind, chosen, _ := strings.Cut(rest, ":")
	b := Bound{Path: at, Kind: BoundKind(strings.ReplaceAll(kind, "-", "_")), Value: chosen}
	if !ok || at == "" || !policy.IsBoundKind(b.Kind) {
		return b, errors.New("expected PATH=KIND or PATH=KIND:VALUE, such as command=words:go test *")
	}

	return b, nil
}

// Examples returns two values that the bounds of a call cover, and one that they don't, for each
// bounded argument. It leaves out what it can't construct, and arguments that a policy hides.
func (r *Request) Examples(bounds []Bound) []Example {
	shown := slices.DeleteFunc(slices.Clone(bounds), func(b Bound) bool {
		return r.Arguments().Hides(splitPath(b.Path)...)
	})

	return examplesOf(r.Current().Call.Args, shown)
}

func examplesOf(args []byte, bounds []Bound) []Example {
	doc, err := value.Parse(args, value.DefaultLimits())
	if err != nil {
		return nil
	}
	var out []Example
	for i, b := range bounds {
		if slices.ContainsFunc(bounds[:i], func(x Bound) bool { return x.Path == b.Path }) {
			continue // all bounds of an argument have their examples together
		}
		approved, _ := doc.Lookup(b.Path)
		covered := func(v value.Value) bool {
			return slices.ContainsFunc(bounds, func(x Bound) bool {
				return x.Path == b.Path && x.covers(&approved, &v, nil)
			})
		}
		inside, outside := samples(bounds, b.Path, &approved)
		out = append(out, pickExamples(b.Path, inside, true, 2, covered)...)
		out = append(out, pickExamples(b.Path, outside, false, 1, covered)...)
	}

	return out
}

// pickExamples returns the first values that are covered, or not covered, as wanted.
func pickExamples(path string, from []value.Value, want bool, most int, covered func(value.Value) bool) []Example {
	var out []Example
	for _, v := range from {
		e := Example{path, exampleText(v), want}
		if len(out) < most && covered(v) == want && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}

	return out
}

func exampleText(v value.Value) string {
	if v.Kind == value.String {
		return v.Text
	}
	return string(v.AppendJSON(nil))
}

// samples returns values that the bounds of one argument are likely to cover, and others that are close to
// them.
func samples(bounds []Bound, at string, approved *value.Value) (inside, outside []value.Value) {
	texts := func(to *[]value.Value, all ...string) {
		for _, t := range all {
			*to = append(*to, value.Value{Kind: value.String, Text: t})
		}
	}
	for _, b := range bounds {
		if b.Path != at {
			continue
		}
		switch b.Kind {
		case AtMost, AtLeast:
			zero, _ := value.Parse([]byte("0"), value.DefaultLimits())
			inside = append(inside, *approved, zero)
			outside = append(outside, beyond(approved, b.Kind)...)
		case Equals:
			texts(&inside, b.Value)
			texts(&outside, b.Value+" and more")
		case Prefix:
			texts(&inside, b.Value+"other", b.Value+"other, longer text", b.Value+"other-text")
			texts(&outside, "other "+b.Value, "other")
		case Below:
			texts(&inside, path.Join(b.Value, "other.txt"), path.Join(b.Value, "deeper/other.txt"))
			texts(&outside, strings.TrimPrefix(b.Value+"-other/file.txt", ".-"), "/other/file.txt")
		case Host:
			scheme, _, _ := splitAddress(approved.Text)
			texts(&inside, scheme+"://"+b.Value+"/", scheme+"://"+b.Value+"/other/page?q=1")
			texts(&outside, scheme+"://"+b.Value+".example.com/")
		case Words:
			plain := strings.TrimSuffix(b.Value, " *")
			texts(&inside, strings.ReplaceAll(b.Value, "*", "other"), strings.ReplaceAll(plain, "*", "other"),
				strings.ReplaceAll(plain, "*", "another"))
			texts(&outside, strings.ReplaceAll(b.Value, "*", "other")+"; other-program")
		case AnyText:
			texts(&inside, "any other text", "")
		}
	}

	return inside, outside
}

// beyond returns numbers outside of a bound.
func beyond(approved *value.Value, kind BoundKind) []value.Value {
	text := string(approved.AppendJSON(nil))
	n, ok := new(big.Rat).SetString(text)
	if !ok || !plainNumber().MatchString(text) {
		return nil
	}
	step := int64(1)
	if kind == AtLeast {
		step = -1
	}
	_, fraction, _ := strings.Cut(text, ".")
	next := n.Add(n, new(big.Rat).SetInt64(step)).FloatString(len(fraction))
	v, err := value.Parse([]byte(next), value.DefaultLimits())
	if err != nil {
		return nil
	}

	return []value.Value{v}
}

// Suggestion is a bound that an approver may choose, with what it covers.
type Suggestion struct {
	Bound    Bound
	Examples []Example
}

// mostSuggestions limits the suggestions for one argument and kind.
const mostSuggestions = 3

// Suggest lists bounds for texts of the current call that every rule allows, that cover the approved
// text, and that policies don't hide. Equals is left out: the other texts are the approver's.
func (r *Request) Suggest() []Suggestion {
	doc, err := value.Parse(r.Current().Call.Args, value.DefaultLimits())
	if err != nil {
		return nil
	}
	var out []Suggestion
	for _, varies := range r.Grants.Bounds {
		approved, found := doc.Lookup(varies.Path)
		if !found || approved.Kind != value.String || r.Arguments().Hides(splitPath(varies.Path)...) {
			continue
		}
		n := 0
		for _, chosen := range choices(varies.Kind, approved.Text) {
			if w := r.Current().Call.Workspace; varies.Kind == Below && path.IsAbs(chosen) &&
				(w.Doubt() != "" || !w.Contains(chosen)) {
				continue // a directory around the workspace is for approvers who type it
			}
			b := Bound{Path: varies.Path, Kind: varies.Kind, Value: chosen}
			if n < mostSuggestions && r.checkBounds([]Bound{b}) == nil {
				out, n = append(out, Suggestion{b, r.Examples([]Bound{b})}), n+1
			}
		}
	}

	return out
}

// choices returns values for a bound that may cover the approved text, the narrowest first.
func choices(kind BoundKind, approved string) []string {
	var out []string
	switch kind {
	case Prefix:
		for i := len(approved) - 1; i > 0; i-- {
			if strings.IndexByte("/ ", approved[i]) >= 0 {
				out = append(out, approved[:i+1])
			}
		}
	case Below:
		for at := path.Dir(approved); at != "/"; at = path.Dir(at) {
			if out = append(out, at); at == "." {
				break
			}
		}
	case Host:
		_, host, _ := splitAddress(approved)
		out = append(out, host)
	case Words:
		words, _ := shellfacts.Literal(approved)
		for i := len(words); i > 0; i-- {
			out = append(out, strings.Join(words[:i], " ")+" *")
		}
	case AnyText:
		out = append(out, "")
	}

	return out
}

// SaysAll describes the bounds and the ignored arguments of a standing approval, one line for each.
func SaysAll(bounds []Bound, ignored []string) []string {
	var out []string
	for _, b := range bounds {
		out = append(out, b.Path+" "+b.Says())
	}
	for _, name := range ignored {
		out = append(out, fmt.Sprintf("%s is not compared", name))
	}

	return out
}
