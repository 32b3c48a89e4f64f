package resolve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// boundObject returns the object that a binding digests, computed only from a call's JSON form and
// the rules in docs/contracts/decide.md. It shares no code with the package: encoding/json reads
// the call, and the writer below writes the object.
func boundObject(t interface{ Fatal(...any) }, line, agent, version, plan string) string {
	var call map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&call); err != nil {
		t.Fatal(err)
	}
	or := func(field string, absent any) any {
		if v, ok := call[field]; ok {
			return v
		}
		return absent
	}
	hints := map[string]any{}
	for name, hint := range or("annotations", hints).(map[string]any) {
		if _, ok := hint.(bool); ok {
			hints[name] = hint
		}
	}
	target := map[string]any{"remote": map[any]string{
		true:  "remote",
		false: "local",
		nil:   "",
	}[call["remote"]]}
	for _, field := range []string{"agent", "kind", "server", "skill", "tool", "tool_definition"} {
		target[field] = or(field, "")
	}
	parent, given := call["parent"].(map[string]any)
	object := map[string]any{
		"agent":        map[string]any{"id": agent, "version": version},
		"annotations":  hints,
		"args":         or("args", map[string]any{}),
		"parent_given": given,
		"parent_input": parent["input"],
		"plan":         plan,
		"principal":    or("principal", ""),
		"session":      or("session", ""),
		"target":       target,
	}
	if names, _ := call["declared"].([]any); len(names) > 0 {
		slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		object["declared"] = slices.Compact(names)
	}
	return canonical(object)
}

// bindingOf returns the binding of an object.
func bindingOf(object string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(object))) }

// canonical writes what encoding/json decoded by RFC 8785, numbers by
// their exact digits.
func canonical(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return canonicalNumber(string(v))
	case string:
		return canonicalString(v)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, canonical(item))
		}
		return "[" + strings.Join(items, ",") + "]"
	case map[string]any:
		keys := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		var members []string
		for _, k := range keys {
			members = append(members, canonicalString(k)+":"+canonical(v[k]))
		}
		return "{" + strings.Join(members, ",") + "}"
	}

	return "null"
}

func canonicalString(s string) string {
	short := map[rune]string{
		'"':  `\"`,
		'\\': `\\`,
		'\b': `\b`,
		'\t': `\t`,
		'\n': `\n`,
		'\f': `\f`,
		'\r': `\r`,
	}
	var b strings.Builder
	for _, r := range s {
		switch escape := short[r]; {
		case escape != "":
			b.WriteString(escape)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}

	return `"` + b.String() + `"`
}

func canonicalNumber(lexeme string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(lexeme, "-"); negative {
		lexeme, sign = rest, "-"
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(lexeme), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent) // "" is 0
	power += len(whole) - 1
	digits := whole + fraction
	for strings.HasPrefix(digits, "0") {
		digits, power = digits[1:], power-1
	}
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return "0"
	case power <= -7 || power >= 21:
		text := digits[:1]
		if len(digits) > 1 {
			text += "." + digits[1:]
		}
		return fmt.Sprintf("%s%se%+d", sign, text, power)
	case power < 0:
		return sign + "0." + strings.Repeat("0", -power-1) + digits
	case len(digits) <= power+1:
		return sign + digits + strings.Repeat("0", power+1-len(digits))
	default:
		return sign + digits[:power+1] + "." + digits[power+1:]
	}
}

