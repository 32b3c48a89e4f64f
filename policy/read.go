package policy

import (
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// policy reads a document that has passed the JSON Schema.
func (r *reader) policy(root *yamldoc.Node) *Policy {
	p := &Policy{
		Ref:           text(root.Get("policy_ref")),
		SchemaVersion: text(root.Get("schema_version")),
		Description:   text(root.Get("description")),
		Applies:       Referenced,
		Agents:        readSelector(root.Get("agents")),
		Range:         root.Get("policy_ref").Range,
	}
	if n := root.Get("applies"); n != nil {
		p.Applies = Applies(n.Text)
	}
	for _, n := range root.Get("rules").Items {
		p.Rules = append(p.Rules, r.rule(n))
	}
	return p
}

func readSelector(n *yamldoc.Node) *Selector {
	if n == nil {
		return nil
	}
	s := &Selector{
		IDs:                 texts(n.Get("ids")),
		Namespaces:          texts(n.Get("namespaces")),
		DataClassifications: texts(n.Get("data_classifications")),
	}
	if labels := n.Get("labels"); labels != nil {
		s.Labels = map[string]string{}
		for _, f := range labels.Fields {
			s.Labels[f.Key.Text] = f.Value.Text
		}
	}

	return s
}

func (r *reader) rule(n *yamldoc.Node) Rule {
	approval, findings := schema.ParseApproval(n.Get("approval"))
	r.add(findings...)
	deny := n.Get("deny")
	return Rule{
		ID:          text(n.Get("id")),
		Description: text(n.Get("description")),
		Match:       readMatch(n.Get("match")),
		Approval:    approval,
		Deny:        text(deny),
		Denies:      deny != nil,
		Require:     readRequire(n.Get("require"), approval != nil),
		Range:       n.Range,
	}
}

func readMatch(n *yamldoc.Node) Match {
	m := Match{Targets: texts(n.Get("targets")), Servers: texts(n.Get("servers"))}
	for _, k := range texts(n.Get("kinds")) {
		m.Kinds = append(m.Kinds, Kind(k))
	}
	if hints := n.Get("annotations"); hints != nil {
		m.Annotations = map[string]bool{}
		for _, f := range hints.Fields {
			m.Annotations[f.Key.Text] = f.Value.Bool
		}
	}

	return m
}

// readRequire reads `require`, absent or not, in normal form. A rule
// that asks always has a word on timeouts and on arguments that may
// vary: see Timeout and Grants.
func readRequire(n *yamldoc.Node, asks bool) Require {
	q := Require{
		Within:    duration(n.Get("within")),
		OnTimeout: Timeout(text(n.Get("on_timeout"))),
		Grants:    readGrants(n.Get("grants")),
		Arguments: Arguments{
			Redact:       texts(n.Get("arguments").Get("redact")),
			ForbidHidden: refuses(n.Get("arguments").Get("approve_hidden")),
		},
	}
	if asks && q.OnTimeout == "" {
		q.OnTimeout = TimeoutDeny
	}
	if asks && q.Grants.Bounds == nil {
		q.Grants.Bounds = []Bound{}
	}
	for _, s := range items(n.Get("stages")) {
		q.Stages = append(q.Stages, Stage{Group: text(s.Get("group")), People: whole(s.Get("people"), 1)})
	}
	for _, e := range items(n.Get("escalate")) {
		q.Escalate = append(q.Escalate, Escalation{
			After: duration(e.Get("after")),
			To:    text(e.Get("to")),
			May:   May(text(e.Get("may"))),
		})
	}

	return q.withStandIns()
}

func readGrants(n *yamldoc.Node) Grants {
	switch word := text(n); word {
	case "forbid", "session":
		return Grants{Forbid: word == "forbid", Session: word == "session"}
	}
	g := Grants{
		Session: n.Get("session") != nil,
		MaxAge:  duration(n.Get("max_age")),
		MaxUses: whole(n.Get("max_uses"), 0),
	}
	for _, b := range items(n.Get("bounds")) {
		g.Bounds = append(g.Bounds, Bound{Path: text(b.Get("path")), Kind: BoundKind(text(b.Get("kind")))})
	}

	return g
}

// refuses reports whether a boolean is there and false.
func refuses(n *yamldoc.Node) bool { return n != nil && !n.Bool }

// text is the content of a scalar, "" when it is absent.
func text(n *yamldoc.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

func texts(n *yamldoc.Node) []string {
	var all []string
	for _, item := range items(n) {
		all = append(all, item.Text)
	}
	return slices.Clip(all)
}

// whole reads an integer whose range the JSON Schema has checked; 2.0 is one.
func whole(n *yamldoc.Node, absent int) int {
	if n == nil {
		return absent
	}
	f, err := strconv.ParseFloat(n.Num.String(), 64)
	if err != nil {
		return absent
	}
	return int(f)
}

// duration reads a duration that mistakes has checked; 0 when absent.
func duration(n *yamldoc.Node) time.Duration {
	d, _ := parseDuration(text(n))
	return d
}
