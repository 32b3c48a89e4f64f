package assenttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// leaf is a field of policy.Require, or of a struct in it.
type leaf struct {
	path        string // of Go: "Grants.MaxAge"
	key         string // in a policy file: "max_age"
	part        string // the key in `require` that holds it: "grants"
	tight, less string // `require` without and with less of it; less is looser in this field alone
}

// samples returns the text of a policy file for each leaf. A new field of a usual type needs no
// line.
func samples() map[string][3]string {
	return map[string][3]string{
		"Stages.Group":       {"group", "stages: [{group: risk}]", ""},
		"Stages.People":      {"people", "stages: [{group: risk, people: 2}]", "stages: [{group: risk}]"},
		"OnTimeout":          {"on_timeout", "on_timeout: deny", "on_timeout: escalate"},
		"Escalate.After":     {"after", "escalate: [{after: 5m, to: ops}]", "escalate: [{after: 10m, to: ops}]"},
		"Escalate.To":        {"to", "escalate: [{after: 5m, to: ops}]", ""},
		"Escalate.May":       {"may", "escalate: [{after: 5m, to: ops, may: look}]", "escalate: [{after: 5m, to: ops}]"},
		"Grants.Forbid":      {"forbid", "grants: forbid", ""},
		"Grants.Session":     {"session", "grants: {session: true, max_uses: 9}", "grants: {max_uses: 9}"},
		"Grants.MaxAge":      {"max_age", "grants: {max_age: 10m, max_uses: 9}", "grants: {max_uses: 9}"},
		"Grants.MaxUses":     {"max_uses", "grants: {max_age: 10m, max_uses: 9}", "grants: {max_age: 10m}"},
		"AnyOf":              {"any_of", "any_of: [[{group: risk}], [{group: ops, people: 2}]]", ""},
		"Reason.Required":    {"required", "reason: required", ""},
		"Reason.Patterns":    {"pattern", "reason: {pattern: a}", "reason: required"},
		"Grants.Bounds.Path": {"path", "", "grants: {bounds: [{path: amount, kind: at_most}]}"},
		"Grants.Bounds.Kind": {
			"kind", "grants: {bounds: [{path: amount, kind: at_most}]}",
			"grants: {bounds: [{path: amount, kind: at_most}, {path: amount, kind: at_least}]}",
		},
		"Arguments.Redact": {"redact", "arguments: {redact: [account]}", ""},
		"Arguments.ForbidHidden": {
			"approve_hidden", "arguments: {redact: [account], approve_hidden: false}",
			"arguments: {redact: [account]}",
		},
	}
}

// derived fields can't be written in a file, because they are computed from others.
func derived() []string { return []string{"Stages.StandIns.Group", "Stages.StandIns.After"} }

// leaves lists the fields of a type, down to those that are no structs.
func leaves(of reflect.Type, path, keys []string) []leaf {
	var out []leaf
	for i := range of.NumField() {
		field := of.Field(i)
		key := field.Tag.Get("doc")
		if key == "" {
			key = strings.ToLower(field.Name)
		}
		down, names := append(slices.Clone(path), field.Name), append(slices.Clone(keys), key)
		inner := field.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, leaves(inner, down, names)...)
			continue
		}
		l := leaf{path: strings.Join(down, "."), key: key, part: names[0]}
		if s, ok := samples()[l.path]; ok {
			l.key = s[0]
			l.tight, l.less = s[1], s[2]
		} else {
			l.tight = strings.Join(names, ": {") + ": " + usual(field.Type) + strings.Repeat("}", len(names)-1)
		}
		if !slices.Contains(derived(), l.path) {
			out = append(out, l)
		}
	}
	return out
}

// usual returns a value of a type in the syntax of a policy file.
func usual(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[time.Duration]():
		return "10m"
	case of.Kind() == reflect.Bool:
		return "true"
	case of.Kind() == reflect.Int:
		return "3"
	case of.Kind() == reflect.Slice:
		return "[" + usual(of.Elem()) + "]"
	}
	return "sample"
}

// rule returns a policy file with one rule. The part is alone on line 8. Another part is present,
// so that either can be left out.
func rule(require string) string {
	other := "within: 2h"
	if strings.HasPrefix(require, "within") {
		other = "stages: [{group: risk}]"
	}
	return "schema_version: \"1.1.0\"\npolicy_ref: acme.parts\napplies: implicit\nrules:\n  - id: part\n" +
		"    approval: true\n    require:\n      " + require + "\n      " + other + "\n"
}

const partLine = 8

const partAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: wire}]}
`

// side holds the results of one requirement.
type side struct {
	require policy.Require
	plan    *resolve.Plan
	request *approval.Request
}

func sideOf(t *testing.T, require string) (side, error) {
	text := rule(require)
	p, findings := policy.Parse("p.policy.yaml", []byte(text))
	if p == nil {
		return side{}, fmt.Errorf("policy.Parse or policy.schema.json, which refuses it: %s", findings[0].Message)
	}
	agent, _ := schema.Parse("a.agf.yaml", []byte(partAgent))
	set, _ := policy.NewSet(p)
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	must(t, err)

	files := fstest.MapFS{
		"agents/desk.agf.yaml":   {Data: []byte(partAgent)},
		"policies/p.policy.yaml": {Data: []byte(text)},
		"people.yaml":            {Data: must2(os.ReadFile("testdata/people.yaml"))(t)},
	}
	a := New(t, Config{Files: files})
	out, err := a.Service.Open(t.Context(), approval.OpenInput{
		Tenant: Tenant,
		Asker:  approval.Asker{Token: "runtime"},
		Agent:  "desk",
		Call:   &resolve.Call{Kind: resolve.Tool, Tool: "wire", Args: resolve.Raw(`{"amount":5,"account":"x"}`)},
	})
	must(t, err)
	if out.Request == nil {
		t.Fatalf("%s: the call was not asked about: %+v", require, out)
	}
	return side{p.Rules[0].Require, plan, out.Request}, nil
}

func must2[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// kept returns the part of a request that depends on its requirement: without the fields that
// differ between any two requests, and with times relative to its opening.
func (s side) kept(t *testing.T) string {
	t.Helper()
	r := *s.request
	r.ID, r.Revisions = "", nil
	text := string(must2(json.Marshal(r))(t))
	return timestamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, found)
		must(t, err)
		return at.Sub(r.Created).Round(time.Second).String()
	})
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)

// missing names every place that doesn't handle the field.
func (l leaf) missing(t *testing.T) []string {
	t.Helper()
	tight, err := sideOf(t, l.tight)
	if err != nil {
		return append([]string{err.Error()}, l.unsaid(t)...)
	}
	less, err := sideOf(t, l.less)
	must(t, err)
	a, b := tight.require, less.require
	var out []string
	lacks := func(lacking bool, place string) {
		if lacking {
			out = append(out, place)
		}
	}

	lacks(reflect.DeepEqual(a, b), "policy/read.go, which does not read it")
	alone := policy.Require{}
	top, _, _ := strings.Cut(l.path, ".")
	field := reflect.ValueOf(&alone).Elem().FieldByName(top)
	for _, q := range []policy.Require{a, b} {
		field.Set(reflect.ValueOf(q).FieldByName(top))
		lacks(!field.IsZero() && alone.IsZero(), "IsZero (policy/parts.go)")
	}
	lacks(!reflect.DeepEqual(a.Join(b), a) || !reflect.DeepEqual(b.Join(a), a), "Join (policy/parts.go)")
	lacks(!policy.Tighter(a, b) || policy.Tighter(b, a), "Tighter (policy/parts.go)")
	lacks(!slices.ContainsFunc(policy.Parts(), func(p policy.Part) bool { return p.Name == l.part }),
		"the table of parts (policy/parts.go)")
	text, again := must2(json.Marshal(a))(t), policy.Require{}
	must(t, json.Unmarshal(text, &again))
	lacks(!reflect.DeepEqual(a, again) || string(text) == string(must2(json.Marshal(b))(t)),
		"JSON (policy/require_json.go)")
	changes := posture.Compare(&posture.Side{Plan: tight.plan}, &posture.Side{Plan: less.plan})
	lacks(!slices.ContainsFunc(changes, func(c posture.Change) bool {
		return c.Aspect == l.part && c.Effect == posture.Loosens
	}), "posture, which calls its removal "+string(posture.NewReport(changes).Verdict))
	lacks(l.mutants(t) == 0, "mutation (lint/policytest/changes.go)")
	lacks(tight.kept(t) == less.kept(t), "what a request keeps (approval/kept.go)")
	return append(out, l.unsaid(t)...)
}

// mutants counts the changes of the field's line that files can have.
func (l leaf) mutants(t *testing.T) int {
	t.Helper()
	text := l.tight
	if !strings.Contains(text, l.key) {
		text = l.less
	}
	f, findings := policytest.Parse("none.test.yaml",
		[]byte("schema_version: \"1.0.0\"\nagent: desk.agf.yaml\ncalls: []\n"))
	if f == nil {
		t.Fatal(findings)
	}
	w := &policytest.World{
		Agents:   []policy.File{{Name: "desk.agf.yaml", Text: []byte(partAgent)}},
		Policies: []policy.File{{Name: "p.policy.yaml", Text: []byte(rule(text))}},
	}
	b := must2(w.Build())(t)
	s := policytest.Mutate([]*policytest.Suite{{Files: []*policytest.File{f}, World: w, Built: b}})
	n := 0
	for _, x := range s.Survivors {
		if x.File == "p.policy.yaml" && x.Range.Start.Line == partLine {
			n++
		}
	}
	return n
}

// unsaid names the texts and pages that don't mention the field.
func (l leaf) unsaid(t *testing.T) []string {
	t.Helper()
	read := func(names ...string) string {
		var out strings.Builder
		for _, pattern := range names {
			files := must2(filepath.Glob(filepath.Join("../..", pattern)))(t)
			if len(files) == 0 {
				t.Fatalf("no file is called %s", pattern)
			}
			for _, name := range files {
				if !strings.HasSuffix(name, "_test.go") {
					out.Write(must2(os.ReadFile(name))(t))
				}
			}
		}
		return out.String()
	}
	between := func(text, from, to string) string {
		_, rest, ok := strings.Cut(text, from)
		text, _, ends := strings.Cut(rest, to)
		if !ok || !ends {
			t.Fatalf("no %q before %q", from, to)
		}
		return text
	}

	var out []string
	lacks := func(place, text string, words ...string) {
		says := func(word string) bool { return regexp.MustCompile(`\b` + word + `\b`).MatchString(text) }
		if !slices.ContainsFunc(words, says) {
			out = append(out, place)
		}
	}
	api := read("server/openapi/openapi.yaml")
	lacks("policy/policy.schema.json", read("policy/policy.schema.json"), l.key)
	lacks("server/openapi/openapi.yaml (schema Require)",
		between(api, "\n    Require:\n", "\n    State:\n")+between(api, "\n    Bound:\n", "\n    Grant:\n"), l.key)
	if l.path != "Grants.Forbid" { // whose generator writes a choice of words as any value
		lacks("clients/python (make generate)", read("clients/python/src/assent_client/models.py"), l.key)
	}
	lacks("clients/typescript (make generate)", read("clients/typescript/src/models.ts"), l.key)
	lacks("docs/contracts/policy.md", read("docs/contracts/policy.md"), l.key)

	field := l.path[strings.LastIndex(l.path, ".")+1:]
	const told = "approval/tell.go"
	for _, page := range []struct{ name, files string }{
		{"the inbox (server/inbox)", "server/inbox/*.go"},
		{"assent show (cmd/internal/answer)", "cmd/internal/answer/*.go"},
		{"agf-validate posture (lint/listing)", "lint/listing/*.go"},
	} {
		words, known := shownAs()[l.path+" "+page.files]
		if !known {
			words = []string{field}
		}
		if words != nil {
			lacks(page.name, read(page.files, told), words...)
		}
	}
	return out
}

// shownAs returns the names under which a page shows a field that it does not name itself. The list
// is nil if the field is not shown.
func shownAs() map[string][]string {
	const list = " lint/listing/*.go" // has a column for who, by when and what happens otherwise
	return map[string][]string{
		"Within server/inbox/*.go":                 {"Deadline"},
		"Within cmd/internal/answer/*.go":          {"Deadline"},
		"Escalate.To server/inbox/*.go":            {"CallsIn"},
		"Escalate.May server/inbox/*.go":           {"CallsIn"}, // its words say what they may do
		"Escalate.May cmd/internal/answer/*.go":    {"CallsIn"},
		"Arguments.ForbidHidden server/inbox/*.go": {"Forbidden"},
		"Grants.Forbid" + list:                     nil,
		"Grants.Session" + list:                    nil,
		"Grants.MaxAge" + list:                     nil,
		"Grants.MaxUses" + list:                    nil,
		"Grants.Bounds.Path" + list:                nil,
		"Grants.Bounds.Kind" + list:                nil,
		"Arguments.Redact" + list:                  nil,
		"Arguments.ForbidHidden" + list:            nil,
		"Reason.Required server/inbox/*.go":        {"NeedReason"},
		"Reason.Required cmd/internal/answer/*.go": {"ReasonWords"},
		"Reason.Required" + list:                   {"Reason"},
		"Reason.Patterns server/inbox/*.go":        {"NeedReason"},
		"Reason.Patterns cmd/internal/answer/*.go": {"ReasonWords"},
		"Reason.Patterns" + list:                   {"Reason"},
	}
}

// TestEveryPartOfARequirementIsEverywhere: if one place ignores a field of policy.Require, the
// requirement is not enforced or not compared. The test reports all such places at once.
func TestEveryPartOfARequirementIsEverywhere(t *testing.T) {
	all := leaves(reflect.TypeFor[policy.Require](), nil, nil)
	for path := range samples() {
		if !slices.ContainsFunc(all, func(l leaf) bool { return l.path == path }) {
			t.Errorf("samples has %s, which is no field", path)
		}
	}
	for _, l := range all {
		if missing := l.missing(t); missing != nil {
			t.Errorf("require.%s (policy.Require.%s) is missing from:\n  %s", l.key, l.path,
				strings.Join(missing, "\n  "))
		}
	}
}