// spelling returns the JSON of a random text: no two of its characters fold
// alike, and each is plain or an escape.
func spelling(t *rapid.T) string {
	characters := []rune("az09é\"\\/<\b\t\n\f\r\x01\x1f\x7f\u2028\ud7ff\ue000\ufffd\U00010000\U0010ffff")
	var b strings.Builder
	for _, r := range rapid.SliceOfN(rapid.SampledFrom(characters), 1, 4).Draw(t, "text") {
		switch {
		case r < ' ' || r == '"' || r == '\\' || rapid.Bool().Draw(t, "escaped"):
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04X`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}

	return `"` + b.String() + `"`
}

// document returns the JSON of a random value.
func document(t *rapid.T, depth int) string {
	kinds := []string{"null", "true", "false", "number", "text", "array", "object"}
	if depth == 0 {
		kinds = kinds[:5]
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind of value"); kind {
	case "number":
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
	case "text":
		return spelling(t)
	case "array":
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, document(t, depth-1))
		}
		return "[ " + strings.Join(items, " , ") + " ]"
	case "object":
		return objectOf(t, func() string { return document(t, depth-1) })
	default:
		return kind
	}
}

// objectOf returns the JSON of an object whose keys differ, with random values.
func objectOf(t *rapid.T, of func() string) string {
	decoded := func(key string) string {
		var text string
		if err := json.Unmarshal([]byte(key), &text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	keys := rapid.SliceOfNDistinct(rapid.Custom(spelling), 0, 6, decoded).Draw(t, "keys")
	var members []string
	for _, key := range keys {
		members = append(members, key+" : "+of())
	}
	return "{ " + strings.Join(members, " , ") + " }"
}

// callLine returns a random call in JSON form, each of its optional fields
// there or not.
func callLine(t *rapid.T) string {
	kind := rapid.SampledFrom([]string{"tool", "mcp_tool", "skill", "delegation"}).Draw(t, "kind")
	names := map[string][]string{
		"tool":       {"tool"},
		"mcp_tool":   {"server", "tool"},
		"skill":      {"agent", "skill"},
		"delegation": {"agent"},
	}[kind]
	fields := []string{`"kind":"` + kind + `"`}
	add := func(name string, text func() string) { fields = append(fields, `"`+name+`":`+text()) }
	maybe := func(name string, text func() string) {
		if rapid.Bool().Draw(t, name) {
			add(name, text)
		}
	}
	for _, name := range names {
		add(name, func() string { return spelling(t) })
	}
	maybe("args", func() string {
		return objectOf(t, func() string { return document(t, 2) })
	})
	maybe("annotations", func() string {
		return objectOf(t, func() string {
			return rapid.SampledFrom([]string{"true", "false", "1", "null"}).Draw(t, "hint")
		})
	})
	if kind == "tool" || kind == "mcp_tool" {
		maybe("declared", func() string {
			return "[" + strings.Join(rapid.SliceOfN(rapid.Custom(spelling), 0, 3).Draw(t, "names"), ",") + "]"
		})
	}
	if kind == "skill" || kind == "delegation" {
		maybe("parent", func() string { return `{"input":` + document(t, 2) + `}` })
	}
	if kind == "delegation" {
		maybe("remote", func() string {
			return strconv.FormatBool(rapid.Bool().Draw(t, "is remote"))
		})
	}
	for _, name := range []string{"principal", "session", "tool_definition"} {
		maybe(name, func() string { return spelling(t) })
	}
	return "{" + strings.Join(rapid.Permutation(fields).Draw(t, "order"), ",") + "}"
}

// TestTheBindingIsComputedFromItsPage checks that docs/contracts/decide.md is enough to compute a
// binding.
func TestTheBindingIsComputedFromItsPage(t *testing.T) {
	metadata := parseAgent(t, "agent.agf.yaml", deskTools).Metadata
	p := plan(t, resolve.Options{}, deskTools)
	rapid.Check(t, func(t *rapid.T) {
		line := callLine(t)
		c, err := resolve.ParseCall([]byte(line), value.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := p.Bind(c)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		object := boundObject(t, line, metadata.ID, metadata.Version, p.Version())
		if got != bindingOf(object) {
			t.Fatalf("%s\nis bound as %s, and the page's object has %s\n%s", line, got, bindingOf(object), object)
		}
	})
}

// TestThePageShowsTheObjectOfItsFirstCall also checks the digest on the page.
func TestThePageShowsTheObjectOfItsFirstCall(t *testing.T) {
	page, err := os.ReadFile("../docs/contracts/decide.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := bytes.Split(page, []byte("```json\n"))
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of JSON, expected the calls and the object", len(blocks)-1)
	}
	call, _, _ := strings.Cut(string(blocks[1]), "\n")
	shown, _, _ := strings.Cut(string(blocks[2]), "\n")
	object := boundObject(t, call, "desk", "1.0.0", "sha256:"+strings.Repeat("0", 64))
	if shown != object {
		t.Errorf("shown\n%s\nexpected\n%s", shown, object)
	}
	if !strings.Contains(string(blocks[2]), bindingOf(object)) {
		t.Errorf("the page does not show %s", bindingOf(object))
	}
}
