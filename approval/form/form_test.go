package form_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/internal/must"
)

const flight = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"title": "Your flight",
	"description": "Two answers.",
	"properties": {
		"name": {"type": "string", "title": "Passenger", "minLength": 2, "maxLength": 40, "pattern": "^[A-Z]"},
		"mail": {"type": "string", "format": "email"},
		"day": {"type": "string", "format": "date"},
		"at": {"type": "string", "format": "date-time"},
		"page": {"type": "string", "format": "uri"},
		"bags": {"type": "integer", "minimum": 0, "maximum": 3, "default": 1},
		"price": {"type": "number", "maximum": 900.5},
		"aisle": {"type": "boolean", "default": true},
		"class": {"type": "string", "enum": ["eco", "biz"], "enumNames": ["Economy", "Business"], "default": "eco"},
		"meal": {"type": "string", "oneOf": [{"const": "v", "title": "Vegetarian"}, {"const": "f", "title": "Fish"}]},
		"extras": {"type": "array", "items": {"type": "string", "enum": ["wifi", "seat", "lounge"]}, "maxItems": 2},
		"days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}}
	},
	"required": ["name", "class"],
	"additionalProperties": false
}`

func parsed(t *testing.T, schema string) *form.Form {
	t.Helper()
	f, err := form.Parse([]byte(schema))
	must.Do(t, err)

	return f
}

func TestReadsEveryKindOfField(t *testing.T) {
	f := parsed(t, flight)
	want := "string string string string string integer number boolean select select multiselect multiselect"
	var types []string
	for _, field := range f.Fields {
		types = append(types, string(field.Type))
	}
	if got := strings.Join(types, " "); got != want {
		t.Errorf("got %s", got)
	}
	if f.FreeText() || f.Title != "Your flight" || f.Help != "Two answers." {
		t.Errorf("got %q, %q", f.Title, f.Help)
	}
	class, days := f.Fields[8], f.Fields[11]
	if !class.Required || class.Options[1] != (form.Option{Value: "biz", Title: "Business"}) {
		t.Errorf("got %+v", class)
	}
	if days.Options[0].Title != "Monday" || days.Options[1].Title != "tu" || days.Title != "days" {
		t.Errorf("got %+v", days)
	}
	for i, want := range map[int]string{5: `1`, 7: `true`, 8: `"eco"`} {
		if got := string(f.Fields[i].Default.AppendJSON(nil)); got != want {
			t.Errorf("the default of %s is %s", f.Fields[i].Name, got)
		}
	}
}

func TestHoldsAnswersToTheSchema(t *testing.T) {
	f := parsed(t, flight)
	full := `{"name":"Mara","class":"biz","mail":"m@x.org","day":"2026-11-22","at":"2026-11-22T10:00:00Z",` +
		`"page":"https://x.org/a","bags":3,"price":900.50,"aisle":false,"meal":"f","extras":["seat","wifi"],"days":[]}`
	if _, err := f.Check([]byte(full)); err != nil {
		t.Error(err)
	}
	got, err := f.Check([]byte(`{ "name":"Åsa A", "class":"eco" }`))
	if err == nil {
		t.Errorf("a name that the pattern refuses: got %s", got)
	}
	for _, good := range []string{
		`{"name":"Må","class":"eco","bags":0,"days":["mo","tu"],"extras":[]}`,
		`{"name":"M` + strings.Repeat("å", 39) + `","class":"eco"}`,
	} {
		if _, err := f.Check([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []struct{ member, field, want string }{
		{`"mail":"@x.org"`, "mail", "an e-mail address"},
		{`"mail":"m@"`, "mail", "an e-mail address"},
		{`"mail":"x.org"`, "mail", "an e-mail address"},
		{`"bags":-1`, "bags", "a whole number from 0 to 3"},
		{`"days":[1]`, "days", "options of the list"},
		{`"name":"M"`, "name", "2 to 40 characters"},
		{`"name":"` + strings.Repeat("M", 41) + `"`, "name", "2 to 40 characters"},
		{`"name":7`, "name", "a text that matches ^[A-Z]"},
		{`"mail":"m@x@y"`, "mail", "an e-mail address"},
		{`"mail":"m x@y"`, "mail", "an e-mail address"},
		{`"day":"2026-13-01"`, "day", "a date"},
		{`"at":"2026-11-22"`, "at", "with time and zone"},
		{`"page":"/relative"`, "page", "an absolute address"},
		{`"bags":1.5`, "bags", "a whole number from 0 to 3"},
		{`"bags":4`, "bags", "a whole number from 0 to 3"},
		{`"bags":"1"`, "bags", "a whole number from 0 to 3"},
		{`"price":900.500001`, "price", "a number of at most 900.5"},
		{`"aisle":"yes"`, "aisle", "true or false"},
		{`"class":"first"`, "class", "one of the 2 options"},
		{`"meal":"Fish"`, "meal", "one of the 2 options"},
		{`"extras":["wifi","wifi"]`, "extras", "each once"},
		{`"extras":["wifi","seat","lounge"]`, "extras", "at most 2 options"},
		{`"extras":"wifi"`, "extras", "options of the list"},
		{`"days":["Monday"]`, "days", "options of the list"},
		{`"seat":"12a"`, "seat", "no such field"},
		{`"name":null`, "name", "a text"},
	} {
		answer := `{"class":"eco",` + bad.member + `}`
		if !strings.HasPrefix(bad.member, `"name"`) {
			answer = `{"name":"Mara",` + answer[1:]
		}
		answer = strings.Replace(answer, `"class":"eco","class"`, `"class"`, 1)
		_, err := f.Check([]byte(answer))
		var problems form.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Field != bad.field ||
			!strings.Contains(problems[0].Want, bad.want) {
			t.Errorf("%s: got %v", answer, err)
		}
	}
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	_, err := parsed(t, flight).Check([]byte(`{"bags":9,"price":1e9,"x":1}`))
	want := "answer: name: expected a text that matches ^[A-Z], 2 to 40 characters; it must be given; " +
		"bags: expected a whole number from 0 to 3; price: expected a number of at most 900.5; " +
		"class: expected one of the 2 options; it must be given; x: expected no such field: the form doesn't have it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestReadsWhatLibrariesWrite: different spellings of the same field are read alike.
func TestReadsWhatLibrariesWrite(t *testing.T) {
	for written, want := range map[string]string{
		`{"oneOf":[{"const":"low","title":"Low"},{"const":"high","title":"High"}]}`: `select [{low Low} {high High}]`,
		`{"enum":["a","b"],"examples":["a"]}`:                                       `select [{a a} {b b}]`,
		`{"const":"yes"}`:                                                           `select [{yes yes}]`,
		`{"type":["string","null"],"default":null}`:                                 `string []`,
		`{"type":["null","integer"]}`:                                               `integer []`,
		`{"anyOf":[{"type":"string","format":"email"},{"type":"null"}],"default":null,"title":"A"}`: `string []`,
		`{"anyOf":[{"type":"null"},{"enum":["a"]}]}`:                                                `select [{a a}]`,
	} {
		f, err := form.Parse([]byte(`{"type":"object","properties":{"a":` + written + `}}`))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := fmt.Sprint(f.Fields[0].Type, " ", f.Fields[0].Options); got != want {
			t.Errorf("%s: got %s", written, got)
		}
		if got, err := f.Check([]byte(`{}`)); err != nil || string(got) != "{}" {
			t.Errorf("%s is left out: %s, %v", written, got, err)
		}
	}

	f := parsed(t, `{"type":"object","properties":{}}`)
	if got, err := f.Check([]byte(`{}`)); err != nil || string(got) != "{}" {
		t.Errorf("a form without fields: %s, %v", got, err)
	}
	if got, err := f.Check([]byte(`{"a":1}`)); err == nil {
		t.Errorf("a form without fields takes %s", got)
	}
}

func TestFreeTextIsOneText(t *testing.T) {
	f := parsed(t, `{"type":"string","description":"Which seat?","maxLength":10}`)
	if !f.FreeText() || f.Fields[0].Name != "" || !f.Fields[0].Required || f.Help != "Which seat?" {
		t.Errorf("got %+v", f)
	}
	if got, err := f.Check([]byte(`"12\u0061"`)); err != nil || string(got) != `"12a"` {
		t.Errorf("got %s, %v", got, err)
	}
	megabyte := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, bad := range []string{`"12345678901"`, `{}`, `["12a"]`, `12`, `"a" "b"`, ``, megabyte} {
		if got, err := f.Check([]byte(bad)); err == nil {
			t.Errorf("%.40s: got %s", bad, got)
		}
	}
	got, err := f.Read(func(string) []string { return []string{"12a\r\n!"} })
	if err != nil || string(got) != `"12a\n!"` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestReadsTextsOfPages: pages and command lines pass every value as a text.
func TestReadsTextsOfPages(t *testing.T) {
	f := parsed(t, flight)
	given := map[string][]string{
		"name":   {"Mara"},
		"class":  {"biz"},
		"bags":   {" 2 "},
		"aisle":  {"on"},
		"extras": {"wifi", "seat"},
		"mail":   {""},
	}
	got, err := f.Read(func(name string) []string { return given[name] })
	want := `{"aisle":true,"bags":2,"class":"biz","extras":["wifi","seat"],"name":"Mara"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}

	delete(given, "class")
	given["bags"], given["aisle"] = []string{"two"}, []string{"maybe"}
	_, err = f.Read(func(name string) []string { return given[name] })
	var problems form.Problems
	if !errors.As(err, &problems) || len(problems) != 3 || problems[0].Field != "bags" ||
		problems[1].Field != "aisle" || problems[2].Field != "class" {
		t.Errorf("got %v", err)
	}
}

