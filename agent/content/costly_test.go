package content_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/agent/content"
)

// doubling returns a schema of 2.6 KB that takes 2^40 steps.
func doubling() string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	b.WriteString(`"a40":{}}}`)
	return b.String()
}

// maxAllocs limits the work of one check. CheckSchema stops a validation after 3,000,000 units
// of work, and a unit allocates about once.
const maxAllocs = 10_000_000

// soon runs CheckSchema and counts its work in allocations. A check without a limit, of 2^40
// steps, would run into the test's deadline instead.
func soon(t interface{ Fatalf(string, ...any) }, schema, data string) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := content.CheckSchema(json.RawMessage(schema), json.RawMessage(data))
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > maxAllocs {
		t.Fatalf("%d allocations, want at most %d: %s %s", n, maxAllocs, schema, data)
	}
	return err
}

// Schemas come from peers (A2A), services and tools. A small schema must not crash the process.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"itself":       `{"$ref":"#"}`,
		"allOf itself": `{"allOf":[{"$ref":"#"}]}`,
		"two":          `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		"elsewhere":    `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"file":         `{"$ref":"file:///etc/passwd"}`,
		"doubling":     doubling(),
		"pattern":      `{"pattern":"(a{1000}){1000}"}`,
		"dynamic":      `{"$dynamicRef":"#"}`,
		"draft":        `{"$schema":"http://127.0.0.1:1/s"}`,
		"deep":         strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100),
		"large":        `{"title":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if bad := badError(t, soon(t, schema, `"x"`)); bad.Code != content.BadSchema {
				t.Error(bad)
			}
		})
	}
}

// A schema whose cost depends on the data is rejected when the data is checked: each level of
// the data doubles the work.
func TestHostileSchemaAndData(t *testing.T) {
	const schema = `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	if err := soon(t, schema, `{"a":{"a":1}}`); err != nil {
		t.Error(err)
	}
	bad := badError(t, soon(t, schema, strings.Repeat(`{"a":`, 60)+"1"+strings.Repeat("}", 60)))
	if bad.Code != content.BadSchema {
		t.Error(bad)
	}
}

// Data with a very large number of mistakes is rejected with one short sentence.
func TestManyMistakes(t *testing.T) {
	bad := badError(t, soon(t, `{"items":{"type":"string"}}`, "["+strings.Repeat("7,", 5000)+"7]"))
	if bad.Code != content.BadData || len(bad.Detail) > 200 {
		t.Error(bad)
	}
}

func TestSmallSchemasEndSoon(t *testing.T) {
	node := rapid.Custom(func(t *rapid.T) string {
		ref := func(name string) string {
			return `{"$ref":"#/$defs/` + rapid.StringMatching(`[a-f]`).Draw(t, name) + `"}`
		}
		form := rapid.SampledFrom([]string{
			`{"allOf":[%s,%s]}`,
			`{"anyOf":[%s,%s]}`,
			`{"oneOf":[%s,%s]}`,
			`{"properties":{"a":%s,"b":%s}}`,
			`{"properties":{"a":{"allOf":[%s,%s]}}}`,
			`{"items":%s,"contains":%s}`,
			`{"if":%s,"else":%s,"unevaluatedProperties":false}`,
			`{"additionalProperties":%s,"not":%s}`,
			`{"patternProperties":{"[a-b]{1,9}":%s},"propertyNames":%s}`,
			`{"type":"object","x":[%s,%s]}`,
		}).Draw(t, "form")
		return fmt.Sprintf(form, ref("left"), ref("right"))
	})
	rapid.Check(t, func(t *rapid.T) {
		var defs []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			defs = append(defs, `"`+name+`":`+node.Draw(t, name))
		}
		depth := rapid.IntRange(0, 60).Draw(t, "depth")
		level := rapid.SampledFrom([][2]string{{`{"a":`, `}`}, {`[`, `]`}, {`[{"b":`, `}]`}}).Draw(t, "level")
		data := strings.Repeat(level[0], depth) + "1" + strings.Repeat(level[1], depth)
		_ = soon(t, `{"$ref":"#/$defs/a","$defs":{`+strings.Join(defs, ",")+`}}`, data)
	})
}

func FuzzCheckSchema(f *testing.F) {
	f.Add(doubling(), `"x"`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","pattern":"^a{1,9}$"}}}`, `{"a":"aaa"}`)
	f.Add(`{"enum":[1,"a"],"uniqueItems":true}`, `[1,1]`)
	f.Fuzz(func(t *testing.T, schema, data string) {
		if len(schema)+len(data) <= 4096 {
			_ = soon(t, schema, data)
		}
	})
}
