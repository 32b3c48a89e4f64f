package approval

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Exposure describes how much one number may add up to over all uses of a standing approval.
type Exposure struct {
	Path     string // path of the number in the arguments
	Each     string // the approved number without its sign; no use may exceed it
	Currency string // the currency next to the number; may be empty
}

// plainNumber matches numbers whose multiples can be written in the same form.
var plainNumber = pattern.Of(`^-?[0-9]{1,30}(\.[0-9]{1,10})?$`)

// Exposures lists the numbers of the current call that may add up under a standing approval: those
// that the policies allow to vary, and those named "amount". It leaves out hidden values.
func (r *Request) Exposures() []Exposure {
	varying := paths(r.Grants.Bounds, func(b policy.Bound) string { return b.Path })
	return exposuresOf(&r.Current().Call, r.Arguments(), varying)
}

// Exposures lists the numbers that may add up over the uses of the standing approval.
func (g *Grant) Exposures() []Exposure {
	varying := paths(g.Bounds, func(b Bound) string { return b.Path })
	return exposuresOf(&g.Call, policy.Arguments{Redact: g.Redact}, varying)
}

func paths[B any](bounds []B, path func(B) string) []string {
	out := make([]string, len(bounds))
	for i, b := range bounds {
		out[i] = path(b)
	}
	return out
}

func exposuresOf(c *resolve.Call, hidden policy.Arguments, varying []string) []Exposure {
	doc, err := value.Parse(c.Args, value.DefaultLimits())
	if err != nil {
		return nil
	}
	e := exposing{doc: doc, hidden: hidden}
	for _, path := range varying {
		e.add(path)
	}
	for _, m := range doc.Members {
		if strings.EqualFold(m.Key, "amount") {
			e.add(m.Key)
		}
	}

	return e.found
}

// exposing collects numbers of a document.
type exposing struct {
	doc    value.Value
	hidden policy.Arguments
	found  []Exposure
}

func (e *exposing) hides(path string) bool { return e.hidden.Hides(splitPath(path)...) }

func (e *exposing) add(path string) {
	v, found := e.doc.Lookup(path)
	known := slices.ContainsFunc(e.found, func(x Exposure) bool { return x.Path == path })
	if !found || v.Kind != value.Number || known || e.hides(path) {
		return
	}
	text := string(v.AppendJSON(nil))
	if !plainNumber().MatchString(text) || v.Num.Cmp(value.IntNum(0)) == 0 {
		return
	}
	e.found = append(e.found, Exposure{
		Path:     path,
		Each:     strings.TrimPrefix(text, "-"),
		Currency: e.currencyBeside(path),
	})
}

// currencyCode matches currency codes: three capital letters.
var currencyCode = pattern.Of(`^[A-Z]{3}$`)

// currencyBeside returns the currency in the same object as the value, or an empty string if there
// is none.
func (e *exposing) currencyBeside(path string) string {
	const name = "currency"
	around, at := e.doc, name
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		if _, whole := e.doc.Get(path); !whole {
			around, _ = e.doc.Lookup(path[:i])
			at = path[:i+1] + name
		}
	}

	v, _ := around.Get(name)
	if v.Kind != value.String || !currencyCode().MatchString(v.Text) || e.hides(at) {
		return ""
	}

	return v.Text
}

// Total returns the most that this many uses may add up to.
func (e Exposure) Total(uses int) string {
	each, ok := new(big.Rat).SetString(e.Each)
	if !ok {
		return ""
	}
	_, fraction, _ := strings.Cut(e.Each, ".")
	total := each.Mul(each, new(big.Rat).SetInt64(int64(uses)))

	return groupFrom(total.FloatString(len(fraction)), 4)
}

// Words returns the calculation of the total: "20 × 340.00 = 6,800.00 USD".
func (e Exposure) Words(uses int) string {
	words := GroupDigits(strconv.Itoa(uses)) + " × " + groupFrom(e.Each, 4) + " = " + e.Total(uses)
	if e.Currency != "" {
		words += " " + e.Currency
	}

	return words
}