// TestBoxesAreGivenOrNot: a box that is not mentioned is left out of the answer, and a value is
// kept as it was read.
func TestBoxesAreGivenOrNot(t *testing.T) {
	f := parsed(t, `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean","default":false}},
		"required":["b"]}`)
	for _, c := range []struct {
		a, b []string
		want string
	}{
		{nil, []string{""}, `{"b":false}`},
		{[]string{""}, []string{"yes"}, `{"a":false,"b":true}`},
		{[]string{"on"}, form.Texts(f.Of(&f.Fields[1], nil)), `{"a":true,"b":false}`},
		{nil, form.Texts(f.Of(&f.Fields[1], []byte(`{"b":true}`))), `{"b":true}`},
		{nil, form.Texts(f.Of(&f.Fields[1], []byte(`{}`))), ""},
	} {
		got, err := f.Read(func(name string) []string { return map[string][]string{"a": c.a, "b": c.b}[name] })
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q, %q: got %s, %v", c.a, c.b, got, err)
		}
	}
}

// TestReadsWhatIsEmpty: a text may be empty if the form has no other field, and a list that must
// have items can't be left out.
func TestReadsWhatIsEmpty(t *testing.T) {
	list := `{"type":"array","items":{"type":"string","enum":["x","y"]}`
	for _, c := range []struct {
		schema string
		given  []string
		want   string
	}{
		{`{"type":"string"}`, nil, `""`},
		{`{"type":"string"}`, []string{""}, `""`},
		{`{"type":"string","minLength":1}`, []string{""}, ""},
		{`{"type":"string","enum":["x"]}`, []string{""}, ""},
		{`{"type":"object","properties":{"a":` + list + `}}}`, nil, `{}`},
		{`{"type":"object","properties":{"a":` + list + `}},"required":["a"]}`, nil, `{"a":[]}`},
		{`{"type":"object","properties":{"a":` + list + `,"minItems":1}}}`, nil, ""},
		{`{"type":"object","properties":{"a":` + list + `,"maxItems":1}}}`, []string{"x", "y"}, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, []string{"one", "last"}, `{"a":"last"}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}}}`, []string{"off"}, `{"a":false}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}}}`, []string{"no"}, `{"a":false}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}}}`, []string{"false"}, `{"a":false}`},
		{`{"type":"object","properties":{"a":{"type":"boolean"}}}`, []string{"true"}, `{"a":true}`},
	} {
		got, err := parsed(t, c.schema).Read(func(string) []string { return c.given })
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, %q: got %s, %v", c.schema, c.given, got, err)
		}
	}
}

