package growth

import (
	"fmt"
	"strings"
)

// HostileJSON returns values of about n bytes that are expensive to read, compare or show.
func HostileJSON(n int) map[string]string {
	members := func(member string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, member, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	each := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	return map[string]string{
		"plain":             `{"amount":7}`,
		"members":           members(`"k%d":1,`),
		"nested members":    members(`"k%d":{"a":{"b":[]}},`),
		"equal names":       "{" + each(`"a":1,`) + `"a":1}`,
		"items":             `{"a":[` + each("0,") + "0]}",
		"objects":           `{"a":[` + each("{},") + "{}]}",
		"levels":            `{"a":` + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + "}",
		"objects in depth":  strings.Repeat(`{"a":`, n/6) + "1" + strings.Repeat("}", n/6),
		"a number":          `{"a":` + each("9") + "}",
		"an exponent":       `{"a":1e999999999}`,
		"a long exponent":   `{"a":1e` + each("9") + "}",
		"escapes":           `{"a":"` + each(`\u202e`) + `"}`,
		"quotes":            `{"a":"` + each(`\"`) + `"}`,
		"look-alikes":       `{"a":"` + each("аa ") + `"}`,
		"marks":             `{"a":"a` + each("\u0301") + `"}`,
		"a name":            `{"` + each("a") + `":1}`,
		"command":           `{"command":"` + each("a;") + `"}`,
		"substitutions":     `{"command":"` + strings.Repeat("$(", n/4) + strings.Repeat(")", n/4) + `"}`,
		"quotes of a shell": `{"command":"` + each(`'`) + `"}`,
		"here documents":    `{"command":"` + each(`<<a `) + `"}`,
		"braces":            `{"command":"echo ` + each(`{a,b}`) + `"}`,
		"no end":            `{"a":` + each("["),
	}
}
