package jsonmsg

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
	"pgregory.net/rapid"
)

// Two readers could disagree about each of these texts.
func TestCheckRefuses(t *testing.T) {
	for text, want := range map[string]value.ErrorCode{
		``:                           value.Syntax,
		`{"a":tru}`:                  value.Syntax,
		`{"a":01}`:                   value.Syntax,
		`{"a":1}{}`:                  value.TrailingData,
		`{"a":1,"a":2}`:              value.DuplicateKey,
		`[{"a":{"b":1,"\u0062":2}}]`: value.DuplicateKey,
		"{\"a\":\"\xff\"}":           value.InvalidUTF8,
		`{"a":"\ud800"}`:             value.LoneSurrogate,
		`{"\udc00":1}`:               value.LoneSurrogate,
		`[1e999]`:                    value.NumberRange,
		strings.Repeat("[", 129) + strings.Repeat("]", 129): value.TooDeep,
	} {
		_, err := Check([]byte(text), Limits())
		var bad *value.Error
		if !errors.As(err, &bad) || bad.Code != want {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
		if fields := Read([]byte(text), Limits()); fields.Err() == nil || fields.Has("a") {
			t.Errorf("%.40s: something is read of it", text)
		}
	}
}

// Errors contain the path.
func TestFieldsSayWhere(t *testing.T) {
	cases := []struct {
		text string
		read func(Fields)
		want string
	}{
		{`[]`, func(f Fields) {}, "expected an object, found an array"},
		{`{"a":7}`, func(f Fields) { f.Text("a") }, "a: expected a string, found a number"},
		{`{}`, func(f Fields) { f.Need("a") }, "a: expected a string, found nothing"},
		{`{"a":null}`, func(f Fields) { f.Need("a") }, "a: expected a string, found nothing"},
		{`{"a":""}`, func(f Fields) { f.NonEmpty("a") }, "a: expected a string, found none"},
		{`{"a":1}`, func(f Fields) { f.Bool("a") }, "a: expected true or false, found a number"},
		{`{"a":1.0}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":1e0}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":-0}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":10}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":99999999999999999999}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":{"b":[{},{"c":true}]}}`, func(f Fields) {
			for _, b := range f.Object("a").Objects("b") {
				b.Text("c")
			}
		}, "a.b[1].c: expected a string, found a boolean"},
		{`{"a":[1]}`, func(f Fields) { f.Objects("a") }, "a[0]: expected an object, found a number"},
		{`{"a":{}}`, func(f Fields) { f.Objects("a") }, "a: expected an array, found an object"},
		{`{}`, func(f Fields) { f.Required("a") }, "a: expected an object, found nothing"},
		{`{"a":"x","b":1}`, func(f Fields) {
			f.Text("a")
			f.Text("b")
			f.Bool("a")
		}, "b: expected a string, found a number"},
		{`{"a":-1}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a number"},
		{`{"a":"1"}`, func(f Fields) {
			f.Int("a", 0, 9)
		}, "a: expected a whole number from 0 to 9, in digits, found a string"},
		{`{"a":{}}`, func(f Fields) { f.Object("a").Expect("b", "more") }, "a.b: expected more"},
		{`{}`, func(f Fields) {
			f.String("a", []byte(`"\ud800"`))
		}, "a: expected a string that all readers understand alike"},
		{`{"a":[1,2,3]}`, func(f Fields) {
			for range f.Elements("a", 2) {
			}
		}, "a: expected at most 2 elements"},
	}
	for _, c := range cases {
		fields := Read([]byte(c.text), Limits())
		c.read(fields)
		if err := fields.Err(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestFieldsRead(t *testing.T) {
	fields := Read(
		[]byte(` {"t" : "\u0041\n", "b":true, "not":false, "n":-7, "m":120, "raw": [ 1.50 ], "none":null, "list":["x",{}]} `),
		Limits(),
	)
	if s := fields.Text("t"); s != "A\n" {
		t.Errorf("%q", s)
	}
	if is := fields.Bool("b"); is == nil || !*is {
		t.Error(is)
	}
	if is := fields.Bool("not"); is == nil || *is {
		t.Error(is)
	}
	if n := fields.Int("n", -7, 0); n != -7 {
		t.Error(n)
	}
	if n := fields.Int("m", 0, 120); n != 120 {
		t.Error(n)
	}
	if n := fields.Int("missing", 5, 9); n != 0 {
		t.Error(n)
	}
	if raw, there := fields.Given("missing"); there || raw != nil {
		t.Errorf("%s", raw)
	}
	if raw := fields.Raw("raw"); string(raw) != "[ 1.50 ]" {
		t.Errorf("%s", raw)
	}
	if raw, there := fields.Given("none"); !there || string(raw) != "null" || fields.Has("none") ||
		fields.Optional("none") != nil {
		t.Errorf("%s", raw)
	}
	paths := []string{}
	for path, raw := range fields.Elements("list", 2) {
		paths = append(paths, path+" "+string(raw))
	}
	if !reflect.DeepEqual(paths, []string{`list[0] "x"`, `list[1] {}`}) {
		t.Error(paths)
	}
	if err := fields.Err(); err != nil {
		t.Error(err)
	}
}

// Valid members of a broken message are still readable.
func TestSalvage(t *testing.T) {
	fields := Salvage([]byte(`{"id":"x","args":{"a":tru,"b":"\ud800"},"other":1,"other":2}`), Limits(), "id", "args")
	if fields.Err() == nil || fields.Text("id") != "x" || string(fields.Raw("args")) != `{"a":tru,"b":"\ud800"}` ||
		fields.Has("other") {
		t.Error(fields.Err(), fields.Members())
	}
	// With known names, only these are read, and others may be duplicated. Without known names,
	// all are read.
	fields = Salvage([]byte(`{"other":1,"other":2,"id":"x"}`), Limits(), "id")
	if fields.Text("id") != "x" || len(fields.Members()) != 1 {
		t.Error(fields.Members())
	}
	fields = Salvage([]byte(`{"id":"x","args":{"a":tru}}`), Limits())
	if fields.Text("id") != "x" || len(fields.Members()) != 2 {
		t.Error(fields.Members())
	}
	fields = Salvage([]byte(`{"list":[1,2],"bad":[1,tru],"not":tru}`), Limits(), "list", "bad")
	for name, want := range map[string]int{"list": 2, "bad": 0} {
		got := 0
		for range fields.Elements(name, 9) {
			got++
		}
		if got != want {
			t.Errorf("%d elements of %s, expected %d", got, name, want)
		}
	}

	for _, text := range []string{`{"id":"x","id":"y"}`, `{"id":"x","\u0069d":"y"}`, `{"id":"x"`, `{"id":"x"}{}`} {
		if fields := Salvage([]byte(text), Limits(), "id"); fields.Err() == nil || fields.Has("id") {
			t.Errorf("%s: %v", text, fields.Members())
		}
	}
}

func TestRefusedNumberIsZero(t *testing.T) {
	fields := Read([]byte(`{"a":10}`), Limits())
	if n := fields.Int("a", 1, 9); n != 0 || fields.Err() == nil {
		t.Errorf("%d, %v", n, fields.Err())
	}
}

func TestLimits(t *testing.T) {
	if lim := Limits(); lim.MaxBytes != 64*1024*1024 || lim.MaxDepth != 128 {
		t.Errorf("%d bytes, %d levels", lim.MaxBytes, lim.MaxDepth)
	}
}

func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		"":        "nothing",
		" \t\r\n": "nothing",
		"\t{}":    "an object",
		"\r[]":    "an array",
		"\n\"x\"": "a string",
		" true":   "a boolean",
		"false":   "a boolean",
		"null":    "null",
		"-1":      "a number",
		"0":       "a number",
	} {
		if got := Describe(text); got != want {
			t.Errorf("%q: %s, expected %s", text, got, want)
		}
	}
}

func TestProblem(t *testing.T) {
	fields := Read([]byte(`{"a":1}`), Limits())
	fields.Text("a")
	if p := Problem(fmt.Errorf("more: %w", fields.Err())); p == nil || p.Path != "a" || p.Found != "a number" {
		t.Errorf("%+v", p)
	}
	if p := Problem(errors.New("another")); p != nil {
		t.Errorf("%+v", p)
	}
}

// An unchecked text without an end has no members.
func TestMembersOfBrokenObjects(t *testing.T) {
	for _, text := range []string{`{`, `{"a":1`, `{"a":1,`, `{"a":1,]`, `{"a":1 "b":2}`, `{"a":1,"b"}`, `{"a":tru}`} {
		if got := Members([]byte(text)); got != nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestReadString(t *testing.T) {
	for raw, want := range map[string]string{`""`: "", ` "a\"b\u00e9\ud83d\ude00" `: "a\"bé😀"} {
		if got, ok := ReadString(raw); !ok || got != want {
			t.Errorf("%s: %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{
		``,
		` `,
		`a`,
		`"`,
		`"a`,
		`"a"b`,
		`"a" "b"`,
		`"\ud800"`,
		`"\ude00\ud83d"`,
		"\"\xff\"",
		`"\x"`,
		"\"\n\"",
		`7`,
		`null`,
	} {
		if got, ok := ReadString(raw); ok || got != "" {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

// A value that the loop does not read is skipped.
func TestCursorPasses(t *testing.T) {
	text := `{"a":[1,{"b":2},"]"],"c":{"d":[]},"e":5,"f":{},"g":[]}`
	c := NewCursor([]byte(text), text)
	var names []string
	for name := range c.Members() {
		names = append(names, name)
		if name == "f" {
			for inner := range c.Members() {
				t.Errorf("an empty object has the member %s", inner)
			}
		}
		if name != "a" && name != "g" {
			continue
		}
		for i := range c.Elements() {
			if i == 1 {
				at := c.Pass()
				names = append(names, text[at.From:at.To])
			}
		}
	}

	if !reflect.DeepEqual(names, []string{"a", `{"b":2}`, "c", "e", "f", "g"}) || c.End() != len(text) {
		t.Error(names, c.End())
	}
}

func TestTakeAndPut(t *testing.T) {
	for _, c := range []struct{ object, name, taken, rest string }{
		{`{}`, "a", "", `{}`},
		{` { "a" : 1 } `, "a", "1", ""},
		{`{"a": 1 , "b":2}`, "a", "1", `{"b":2}`},
		{`{"a":1, "b" :[2] ,"c":3}`, "b", "[2]", `{"a":1 ,"c":3}`},
		{`{"a":1,"\u0062":2}`, "b", "2", `{"a":1}`},
		{`[1]`, "a", "", `[1]`},
		{``, "a", "", ``},
	} {
		taken, rest := Take([]byte(c.object), c.name)
		if string(taken) != c.taken || string(rest) != c.rest {
			t.Errorf("%s: %s, %s", c.object, taken, rest)
		}
	}

	for object, want := range map[string]string{
		``:               `{"k":7}`,
		`null`:           `{"k":7}`,
		`{ }`:            `{"k":7}`,
		`{"a":1 }`:       `{"a":1,"k":7 }`,
		`{"k":1, "b":2}`: `{"b":2,"k":7}`,
	} {
		if got := Put([]byte(object), "k", []byte("7")); string(got) != want {
			t.Errorf("%s: %s", object, got)
		}
	}
}

func TestWriter(t *testing.T) {
	out, err := Object(func(w *Writer) {
		w.Member("s", "<&>\u2028\"\\\n\x01")
		w.Optional("left out", "")
		w.Optional("o", "x")
		w.Name("b").Bool(true)
		w.Name("n").Int(-7)
		w.Name("f").Float(1.5)
		w.Name("raw").Raw([]byte(`{ "x": 1.0 }`))
		w.Name("list").Strings([]string{"a", "b"})
		w.Name("in").Object(func(w *Writer) {})
		w.Name("of").List(2, func(w *Writer, i int) { w.Int(int64(i)) })
		w.Splice([]byte(` {"y":[ 2 ]} `))
		w.Splice([]byte(`{}`))
	})
	want := `{"s":"<&>` + "\u2028" + `\"\\\n\u0001","o":"x","b":true,"n":-7,"f":1.5,"raw":{ "x": 1.0 ` +
		`},"list":["a","b"],"in":{},"of":[0,1],"y":[ 2 ]}`
	if err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}

	// Commas separate elements of every kind.
	out, err = Object(func(w *Writer) {
		w.Name("all").List(2, func(w *Writer, i int) {
			w.Object(func(w *Writer) { w.Name("n").Int(120) })
			w.List(1, func(w *Writer, i int) { w.Bool(false) })
			w.Bool(true)
			w.Float(-0.25)
			w.Float(1e300)
			w.Value(map[string]int{"v": i})
			w.Verbatim([]byte("null"))
		})
		w.Name("raw").Elements([][]byte{[]byte("1"), []byte(`"a"`)})
	})
	element := `{"n":120},[false],true,-0.25,1e+300,{"v":%d},null`
	want = fmt.Sprintf(`{"all":[`+element+`,`+element+`],"raw":[1,"a"]}`, 0, 1)
	if err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
	if single := NewCursor([]byte("7"), "7").Pass(); !single.Exists() || single != (Span{0, 1}) {
		t.Error(single)
	}

	w := Append([]byte("before "))
	w.Strings(nil)
	if string(w.Text) != "before []" {
		t.Errorf("%s", w.Text)
	}
}

// No value can add a member of its own.
func TestWriterRefuses(t *testing.T) {
	for want, fill := range map[string]func(*Writer){
		"a: expected JSON":                   func(w *Writer) { w.Name("a").Raw([]byte(`1,"b":2`)) },
		"b: expected JSON":                   func(w *Writer) { w.Name("b").Raw(nil) },
		"c: expected UTF-8":                  func(w *Writer) { w.Member("c", "\xff") },
		"g: expected a number that JSON has": func(w *Writer) { w.Name("g").Float(math.Inf(-1)) },
		"h: expected a number that JSON has": func(w *Writer) { w.Name("h").Float(math.NaN()) },
		"json: unsupported type: func()":     func(w *Writer) { w.Name("f").Value(func() {}) },
		"d: expected a number that JSON has": func(w *Writer) {
			zero := 0.0
			w.Name("d").Float(1 / zero)
		},
		"the caller's": func(w *Writer) {
			w.Fail(errors.New("the caller's"))
			w.Member("e", "\xff")
		},
	} {
		out, err := Object(fill)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if !json.Valid(out) {
			t.Errorf("%s", out)
		}
	}
}

func TestMarshal(t *testing.T) {
	if out, err := Marshal(map[string]string{"a": "<&>"}); err != nil || string(out) != `{"a":"<&>"}` {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function is no JSON")
	}
}

// encoding/json and our reader decode the strings that were written.
func TestStringsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		raw := AppendString(nil, s)
		var other string
		if err := json.Unmarshal(raw, &other); err != nil || other != s {
			t.Fatalf("%s: %q, %v", raw, other, err)
		}
		if again, ok := ReadString(raw); !ok || again != s || String(string(raw)) != s {
			t.Fatalf("%s: %q", raw, again)
		}
	})
}

// Members finds the same members as encoding/json, and Take and Put change nothing else.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		` { "a" : [1,{"b":"]}"}] , "\u0062":"x\\\"," } `,
		`{"a":1.50,"":null,"\ud83d\ude00":{}}`,
		`[]`,
		`"a"`,
	} {
		f.Add([]byte(seed), "a")
	}

	f.Fuzz(func(t *testing.T, text []byte, name string) {
		name = strings.ToValidUTF8(name, "?")
		kind, err := Check(text, Limits())
		fields := Read(text, Limits())
		if (err == nil && kind == value.Object) != (fields.Err() == nil) {
			t.Fatalf("%v and %v", err, fields.Err())
		}
		Salvage(text, Limits(), name)
		ReadString(text)
		if fields.Err() != nil {
			return
		}

		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &want); err != nil || len(want) != len(fields.Members()) {
			t.Fatalf("encoding/json: %v, %d members", err, len(want))
		}
		for _, m := range fields.Members() {
			if string(want[m.Name]) != string(m.Raw) {
				t.Fatalf("%q: %s and %s", m.Name, m.Raw, want[m.Name])
			}
		}

		taken, rest := Take(text, name)
		if string(taken) != string(want[name]) {
			t.Fatalf("%q: took %s, not %s", name, taken, want[name])
		}
		if rest != nil {
			if _, err := Check(rest, Limits()); err != nil || Get(rest, name) != nil {
				t.Fatalf("%s: %v", rest, err)
			}
		}
		if put := Put(text, name, []byte("[0]")); !json.Valid(put) || string(Get(put, name)) != "[0]" {
			t.Fatalf("%q: put into %s gives %s", name, text, put)
		}
	})
}

// A value is found by its path, with columns in characters. If the path leads nowhere, the
// result is the last value on it.
func TestPlace(t *testing.T) {
	src := []byte("{\"é\": [1,\n  {\"n\": true}], \"2\": 3}")
	for path, want := range map[string]string{
		"":       "1:1 ",
		"é":      "1:7 é",
		"é/0":    "1:8 é[0]",
		"é/1":    "2:3 é[1]",
		"é/1/n":  "2:9 é[1].n",
		"é/9":    "1:7 é[9]",
		"x/y":    "1:1 x.y",
		"é/1/n/": "2:9 é[1].n.",
		"2":      "2:22 [2]",
	} {
		segments := strings.Split(path, "/")
		if path == "" {
			segments = nil
		}
		line, column := Place(src, segments)
		if got := fmt.Sprintf("%d:%d %s", line, column, Path(segments)); got != want {
			t.Errorf("%s: %s, expected %s", path, got, want)
		}
	}
}

// White space before a value is skipped, and the position in an empty text is its end.
func TestOffset(t *testing.T) {
	for _, c := range []struct {
		text string
		path []string
		want int
	}{
		{"", nil, 0},
		{" \t", nil, 2},
		{" {}", nil, 1},
		{`{"a":7,"b":[2,3]}`, []string{"a"}, 5},
		{`{"a":7,"b":[2,3]}`, []string{"b", "1"}, 14},
		{`{"a":7,"b":[2,3]}`, []string{"b", "2"}, 11},
	} {
		if got := Offset([]byte(c.text), c.path); got != c.want {
			t.Errorf("%s %v: %d, expected %d", c.text, c.path, got, c.want)
		}
	}
	for want, path := range map[string][]string{
		"":          nil,
		"a[10].2b.": {"a", "10", "2b", ""},
		"[0].1~":    {"0", "1~"},
	} {
		if got := Path(path); got != want {
			t.Errorf("%v: %s, expected %s", path, got, want)
		}
	}
}