func TestTakesSaysWhatAFieldTakes(t *testing.T) {
	const list = `{"type":"array","items":{"type":"string","enum":["x"]},"minItems":1}`
	for schema, want := range map[string]string{
		`{"type":"string"}`:                              "a text",
		`{"type":"string","minLength":1}`:                "a text, at least 1 characters",
		`{"type":"string","maxLength":1}`:                "a text, at most 1 characters",
		`{"type":"string","minLength":1,"maxLength":1}`:  "a text, 1 to 1 characters",
		`{"type":"string","pattern":"^x","maxLength":2}`: "a text that matches ^x, at most 2 characters",
		`{"type":"string","format":"date"}`:              "a date, such as 2026-11-22",
		`{"type":"string","format":"uri"}`:               "an absolute address, such as https://example.com/page",
		`{"type":"string","format":"email"}`:             "an e-mail address, such as mara@example.com",
		`{"type":"string","format":"date-time"}`:         "a date with time and zone, such as 2026-11-22T09:30:00Z",
		`{"type":"number"}`:                              "a number",
		`{"type":"integer","minimum":1}`:                 "a whole number of at least 1",
		`{"type":"number","maximum":1.5}`:                "a number of at most 1.5",
		`{"type":"number","minimum":-1,"maximum":1}`:     "a number from -1 to 1",
		`{"type":"boolean"}`:                             "true or false",
		`{"type":"string","enum":["x","y"]}`:             "one of the 2 options",
		list:                                             "options of the list, each once, at least 1 options",
	} {
		f := parsed(t, `{"type":"object","properties":{"a":`+schema+`}}`)
		if got := f.Fields[0].Takes(); got != want {
			t.Errorf("%s takes %q, expected %q", schema, got, want)
		}
	}
}

