package settings

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
)

// hook returns an item of a list.
func hook() Object {
	return Object{
		{Name: "matcher", Value: "*"},
		{Name: "hooks", Value: []Object{{{Name: "command", Value: "assent"}, {Name: "timeout", Value: 600}}}},
	}
}

const (
	hookLines = `{
        "matcher": "*",
        "hooks": [
          {
            "command": "assent",
            "timeout": 600
          }
        ]
      }`
	hookLine = `{"matcher": "*", "hooks": [{"command": "assent", "timeout": 600}]}`
)

// listed returns texts, and the same with one more item of hooks.before.
func listed() map[string][2]string {
	return map[string][2]string{
		"lines with comments": {
			"{\n  \"hooks\": {\n    \"before\": [\n      // one\n      {\"a\": 1} // behind\n    ],\n    \"b\": 2\n  }\n}\n",
			"{\n  \"hooks\": {\n    \"before\": [\n      // one\n      {\"a\": 1}, // behind\n      " + hookLines +
				"\n    ],\n    \"b\": 2\n  }\n}\n",
		},
		"a comma at the end": {
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1}, // behind\n    ],\n  },\n}",
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1}, // behind\n      " + hookLines + "\n    ],\n  },\n}",
		},
		"lines": {
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1}\n    ]\n  }\n}\n",
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1},\n      " + hookLines + "\n    ]\n  }\n}\n",
		},
		"a comment before a comma": {
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1} /* one */,\n    ]\n  }\n}\n",
			"{\n  \"hooks\": {\n    \"before\": [\n      {\"a\": 1}, /* one */\n      " + hookLines + "\n    ]\n  }\n}\n",
		},
		"an empty list": {
			"{\n  \"hooks\": {\n    \"before\": []\n  }\n}",
			"{\n  \"hooks\": {\n    \"before\": [\n      " + hookLines + "\n    ]\n  }\n}",
		},
		"one line": {`{"hooks": {"before": [{"a": 1}]}}`, `{"hooks": {"before": [{"a": 1}, ` + hookLine + `]}}`},
		"no list yet": {
			"{\n  \"hooks\": {\n    \"b\": 2\n  }\n}",
			"{\n  \"hooks\": {\n    \"b\": 2,\n    \"before\": [\n      " + hookLines + "\n    ]\n  }\n}",
		},
		"no list yet, on one line": {`{"hooks": {"b": 2}}`, `{"hooks": {"b": 2, "before": [` + hookLine + `]}}`},
	}
}

func TestAListGetsOneMoreItemAndKeepsTheRest(t *testing.T) {
	for name, texts := range listed() {
		t.Run(name, func(t *testing.T) {
			table := parsed(t, texts[0])
			m := must.Get(table.List("before", hook()))(t)
			if got := replaced(t, table, m); got != texts[1] {
				t.Errorf("got\n%s\nexpected\n%s", got, texts[1])
			}
		})
	}
}

func TestAListLosesTheItemsThatSayTheSame(t *testing.T) {
	for name, texts := range listed() {
		t.Run(name, func(t *testing.T) {
			table := parsed(t, texts[1])
			m, none, err := table.Without("before", []any{hook().plain()})
			if err != nil {
				t.Fatal(err)
			}
			got := parsed(t, replaced(t, table, m)).Member("before").Value.([]any)
			old := parsed(t, texts[0]).Member("before")
			if none != (len(got) == 0) || old != nil && len(got) != len(old.Value.([]any)) {
				t.Errorf("%t, %v", none, got)
			}
		})
	}
}

// Comments before removed items stay.
func TestOnlyTheItemsThatSayTheSameAreLost(t *testing.T) {
	table := parsed(t, `{"hooks": {"before": [/* 1 */ {"a": 1}, /* 2 */ {"b": 2}, /* 3 */ {"a": 1}, {"c": 3}]}}`)
	m, none, err := table.Without("before", []any{map[string]any{"a": json.Number("1")}, "another"})
	if err != nil || none {
		t.Fatal(none, err)
	}
	want := `{"hooks": {"before": [/* 1 */ /* 2 */ {"b": 2}, /* 3 */ {"c": 3}]}}`
	if got := replaced(t, table, m); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if m, none, err = table.Without("before", table.Member("before").Value.([]any)); err != nil || !none {
		t.Errorf("%v, %v, %v", m, none, err)
	}
}

// The error has the position.
func TestWhatIsNoListIsRefused(t *testing.T) {
	table := parsed(t, "{\"hooks\": {\n  \"before\": {}}}")
	want := "f.json:2:1: hooks.before: expected a list, […]"
	if _, err := table.List("before", hook()); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, none, err := table.Without("before", nil); err == nil || err.Error() != want || none {
		t.Errorf("%v", err)
	}
}

// However a list is written, an item can be appended and then removed again.
func TestListsOfAnyForm(t *testing.T) {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\n\t", "/* c */", " // c\n", "\r\n  "})
	rapid.Check(t, func(r *rapid.T) {
		s := func() string { return space.Draw(r, "space") }
		text := "{" + s() + `"hooks":` + s() + "{" + s() + `"before"` + s() + ":" + s() + "[" + s()
		n := rapid.IntRange(0, 3).Draw(r, "items")
		for i := range n {
			text += `{"a":` + s() + "1}" + s()
			if i < n-1 || rapid.Bool().Draw(r, "comma") {
				text += "," + s()
			}
		}

		text += "]" + s() + "}" + s() + "}"

		table := parsed(r, text)
		m := must.Get(table.List("before", hook()))(r)
		more := parsed(r, replaced(r, table, m))
		got := more.Member("before").Value.([]any)
		if len(got) != n+1 || !reflect.DeepEqual(got[n], any(hook().plain())) {
			r.Fatalf("%v", got)
		}
		less, none, err := more.Without("before", []any{hook().plain()})
		if err != nil || none != (n == 0) {
			r.Fatal(none, err)
		}
		again := parsed(r, replaced(r, more, less))
		if !reflect.DeepEqual(again.root, table.root) {
			r.Fatalf("%v", again.root)
		}
	})
}

// The text has one field per line.
func TestADocumentIsWhatItsObjectSays(t *testing.T) {
	text := Document(Object{
		{Name: "version", Value: 1},
		{Name: "hooks", Value: Object{{Name: "b", Value: []Object{hook()}}}},
	})
	var got map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&got)
	if err != nil || got["version"] != json.Number("1") || !bytes.HasSuffix(text, []byte("\n}\n")) {
		t.Errorf("%v\n%s", err, text)
	}
}

// failing is a test or a property test.
type failing interface {
	Helper()
	Fatal(args ...any)
}

func parsed(t failing, text string) *Table {
	t.Helper()
	table, err := Parse(JSON, "f.json", []byte(text), "hooks")
	if err != nil {
		t.Fatal(err, text)
	}

	return table
}

// replaced returns a table's text with another value of an entry.
func replaced(t failing, table *Table, m Member) string {
	t.Helper()
	var old []string
	if table.Member(m.Name) != nil {
		old = []string{m.Name}
	}
	text, err := table.Change(old, m)
	if err != nil {
		t.Fatal(err, m.Text)
	}

	return string(text)
}
