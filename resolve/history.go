package resolve

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// pastView answers tests of the past calls for one call (docs/contracts/policy.md).
type pastView struct {
	plan   *Plan
	call   *Call
	this   PastCall
	called []policy.Called // as which selectors see the call
	args   value.Value
	given  condition.Truth // see PastCall.values
	past   []pastValues    // by the index of Call.History; loaded by the first test
}

// pastValues are the decoded parts of a past call.
type pastValues struct {
	args   value.Value
	given  condition.Truth
	called []policy.Called
	target string
}

// history returns what answers the tests of past calls of a target, or nil if it has none.
func (p *Plan) history(c *Call, t *target) condition.Past {
	if !t.pasts {
		return nil
	}
	view := &pastView{plan: p, call: c, this: p.past(c)}
	view.args, view.given = p.values(c)
	b := builder{plan: p, gates: t.gates}
	for _, at := range t.gates {
		view.called = append(view.called, b.called(at))
	}
	return view
}

// tally is the result of going through the past calls for one test.
type tally struct {
	count    int     // past calls that count
	doubtful int     // past calls of which it is not known whether they count
	sum      decimal // of the past calls that count
	down, up decimal // what the doubtful ones may add
	values   map[string]bool
	maybe    map[string]bool
	unknown  bool // a past call that may count lacks a value
}

// Look evaluates a test. It is three-valued as the contract describes.
func (v *pastView) Look(t *condition.PastTest) condition.PastResult {
	switch {
	case v.call.At.IsZero():
		return condition.PastResult{Truth: condition.Unknown, Why: condition.WhyNoTime}
	case !v.call.HistoryKnown || len(v.call.History) > MostPast:
		return condition.PastResult{Truth: condition.Unknown, Why: condition.WhyNoHistory}
	}
	unknown := condition.PastResult{Truth: condition.Unknown, Why: condition.WhyHistory}
	group := make([]string, len(t.By))
	for i, by := range t.By {
		text, found := v.this.key(by, v.args, v.given)
		if found != condition.True {
			return unknown
		}
		group[i] = text
	}
	currency, ok := "", true
	if t.Currency != "" {
		if currency, ok = currencyOf(v.args, v.given, t.Currency); !ok {
			return unknown
		}
	}
	included := t.Included() && (t.Of == nil || slices.ContainsFunc(v.called, matchOf(t.Of).Target)) &&
		t.Matches(v.args, v.given == condition.True) != condition.False
	own, found := value.Value{}, condition.True
	if included && t.Path != "" {
		own, found = argumentOf(v.args, v.given, t.Path)
		if found != condition.True || t.Measure == condition.Sum && own.Kind != value.Number {
			return unknown
		}
	}

	out := tally{values: map[string]bool{}, maybe: map[string]bool{}}
	v.add(t, group, currency, &out)
	result := out.result(t, included, own)
	if result.Figures != nil {
		result.Figures.Currency = currency
	}
	return result
}

// add goes through the past calls.
func (v *pastView) add(t *condition.PastTest, group []string, currency string, out *tally) {
	if v.past == nil {
		v.load()
	}
	start, atStart := t.Start(v.call.At)
	match, target := (*policy.Match)(nil), v.this.target()
	if t.Of != nil {
		match = matchOf(t.Of)
	}
	for i := range v.call.History {
		past, read := &v.call.History[i], &v.past[i]
		if past.At.Compare(v.call.At) > 0 || past.At.Before(start) || past.At.Equal(start) && !atStart ||
			!slices.Contains(past.States, t.State) {
			continue
		}
		if match == nil && read.target != target || match != nil && !slices.ContainsFunc(read.called, match.Target) {
			continue
		}
		selected := condition.True
		for i, by := range t.By {
			selected = min(selected, v.sameGroup(past, read, by, group[i]))
		}
		if selected != condition.False {
			selected = min(selected, t.Matches(read.args, read.given == condition.True))
		}
		if selected == condition.False {
			continue
		}
		if t.Currency != "" {
			code, ok := currencyOf(read.args, read.given, t.Currency)
			if !ok {
				out.unknown = true
				continue
			}
			if code != currency {
				continue
			}
		}
		out.one(t, read, selected)
	}
}

