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
		"angle brackets":    `{"a":"` + each("<") + `"}`,
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

// HostileForms returns schemas of forms that are expensive, with a default if that makes
// them worse.
func HostileForms(n int) map[string]string {
	program := "^(" + strings.Repeat(".{0,999}", 119) + ")x$"
	text := strings.Repeat("a", n)
	field := func(more string) string {
		return `{"type":"object","properties":{"f":{"type":"string",` + more + `}}}`
	}
	var fields, options, nested strings.Builder
	for i := range n / 60 {
		fmt.Fprintf(&fields, `"f%d":{"type":"string","pattern":"^([a-z]{1,99}){1,9}$"},`, i)
		fmt.Fprintf(&options, `"o%d",`, i)
	}
	for range n / 40 {
		nested.WriteString(`{"type":"object","properties":{"a":`)
	}
	return map[string]string{
		"a large program": `{"type":"string","pattern":"` + program + `","default":"` + text + `"}`,
		"of a field":      field(`"pattern":"` + program + `","default":"` + text + `"`),
		"a pattern that nests": field(`"pattern":"` + strings.Repeat("(", 400) + "a" +
			strings.Repeat("{1,2})", 400) + `"`),
		"alternatives":          field(`"pattern":"` + strings.Repeat("a|", 450) + `","default":"` + text + `"`),
		"classes":               field(`"pattern":"` + strings.Repeat(`\\p{L}`, 150) + `","default":"` + text + `"`),
		"a bounded repetition":  field(`"pattern":"^(a?){1000}a{1000}$","default":"` + strings.Repeat("a", 999) + `"`),
		"many patterns":         `{"type":"object","properties":{` + fields.String() + `"z":{"type":"string"}}}`,
		"many options":          field(`"enum":[` + options.String() + `"z"]`),
		"schemas in schemas":    nested.String() + `{}` + strings.Repeat("}}", n/40),
		"references in circles": `{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`,
		"a plain form":          field(`"maxLength":9`),
		"a multiple":            `{"type":"object","properties":{"f":{"type":"number","multipleOf":1e-300,"default":1e300}}}`,
	}
}
