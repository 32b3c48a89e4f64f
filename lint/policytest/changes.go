package policytest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// changes collects the mutants of one file.
type changes struct {
	file  string
	root  *yamldoc.Node
	entry string // that is being changed
	out   []Mutant
}

// change replaces a value, or a key, by another one.
func (c *changes) change(at, with *yamldoc.Node, what string) {
	c.out = append(c.out, Mutant{
		File:  c.file,
		Range: at.Range,
		What:  what,
		root:  c.root,
		at:    at,
		with:  with,
		entry: c.entry,
	})
}

// drop leaves a value out.
func (c *changes) drop(at *yamldoc.Node, what string) {
	c.change(at, nil, what+" is left out")
}

// becomes replaces the text of a scalar.
func (c *changes) becomes(at *yamldoc.Node, text string) {
	c.change(at, str(text), at.Text+" becomes "+text)
}

func str(text string) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.String, Text: text}
}

func number(n value.Num) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Text: n.String(), Num: n, Finite: true}
}

func boolean(b bool) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Bool, Text: strconv.FormatBool(b), Bool: b}
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}

	return n.Items
}

// agent changes the approvals and allow-lists of an agent, and which
// policies it names.
func (c *changes) agent() {
	space := c.root.Get("action_space")
	for _, list := range []string{"local_tools", "mcp_servers", "local_agents", "remote_agents"} {
		for _, entry := range items(space.Get(list)) {
			c.entry = entry.Get("alias").Text
			c.approval(entry.Get("approval"), true)
			for _, key := range []string{"allowed_tools", "allowed_skills"} {
				c.allowed(entry.Get(key))
			}
		}
	}

	c.entry = ""
	for _, ref := range items(c.root.Get("constraints").Get("governance_policies")) {
		c.drop(ref, "the reference to "+ref.Get("policy_ref").Text)
	}
}

// allowed changes an allow-list.
func (c *changes) allowed(n *yamldoc.Node) {
	if n == nil {
		return
	}
	c.drop(n, "the allow-list")
	for _, item := range n.Items {
		c.drop(item, "an entry of the allow-list")
		c.approval(item.Get("approval"), true)
	}
}

// approval changes an approval. An approval in an agent's file may also be removed.
func (c *changes) approval(n *yamldoc.Node, lift bool) {
	if n == nil {
		return
	}
	never := n.Kind == yamldoc.Bool && !n.Bool
	if never {
		c.change(n, boolean(true), "false becomes true")
	}
	if lift {
		c.drop(n, "the approval")
		if !never {
			c.change(n, boolean(false), "the approval becomes false")
		}
	}

	if cond := n.Get("condition"); cond != nil {
		c.drop(cond, "the condition")
		c.condition(cond)
	}
	if message := n.Get("message_template"); message != nil {
		c.drop(message, "the message")
		c.message(message)
	}
}

// message takes each variable out of a message.
func (c *changes) message(n *yamldoc.Node) {
	for rest, done := n.Text, ""; ; {
		before, after, open := strings.Cut(rest, "{{")
		name, next, closed := strings.Cut(after, "}}")
		if !open || !closed {
			return
		}
		done += before
		c.change(n, str(done+next), "{{"+name+"}} is left out of the message")
		done += "{{" + name + "}}"
		rest = next
	}
}

func (c *changes) condition(n *yamldoc.Node) {
	groups := []*yamldoc.Node{n}
	if n.Kind == yamldoc.Sequence {
		groups = n.Items
		for _, g := range groups {
			if len(groups) > 1 {
				c.drop(g, "the group")
			}
		}
	}

	for _, g := range groups {
		if at := g.Get("time"); at != nil {
			c.drop(at, "time")
			c.anything("time", at)
		}
		if past := g.Get("history"); past != nil {
			c.history(past)
		}
		match := g.Get("args_match")
		if match == nil {
			continue
		}
		for _, f := range match.Fields {
			c.drop(f.Value, "the matcher of "+f.Key.Text)
			c.matcher(f.Value)
		}
	}
}