// TestAcceptsSchemasUpToTheirBounds: every limit of a schema is inclusive.
func TestAcceptsSchemasUpToTheirBounds(t *testing.T) {
	field := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	list := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"%d"`, i)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	nested := func(n int) string {
		return `{"type":"string","default":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	fields := make([]string, form.MaxFields)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"b%d":{"type":"boolean"}`, i)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`,
		`{"type":"object","additionalProperties":true,"properties":{"a":{"type":"boolean"}}}`,
		field(`{"type":"string","minLength":0,"maxLength":1073741824}`),
		field(`{"type":"string","minLength":65536,"$schema":"https://json-schema.org/draft/2020-12/schema"}`),
		field(`{"type":"string","minLength":5,"maxLength":5}`),
		field(`{"type":"string","pattern":` + long(1000) + `}`),
		field(`{"type":"string","title":` + long(500) + `}`),
		field(`{"type":"string","description":` + long(5000) + `}`),
		field(`{"type":"string","description":"two\nlines"}`),
		field(`{"type":"string","enum":` + list(1000) + `}`),
		field(`{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`),
		field(`{"type":"string","oneOf":[{"const":` + long(500) + `,"title":` + long(500) + `}]}`),
		field(`{"type":"number","minimum":2,"maximum":2}`),
		field(`{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":2}`),
		field(`{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"maxItems":1}`),
		field(`{"type":"array","items":{"type":"string","enum":["x","y"]},"uniqueItems":true}`),
		field(`{"type":"array","items":{"type":"string","enum":["x","y"]},"maxItems":1000}`),
	} {
		if _, err := form.Parse([]byte(schema)); err != nil {
			t.Errorf("%.120s: %v", schema, err)
		}
	}

	for _, bad := range []struct{ schema, path string }{
		{field(`{"type":"string","maxLength":1073741825}`), "properties.a.maxLength"},
		{field(`{"type":"string","minLength":65537}`), "properties.a.minLength"},
		{field(`{"type":"string","minLength":2,"maxLength":1}`), "properties.a.minLength"},
		{field(`{"type":"string","minLength":1.5}`), "properties.a.minLength"},
		{field(`{"type":"string","minLength":"5"}`), "properties.a.minLength"},
		{field(`{"type":"string","pattern":` + long(1001) + `}`), "properties.a.pattern"},
		{field(`{"type":"string","pattern":7}`), "properties.a.pattern"},
		{field(`{"type":"string","title":` + long(501) + `}`), "properties.a.title"},
		{field(`{"type":"string","title":"two\nlines"}`), "properties.a.title"},
		{field(`{"type":"string","description":` + long(5001) + `}`), "properties.a.description"},
		{field(`{"type":"string","enum":` + list(1001) + `}`), "properties.a"},
		{field(`{"type":"string","enum":"x"}`), "properties.a.enum"},
		{field(`{"type":"string","enum":["x","y"],"enumNames":["X"]}`), "properties.a.enumNames"},
		{field(`{"type":"string","enum":["x"],"enumNames":[1]}`), "properties.a.enumNames.0"},
		{field(`{"type":"string","enum":["x"],"minLength":1}`), "properties.a"},
		{field(`{"type":"string","enum":["x"],"maxLength":1}`), "properties.a"},
		{field(`{"type":"string","enum":["x"],"format":"date"}`), "properties.a"},
		{field(`{"type":"string","enum":["x"],"pattern":"x"}`), "properties.a"},
		{field(`{"type":"string","enum":[` + long(501) + `]}`), "properties.a"},
		{field(`{"type":"string","enum":["x"],"enumNames":[` + long(501) + `]}`), "properties.a"},
		{field(`{"type":"string","oneOf":[{"const":"x","title":7}]}`), "properties.a.oneOf.0"},
		{field(`{"type":"string","oneOf":[{"const":"x"},{"const":1}]}`), "properties.a.oneOf.1"},
		{field(`{"type":"string","oneOf":[{"const":"x","more":"y"}]}`), "properties.a.oneOf.0"},
		{field(`{"type":"number","multipleOf":2}`), "properties.a.multipleOf"},
		{field(`{"type":"array","items":{"type":"string","enum":["x"]},"contains":{}}`), "properties.a.contains"},
		{field(`{"type":"array","items":{"type":"string","enum":["x"],"pattern":"x"}}`), "properties.a.items.pattern"},
		{field(`{"type":"array","items":{"type":"string","enum":["x"]},"uniqueItems":1}`), "properties.a.uniqueItems"},
		{field(`{"type":"array","items":{"type":"string","enum":["x"]},"maxItems":1001}`), "properties.a.maxItems"},
		{
			field(`{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":2,"maxItems":1}`),
			"properties.a.minItems",
		},
		{field(nested(13)), "properties.a.default"},
		{field(nested(14)), ""},
		{`{"type":"object","additionalProperties":{},"properties":{"a":{"type":"boolean"}}}`, "additionalProperties"},
		{`{"type":"object","required":"a","properties":{"a":{"type":"boolean"}}}`, "required"},
		{`{"type":"object","properties":{"":{"type":"boolean"}}}`, "properties"},
	} {
		_, err := form.Parse([]byte(bad.schema))
		var refused *form.SchemaError
		if !errors.As(err, &refused) || refused.Path != bad.path {
			t.Errorf("%.120s: got %v, expected it at %q", bad.schema, err, bad.path)
			continue
		}
		where := "schema, at " + bad.path + ": expected "
		if bad.path == "" {
			where = "schema: expected "
		}
		if !strings.HasPrefix(err.Error(), where) {
			t.Errorf("got %v, expected %s", err, where)
		}
	}
}

