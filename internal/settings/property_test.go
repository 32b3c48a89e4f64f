package settings

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
)

// document draws a text with members m0, m1… of the table s, comments, and other entries around
// it.
func document(t *rapid.T, form Form) (text string, members []string) {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	for i := range rapid.IntRange(1, 5).Draw(t, "members") {
		members = append(members, fmt.Sprintf("m%d", i))
	}
	switch form {
	case JSON:
		text = jsonDocument(t, members)
	case TOML:
		text = tomlDocument(t, members)
	default:
		text = yamlDocument(t, members)
	}

	return strings.ReplaceAll(text, "\n", eol), members
}

// remark draws a unique comment, or none.
func remark(t *rapid.T, start, end string) string {
	if !rapid.Bool().Draw(t, "remark") {
		return ""
	}

	return start + fmt.Sprintf("remark-%d", rapid.IntRange(0, 1<<30).Draw(t, "remark")) + end
}

func jsonDocument(t *rapid.T, members []string) string {
	compact := rapid.Bool().Draw(t, "compact")
	nl := "\n    "
	if compact {
		nl = ""
	}
	text := remark(t, "// ", "\n") + `{"before": [1, "x"], "s": {`
	for i, m := range members {
		text += remark(t, "/* ", " */") + nl + `"` + m + `": ` +
			rapid.SampledFrom([]string{`{"command": "x"}`, "{\n\"env\": {\"A\": \"}\"}}", `null`, `"/* no */"`}).
				Draw(t, "value")
		if i < len(members)-1 || rapid.Bool().Draw(t, "trailing") {
			text += remark(t, " /* ", " */ ") + ","
		}
	}

	return text + remark(t, " // ", "\n") + `}, "after": {"s": {"m0": 1}}}` + remark(t, "\n// ", "\n")
}

func tomlDocument(t *rapid.T, members []string) string {
	text := remark(t, "# ", "\n") + "before = [1,\n 2] # x\n"
	table := "s"
	lines := rapid.Bool().Draw(t, "lines")
	if lines {
		text += "[s]\n"
	}
	for _, m := range members {
		text += remark(t, "# ", "\n")
		if lines {
			text += m + ` = { command = "x # y" }` + remark(t, " # ", "") + "\n"
			continue
		}
		text += "[" + table + "." + m + "]\ncommand = '''\n[s.m9]'''\n" + rapid.SampledFrom([]string{
			"",
			"\n[ s . '" + m + "' . \"env\" ]\nA = \"b\"\n",
		}).Draw(t, "env")
	}

	return text + remark(t, "# ", "\n") + "[after.s.m0]\nx = 1\n"
}

func yamlDocument(t *rapid.T, members []string) string {
	text := remark(t, "# ", "\n") + "before: [1,\n 2] # x\ns:\n"
	for _, m := range members {
		text += remark(t, "  # ", "\n") + "  " + m + ":" + rapid.SampledFrom([]string{
			" {cmd: x,\n     y: 1}\n",
			"\n    cmd: |\n      m9:\n      # no\n\n",
			"\n  - x\n",
			" 'a\n\n     b'\n",
			"\n",
		}).Draw(t, "value")
	}

	return text + remark(t, "# ", "\n") + "after:\n  s:\n    m0: 1\n"
}

var remarks = regexp.MustCompile(`remark-\d+`)

// Moving members away and back keeps the content of the rest of the text, and loses no comment
// outside of the moved members. A change that is not possible is refused.
func TestChangeProperty(t *testing.T) {
	for _, form := range []Form{JSON, TOML, YAML} {
		rapid.Check(t, func(t *rapid.T) {
			text, members := document(t, form)
			table, err := Parse(form, "f", []byte(text), "s")
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			remove := slices.DeleteFunc(
				slices.Clone(members),
				func(string) bool { return rapid.Bool().Draw(t, "keep") },
			)
			moved := slices.DeleteFunc(table.Members(), func(m Member) bool { return !slices.Contains(remove, m.Name) })
			after, err := table.Change(remove, table.New("assent", assent()))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			keepsRemarks(t, text, string(after), moved)
			again := must.Get(Parse(form, "f", after, "s"))(t)
			back, err := again.Change([]string{"assent"}, moved...)
			if err != nil {
				t.Fatalf("%v\n%s\nfrom\n%s", err, after, text)
			}
			end, err := Parse(form, "f", back, "s")
			if err != nil || !reflect.DeepEqual(end.root, table.root) {
				t.Fatalf("%v: got\n%s\nfrom\n%s", err, back, text)
			}
		})
	}
}

func keepsRemarks(t *rapid.T, before, after string, moved []Member) {
	for _, m := range moved {
		before = strings.Replace(before, m.Text, "", 1)
	}
	if want, got := remarks.FindAllString(before, -1), remarks.FindAllString(after, -1); !slices.Equal(got, want) {
		t.Fatalf("remarks %v, want %v:\n%s", got, want, after)
	}
}

// No text causes a panic, and an accepted text is changed correctly or not at all, which Change
// verifies.
func FuzzParse(f *testing.F) {
	for _, c := range changes() {
		f.Add(uint8(c.form), c.in)
	}
	f.Fuzz(func(t *testing.T, form uint8, text string) {
		table, err := Parse(Form(form%3), "f", []byte(text), "s")
		if err != nil {
			return
		}
		table.Masked(func([]string) bool { return true })
		var all []string
		for _, m := range table.Members() {
			all = append(all, m.Name)
		}
		if after, err := table.Change(all, table.New("assent", assent())); err == nil && len(after) == 0 {
			t.Errorf("%q becomes nothing", text)
		}
	})
}
