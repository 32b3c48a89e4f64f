package agent

import "reflect"

// mergeTools carries what one of several functions that ran at once did
// to the tools (its copy, left, of the common base) over to next.
func mergeTools(base, next, left *Options) *Options {
	if left == nil || sameTools(base, left) {
		return next
	}
	out := next.Clone()
	for _, t := range toolsOf(base) {
		if !hasTool(toolsOf(left), t) && lastNamed(nameOf(t), left.Tools) == nil {
			out.Tools = without(out.Tools, nameOf(t))
		}
	}
	for _, t := range left.Tools {
		if !hasTool(toolsOf(base), t) {
			out.Tools = append(without(out.Tools, nameOf(t)), t)
		}
	}
	return out
}

func toolsOf(o *Options) []Tool {
	if o == nil {
		return nil
	}
	return o.Tools
}

func nameOf(t Tool) string {
	if t == nil {
		return ""
	}
	return t.Definition().Name
}

func sameTools(a, b *Options) bool {
	x, y := toolsOf(a), toolsOf(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !sameTool(x[i], y[i]) {
			return false
		}
	}
	return true
}

// sameTool compares tools; those whose type can't be compared count as
// different.
func sameTool(a, b Tool) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	kind := reflect.TypeOf(a)
	if kind != reflect.TypeOf(b) {
		return false
	}
	return (kind.Kind() == reflect.Pointer || reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable()) &&
		a == b
}

func hasTool(all []Tool, t Tool) bool {
	for _, other := range all {
		if sameTool(other, t) {
			return true
		}
	}
	return false
}

func without(all []Tool, name string) []Tool {
	var out []Tool
	for _, t := range all {
		if nameOf(t) != name {
			out = append(out, t)
		}
	}
	return out
}
