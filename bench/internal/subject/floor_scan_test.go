package subject

import (
	"encoding/json"
	"strings"
	"testing"
)

// wanted returns a plan that reads the keys a, b and o.n.
func wanted() (*node, int) {
	p := &slotPlan{root: &node{}}
	for _, path := range []string{"a", "b", "o.n"} {
		p.slot(strings.Split(path, "."))
	}
	return p.root, len(p.slots)
}

func scan(src []byte) ([]slot, bool) {
	root, n := wanted()
	s := scanner{src: src, slots: make([]slot, n)}
	ok := s.document(root)
	return s.slots, ok
}

func TestScan(t *testing.T) {
	for _, tc := range []struct {
		src  string
		want [3]slot
	}{
		{`{}`, [3]slot{}},
		{`{"a":1,"b":"x","o":{"n":-2}}`, [3]slot{{kind: 'n', num: 1}, {kind: 's', text: "x"}, {kind: 'n', num: -2}}},
		{`{"o":{"a":9,"n":2.5e1,"z":[{"a":1}]},"z":{"a":3}}`, [3]slot{{}, {}, {kind: 'n', num: 25}}},
		{
			" {\n\"\\u0061\" : 7 , \"b\" : \"a\\u00e9\\n\" } ",
			[3]slot{{kind: 'n', num: 7}, {kind: 's', text: "aé\n"}, {}},
		},
		{`{"a":null,"b":true,"o":[]}`, [3]slot{{kind: 'o'}, {kind: 'o'}, {}}},
		{`{"a":1,"a":2}`, [3]slot{{kind: 'n', num: 2}, {}, {}}},
		{`{"a":12345678901234567890}`, [3]slot{{kind: 'n', num: 12345678901234567890}, {}, {}}},
	} {
		got, ok := scan([]byte(tc.src))
		if !ok || [3]slot(got) != tc.want {
			t.Errorf("%s: %v %+v, want %+v", tc.src, ok, got, tc.want)
		}
	}
}

// FuzzScan checks that the scanner accepts only valid JSON and reads the right values.
// Otherwise the floor would be too fast.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`,
		`{"a":01}`,
		`{"a":1.}`,
		`{"a":"\u12"}`,
		`{"a":"0123456789\"","b":[1,2,{}]}`,
		`{"a":1}x`,
		`{"a":1,}`,
		`[`,
		`{"a" 1}`,
		"{\"b\":\"\x01\"}",
		`-`,
		`tru`,
		`1e400`,
		`{"o":{"n":1e2},"b":""}`,
		``,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, src []byte) {
		slots, ok := scan(src)
		if valid := json.Valid(src); ok != valid {
			if _, err := scanNumberRange(src); err != nil {
				return // a number that does not fit in a float64: encoding/json refuses it when it decodes
			}
			t.Fatalf("accepted %v, json.Valid %v: %q", ok, valid, src)
		}

		if !ok {
			return
		}
		var doc map[string]any
		if json.Unmarshal(src, &doc) != nil {
			return
		}
		checkSlot(t, src, "a", slots[0], doc["a"])
		checkSlot(t, src, "b", slots[1], doc["b"])
	})
}

func scanNumberRange(src []byte) (any, error) {
	var v any
	return v, json.Unmarshal(src, &v)
}

func checkSlot(t *testing.T, src []byte, key string, got slot, want any) {
	t.Helper()
	switch want := want.(type) {
	case float64:
		if got.kind != 'n' || got.num != want {
			t.Errorf("%s: %+v, want number %v: %q", key, got, want, src)
		}
	case string:
		if got.kind == 's' && validText(src) && got.text != want {
			t.Errorf("%s: %+v, want %q: %q", key, got, want, src)
		}
	}
}

// validText reports whether encoding/json would keep the bytes unchanged. It replaces invalid
// UTF-8, and the floor does not.
func validText(src []byte) bool {
	for _, c := range src {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