// load decodes the past calls.
func (v *pastView) load() {
	v.past = make([]pastValues, len(v.call.History))
	for i := range v.call.History {
		past, read := &v.call.History[i], &v.past[i]
		read.args, read.given = past.values()
		read.called = v.plan.calledBefore(past)
		read.target = past.target()
	}
}

// sameGroup reports whether a past call has this call's value.
func (v *pastView) sameGroup(past *PastCall, read *pastValues, by, wanted string) condition.Truth {
	if by == "agent" && past.AgentID == "" {
		return condition.True
	}
	text, found := past.key(by, read.args, read.given)
	if found == condition.True && text != wanted {
		return condition.False
	}
	return found
}

// one adds a past call that counts, or may count.
func (y *tally) one(t *condition.PastTest, read *pastValues, selected condition.Truth) {
	certain := selected == condition.True
	if certain {
		y.count++
	} else {
		y.doubtful++
	}
	if t.Path == "" {
		return
	}
	v, found := argumentOf(read.args, read.given, t.Path)
	switch {
	case found != condition.True, t.Measure == condition.Sum && v.Kind != value.Number:
		y.unknown = true
	case t.Measure == condition.Distinct && certain:
		y.values[string(v.AppendCanonical(nil))] = true
	case t.Measure == condition.Distinct:
		y.maybe[string(v.AppendCanonical(nil))] = true
	case certain:
		y.sum = y.sum.add(decimalOf(v.Num))
	default:
		if n := decimalOf(v.Num); n.sign() < 0 {
			y.down = y.down.add(n)
		} else {
			y.up = y.up.add(n)
		}
	}
}

// result compares the tally with the bounds of a test.
func (y *tally) result(t *condition.PastTest, included bool, own value.Value) condition.PastResult {
	f := &condition.Figures{Measure: t.Measure, Of: t.Path, Window: t.Window(), Doubtful: y.doubtful}
	f.Bound = t.BoundText()
	out := condition.PastResult{Why: condition.WhyMatched, Figures: f}
	var low, high decimal // of past calls; this call is added below
	this := decimalOf(value.IntNum(1))
	switch t.Measure {
	case condition.Existing:
		f.Used = decimalOf(value.IntNum(int64(y.count))).String()
		out.Truth = condition.False
		if y.count > 0 {
			out.Truth = condition.True
		} else if y.doubtful > 0 {
			out.Truth = condition.Unknown
		}
		if !t.Exists {
			out.Truth = condition.True - out.Truth
		}
		if out.Truth == condition.Unknown {
			out.Why = condition.WhyHistory
		}
		return out
	case condition.Count:
		low, high = decimalOf(value.IntNum(int64(y.count))), decimalOf(value.IntNum(int64(y.count+y.doubtful)))
		f.Used = low.String()
	case condition.Distinct:
		used := len(y.values)
		if included {
			key := string(own.AppendCanonical(nil))
			this = decimalOf(value.IntNum(0))
			if !y.values[key] {
				this = decimalOf(value.IntNum(1))
			}
			delete(y.maybe, key)
		}
		more := 0
		for key := range y.maybe {
			if !y.values[key] {
				more++
			}
		}
		low, high = decimalOf(value.IntNum(int64(used))), decimalOf(value.IntNum(int64(used+more)))
		f.Used = low.String()
	case condition.Sum:
		if included {
			this = decimalOf(own.Num)
		}
		low, high = y.sum.add(y.down), y.sum.add(y.up)
		f.Used = y.sum.String()
	}
	if included {
		low, high = low.add(this), high.add(this)
		f.This = this.String()
	}
	out.Truth = t.Compare(low.order, high.order)
	if y.unknown {
		out.Truth = condition.Unknown
	}
	if out.Truth == condition.Unknown {
		out.Why = condition.WhyHistory
	}
	return out
}

// currencyOf returns the text of a currency in capitals.
func currencyOf(args value.Value, given condition.Truth, path string) (string, bool) {
	v, found := argumentOf(args, given, path)
	if found != condition.True || v.Kind != value.String {
		return "", false
	}
	return condition.UpperCode(v.Text), true
}