func TestRefusesWhatNoFormCanAsk(t *testing.T) {
	field := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	many := `{"type":"object","properties":{"a0":{"type":"boolean"}`
	for i := range form.MaxFields {
		many += fmt.Sprintf(`,"b%d":{"type":"boolean"}`, i)
	}

	for _, bad := range []struct{ schema, path, want string }{
		{`[]`, "", "an object"},
		{`{"type":"object"`, "", "a JSON Schema"},
		{`{"type":"object","type":"string"}`, "", "a JSON Schema"},
		{`{"type":"array"}`, "type", `"object" with properties`},
		{`{"type":"object"}`, "properties", "at most 100 fields"},
		{many + `}}`, "properties", "at most 100 fields"},
		{`{"type":"object","$ref":"https://x.org/s.json","properties":{"a":{"type":"boolean"}}}`, "$ref", "flat"},
		{`{"type":"object","allOf":[],"properties":{"a":{"type":"boolean"}}}`, "allOf", "flat"},
		{`{"type":"object","required":["b"],"properties":{"a":{"type":"boolean"}}}`, "required.0",
			"name of a property"},
		{`{"type":"object","properties":{"a\u202e":{"type":"boolean"}}}`, "properties", "visible"},
		{field(`true`), "properties.a", "an object"},
		{field(`{"$ref":"#"}`), "properties.a.type", "flat"},
		{field(`{"type":"string","$ref":"#/properties/a"}`), "properties.a.$ref", "flat"},
		{field(`{"type":"object","properties":{}}`), "properties.a.type", "flat"},
		{field(`{"type":"array","items":{"type":"object"}}`), "properties.a.items", "the options"},
		{field(`{"type":"array","items":{"type":"string"}}`), "properties.a.items", "1 to 1000 options"},
		{field(`{"type":"array","items":{"type":"string","enum":["x"]},"minItems":2}`), "properties.a.minItems",
			"options"},
		{field(`{"type":["string","null","boolean"]}`), "properties.a.type", "flat"},
		{field(`{"type":["string","boolean"]}`), "properties.a.type", "flat"},
		{field(`{"type":"null"}`), "properties.a.type", "flat"},
		{field(`{"anyOf":[{"type":"string"},{"type":"boolean"}]}`), "properties.a.type", "flat"},
		{field(`{"anyOf":[{"type":"null"},{"type":"null"}]}`), "properties.a.type", "flat"},
		{field(`{"const":7}`), "properties.a.enum.0", "a text"},
		{field(`{"enum":[1,2]}`), "properties.a.enum.0", "a text"},
		{field(`{"type":"string","pattern":"(?=x)"}`), "properties.a.pattern", "RE2"},
		{field(`{"type":"string","pattern":"(a"}`), "properties.a.pattern", "RE2"},
		{field(`{"type":"string","format":"regex"}`), "properties.a.format", "email, uri, date or date-time"},
		{field(`{"type":"string","minLength":5,"maxLength":4}`), "properties.a.minLength", "maxLength, 4"},
		{field(`{"type":"string","minLength":-1}`), "properties.a.minLength", "a whole number"},
		{field(`{"type":"string","maxLength":2,"default":"abc"}`), "properties.a.default", "at most 2 characters"},
		{field(`{"type":"number","minimum":2,"maximum":1}`), "properties.a.minimum", "maximum, 1"},
		{field(`{"type":"integer","default":1.5}`), "properties.a.default", "a whole number"},
		{field(`{"type":"integer","minimum":"1"}`), "properties.a.minimum", "a number"},
		{field(`{"type":"boolean","default":"true"}`), "properties.a.default", "true or false"},
		{field(`{"type":"string","enum":[]}`), "properties.a", "1 to 1000 options"},
		{field(`{"type":"string","enum":["x","x"]}`), "properties.a", "differ"},
		{field(`{"type":"string","oneOf":[{"const":"x","title":"X"},{"const":"y","title":"X"}]}`), "properties.a",
			"title"},
		{field(`{"type":"string","default":"pay \u202e9"}`), "properties.a.default", "visible"},
		{field(`{"type":"string","default":"a\u200bb"}`), "properties.a.default", "visible"},
		{`{"type":"string","default":"a\u0000b"}`, "default", "visible"},
		{field(`{"type":"string","enum":["x",1]}`), "properties.a.enum.1", "a text"},
		{field(`{"type":"string","enum":["x","a\u0000b"]}`), "properties.a", "visible"},
		{field(`{"type":"string","enum":["x"],"enumNames":["\u001b[2J"]}`), "properties.a", "visible"},
		{field(`{"type":"string","enum":["x"],"enumNames":["X","Y"]}`), "properties.a.enumNames", "as many titles"},
		{field(`{"type":"string","enum":["x"],"default":"y"}`), "properties.a.default", "one of the 1 options"},
		{field(`{"type":"string","enum":["x"],"maxLength":3}`), "properties.a", "no bounds beside"},
		{field(`{"type":"string","oneOf":[{"const":"x","title":"X","description":"more"}]}`), "properties.a.oneOf.0",
			"const"},
		{field(`{"type":"string","title":"\u202eX"}`), "properties.a.title", "visible"},
		{field(`{"type":"string","description":7}`), "properties.a.description", "a text"},
	} {
		_, err := form.Parse([]byte(bad.schema))
		var refused *form.SchemaError
		if !errors.As(err, &refused) || refused.Path != bad.path || !strings.Contains(refused.Want, bad.want) {
			t.Errorf("%.120s: got %v", bad.schema, err)
		}
	}
}