// history changes the tests of past calls: which ones count, since when, and with what they are compared.
func (c *changes) history(n *yamldoc.Node) {
	c.drop(n, "history")
	for _, entry := range n.Items {
		if len(n.Items) > 1 {
			c.drop(entry, "a test of past calls")
		}
		for _, f := range entry.Fields {
			switch f.Key.Text {
			case "of", "by", "currency":
				c.drop(f.Value, f.Key.Text)
			case "where":
				c.drop(f.Value, f.Key.Text)
				for _, m := range f.Value.Fields {
					c.matcher(m.Value)
				}
			case "within":
				if d, err := condition.DurationOf(f.Value.Text); err == nil && d > time.Second {
					c.becomes(f.Value, condition.FormatDuration(max(d/2, time.Second)))
				}
			case string(condition.Existing):
				c.operand(f.Value)
			case string(condition.Count), string(condition.Sum), string(condition.Distinct):
				c.measure(f.Value)
			}
		}
	}
}

// measure changes the comparisons of a test of past calls.
func (c *changes) measure(n *yamldoc.Node) {
	for _, f := range n.Fields {
		if f.Key.Text == "of" {
			continue
		}
		for _, op := range condition.Op(f.Key.Text).Slips() {
			if op.IsOrder() && n.Get(string(op)) == nil {
				c.becomes(f.Key, string(op))
			}
		}
		c.operand(f.Value)
	}
}

// matcher changes the tests of one argument.
func (c *changes) matcher(n *yamldoc.Node) {
	if n.Kind != yamldoc.Mapping {
		c.operand(n)
		ne := &yamldoc.Node{
			Kind:   yamldoc.Mapping,
			Fields: []yamldoc.Field{{Key: str("ne"), Value: n}},
		}
		c.change(n, ne, "equals becomes ne")
		return
	}

	for _, f := range n.Fields {
		if len(n.Fields) > 1 {
			c.drop(f.Value, "the test "+f.Key.Text)
		}
		for _, op := range condition.Op(f.Key.Text).Slips() {
			switch {
			case op == condition.Eq && len(n.Fields) == 1: // which a file writes as a bare value
				c.change(n, f.Value, f.Key.Text+" becomes equals")
			case op != condition.Eq && n.Get(string(op)) == nil:
				c.becomes(f.Key, string(op))
			}
		}
		switch {
		case f.Key.Text == "pattern" || f.Key.Text == "not_pattern":
			c.pattern(f.Value)
		case f.Value.Kind == yamldoc.Mapping:
			c.structured(f)
		case f.Value.Kind == yamldoc.Sequence:
			c.list(f.Value)
		default:
			c.operand(f.Value)
		}
	}
}

// structured changes the operand of an operator that is a mapping: a length, the tests of elements, or
// amounts of money.
func (c *changes) structured(f yamldoc.Field) {
	where := f.Value.Get("where")
	switch condition.Op(f.Key.Text) {
	case condition.Any, condition.All, condition.None:
		if where == nil {
			c.matcher(f.Value)
			return
		}
		for _, member := range where.Fields {
			if len(where.Fields) > 1 {
				c.drop(member.Value, "the matcher of "+member.Key.Text)
			}
			c.matcher(member.Value)
		}
	case condition.MoneyOp:
		c.money(f.Value)
	default:
		c.matcher(f.Value)
	}
}

// money changes the numbers of each currency and the direction of each comparison.
func (c *changes) money(n *yamldoc.Node) {
	for _, f := range n.Fields {
		switch {
		case f.Key.Text == "minor_units":
			c.operand(f.Value)
		case f.Key.Text == "otherwise" && f.Value.Kind == yamldoc.Bool:
			c.operand(f.Value)
		case f.Value.Kind == yamldoc.Mapping:
			for _, op := range condition.Op(f.Key.Text).Slips() {
				if n.Get(string(op)) == nil {
					c.becomes(f.Key, string(op))
				}
			}
			for _, amount := range f.Value.Fields {
				c.operand(amount.Value)
			}
		}
	}
}

