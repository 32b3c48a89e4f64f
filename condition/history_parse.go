package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// histories reads the `history` of a group.
func (p *parser) histories(f *yamldoc.Field) []Matcher {
	var out []Matcher
	if f.Value.Kind != yamldoc.Sequence || len(f.Value.Items) == 0 {
		p.historyError(f.Value.Range, "history is a list of tests of past calls", "[{within: 24h, count: {gt: 100}}]")
		m := Matcher{Key: "history", KeyRange: f.Key.Range, Range: f.Value.Range}
		m.Tests = []Test{unreadableTest(f.Value.Range)}
		return []Matcher{m}
	}
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

func (p *parser) historyError(at diag.Range, message, expected string) {
	p.findings = append(p.findings, yamldoc.Stop(ruleHistory, at, message, expected))
}

// historyReader reads one entry of `history`.
type historyReader struct {
	*parser
	h     *History
	sound bool
}

func (r *historyReader) wrong(n *yamldoc.Node, message, expected string) {
	r.historyError(n.Range, message, expected)
	r.sound = false
}

// history reads one entry. It returns false if it reports an error.
func (p *parser) history(n *yamldoc.Node) (*History, bool) {
	r := historyReader{parser: p, h: &History{State: PastRan, Self: Unknown, Range: n.Range}, sound: true}
	h := r.h
	if n.Kind != yamldoc.Mapping {
		r.wrong(n, "a test of past calls has fields", "{within: 24h, count: {gt: 100}}")
		return h, false
	}
	var measures []string
	for i := range n.Fields {
		key, v := n.Fields[i].Key, n.Fields[i].Value
		switch key.Text {
		case "of":
			r.selector(v)
		case "state":
			h.State = PastState(v.Text)
			if v.Kind != yamldoc.String || !slices.Contains(PastStates(), h.State) {
				r.wrong(v, fmt.Sprintf("%q is no state of a call", v.Text),
					"ran, succeeded, failed, asked, approved, denied or expired")
			}
		case "within", "since", "zone":
		case "by":
			r.keys(v)
		case "where":
			r.where(v)
		case "currency":
			h.Currency = r.path(v)
		case string(Count), string(Sum), string(Distinct), string(Existing):
			measures = append(measures, key.Text)
			r.measure(Measure(key.Text), v)
		default:
			r.wrong(key, fmt.Sprintf("unknown field %q in history", key.Text),
				"of, state, within, since, zone, by, where, currency, count, sum, distinct or exists")
		}
	}
	r.window(n)
	if len(measures) != 1 {
		r.wrong(n, "a test of past calls needs one of count, sum, distinct and exists", "count: {gt: 100}")
	}
	if h.Currency != "" && h.Measure != Sum {
		r.wrong(n.Get("currency"), "currency is only for sum", "sum: {of: amount, gt: 1000}")
	}
	h.canonize(n.Get("where"))
	return h, r.sound
}

func (r *historyReader) window(n *yamldoc.Node) {
	within, since, zone := n.Get("within"), n.Get("since"), n.Get("zone")
	switch {
	case (within == nil) == (since == nil):
		r.wrong(n, "a test of past calls needs either within or since", "within: 24h")
	case within != nil:
		if zone != nil {
			r.wrong(zone, "zone is only for since", "since: day")
		}
		d, err := DurationOf(within.Text)
		if within.Kind != yamldoc.String || err != nil {
			r.wrong(within, fmt.Sprintf("%q is no duration between a second and a year", within.Text),
				"a duration with its unit, such as 90s, 30m or 24h")
		}
		r.h.Within = d
	default:
		r.h.Since = Period(since.Text)
		if since.Kind != yamldoc.String || !slices.Contains([]Period{Hour, Day, Week, Month}, r.h.Since) {
			r.wrong(since, fmt.Sprintf("%q is no period", since.Text), "hour, day, week or month")
		}
		if zone == nil {
			r.wrong(since, "since needs the zone of its calendar", "zone: Europe/Berlin")
			return
		}
		var err error
		if r.h.zone, err = zoneOf(zone.Text); zone.Kind != yamldoc.String || err != nil {
			r.wrong(zone, fmt.Sprintf("%q: no zone has that name", zone.Text),
				"a name of the IANA database, such as Europe/Berlin")
		}
		r.h.Zone = zone.Text
	}
}

func (r *historyReader) selector(n *yamldoc.Node) {
	r.h.Of = &PastCalls{}
	if n.Kind != yamldoc.Mapping {
		r.wrong(n, "of selects past calls", "{targets: [pay]}")
	}
	lists := map[string]*[]string{
		"kinds": &r.h.Of.Kinds, "targets": &r.h.Of.Targets,
		"servers": &r.h.Of.Servers, "server_refs": &r.h.Of.ServerRefs,
	}
	for i := range n.Fields {
		key, v := n.Fields[i].Key, n.Fields[i].Value
		list := lists[key.Text]
		if list == nil {
			r.wrong(key, fmt.Sprintf("unknown field %q in of", key.Text), "kinds, targets, servers or server_refs")
			continue
		}
		*list = r.texts(v)
		for _, kind := range *list {
			if key.Text == "kinds" && !slices.Contains([]string{"tool", "mcp_tool", "skill", "delegation"}, kind) {
				r.wrong(v, fmt.Sprintf("%q is no kind of call", kind), "tool, mcp_tool, skill or delegation")
			}
		}
	}
}

// texts reads a list of texts that is not empty.
func (r *historyReader) texts(n *yamldoc.Node) []string {
	var out []string
	for _, item := range n.Items {
		if item.Kind != yamldoc.String || item.Text == "" {
			r.wrong(item, "expected a text", "a list of texts")
		}
		out = append(out, item.Text)
	}
	if n.Kind != yamldoc.Sequence || len(out) == 0 {
		r.wrong(n, "the list needs at least one entry", "a list of texts")
	}
	return out
}

func (r *historyReader) keys(n *yamldoc.Node) {
	r.h.By = r.texts(n)
	for i, key := range r.h.By {
		path, argument := strings.CutPrefix(key, "args.")
		known := slices.Contains([]string{"agent", "principal", "session", "target"}, key)
		if !known && !(argument && path != "" && !strings.HasPrefix(path, "parent.")) {
			r.wrong(n.Items[i], fmt.Sprintf("%q is no key of past calls", key),
				"agent, principal, session, target or args.PATH")
		}
	}
}

// path reads the name of an argument.
func (r *historyReader) path(n *yamldoc.Node) string {
	if n.Kind != yamldoc.String || n.Text == "" || strings.HasPrefix(n.Text, "parent.") {
		r.wrong(n, fmt.Sprintf("%q is no argument of a past call", n.Text), "the name of an argument, such as amount")
	}
	return n.Text
}

func (r *historyReader) where(n *yamldoc.Node) {
	g := Group{Range: n.Range}
	if n.Kind != yamldoc.Mapping {
		r.wrong(n, "where tests the arguments of past calls", "{amount: {gt: 100}}")
	}
	for i := range n.Fields {
		key := n.Fields[i].Key
		if strings.HasPrefix(key.Text, "parent.") {
			r.wrong(key, "where reads the arguments of past calls, which have no parent", "the name of an argument")
		}
		before := len(r.findings)
		g.Matchers = append(g.Matchers, r.matcher(&n.Fields[i]))
		r.sound = r.sound && !yamldoc.Stops(r.findings[before:])
	}
	r.h.Where = &g
}

func (r *historyReader) measure(m Measure, n *yamldoc.Node) {
	r.h.Measure = m
	if m == Existing {
		if n.Kind != yamldoc.Bool {
			r.wrong(n, "exists is true or false", "exists: true")
		}
		r.h.Exists = n.Bool
		return
	}
	if n.Kind != yamldoc.Mapping {
		r.wrong(n, string(m)+" needs a comparison", "{gt: 100}")
	}
	for i := range n.Fields {
		key, v := n.Fields[i].Key, n.Fields[i].Value
		switch {
		case key.Text == "of" && m != Count:
			r.h.Path = r.path(v)
		case !slices.Contains(orders, Op(key.Text)):
			r.wrong(key, fmt.Sprintf("unknown field %q in %s", key.Text, m), "of, gt, gte, lt or lte")
		case v.Kind != yamldoc.Number || !v.Finite:
			r.wrong(v, string(m)+" is compared with numbers", string(Op(key.Text))+": 100")
		default:
			s := Scalar{Kind: value.Number, Num: v.Num, Range: v.Range}
			r.h.Bounds = append(r.h.Bounds, Test{Op: Op(key.Text), Operand: s, Range: v.Range})
		}
	}
	if r.sound && len(r.h.Bounds) == 0 {
		r.wrong(n, string(m)+" needs a comparison", "gt: 100")
	}
	if m != Count && n.Get("of") == nil {
		r.wrong(n, string(m)+" needs the argument of past calls", "of: amount")
	}
}

// canonize sets the texts that are the same for equal entries.
func (h *History) canonize(where *yamldoc.Node) {
	normal := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	h.By = normal(h.By)
	if h.Of != nil {
		h.selected = fmt.Sprintf("%q %q %q %q", normal(h.Of.Kinds), normal(h.Of.Targets), normal(h.Of.Servers),
			normal(h.Of.ServerRefs))
	}
	if where != nil && len(where.Fields) > 0 {
		if v, err := value.FromGo(where.Any(), value.Limits{MaxBytes: 1 << 30}); err == nil {
			h.filtered = string(v.AppendCanonical(nil))
		}
	}
	h.canon = fmt.Sprintf("%s %q %q %s %s %q of %s where %s",
		h.Measure, h.Path, h.Currency, h.State, h.Window(), h.By, h.selected, h.filtered)
}