// TestRefusesSecrets: fields that ask for secrets are refused, and fields whose names only sound
// similar are accepted.
func TestRefusesSecrets(t *testing.T) {
	one := func(name, schema string) error {
		_, err := form.Parse([]byte(`{"type":"object","properties":{"` + name + `":` + schema + `}}`))

		return err
	}
	text := `{"type":"string"}`
	for _, name := range []string{
		"password", "user_password", "userPassword", "Password2", "api_key", "apiKey", "API key", "apikey",
		"access-token", "clientSecret", "PIN", "otp", "cvc", "private_key", "credit_card_number", "seedPhrase",
		"passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "credential", "credentials",
		"token", "pin", "totp", "cvv", "ssn", "privatekey", "my api key", "my access key", "my private key",
		"my secret key", "my signing key", "my encryption key", "my card number", "my security code",
		"my recovery code", "my pass phrase", "my pass word", "one time", "my seed phrase",
		"passw0rd", "p@ssword", "pa$$word", "t0ken", "Pasword", "passwrod", "paasword", "Passwort",
		"Kennwort", "contraseña",
		"mot de passe", "senha", "hasło", "şifre", "пароль", "pаssword", "密码", "请输入密码", "パスワード", "비밀번호", "ｐassword",
		"SMS code", "verification code", "Recovery phrase", "ssh key", "sshKey", "backup codes or backup code",
		"p-i-n", "aPin", "my api__key", "a.pin", "9pwd",
		"código de seguridad", "clave de acceso", "Clé d'API", "code de vérification", "Benutzerpasswort",
		"Sicherheitscode",
		"API-Schlüssel", "geheime sleutel", "chave de API", "codice di sicurezza", "kod weryfikacyjny",
		"doğrulama kodu",
		"ваш пароль",
		"паролю", "код подтверждения", "mã xác minh", "kode verifikasi", "jelszavad", "salasanasi", "lösenordet",
		"助记词",
		"認証コード", "인증번호", "كلمة السر", "رمز التحقق", "গোপন পাসওয়ার্ড", "secret_token", "pin_code", "token count secret",
	} {
		if err := one(name, text); err == nil || !strings.Contains(err.Error(), "shown and kept") {
			t.Errorf("%s: got %v", name, err)
		}
	}

	for _, schema := range []string{
		`{"type":"string","title":"Your password"}`,
		`{"type":"string","format":"password"}`,
		`{"type":"string","writeOnly":true}`,
		`{"type":"string","enum":["a"],"title":"API key"}`,
		`{"type":"string","description":"Type your password"}`,
		`{"type":"string","description":"Your code: the one that your SMS code app shows"}`,
	} {
		if err := one("x", schema); err == nil || !strings.Contains(err.Error(), "shown and kept") {
			t.Errorf("%s: got %v", schema, err)
		}
	}

	for _, name := range []string{
		"max_tokens", "pinned", "keyboard", "passenger", "secretary", "key", "compass", "number", "card", "one",
		"time", "security", "phrase", "word", "key api", "my number", "passport",
		"passport number", "backwards", "keyword",
		"token_count", "secret_santa_name", "secretName", "password_policy", "postal pin_code", "clave", "code postal",
		"código postal", "Schlüsselwort", "ключевое слово", "chiave di lettura",
		"postal code", "discount code", "mot", "pasta", "4 seats", "class of 2024", "код", "名前", "email address",
	} {
		if err := one(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if err := one("x", `{"type":"string","description":"Asked one time."}`); err != nil {
		t.Errorf("a sentence: %v", err)
	}
	if err := one("prompt_tokens", `{"type":"integer"}`); err != nil {
		t.Errorf("a number of tokens: %v", err)
	}
	for schema, want := range map[string]bool{
		`{"type":"string","title":"PIN code","description":"Of your postal address."}`:       true,
		`{"type":"string","description":"PIN and password of your postal box"}`:              false,
		`{"type":"string","title":"PIN","description":"To sign in with your email address"}`: false,
		`{"type":"string","title":"Token","description":"How many"}`:                         false,
		`{"type":"integer","title":"PIN"}`:                                                   false,
	} {
		if err := one("token_count", schema); (err == nil) != want {
			t.Errorf("%s: %v", schema, err)
		}
	}
	if err := one("password_changed", `{"type":"boolean"}`); err != nil {
		t.Errorf("a yes or no: %v", err)
	}
}

// TestAcceptedAnswersStayAccepted: an accepted answer is accepted again in its canonical form,
// which does not change any more.
func TestAcceptedAnswersStayAccepted(t *testing.T) {
	f := parsed(t, flight)
	rapid.Check(t, func(t *rapid.T) {
		given := map[string][]string{}
		for _, field := range f.Fields {
			n := rapid.IntRange(0, 2).Draw(t, "n")
			for range n {
				text := rapid.SampledFrom([]string{"Mara", "1", "-1", "900.5", "true", "", "eco", "v", "wifi", "mo"})
				given[field.Name] = append(given[field.Name], text.Draw(t, "text"))
			}
		}

		first, err := f.Read(func(name string) []string { return given[name] })
		if err != nil {
			return
		}
		second, err := f.Check(first)
		if err != nil || string(first) != string(second) {
			t.Fatalf("%s: got %s, %v", first, second, err)
		}
	})
}

// costly is a pattern of 955 bytes whose program has 240,000 instructions.
var costly = "^(" + strings.Repeat(".{0,999}", 119) + ")x$"

// TestPatternsOfPeersAreBounded sends short patterns whose programs or matches are expensive.
func TestPatternsOfPeersAreBounded(t *testing.T) {
	fields := func(n int, pattern string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"f%d":{"type":"string","pattern":%q}`, i, pattern))
		}

		return `{"type":"object","properties":{` + strings.Join(all, ",") + `}}`
	}
	long := strings.Repeat("a", 30_000)
	for name, c := range map[string]struct{ schema, path, want string }{
		"a huge program": {fmt.Sprintf(`{"type":"string","pattern":%q}`, costly), "pattern", "2000 steps"},
		"many of them":   {fields(6, ".{0,999}"), "properties.f5.pattern", "10000 steps"},
		"many long ones": {fields(9, strings.Repeat("a", 999)), "properties.f8.pattern", "8192 bytes"},
		"a long default": {
			fmt.Sprintf(`{"type":"string","pattern":".{0,999}","default":%q}`, long), "default", "too long",
		},
		"not even a pattern": {`{"type":"string","pattern":7}`, "pattern", "RE2"},
	} {
		_, err := form.Parse([]byte(c.schema))
		var refused *form.SchemaError
		if !errors.As(err, &refused) || refused.Path != c.path || !strings.Contains(refused.Want, c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	asked := parsed(t, `{"type":"string","pattern":"^.{0,900}$"}`)
	_, err := asked.Check(fmt.Appendf(nil, "%q", long))
	var problems form.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "too long for its pattern") {
		t.Errorf("an answer of 30,000 characters was matched: %v", err)
	}
	if _, err := asked.Check([]byte(`"short"`)); err != nil {
		t.Error(err)
	}
}

// TestKeptFormCostsItsText reads a form that was stored before patterns were limited: showing it
// compiles no pattern, and no answer fits it.
func TestKeptFormCostsItsText(t *testing.T) {
	schema := fmt.Appendf(nil, `{"type":"string","pattern":%q,"default":"ax"}`, costly)
	if n := testing.AllocsPerRun(5, func() { must.Get(form.ParseKept(schema))(t) }); n > 100 {
		t.Errorf("reading a kept form allocates %v times", n)
	}
	asked := must.Get(form.ParseKept(schema))(t)
	if _, err := asked.Check([]byte(`"ax"`)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
	if takes := asked.Fields[0].Takes(); !strings.Contains(takes, costly) {
		t.Errorf("the pattern is not shown: %s", takes)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(flight), []byte(`{"name":"Mara","class":"eco"}`))
	f.Add([]byte(`{"type":"string"}`), []byte(`"x"`))
	f.Fuzz(func(t *testing.T, schema, answer []byte) {
		asked, err := form.Parse(schema)
		if err != nil {
			return
		}
		got, err := asked.Check(answer)
		if err != nil {
			return
		}
		if _, err := asked.Check(got); err != nil {
			t.Errorf("accepted, and refused in its canonical form %s: %v", got, err)
		}
	})
}
