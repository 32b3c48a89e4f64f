package posture

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/value"
)

// mostEditWords limits each text of an edited rule, in characters. The changes themselves describe
// the exact calls.
const mostEditWords = 160

// whenKey returns a key that is equal for equal conditions. It is empty for a rule without a
// condition.
func whenKey(e *condition.Expr) string {
	if e == nil {
		return ""
	}
	return exprKey(e)
}

// conditionDifference describes two conditions. If they differ only in tests of the same arguments,
// it describes only these tests.
func conditionDifference(old, new *condition.Expr) (from, to string) {
	if old == nil || new == nil || len(old.Groups) != len(new.Groups) {
		return conditionText(old), conditionText(new)
	}
	var before, after []string
	for i := range old.Groups {
		was, is := old.Groups[i].Matchers, new.Groups[i].Matchers
		if !slices.EqualFunc(was, is, func(a, b condition.Matcher) bool { return a.Key == b.Key }) {
			return conditionText(old), conditionText(new)
		}
		for j := range was {
			a, b := testsText(&was[j]), testsText(&is[j])
			if a != b {
				before = append(before, was[j].Key+" "+a)
				after = append(after, b)
			}
		}
	}
	if len(before) == 0 {
		return conditionText(old), conditionText(new)
	}
	if len(before) == 1 {
		return shortened(before[0]), shortened(after[0])
	}
	return shortened(strings.Join(before, ", ")), shortened(strings.Join(after, ", "))
}

// conditionText describes a condition.
func conditionText(e *condition.Expr) string {
	if e == nil || len(e.Groups) == 0 {
		return "every call"
	}
	var groups []string
	for i := range e.Groups {
		var tests []string
		for j := range e.Groups[i].Matchers {
			m := &e.Groups[i].Matchers[j]
			tests = append(tests, m.Key+" "+testsText(m))
		}
		groups = append(groups, cmp.Or(strings.Join(tests, " and "), "every call"))
	}

	return shortened(strings.Join(groups, ", or "))
}

// testsText describes the tests of one argument.
func testsText(m *condition.Matcher) string {
	switch {
	case m.Takes:
		return "is given"
	case m.IsFact():
		return m.FactText()
	}
	var tests []string
	for i := range m.Tests {
		t := &m.Tests[i]
		words, ordered := t.Op.InLists(), false
		switch t.Op {
		case condition.Gt, condition.Gte, condition.Lt, condition.Lte:
			words, ordered = t.Op.InReasons(), true
		}
		if words == "" {
			tests = append(tests, t.String())
			continue
		}
		var operands []string
		for _, o := range t.Operands() {
			text := o.String()
			if ordered && o.Kind == value.Number {
				text = grouped(text)
			}
			operands = append(operands, text)
		}
		if len(operands) == 0 && t.Op != condition.In && t.Op != condition.NotIn {
			operands = []string{t.OperandText()}
		}
		tests = append(tests, words+" "+cmp.Or(strings.Join(operands, ", "), "nothing"))
	}

	return cmp.Or(strings.Join(tests, " and "), "is anything")
}

// grouped puts commas into a whole number of five digits or more: 50,000;
// and of four: 5,000.
func grouped(number string) string {
	digits, sign := strings.TrimPrefix(number, "-"), ""
	if digits != number {
		sign = "-"
	}
	if len(digits) < 4 || strings.Trim(digits, "0123456789") != "" {
		return number
	}
	var parts []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
	}
	return sign + strings.Join(append([]string{digits}, parts...), ",")
}

// fieldText writes a field of policy.Match: a list, or hints by name.
func fieldText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		return exceptText(v)
	}
	if v.Len() == 0 {
		return "any"
	}
	var out []string
	if v.Kind() == reflect.Map {
		for _, key := range v.MapKeys() {
			out = append(out, fmt.Sprint(key, ": ", v.MapIndex(key)))
		}
		slices.Sort(out)
	} else {
		for i := range v.Len() {
			out = append(out, fmt.Sprint(v.Index(i)))
		}
	}

	return shortened(strings.Join(out, ", "))
}

// exceptText writes the fields of an exception, or of its selector of agents.
func exceptText(v reflect.Value) string {
	if v.IsNil() {
		return "none"
	}
	var out []string
	for i := range v.Elem().NumField() {
		f := v.Elem().Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() || f.Kind() != reflect.Pointer && f.Len() > 0 {
			out = append(out, v.Elem().Type().Field(i).Tag.Get("doc")+" "+fieldText(f))
		}
	}

	return shortened(cmp.Or(strings.Join(out, " and "), "any"))
}

// shortened cuts a text that is too long.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > mostEditWords {
		return string(runes[:mostEditWords]) + "…"
	}
	return text
}
