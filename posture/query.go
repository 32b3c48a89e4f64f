package posture

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Query asks about all calls of one target at once: is there one like
// this with that outcome? An invariant is a query whose answer has to be
// no: "never allowed" asks for the outcome allow, "always asked" for
// allow and for deny.
type Query struct {
	// Call names the target. Its documents are not looked at; its
	// annotations are, and nil means any.
	Call resolve.Call
	// Where is what has to be true of the call, see ParseWhere; nil for
	// every call. Calls for which it is unknown are not looked for.
	Where *condition.Expr
	// Outcome is what the plan makes of the call.
	Outcome resolve.Outcome
}

// Answer is the answer to a query. The witness is a call that `assent
// decide` takes; it is there when the answer is Yes, and the plan has
// decided it.
type Answer struct {
	Found   condition.Verdict
	Witness json.RawMessage
	Why     string // why it is Undecided
}

// MarshalJSON writes {"found": "yes|no|undecided", "witness", "why"}.
func (a Answer) MarshalJSON() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("found", a.Found.String())
		if len(a.Witness) > 0 {
			w.Name("witness").Raw(a.Witness)
		}
		w.Optional("why", a.Why)
	})
}

// Ask answers a query about a plan.
func (q Query) Ask(plan *resolve.Plan) Answer {
	target := plan.Target(&q.Call)
	if target == nil {
		return Answer{Found: condition.Undecided, Why: "the query names no kind of call"}
	}

	classes, ok := classesOf(target, target)
	if !ok {
		return Answer{Found: condition.Undecided, Why: whyHints()}
	}
	if q.Call.Annotations != nil {
		classes = []map[string]bool{q.Call.Annotations}
	}

	open := Answer{}
	for _, class := range classes {
		s := &Side{Plan: plan}
		p := pair{
			comparer: &comparer{old: *s, new: *s, cmp: condition.NewComparison(0)},
			call:     q.Call,
			old:      sideOf(*s, target, class),
		}
		p.call.Annotations = class
		p.new = p.old
		switch a := q.among(p); a.Found {
		case condition.Yes:
			return a
		case condition.Undecided:
			open = a
		}
	}

	return open
}

// among looks at calls of one class, with a parent's input and without.
func (q Query) among(p pair) Answer {
	p.world = condition.Calls{NoParent: true, CaseSensitive: p.old.target.CaseSensitive}
	first := q.in(p)
	if first.Found == condition.Yes || !p.readsParent() && !mentionsParent(q.Where) {
		return first
	}
	p.world.NoParent = false
	if second := q.in(p); second.Found != condition.No {
		return second
	}

	return first
}

func mentionsParent(e *condition.Expr) bool {
	return e != nil && readsParent(&resolve.Gate{Use: condition.Governance, When: e})
}

// in looks at calls that carry a parent's input, or at those that don't.
func (q Query) in(p pair) Answer {
	var within []condition.Gate
	if q.Where != nil {
		within = []condition.Gate{{
			Use:     condition.Governance,
			Sem:     p.old.sem,
			When:    q.Where,
			Certain: true,
		}}
	}

	cells, ok := p.cmp.Cells(p.world, within, p.old.gates(p.old.asks))
	if !ok {
		return Answer{Found: condition.Undecided, Why: condition.WhyTooLarge}
	}
	open := Answer{}
	for _, cell := range cells {
		switch {
		case p.old.outcome(cell.Asks[0]) != q.Outcome:
		case cell.Found != condition.Yes:
			open = Answer{Found: condition.Undecided, Why: condition.WhyTooHard}
		default:
			return q.shown(p, cell)
		}
	}

	return open
}

// shown has the plan decide the witness before it is told.
func (q Query) shown(p pair, cell condition.Cell) Answer {
	var c Change
	p.witness(&c, cell.Witness, func(decided, _ resolve.Decision) bool { return decided.Outcome == q.Outcome })
	if c.Witness == nil {
		return Answer{Found: condition.Undecided, Why: c.Why}
	}

	return Answer{Found: condition.Yes, Witness: c.Witness}
}

