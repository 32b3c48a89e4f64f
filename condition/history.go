package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// History is a test of the past calls (docs/contracts/policy.md).
type History struct {
	Of       *PastCalls // nil selects calls of the same kind, server and name as the call
	State    PastState
	Within   time.Duration // 0 if Since is set
	Since    Period        // empty if Within is set
	Zone     string        // of Since
	By       []string      // "agent", "principal", "session", "target" or "args.PATH"
	Where    *Group        // nil if the arguments of past calls don't matter
	Measure  Measure
	Path     string // of Sum and Distinct: the argument
	Currency string // of Sum: the argument with the currency, or empty
	Bounds   []Test // comparisons of the number, all of which must hold; empty for Exists
	Exists   bool   // of Exists: whether there must be a past call or none
	Range    diag.Range
	// Context distinguishes tests of different agents that read the agent's file.
	Context string
	// Self says whether Of selects the calls whose rules have this test. It is Unknown until a plan is
	// compiled.
	Self Truth

	zone *time.Location
	// These texts are the same for equal entries: all but the bounds, what it selects, and where.
	canon, selected, filtered string
}

// PastCalls selects past calls. All lists that are not empty must match; Targets, Servers and
// ServerRefs are globs.
type PastCalls struct {
	Kinds      []string
	Targets    []string
	Servers    []string
	ServerRefs []string
}

// PastState is a state that a call went through.
type PastState string

// The states of past calls.
const (
	PastAsked     PastState = "asked"
	PastApproved  PastState = "approved"
	PastDenied    PastState = "denied"
	PastExpired   PastState = "expired"
	PastRan       PastState = "ran"
	PastSucceeded PastState = "succeeded"
	PastFailed    PastState = "failed"
)

// PastStates lists the states of past calls.
func PastStates() []PastState {
	return []PastState{PastAsked, PastApproved, PastDenied, PastExpired, PastRan, PastSucceeded, PastFailed}
}

// Measure is a number or a fact that a test of the history computes from the past calls that it selects.
type Measure string

// The measures.
const (
	Count    Measure = "count"
	Sum      Measure = "sum"
	Distinct Measure = "distinct"
	Existing Measure = "exists"
)

// Period is a period of the calendar in a zone.
type Period string

// The periods. A week starts on Monday.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
)

// IsOrder reports whether the operator compares with a bound: gt, gte, lt or lte.
func (op Op) IsOrder() bool { return slices.Contains(orders, op) }

// Compare compares a number with the bounds, of which is known only that it is between two others. Each of
// these is given by a function that compares it with a bound. The result is Unknown if a bound is
// between them.
func (h *History) Compare(low, high func(bound value.Num) int) Truth {
	result := True
	for i := range h.Bounds {
		op, bound := h.Bounds[i].Op, h.Bounds[i].Operand.Num
		switch below, above := passes(op, low(bound)), passes(op, high(bound)); {
		case below != above:
			result = min(result, Unknown)
		case !below:
			return False
		}
	}
	return result
}

// passes reports whether a comparison holds, given how the number compares with the bound.
func passes(op Op, order int) bool {
	switch op {
	case Gt:
		return order > 0
	case Gte:
		return order >= 0
	case Lt:
		return order < 0
	}
	return order <= 0
}

// Included reports whether the call that is decided counts itself, if the test selects it.
func (h *History) Included() bool {
	return (h.State == PastRan || h.State == PastAsked) && h.Measure != Existing
}

// ReadsArguments reports whether the test is unknown for calls without readable arguments. It is meant
// for tests of a compiled plan.
func (h *History) ReadsArguments() bool {
	return h.Currency != "" || h.Path != "" && h.Included() && h.Self == True ||
		slices.ContainsFunc(h.By, func(key string) bool { return strings.HasPrefix(key, "args.") })
}

// Start returns the beginning of the interval of past calls at a moment. Calls at that instant
// count if included is true. Calls after the moment never count.
func (h *History) Start(now time.Time) (start time.Time, included bool) {
	if h.Since == "" {
		return now.Add(-h.Within), false
	}
	return periodStart(h.Since, now, h.zone), true
}

