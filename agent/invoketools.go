package agent

import (
	"reflect"
	"slices"
)

// mergeTools applies the changes that one of several concurrent functions made to the tools to
// next. The function started with base and left the options left.
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
	return slices.EqualFunc(toolsOf(a), toolsOf(b), sameTool)
}

// sameTool compares tools. Tools whose type is not comparable count as different.
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
	return slices.ContainsFunc(all, func(other Tool) bool { return sameTool(other, t) })
}

func without(all []Tool, name string) []Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t Tool) bool { return nameOf(t) == name })
}
