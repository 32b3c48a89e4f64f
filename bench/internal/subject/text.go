package subject

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/bench/internal/model"
)

// language has the syntax of a test in one of the languages, as formats with the argument and
// the operand; %[1]s is the argument. All languages write comparisons and string literals in
// the same way.
type language struct {
	number                string // an operand
	in, notIn             string
	prefix, suffix, regex string
}

// test writes one test of an argument.
func (l language) test(m model.Matcher, arg string) string {
	switch m.Op {
	case model.Eq, model.Ne:
		return fmt.Sprintf("%s %s %s", arg, operator(m.Op), literal(m, l.number))
	case model.In:
		return fmt.Sprintf(l.in, arg, quoted(m.List))
	case model.NotIn:
		return fmt.Sprintf(l.notIn, arg, quoted(m.List))
	case model.Pattern:
		return l.pattern(m.Regexp, arg)
	default:
		return fmt.Sprintf("%s %s "+l.number, arg, operator(m.Op), m.Num)
	}
}

func (l language) pattern(p model.Regexp, arg string) string {
	switch {
	case p.Literal && p.Suffix == "":
		return fmt.Sprintf(l.prefix, arg, p.Prefix)
	case p.Literal && p.Prefix == "":
		return fmt.Sprintf(l.suffix, arg, p.Suffix)
	default:
		return fmt.Sprintf(l.regex, arg, p.Source)
	}
}

// groupsText returns the condition of a rule.
func groupsText(r *model.Rule, write func(model.Matcher) string) string {
	groups := make([]string, len(r.Groups))
	for i, g := range r.Groups {
		groups[i] = "(" + join(g, " && ", write) + ")"
	}
	return strings.Join(groups, " || ")
}

// selected returns the condition of a rule after its selector, as in CEL and expr. If the host
// selects the rules, it has already applied the selector.
func selected(r *model.Rule, scope Scope, condition string) string {
	if scope == Sliced {
		return condition
	}
	var tests []string
	if r.Tool != "" {
		tests = append(tests, fmt.Sprintf("tool == %q", r.Tool))
	}
	for _, l := range r.Labels {
		tests = append(tests, fmt.Sprintf("labels.%s == %q", l.Key, l.Value))
	}
	return strings.Join(append(tests, "("+condition+")"), " && ")
}

func operator(op model.Op) string {
	return map[model.Op]string{
		model.Eq:  "==",
		model.Ne:  "!=",
		model.Gt:  ">",
		model.Gte: ">=",
		model.Lt:  "<",
		model.Lte: "<=",
	}[op]
}

// literal returns the operand of Eq and Ne. It writes a number with the format.
func literal(m model.Matcher, format string) string {
	if m.Text != "" {
		return strconv.Quote(m.Text)
	}
	return fmt.Sprintf(format, m.Num)
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

func join(g model.Group, sep string, write func(model.Matcher) string) string {
	parts := make([]string, len(g))
	for i, m := range g {
		parts[i] = write(m)
	}
	return strings.Join(parts, sep)
}