// periodStart returns the first instant of the local period. If clocks change, that is the first
// instant of the segment in which the wall clock reaches the beginning of the period first.
func periodStart(p Period, now time.Time, zone *time.Location) time.Time {
	local := now.In(zone)
	year, month, day := local.Date()
	hour := 0
	switch p {
	case Hour:
		hour = local.Hour()
	case Week:
		day -= (int(local.Weekday()) + 6) % 7
	case Month:
		day = 1
	}
	wall := time.Date(year, month, day, hour, 0, 0, 0, time.UTC) // the wall clock, read as UTC
	first := now
	for at := now; ; {
		start, end := at.In(zone).ZoneBounds()
		_, offset := at.In(zone).Zone()
		reached := wall.Add(-time.Duration(offset) * time.Second)
		if reached.Before(start) {
			reached = start
		}
		if (end.IsZero() || reached.Before(end)) && reached.Before(first) {
			first = reached
		}
		// Two days are more than clocks ever change by.
		if start.IsZero() || start.Before(wall.Add(-48*time.Hour)) {
			return first
		}
		at = start.Add(-1)
	}
}

// Window describes the interval: "24h" or "day Europe/Berlin".
func (h *History) Window() string {
	if h.Since == "" {
		return FormatDuration(h.Within)
	}
	return string(h.Since) + " " + h.Zone
}

// String describes the test: "sum of amount over ran pay, refund in 24h by agent gt 20000".
func (h *History) String() string {
	text := h.measured()
	switch h.Measure {
	case Existing:
		if !h.Exists {
			return "no " + text
		}
		return text
	default:
		return text + " " + textsOfTests(h.Bounds, len(h.Bounds))
	}
}

func (h *History) measured() string {
	what := string(h.Measure)
	switch h.Measure {
	case Existing:
		what = "call"
	case Sum, Distinct:
		what += " of " + h.Path
	}
	if h.Currency != "" {
		what += " in the same " + h.Currency
	}
	what += " over " + string(h.State)
	if h.Of != nil {
		var parts []string
		for _, list := range [][]string{h.Of.Kinds, h.Of.Targets, h.Of.Servers, h.Of.ServerRefs} {
			if len(list) > 0 {
				parts = append(parts, strings.Join(list, ", "))
			}
		}
		if len(parts) == 0 {
			parts = []string{"any call"}
		}
		what += " " + strings.Join(parts, " of ")
	}
	if h.Since == "" {
		what += " in " + h.Window()
	} else {
		what += " since the start of the " + h.Window()
	}
	if len(h.By) > 0 {
		what += " by " + strings.Join(h.By, ", ")
	}
	if h.Where != nil {
		var tests []string
		for i := range h.Where.Matchers {
			m := &h.Where.Matchers[i]
			tests = append(tests, m.Key+" "+describe(m))
		}
		what += " where " + strings.Join(tests, ", ")
	}
	return what
}

// Past answers tests of the past calls for one call.
type Past interface {
	Look(t *PastTest) PastResult
}

// PastResult is the result of a test of the past calls.
type PastResult struct {
	Truth   Truth
	Why     string // one of the Why constants
	Figures *Figures
}

// Figures are the numbers that a test of the past calls compared.
type Figures struct {
	Measure  Measure `json:"measure"`
	Of       string  `json:"of,omitempty"`       // the argument of sum and distinct
	Used     string  `json:"used"`               // by past calls, a decimal number
	This     string  `json:"this,omitempty"`     // what this call adds; empty if it does not count
	Bound    string  `json:"bound,omitempty"`    // such as "gt 20000"; empty for exists
	Currency string  `json:"currency,omitempty"` // the code, if only one currency counts
	Window   string  `json:"window"`             // such as "24h" or "day Europe/Berlin"
	Doubtful int     `json:"doubtful,omitempty"` // past calls of which it is not known whether they count
}