// ParseWhere reads what has to be true of a call: tests such as
// `amount>50000,currency=USD`, all of which must hold. The operators are
// = != < <= > >= and ~ for a pattern; a value is a number, true, false,
// or text, in quotes where it would be read otherwise or has a comma.
func ParseWhere(text string) (*condition.Expr, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var g condition.Group
	for rest := text; rest != ""; {
		m, after, err := parseTest(rest)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", rest, err)
		}
		g.Matchers = append(g.Matchers, m)
		rest = after
	}

	return &condition.Expr{Groups: []condition.Group{g}}, nil
}

// parseTest reads one test and returns what follows its comma.
func parseTest(text string) (m condition.Matcher, rest string, err error) {
	at := strings.IndexAny(text, "=!<>~")
	if at <= 0 || strings.Contains(text[:at], ",") {
		return m, "", errors.New("expected a test such as amount>50000")
	}
	m.Key = strings.TrimSpace(text[:at])
	test, text := operatorOf(text[at:])
	if test.Op == "" || m.Key == "" {
		return m, "", errors.New("expected a name and one of = != < <= > >= ~")
	}
	word, rest := strings.TrimSpace(text), ""
	if quoted, err := strconv.QuotedPrefix(word); err == nil {
		word, rest = quoted, strings.TrimSpace(word[len(quoted):])
		if rest != "" && rest[0] != ',' {
			return m, "", fmt.Errorf("expected a comma behind %s", quoted)
		}
		rest = strings.TrimPrefix(rest, ",")
	} else {
		word, rest, _ = strings.Cut(word, ",")
	}

	if test.Operand, err = scalarOf(strings.TrimSpace(word), test.Op); err != nil {
		return m, "", err
	}
	m.Tests = []condition.Test{test}

	return m, strings.TrimSpace(rest), nil
}

// operatorOf reads the operator that begins a text; none is "".
func operatorOf(text string) (test condition.Test, rest string) {
	for _, known := range [...]struct {
		sign string
		op   condition.Op
	}{
		{"!=", condition.Ne},
		{"<=", condition.Lte},
		{">=", condition.Gte},
		{"<", condition.Lt},
		{">", condition.Gt},
		{"~", condition.Pattern},
		{"=", condition.Eq},
	} {
		if after, ok := strings.CutPrefix(text, known.sign); ok {
			return condition.Test{Op: known.op}, after
		}
	}

	return test, text
}

// scalarOf reads a value, which has to fit its operator.
func scalarOf(word string, op condition.Op) (condition.Scalar, error) {
	text, quoted := word, strings.HasPrefix(word, `"`)
	if quoted {
		text, _ = strconv.Unquote(word) // a quoted prefix
	}
	switch op {
	case condition.Pattern:
		if err := condition.CheckPattern(text); err != nil {
			return condition.Scalar{}, err
		}
		return condition.Scalar{Kind: value.String, Text: text}, nil
	case condition.Lt, condition.Lte, condition.Gt, condition.Gte:
		n, err := value.ParseNum(word)
		if err != nil {
			return condition.Scalar{}, fmt.Errorf("%q is no number, which < <= > and >= compare", word)
		}

		return condition.Scalar{Kind: value.Number, Num: n}, nil
	}

	switch n, err := value.ParseNum(word); {
	case quoted:
	case word == "":
		return condition.Scalar{}, errors.New(`expected a value, "" for an empty text`)
	case word == "true", word == "false":
		return condition.Scalar{Kind: value.Bool, Bool: word == "true"}, nil
	case err == nil:
		return condition.Scalar{Kind: value.Number, Num: n}, nil
	}

	return condition.Scalar{Kind: value.String, Text: text}, nil
}
