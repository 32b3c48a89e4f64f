package condition

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
)

// The methods of an operator agree with the behaviour of its tests.
func TestOperatorsTellWhatTheyAre(t *testing.T) {
	for _, op := range append(Operators(Policy11), Eq) {
		rapid.Check(t, func(t *rapid.T) {
			test := testOf(t, op, []string{"a", "b$"})
			compiled := newTest(&test, Semantics{}, NewAnalyzer(ToolArgs, Semantics{}, 0).patternsOf(Semantics{}))

			other := compiled.truth(&value.Slot{Kind: value.Bool}, &View{})
			for _, o := range test.Operands() {
				if o.Kind == value.Bool {
					other = compiled.truth(&value.Slot{Kind: value.Object}, &View{}) // no operand is an object
				}
			}
			if op != Exists && test.Negative() != (other == True) {
				t.Fatalf("%v: negative %v, and %v for an object", &test, test.Negative(), other)
			}
			p, searches := compiled.texts.(*pattern)
			searches = searches && p.named[0] == ""
			if re, ok := test.Expression(); ok != searches || ok && re == "" {
				t.Fatalf("%v: searches for %q, %v", &test, re, ok)
			}
			want := len(test.List) + index(test.Operand.Kind != value.Absent && op != Exists)
			if len(test.Operands()) != want {
				t.Fatalf("%v: operands %v", &test, test.Operands())
			}
		})
	}
}

// The schema has the name, a description, and the form of the operand.
func TestOperatorsHaveASchema(t *testing.T) {
	var names []string
	for _, op := range Operators(Policy11) {
		var schema map[string]map[string]any
		if err := json.Unmarshal([]byte("{"+op.Schema()+"}"), &schema); err != nil {
			t.Fatalf("%s: %v", op.Schema(), err)
		}
		words, _ := schema[string(op)]["description"].(string)
		if len(schema) != 1 || len(schema[string(op)]) < 2 || !strings.HasSuffix(words, ".") {
			t.Errorf("%s: %v", op, schema)
		}
		names = append(names, "`"+string(op)+"`")
	}

	if strings.Join(names, ", ") != OperatorList(Policy11) ||
		len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("listed as %s", OperatorList(Policy11))
	}
}

// A bare value is equality, which has no name in files.
func TestFilesNameOnlyOperatorsOfTheTable(t *testing.T) {
	for _, name := range []string{string(Eq), string(Unreadable), "", "GT"} {
		e, findings := read(t, match("a: {'"+name+"': 1}"))
		if len(findings) != 1 || e.Groups[0].Matchers[0].Tests[0].Op != Unreadable {
			t.Errorf("%q: %v %v", name, show(e), findings)
		}
	}
}

// This test lists everything that an operator lacks and that the compiler can't check.
func TestOperatorsAreKnownEverywhere(t *testing.T) {
	rows := string(must.Get(os.ReadFile("semantics_test.go"))(t)) + string(must.Get(os.ReadFile("policy11_test.go"))(t))
	for _, op := range append(Operators(Policy11), Eq) {
		var missing []string
		if op.InReasons() == "" {
			missing = append(missing, "words for reasons (method words)")
		}
		if op.InLists() == "" {
			missing = append(missing, "words for lists (method words)")
		}
		for _, slip := range op.Slips() {
			if _, known := find(slip); !known || slip == op {
				missing = append(missing, "slips that are other operators (method slips): "+string(slip))
			}
		}
		if op != Eq && !strings.Contains(rows, string(op)+": ") {
			missing = append(missing, "rows in semantics_test.go")
		}
		if missing != nil {
			t.Errorf("the operator %q lacks: %s", op, strings.Join(missing, "; "))
		}
	}
	if Unreadable.InReasons()+Unreadable.InLists() != "" || Unreadable.Slips() != nil {
		t.Error("the name of no operator has words")
	}
}