// String describes the numbers: "18400 EUR in 24h, this call 2500".
func (f *Figures) String() string {
	text := f.Used
	if f.Currency != "" {
		text += " " + f.Currency
	}
	if strings.Contains(f.Window, " ") {
		text += " since the start of the " + f.Window
	} else {
		text += " in " + f.Window
	}
	if f.This != "" {
		text += ", this call " + f.This
	}
	if f.Doubtful > 0 {
		text += fmt.Sprintf(", %d past calls in doubt", f.Doubtful)
	}
	return text
}

// BoundText describes the comparisons: "gt 20000".
func (h *History) BoundText() string { return textsOfTests(h.Bounds, len(h.Bounds)) }

// UpperCode returns the code of a currency in capitals, as money compares it. Only ASCII letters
// change.
func UpperCode(code string) string { return upperCode(code) }

// PastTest is a compiled History. It is safe for concurrent use.
type PastTest struct {
	*History
	where *Program
	args  *value.Shape
	sem   Semantics
}

// Key returns the key of the test in the documents of an analyzer.
func (t *PastTest) Key() string { return t.under(t.sem).key() }

// Wanted returns the truth of the test for a value in a document of an analyzer.
func (t *PastTest) Wanted(holds bool) Truth {
	return truthOf(holds == (t.Measure != Existing || t.Exists))
}

// newPastTest compiles a test of the past calls.
func newPastTest(h *History, sem Semantics) *PastTest {
	t := &PastTest{History: h, sem: sem}
	if h.Where != nil && len(h.Where.Matchers) > 0 {
		c := NewCompiler(sem)
		t.where = c.Add(Governance, &Expr{Groups: []Group{*h.Where}})
		t.args, _ = c.Shapes()
	}
	return t
}

// Matches evaluates `where` on the arguments of a call. given is false for a call that has no
// readable arguments, such as a delegation.
func (t *PastTest) Matches(args value.Value, given bool) Truth {
	if t.where == nil {
		return True
	}
	var v View
	if !given || t.args.Fill(args, value.Limits{MaxBytes: 1 << 30}, &v.Args) != nil {
		return Unknown
	}
	return t.where.Eval(&v)
}

// PastTests returns the tests of past calls of a condition.
func (p *Program) PastTests() []*PastTest {
	var out []*PastTest
	for _, g := range p.groups {
		for i := range g {
			if g[i].past != nil {
				out = append(out, g[i].past)
			}
		}
	}
	return out
}

// look evaluates a test of the past calls.
func (t *PastTest) look(v *View) PastResult {
	if v.Past == nil {
		return PastResult{Truth: Unknown, Why: WhyNoHistory}
	}
	return v.Past.Look(t)
}

// pastInput is the first segment of the places that hold tests of the past calls in the documents of
// an analyzer: true or false, or absent if the test is unknown.
const pastInput = "parent.history"

// HistoryPlace returns the place of a test of the past calls in the documents of an analyzer.
func HistoryPlace(h *History, sem Semantics) []string { return []string{pastInput, h.under(sem).key()} }

// under returns the test with texts that differ if other semantics could give it another result.
func (h *History) under(sem Semantics) *History {
	if h.filtered == "" || sem == (Semantics{}) {
		return h
	}
	out := *h
	text := fmt.Sprintf(" %+v", sem)
	out.canon, out.filtered = h.canon+text, h.filtered+text
	return &out
}

// key returns a text that is the same for tests that are always equally true.
func (h *History) key() string {
	bounds := make([]string, len(h.Bounds))
	for i := range h.Bounds {
		bounds[i] = string(h.Bounds[i].Op) + " " + h.Bounds[i].Operand.Num.Canonical()
	}
	return h.canon + " " + strings.Join(sorted(bounds), " and ") + h.Context
}

// historyBox returns the calls for which a test of the past calls reaches a level.
func (q *question) historyBox(h *History, level Truth) box {
	d := only(atomTrue)
	if h.Measure == Existing && !h.Exists {
		d = only(atomFalse)
	}
	if level == Unknown {
		d.atoms |= atomAbsent
	}
	place := q.place(HistoryPlace(h, q.reading.sem))
	if q.pasts == nil {
		q.pasts = map[int]*History{}
	}
	q.pasts[place] = h.under(q.reading.sem)
	return box{{place, d}}
}