// operand changes what an argument is compared with.
func (c *changes) operand(n *yamldoc.Node) {
	switch n.Kind {
	case yamldoc.Number:
		for _, next := range neighbours(n.Num) {
			c.change(n, number(next), n.Text+" becomes "+next.String())
		}
	case yamldoc.String:
		c.becomes(n, n.Text+"x")
	case yamldoc.Bool:
		c.change(n, boolean(!n.Bool), n.Text+" becomes "+strconv.FormatBool(!n.Bool))
	}
}

// list changes a list of operands: each is left out, and a neighbour of
// the first is added.
func (c *changes) list(n *yamldoc.Node) {
	for _, item := range n.Items {
		c.drop(item, item.Text)
	}
	if len(n.Items) == 0 || n.Items[0].Kind == yamldoc.Bool {
		return
	}
	first := n.Items[0]
	next := str(first.Text + "x")
	if first.Kind == yamldoc.Number {
		beside := neighbours(first.Num)
		if len(beside) == 0 {
			return
		}
		next = number(beside[len(beside)-1])
	}

	more := *n
	more.Items = append(slices.Clone(n.Items), next)
	c.change(n, &more, next.Text+" is added")
}

// pattern takes anchors off a regular expression, or adds them.
func (c *changes) pattern(n *yamldoc.Node) {
	if rest, ok := strings.CutPrefix(n.Text, "^"); ok {
		c.becomes(n, rest)
	} else if !strings.HasPrefix(n.Text, ".*") {
		c.becomes(n, "^(?:"+n.Text+")")
	}
	if rest, ok := strings.CutSuffix(n.Text, "$"); ok &&
		!strings.HasSuffix(rest, `\`) {
		c.becomes(n, rest)
	} else if !strings.HasSuffix(n.Text, ".*") {
		c.becomes(n, "(?:"+n.Text+")$")
	}
}

// policy changes a policy: the agents that it selects, its rules, and their requirements.
func (c *changes) policy() {
	if a := c.root.Get("applies"); a != nil && a.Text == string(policy.Implicit) {
		c.becomes(a, string(policy.Referenced))
	}
	if agents := c.root.Get("agents"); agents != nil {
		for _, f := range agents.Fields {
			c.globs(f.Value)
		}
	}
	rules := c.root.Get("rules")
	for _, r := range rules.Items {
		c.entry = r.Get("id").Text
		if len(rules.Items) > 1 {
			c.drop(r, "the rule "+r.Get("id").Text)
		}
		c.rule(r)
	}
}

// globs narrows each glob of a list or of labels, so that it meets
// nothing that it met.
func (c *changes) globs(n *yamldoc.Node) {
	for _, item := range n.Items {
		c.becomes(item, stranger)
	}
	for _, f := range n.Fields {
		if f.Value.Kind == yamldoc.String {
			c.becomes(f.Value, stranger)
		}
	}
}

// rule changes one rule of a policy: its match, condition and requirements.
func (c *changes) rule(r *yamldoc.Node) {
	if m := r.Get("match"); m != nil {
		c.match(m)
	}
	approval, deny := r.Get("approval"), r.Get("deny")
	c.approval(approval, false)
	if when := r.Get("when"); when != nil {
		c.drop(when, "when")
		c.condition(when)
	}
	if unknown := r.Get("unknown"); unknown != nil {
		c.drop(unknown, "unknown: "+unknown.Text)
	}
	switch {
	case approval != nil && deny != nil:
		c.drop(deny, "deny")
	case deny != nil:
		key := r.Field("deny").Key
		asks := *r
		asks.Fields = slices.DeleteFunc(
			slices.Clone(r.Fields),
			func(f yamldoc.Field) bool { return f.Key == key || f.Key.Text == "unknown" },
		)
		asks.Fields = append(asks.Fields, yamldoc.Field{Key: str("approval"), Value: boolean(true)})
		c.change(r, &asks, "deny becomes approval: true")
		c.out[len(c.out)-1].Range = key.Range
	}

	if q := r.Get("require"); q != nil {
		c.drop(q, "require")
		c.require(q)
	}
}

// match changes which calls a rule meets.
func (c *changes) match(m *yamldoc.Node) {
	for _, f := range m.Fields {
		c.drop(f.Value, "match."+f.Key.Text)
		switch f.Key.Text {
		case "kinds":
			for _, item := range f.Value.Items {
				if len(f.Value.Items) > 1 {
					c.drop(item, "the kind "+item.Text)
				}
			}
		case "annotations":
			for _, hint := range f.Value.Fields {
				c.operand(hint.Value)
				c.drop(hint.Value, "the annotation "+hint.Key.Text)
			}
		case "except":
			c.match(f.Value)
		default:
			c.globs(f.Value)
		}
	}
}

// require changes the requirements of a rule.
func (c *changes) require(q *yamldoc.Node) {
	for _, f := range q.Fields {
		if len(q.Fields) > 1 {
			c.drop(f.Value, "require."+f.Key.Text)
		}
		switch f.Key.Text {
		case "stages":
			c.stages(f.Value)
		case "within":
			c.duration(f.Value)
		case "on_timeout":
			for _, other := range []string{"deny", "escalate"} {
				if other != f.Value.Text {
					c.becomes(f.Value, other)
				}
			}
		case "escalate":
			c.escalate(f.Value)
		case "grants":
			c.grants(f.Value)
		case "arguments":
			for _, path := range items(f.Value.Get("redact")) {
				c.drop(path, "the hidden path "+path.Text)
			}
			if hidden := f.Value.Get("approve_hidden"); hidden != nil {
				c.drop(hidden, "arguments.approve_hidden")
			}
		default:
			c.anything(f.Key.Text, f.Value)
		}
	}
}

// anything changes a value whose meaning is unknown.
func (c *changes) anything(name string, n *yamldoc.Node) {
	for _, f := range n.Fields {
		if len(n.Fields) > 1 {
			c.drop(f.Value, name+"."+f.Key.Text)
		}
		c.anything(name+"."+f.Key.Text, f.Value)
	}
	for _, item := range n.Items {
		if len(n.Items) > 1 {
			c.drop(item, "an entry of "+name)
		}
		c.anything(name, item)
	}
	if _, err := time.ParseDuration(n.Text); n.Kind == yamldoc.String && err == nil {
		c.duration(n)
		return
	}
	c.operand(n)
}

func (c *changes) stages(n *yamldoc.Node) {
	for _, s := range n.Items {
		if len(n.Items) > 1 {
			c.drop(s, "the stage of "+s.Get("group").Text)
		}
		c.becomes(s.Get("group"), stranger)
		if p := s.Get("people"); p != nil {
			c.operand(p)
		}
	}
}

func (c *changes) escalate(n *yamldoc.Node) {
	for _, e := range n.Items {
		if len(n.Items) > 1 {
			c.drop(e, "the escalation to "+e.Get("to").Text)
		}
		c.becomes(e.Get("to"), stranger)
		c.duration(e.Get("after"))
		if may := e.Get("may"); may != nil {
			c.drop(may, "may: "+may.Text)
		}
	}
}

func (c *changes) grants(n *yamldoc.Node) {
	if n.Kind != yamldoc.Mapping {
		return // leaving it out was tried
	}
	for _, f := range n.Fields {
		if len(n.Fields) > 1 {
			c.drop(f.Value, "grants."+f.Key.Text)
		}
		switch f.Key.Text {
		case "max_age":
			c.duration(f.Value)
		case "max_uses":
			c.operand(f.Value)
		default:
			c.anything("grants."+f.Key.Text, f.Value)
		}
	}
}

// duration makes a time longer and shorter.
func (c *changes) duration(n *yamldoc.Node) {
	d, err := time.ParseDuration(n.Text)
	if err != nil || d < 2*time.Second {
		return
	}
	for _, next := range []time.Duration{d + time.Second, d - time.Second} {
		c.becomes(n, policy.FormatDuration(next))
	}
}
