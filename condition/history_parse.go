package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// histories reads the `history` of a group.
func (p *parser) histories(f *yamldoc.Field) []Matcher {
	if len(f.Value.Items) == 0 {
		p.refuse(f.Value.Range)
		unreadable := []Test{unreadableTest(f.Value.Range)}
		return []Matcher{{Key: "history", KeyRange: f.Key.Range, Range: f.Value.Range, Tests: unreadable}}
	}
	var out []Matcher
	for _, item := range f.Value.Items {
		m := Matcher{Key: "history", KeyRange: f.Key.Range, Range: item.Range}
		if h, ok := p.history(item); ok {
			m.History = h
		} else {
			m.Tests = []Test{unreadableTest(item.Range)}
		}
		out = append(out, m)
	}
	return out
}

// historyReader reads one entry of `history`.
type historyReader struct {
	*parser
	h     *History
	sound bool
}

// must reports a message about a node unless a condition holds.
func (r *historyReader) must(holds bool, n *yamldoc.Node, message, expected string) {
	if !holds {
		r.findings = append(r.findings, yamldoc.Stop(ruleHistory, n.Range, message, expected))
		r.sound = false
	}
}

// form refuses a node unless it has the form that the JSON Schema of policies demands.
func (r *historyReader) form(holds bool, n *yamldoc.Node) {
	if !holds {
		r.refuse(n.Range)
		r.sound = false
	}
}

// history reads one entry. It returns false if it reports an error.
func (p *parser) history(n *yamldoc.Node) (*History, bool) {
	r := historyReader{parser: p, h: &History{State: PastRan, Self: Unknown, Range: n.Range}, sound: true}
	h, measures := r.h, 0
	r.form(n.Kind == yamldoc.Mapping, n)
	for i := range n.Fields {
		key, v := n.Fields[i].Key, n.Fields[i].Value
		switch key.Text {
		case "of":
			r.selector(v)
		case "state":
			h.State = PastState(v.Text)
			r.form(v.Kind == yamldoc.String && slices.Contains(PastStates(), h.State), v)
		case "within", "since", "zone":
			r.form(v.Kind == yamldoc.String, v)
		case "by":
			r.keys(v)
		case "where":
			r.where(v)
		case "currency":
			h.Currency = r.path(v)
		case string(Count), string(Sum), string(Distinct), string(Existing):
			measures++
			r.measure(Measure(key.Text), v)
		default:
			r.form(false, key)
		}
	}
	r.window(n)
	r.must(measures == 1, n, "a test of past calls needs one of count, sum, distinct and exists", "count: {gt: 100}")
	r.must(h.Currency == "" || h.Measure == Sum, n, "currency is only for sum", "sum: {of: amount, gt: 1000}")
	h.canonize()
	return h, r.sound
}

func (r *historyReader) window(n *yamldoc.Node) {
	within, since, zone := n.Get("within"), n.Get("since"), n.Get("zone")
	var err error
	switch {
	case (within == nil) == (since == nil):
		r.must(false, n, "a test of past calls needs either within or since", "within: 24h")
	case within != nil:
		r.must(zone == nil, n, "zone is only for since", "since: day")
		r.h.Within, err = DurationOf(within.Text)
		r.must(err == nil, within, fmt.Sprintf("%q is no duration between a second and a year", within.Text),
			"a duration with its unit, such as 90s, 30m or 24h")
	case zone == nil:
		r.must(false, since, "since needs the zone of its calendar", "zone: Europe/Berlin")
	default:
		r.h.Since, r.h.Zone = Period(since.Text), zone.Text
		r.form(slices.Contains([]Period{Hour, Day, Week, Month}, r.h.Since), since)
		r.h.zone, err = zoneOf(zone.Text)
		r.must(err == nil, zone, fmt.Sprintf("%q: no zone has that name", zone.Text),
			"a name of the IANA database, such as Europe/Berlin")
	}
}

