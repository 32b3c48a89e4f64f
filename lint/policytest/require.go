package policytest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// nothing is the word in a test file for no requirements.
const nothing = "none"

// require compares the requirements of the policies, field by field, in the words of the decision.
func (c *check) require() {
	want := c.node.Get("require")
	if want == nil {
		return
	}
	got := c.demanded()
	if want.Kind == yamldoc.String {
		if got != nil {
			c.fail("require", nothing, flow(got))
		}
		return
	}

	if got == nil {
		c.fail("require", string(appendFlow(nil, want)), nothing)
		return
	}

	for _, f := range want.Fields {
		have := got.get(f.Key.Text)
		if same(f.Value, have) {
			continue
		}
		c.failures = append(c.failures, Failure{
			What:     "require." + f.Key.Text,
			Range:    f.Value.Range,
			Expected: string(appendFlow(nil, f.Value)),
			Got:      flow(have),
			fix:      &edit{at: f.Value, text: flow(have)},
		})
	}
}

// demanded returns the requirements of the decision as a tree, or nil if there are none.
func (c *check) demanded() *tree {
	if c.decision.Require == nil {
		return nil
	}
	text, err := json.Marshal(c.decision.Require)
	if err != nil {
		return nil
	}

	return readTree(text)
}

// tree is a JSON value of ours: its text, or its parts.
type tree struct {
	text   string // of a scalar, as JSON
	items  []*tree
	fields []treeField
	kind   byte // '[', '{', or 0
}

type treeField struct {
	key   string
	value *tree
}

func (t *tree) get(key string) *tree {
	for _, f := range t.fields {
		if f.key == key {
			return f.value
		}
	}

	return nil
}

// readTree reads JSON that we wrote ourselves.
func readTree(text []byte) *tree {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()

	return nextTree(d)
}

func nextTree(d *json.Decoder) *tree {
	token, err := d.Token()
	if err != nil {
		return &tree{text: "null"}
	}
	delim, nested := token.(json.Delim)
	if !nested {
		text, _ := json.Marshal(token) // a token is a scalar
		return &tree{text: string(text)}
	}
	t := &tree{kind: byte(delim)}
	for d.More() {
		if t.kind == '[' {
			t.items = append(t.items, nextTree(d))
			continue
		}
		key, _ := d.Token() // ours: it has a key
		name, _ := key.(string)
		t.fields = append(t.fields, treeField{name, nextTree(d)})
	}

	_, _ = d.Token() // the closing bracket

	return t
}

// same compares an expected value with the actual one. Lists of objects are compared in any order,
// durations by their length.
func same(want *yamldoc.Node, got *tree) bool {
	switch {
	case got == nil:
		return want.Kind == yamldoc.Null
	case want.Kind == yamldoc.Mapping:
		return got.kind == '{' && sameFields(want, got)
	case want.Kind == yamldoc.Sequence:
		return got.kind == '[' && sameItems(want, got)
	case got.kind != 0:
		return false
	}

	text := string(appendJSON(nil, want))
	return text == got.text || sameTime(want, got.text)
}

func sameFields(want *yamldoc.Node, got *tree) bool {
	for _, f := range want.Fields {
		if !same(f.Value, got.get(f.Key.Text)) {
			return false
		}
	}

	return !slices.ContainsFunc(got.fields, func(f treeField) bool {
		return want.Get(f.key) == nil && f.key != "stand_ins" // which follow from escalate
	})
}

func sameItems(want *yamldoc.Node, got *tree) bool {
	left := slices.Clone(got.items)
	for _, item := range want.Items {
		i := slices.IndexFunc(left, func(t *tree) bool { return same(item, t) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}

	return len(left) == 0
}

// sameTime reports whether both are durations of one length.
func sameTime(want *yamldoc.Node, got string) bool {
	if want.Kind != yamldoc.String {
		return false
	}
	var text string
	if json.Unmarshal([]byte(got), &text) != nil {
		return false
	}
	a, errA := time.ParseDuration(want.Text)
	b, errB := time.ParseDuration(text)

	return errA == nil && errB == nil && a == b
}

// flow writes a tree as YAML on one line, or null if there is none. It omits fields that are
// derived from escalate.
func flow(t *tree) string {
	if t == nil {
		return "null"
	}
	var parts []string
	switch t.kind {
	case '[':
		for _, item := range t.items {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case '{':
		for _, f := range t.fields {
			if f.key != "stand_ins" {
				parts = append(parts, plain(f.key)+": "+flow(f.value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}

	var text string
	if json.Unmarshal([]byte(t.text), &text) == nil && t.text != "null" {
		return plain(text)
	}

	return t.text
}

// appendFlow writes a node as YAML on one line.
func appendFlow(dst []byte, n *yamldoc.Node) []byte {
	return append(dst, flow(readTree(appendJSON(nil, n)))...)
}