func (r *historyReader) selector(n *yamldoc.Node) {
	r.h.Of = &PastCalls{}
	r.form(n.Kind == yamldoc.Mapping, n)
	for i := range n.Fields {
		list := r.texts(n.Fields[i].Value)
		switch n.Fields[i].Key.Text {
		case "kinds":
			r.h.Of.Kinds = list
		case "targets":
			r.h.Of.Targets = list
		case "servers":
			r.h.Of.Servers = list
		case "server_refs":
			r.h.Of.ServerRefs = list
		default:
			r.form(false, n.Fields[i].Key)
		}
	}
}

// texts reads a list of texts that is not empty.
func (r *historyReader) texts(n *yamldoc.Node) []string {
	r.form(n.Kind == yamldoc.Sequence && len(n.Items) > 0, n)
	var out []string
	for _, item := range n.Items {
		r.form(item.Kind == yamldoc.String, item)
		out = append(out, item.Text)
	}
	return out
}

func (r *historyReader) keys(n *yamldoc.Node) {
	r.h.By = r.texts(n)
	for i, key := range r.h.By {
		path, argument := strings.CutPrefix(key, "args.")
		known := slices.Contains([]string{"agent", "principal", "session", "target"}, key)
		r.must(known || argument && path != "" && !strings.HasPrefix(path, "parent."), n.Items[i],
			fmt.Sprintf("%q is no key of past calls", key), "agent, principal, session, target or args.PATH")
	}
}

// path reads the name of an argument.
func (r *historyReader) path(n *yamldoc.Node) string {
	r.must(n.Kind == yamldoc.String && n.Text != "" && !strings.HasPrefix(n.Text, "parent."), n,
		fmt.Sprintf("%q is no argument of a past call", n.Text), "the name of an argument, such as amount")
	return n.Text
}

func (r *historyReader) where(n *yamldoc.Node) {
	r.h.Where = &Group{Range: n.Range}
	r.form(n.Kind == yamldoc.Mapping, n)
	before := len(r.findings)
	for i := range n.Fields {
		key := n.Fields[i].Key
		r.must(!strings.HasPrefix(key.Text, "parent."), key,
			"where reads the arguments of past calls, which have no parent", "the name of an argument")
		r.h.Where.Matchers = append(r.h.Where.Matchers, r.matcher(&n.Fields[i]))
	}
	stops := yamldoc.Stops(r.findings[before:])
	r.sound = r.sound && !stops
	v, err := value.FromGo(n.Any(), value.Limits{MaxBytes: 1 << 30})
	r.form(err == nil || stops, n)
	if len(n.Fields) > 0 {
		r.h.filtered = string(v.AppendCanonical(nil))
	}
}

func (r *historyReader) measure(m Measure, n *yamldoc.Node) {
	r.h.Measure = m
	if m == Existing {
		r.form(n.Kind == yamldoc.Bool, n)
		r.h.Exists = n.Bool
		return
	}
	for i := range n.Fields {
		key, v := n.Fields[i].Key, n.Fields[i].Value
		if key.Text == "of" && m != Count {
			r.h.Path = r.path(v)
			continue
		}
		op := Op(key.Text)
		r.form(op.IsOrder(), key)
		r.must(v.Kind == yamldoc.Number && v.Finite, v, string(m)+" is compared with numbers", "gt: 100")
		s := Scalar{Kind: value.Number, Num: v.Num, Range: v.Range}
		r.h.Bounds = append(r.h.Bounds, Test{Op: op, Operand: s, Range: v.Range})
	}
	r.must(len(r.h.Bounds) > 0, n, string(m)+" needs a comparison", "gt: 100")
	r.form(m == Count || n.Get("of") != nil, n)
}

// canonize sets the texts that are the same for equal entries.
func (h *History) canonize() {
	normal := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	h.By = normal(h.By)
	if h.Of != nil {
		h.selected = fmt.Sprintf("%q %q %q %q", normal(h.Of.Kinds), normal(h.Of.Targets), normal(h.Of.Servers),
			normal(h.Of.ServerRefs))
	}
	h.canon = fmt.Sprintf("%s %q %q %s %s %q of %s where %s",
		h.Measure, h.Path, h.Currency, h.State, h.Window(), h.By, h.selected, h.filtered)
}
